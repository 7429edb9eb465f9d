//! Making a turn: it is played, recorded, validated and planned. The same for the first turn of a run and for every other.

use std::sync::Arc;

use dacapo_core::{Activation, Completion, Payload, Rejected, Run, Turn, TurnRecord};
use dacapo_store::{Doing, RunNo, StuckCause};
use dacapo_worker::{HandOver, Play, RunToPlay};

use crate::crash_guard::hooks::{Note, note};
use crate::nodes::claim::offers;
use crate::report::log;
use crate::report::stuck_reason::StuckReason;
use crate::run::info::RunInfo;
use crate::run::message::Message;
use crate::run::open_operations::OpenOperations;
use crate::shared::Shared;
use crate::turn::choices;
use crate::turn::plan::{Plan, Planner};
use crate::turn::validate::{failure_within_limit, validate};

/// Begins to play a run on this thread: under the deadlock watch, and noted as code that may kill the process.
pub(crate) fn begin_play<'a>(
    shared: &Arc<Shared>,
    info: &'a RunInfo,
    run: &'a mut Run,
    code: Option<Doing>,
    hand_over: HandOver,
) -> Play<'a, Option<Note>> {
    let note = code.and_then(|code| note(shared, code));
    let worker = shared.workers.of(&info.name.queue);
    worker.play(shared.turn_host(), RunToPlay { name: &info.name, run, note, hand_over })
}

/// The data that a turn is made from, beside its jobs.
pub(crate) struct Making<'a> {
    pub(crate) no: RunNo,
    pub(crate) info: &'a RunInfo,
    /// The open operations: as they were before the turn, and then as they are after it.
    pub(crate) open: &'a mut OpenOperations,
    /// The messages that the turn takes.
    pub(crate) messages: &'a [Message],
    /// The snapshot to store if the turn publishes none.
    pub(crate) unstored_snapshot: &'a mut Option<Box<Payload>>,
}

/// The result of making a turn.
pub(crate) enum Made {
    /// It is ready to be committed. Its record shows what it asked for.
    Planned(Box<Plan>, TurnRecord),
    /// It left nothing to record: it only rejected updates, or took results that came too late.
    Void(Vec<Rejected>),
    /// It cannot be committed: the reason, and what to do.
    Stuck(StuckReason),
    /// The run was taken from this thread, because the turn did not return in time.
    TakenOver,
}

/// Plays a turn and plans what follows from it.
pub(crate) fn make(shared: &Shared, mut play: Play<'_, Option<Note>>, making: Making<'_>, turn: Turn) -> Made {
    let played = play.activate(Activation::Turn(turn.clone()));
    drop(play);
    let mut done = match played {
        Some(Completion::Turn(done)) => done,
        Some(Completion::Failed(error)) => return Made::Stuck(StuckReason::from(&*error)),
        Some(other) => unreachable!("a turn was answered with {other:?}"),
        None => return Made::TakenOver,
    };
    let Making { no, info, open, messages, unstored_snapshot } = making;
    choices::trace(&info.name, &done);
    for warning in &done.warnings {
        log::warn_of_run(&info.name, warning);
    }
    let limit = shared.options.payload_limit;
    // The sender of a rejected update gets the failure; nothing else is stored of it.
    let within_limit =
        |rejected: Rejected| Rejected { failure: failure_within_limit(rejected.failure, limit), ..rejected };
    done.rejected = std::mem::take(&mut done.rejected).into_iter().map(within_limit).collect();
    let Some(record) = TurnRecord::of(&turn, &done, &shared.options.build) else {
        return Made::Void(done.rejected);
    };
    if let Some(reason) = validate(&record, done.published.as_ref(), limit, shared.options.redact) {
        return Made::Stuck(reason);
    }
    // One of an earlier turn was within the limit of its time.
    let unstored = unstored_snapshot.take().map(|snapshot| *snapshot);
    done.published = done.published.or(unstored);
    let bytes = record.to_bytes();
    let length = bytes.len();
    let planner = Planner {
        record: &record,
        run: no,
        info,
        capabilities: &shared.options.capabilities,
        open,
        messages,
        task_of: &|seq| shared.tasks.number(no, seq),
        offers: &|queue, made| offers(shared, queue, made),
        run_id: &|| shared.host.run_id(),
        pins: &|workflow| shared.pins_of(workflow),
    };
    match planner.plan(bytes, &done) {
        Err(text) => Made::Stuck(StuckReason::of_text(StuckCause::Unsupported, text)),
        Ok(mut plan) => {
            let before = open.without_row_since;
            open.enter(&record, length);
            plan.mark_without_row(before, open.without_row_since);
            plan.share_activities(&record, open);
            Made::Planned(Box::new(plan), record)
        }
    }
}
