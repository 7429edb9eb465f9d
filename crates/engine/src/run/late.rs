//! Messages that came for a run after it closed.

use std::sync::Arc;

use dacapo_store::{RunNo, TimerKind, TimerRow, Write};

use crate::host::WorkKind;
use crate::run::message::Message;
use crate::shared::Shared;
use crate::timer::set_timers;
use crate::writes::submit;

/// Removes the rows of messages that came for a run after it closed: no turn takes them.
pub(crate) fn forget_late(shared: &Arc<Shared>, run: RunNo, late: &[Message]) {
    let tasks: Vec<_> = late
        .iter()
        .filter_map(|message| match message {
            Message::Result { task, .. } => Some(*task),
            _ => None,
        })
        .collect();
    let timers: Vec<_> = late
        .iter()
        .filter_map(|message| match message {
            Message::Timer { seq, due } => Some((*due, TimerKind::Sleep(*seq))),
            _ => None,
        })
        .collect();
    if tasks.is_empty() && timers.is_empty() {
        return;
    }
    let rows: Vec<TimerRow> = timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
    // A shutdown waits for it: the next process would run a detached activity again.
    shared.shutdown.begin_write();
    shared.later(WorkKind::Write, Some(run), move |shared| {
        submit(shared, Write::Forget { run, tasks, timers }, move |shared, result| {
            if result.is_ok() {
                set_timers(shared, &[], &rows);
            }
            shared.end_write();
        });
    });
}
