//! A disk: a folder whose files can lose what was not flushed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use tempfile::TempDir;

use crate::file::{Change, Dice, File};
use crate::vfs;

/// A folder whose files can lose what was not flushed. Ends with the last handle on it.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    folder: TempDir,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, File>,
    counts: Counts,
    has_power: bool,
    plan: Option<Plan>,
    lies: Vec<Kind>,
}

/// From which change on, for how many, and how.
#[derive(Clone, Copy, Debug)]
struct Plan {
    from: u64,
    count: u64,
    fault: Fault,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no room for what is written. Flushes work.
    Full,
    /// The change fails: nothing is written, or the flush did nothing.
    Broken,
    /// The power is cut just before the change.
    PowerLoss,
}

/// Which file of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The file itself.
    Main,
    /// What was committed and is not in the file yet.
    Log,
    /// Any other: a journal, a temporary file.
    Other,
}

/// What was done to a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes, truncations, flushes and deletions.
    pub changes: u64,
    /// Flushes of the file itself.
    pub main_flushes: u64,
    /// Flushes of its log.
    pub log_flushes: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

/// So much reaches a disk together: of a larger write a part may.
const SECTOR: usize = 4096;

/// All disks of the process.
static DISKS: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// The disk on which this file is.
pub(crate) fn disk_of(path: &Path) -> Option<Arc<Inner>> {
    let disks = DISKS.lock();
    disks.iter().filter_map(Weak::upgrade).find(|disk| path.starts_with(disk.folder.path()))
}

impl Disk {
    /// A new disk.
    ///
    /// # Panics
    /// If there is no place for it, or SQLite takes no layer for files.
    #[expect(clippy::new_without_default, reason = "a disk is a place in the world, and none is like another")]
    pub fn new() -> Self {
        vfs::install();
        // By its real name, as SQLite will ask for it.
        let root = std::env::temp_dir().canonicalize().expect("there is a folder for temporary files");
        let folder = TempDir::new_in(root).expect("a folder can be made");
        let state = Mutex::new(State { has_power: true, ..State::default() });
        let inner = Arc::new(Inner { folder, state });
        let mut disks = DISKS.lock();
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&inner));
        Self(inner)
    }

    /// The path of a file on it.
    pub fn path(&self, name: &str) -> String {
        self.0.folder.path().join(name).display().to_string()
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
        Inner::admit(&mut state, true).map_err(told)?;
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
        Inner::admit(&mut state, false).map_err(told)?;
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
        Inner::admit(&mut state, true).map_err(told)?;
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

/// Why a change is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Broken,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn has_power(&self) -> bool {
        self.lock().has_power
    }

    /// A file was opened, and perhaps made.
    pub(crate) fn opened(&self, path: &Path, existed: bool) {
        let mut state = self.lock();
        // An empty file may have been made a moment ago, by the program itself: its name is not durable yet.
        let found = || File::durable(std::fs::read(path).ok().filter(|content| existed && !content.is_empty()));
        state.files.entry(path.to_owned()).or_insert_with(found).create();
    }

    /// Whether a change can be made now. If so, it is counted.
    fn admit(state: &mut State, is_flush: bool) -> Result<(), Refusal> {
        if !state.has_power {
            return Err(Refusal::Broken);
        }
        let number = state.counts.changes;
        state.counts.changes += 1;
        match state.plan.filter(|plan| number >= plan.from && number - plan.from < plan.count) {
            Some(Plan { fault: Fault::Full, .. }) if !is_flush => Err(Refusal::Full),
            Some(Plan { fault: Fault::Broken, .. }) => Err(Refusal::Broken),
            Some(Plan { fault: Fault::PowerLoss, .. }) => {
                state.has_power = false;
                Err(Refusal::Broken)
            }
            _ => Ok(()),
        }
    }

    fn change(&self, path: &Path, change: Change) -> Result<(), Refusal> {
        let mut state = self.lock();
        Self::admit(&mut state, false)?;
        if let Change::Write { bytes, .. } = &change {
            state.counts.bytes += bytes.len() as u64;
        }
        state.files.entry(path.to_owned()).or_default().change(change);
        Ok(())
    }

    /// Writes as much as it can, sector by sector, each of which is a change of its own. Says how much, if that is not all.
    pub(crate) fn write(&self, path: &Path, at: usize, bytes: &[u8]) -> Result<(), (usize, Refusal)> {
        let mut done = 0;
        for sector in bytes.chunks(SECTOR) {
            let change = Change::Write { at: at + done, bytes: sector.to_vec() };
            self.change(path, change).map_err(|refusal| (done, refusal))?;
            done += sector.len();
        }
        Ok(())
    }

    pub(crate) fn truncate(&self, path: &Path, size: usize) -> Result<(), Refusal> {
        self.change(path, Change::Truncate(size))
    }

    /// A deletion; it is durable at once if the folder is flushed with it.
    pub(crate) fn delete(&self, path: &Path, flushes_folder: bool) -> Result<(), Refusal> {
        let mut state = self.lock();
        Self::admit(&mut state, false)?;
        state.files.entry(path.to_owned()).or_default().delete();
        if flushes_folder {
            state.files.values_mut().for_each(File::flush_name);
        }
        Ok(())
    }

    pub(crate) fn flush(&self, path: &Path, kind: Kind) -> Result<(), Refusal> {
        let mut state = self.lock();
        Self::admit(&mut state, true)?;
        match kind {
            Kind::Main => state.counts.main_flushes += 1,
            Kind::Log => state.counts.log_flushes += 1,
            Kind::Other => {}
        }
        if state.lies.contains(&kind) {
            return Ok(());
        }
        let Some(file) = state.files.get_mut(path) else { return Ok(()) };
        file.flush();
        // SQLite flushes the folder with the first flush of a log or journal that it made, and of those only.
        if kind != Kind::Main && file.is_new() {
            state.files.values_mut().for_each(File::flush_name);
        }
        Ok(())
    }
}
