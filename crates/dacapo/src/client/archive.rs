//! Histories as files: one line of JSON for what the file is, then for each run one line that describes it, one for each of
//! its turns, and one that ends it. Nothing in them belongs to one kind of store.

use std::io::{BufRead, Write};
use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dacapo_core::Timestamp;
use dacapo_engine::{EngineError, Reader, RunId};
use dacapo_store::{ImportWrite, Refused, RunNo, RunRow, Status};
use serde::{Deserialize, Serialize};

use crate::client::{Error, Result};

/// What such a file says first.
const KIND: &str = "dacapo histories";
const VERSION: u32 = 1;

/// What came of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// How many runs are here now that were not before.
    pub runs: u64,
    /// Runs that were here already.
    pub known: Vec<String>,
    /// Runs that were open when they were exported: they go on where they are, and are not taken.
    pub open: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    File { kind: String, version: u32 },
    Run(Box<Run>),
    Turn { number: u64, record: String },
    End { run_id: String },
}

/// A run, without its turns. Bytes are written in base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    run_id: String,
    workflow_id: String,
    workflow: String,
    queue: String,
    status: i64,
    /// Nanoseconds since 1970, as all moments.
    started: u64,
    closed: Option<u64>,
    turns: u64,
    first_run_id: String,
    pins: String,
    memo: String,
    published: Option<String>,
    result: Option<String>,
}

fn to_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn bad(line: u64, what: impl std::fmt::Display) -> Error {
    EngineError::BadInput(format!("line {line} of the histories: {what}")).into()
}

fn from_text(line: u64, text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|error| bad(line, error))
}

impl Run {
    fn of(row: &RunRow) -> Self {
        Self {
            run_id: row.run_id.to_string(),
            workflow_id: row.workflow_id.to_string(),
            workflow: row.workflow.to_string(),
            queue: row.queue.to_string(),
            status: row.status.code(),
            started: row.started.0,
            closed: row.closed.map(|closed| closed.0),
            turns: row.turns,
            first_run_id: row.first_run_id.to_string(),
            pins: to_text(&row.pins),
            memo: to_text(&row.memo),
            published: row.published.as_deref().map(to_text),
            result: row.result.as_deref().map(to_text),
        }
    }

    fn into_row(self, line: u64) -> Result<RunRow> {
        let status = Status::from_code(self.status);
        let bytes = |text: Option<String>| text.map(|text| from_text(line, &text)).transpose();
        Ok(RunRow {
            no: RunNo::default(),
            status: status.ok_or_else(|| bad(line, format_args!("nobody knows status {}", self.status)))?,
            run_id: self.run_id.into(),
            workflow_id: self.workflow_id.into(),
            workflow: self.workflow.into(),
            queue: self.queue.into(),
            started: Timestamp(self.started),
            closed: self.closed.map(Timestamp),
            turns: self.turns,
            owner: None,
            epoch: Default::default(),
            pins: from_text(line, &self.pins)?,
            parent: None,
            first_run_id: self.first_run_id.into(),
            stuck: None,
            strikes: 0,
            memo: from_text(line, &self.memo)?,
            published: bytes(self.published)?,
            result: bytes(self.result)?,
        })
    }
}

/// Writes a line.
fn write(to: &mut dyn Write, line: &Line) -> std::io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

fn cannot_write(error: std::io::Error) -> Error {
    Error::System(format!("the histories cannot be written: {error}"))
}

/// Writes the beginning of a file.
pub(super) fn begin(to: &mut dyn Write) -> Result<()> {
    write(to, &Line::File { kind: KIND.to_owned(), version: VERSION }).map_err(cannot_write)
}

/// Writes one run.
pub(super) fn export(reader: &Reader, run: &RunId, to: &mut dyn Write) -> Result<()> {
    let row = reader.archive(run, &mut |_, _| ControlFlow::Break(()))?;
    write(to, &Line::Run(Box::new(Run::of(&row)))).map_err(cannot_write)?;
    let mut written = Ok(());
    // It may play on meanwhile: what was written of it must be whole.
    reader.archive(run, &mut |number, record| {
        if number < row.turns {
            written = write(to, &Line::Turn { number, record: to_text(record) });
        }
        if written.is_ok() && number + 1 < row.turns { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written.map_err(cannot_write)?;
    write(to, &Line::End { run_id: row.run_id.to_string() }).map_err(cannot_write)
}

/// Reads the runs of a file, one after the other.
pub(super) struct Runs<R> {
    from: R,
    line: u64,
}

impl<R: BufRead> Runs<R> {
    pub(super) fn new(from: R) -> Result<Self> {
        let mut runs = Self { from, line: 0 };
        match runs.next_line()? {
            Some(Line::File { kind, version: VERSION }) if kind == KIND => Ok(runs),
            Some(Line::File { kind, version }) if kind == KIND => {
                Err(bad(1, format_args!("they have version {version}, and this build knows {VERSION}")))
            }
            _ => Err(bad(1, "this is no file of histories")),
        }
    }

    fn next_line(&mut self) -> Result<Option<Line>> {
        let mut text = String::new();
        self.line += 1;
        let read = self.from.read_line(&mut text).map_err(|error| bad(self.line, error))?;
        if read == 0 {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).map_err(|error| bad(self.line, error))
    }

    /// The next run, whole.
    pub(super) fn next_run(&mut self) -> Result<Option<ImportWrite>> {
        let run = match self.next_line()? {
            None => return Ok(None),
            Some(Line::Run(run)) => run.into_row(self.line)?,
            Some(_) => return Err(bad(self.line, "here a run should begin")),
        };
        let mut turns = Vec::new();
        loop {
            match self.next_line()? {
                Some(Line::Turn { number, record }) if number == turns.len() as u64 => {
                    turns.push(from_text(self.line, &record)?);
                }
                Some(Line::End { run_id }) if run_id == *run.run_id => return Ok(Some(ImportWrite { run, turns })),
                Some(_) => return Err(bad(self.line, "here a turn, or the end of the run, should be")),
                None => return Err(bad(self.line, "the file ends within a run")),
            }
        }
    }
}

/// What a store says to a run that is brought to it.
pub(super) fn judge(
    imported: &mut Imported,
    run_id: String,
    answer: std::result::Result<(), EngineError>,
) -> Result<()> {
    match answer {
        Ok(()) => imported.runs += 1,
        Err(EngineError::Refused(Refused::Exists(_))) => imported.known.push(run_id),
        Err(EngineError::Refused(Refused::Open)) => imported.open.push(run_id),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
