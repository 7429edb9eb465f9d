//! Verification of a store: finds what is wrong with it.

use std::ops::ControlFlow;

use dacapo_client::{Error, Problem, RunRef};
use dacapo_core::TurnRecord;
use dacapo_store::{RunNo, StoreError};

use crate::read::Reader;
use crate::read::archive::check_result;
use crate::read::records::each_row;

/// The number of runs that are checked between two reports of progress.
const PAGE: usize = 500;

impl Reader {
    /// Verifies everything: whether the store is sound, and whether each run has the turns it says it has, all of them
    /// readable, and the result that its last turn decided. `progress` is called with the number of runs that were
    /// checked.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Problem>, Error> {
        let mut problems: Vec<Problem> =
            self.store().problems()?.into_iter().map(|what| Problem::new(None, what)).collect();
        let (mut before, mut seen) = (None, 0);
        loop {
            let runs = self.store().numbers(before, PAGE)?;
            for run in &runs {
                problems.extend(self.problems_of(*run)?);
            }
            seen += runs.len() as u64;
            progress(seen);
            match runs.last() {
                Some(last) if runs.len() == PAGE => before = Some(*last),
                _ => return Ok(problems),
            }
        }
    }

    /// Finds the problems of one run. A damaged row is a problem, too.
    fn problems_of(&self, run: RunNo) -> Result<Vec<Problem>, StoreError> {
        match self.try_problems_of(run) {
            Err(StoreError::Corrupt(what)) => Ok(vec![Problem::new(None, what)]),
            problems => problems,
        }
    }

    /// Finds the problems of one run. The run may play on, close or be deleted while its turns are read, so its row is
    /// read again after them: a number of turns between the two is sound.
    fn try_problems_of(&self, run: RunNo) -> Result<Vec<Problem>, StoreError> {
        let Some(before) = self.store().run(run)? else { return Ok(Vec::new()) };
        let mut wrong = Vec::new();
        let (mut next, mut last) = (0, None);
        let read = each_row(self.store(), run, &mut |number, bytes| {
            match TurnRecord::from_bytes(bytes) {
                Err(error) => wrong.push(format!("turn {number} cannot be read: {error}")),
                Ok(record) if record.number != number => {
                    wrong.push(format!("turn {number} is recorded as turn {}", record.number));
                }
                Ok(_) if number != next => wrong.push(format!("turn {number} follows where turn {next} should be")),
                Ok(record) => last = Some(record),
            }
            next = number + 1;
            ControlFlow::Continue(())
        });
        let Some(row) = self.store().run(run)? else { return Ok(Vec::new()) };
        match read {
            Err(StoreError::Corrupt(what)) => wrong.push(format!("a turn cannot be read: {what}")),
            Err(error) => return Err(error),
            Ok(()) if !(before.turns..=row.turns).contains(&next) => {
                wrong.push(format!("it says that it has {} turns, and there are {next}", row.turns));
            }
            Ok(()) => {}
        }
        if row.status.is_open() != row.closed.is_none() || row.status.is_open() != row.result.is_none() {
            wrong.push(format!("it is {}, and its end and result say otherwise", row.status));
        }
        // A run that has played on meanwhile has another last turn than the one that was read.
        if wrong.is_empty() && row.turns == next {
            wrong.extend(check_result(&row, last.as_ref()).err());
        }
        let run = RunRef::exact(row.workflow_id.clone(), row.run_id.clone());
        Ok(wrong.into_iter().map(|what| Problem::new(Some(run.clone()), what)).collect())
    }
}
