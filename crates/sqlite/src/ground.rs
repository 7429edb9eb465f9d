//! The folder that a backup is put into. It is a trait so that tests can put a disk in its place that forgets what was not
//! flushed: SQLite has no part in what is asked of it here.

use std::fs::File;
use std::io::Result;
use std::path::Path;

/// What a backup asks of the place it is put into.
pub trait Ground {
    /// Makes what a file holds durable.
    fn flush(&self, file: &Path) -> Result<()>;
    /// Gives a file another name. That lasts once the folder is flushed.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes the names in a folder durable.
    fn flush_folder(&self, folder: &Path) -> Result<()>;
}

/// The file system.
pub(crate) struct FileSystem;

impl Ground for FileSystem {
    fn flush(&self, file: &Path) -> Result<()> {
        File::open(file)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to)
    }

    fn flush_folder(&self, folder: &Path) -> Result<()> {
        File::open(folder)?.sync_all()
    }
}
