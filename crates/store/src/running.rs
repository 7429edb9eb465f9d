//! What a process is doing that may kill it: a note that outlives the process, so that the next one knows what not to do
//! again and again.
//!
//! It is written before each attempt of an activity, so it must cost next to nothing: no commit, no flush. What a machine
//! that lost its power was doing nobody has to know, for it was not the code.

use crate::TaskNo;

/// Something that runs code of users, which may take the whole process with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Doing {
    /// An attempt of this task.
    Attempt(TaskNo),
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
    /// What the process before this one was doing when it died, once. Nothing if it was shut down, or had nobody before it.
    fn left(&self) -> Vec<Doing>;
}
