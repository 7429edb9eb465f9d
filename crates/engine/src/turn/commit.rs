//! Committing turns. Nothing that a turn decided is visible before its commit.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Name, Rejected, Timestamp};
use dacapo_store::{
    NewTask, Refused, RunNo, StoreError, StuckCause, TaskNo, TimerKind, TimerRow, TurnWrite, TurnWritten, Write,
    Written,
};
use dacapo_sync::{Mutex, ranks};

use crate::activity::blocked::{mark_waiting, unserved_queue};
use crate::activity::cancel::{give_up_ended_tasks, give_up_tasks};
use crate::activity::dispatch::dispatch;
use crate::activity::local;
use crate::activity::task::{Task, TaskState, over};
use crate::crash_guard::hooks::{Ended, count_after_turn, ended};
use crate::host::WorkKind;
use crate::lifecycle::shutdown;
use crate::nodes::hand_over::{drop_run, store_taken};
use crate::nodes::notices::stored;
use crate::read::outcome::closed_run;
use crate::report::stuck_reason::StuckReason;
use crate::run::cached_run::{CachedRun, PlayState, Playable};
use crate::run::forget::forget;
use crate::run::late::forget_late;
use crate::run::message::Message;
use crate::shared::Shared;
use crate::turn::effects::{Effect, Source, apply, close_other, in_other_runs, planned};
use crate::turn::outcome::PlannedEffects;
use crate::turn::plan::Plan;
use crate::turn::rest::rest;
use crate::turn::stuck::{retry_later, set_stuck};
use crate::turn::update_outcome::{late_tasks, settle};
use crate::writes::{submit, submit_turn};

/// The effects of a turn, as far as they are known before its commit.
pub(crate) struct Committing {
    pub(crate) effects: PlannedEffects,
    /// The crash count that the turn leaves.
    crash_count: u32,
    turn: u64,
    /// Tasks of the turn, whose numbers the commit gives.
    tasks: Vec<NewTask>,
    added: Vec<(Timestamp, TimerKind)>,
    ended: Vec<(Timestamp, TimerKind)>,
}

impl Committing {
    /// Collects what this write leads to.
    pub(crate) fn new(write: &TurnWrite, effects: PlannedEffects, crash_count: u32) -> Self {
        Self {
            effects,
            crash_count,
            turn: write.turn,
            tasks: write.tasks.clone(),
            added: write.timers.clone(),
            ended: write.ended_timers.clone(),
        }
    }

    /// Adds the timers of a run that starts with this turn.
    pub(crate) fn with_timers(mut self, timers: &[(Timestamp, TimerKind)]) -> Self {
        self.added.splice(0..0, timers.iter().copied());
        self
    }

    /// Makes all effects of the turn, now that the store has given its answer.
    fn effects(self, shared: &Shared, playable: &Playable, numbers: &[TaskNo], written: TurnWritten) -> Vec<Effect> {
        let run = written.run;
        let rows = |timers: Vec<(Timestamp, TimerKind)>| {
            timers.into_iter().map(|(due, kind)| TimerRow { due, run, kind }).collect()
        };
        let Self { mut effects, turn, tasks, added, ended, .. } = self;
        let mut all = Vec::with_capacity(tasks.len() + 1);
        if !added.is_empty() || !ended.is_empty() {
            all.push(Effect::SetTimers { added: rows(added), ended: rows(ended) });
        }
        let commands = std::mem::take(&mut effects.tasks);
        let clock = shared.clock();
        for ((no, new), command) in numbers.iter().zip(&tasks).zip(commands) {
            if new.offered || !shared.workers.serve(&new.queue) {
                all.push(Effect::OfferTask(new.queue.clone()));
                continue;
            }
            let task = Task {
                no: *no,
                info: playable.info.clone(),
                scheduled: new.ready,
                over: over(&command, new.ready, clock),
                priority: new.priority,
                attempt: 1,
                failure: None,
                details: None,
                state: TaskState::Ready,
                cancelled: None,
                crash_count: 0,
                has_input: true,
                origin: (turn, new.position),
                command,
            };
            all.push(Effect::QueueTask(Box::new(task)));
        }
        let closed = effects.closed.take();
        all.extend(planned(effects));
        all.extend(in_other_runs(written));
        all.extend(closed.map(|(status, outcome)| Effect::Close(status, outcome)));
        all
    }
}

/// Commits the turns of a run that are not committed, in order.
pub(crate) fn commit(shared: &Arc<Shared>, cached: Arc<CachedRun>, mut playable: Box<Playable>) {
    let mut plans = std::mem::take(&mut playable.deferred);
    let crash_count = count_after_turn(shared, cached.no);
    plans.iter_mut().for_each(|plan| plan.write.crash_count = crash_count);
    let Some(last) = plans.pop() else { return rest(shared, &cached, Some(playable)) };
    // A deferred turn asks for nothing that others could see. If it is refused, so is the last.
    let refused = Arc::new(Mutex::new(ranks::DEFERRED_TURNS, None));
    let workflow = playable.info.name.workflow.clone();
    for plan in plans {
        let refused = refused.clone();
        submit_turn(shared, &workflow, plan.write, move |_, result| {
            if let Err(error) = result {
                refused.lock().get_or_insert(error);
            }
        });
    }
    let Plan { write, effects } = last;
    let committing = Committing::new(&write, effects, crash_count);
    submit_turn(shared, &workflow, write, move |shared, result| {
        let earlier = refused.lock().take();
        match (earlier, result) {
            (None, Ok(Written::Turn(written))) => committed(shared, &cached, playable, committing, *written),
            (None, Ok(other)) => unreachable!("a turn was answered with {other:?}"),
            (Some(error), _) | (None, Err(error)) => not_committed(shared, cached, playable, error),
        }
    });
}

/// Applies the effects of a turn that is durable, and puts its run at rest.
pub(crate) fn committed(
    shared: &Arc<Shared>,
    cached: &Arc<CachedRun>,
    mut playable: Box<Playable>,
    committing: Committing,
    mut written: TurnWritten,
) {
    let is_closed = committing.effects.closed.is_some();
    let mut state = cached.lock();
    state.take_uncommitted();
    state.unstick();
    state.open_as = (!is_closed).then(|| playable.info.name.clone());
    drop(state);
    ended(shared, Ended::Turn(cached, committing.crash_count));
    let made = std::mem::take(&mut written.tasks);
    let chain = playable.info.first_run_id.clone();
    let effects = committing.effects(shared, &playable, &made, written);
    apply(shared, Source { run: cached.no, chain: &chain }, effects);
    if cached.lock().is_gone && !is_closed {
        end_made_tasks(shared, cached.no, made);
    }
    let unserved = match is_closed || shared.queue_log.is_empty() {
        true => None,
        false => unserved_queue(shared, &playable.open),
    };
    let epoch = playable.info.epoch;
    match is_closed {
        true => {
            let mut state = cached.lock();
            state.play_state = PlayState::Idle;
            let late = state.take_inbox();
            drop(state);
            forget_late(shared, cached.no, &late);
            shared.drop_later(playable);
        }
        false => {
            local::start_all(shared, cached, &mut playable);
            rest(shared, cached, Some(playable));
        }
    }
    // A committed turn clears the mark as stuck; one of the run's activities may still wait for an operator.
    mark_waiting(shared, cached.no, epoch, unserved.as_ref());
    dispatch(shared);
    shutdown::check(shared);
}

/// Ends the tasks of a turn whose run has left memory between its commit and now: it was ended from outside, and its tasks
/// with it. Where several nodes share the store it may also have moved, and perhaps come back: the store knows which tasks are
/// left.
fn end_made_tasks(shared: &Arc<Shared>, run: RunNo, made: Vec<TaskNo>) {
    if shared.nodes().is_none() {
        return give_up_tasks(shared, run, |task| made.contains(&task));
    }
    shared.later(WorkKind::Read, Some(run), move |shared| {
        if let Err(error) = give_up_ended_tasks(shared, run, &made) {
            tracing::error!(%run, %error, "tasks cannot be read");
        }
    });
}

/// Applies the effects of the first turn of a run that another thread is loading already, and drops this copy of the
/// run. Called on a thread that may block.
pub(crate) fn committed_beside(
    shared: &Arc<Shared>,
    run: RunNo,
    playable: Box<Playable>,
    committing: Committing,
    mut written: TurnWritten,
) {
    let made = std::mem::take(&mut written.tasks);
    let chain = playable.info.first_run_id.clone();
    let effects = committing.effects(shared, &playable, &made, written);
    apply(shared, Source { run, chain: &chain }, effects);
    drop(playable);
    // Other threads may have played the run on and ended some of its tasks, or the run. Only the store knows.
    if let Err(error) = give_up_ended_tasks(shared, run, &made) {
        tracing::error!(%run, %error, "tasks cannot be read");
    }
    dispatch(shared);
}

/// Handles a turn that was not committed: the run in memory is ahead of the store, so it is dropped.
fn not_committed(shared: &Arc<Shared>, cached: Arc<CachedRun>, playable: Box<Playable>, error: StoreError) {
    shared.drop_later(playable);
    match error {
        StoreError::Refused(refused @ (Refused::UnseenMessages | Refused::MessageTaken)) => {
            let mut state = cached.lock();
            state.put_back_all();
            state.takes_all = refused == Refused::UnseenMessages;
            drop(state);
            rest(shared, &cached, None);
        }
        StoreError::Refused(Refused::Closed(_) | Refused::NoSuchRun) => closed_meanwhile(shared, &cached),
        StoreError::Refused(Refused::NotOwner) => moved_meanwhile(shared, &cached),
        // Another node has played the run on before it came back to this one.
        StoreError::Refused(Refused::Fenced { .. }) if shared.nodes().is_some() => overtaken(shared, &cached),
        StoreError::Refused(refused) => {
            cached.lock().put_back_all();
            shared.later(WorkKind::Write, Some(cached.no), move |shared| {
                let text = format!("its turn was refused: {refused}");
                set_stuck(shared, &cached, StuckReason::of_text(StuckCause::StoreRefused, text));
            });
        }
        error => {
            let taken = cached.lock().take_uncommitted();
            retry_later(shared, &cached, taken, &error);
        }
    }
}

/// Drops a run from memory that another node has played on before it came back to this one, and looks at it anew.
pub(crate) fn overtaken(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    moved_meanwhile(shared, cached);
    shared.timers.forget(|run| run == cached.no);
    stored(shared, cached.no);
}

/// Drops a run from memory, after a write for it was refused because another node plays it. That is no failure of the run.
fn moved_meanwhile(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    drop_run(shared, cached);
    store_taken(shared, cached);
    ended(shared, Ended::Play(cached));
}

/// Ends what a run has in memory, after a write for it was refused because it is closed or gone.
pub(crate) fn closed_meanwhile(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    let cached = cached.clone();
    shared.later(WorkKind::Read, Some(cached.no), move |shared| {
        match shared.store().run(cached.no) {
            Ok(Some(row)) => close_other(shared, &closed_run(&row)),
            Ok(None) => forget(shared, cached.no),
            Err(error) => tracing::error!(run = %cached.no, %error, "a closed run cannot be read"),
        }
        let taken = cached.lock().take_uncommitted();
        forget_late(shared, cached.no, &taken);
        // The run may have been admitted after the thread that closed it ended its probation.
        ended(shared, Ended::Play(&cached));
    });
}

/// Commits that messages without a turn are over: rejected updates, and results that came too late.
pub(crate) fn settle_messages(
    shared: &Arc<Shared>,
    cached: Arc<CachedRun>,
    playable: Box<Playable>,
    messages: Vec<Message>,
    rejected: Vec<Rejected>,
) {
    // Turns that are deferred are not in the store yet.
    let turn = playable.next_commit();
    let write = Write::Settle {
        run: cached.no,
        epoch: playable.info.epoch,
        turn,
        messages: settle(&messages, &rejected),
        tasks: late_tasks(&messages),
    };
    submit(shared, write, move |shared, result| {
        let Err(error) = result else {
            tell_rejected(shared, &playable.info.first_run_id, rejected);
            return rest(shared, &cached, Some(playable));
        };
        shared.drop_later(playable);
        if matches!(error, StoreError::Refused(Refused::NotOwner)) {
            cached.lock().note_taken(&messages);
            return moved_meanwhile(shared, &cached);
        }
        if matches!(error, StoreError::Refused(Refused::Fenced { .. })) && shared.nodes().is_some() {
            cached.lock().note_taken(&messages);
            return overtaken(shared, &cached);
        }
        if matches!(error, StoreError::Refused(_)) {
            return closed_meanwhile(shared, &cached);
        }
        // The messages of deferred turns are put back, too.
        let mut taken = cached.lock().take_uncommitted();
        taken.extend(messages);
        retry_later(shared, &cached, taken, &error);
    });
}

fn tell_rejected(shared: &Shared, chain: &Name, rejected: Vec<Rejected>) {
    for rejected in rejected {
        let answer = Err(Error::UpdateRejected(Box::new(rejected.failure)));
        shared.waiters.update_answered(chain, &rejected.update, &answer);
    }
}
