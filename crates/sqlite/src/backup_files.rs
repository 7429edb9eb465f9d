//! The file operations of a backup. They are a trait so that tests can replace them by a disk that forgets what was
//! not flushed: these operations do not go through SQLite.

use std::fs::File;
use std::io::Result;
use std::path::Path;

/// The file operations of a backup.
pub trait BackupFiles {
    /// Makes the content of a file durable.
    fn flush(&self, file: &Path) -> Result<()>;
    /// Renames a file. The new name is durable once the folder is flushed.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes the names in a folder durable.
    fn flush_folder(&self, folder: &Path) -> Result<()>;
}

/// The real file system.
pub(crate) struct FileSystem;

impl BackupFiles for FileSystem {
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
