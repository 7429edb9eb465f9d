//! Running notes in a file, for stores that have a local folder: slots that are written in place, in memory that is shared
//! with the file. The system keeps what was written when the process dies, which is all that notes need; nothing is ever
//! flushed.
//!
//! The file's modification time is when its process was last known to live. While code runs and no note is written, a
//! small thread updates that time, so that the next process can tell code that had begun shortly before from code that
//! had run for long.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, SystemTime};

use dacapo_sync::{Mutex, MutexGuard, ranks};
use dacapo_sys::Slots;

use crate::{Doing, NoteSlot, RunNo, TaskNo, private_file};

/// The most notes at a time. Work beyond that is not noted.
const SLOTS: usize = 1024;
/// The size of a note: a kind with the second at which the work began, a number, and a turn. It takes two slots of the mapped file,
/// and the first is written last, so that a reader that finds it finds what belongs to it.
const SIZE: usize = 32;
/// The number of the format: the upper half of each note's kind. Notes of another number are ignored.
const FORMAT: u8 = 2;
const ATTEMPT: u8 = FORMAT << 4 | 1;
const RUN: u8 = FORMAT << 4 | 2;
const START: u8 = FORMAT << 4 | 3;
const ANSWER: u8 = FORMAT << 4 | 4;
const TURN: u8 = FORMAT << 4 | 5;
/// Work that began more than this many seconds before the process died is not counted. Code that kills a process does
/// so soon, and when a process is killed from outside, the code that has run for long is not the cause.
const COUNTED_FOR: u64 = 60;
/// How often a process that has open notes updates the file's modification time.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// Running notes in a file.
#[derive(Debug)]
pub struct RunningFile {
    path: PathBuf,
    file: File,
    slots: Slots,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    left: Vec<Doing>,
    /// The first slots are those that the last process left; they become free when they are forgotten.
    left_slots: usize,
    free: Vec<usize>,
    /// How many slots were ever used.
    used: usize,
    /// The thread that updates the modification time, while there are open notes.
    watcher: Option<Thread>,
    is_closed: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.used - self.left_slots == self.free.len()
    }
}

impl RunningFile {
    /// Opens the file of this path, with the notes that the last process left. Only one process may have it open.
    ///
    /// # Errors
    /// If it cannot be created, read or mapped.
    pub fn open(path: PathBuf) -> io::Result<Arc<Self>> {
        let mut file = private_file().create(true).truncate(false).read(true).write(true).open(&path)?;
        let last_seen = seconds(file.metadata()?.modified()?);
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take((SLOTS * SIZE) as u64).read_to_end(&mut bytes)?;
        let (noted, _) = bytes.as_chunks::<SIZE>();
        let left = noted.iter().filter_map(|bytes| read(bytes, last_seen)).collect();
        let left_slots = noted.iter().rposition(|bytes| *bytes != [0; SIZE]).map_or(0, |last| last + 1);
        let slots = Slots::map(&mut file, 2 * SLOTS)?;
        // New notes go behind those that were left, so that none of these is lost before it is forgotten.
        let state = State { left, left_slots, free: Vec::new(), used: left_slots, watcher: None, is_closed: false };
        Ok(Arc::new(Self { path, file, slots, state: Mutex::new(ranks::STORE_NOTES, state) }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Closes the notes and removes the file. Code that still runs was asked to stop, and is not counted if the process dies now.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let watcher = state.watcher.take();
        drop(state);
        if let Some(watcher) = watcher {
            watcher.unpark();
        }
        let _ = std::fs::remove_file(&self.path);
    }

    /// Writes a note that this work begins. Returns none if all slots are taken.
    pub fn began(self: &Arc<Self>, doing: Doing) -> Option<NoteSlot> {
        let mut state = self.lock();
        let slot = match state.free.pop() {
            Some(slot) => slot,
            None if state.used < SLOTS => {
                state.used += 1;
                state.used - 1
            }
            None => return None,
        };
        if state.watcher.is_none() && !state.is_closed {
            state.watcher = self.give_signs_of_life();
        }
        drop(state);
        let bytes = bytes_of(doing, seconds(SystemTime::now()));
        let (halves, _) = bytes.as_chunks();
        self.slots.set(2 * slot + 1, halves[1]);
        self.slots.set(2 * slot, halves[0]);
        Some(NoteSlot(slot))
    }

    /// Removes the note: its work has ended.
    pub fn ended(&self, slot: NoteSlot) {
        self.clear(slot.0);
        self.lock().free.push(slot.0);
    }

    /// Returns what the process before this one was running when it died, until it is forgotten.
    pub fn left(&self) -> Vec<Doing> {
        self.lock().left.clone()
    }

    /// Forgets what the process before this one left.
    pub fn forget_left(&self) {
        let mut state = self.lock();
        state.left.clear();
        let slots = std::mem::take(&mut state.left_slots);
        (0..slots).for_each(|slot| self.clear(slot));
        state.free.extend(0..slots);
    }

    fn clear(&self, slot: usize) {
        self.slots.clear(2 * slot);
        self.slots.clear(2 * slot + 1);
    }

    /// Starts the thread that updates the modification time. Without it, code that has run for long cannot be told from
    /// other code.
    fn give_signs_of_life(self: &Arc<Self>) -> Option<Thread> {
        let file = Arc::downgrade(self);
        // The thread sleeps first: most work ends at once, and must not cost a thread each.
        let watch = move || {
            loop {
                std::thread::park_timeout(SIGN_OF_LIFE);
                if !file.upgrade().is_some_and(|file| file.live_on()) {
                    return;
                }
            }
        };
        let started = std::thread::Builder::new().name("dacapo-running".to_owned()).spawn(watch);
        started.ok().map(|thread| thread.thread().clone())
    }

    /// Updates the modification time, and returns whether to do so again. A process without open notes has no thread
    /// for this; the next note starts one.
    fn live_on(&self) -> bool {
        let mut state = self.lock();
        if state.is_closed || state.is_idle() {
            state.watcher = None;
            return false;
        }
        drop(state);
        let _ = self.file.set_modified(SystemTime::now());
        true
    }
}

impl Drop for RunningFile {
    fn drop(&mut self) {
        if let Some(watcher) = self.lock().watcher.take() {
            watcher.unpark();
        }
    }
}

fn bytes_of(doing: Doing, began: u64) -> [u8; SIZE] {
    let (kind, number, turn) = match doing {
        Doing::Attempt(task) => (ATTEMPT, task.0, 0),
        Doing::Turn { run, turn } => (TURN, run.0, turn),
        Doing::Run(run) => (RUN, run.0, 0),
        Doing::Answer(run) => (ANSWER, run.0, 0),
        Doing::Start(start) => (START, start.cast_signed(), 0),
    };
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&(began << 8 | u64::from(kind)).to_be_bytes());
    bytes[8..16].copy_from_slice(&number.to_be_bytes());
    bytes[16..24].copy_from_slice(&turn.to_be_bytes());
    bytes
}

/// Returns the work that a note names, if it began shortly before the process was last known to live.
fn read(bytes: &[u8; SIZE], last_seen: u64) -> Option<Doing> {
    let (words, _) = bytes.as_chunks::<8>();
    let (head, number, turn) =
        (u64::from_be_bytes(words[0]), i64::from_be_bytes(words[1]), u64::from_be_bytes(words[2]));
    let (began, kind) = (head >> 8, head as u8);
    let doing = match kind {
        ATTEMPT => Doing::Attempt(TaskNo(number)),
        TURN => Doing::Turn { run: RunNo(number), turn },
        RUN => Doing::Run(RunNo(number)),
        ANSWER => Doing::Answer(RunNo(number)),
        START => Doing::Start(number.cast_unsigned()),
        _ => return None,
    };
    (last_seen.saturating_sub(began) <= COUNTED_FOR).then_some(doing)
}

fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dacapo_testkit::assert_golden;

    use super::*;

    #[test]
    fn running_notes_are_what_their_number_says() {
        let notes = [
            ("attempt", Doing::Attempt(TaskNo(7))),
            ("run", Doing::Run(RunNo(1 << 10))),
            ("start", Doing::Start(u64::MAX)),
            ("answer", Doing::Answer(RunNo(3 << 10))),
            ("turn", Doing::Turn { run: RunNo(1 << 10), turn: 258 }),
        ];
        let began = 1_772_366_400;
        let line = |(name, doing): &(&str, Doing)| {
            let bytes = bytes_of(*doing, began);
            assert_eq!(read(&bytes, began), Some(*doing), "{name}");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{name} {hex}\n")
        };
        let written: String = notes.iter().map(line).collect();
        assert_golden(env!("CARGO_MANIFEST_DIR"), "running-notes", FORMAT.into(), "hex", &written);
    }

    #[test]
    fn note_of_another_number_is_ignored() {
        let mut note = bytes_of(Doing::Run(RunNo(1)), 0);
        assert_eq!(read(&note, 0), Some(Doing::Run(RunNo(1))));
        note[7] = (FORMAT + 1) << 4 | 2;
        assert_eq!(read(&note, 0), None);
    }

    fn open(folder: &Path) -> Arc<RunningFile> {
        RunningFile::open(note(folder)).unwrap()
    }

    fn note(folder: &Path) -> PathBuf {
        folder.join("running")
    }

    #[test]
    fn notes_of_a_process_that_died_are_returned_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = [Doing::Answer(RunNo(1)), Doing::Turn { run: RunNo(2), turn: 7 }, Doing::Start(u64::MAX)];
        let notes = open(folder.path());
        assert_eq!(notes.left(), []);
        let first = notes.began(a).unwrap();
        notes.began(b).unwrap();
        notes.ended(first);
        assert_eq!(notes.began(c), Some(first), "a slot is used again");
        // As when a process dies: nothing is closed.
        drop(notes);
        // This one dies before its crash counts are stored, while it runs something itself.
        let notes = open(folder.path());
        assert_eq!(notes.left(), [c, b]);
        notes.began(a).unwrap();
        drop(notes);
        let notes = open(folder.path());
        assert_eq!(notes.left(), [c, b, a], "nothing is lost");
        notes.forget_left();
        assert_eq!(notes.left(), []);
        assert_eq!(notes.began(b), Some(NoteSlot(2)), "what was left makes room");
        drop(notes);
        let notes = open(folder.path());
        assert_eq!(notes.left(), [b]);
        notes.close();
        assert!(!note(folder.path()).exists(), "notes that are closed leave nothing");
        drop(notes);
        assert_eq!(open(folder.path()).left(), []);
    }

    /// The next process may start much later: what counts is when the last one was known to live.
    #[test]
    fn code_that_began_long_before_the_death_is_not_counted_whenever_the_next_process_starts() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        let began = 1_000_000;
        let [a, b] = [1, 2].map(|no| Doing::Attempt(TaskNo(no)));
        for (last_seen, counted) in [(began + 20, vec![a, b]), (began + 60, vec![a, b]), (began + 80, vec![b])] {
            std::fs::write(note(folder.path()), [bytes_of(a, began), bytes_of(b, began + 30)].concat()).unwrap();
            let file = File::options().write(true).open(note(folder.path())).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(last_seen)).unwrap();
            assert_eq!(open(folder.path()).left(), counted, "seen alive at {last_seen}");
        }
    }

    #[test]
    fn process_writes_its_sign_of_life_while_a_note_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let notes = open(folder.path());
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let changed = || std::fs::metadata(note(folder.path())).unwrap().modified().unwrap();
        assert!(!notes.live_on(), "nothing is under way");
        let slot = notes.began(Doing::Run(RunNo(1))).unwrap();
        assert!(notes.lock().watcher.is_some());
        notes.file.set_modified(long_ago).unwrap();
        assert!(notes.live_on());
        assert!(changed() > long_ago);
        notes.ended(slot);
        notes.file.set_modified(long_ago).unwrap();
        assert!(!notes.live_on());
        assert!(notes.lock().watcher.is_none(), "a process that does nothing has no thread for it");
        assert_eq!(changed(), long_ago);
        notes.began(Doing::Run(RunNo(2))).unwrap();
        assert!(notes.lock().watcher.is_some(), "until something begins again");
        notes.close();
        assert!(!notes.live_on(), "what runs on was asked to stop");
    }

    #[test]
    fn the_thread_that_gives_signs_of_life_ends_with_its_notes() {
        let folder = tempfile::tempdir().unwrap();
        let notes = open(folder.path());
        notes.began(Doing::Run(RunNo(1))).unwrap();
        let running = Arc::downgrade(&notes);
        drop(notes);
        // The thread holds it for a moment, at most.
        let since = std::time::Instant::now();
        while running.upgrade().is_some() {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "the thread still holds the store after {:?}",
                since.elapsed()
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn attempt_beyond_the_last_slot_is_not_noted_until_one_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let notes = open(folder.path());
        let slots: Vec<NoteSlot> =
            (0..SLOTS as i64).map(|no| notes.began(Doing::Attempt(TaskNo(no))).unwrap()).collect();
        assert_eq!(notes.began(Doing::Attempt(TaskNo(0))), None);
        slots.into_iter().for_each(|slot| notes.ended(slot));
        assert!(notes.began(Doing::Attempt(TaskNo(0))).is_some());
    }

    #[test]
    fn damaged_note_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        std::fs::write(note(folder.path()), b"something else entirely").unwrap();
        assert_eq!(open(folder.path()).left(), []);
    }
}
