//! The note of what is under way: a file beside the database, of slots that are written in place. The system keeps what was
//! written when the process dies, which is all that is asked of it; nothing is ever flushed.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use dacapo_store::{Doing, Running, Slot, TaskNo};

use crate::SqliteStore;

/// How much is noted at a time, at most; of what is beyond that nobody hears.
const SLOTS: usize = 1024;
/// A kind with the second at which it began, and a number.
const SIZE: usize = 16;
const ATTEMPT: u8 = 1;
/// What began so many seconds before the next process opens the file is not to be blamed: what kills a process does so
/// soon, and a process that is killed from outside takes along what has run for long.
const SUSPECT_FOR: u64 = 60;

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
        let now = seconds();
        let left = bytes.as_chunks::<SIZE>().0.iter().filter_map(|bytes| read(bytes, now)).collect();
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
    bytes[..8].copy_from_slice(&(seconds() << 8 | u64::from(kind)).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn read(bytes: &[u8; SIZE], now: u64) -> Option<Doing> {
    let (head, number) = bytes.split_first_chunk::<8>()?;
    let head = u64::from_be_bytes(*head);
    let (began, kind) = (head >> 8, head as u8);
    match kind {
        ATTEMPT if now.saturating_sub(began) <= SUSPECT_FOR => {
            Some(Doing::Attempt(TaskNo(i64::from_be_bytes(*number.first_chunk()?))))
        }
        _ => None,
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
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

    #[test]
    fn what_has_run_for_long_is_not_to_be_blamed() {
        let doing = Doing::Attempt(TaskNo(7));
        let (bytes, now) = (bytes_of(doing), seconds());
        assert_eq!(read(&bytes, now + 10), Some(doing));
        assert_eq!(read(&bytes, now + 1_000), None);
        assert_eq!(read(&[0; SIZE], now), None);
    }

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
        dacapo_store::Writes::close(&store).unwrap();
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
