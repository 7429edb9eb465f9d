//! Taking over tasks that the store holds: of an earlier process, or of a run that was reset.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{CommandKind, TimeoutKind, Timestamp, from_stored};
use dacapo_store::{RunNo, Store, StoreError, Stuck, StuckCause, TaskRow};

use crate::activity::blocked;
use crate::activity::task::{Attempting, Task, TaskState, over};
use crate::read::records::LastRecord;
use crate::run::info::RunInfo;
use crate::shared::Shared;
use crate::timer::wheel::Due;

/// Takes over a task of the store.
pub(crate) fn adopt(shared: &Arc<Shared>, row: &TaskRow, origins: &mut Origins) -> Result<(), StoreError> {
    let Some(task) = read_task(shared, row, origins)? else { return Ok(()) };
    let (run, seq, attempt) = (row.run, row.seq, task.attempt);
    let now = shared.now();
    match task.state {
        TaskState::Waiting { until } => {
            shared.arm_in(until.since(now), Due::Task { run, seq, attempt });
            let is_delayed = shared.options.crash_limits.delay(task.crash_count).is_some();
            shared.tasks.add(run, task.clone());
            if is_delayed {
                blocked::report_crashes(shared, run, &task, Some(until), true);
            }
        }
        TaskState::External(ref attempting) => {
            let mut attempting = attempting.clone();
            arm_external_attempt(shared, &task, &mut attempting, (run, now));
            shared.tasks.add(run, Task { state: TaskState::External(attempting), ..task });
        }
        TaskState::Quarantined => {
            shared.tasks.add(run, task.clone());
            if let Some(row) = shared.store().run(run)? {
                // A run that is stuck for another reason keeps that one.
                let of_crashes = |stuck: &Stuck| matches!(stuck.cause, StuckCause::Delayed | StuckCause::Quarantined);
                let marks = row.stuck.as_ref().is_none_or(of_crashes);
                blocked::report_crashes(shared, run, &task, None, marks);
            }
        }
        TaskState::Ready | TaskState::Running(_) | TaskState::Unserved => shared.tasks.add(run, task),
    }
    Ok(())
}

/// Arms the timeouts of an external attempt. The attempt began in an earlier process. Its heartbeat timeout counts from
/// now, because the engine could not receive heartbeats in between.
fn arm_external_attempt(shared: &Shared, task: &Task, attempting: &mut Attempting, (run, now): (RunNo, Timestamp)) {
    let (seq, attempt, timeouts) = (task.command.seq, task.attempt, &task.command.timeouts);
    let ran = now.since(attempting.started);
    let left = timeouts.start_to_close.map(|limit| limit.saturating_sub(ran));
    attempting.deadline = left.map(|left| attempting.heard.after(left));
    let alarm = |(limit, kind): (Option<Duration>, TimeoutKind)| {
        Some(shared.arm_in(limit?, Due::Attempt { run, seq, attempt, kind }))
    };
    let limits = [(left, TimeoutKind::StartToClose), (timeouts.heartbeat, TimeoutKind::Heartbeat)];
    attempting.alarms = limits.into_iter().filter_map(alarm).collect();
}

/// Builds the task of a stored row from the turn that scheduled it. None if its run or its command cannot be read.
pub(crate) fn read_task(shared: &Shared, row: &TaskRow, origins: &mut Origins) -> Result<Option<Task>, StoreError> {
    let Some(info) = origins.info(shared.store(), row.run)? else { return Ok(None) };
    let record = origins.record.get(shared.store(), row.run, row.turn)?;
    let command = record.and_then(|record| record.commands.get(row.position as usize));
    let Some((CommandKind::Activity(command), record)) = command.map(|command| &command.kind).zip(record) else {
        tracing::error!(run = %row.run, task = ?row.no, "the command of a task cannot be read");
        return Ok(None);
    };
    let (now, steady) = shared.clock();
    let limits = &shared.options.crash_limits;
    let ready = row.ready.max(limits.delayed_until(row.crash_count, now).unwrap_or_default());
    let state = match row.external {
        Some(began) => TaskState::External(Attempting { last_heartbeat: now, ..Attempting::new(began, steady) }),
        None if limits.quarantines(row.crash_count) => TaskState::Quarantined,
        None if ready > now => TaskState::Waiting { until: ready },
        None => TaskState::Ready,
    };
    Ok(Some(Task {
        no: row.no,
        info,
        command: command.clone(),
        has_input: true,
        origin: (row.turn, row.position),
        scheduled: record.now,
        over: over(command, record.now, (now, steady)),
        priority: row.priority,
        attempt: row.attempt,
        failure: row.failure.as_deref().and_then(|bytes| from_stored(bytes).ok()),
        details: row.details.as_deref().and_then(|bytes| from_stored(bytes).ok()),
        state,
        cancelled: None,
        crash_count: row.crash_count,
    }))
}

/// The run and the record that were read last: tasks of one run are mostly read one after the other.
#[derive(Default)]
pub(crate) struct Origins {
    info: Option<(RunNo, Arc<RunInfo>)>,
    record: LastRecord,
}

impl Origins {
    fn info(&mut self, store: &dyn Store, run: RunNo) -> Result<Option<Arc<RunInfo>>, StoreError> {
        if let Some((_, info)) = self.info.as_ref().filter(|(of, _)| *of == run) {
            return Ok(Some(info.clone()));
        }
        let info = store.run(run)?.and_then(|row| RunInfo::of(&row).ok()).map(Arc::new);
        self.info = info.clone().map(|info| (run, info));
        Ok(info)
    }
}
