//! Reading a file of histories.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read, Seek};

use dacapo_core::Name;
use dacapo_engine::{check_import, next_of};
use dacapo_store::{Belongings, ImportWrite, RunRow};

use super::chain::Chain;
use super::line::{Line, bad, from_text};
use super::{KIND, LONGEST_LINE, VERSION};
use crate::client::Result;

/// Reads the runs of a file, one after the other.
pub(in crate::client) struct ArchiveReader<R> {
    from: R,
    line: u64,
    runs: u64,
    chain: Chain,
}

impl<R: BufRead + Seek> ArchiveReader<R> {
    /// A file that is whole and sound. All of it is read for that, so that a file that is not changes nothing.
    pub(in crate::client) fn checked(mut from: R) -> Result<Self> {
        let unreadable = |error| bad(1, error);
        let begin = from.stream_position().map_err(unreadable)?;
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
        runs.from.seek(std::io::SeekFrom::Start(begin)).map_err(unreadable)?;
        Self::new(runs.from)
    }
}

impl<R: BufRead> ArchiveReader<R> {
    fn new(from: R) -> Result<Self> {
        let mut runs = Self { from, line: 0, runs: 0, chain: Chain::default() };
        let text = runs.next_text()?.ok_or_else(|| bad(1, "this is no file of histories"))?;
        if !Chain::is_sealed(&text) {
            return Err(bad(
                1,
                "this is no file of histories, or a development build wrote it before the first numbered format",
            ));
        }
        match runs.parse(text)? {
            Line::File { kind, version: VERSION } if kind == KIND => Ok(runs),
            Line::File { kind, version } if kind == KIND => Err(bad(
                1,
                format_args!(
                    "they have version {version}, and this build reads version {VERSION}: read them with the build that wrote them"
                ),
            )),
            _ => Err(bad(1, "this is no file of histories")),
        }
    }

    fn next_text(&mut self) -> Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        self.line += 1;
        let mut part = (&mut self.from).take(LONGEST_LINE as u64);
        let read = part.read_until(b'\n', &mut text).map_err(|error| bad(self.line, error))?;
        match read {
            0 => Ok(None),
            LONGEST_LINE => Err(bad(self.line, format_args!("it is longer than {LONGEST_LINE} bytes: no history is"))),
            _ => Ok(Some(text)),
        }
    }

    fn parse(&mut self, mut text: Vec<u8>) -> Result<Line> {
        if text.pop() != Some(b'\n') {
            return Err(bad(self.line, "the file was cut: its last line has no end"));
        }
        let json = self.chain.open(&mut text).ok_or_else(|| {
            bad(self.line, "its checksum is wrong: this line was changed, or lines before it are missing or were moved")
        })?;
        serde_json::from_slice(json).map_err(|error| bad(self.line, error))
    }

    fn next_line(&mut self) -> Result<Option<Line>> {
        self.next_text()?.map(|text| self.parse(text)).transpose()
    }

    /// The next run, whole.
    pub(in crate::client) fn next_run(&mut self) -> Result<Option<ImportWrite>> {
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
        match self.next_text()? {
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
                    belongings.attributes.push((name, value));
                }
                Some(Line::Message(message)) => belongings.messages.push(message.into_row(self.line)?),
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
