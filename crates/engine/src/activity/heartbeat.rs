//! Progress that attempts report.

use std::sync::Arc;

use dacapo_core::{Name, Payload, Seq};
use dacapo_store::{AttemptWrite, RunNo, StoreError, Write};

use crate::activity::task::UNWANTED;
use crate::activity::task_queue::Report;
use crate::lifecycle::shutdown::write_before_shutdown;
use crate::shared::Shared;
use crate::timer::wheel::Due;

/// Notes the progress that an attempt reports, and stores it now or after a pause.
pub(crate) fn heartbeat(shared: &Arc<Shared>, (run, seq, attempt): (RunNo, Seq, u32), details: Payload) {
    let pauses = |queue: &Name| {
        let values = shared.workers.of(queue).values();
        (values.default_heartbeat_throttle_interval, values.max_heartbeat_throttle_interval)
    };
    match shared.tasks.report((run, seq, attempt), details, shared.clock(), pauses) {
        Some(Report::Store(write)) => store_report(shared, (run, seq, attempt), write),
        Some(Report::StoreLater(pause)) => {
            let alarm = shared.arm_in(pause, Due::Report { run, seq, attempt });
            shared.tasks.add_alarm((run, seq, attempt), alarm);
        }
        Some(Report::Kept) | None => {}
    }
}

/// Stores the latest report of an attempt, after the pause since the last report that was stored.
pub(crate) fn report_due(shared: &Arc<Shared>, attempt: (RunNo, Seq, u32)) {
    if let Some(write) = shared.tasks.report_due(attempt, shared.clock()) {
        store_report(shared, attempt, write);
    }
}

fn store_report(shared: &Arc<Shared>, (run, seq, attempt): (RunNo, Seq, u32), write: AttemptWrite) {
    let now = write.ready;
    let write = move |shared: &Arc<Shared>| {
        // Read the task again: by now the attempt may be left to the holder of its token, or another attempt may be next.
        let task = shared.tasks.get(run, seq);
        let write = match &task {
            Some(task) if task.attempt == attempt => task.write(now),
            Some(_) => return None,
            None => write,
        };
        Some(Write::Attempt(Box::new(write)))
    };
    write_before_shutdown(shared, write, move |shared, result| {
        // The activity is over, or its run is: the node that plays the run has ended it.
        if let Err(StoreError::Refused(_)) = result
            && let Some(handle) = shared.tasks.get(run, seq).and_then(|task| task.handle())
        {
            handle.cancel(UNWANTED);
        }
    });
}
