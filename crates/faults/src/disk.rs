//! A disk: a folder whose files can lose what was not flushed.

use std::path::Path;
use std::sync::Arc;

use crate::file::{Dice, File};
use crate::vfs;
use crate::volume::{Counts, Fault, Kind, Plan, Refusal, Volume};

/// A folder whose files can lose what was not flushed. Ends with the last handle on it.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Volume>);

impl Disk {
    /// A new disk.
    ///
    /// # Panics
    /// If there is no place for it, or SQLite takes no layer for files.
    #[expect(clippy::new_without_default, reason = "a disk is a place in the world, and none is like another")]
    pub fn new() -> Self {
        vfs::install();
        Self(Volume::new())
    }

    /// The path of a file on it.
    pub fn path(&self, name: &str) -> String {
        self.0.folder().join(name).display().to_string()
    }

    /// What was done to it so far.
    pub fn counts(&self) -> Counts {
        self.0.lock().counts
    }

    /// From that change on, counted from 0 over the life of the disk, so many changes go wrong.
    pub fn fail_from(&self, change: u64, count: u64, fault: Fault) {
        self.0.lock().plan = Some(Plan { from: change, count, fault });
    }

    /// Nothing goes wrong any more.
    pub fn mend(&self) {
        self.0.lock().plan = None;
    }

    /// From now on flushes of such files do nothing and say that they did.
    pub fn lie_about(&self, kind: Kind) {
        self.0.lock().lies.push(kind);
    }

    /// Flushes a file past SQLite, as a program does that has it open itself.
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

    /// Gives a file another name. After a power loss it has the old one, unless the folder was flushed.
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

    /// Flushes the folder: names are durable.
    ///
    /// # Errors
    /// If the disk has failed.
    pub fn flush_folder(&self) -> std::io::Result<()> {
        let mut state = self.0.lock();
        Volume::admit(&mut state, true).map_err(told)?;
        state.files.values_mut().for_each(File::flush_name);
        Ok(())
    }

    /// Cuts the power: nothing more reaches the disk, and whoever tries is told so.
    pub fn cut(&self) {
        self.0.lock().has_power = false;
    }

    /// Whether it has power.
    pub fn has_power(&self) -> bool {
        self.0.lock().has_power
    }

    /// The power comes back. What was flushed is there; of what was not, nothing with a luck of 0, and otherwise what the
    /// luck decides, some of it in part. No store may have a file of it open.
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
            // The memory that processes share over a file is gone with the power.
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
