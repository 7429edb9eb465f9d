//! The note of what is under way: a file beside the database, of slots that are written in place. The system keeps what was
//! written when the process dies, which is all that is asked of it; nothing is ever flushed.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dacapo_store::{Doing, Running, Slot, TaskNo};

use crate::SqliteStore;

/// How much is noted at a time, at most; of what is beyond that nobody hears.
const SLOTS: usize = 1024;
/// A kind and a number.
const SIZE: usize = 16;
const ATTEMPT: i64 = 1;

pub(crate) struct RunningFile {
    path: PathBuf,
    file: File,
    state: Mutex<State>,
}

struct State {
    left: Vec<Doing>,
    free: Vec<usize>,
    /// How many slots were ever used.
    used: usize,
}

impl RunningFile {
    /// The note beside this file, with what the last process left in it. None if there can be none.
    pub(crate) fn open(database: &str) -> Option<Self> {
        let real = std::fs::canonicalize(database).ok()?;
        let mut path = real.into_os_string();
        path.push("-running");
        let path = PathBuf::from(path);
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).ok()?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take((SLOTS * SIZE) as u64).read_to_end(&mut bytes).ok()?;
        file.set_len(0).ok()?;
        let left = bytes.as_chunks::<SIZE>().0.iter().filter_map(read).collect();
        Some(Self { path, file, state: Mutex::new(State { left, free: Vec::new(), used: 0 }) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever runs on was asked to stop, and is not to be blamed for what happens now.
    pub(crate) fn close(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn begin(&self, doing: Doing) -> Option<Slot> {
        let mut state = self.lock();
        let slot = match state.free.pop() {
            Some(slot) => slot,
            None if state.used < SLOTS => {
                state.used += 1;
                state.used - 1
            }
            None => return None,
        };
        drop(state);
        write_at(&self.file, &bytes_of(doing), (slot * SIZE) as u64);
        Some(Slot(slot))
    }

    fn end(&self, slot: Slot) {
        write_at(&self.file, &[0; SIZE], (slot.0 * SIZE) as u64);
        self.lock().free.push(slot.0);
    }
}

fn bytes_of(doing: Doing) -> [u8; SIZE] {
    let (kind, number) = match doing {
        Doing::Attempt(task) => (ATTEMPT, task.0),
        // A note that nobody reads.
        _ => (0, 0),
    };
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn read(bytes: &[u8; SIZE]) -> Option<Doing> {
    let (kind, number) = bytes.split_first_chunk::<8>()?;
    match i64::from_be_bytes(*kind) {
        ATTEMPT => Some(Doing::Attempt(TaskNo(i64::from_be_bytes(*number.first_chunk()?)))),
        _ => None,
    }
}

/// A note that cannot be made is left out.
#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) {
    let _ = std::os::unix::fs::FileExt::write_all_at(file, bytes, at);
}

#[cfg(not(unix))]
fn write_at(_: &File, _: &[u8], _: u64) {}

impl Running for SqliteStore {
    fn began(&self, doing: Doing) -> Option<Slot> {
        self.running.as_ref()?.begin(doing)
    }

    fn ended(&self, slot: Slot) {
        if let Some(running) = &self.running {
            running.end(slot);
        }
    }

    fn left(&self) -> Vec<Doing> {
        self.running.as_ref().map(|running| std::mem::take(&mut running.lock().left)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn open(folder: &Path) -> SqliteStore {
        SqliteStore::open(folder.join("x.db").to_str().unwrap()).unwrap()
    }

    #[test]
    fn what_was_under_way_when_a_process_died_is_told_to_the_next_one_once() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = [1, 2, 3].map(|no| Doing::Attempt(TaskNo(no)));
        let store = open(folder.path());
        assert_eq!(store.left(), []);
        let first = store.began(a).unwrap();
        store.began(b).unwrap();
        store.ended(first);
        assert_eq!(store.began(c), Some(first), "a slot is used again");
        // As a process that dies does: nothing is closed.
        drop(store);
        let store = open(folder.path());
        assert_eq!(store.left(), [c, b]);
        assert_eq!(store.left(), [], "it is told once");
        drop(store);
        let store = open(folder.path());
        assert_eq!(store.left(), []);
        store.began(a);
        dacapo_store::Writes::close(&store);
        assert!(!folder.path().join("x.db-running").exists(), "a store that is closed leaves nothing");
        drop(store);
        assert_eq!(open(folder.path()).left(), []);
    }

    #[test]
    fn what_is_beyond_the_slots_is_not_noted_and_disturbs_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let slots: Vec<Slot> = (0..SLOTS as i64).map(|no| store.began(Doing::Attempt(TaskNo(no))).unwrap()).collect();
        assert_eq!(store.began(Doing::Attempt(TaskNo(0))), None);
        slots.into_iter().for_each(|slot| store.ended(slot));
        assert!(store.began(Doing::Attempt(TaskNo(0))).is_some());
    }

    #[test]
    fn a_note_that_is_damaged_blames_nobody() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        std::fs::write(folder.path().join("x.db-running"), b"something else entirely").unwrap();
        assert_eq!(open(folder.path()).left(), []);
    }
}
