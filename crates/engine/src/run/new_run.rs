//! Runs that are about to be stored.

use dacapo_core::{Job, Name, Pins, Start, Timestamp};
use dacapo_store::{IdConflict, NewRun, TimerKind};

use crate::encode::encode;

/// Makes a run to be started with this job, now or when its time has come.
pub(crate) fn new_run(start: Start, pins: &Pins, now: Timestamp) -> NewRun {
    let delay = (start.started > now).then_some((start.started, TimerKind::Start));
    let timers = run_timers(&start).chain(delay).collect();
    let attributes = start.search_attributes.clone().into_iter().collect();
    NewRun {
        run_id: start.run_id.clone(),
        workflow_id: start.workflow_id.clone(),
        workflow: start.workflow.clone(),
        queue: start.queue.clone(),
        started: start.started,
        pins: encode(pins),
        parent: None,
        first_run_id: Name::default(),
        reuse: Default::default(),
        conflict: IdConflict::Fail,
        request: None,
        timers,
        memo: encode(&start.memo),
        attributes,
        start: encode(Job::Start(Box::new(start))),
    }
}

/// The timers that begin with a run.
pub(crate) fn run_timers(start: &Start) -> impl Iterator<Item = (Timestamp, TimerKind)> {
    let terms = start.terms.as_deref();
    let run = terms.and_then(|terms| terms.run_timeout).map(|t| (start.started.after(t), TimerKind::RunTimeout));
    let all = terms.and_then(|terms| terms.expires).map(|due| (due, TimerKind::ExecutionTimeout));
    run.into_iter().chain(all)
}

/// Derives a run's seed from its run id, so that no other choice has to be kept.
pub(crate) fn seed_of(run_id: &str) -> u64 {
    // FNV-1a: spread over the id's bytes; the core mixes it further.
    run_id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The number under which the first turn of a run is noted while it is played and no store knows of the run yet.
pub(crate) fn start_no(workflow_id: &str) -> u64 {
    seed_of(workflow_id)
}
