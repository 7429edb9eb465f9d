//! Running notes: which user code a process runs that may kill it. A note outlives the process, so that the next
//! process knows what not to run again and again.
//!
//! A note is written before each attempt of an activity and before each turn, so it must cost next to nothing: no
//! commit, no flush. Notes may be lost when the machine loses its power: then the code was not the cause.

use crate::{RunNo, TaskNo};

/// Work that runs users' code, which may kill the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Doing {
    /// An attempt of this task.
    Attempt(TaskNo),
    /// Code of this run: its turns, its local work.
    Run(RunNo),
    /// A query of this run.
    Answer(RunNo),
    /// The first turn of a run that is not stored yet. The number is a function of the workflow id.
    Start(u64),
}

/// The place of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteSlot(pub usize);

/// Notes of the code that runs. Notes are hints: one that cannot be written is left out.
pub trait RunningNotes {
    /// Writes a note that this work begins. Returns none if it is not noted.
    fn began(&self, doing: Doing) -> Option<NoteSlot>;
    /// Removes the note: its work has ended.
    fn ended(&self, slot: NoteSlot);
    /// Returns what the process before this one was running when it died, until [`RunningNotes::forget_left`] is called.
    /// Empty if that process was shut down, or there was none.
    fn left(&self) -> Vec<Doing>;
    /// Returns whether a store of this kind tells the next process what this one was running when it died. Where it does not, no crash is
    /// counted and nothing is quarantined. A store that is gone with its process answers true: it has no next process.
    fn keeps_notes(&self) -> bool {
        false
    }
    /// Forgets what the process before this one left. The caller has made durable what follows from it.
    fn forget_left(&self);
}
