//! Waiting for the end of a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Failure, Outcome, Payload};
use dacapo_store::{RunNo, RunRow, Status};
use tokio::sync::oneshot;

use crate::api::row;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::nodes::notices::watch;
use crate::read::RunId;
use crate::read::outcome::{circle, next_run, outcome_of};
use crate::run::cached_run::PlayState;
use crate::run::waiters::RunEnd;
use crate::shared::Shared;

/// The number of runs of a chain that are walked at a time: after them other work can use the thread, and the caller
/// can give up.
const AT_A_STRETCH: usize = 1_000;

impl Engine {
    /// Waits until a run is closed, and returns its result. A run that continues as new is followed.
    pub async fn result(&self, of: &RunId) -> Result<(Status, Result<Payload, Failure>), Error> {
        self.wait(of, None, false).await
    }

    /// Waits like `result` for a run that is expected to have this number, which costs no read of the store while the run is
    /// in memory. A number of another run is ignored.
    pub async fn result_of(&self, of: &RunId, run: RunNo) -> Result<(Status, Result<Payload, Failure>), Error> {
        self.wait(of, Some(run), false).await
    }

    /// Waits like `result`, but also ends, with [`Error::Stuck`], when the run is stuck.
    pub async fn result_or_stuck(&self, of: &RunId) -> Result<(Status, Result<Payload, Failure>), Error> {
        self.wait(of, None, true).await
    }

    async fn wait(
        &self,
        of: &RunId,
        run: Option<RunNo>,
        or_stuck: bool,
    ) -> Result<(Status, Result<Payload, Failure>), Error> {
        self.shared.check()?;
        let stopped = |_| Err(self.shared.halted.reason().unwrap_or(Error::ShutDown));
        let (mut of, mut seen) = (of.clone(), BTreeSet::new());
        if let Some(waiting) = run.and_then(|run| self.wait_in_memory(&of, run)) {
            let (status, outcome) = waiting.await.unwrap_or_else(stopped)?;
            let Some(next) = next_run(status, &outcome) else { return Ok((status, outcome.into())) };
            of.run_id = Some(next);
        }
        loop {
            let walk = self.blocking(WorkKind::Read, move |shared| walk(shared, of, seen, or_stuck)).await?;
            let (workflow_id, status, outcome) = match walk.at {
                At::End(status, outcome) => return Ok((status, outcome.into())),
                At::Stuck(reason) => return Err(Error::Stuck(reason)),
                At::Further(next) => {
                    (of, seen) = (next, walk.seen);
                    continue;
                }
                At::Open(workflow_id, waiting) => {
                    let (status, outcome) = waiting.await.unwrap_or_else(stopped)?;
                    (workflow_id, status, outcome)
                }
            };
            let Some(next) = next_run(status, &outcome) else { return Ok((status, outcome.into())) };
            (of, seen) = (RunId { workflow_id, run_id: Some(next) }, walk.seen);
        }
    }
}

impl Engine {
    /// Begins to wait for the end of the run of this number if it is open, in memory, and the run that is meant. Otherwise
    /// None: then the store has to be read.
    fn wait_in_memory(&self, of: &RunId, run: RunNo) -> Option<oneshot::Receiver<RunEnd>> {
        let waiting = self.shared.waiters.for_result(run, false);
        // Register first, then look: a run that closes leaves memory before its waiters are woken.
        let is_open = self.shared.runs.get(run).is_some_and(|cached| {
            let state = cached.lock();
            !state.is_gone && state.open_as.as_deref().is_some_and(|name| of.names(&name.workflow_id, &name.run_id))
        });
        if is_open {
            return Some(waiting);
        }
        drop(waiting);
        self.shared.waiters.forget_result(run);
        None
    }
}

/// The progress of a walk along a chain of runs.
struct Walk {
    seen: BTreeSet<RunNo>,
    at: At,
}

enum At {
    /// The chain has ended.
    End(Status, Outcome),
    /// Its last run is stuck, and the caller does not wait for a stuck run.
    Stuck(String),
    /// Its last run is open.
    Open(dacapo_core::Name, oneshot::Receiver<RunEnd>),
    /// The chain goes on with this run.
    Further(RunId),
}

/// Walks the chain of a run to its open run, or to its end.
fn walk(shared: &Arc<Shared>, mut of: RunId, mut seen: BTreeSet<RunNo>, or_stuck: bool) -> Result<Walk, Error> {
    for _ in 0..AT_A_STRETCH {
        let run = row(shared, &of)?;
        let (status, outcome) = match run.status.is_open() {
            false => (run.status, outcome_of(run.result.as_deref())),
            true => match end_of(shared, &run, or_stuck)? {
                At::End(status, outcome) => (status, outcome),
                at => return Ok(Walk { seen, at }),
            },
        };
        let Some(next) = next_run(status, &outcome) else { return Ok(Walk { seen, at: At::End(status, outcome) }) };
        if !seen.insert(run.no) {
            return Err(circle(&run));
        }
        of = RunId { workflow_id: run.workflow_id, run_id: Some(next) };
    }
    Ok(Walk { seen, at: At::Further(of) })
}

/// Whether a thread plays this run or soon will: what an earlier process, or an earlier play, found need not hold any more.
fn is_about_to_be_played(shared: &Shared, run: RunNo) -> bool {
    let cached = shared.runs.get(run);
    cached.is_some_and(|cached| matches!(cached.lock().play_state, PlayState::Queued | PlayState::Busy))
}

/// Begins to wait for the end of a run that was open when it was looked at.
fn end_of(shared: &Shared, run: &RunRow, or_stuck: bool) -> Result<At, Error> {
    let waiting = shared.waiters.for_result(run.no, or_stuck);
    // The run may have closed, or got stuck, before the waiter was registered.
    let found = match shared.store().run(run.no) {
        Ok(Some(row)) if !row.status.is_open() => Ok(At::End(row.status, outcome_of(row.result.as_deref()))),
        Ok(Some(RunRow { stuck: Some(stuck), .. })) if or_stuck && !is_about_to_be_played(shared, run.no) => {
            Ok(At::Stuck(stuck.reason))
        }
        Ok(Some(_)) => {
            watch(shared, run.no);
            return Ok(At::Open(run.workflow_id.clone(), waiting));
        }
        // It was closed and deleted between the two reads.
        Ok(None) => {
            let (workflow_id, run_id) = (run.workflow_id.clone(), Some(run.run_id.clone()));
            Err(Error::NotFound { workflow_id, run_id })
        }
        Err(error) => Err(error.into()),
    };
    drop(waiting);
    shared.waiters.forget_result(run.no);
    found
}
