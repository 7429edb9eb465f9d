//! Tasks: activities that are to be tried.

use dacapo_core::{Name, Seq, Timestamp};

use crate::{NodeNo, RunNo, TaskNo};

/// A task that a turn makes. Its input stays where it was recorded: in the turn's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The operation.
    pub seq: Seq,
    /// The queue.
    pub queue: Name,
    /// Not before this.
    pub ready: Timestamp,
    /// Lower goes first.
    pub priority: i32,
    /// The command's place in its turn.
    pub position: u32,
}

/// A task as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Its number.
    pub no: TaskNo,
    /// The run it belongs to.
    pub run: RunNo,
    /// The operation.
    pub seq: Seq,
    /// The queue.
    pub queue: Name,
    /// Not before this.
    pub ready: Timestamp,
    /// Lower goes first.
    pub priority: i32,
    /// The turn whose command it is.
    pub turn: u64,
    /// The command's place in that turn.
    pub position: u32,
    /// The attempt that comes next, from 1.
    pub attempt: u32,
    /// How often an attempt was started and never heard of again.
    pub strikes: u32,
    /// When the attempt began that somebody outside completes; none if an attempt is to be made.
    pub outside: Option<Timestamp>,
    /// The node that tries it now.
    pub holder: Option<NodeNo>,
    /// How the last attempt failed, encoded.
    pub failure: Option<Vec<u8>>,
    /// What the last attempt reported of its progress, encoded.
    pub details: Option<Vec<u8>>,
}
