//! Calls for operators: terminate, reset, release, delete, import, shut down.

use dacapo_client::Error;
use dacapo_core::{DurationText, Failure, FailureKind, Name};
use dacapo_store::{CrashCount, ImportWrite, Status, Write, Written};
use dacapo_worker::Health;
use tokio::sync::oneshot;

use crate::activity::blocked::mark_blocked;
use crate::activity::dispatch::dispatch;
use crate::api::{named, open_row, row, write, write_then, written};
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::lifecycle::retention::want_sweep;
use crate::lifecycle::shutdown;
use crate::lifecycle::shutdown_state::ShutdownReport;
use crate::read::RunId;
use crate::read::archive::check_import;
use crate::report::log;
use crate::run::deliver::with_run;
use crate::run::forget::forget;
use crate::run::message::ResetRequest;
use crate::run::started::StartedAs;
use crate::turn::stuck;

/// The number of attempts that a shutdown names when it logs what it waits for.
const SHOWN: usize = 5;

impl Engine {
    /// Ends a run at once, without asking its code.
    pub async fn terminate(&self, run: &RunId, reason: &str) -> Result<(), Error> {
        let (of, failure) = (run.clone(), Box::new(Failure::new(FailureKind::Terminated, reason)));
        let (workflow_id, answered) = self
            .blocking(WorkKind::Write, move |shared| {
                let row = open_row(shared, &of)?;
                let close = Write::Close { run: row.no, status: Status::Terminated, at: shared.now(), failure };
                Ok((row.workflow_id, write(shared, close)))
            })
            .await?;
        match written(answered).await {
            Ok(Written::Turn(_)) => Ok(()),
            Ok(other) => unreachable!("a close was answered with {other:?}"),
            Err(error) => Err(named(error, &workflow_id)),
        }
    }

    /// Begins a run again from an earlier turn: turns before it are kept, and the workflow plays on from there. An open
    /// run is terminated. The new run gets the signals that were sent since, and the results of operations that the
    /// kept turns began, so that nothing is done twice. Activities that the kept turns began and that have no result
    /// are tried again.
    pub async fn reset(&self, of: &RunId, turn: u64, reason: &str) -> Result<StartedAs, Error> {
        let (of, reason) = (of.clone(), reason.to_owned());
        let (answer, answered) = oneshot::channel();
        self.blocking(WorkKind::Read, move |shared| {
            let row = row(shared, &of)?;
            if turn == 0 || turn > row.turns {
                return Err(Error::InvalidArgument(format!(
                    "the run cannot be reset to turn {turn}: it has turns 0 to {}, so choose 1 to {}; turns before it are kept",
                    row.turns.saturating_sub(1),
                    row.turns
                )));
            }
            let request = ResetRequest { turn, reason, answer };
            with_run(shared, row.no, |state| state.resets.push_back(request));
            // The engine may have stopped between the check and the request: then no thread will play this run.
            if let (Some(error), Some(cached)) = (shared.halted.reason(), shared.runs.get(row.no)) {
                let resets = std::mem::take(&mut cached.lock().resets);
                resets.into_iter().for_each(|reset| drop(reset.answer.send(Err(error.clone()))));
            }
            Ok(())
        })
        .await?;
        answered.await.unwrap_or(Err(Error::ShutDown))
    }

    /// Releases a run that is quarantined or delayed because of its crash count: the run is played again, and its
    /// activities are tried again, as if they had never killed a process. Returns when the release is durable.
    pub async fn release(&self, of: &RunId) -> Result<(), Error> {
        let of = of.clone();
        let answered = self
            .blocking(WorkKind::Write, move |shared| {
                let row = row(shared, &of)?;
                let limits = &shared.options.crash_limits;
                let needs_release = limits.quarantines(row.crash_count) || limits.delay(row.crash_count).is_some();
                if !needs_release {
                    open_row(shared, &of)?;
                }
                let tasks = shared.tasks.tasks_to_release(row.no);
                if !needs_release && tasks.is_empty() {
                    let words = format!(
                        "nothing to release: no code of the run of workflow id {:?} is quarantined or delayed; `describe` says what it waits for",
                        row.workflow_id
                    );
                    return Err(Error::InvalidArgument(words));
                }
                // All counts are durable before any of the code begins.
                let crash_count = if needs_release { 0 } else { row.crash_count };
                let mut released: Vec<_> =
                    tasks.into_iter().map(|task| CrashCount::Task { task, crash_count: 0 }).collect();
                released.push(CrashCount::Run { run: row.no, crash_count, stuck: None });
                // Memory follows the store even if the caller no longer waits.
                Ok(write_then(shared, Write::CrashCounts(released), move |shared| {
                    shared.probation.release(row.no);
                    shared.tasks.release(row.no);
                    if needs_release && row.status.is_open() {
                        stuck::release(shared, row.no);
                    }
                    mark_blocked(shared, row.no);
                    dispatch(shared);
                }))
            })
            .await?;
        written(answered).await?;
        Ok(())
    }

    /// Deletes a closed run: callers cannot find it from now on, and the engine removes its rows soon. An open run is
    /// refused.
    pub async fn delete(&self, of: &RunId) -> Result<(), Error> {
        let of = of.clone();
        let answered = self
            .blocking(WorkKind::Write, move |shared| {
                let run = row(shared, &of)?.no;
                Ok(write_then(shared, Write::Delete { run }, move |shared| {
                    forget(shared, run);
                    want_sweep(shared);
                }))
            })
            .await?;
        written(answered).await?;
        Ok(())
    }

    /// Adds a closed run that another store kept. It can be listed, described and queried, and is never played on.
    pub async fn import(&self, import: ImportWrite) -> Result<(), Error> {
        check_import(&import)?;
        let import = Write::Import(Box::new(import));
        let answered = self.blocking(WorkKind::Write, move |shared| Ok(write(shared, import))).await?;
        written(answered).await?;
        Ok(())
    }

    /// Shuts down: begins no attempt any more, lets those that run end for as long as the grace period of their queue, asks
    /// the rest to stop and waits for that as long as the force timeout, and then stops. Turns go on meanwhile, so that
    /// results are recorded. A second call while it shuts down waits for the same end.
    pub fn shut_down(&self) -> impl Future<Output = ShutdownReport> + Send + use<> {
        let (tell, told) = oneshot::channel();
        shutdown::begin(&self.shared, Some(tell));
        // After the end there is nothing to wait for.
        async move { told.await.unwrap_or_default() }
    }

    /// Logs what a shutdown that begins now will wait for, if there is anything.
    pub fn log_what_ends(&self) {
        let shared = &self.shared;
        let mut handles = shared.tasks.handles();
        handles.extend(shared.local.handles());
        let running: Vec<String> = handles.iter().map(|handle| handle.ctx().info().activity.to_string()).collect();
        if running.is_empty() {
            return;
        }
        let values = shared.workers.all().map(|worker| worker.values());
        let grace = values.clone().map(|values| values.shutdown_grace_period).max().unwrap_or_default();
        let force = values.map(|values| values.shutdown_force_timeout).max().unwrap_or_default();
        let (grace, force) = (DurationText(grace), DurationText(force));
        let (count, most) = (running.len(), running.len().min(SHOWN));
        let (named, more) = (running[..most].join(", "), if count > most { ", …" } else { "" });
        log::engine_info(&format_args!(
            "it was asked to end and waits for {count} attempts ({named}{more}): for up to {grace}, and for {force} more \
             once they are asked to stop. Asked again, it ends at once"
        ));
    }

    /// Whether the engine is shutting down or has stopped.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.shutdown.has_begun() || self.shared.halted.is_halted()
    }

    /// The health of each queue: the code that was asked to stop and has not ended.
    pub fn health(&self) -> Vec<(Name, Health)> {
        self.shared.workers.all().map(|worker| (worker.queue().clone(), worker.health())).collect()
    }

    /// Waits until the engine shuts itself down because too many zombies run on; returns the reason.
    pub fn shuts_down_by_itself(&self) -> impl Future<Output = std::sync::Arc<str>> + Send + use<> {
        self.shared.zombie_alarms.shut_down_reason()
    }
}
