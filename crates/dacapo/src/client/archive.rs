//! Histories as files: one line of JSON for what the file is, then for each run, oldest first, one line that describes it, one
//! for each of its attributes, messages and turns, and one that ends it; and a last line with the number of runs, so that a file that
//! was cut is known as such. Each line has a checksum that depends on the line before. Nothing in them belongs to one kind of store.

mod chain;
mod line;
mod read;
mod write;

use dacapo_client::Error;

use crate::client::Result;

pub(super) use read::ArchiveReader;
pub(super) use write::{export, export_to_file};

/// The kind of file, which its first line names.
const KIND: &str = "dacapo histories";
/// The version of the files that this build writes and reads. `docs/compatibility.md` says when it changes.
const VERSION: u32 = 1;
/// The longest line. The largest records are far shorter, and a file that is none has no say in how much memory is taken.
const LONGEST_LINE: usize = 256 << 20;

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// How many runs were added.
    pub runs: u64,
    /// The run ids of runs that were in the store already.
    pub known: Vec<String>,
    /// The run ids of runs that were open when they were exported. They go on in the store they came from, and are not added.
    pub open: Vec<String>,
}

/// Counts the answer of a store to one run of an import.
pub(super) fn count_imported(
    imported: &mut Imported,
    run_id: String,
    answer: std::result::Result<(), Error>,
) -> Result<()> {
    match answer {
        Ok(()) => imported.runs += 1,
        Err(Error::RunExists(_)) => imported.known.push(run_id),
        Err(Error::RunOpen) => imported.open.push(run_id),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
