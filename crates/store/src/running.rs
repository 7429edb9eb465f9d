//! Running notes: which user code a process runs that may kill it. A note outlives the process, so that the next
//! process knows what not to run again and again.
//!
//! A note is written before each attempt of an activity and before each turn, so it must cost next to nothing: no
//! commit, no flush. Notes may be lost when the machine loses its power: then the code was not the cause.

use std::path::Path;

use crate::{RunNo, StoreError, TaskNo};

/// Work that runs users' code, which may kill the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Doing {
    /// An attempt of this task.
    Attempt(TaskNo),
    /// Turns of this run that were recorded before, or this turn, for the first time. Once the run has this turn, it has gone on.
    Turn {
        /// The run.
        run: RunNo,
        /// The number of the first turn that is not recorded.
        turn: u64,
    },
    /// Other code of this run: its local work, which goes on beside its turns.
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
    /// Keeps the notes in this local folder, for a store that has no place of its own for them. Called once, before any code runs.
    /// Other stores need none and ignore it.
    ///
    /// # Errors
    /// If another process uses the folder, it has notes about another store, or notes cannot be written there.
    fn keep_in(&self, folder: &Path) -> Result<(), StoreError> {
        let _ = folder;
        Ok(())
    }
    /// Returns whether this store tells the next process what this one was running when it died. Where it does not, no crash is
    /// counted and nothing is quarantined. A store that is gone with its process answers true: it has no next process.
    fn keeps_notes(&self) -> bool {
        false
    }
    /// Forgets what the process before this one left. The caller has made durable what follows from it.
    fn forget_left(&self);
}
