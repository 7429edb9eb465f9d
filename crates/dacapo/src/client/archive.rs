//! Histories as files: one line of JSON for what the file is, then for each run, oldest first, one line that describes it, one
//! for each of its attributes, pieces of mail and turns, and one that ends it; and a last line with the number of runs, so that
//! a file that was cut is known as such. Nothing in them belongs to one kind of store.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufWriter, Read, Seek, Write};
use std::ops::ControlFlow;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dacapo_core::{Name, Timestamp};
use dacapo_engine::{EngineError, Reader, check_import, next_of};
use dacapo_store::{Belongings, ImportWrite, MailNo, MailRow, Refused, RunFilter, RunNo, RunRow, Status, private_file};
use serde::{Deserialize, Serialize};

use crate::client::{Error, Result};

/// What such a file says first.
const KIND: &str = "dacapo histories";
/// Files of the first version have neither attributes nor mail nor a last line.
const VERSION: u32 = 2;
const FIRST_VERSION: u32 = 1;
/// The longest line. The largest records are far shorter, and a file that is none has no say in how much memory is taken.
const LONGEST_LINE: usize = 256 << 20;
/// How many runs are read at a time.
const PAGE: usize = 500;

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
    File {
        kind: String,
        version: u32,
    },
    Run(Box<Run>),
    Attribute {
        name: String,
        value: String,
    },
    Mail(Mail),
    Turn {
        number: u64,
        record: String,
    },
    End {
        run_id: String,
    },
    /// The run was deleted while it was written: what stands here of it is not whole.
    Gone {
        run_id: String,
    },
    /// The file is whole.
    Complete {
        runs: u64,
    },
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
    #[serde(default)]
    request: Option<String>,
    pins: String,
    memo: String,
    published: Option<String>,
    result: Option<String>,
}

/// A piece of mail.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mail {
    key: String,
    sent: u64,
    job: String,
    taken: Option<u64>,
    outcome: Option<String>,
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

impl Mail {
    fn of(row: &MailRow) -> Self {
        Self {
            key: row.key.to_string(),
            sent: row.sent.0,
            job: to_text(&row.job),
            taken: row.taken,
            outcome: row.outcome.as_deref().map(to_text),
        }
    }

    fn into_row(self, line: u64) -> Result<MailRow> {
        Ok(MailRow {
            no: MailNo::default(),
            run: RunNo::default(),
            key: self.key.into(),
            sent: Timestamp(self.sent),
            job: from_text(line, &self.job)?,
            taken: self.taken,
            outcome: self.outcome.map(|text| from_text(line, &text)).transpose()?,
        })
    }
}

impl Run {
    fn of(row: &RunRow, request: Option<&Name>) -> Self {
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
            request: request.map(Name::to_string),
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
fn write(to: &mut dyn Write, line: &Line) -> Result<()> {
    let mut text = serde_json::to_vec(line).map_err(|error| cannot_write(&error))?;
    if text.len() >= LONGEST_LINE {
        return Err(cannot_write(&format_args!("a record has {} bytes, and no file takes so much", text.len())));
    }
    text.push(b'\n');
    to.write_all(&text).map_err(|error| cannot_write(&error))
}

fn cannot_write(error: &dyn std::fmt::Display) -> Error {
    Error::System(format!("the histories cannot be written: {error}"))
}

/// Writes a file of all runs that match, and gives their number. Runs that are deleted meanwhile are left out.
pub(super) fn export(reader: &Reader, filter: &RunFilter, to: &mut dyn Write) -> Result<u64> {
    write(to, &Line::File { kind: KIND.to_owned(), version: VERSION })?;
    let (mut after, mut runs) = (None, 0);
    loop {
        let page = reader.oldest(filter, after, PAGE)?;
        for run in &page {
            runs += u64::from(export_run(reader, run.no, to)?);
        }
        match page.last() {
            Some(last) => after = Some(last.no),
            None => break,
        }
    }
    write(to, &Line::Complete { runs })?;
    to.flush().map_err(|error| cannot_write(&error))?;
    Ok(runs)
}

/// Writes such a file under a name that is not taken.
pub(super) fn export_to_file(reader: &Reader, filter: &RunFilter, path: &Path) -> Result<u64> {
    let cannot = |error| Error::System(format!("{}: {error}", path.display()));
    let file = private_file().create_new(true).write(true).open(path).map_err(cannot)?;
    let mut to = BufWriter::new(file);
    let exported = export(reader, filter, &mut to).and_then(|runs| {
        to.get_ref().sync_all().map_err(cannot)?;
        Ok(runs)
    });
    if exported.is_err() {
        let _ = std::fs::remove_file(path);
    }
    exported
}

/// Writes one run. Says whether it was there to the end.
fn export_run(reader: &Reader, run: RunNo, to: &mut dyn Write) -> Result<bool> {
    // It may have played on since it was listed, and may do so now: what is written of it must be whole.
    let Some((row, Belongings { request, attributes, mail })) = reader.archive(run)? else { return Ok(false) };
    write(to, &Line::Run(Box::new(Run::of(&row, request.as_ref()))))?;
    for (name, value) in &attributes {
        write(to, &Line::Attribute { name: name.to_string(), value: to_text(value) })?;
    }
    for row in &mail {
        write(to, &Line::Mail(Mail::of(row)))?;
    }
    let mut written = Ok(());
    let is_whole = reader.archive_turns(&row, &mut |number, record| {
        written = write(to, &Line::Turn { number, record: to_text(record) });
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    let run_id = row.run_id.to_string();
    write(to, &if is_whole { Line::End { run_id } } else { Line::Gone { run_id } })?;
    Ok(is_whole)
}

/// Reads the runs of a file, one after the other.
pub(super) struct Runs<R> {
    from: R,
    line: u64,
    version: u32,
    runs: u64,
}

impl<R: BufRead + Seek> Runs<R> {
    /// A file that is whole and sound. All of it is read for that, so that a file that is not changes nothing.
    pub(super) fn checked(mut from: R) -> Result<Self> {
        let trouble = |error| bad(1, error);
        let begin = from.stream_position().map_err(trouble)?;
        let mut runs = Self::new(from)?;
        let mut nexts = BTreeMap::new();
        while let Some(run) = runs.next_run()? {
            check_import(&run)?;
            if let Some(next) = next_of(&run.run) {
                nexts.insert(run.run.run_id, next);
            }
        }
        if let Some(run_id) = circle(&nexts) {
            return Err(bad(
                runs.line,
                format_args!("run {run_id} goes on as others that go on as it, without an end"),
            ));
        }
        runs.from.seek(std::io::SeekFrom::Start(begin)).map_err(trouble)?;
        Self::new(runs.from)
    }
}

impl<R: BufRead> Runs<R> {
    fn new(from: R) -> Result<Self> {
        let mut runs = Self { from, line: 0, version: VERSION, runs: 0 };
        match runs.next_line()? {
            Some(Line::File { kind, version }) if kind == KIND => match version {
                FIRST_VERSION | VERSION => Ok(Self { version, ..runs }),
                _ => Err(bad(1, format_args!("they have version {version}, and this build knows up to {VERSION}"))),
            },
            _ => Err(bad(1, "this is no file of histories")),
        }
    }

    fn next_line(&mut self) -> Result<Option<Line>> {
        let mut text = Vec::new();
        self.line += 1;
        let mut part = (&mut self.from).take(LONGEST_LINE as u64);
        let read = part.read_until(b'\n', &mut text).map_err(|error| bad(self.line, error))?;
        match read {
            0 => Ok(None),
            LONGEST_LINE => Err(bad(self.line, format_args!("it is longer than {LONGEST_LINE} bytes: no history is"))),
            _ => serde_json::from_slice(&text).map(Some).map_err(|error| bad(self.line, error)),
        }
    }

    /// The next run, whole.
    pub(super) fn next_run(&mut self) -> Result<Option<ImportWrite>> {
        loop {
            let (run, request) = match self.next_line()? {
                Some(Line::Run(mut run)) => {
                    let request = run.request.take().map(Name::from);
                    (run.into_row(self.line)?, request)
                }
                Some(Line::Complete { runs }) if runs == self.runs => return self.end(),
                Some(Line::Complete { runs }) => {
                    return Err(bad(
                        self.line,
                        format_args!("the file has {} runs, and was written with {runs}", self.runs),
                    ));
                }
                None if self.version == FIRST_VERSION => return Ok(None),
                None => return Err(bad(self.line, "the file was cut: its last line is missing")),
                Some(_) => return Err(bad(self.line, "here a run should begin")),
            };
            if let Some(run) = self.rest_of(run, request)? {
                self.runs += 1;
                return Ok(Some(run));
            }
        }
    }

    fn end(&mut self) -> Result<Option<ImportWrite>> {
        match self.next_line()? {
            None => Ok(None),
            Some(_) => Err(bad(self.line, "something follows the end of the file")),
        }
    }

    /// The run with all that belongs to it; none if it was deleted while it was written.
    fn rest_of(&mut self, run: RunRow, request: Option<Name>) -> Result<Option<ImportWrite>> {
        let mut belongings = Belongings { request, ..Belongings::default() };
        let mut turns = Vec::new();
        loop {
            match self.next_line()? {
                Some(Line::Attribute { name, value }) => {
                    belongings.attributes.push((name.into(), from_text(self.line, &value)?));
                }
                Some(Line::Mail(mail)) => belongings.mail.push(mail.into_row(self.line)?),
                Some(Line::Turn { number, record }) if number == turns.len() as u64 => {
                    turns.push(from_text(self.line, &record)?);
                }
                Some(Line::End { run_id }) if run_id == *run.run_id => {
                    return Ok(Some(ImportWrite { run, turns, belongings }));
                }
                Some(Line::Gone { run_id }) if run_id == *run.run_id => return Ok(None),
                Some(_) => return Err(bad(self.line, "here a turn, or the end of the run, should be")),
                None => return Err(bad(self.line, "the file ends within a run")),
            }
        }
    }
}

/// A run from which one comes back to it by going on, if there is one.
fn circle(nexts: &BTreeMap<Name, Name>) -> Option<&Name> {
    let mut sound = BTreeSet::new();
    for first in nexts.keys() {
        let (mut run, mut way) = (first, BTreeSet::new());
        while let Some(next) = nexts.get(run).filter(|_| !sound.contains(run)) {
            if !way.insert(run) {
                return Some(run);
            }
            run = next;
        }
        sound.append(&mut way);
    }
    None
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
