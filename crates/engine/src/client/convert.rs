//! The engine's data as that of a client.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dacapo_client::{
    Cursor, Error, EventKind, Filter, HistoryEvent, HistoryPage, Page, RawHistory, RunRef, RunResult, StartRun,
    Started, StuckRuns, UpdateState, UpdateWait,
};
use dacapo_store::{RunNo, RunRow};

use crate::StuckGroup;
use crate::api::start::NewStart;
use crate::client::events::events_of;
use crate::read::describe::{RunDescription, row};
use crate::read::outcome::{circle, next_run, outcome_of};
use crate::read::records::each_record_from;
use crate::read::{Reader, RunId};
use crate::run::started::StartedAs;
use crate::run::waiters::{UpdateStage, WaitFor};

/// The format of a raw history.
const FORMAT: &str = "dacapo-transcript";

/// The number of a run, of which the locator is the text that callers pass on.
pub(super) fn number(locator: u64) -> RunNo {
    RunNo(locator as i64)
}

impl From<RunRef> for RunId {
    fn from(run: RunRef) -> Self {
        Self { workflow_id: run.workflow_id, run_id: run.run_id }
    }
}

impl From<RunId> for RunRef {
    fn from(run: RunId) -> Self {
        Self { workflow_id: run.workflow_id, run_id: run.run_id, locator: None }
    }
}

impl From<StartRun> for NewStart {
    fn from(start: StartRun) -> Self {
        Self {
            workflow: start.workflow,
            workflow_id: start.workflow_id,
            input: start.input,
            queue: start.queue,
            reuse: start.id_reuse,
            conflict: start.id_conflict,
            request: start.request_id,
            execution_timeout: start.execution_timeout,
            run_timeout: start.run_timeout,
            delay: start.delay,
            retry: start.retry,
            memo: start.memo,
            search_attributes: start.attributes,
            headers: start.headers,
            pins: start.pins,
        }
    }
}

impl From<StartedAs> for Started {
    fn from(started: StartedAs) -> Self {
        let StartedAs { workflow_id, run_id, run, fresh } = started;
        Self { run: RunRef { workflow_id, run_id: Some(run_id), locator: Some(run.0 as u64) }, is_new: fresh }
    }
}

impl From<UpdateWait> for WaitFor {
    fn from(wait: UpdateWait) -> Self {
        match wait {
            UpdateWait::Accepted => Self::Accepted,
            UpdateWait::Completed => Self::Completed,
        }
    }
}

impl From<UpdateStage> for UpdateState {
    fn from(stage: UpdateStage) -> Self {
        match stage {
            UpdateStage::Accepted => Self::Accepted,
            UpdateStage::Completed(result) => Self::Completed(result),
        }
    }
}

impl From<RunDescription> for dacapo_client::Description {
    fn from(run: RunDescription) -> Self {
        let mut description = Self::new(run.workflow_id, run.run_id);
        description.first_run_id = run.first_run_id;
        description.workflow = run.workflow;
        description.queue = run.queue;
        description.status = run.status;
        description.started = run.started;
        description.closed = run.closed;
        description.turns = run.turns;
        description.stuck = run.stuck;
        description.memo = run.memo;
        description.attributes = run.attributes;
        description.published = run.published;
        description.result = run.result;
        description.pending = run.pending;
        description
    }
}

fn unreadable(Cursor(text): Cursor) -> Error {
    Error::InvalidArgument(format!("invalid cursor {text:?}: pass on the one that the page before returned"))
}

impl Reader {
    /// Reads a page of a list.
    pub(super) fn page(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Result<Page, Error> {
        if limit == 0 {
            return Err(Error::InvalidArgument("a page of 0 runs never ends: ask for 1 or more".to_owned()));
        }
        let before = match after {
            Some(cursor) => Some(RunNo(cursor.0.parse().map_err(|_| unreadable(cursor))?)),
            None => None,
        };
        let runs = self.list(&filter, before, limit)?;
        let next = runs.last().filter(|_| runs.len() == limit).map(|last| Cursor(last.run.0.to_string()));
        Ok(Page { runs: runs.into_iter().map(Into::into).collect(), next })
    }

    /// Reads a page of what has happened in a run: whole turns, until it has this many events.
    pub(super) fn events(&self, of: &RunId, after: Option<Cursor>, limit: usize) -> Result<HistoryPage, Error> {
        if limit == 0 {
            return Err(Error::InvalidArgument("a page of 0 events never ends: ask for 1 or more".to_owned()));
        }
        let from = match after {
            Some(cursor) => cursor.0.parse().map_err(|_| unreadable(cursor))?,
            None => 0,
        };
        let row = row(self.store(), of)?;
        let mut events = Vec::new();
        let read = each_record_from(self.store(), row.no, from, |record, _| {
            let next = record.number + 1;
            events_of(record, &mut events);
            if events.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(next) }
        });
        let stopped = read.map_err(|unreadable| unreadable.of(&row.run_id))?;
        if let Some(next) = stopped.filter(|next| *next < row.turns) {
            return Ok(HistoryPage { events, next: Some(Cursor(next.to_string())) });
        }
        // A run that was terminated or timed out has no turn that says so.
        let is_closed = matches!(events.last(), Some(HistoryEvent { kind: EventKind::Closed { .. }, .. }));
        if !row.status.is_open() && !is_closed {
            let result = Some(outcome_of(row.result.as_deref()).into());
            let kind = EventKind::Closed { status: row.status, result };
            events.push(HistoryEvent { at: row.closed.unwrap_or_default(), turn: row.turns, kind });
        }
        Ok(HistoryPage { events, next: None })
    }

    /// Reads the history of a run as text.
    pub(super) fn raw_history(&self, of: &RunId) -> Result<RawHistory, Error> {
        Ok(RawHistory { format: FORMAT.to_owned(), text: self.history(of)?.to_text() })
    }

    /// Groups stuck runs by their cause.
    pub(super) fn stuck_runs(&self) -> Result<Vec<StuckRuns>, Error> {
        let groups = self.stuck_groups()?;
        Ok(groups.into_iter().map(|StuckGroup { runs, example }| StuckRuns { runs, example: example.into() }).collect())
    }

    /// Reads the result of a closed run, following runs that continued as new; or the run that is open.
    pub(super) fn closed_result(&self, of: &RunId) -> Result<Result<RunResult, RunRow>, Error> {
        let (mut of, mut seen) = (of.clone(), BTreeSet::new());
        loop {
            let row = row(self.store(), &of)?;
            if row.status.is_open() {
                return Ok(Err(row));
            }
            let outcome = outcome_of(row.result.as_deref());
            match next_run(row.status, &outcome) {
                Some(_) if !seen.insert(row.no) => {
                    return Err(circle(&row));
                }
                Some(next) => of.run_id = Some(next),
                None => return Ok(Ok(RunResult { status: row.status, result: outcome.into() })),
            }
        }
    }
}
