//! Runs as a store keeps them.

use dacapo_core::{IdReuse, Name, ParentClose, Seq, Timestamp};

use crate::{Epoch, MessageRow, NodeNo, RunNo, Status, TimerKind};

/// A run to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// Its run id, unique in the store. Ids that rise with time keep the index on them short.
    pub run_id: Name,
    /// The caller's name for it, unique among open runs.
    pub workflow_id: Name,
    /// Its type.
    pub workflow: Name,
    /// The queue it is served on.
    pub queue: Name,
    /// When it is started.
    pub started: Timestamp,
    /// What it keeps for life, encoded.
    pub pins: Vec<u8>,
    /// Its start job, encoded: kept as a message unless its first turn is committed with it.
    pub start: Vec<u8>,
    /// The run that it is a child of.
    pub parent: Option<Parent>,
    /// The first run of its chain; itself where it is empty.
    pub first_run_id: Name,
    /// Whether its workflow id may have been used before.
    pub reuse: IdReuse,
    /// What to do when its workflow id is in use now.
    pub conflict: Conflict,
    /// The caller's key for this request: the same key again is the same start.
    pub request: Option<Name>,
    /// Timeouts and delays that begin with it.
    pub timers: Vec<(Timestamp, TimerKind)>,
    /// Notes for people, encoded.
    pub memo: Vec<u8>,
    /// What it can be found by: names and encoded values.
    pub attributes: Vec<(Name, Vec<u8>)>,
}

/// The run that a child belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The parent.
    pub run: RunNo,
    /// The operation of the parent that the child is.
    pub seq: Seq,
    /// What becomes of the child when the parent closes.
    pub close: ParentClose,
}

/// What to do when a workflow id is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// Refuse.
    #[default]
    Fail,
    /// Give the run that is open.
    UseExisting,
    /// Terminate the run that is open, and start.
    TerminateExisting,
}

/// A run as a store keeps it: all that describes it without its history.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Its number.
    pub no: RunNo,
    /// Its run id.
    pub run_id: Name,
    /// The caller's name for it.
    pub workflow_id: Name,
    /// Its type.
    pub workflow: Name,
    /// The queue it is served on.
    pub queue: Name,
    /// How it stands.
    pub status: Status,
    /// When it was started.
    pub started: Timestamp,
    /// When it closed.
    pub closed: Option<Timestamp>,
    /// How many turns are recorded: the number of the next.
    pub turns: u64,
    /// The node that holds it in memory.
    pub owner: Option<NodeNo>,
    /// The fence.
    pub epoch: Epoch,
    /// What it keeps for life, encoded.
    pub pins: Vec<u8>,
    /// The run that it is a child of.
    pub parent: Option<Parent>,
    /// The first run of its chain.
    pub first_run_id: Name,
    /// Why it does not go on, if it cannot.
    pub stuck: Option<Stuck>,
    /// How often its process died while its code was played, since a turn was last committed.
    pub crash_count: u32,
    /// Notes for people, encoded.
    pub memo: Vec<u8>,
    /// The snapshot it published last.
    pub published: Option<Vec<u8>>,
    /// What it came to, encoded.
    pub result: Option<Vec<u8>>,
}

/// What a store keeps of a run beside its row and its turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Belongings {
    /// The request that started it.
    pub request: Option<Name>,
    /// What it can be found by: names and encoded values.
    pub attributes: Vec<(Name, Vec<u8>)>,
    /// All messages it was ever sent, with the answers: a message that is sent again is recognised by its key.
    pub messages: Vec<MessageRow>,
}

/// Why a run does not go on, though it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// What happened, where, and what to do.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried again.
    pub retry: Timestamp,
}
