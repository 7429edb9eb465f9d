//! A look at everything a store keeps: what is wrong with it.

use std::ops::ControlFlow;

use dacapo_core::TurnRecord;
use dacapo_store::{RunRow, StoreError};

use crate::EngineError;
use crate::read::records::each_row;
use crate::read::{Reader, RunId};

/// Whatever is wrong in a store: with the store itself, or with what it says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The run, unless it is the store itself.
    pub run: Option<RunId>,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Flaw {
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
    /// readable. `progress` is told how many runs were looked at.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Flaw>, EngineError> {
        let mut flaws: Vec<Flaw> = self.store().flaws()?.into_iter().map(|what| Flaw { run: None, what }).collect();
        let (mut before, mut seen) = (None, 0);
        loop {
            let rows = self.store().list(&Default::default(), before, PAGE)?;
            for row in &rows {
                flaws.extend(self.flaws_of(row)?);
            }
            seen += rows.len() as u64;
            progress(seen);
            match rows.last() {
                Some(last) if rows.len() == PAGE => before = Some(last.no),
                _ => return Ok(flaws),
            }
        }
    }

    /// It may play on, close or be deleted while its turns are read, so its row is read again after them: what lies between
    /// the two is sound.
    fn flaws_of(&self, before: &RunRow) -> Result<Vec<Flaw>, StoreError> {
        let mut wrong = Vec::new();
        let mut next = 0;
        each_row(self.store(), before.no, &mut |number, bytes| {
            match TurnRecord::from_bytes(bytes) {
                Err(error) => wrong.push(format!("turn {number} cannot be read: {error}")),
                Ok(record) if record.number != number => {
                    wrong.push(format!("turn {number} is recorded as turn {}", record.number));
                }
                Ok(_) if number != next => wrong.push(format!("turn {number} follows where turn {next} should be")),
                Ok(_) => {}
            }
            next = number + 1;
            ControlFlow::Continue(())
        })?;
        let Some(row) = self.store().run(before.no)? else { return Ok(Vec::new()) };
        if !(before.turns..=row.turns).contains(&next) {
            wrong.push(format!("it says that it has {} turns, and there are {next}", row.turns));
        }
        if row.status.is_open() != row.closed.is_none() || row.status.is_open() != row.result.is_none() {
            wrong.push(format!("it is {}, and its end and result say otherwise", row.status));
        }
        let run = RunId { workflow_id: row.workflow_id.clone(), run_id: Some(row.run_id.clone()) };
        Ok(wrong.into_iter().map(|what| Flaw { run: Some(run.clone()), what }).collect())
    }
}
