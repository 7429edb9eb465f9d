//! Export and import of histories.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dacapo_client::Error;
use dacapo_core::{CommandKind, Name, Outcome, Payload, Pins, TurnRecord, from_stored};
use dacapo_store::{Belongings, Filter, ImportWrite, RunNo, RunRow, Status, StoreError};

use crate::names::check_name;
use crate::read::Reader;
use crate::read::outcome::next_run;
use crate::read::records::{Unreadable, decode, each_row};

impl Reader {
    /// Lists rows of runs that match, oldest first, after this number.
    pub fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>, Error> {
        Ok(self.store().oldest(filter, after, limit)?)
    }

    /// Reads all that a store keeps of a run beside its turns; none if the run was deleted.
    pub fn archive(&self, run: RunNo) -> Result<Option<(RunRow, Belongings)>, Error> {
        let Some(row) = self.store().run(run)? else { return Ok(None) };
        Ok(Some((row, self.store().belongings(run)?)))
    }

    /// Shows the turns of a run that this row knows of, one after the other, until `show` breaks. Holds no lock
    /// meanwhile. Returns whether they were all there: they are not if the run is deleted meanwhile.
    pub fn archive_turns(
        &self,
        row: &RunRow,
        show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<bool, Error> {
        let (mut next, mut is_stopped, mut damaged) = (0, row.turns == 0, None);
        each_row(self.store(), row.no, &mut |number, record| {
            if is_stopped || number != next {
                return ControlFlow::Break(());
            }
            // A record of a later build is kept as it is.
            if let Err(Unreadable::Record(reason)) = decode(number, record) {
                damaged = Some(reason);
                return ControlFlow::Break(());
            }
            next += 1;
            is_stopped = show(number, record).is_break() || next == row.turns;
            if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(reason) = damaged {
            return Err(StoreError::Corrupt(format!("{reason}, of run {}", row.run_id)).into());
        }
        match is_stopped {
            true => Ok(true),
            false if self.store().run(row.no)?.is_none() => Ok(false),
            false => Err(StoreError::Corrupt(format!("turn {next} of run {} is missing", row.run_id)).into()),
        }
    }
}

/// Checks that the parts of an imported run agree with each other.
///
/// # Errors
/// [`Error::InvalidArgument`], if it cannot.
pub fn check_import(import: &ImportWrite) -> Result<(), Error> {
    let ImportWrite { run, turns, belongings } = import;
    for (what, name) in [
        ("run id", &run.run_id),
        ("workflow id", &run.workflow_id),
        ("workflow type", &run.workflow),
        ("queue name", &run.queue),
        ("id of a first run", &run.first_run_id),
    ] {
        check_name(what, name)?;
    }
    for message in &belongings.messages {
        check_name("key of a message", &message.key)?;
    }
    let bad = |what: String| Error::InvalidArgument(format!("run {} cannot be imported: {what}", run.run_id));
    for (name, value) in &belongings.attributes {
        check_name("a search attribute", name)?;
        value.check(name).map_err(|problem| bad(problem.to_string()))?;
    }
    if run.turns != turns.len() as u64 {
        return Err(bad(format!("it says that it has {} turns, and {} came", run.turns, turns.len())));
    }
    let mut last = None;
    for (number, bytes) in (0..).zip(turns) {
        match TurnRecord::from_bytes(bytes) {
            Ok(record) if record.number == number => last = Some(record),
            Ok(record) => return Err(bad(format!("turn {number} is recorded as turn {}", record.number))),
            Err(error) => return Err(bad(format!("turn {number}: {error}"))),
        }
    }
    from_stored::<Pins>(&run.pins).map_err(|error| bad(format!("its pins: {error}")))?;
    if !run.memo.is_empty() {
        let memo = from_stored::<BTreeMap<Name, Payload>>(&run.memo);
        memo.map_err(|error| bad(format!("its memo: {error}")))?;
    }
    if run.status.is_open() {
        return Ok(());
    }
    let (Some(_), Some(result)) = (run.closed, &run.result) else {
        return Err(bad("it is closed, and does not say since when and with what result".to_owned()));
    };
    let outcome = from_stored::<Outcome>(result).map_err(|error| bad(format!("its result: {error}")))?;
    match next_run(run.status, &outcome) {
        Some(next) if next == run.run_id => Err(bad("it goes on as itself".to_owned())),
        Some(next) if next.is_empty() => Err(bad("it goes on as a run without an id".to_owned())),
        _ => check_result(run, last.as_ref()).map_err(bad),
    }
}

/// Compares the status and the result of a closed run with the decision of its last turn. A run that was ended from
/// outside has no such turn.
pub(crate) fn check_result(run: &RunRow, last: Option<&TurnRecord>) -> Result<(), String> {
    let Some(result) = &run.result else { return Ok(()) };
    let outcome = from_stored::<Outcome>(result).map_err(|error| format!("its result cannot be read: {error}"))?;
    let decided = last.and_then(|turn| turn.commands.last()).map(|command| &command.kind);
    let decided = decided.filter(|command| command.is_terminal());
    let is_same = match (run.status, decided, &outcome) {
        (Status::Completed, Some(CommandKind::Complete { result }), Outcome::Completed(found)) => result == found,
        (Status::Failed, Some(CommandKind::Fail { failure }), Outcome::Failed(found)) => failure == found,
        (Status::Cancelled, Some(CommandKind::CancelRun { failure }), Outcome::Failed(found)) => failure == found,
        // The id of the next run is not in the turn. A run that failed may continue as another try.
        (
            Status::ContinuedAsNew,
            Some(CommandKind::ContinueAsNew(_) | CommandKind::Fail { .. }),
            Outcome::Completed(_),
        ) => true,
        (Status::Terminated | Status::TimedOut, None, Outcome::Failed(_)) => true,
        _ => false,
    };
    match is_same {
        true => Ok(()),
        false => Err(format!("it is {}, and its result is not what its last turn decided", run.status)),
    }
}
