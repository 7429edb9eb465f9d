//! Histories on their way from one store to another.

use std::ops::ControlFlow;

use dacapo_core::TurnRecord;
use dacapo_store::{ImportWrite, RunRow, StoreError, Write};

use crate::records::each_row;
use crate::{Engine, EngineError, Reader, RunId};

impl Reader {
    /// All that a store keeps of a run, to be shown elsewhere. The turns are shown one after the other.
    pub fn archive(
        &self,
        of: &RunId,
        show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<RunRow, EngineError> {
        let row = self.row(of)?;
        each_row(self.store(), row.no, show)?;
        Ok(row)
    }
}

impl Engine {
    /// Adds a closed run that another store kept. It can be listed, described and asked, and is never played on.
    pub async fn import(&self, import: ImportWrite) -> Result<(), EngineError> {
        self.inner.check()?;
        check(&import)?;
        let (tell, told) = tokio::sync::oneshot::channel();
        self.inner.later(move |this| {
            this.submit(Write::Import(Box::new(import)), move |_, result| {
                let _ = tell.send(result.map(drop).map_err(EngineError::from));
            });
        });
        told.await.unwrap_or(Err(EngineError::ShutDown))
    }
}

fn check(import: &ImportWrite) -> Result<(), EngineError> {
    let ImportWrite { run, turns } = import;
    for (what, name) in [("a run id", &run.run_id), ("a workflow id", &run.workflow_id), ("a queue", &run.queue)] {
        crate::start::check_name(what, name)?;
    }
    let bad = |what: String| EngineError::BadInput(format!("run {} cannot be imported: {what}", run.run_id));
    if run.turns != turns.len() as u64 {
        return Err(bad(format!("it says that it has {} turns, and {} came", run.turns, turns.len())));
    }
    for (number, bytes) in (0..).zip(turns) {
        match TurnRecord::from_bytes(bytes) {
            Ok(record) if record.number == number => {}
            Ok(record) => return Err(bad(format!("turn {number} is recorded as turn {}", record.number))),
            Err(error) => return Err(bad(format!("turn {number}: {error}"))),
        }
    }
    minicbor::decode::<dacapo_core::Pins>(&run.pins).map_err(|error| bad(format!("its pins: {error}")))?;
    if run.closed.is_none() && !run.status.is_open() {
        return Err(bad("it is closed, and does not say since when".to_owned()));
    }
    Ok(())
}

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

    fn flaws_of(&self, row: &RunRow) -> Result<Vec<Flaw>, StoreError> {
        let mut wrong = Vec::new();
        let mut next = 0;
        each_row(self.store(), row.no, &mut |number, bytes| {
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
        if next != row.turns {
            wrong.push(format!("it says that it has {} turns, and there are {next}", row.turns));
        }
        if row.status.is_open() != row.closed.is_none() || row.status.is_open() != row.result.is_none() {
            wrong.push(format!("it is {}, and its end and result say otherwise", row.status));
        }
        let run = RunId { workflow_id: row.workflow_id.clone(), run_id: Some(row.run_id.clone()) };
        Ok(wrong.into_iter().map(|what| Flaw { run: Some(run.clone()), what }).collect())
    }
}
