//! The engine's data as that of a client.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dacapo_client::{
    Cursor, Error, EventKind, Filter, HistoryEvent, HistoryPage, Page, RawHistory, RunRef, RunResult, StartRun,
    Started, Status, StuckRuns, UpdateState, UpdateWait,
};
use dacapo_store::{ListPlace, RunNo, RunRow};

use crate::StuckGroup;
use crate::api::start::NewStart;
use crate::client::events::events_of;
use crate::read::describe::{RunDescription, row};
use crate::read::outcome::{circle, end_of, next_run, outcome_of};
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
        match run.run_id {
            Some(run_id) => Self::exact(run.workflow_id, run_id),
            None => Self::latest(run.workflow_id),
        }
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
        Self::new(RunRef::exact(workflow_id, run_id).found_at(run.0 as u64), fresh)
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
        description.next_run_id = run.next_run_id;
        description.parent = run.parent.map(Into::into);
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
        description.messages_waiting = run.messages_waiting;
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
        let after = match after {
            Some(cursor) => Some(cursor.0.parse::<ListPlace>().map_err(|()| unreadable(cursor))?),
            None => None,
        };
        let runs = self.list(&filter, after, limit)?;
        let place = |last: &RunDescription| ListPlace::of(&filter, last.run, last.started, last.closed);
        let next = runs.last().filter(|_| runs.len() == limit).map(|last| Cursor(place(last).to_string()));
        Ok(Page::new(runs.into_iter().map(Into::into).collect(), next))
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
            return Ok(HistoryPage::new(events, Some(Cursor(next.to_string()))));
        }
        self.end_of_events(row, &mut events)?;
        Ok(HistoryPage::new(events, None))
    }

    /// Completes the last event of a run by what its row says about its end.
    fn end_of_events(&self, row: RunRow, events: &mut Vec<HistoryEvent>) -> Result<(), Error> {
        let Some(EventKind::Closed { status, next_run_id, .. }) = events.last_mut().map(|last| &mut last.kind) else {
            // A run that was terminated or timed out has no turn that says so.
            if !row.status.is_open() {
                let end = end_of(&row);
                let kind = EventKind::Closed { status: row.status, result: end.result, next_run_id: end.next_run_id };
                events.push(HistoryEvent::new(row.closed.unwrap_or_default(), row.turns, kind));
            }
            return Ok(());
        };
        // The run may have closed after its row was read.
        let row = if row.status.is_open() { self.store().run(row.no)?.unwrap_or(row) } else { row };
        // The turn of a run that is retried says that it failed, and no turn knows the next run.
        if row.status == Status::ContinuedAsNew {
            (*status, *next_run_id) = (row.status, end_of(&row).next_run_id);
        }
        Ok(())
    }

    /// Reads the history of a run as text.
    pub(super) fn raw_history(&self, of: &RunId) -> Result<RawHistory, Error> {
        Ok(RawHistory::new(FORMAT, self.history(of)?.to_text()))
    }

    /// Groups stuck runs by their cause.
    pub(super) fn stuck_runs(&self) -> Result<Vec<StuckRuns>, Error> {
        let groups = self.stuck_groups()?;
        Ok(groups.into_iter().map(|StuckGroup { runs, example }| StuckRuns::new(runs, example.into())).collect())
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
                None => return Ok(Ok(RunResult::new(row.status, outcome.into()))),
            }
        }
    }
}
