//! A disk: a folder whose files can lose what was not flushed.

use std::path::Path;
use std::sync::Arc;

use crate::file::{Dice, File};
use crate::vfs;
use crate::volume::{Counts, Fault, FaultPlan, FileKind, Refusal, Volume};

/// A folder whose files can lose what was not flushed. It is removed with the last handle on it.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Volume>);

impl Disk {
    /// Creates a disk.
    ///
    /// # Panics
    /// If the folder cannot be made, or SQLite accepts no layer for files.
    #[expect(clippy::new_without_default, reason = "a disk is a place in the world, and none is like another")]
    pub fn new() -> Self {
        vfs::install();
        Self(Volume::new())
    }

    /// Returns the path of a file on the disk.
    pub fn path(&self, name: &str) -> String {
        self.0.folder().join(name).display().to_string()
    }

    /// Returns the counts of changes so far.
    pub fn counts(&self) -> Counts {
        self.0.lock().counts
    }

    /// Lets `count` changes fail, from this change on, counted from 0 over the life of the disk.
    pub fn fail_from(&self, change: u64, count: u64, fault: Fault) {
        self.0.lock().plan = Some(FaultPlan { from: change, count, fault });
    }

    /// Removes the planned faults.
    pub fn repair(&self) {
        self.0.lock().plan = None;
    }

    /// Lets flushes of such files do nothing and report success from now on.
    pub fn lie_about(&self, kind: FileKind) {
        self.0.lock().lies.push(kind);
    }

    /// Flushes a file without SQLite, as a program does that has it open itself.
    ///
    /// # Errors
    /// If the disk has failed.
    pub fn flush(&self, path: &Path) -> std::io::Result<()> {
        let mut state = self.0.lock();
        Volume::admit(&mut state, true).map_err(told)?;
        if let Some(file) = state.files.get_mut(path) {
            file.flush();
        }
        Ok(())
    }

    /// Renames a file. After a power loss it has the old name, unless the folder was flushed.
    ///
    /// # Errors
    /// If the disk has failed, or there is no such file.
    pub fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        let mut state = self.0.lock();
        Volume::admit(&mut state, false).map_err(told)?;
        std::fs::rename(from, to)?;
        let mut old = state.files.remove(from).unwrap_or_default();
        old.rename(state.files.entry(to.to_owned()).or_default());
        state.files.insert(from.to_owned(), old);
        Ok(())
    }

    /// Flushes the folder, so that its names are durable.
    ///
    /// # Errors
    /// If the disk has failed.
    pub fn flush_folder(&self) -> std::io::Result<()> {
        let mut state = self.0.lock();
        Volume::admit(&mut state, true).map_err(told)?;
        state.files.values_mut().for_each(File::flush_name);
        Ok(())
    }

    /// Cuts the power: nothing more reaches the disk, and every change fails.
    pub fn cut(&self) {
        self.0.lock().has_power = false;
    }

    /// Returns whether the disk has power.
    pub fn has_power(&self) -> bool {
        self.0.lock().has_power
    }

    /// Restores the power. Flushed bytes are there. Of bytes that were not flushed, none are with a `luck` of 0;
    /// otherwise `luck` decides which are, some of them in part. No store may have a file of the disk open.
    ///
    /// # Panics
    /// If the files cannot be written.
    pub fn restore(&self, luck: u64) {
        let mut state = self.0.lock();
        let mut dice = (luck > 0).then(|| Dice::new(luck));
        for (path, file) in &mut state.files {
            let content = file.after_power_loss(dice.as_mut());
            match &content {
                Some(content) => std::fs::write(path, content).expect("a file can be written"),
                None => drop(std::fs::remove_file(path)),
            }
            // The memory that processes share over a file is lost with the power.
            let _ = std::fs::remove_file(format!("{}-shm", path.display()));
            *file = File::durable(content);
        }
        state.has_power = true;
        state.plan = None;
    }
}

fn told(refusal: Refusal) -> std::io::Error {
    std::io::Error::other(format!("the disk says: {refusal:?}"))
}
