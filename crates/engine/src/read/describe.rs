//! Describing runs from the store, without a worker and without their code.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dacapo_client::{ActivityState, Count, Error, GroupBy, MAX_COUNT, PendingActivity};
use dacapo_core::{AttributeValue, Failure, Name, Payload, Pins, Seq, Timestamp, Transcript, TurnRecord, from_stored};
use dacapo_store::{Filter, ListPlace, RunNo, RunRow, Status, Store, StoreError, Stuck, TaskRow};

use crate::crash_guard::limits::CrashLimits;
use crate::engine::Engine;
use crate::read::outcome::{End, end_of};
use crate::read::records::{LastRecord, each_record};
use crate::read::{Reader, RunId};

/// The number of runs that are read at a time.
const PAGE: usize = 500;

/// The description of a run, without its history.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDescription {
    /// Its number in the store.
    pub run: RunNo,
    /// Its workflow id, which the caller chose.
    pub workflow_id: Name,
    /// Its run id.
    pub run_id: Name,
    /// The first run of its chain.
    pub first_run_id: Name,
    /// The run that goes on, if this one continued as new or was retried.
    pub next_run_id: Option<Name>,
    /// The run that started it as its child. Lists leave this empty: describe a run to see it.
    pub parent: Option<RunId>,
    /// Its type.
    pub workflow: Name,
    /// The queue it is served on.
    pub queue: Name,
    /// The run's status.
    pub status: Status,
    /// When it was started.
    pub started: Timestamp,
    /// When it closed.
    pub closed: Option<Timestamp>,
    /// The number of turns recorded.
    pub turns: u64,
    /// Why it is stuck, though it is open: what happened, where, and what to do.
    pub stuck: Option<Stuck>,
    /// The memo: notes for people.
    pub memo: BTreeMap<Name, Payload>,
    /// Search attributes. Lists leave this empty: describe a run to see them.
    pub attributes: BTreeMap<Name, AttributeValue>,
    /// The snapshot it published last.
    pub published: Option<Payload>,
    /// Its result, if it is closed and no other run goes on.
    pub result: Option<Result<Payload, Failure>>,
    /// Activities that are pending. Lists leave this empty: describe a run to see them.
    pub pending: Vec<PendingActivity>,
    /// The number of stored messages that no turn of it has, without its start, if it is open. Lists leave this at 0.
    pub messages_waiting: u64,
}

/// Runs that are stuck for one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct StuckGroup {
    /// The number of runs.
    pub runs: u64,
    /// The newest of them, with its reason.
    pub example: RunDescription,
}

/// Finds the row of a run.
pub(crate) fn row(store: &dyn Store, of: &RunId) -> Result<RunRow, Error> {
    let found = store.find(&of.workflow_id, of.run_id.as_deref())?;
    found.ok_or_else(|| Error::NotFound { workflow_id: of.workflow_id.clone(), run_id: of.run_id.clone() })
}

impl Reader {
    /// Describes a run. Its pending activities are described as the store knows them.
    pub fn describe(&self, of: &RunId) -> Result<RunDescription, Error> {
        let row = row(self.store(), of)?;
        let parent = row.parent.as_ref().map(|parent| parent.run);
        let mut description = describe(row)?;
        // A parent that is deleted has no name any more.
        let parent = parent.map(|parent| self.store().run(parent)).transpose()?.flatten();
        description.parent = parent.map(|row| RunId { workflow_id: row.workflow_id, run_id: Some(row.run_id) });
        for (name, value) in self.store().attributes(description.run)? {
            description.attributes.insert(name, value);
        }
        if description.status.is_open() {
            let unseen = self.store().count_unseen(description.run)? as u64;
            // Until the first turn is committed, the start is such a message.
            description.messages_waiting = unseen.saturating_sub(u64::from(description.turns == 0));
            let mut records = LastRecord::default();
            for task in self.store().tasks_of(description.run)? {
                let record = records.get(self.store(), description.run, task.turn)?;
                description.pending.extend(record.and_then(|record| pending(record, &task, &self.crash_limits)));
            }
        }
        Ok(description)
    }

    /// Lists runs that match, in the order of the filter, after this place: that of the last is where the next page begins.
    pub fn list(&self, filter: &Filter, after: Option<ListPlace>, limit: usize) -> Result<Vec<RunDescription>, Error> {
        check_filter(filter)?;
        self.store().list(filter, after, limit)?.into_iter().map(describe).collect()
    }

    /// Groups stuck runs by the problem for which they are stuck, those of most runs first.
    pub fn stuck_groups(&self) -> Result<Vec<StuckGroup>, Error> {
        let stuck = Filter { stuck: true, ..Filter::default() };
        let (mut before, mut groups) = (None, BTreeMap::<_, StuckGroup>::new());
        loop {
            let runs = self.list(&stuck, before, PAGE)?;
            before = runs.last().filter(|_| runs.len() == PAGE).map(|last| last.run.into());
            for example in runs {
                let problem = example.stuck.as_ref().map(|stuck| (stuck.cause, stuck.subject.clone()));
                groups.entry(problem).or_insert(StuckGroup { runs: 0, example }).runs += 1;
            }
            if before.is_none() {
                let mut groups: Vec<_> = groups.into_values().collect();
                groups.sort_by_key(|group| std::cmp::Reverse(group.runs));
                return Ok(groups);
            }
        }
    }

    /// Counts the runs that match.
    pub fn count(&self, filter: &Filter) -> Result<u64, Error> {
        check_filter(filter)?;
        Ok(self.store().count(filter, u64::MAX)?)
    }

    /// Counts the runs that match, in groups, each up to a limit.
    pub fn counts(&self, filter: &Filter, by: Option<GroupBy>) -> Result<Vec<Count>, Error> {
        check_filter(filter)?;
        let count =
            |group: Option<String>, filter: &Filter| Ok(Count::new(group, self.store().count(filter, MAX_COUNT + 1)?));
        let groups: Vec<(String, Filter)> = match by {
            None => return Ok(vec![count(None, filter)?]),
            Some(GroupBy::Status) => {
                let all = Status::ALL.into_iter().filter(|status| filter.status.is_none_or(|only| only == *status));
                all.map(|status| (status.to_string(), Filter { status: Some(status), ..filter.clone() })).collect()
            }
            Some(GroupBy::Workflow) => {
                let all = match &filter.workflow {
                    Some(only) => vec![only.clone()],
                    None => self.store().workflows()?,
                };
                let of = |workflow| Filter { workflow: Some(workflow), ..filter.clone() };
                all.into_iter().map(|workflow| (workflow.to_string(), of(workflow))).collect()
            }
            Some(_) => {
                let problem =
                    "runs cannot be counted by what this build does not know: group them by status or workflow";
                return Err(Error::InvalidArgument(problem.to_owned()));
            }
        };
        let counts = groups.into_iter().map(|(group, filter)| count(Some(group), &filter));
        Ok(counts.collect::<Result<Vec<_>, Error>>()?.into_iter().filter(|count| count.runs > 0).collect())
    }

    /// Reads the history of a run: all its turns.
    pub fn history(&self, of: &RunId) -> Result<Transcript, Error> {
        let row = row(self.store(), of)?;
        let mut transcript = Transcript::new(row.workflow.clone(), pins(&row)?);
        let read = each_record(self.store(), row.no, |record, _| {
            transcript.turns.push(record);
            ControlFlow::<()>::Continue(())
        });
        read.map_err(|unreadable| unreadable.of(&row.run_id))?;
        Ok(transcript)
    }
}

impl Engine {
    /// Describes a run, with its pending activities as they are this very moment. Blocks.
    pub fn describe(&self, of: &RunId) -> Result<RunDescription, Error> {
        self.shared.check()?;
        let mut description = self.reader().describe(of)?;
        // Memory knows more of activities that are pending here. The store alone knows those in queues that are not
        // served, and those of a turn that was committed this very moment.
        let mut pending = self.shared.tasks.pending(description.run);
        let here: BTreeSet<Seq> = pending.iter().map(|activity| activity.seq).collect();
        pending.extend(description.pending.into_iter().filter(|activity| !here.contains(&activity.seq)));
        pending.sort_by_key(|activity| activity.seq);
        description.pending = pending;
        Ok(description)
    }
}

/// Refuses a status of a newer client: no run of this store has it, which is not the answer to what was asked.
fn check_filter(filter: &Filter) -> Result<(), Error> {
    match filter.status {
        Some(Status::Unknown) => {
            let known = Status::ALL.map(|status| status.to_string()).join(", ");
            Err(Error::InvalidArgument(format!(
                "the filter has a status that this backend does not know: ask for one of {known}"
            )))
        }
        _ => Ok(()),
    }
}

fn pins(row: &RunRow) -> Result<Pins, Error> {
    let corrupt = |error| StoreError::Corrupt(format!("the pins of run {} cannot be read: {error}", row.run_id));
    Ok(from_stored(&row.pins).map_err(corrupt)?)
}

fn describe(row: RunRow) -> Result<RunDescription, Error> {
    let unreadable = |error| StoreError::Corrupt(format!("the memo of run {} cannot be read: {error}", row.run_id));
    let memo = if row.memo.is_empty() { BTreeMap::new() } else { from_stored(&row.memo).map_err(unreadable)? };
    let end = (!row.status.is_open()).then(|| end_of(&row));
    let End { result, next_run_id } = end.unwrap_or(End { result: None, next_run_id: None });
    Ok(RunDescription {
        run: row.no,
        published: row.published.as_deref().and_then(|bytes| from_stored(bytes).ok()),
        workflow_id: row.workflow_id,
        run_id: row.run_id,
        first_run_id: row.first_run_id,
        next_run_id,
        parent: None,
        workflow: row.workflow,
        queue: row.queue,
        status: row.status,
        started: row.started,
        closed: row.closed,
        turns: row.turns,
        stuck: row.stuck,
        memo,
        attributes: BTreeMap::new(),
        result,
        pending: Vec::new(),
        messages_waiting: 0,
    })
}

/// Builds a pending activity from its task and the turn that scheduled it.
fn pending(record: &TurnRecord, task: &TaskRow, limits: &CrashLimits) -> Option<PendingActivity> {
    let command = record.commands.get(task.position as usize).map(|command| &command.kind);
    let Some(dacapo_core::CommandKind::Activity(command)) = command else { return None };
    let (state, next_attempt) = match task.external {
        Some(_) => (ActivityState::External, None),
        None if limits.quarantines(task.crash_count) => (ActivityState::Quarantined, None),
        // The delay counts from the moment at which the process that serves it has opened the store.
        None => (ActivityState::Pending, limits.delay(task.crash_count).is_none().then_some(task.ready)),
    };
    let mut pending = PendingActivity::new(task.seq, command.id.to_string().into(), command.activity.clone());
    pending.summary.clone_from(&command.summary);
    pending.queue = task.queue.clone();
    (pending.state, pending.next_attempt) = (state, next_attempt);
    pending.attempt = task.attempt;
    pending.attempts = command.retry.as_ref().map_or(0, |retry| retry.attempts);
    pending.priority = task.priority;
    pending.scheduled = record.now;
    pending.started = task.external;
    pending.details = task.details.as_deref().and_then(|bytes| from_stored(bytes).ok());
    pending.last_failure = task.failure.as_deref().and_then(|bytes| from_stored(bytes).ok());
    Some(pending)
}
