//! A look at everything a store keeps: what is wrong with it.

use std::ops::ControlFlow;

use dacapo_core::TurnRecord;
use dacapo_store::{RunNo, StoreError};

use crate::EngineError;
use crate::read::archive::check_result;
use crate::read::records::each_row;
use crate::read::{Reader, RunId};

/// Whatever is wrong in a store: with the store itself, or with what it says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The run, unless it is the store itself.
    pub run: Option<RunId>,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.run {
            Some(RunId { workflow_id, run_id }) => {
                write!(f, "run {workflow_id:?} ({}): {}", run_id.as_deref().unwrap_or("?"), self.what)
            }
            None => write!(f, "the store: {}", self.what),
        }
    }
}

/// How many runs are looked at between two words on progress.
const PAGE: usize = 500;

impl Reader {
    /// Looks at everything: whether the store is sound, and whether each run has the turns it says it has, all of them
    /// readable, and the result that its last turn decided. `progress` is told how many runs were looked at.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Problem>, EngineError> {
        let mut problems: Vec<Problem> =
            self.store().problems()?.into_iter().map(|what| Problem { run: None, what }).collect();
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

    /// What is wrong with one run, or that its row is damaged.
    fn problems_of(&self, run: RunNo) -> Result<Vec<Problem>, StoreError> {
        match self.try_problems_of(run) {
            Err(StoreError::Corrupt(what)) => Ok(vec![Problem { run: None, what }]),
            problems => problems,
        }
    }

    /// It may play on, close or be deleted while its turns are read, so its row is read again after them: what lies between
    /// the two is sound.
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
        let run = RunId { workflow_id: row.workflow_id.clone(), run_id: Some(row.run_id.clone()) };
        Ok(wrong.into_iter().map(|what| Problem { run: Some(run.clone()), what }).collect())
    }
}
