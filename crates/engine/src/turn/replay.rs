//! Replay: a run is played again from its recorded turns, with the code at hand.

use std::ops::ControlFlow;
use std::sync::Arc;

use dacapo_core::{Activation, Completion, Payload, Reporter, Run, TurnRecord};
use dacapo_store::{Records, RunRow, Store, StoreError, StuckCause};
use dacapo_worker::{Play, RunName};

use crate::options::Options;
use crate::read::records::{Unreadable, each_record, each_record_after};
use crate::report::stuck_reason::StuckReason;
use crate::run::info::RunInfo;
use crate::run::open_operations::OpenOperations;

/// The result of a replay.
pub(crate) enum Replayed {
    /// All recorded turns were played. With the snapshot that they published last.
    Ready(Option<Payload>),
    /// It cannot be played: the reason, and what to do.
    Stuck(StuckReason),
    /// The run was taken from this thread, because a turn did not return in time.
    TakenOver,
}

/// Creates a run of the workflow that a row names, before its first turn. `reporter` makes the reporter of its
/// violations. The error says why there is none, and what to do.
pub(crate) fn new_instance(
    options: &Options,
    row: &RunRow,
    reporter: impl FnOnce(&Arc<RunName>) -> Option<Reporter>,
) -> Result<(Arc<RunInfo>, Run), StuckReason> {
    let Some(workflow) = options.registry.find_workflow(&row.workflow) else {
        let text = format!(
            "no workflow {:?} is registered here; registered are: {}. Serve it in this program, or terminate the run",
            row.workflow,
            options.known_workflows()
        );
        return Err(StuckReason::new(StuckCause::MissingWorkflow, row.workflow.as_str(), text));
    };
    let info = RunInfo::of(row).map_err(|text| StuckReason::of_text(StuckCause::StoreDamaged, text))?;
    let run = Run::new(workflow.clone(), options.for_run(&info.pins, reporter(&info.name)))
        .map_err(|error| StuckReason::from(&error))?;
    Ok((Arc::new(info), run))
}

/// Plays all recorded turns of a run again. `first` are the records that have been read.
pub(crate) fn replay<N>(
    store: &dyn Store,
    row: &RunRow,
    first: Option<Records>,
    play: &mut Play<'_, N>,
    open: &mut OpenOperations,
) -> Result<Replayed, StoreError> {
    let mut published = None;
    let show = |record: TurnRecord, bytes| {
        open.enter(&record, bytes);
        ControlFlow::Break(match play.activate(Activation::Turn(record.into_turn())) {
            Some(Completion::Turn(done)) => {
                published = done.published.or(published.take());
                return ControlFlow::Continue(());
            }
            None => Replayed::TakenOver,
            Some(Completion::Failed(error)) => Replayed::Stuck(StuckReason::from(&*error)),
            Some(other) => unreachable!("a turn was answered with {other:?}"),
        })
    };
    let read = match first {
        Some(first) => each_record_after(store, row.no, first, show),
        None => each_record(store, row.no, show),
    };
    match read {
        Ok(None) if open.next_turn < row.turns => Ok(Replayed::Stuck(too_few(store, row, open.next_turn)?)),
        Ok(None) => Ok(Replayed::Ready(published)),
        Ok(Some(stopped)) => Ok(stopped),
        Err(Unreadable::Record(text)) => Ok(Replayed::Stuck(StuckReason::of_text(StuckCause::StoreDamaged, text))),
        Err(Unreadable::OtherBuild(text)) => Ok(Replayed::Stuck(StuckReason::of_text(StuckCause::OtherBuild, text))),
        Err(Unreadable::Store(error)) => Err(error),
    }
}

/// Explains why a run has fewer turns than its row says.
fn too_few(store: &dyn Store, row: &RunRow, found: u64) -> Result<StuckReason, StoreError> {
    let text = match store.run(row.no)? {
        None => "it was deleted".to_owned(),
        Some(_) => format!(
            "it has {} turns, and only {found} of them are there: the store is damaged. Restore it from a backup",
            row.turns
        ),
    };
    Ok(StuckReason::of_text(StuckCause::StoreDamaged, text))
}
