//! Writing a file of histories.

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use dacapo_engine::Reader;
use dacapo_store::{Belongings, Filter, RunNo, private_file};

use super::chain::Chain;
use super::line::{Line, MessageLine, RunLine, to_text};
use super::{KIND, LONGEST_LINE, VERSION};
use crate::client::{Error, Result};

/// How many runs are read at a time.
const PAGE: usize = 500;

/// The lines that were written, up to the last.
struct Lines<'w> {
    to: &'w mut dyn Write,
    chain: Chain,
}

impl Lines<'_> {
    fn write(&mut self, line: &Line) -> Result<()> {
        let json = serde_json::to_vec(line).map_err(|error| cannot_write(&error))?;
        let mut text = self.chain.seal(&json);
        if text.len() >= LONGEST_LINE {
            return Err(cannot_write(&format_args!("a record has {} bytes, and no file takes so much", text.len())));
        }
        text.push(b'\n');
        self.to.write_all(&text).map_err(|error| cannot_write(&error))
    }
}

fn cannot_write(error: &dyn std::fmt::Display) -> Error {
    Error::System(format!("the histories cannot be written: {error}"))
}

/// Writes a file of all runs that match, and gives their number. Runs that are deleted meanwhile are left out.
pub(in crate::client) fn export(reader: &Reader, filter: &Filter, to: &mut dyn Write) -> Result<u64> {
    let mut lines = Lines { to, chain: Chain::default() };
    lines.write(&Line::File { kind: KIND.to_owned(), version: VERSION })?;
    let (mut after, mut runs) = (None, 0);
    loop {
        let page = reader.oldest(filter, after, PAGE)?;
        for run in &page {
            runs += u64::from(export_run(reader, run.no, &mut lines)?);
        }
        match page.last() {
            Some(last) => after = Some(last.no),
            None => break,
        }
    }
    lines.write(&Line::Complete { runs })?;
    lines.to.flush().map_err(|error| cannot_write(&error))?;
    Ok(runs)
}

/// Writes such a file under a name that is not taken.
pub(in crate::client) fn export_to_file(reader: &Reader, filter: &Filter, path: &Path) -> Result<u64> {
    let cannot = |error| {
        Error::System(format!("cannot write {}: {error}. Name a new file in a folder that exists", path.display()))
    };
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
fn export_run(reader: &Reader, run: RunNo, lines: &mut Lines<'_>) -> Result<bool> {
    // It may have played on since it was listed, and may do so now: what is written of it must be whole.
    let Some((row, Belongings { request, attributes, messages })) = reader.archive(run)? else { return Ok(false) };
    lines.write(&Line::Run(Box::new(RunLine::of(&row, request.as_ref()))))?;
    for (name, value) in attributes {
        lines.write(&Line::Attribute { name, value })?;
    }
    for row in &messages {
        lines.write(&Line::Message(MessageLine::of(row)))?;
    }
    let mut written = Ok(());
    let is_whole = reader.archive_turns(&row, &mut |number, record| {
        written = lines.write(&Line::Turn { number, record: to_text(record) });
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    let run_id = row.run_id.to_string();
    lines.write(&if is_whole { Line::End { run_id } } else { Line::Gone { run_id } })?;
    Ok(is_whole)
}
