//! Wakes from outside a run: reported the moment they happen, because the turn that they fail may be far off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_core::{Reporter, Violation, ViolationKind};
use dacapo_store::{Stuck, Write};
use dacapo_worker::RunName;

use crate::lifecycle::shutdown::write_before_shutdown;
use crate::shared::Shared;

/// Reports the first wake from outside of a run in memory: it is logged, and the run says so. The run goes on when it is
/// played again, from the beginning, at its next message.
pub(crate) fn reporter(shared: &Arc<Shared>, run: &Arc<RunName>) -> Reporter {
    let (shared, run, is_reported) = (Arc::downgrade(shared), run.clone(), AtomicBool::new(false));
    Arc::new(move |violation: &Violation| {
        if violation.kind == ViolationKind::ForeignWake && !is_reported.swap(true, Ordering::Relaxed) {
            // On whatever thread woke it, and perhaps in a destructor: only enqueued.
            if let Some(shared) = shared.upgrade() {
                report(&shared, &run, violation.to_string());
            }
        }
    })
}

fn report(shared: &Arc<Shared>, run: &Arc<RunName>, reason: String) {
    shared.stuck_log.report(run, "", &reason, shared.now());
    let name = run.clone();
    let write = move |shared: &Arc<Shared>| {
        let row = shared.store().find(&name.workflow_id, Some(&name.run_id)).ok().flatten();
        // What it says already is older, and still true.
        let row = row.filter(|row| row.status.is_open() && row.stuck.is_none())?;
        let now = shared.now();
        let stuck = Stuck { reason, since: now, attempts: 1, retry: now };
        Some(Write::SetStuck { run: row.no, epoch: row.epoch, stuck: Some(stuck) })
    };
    write_before_shutdown(shared, write, |_, _| {});
}
