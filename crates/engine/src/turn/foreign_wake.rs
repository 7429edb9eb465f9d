//! Wakes from outside a run: reported the moment they happen, because the turn that they fail may be far off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_core::{ActivationError, Reporter, Violation, ViolationKind};
use dacapo_store::Write;
use dacapo_worker::RunName;

use crate::lifecycle::shutdown::write_before_shutdown;
use crate::report::stuck_reason::StuckReason;
use crate::shared::Shared;

/// Makes the reporter of a run in memory: it logs the first wake from outside, and marks the run as stuck. The run goes
/// on when it is played again, from the beginning, at its next message.
pub(crate) fn reporter(shared: &Arc<Shared>, run: &Arc<RunName>) -> Reporter {
    let (shared, run, is_reported) = (Arc::downgrade(shared), run.clone(), AtomicBool::new(false));
    Arc::new(move |violation: &Violation| {
        if violation.kind == ViolationKind::ForeignWake && !is_reported.swap(true, Ordering::Relaxed) {
            // This is the thread that woke the run, perhaps in a destructor: the write is only enqueued.
            if let Some(shared) = shared.upgrade() {
                report(&shared, &run, StuckReason::from(&ActivationError::Violation(violation.clone())));
            }
        }
    })
}

fn report(shared: &Arc<Shared>, run: &Arc<RunName>, reason: StuckReason) {
    shared.stuck_log.report(run, "", &reason, shared.now());
    let name = run.clone();
    let write = move |shared: &Arc<Shared>| {
        let row = shared.store().find(&name.workflow_id, Some(&name.run_id)).ok().flatten();
        // A reason that the run is stuck with already is older, and still true.
        let row = row.filter(|row| row.status.is_open() && row.stuck.is_none())?;
        let now = shared.now();
        Some(Write::SetStuck { run: row.no, epoch: row.epoch, stuck: Some(reason.into_stuck(now, 1, now)) })
    };
    write_before_shutdown(shared, write, |_, _| {});
}
