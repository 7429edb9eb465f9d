//! The state of a disk: its files, what of them is durable, and the planned faults. The shim around SQLite's layer for
//! files asks it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use tempfile::TempDir;

use crate::file::{Change, File};

/// A disk, shared by all that have it open.
#[derive(Debug)]
pub(crate) struct Volume {
    folder: TempDir,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) files: BTreeMap<PathBuf, File>,
    pub(crate) counts: Counts,
    pub(crate) has_power: bool,
    pub(crate) plan: Option<FaultPlan>,
    pub(crate) lies: Vec<FileKind>,
}

/// The planned fault: from which change on, for how many changes, and which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultPlan {
    pub(crate) from: u64,
    pub(crate) count: u64,
    pub(crate) fault: Fault,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk has no room for writes. Flushes work.
    Full,
    /// The change fails: nothing is written, or the flush did nothing.
    Broken,
    /// The power is cut immediately before the change.
    PowerLoss,
}

/// The kind of a store's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The database file itself.
    Main,
    /// The log: commits that are not in the database file yet.
    Log,
    /// Any other file: a journal, a temporary file.
    Other,
}

/// The counts of changes of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of writes, truncations, flushes and deletions.
    pub changes: u64,
    /// The number of flushes of the database file.
    pub main_flushes: u64,
    /// The number of flushes of its log.
    pub log_flushes: u64,
    /// The number of bytes written.
    pub bytes: u64,
}

/// The bytes that reach a disk together: of a larger write only a part may.
const SECTOR: usize = 4096;

/// All disks of the process.
static DISKS: Mutex<Vec<Weak<Volume>>> = Mutex::new(Vec::new());

/// Returns the disk that this file is on.
pub(crate) fn disk_of(path: &Path) -> Option<Arc<Volume>> {
    let disks = DISKS.lock();
    disks.iter().filter_map(Weak::upgrade).find(|disk| path.starts_with(disk.folder.path()))
}

/// Why a change is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Broken,
}

impl Volume {
    /// Creates a disk that has power.
    pub(crate) fn new() -> Arc<Self> {
        // The folder's real name, because SQLite asks with that.
        let root = std::env::temp_dir().canonicalize().expect("there is a folder for temporary files");
        let folder = TempDir::new_in(root).expect("a folder can be made");
        let state = Mutex::new(State { has_power: true, ..State::default() });
        let volume = Arc::new(Self { folder, state });
        let mut disks = DISKS.lock();
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&volume));
        volume
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn has_power(&self) -> bool {
        self.lock().has_power
    }

    /// Records that a file was opened, and perhaps created.
    pub(crate) fn opened(&self, path: &Path, existed: bool) {
        let mut state = self.lock();
        // An empty file may have been created a moment ago by the program itself: its name is not durable yet.
        let found = || File::durable(std::fs::read(path).ok().filter(|content| existed && !content.is_empty()));
        state.files.entry(path.to_owned()).or_insert_with(found).create();
    }

    /// Decides whether a change can be made now, and counts it.
    pub(crate) fn admit(state: &mut State, is_flush: bool) -> Result<(), Refusal> {
        if !state.has_power {
            return Err(Refusal::Broken);
        }
        let number = state.counts.changes;
        state.counts.changes += 1;
        match state.plan.filter(|plan| number >= plan.from && number - plan.from < plan.count) {
            Some(FaultPlan { fault: Fault::Full, .. }) if !is_flush => Err(Refusal::Full),
            Some(FaultPlan { fault: Fault::Broken, .. }) => Err(Refusal::Broken),
            Some(FaultPlan { fault: Fault::PowerLoss, .. }) => {
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

    /// Writes as much as it can, sector by sector, each of which is a change of its own. An error has how much was
    /// written.
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

    /// Deletes a file. The deletion is durable at once if the folder is flushed with it.
    pub(crate) fn delete(&self, path: &Path, flushes_folder: bool) -> Result<(), Refusal> {
        let mut state = self.lock();
        Self::admit(&mut state, false)?;
        state.files.entry(path.to_owned()).or_default().delete();
        if flushes_folder {
            state.files.values_mut().for_each(File::flush_name);
        }
        Ok(())
    }

    pub(crate) fn flush(&self, path: &Path, kind: FileKind) -> Result<(), Refusal> {
        let mut state = self.lock();
        Self::admit(&mut state, true)?;
        match kind {
            FileKind::Main => state.counts.main_flushes += 1,
            FileKind::Log => state.counts.log_flushes += 1,
            FileKind::Other => {}
        }
        if state.lies.contains(&kind) {
            return Ok(());
        }
        let Some(file) = state.files.get_mut(path) else { return Ok(()) };
        file.flush();
        // SQLite flushes the folder with the first flush of a log or journal that it made, and only of those.
        if kind != FileKind::Main && file.is_new() {
            state.files.values_mut().for_each(File::flush_name);
        }
        Ok(())
    }
}
