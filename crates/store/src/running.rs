//! What a process is doing that may kill it: a note that outlives the process, so that the next one knows what not to do
//! again and again.
//!
//! It is written before each attempt of an activity and before each turn, so it must cost next to nothing: no commit, no flush.
//! What a machine that lost its power was doing nobody has to know, for it was not the code.

use crate::{RunNo, TaskNo};

/// Something that runs code of users, which may take the whole process with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Doing {
    /// An attempt of this task.
    Attempt(TaskNo),
    /// Code of this run: its turns, its local work.
    Run(RunNo),
    /// An answer of this run to a question.
    Answer(RunNo),
    /// The first turn of a run that no store knows yet, by a number that its workflow id always comes to.
    Start(u64),
}

/// Where something is noted that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub usize);

/// Notes what is under way. Notes are hints: one that cannot be made is left out.
pub trait Running {
    /// This begins. None if it is not noted.
    fn began(&self, doing: Doing) -> Option<Slot>;
    /// What was noted there is over.
    fn ended(&self, slot: Slot);
    /// What the process before this one was doing when it died, until it is forgotten. Nothing if it was shut down, or had
    /// nobody before it.
    fn left(&self) -> Vec<Doing>;
    /// What the process before this one left need not be known any more: whatever follows from it is durable.
    fn forget_left(&self);
}
