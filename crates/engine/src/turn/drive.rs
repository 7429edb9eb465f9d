//! Driving a run: its messages become one turn, and the turn becomes one write.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{Command, CommandKind, Job, Operation, Resolution, Seq, Turn, TurnRecord};
use dacapo_store::{Doing, RunNo};

use crate::activity::blocked::{report_unserved_queue, unserved_queue};
use crate::activity::local;
use crate::nodes::hand_over::drop_run;
use crate::run::cached_run::{CachedRun, PlayState, Playable};
use crate::run::deliver::store_results;
use crate::run::forget::forget;
use crate::run::message::Message;
use crate::run::open_operations::{Open, OpenOperations};
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::turn::answer::{answer_closed, answer_due, answer_stuck};
use crate::turn::commit::{commit, overtaken, settle_messages};
use crate::turn::load::{Loaded, hand_over, load, read_messages_again};
use crate::turn::make::{Made, Making, begin_play, make};
use crate::turn::plan::Plan;
use crate::turn::reset::reset;
use crate::turn::rest::{rest, retire};
use crate::turn::stuck::{
    retry_later, set_delayed, set_quarantined, set_stuck, unstick, wait_for_probation, wait_for_stuck_play,
};

/// How long a turn of nothing but local work may wait for its result before it is committed.
const MAX_DEFERRAL: Duration = Duration::from_millis(100);

/// Plays one turn of a run, on a thread without an async runtime. One thread plays a run at a time.
pub(crate) fn play_run(shared: &Arc<Shared>, cached: Arc<CachedRun>) {
    if shared.halted.is_halted() {
        return;
    }
    let mut state = cached.lock();
    if state.is_gone {
        return;
    }
    state.play_state = PlayState::Busy;
    if !state.defers_turns()
        && let Some(request) = state.resets.pop_front()
    {
        let playable = state.playable.take();
        drop(state);
        drop(playable);
        return reset(shared, cached, request);
    }
    if state.stuck_play.is_running() {
        drop(state);
        return wait_for_stuck_play(shared, &cached);
    }
    if state.stuck_until > shared.now() {
        drop(state);
        return answer_stuck(shared, &cached);
    }
    let (play, is_asked) = (state.play, state.is_asked());
    let playable = state.playable.take();
    let (retries, flush) = (std::mem::take(&mut state.retries), std::mem::take(&mut state.flush));
    let rereads = state.rereads();
    drop(state);
    match playable {
        Some(playable) if !playable.deferred.is_empty() && (flush || !retries.is_empty() || is_asked || rereads) => {
            // Deferred turns go first: no caller is answered from a turn that is not committed.
            cached.lock().retries.extend(retries);
            commit(shared, cached, playable);
        }
        Some(mut playable) if retries.iter().all(|(seq, _)| !is_closure(&playable.open, *seq)) => {
            shared.workers.of(&playable.info.name.queue).meters().cache_hits.increment(1);
            if rereads && let Err(error) = read_messages_again(shared, &cached) {
                shared.drop_later(playable);
                return retry_later(shared, &cached, Vec::new(), &error);
            }
            local::retry(shared, &cached, &mut playable, retries);
            play_turn(shared, cached, playable);
        }
        // A closure is spent after one attempt: only a run that was played from the beginning has it again.
        other => {
            drop(other);
            // Kept until the run is loaded: it may have to wait.
            cached.lock().retries.extend(retries);
            play_loaded(shared, cached, play);
        }
    }
}

fn play_loaded(shared: &Arc<Shared>, cached: Arc<CachedRun>, play: u64) {
    match load(shared, &cached, play) {
        Ok(Loaded::Ready(mut playable)) => {
            if let Some(queue) = unserved_queue(shared, &playable.open) {
                shared.queue_log.report(&queue, &shared.options.served_queues());
            }
            let retries = std::mem::take(&mut cached.lock().retries);
            local::retry(shared, &cached, &mut playable, retries);
            local::resume(shared, &cached, &mut playable);
            play_turn(shared, cached, playable);
        }
        Ok(Loaded::Closed(row)) => answer_closed(shared, &cached, play, &row),
        Ok(Loaded::TakenOver) => {}
        Ok(Loaded::Moved) => drop_run(shared, &cached),
        Ok(Loaded::NotYet(begins)) => {
            // A delayed start has a timer in the store; one that waits for the clock has none.
            shared.arm_in(begins.since(shared.now()), Due::Begin(cached.no));
            turn_away(shared, &cached);
        }
        Ok(Loaded::Elsewhere(row)) => {
            if row.stuck.is_none() {
                report_unserved_queue(shared, cached.no, row.epoch, &row.queue);
            }
            turn_away(shared, &cached);
        }
        Ok(Loaded::Missing) => {
            let requests = cached.lock().take_requests();
            let error = Error::Stuck("it was deleted".to_owned());
            requests.into_iter().for_each(|request| request.refuse(error.clone()));
            forget(shared, cached.no);
        }
        Ok(Loaded::Stuck(reason)) => set_stuck(shared, &cached, reason),
        Ok(Loaded::Quarantined(row)) => set_quarantined(shared, &cached, &row),
        Ok(Loaded::Delayed(row, until)) => set_delayed(shared, &cached, &row, until),
        Ok(Loaded::Waits) => wait_for_probation(shared, &cached),
        Err(error) => retry_later(shared, &cached, Vec::new(), &error),
    }
}

/// Removes a run from memory that is not to be played now: stored messages and timers stay in the store, results are
/// stored.
fn turn_away(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    // Until the results are stored, they are in no inbox and in no row: a shutdown must not end before.
    shared.shutdown.begin_write();
    let mut state = cached.lock();
    let (messages, requests) = (state.take_inbox(), state.take_requests());
    state.retries.clear();
    drop(state);
    let error = Error::Stuck("it has not begun, or its task queue is not served here".to_owned());
    requests.into_iter().for_each(|request| request.refuse(error.clone()));
    // In this order: a result that cannot be stored now waits in the inbox for a while.
    retire(shared, cached);
    store_results(shared, cached.no, messages);
    shared.end_write();
}

fn play_turn(shared: &Arc<Shared>, cached: Arc<CachedRun>, mut playable: Box<Playable>) {
    answer_due(shared, &cached, &mut playable);
    let mut state = cached.lock();
    if state.play != playable.play {
        return;
    }
    let mut messages = state.take(shared.options.completions_per_turn);
    let is_stuck = state.failed_plays > 0;
    drop(state);
    // Where several nodes share the store, a result or a timer may come from two of them: the first is the one.
    let mut resolved = BTreeSet::new();
    let mut is_first = |message: &Message| resolved_by(message).is_none_or(|operation| resolved.insert(operation));
    let is_late = |message: &mut Message| !is_expected(&playable.open, message) || !is_first(message);
    let late: Vec<Message> = messages.extract_if(.., is_late).collect();
    messages.sort_by_key(Message::rank);
    if messages.is_empty() {
        return match (late.is_empty(), is_stuck) {
            (true, false) => rest(shared, &cached, Some(playable)),
            (true, true) => unstick(shared, cached, playable),
            (false, _) => settle_messages(shared, cached, playable, late, Vec::new()),
        };
    }
    let jobs: Vec<Job> = messages.iter().map(Message::job).collect();
    let turn = Turn { now: shared.now(), jobs, history: playable.open.history, replaying: false, recorded: None };
    messages.extend(late);
    cached.lock().note_taken(&messages);
    let committed = playable.next_commit();
    let Playable { info, run, open, play, unstored_snapshot, .. } = &mut *playable;
    let hand_over = hand_over(shared, &cached, *play);
    let play = begin_play(shared, info, run, Some(Doing::Turn { run: cached.no, turn: open.next_turn }), hand_over);
    let making = Making { no: cached.no, info, open, messages: &messages, unstored_snapshot };
    match make(shared, play, making, turn) {
        Made::Planned(plan, record) => conclude(shared, cached, playable, *plan, &record),
        Made::Void(rejected) => {
            cached.lock().forget_taken(messages.len());
            settle_messages(shared, cached, playable, messages, rejected);
        }
        Made::Stuck(reason) => {
            // The turn cannot be committed: the run stays as it was recorded, and is stuck with this reason.
            drop(playable);
            cached.lock().put_back_all();
            if has_gone_on(shared, cached.no, committed) {
                return overtaken(shared, &cached);
            }
            set_stuck(shared, &cached, reason);
        }
        Made::TakenOver => {}
    }
}

/// Whether the run has more turns by now than this copy of it has committed: where several nodes share the store, an earlier copy may
/// have had one on its way. Then it says nothing about the run that the copy fails.
fn has_gone_on(shared: &Shared, run: RunNo, committed: u64) -> bool {
    let turns = || shared.store().run(run).ok().flatten().map(|row| row.turns);
    shared.nodes().is_some() && turns().is_some_and(|turns| turns > committed)
}

/// Commits a turn, or defers it if it asks for nothing but local work.
fn conclude(
    shared: &Arc<Shared>,
    cached: Arc<CachedRun>,
    mut playable: Box<Playable>,
    plan: Plan,
    record: &TurnRecord,
) {
    // A process that shuts down commits what it has received, and does not defer the turn for work that it no longer
    // begins.
    let is_deferred = !shared.shutdown.has_begun()
        && record.number > 0
        && plan.effects.rejected.is_empty()
        && !record.commands.is_empty()
        && record.commands.iter().all(is_local);
    let is_first = playable.deferred.is_empty();
    playable.deferred.push(plan);
    if !is_deferred {
        return commit(shared, cached, playable);
    }
    if is_first {
        shared.arm_in(MAX_DEFERRAL, Due::Flush(cached.no));
    }
    local::start_all(shared, &cached, &mut playable);
    let cancelled = playable.deferred.last_mut().map(|plan| std::mem::take(&mut plan.effects.cancelled_local));
    for (seq, waits) in cancelled.unwrap_or_default() {
        local::cancel(shared, cached.no, seq, waits);
    }
    rest(shared, &cached, Some(playable));
}

/// Whether a run still waits for a message. A message that it no longer waits for is no error: it came too late.
fn is_expected(open: &OpenOperations, message: &Message) -> bool {
    match message {
        Message::Stored { job: Job::Resolve { seq, resolution, .. }, .. } | Message::Local { seq, resolution, .. } => {
            open.expects(*seq, resolution)
        }
        Message::Stored { job: Job::Start(_), .. } => open.next_turn == 0,
        Message::Stored { .. } => true,
        Message::Result { seq, .. } => matches!(open.operations.get(seq), Some(Open::Activity { .. })),
        Message::Timer { seq, .. } => matches!(open.operations.get(seq), Some(Open::Timer { .. })),
    }
}

/// The operation that a message resolves, and whether it is only the start of a child.
fn resolved_by(message: &Message) -> Option<(Seq, bool)> {
    match message {
        Message::Stored { job: Job::Resolve { seq, resolution, .. }, .. } | Message::Local { seq, resolution, .. } => {
            Some((*seq, matches!(resolution, Resolution::ChildStarted(_))))
        }
        Message::Result { seq, .. } | Message::Timer { seq, .. } => Some((*seq, false)),
        Message::Stored { .. } => None,
    }
}

fn is_local(command: &Command) -> bool {
    match &command.kind {
        CommandKind::LocalActivity(_) | CommandKind::SideEffect(_) => true,
        CommandKind::Cancel(cancel) => matches!(cancel.operation, Operation::LocalActivity | Operation::SideEffect),
        _ => false,
    }
}

fn is_closure(open: &OpenOperations, seq: Seq) -> bool {
    matches!(open.operations.get(&seq), Some(Open::SideEffect { .. }))
}
