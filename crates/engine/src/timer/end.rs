//! The end of stored timers that no turn takes.

use std::sync::Arc;

use dacapo_store::{TimerRow, Write};

use crate::host::WorkKind;
use crate::shared::Shared;
use crate::timer::set_timers;
use crate::writes::submit;

/// Removes a timer that fired and that no turn takes. It stays with an open run until that closes.
pub(crate) fn end_timer(shared: &Arc<Shared>, row: TimerRow) {
    let write = Write::Forget { run: row.run, tasks: Vec::new(), timers: vec![(row.due, row.kind)] };
    shared.later(WorkKind::Write, Some(row.run), move |shared| {
        submit(shared, write, move |shared, result| {
            if result.is_ok() {
                set_timers(shared, &[], &[row]);
            }
        });
    });
}
