//! Effects: what a committed write leads to, as plain values, applied in one place. Nothing that a turn decided is
//! visible before its effects are applied, and no effect is applied before the commit. An effect is in memory only:
//! what must survive a crash is a row, which `lifecycle/recover.rs` reads.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Name, Outcome, Seq};
use dacapo_store::{ClosedRun, Notice, Recipient, RunNo, SentMessage, StartedRun, Status, TimerRow, TurnWritten};

use crate::activity::cancel::{cancel_task, give_up_tasks};
use crate::activity::dispatch::dispatch;
use crate::activity::local;
use crate::activity::task::Task;
use crate::lifecycle::shutdown;
use crate::read::outcome::outcome_of;
use crate::run::deliver::{deliver_sent, poke};
use crate::run::forget::forget;
use crate::run::waiters::UpdateStage;
use crate::shared::Shared;
use crate::timer::end::end_timer;
use crate::timer::set_timers;
use crate::turn::outcome::PlannedEffects;

/// One thing that a committed write leads to.
pub(crate) enum Effect {
    /// Timers were stored, and others ended.
    SetTimers { added: Vec<TimerRow>, ended: Vec<TimerRow> },
    /// An activity is pending.
    QueueTask(Box<Task>),
    /// An activity is pending in a task queue that no worker here serves, or that has more tasks than this node works at.
    OfferTask(Name),
    /// An activity is no longer wanted; `waits` says whether its outcome is.
    CancelTask { seq: Seq, waits: bool },
    /// Local work is no longer wanted; `waits` says whether its outcome is.
    CancelLocal { seq: Seq, waits: bool },
    /// An update was accepted.
    AcceptUpdate(Name),
    /// An update was answered or rejected.
    AnswerUpdate(Name, Result<UpdateStage, Error>),
    /// A message was stored for a run.
    Deliver(SentMessage),
    /// A run was started, and its start waits as a message.
    Started(StartedRun),
    /// Another run was closed.
    CloseOther(ClosedRun),
    /// The run itself is closed.
    Close(Status, Outcome),
}

/// The run that wrote, and its chain.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) run: RunNo,
    pub(crate) chain: &'a Name,
}

/// Applies effects, in order. New tasks run when they are dispatched.
pub(crate) fn apply(shared: &Arc<Shared>, source: Source<'_>, effects: Vec<Effect>) {
    let Source { run, chain } = source;
    for effect in effects {
        match effect {
            // A run that moves to another node takes its timers and tasks with it.
            Effect::SetTimers { .. } | Effect::QueueTask(_) if !shared.owns(run) => {}
            Effect::SetTimers { added, ended } => set_timers(shared, &added, &ended),
            Effect::QueueTask(task) => {
                let seq = task.command.seq;
                shared.tasks.add(run, *task);
                // The run may have been given away since: the thread that gave it did not find the task.
                if !shared.owns(run) {
                    drop(shared.tasks.remove(run, seq));
                }
            }
            Effect::OfferTask(queue) => match shared.nodes().filter(|nodes| nodes.is_served(&queue)) {
                Some(nodes) => nodes.notify(Recipient::Serving(queue), Notice::Tasks),
                None => shared.queue_log.report(&queue, &shared.options.served_queues()),
            },
            Effect::CancelTask { seq, waits } => cancel_task(shared, run, seq, waits),
            Effect::CancelLocal { seq, waits } => local::cancel(shared, run, seq, waits),
            Effect::AcceptUpdate(update) => shared.waiters.update_accepted(chain, &update),
            Effect::AnswerUpdate(update, answer) => shared.waiters.update_answered(chain, &update, &answer),
            Effect::Deliver(sent) => deliver_sent(shared, &sent),
            Effect::Started(started) => begin_started(shared, &started),
            Effect::CloseOther(closed) => close_other(shared, &closed),
            Effect::Close(status, outcome) => {
                // Activities that the workflow detached run on. Remove the run first, then answer its callers: see
                // `Engine::result_of`.
                forget(shared, run);
                shared.waiters.run_closed(run, chain, status, &outcome);
                shared.tell_watchers(run);
            }
        }
    }
}

/// Makes the effects that a turn's plan knows, in the order in which they are applied.
pub(crate) fn planned(planned: PlannedEffects) -> Vec<Effect> {
    let PlannedEffects { cancelled, cancelled_local, accepted, answered, rejected, .. } = planned;
    let completed = |(update, outcome): (Name, Outcome)| (update, Ok(UpdateStage::Completed(outcome.into())));
    let rejected =
        rejected.into_iter().map(|rejected| (rejected.update, Err(Error::UpdateRejected(Box::new(rejected.failure)))));
    cancelled
        .into_iter()
        .map(|(seq, waits)| Effect::CancelTask { seq, waits })
        .chain(cancelled_local.into_iter().map(|(seq, waits)| Effect::CancelLocal { seq, waits }))
        .chain(accepted.into_iter().map(Effect::AcceptUpdate))
        .chain(
            answered
                .into_iter()
                .map(completed)
                .chain(rejected)
                .map(|(update, answer)| Effect::AnswerUpdate(update, answer)),
        )
        .collect()
}

/// Applies the effects of a write that is not a turn.
pub(crate) fn apply_in_other_runs(shared: &Arc<Shared>, written: TurnWritten) {
    // None of these effects is of the run itself, so its chain does not matter.
    let (run, chain) = (written.run, Name::default());
    apply(shared, Source { run, chain: &chain }, in_other_runs(written).collect());
}

/// Makes the effects of a write in other runs.
pub(crate) fn in_other_runs(written: TurnWritten) -> impl Iterator<Item = Effect> {
    let TurnWritten { sent, started, closed, .. } = written;
    sent.into_iter()
        .map(Effect::Deliver)
        .chain(started.into_iter().filter(|started| started.fresh).map(Effect::Started))
        .chain(closed.into_iter().map(Effect::CloseOther))
}

/// Sets the timers of a run whose start waits as a message, and has it played.
pub(crate) fn begin_started(shared: &Arc<Shared>, started: &StartedRun) {
    let run = started.run;
    if !shared.owns(run) {
        return shared.notify_owner(run, Notice::Stored(run));
    }
    let rows: Vec<_> = started.timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
    set_timers(shared, &rows, &[]);
    shared.runs.with(run, |_, state| state.has_timers = true);
    poke(shared, run);
}

/// Ends all that was pending of a run that was closed from outside.
pub(crate) fn close_other(shared: &Arc<Shared>, closed: &ClosedRun) {
    let run = closed.run;
    for row in shared.timers.fired_of(run) {
        end_timer(shared, row);
    }
    // In this order: a thread that starts local work looks afterwards whether the run is gone.
    forget(shared, run);
    local::give_up_all(shared, run, "the run is closed");
    shared.waiters.run_closed(run, &closed.first_run_id, closed.status, &outcome_of(Some(&closed.result)));
    match shared.owns(run) {
        true => shared.tell_watchers(run),
        false => shared.notify_owner(run, Notice::Stored(run)),
    }
    give_up_tasks(shared, run, |_| true);
    dispatch(shared);
    shutdown::check(shared);
}
