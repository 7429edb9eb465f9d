//! Runs as a store keeps them.

use dacapo_client::{IdConflict, Status, Stuck};
use dacapo_core::{AttributeValue, IdReuse, Name, ParentClose, Seq, Timestamp};

use crate::{Epoch, MessageRow, NodeNo, RunNo, TimerKind};

/// A run to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// The run id, unique in the store. Ids that rise with time keep the index on them short.
    pub run_id: Name,
    /// The caller's id for the workflow, unique among open runs.
    pub workflow_id: Name,
    /// The workflow type.
    pub workflow: Name,
    /// The queue that it is served on.
    pub queue: Name,
    /// When the run is started.
    pub started: Timestamp,
    /// The pins: what the run keeps for its whole life, encoded.
    pub pins: Vec<u8>,
    /// The start job, encoded: stored as a message unless the first turn is committed with the run.
    pub start: Vec<u8>,
    /// The run that this one is a child of.
    pub parent: Option<Parent>,
    /// The run id of the first run of the chain. Empty: this run is the first.
    pub first_run_id: Name,
    /// Whether the workflow id may have been used before.
    pub reuse: IdReuse,
    /// The rule for a workflow id that is in use now.
    pub conflict: IdConflict,
    /// The caller's key for this request: a second start with the same key returns the same run.
    pub request: Option<Name>,
    /// Timeouts and delays that begin with the run.
    pub timers: Vec<(Timestamp, TimerKind)>,
    /// The memo, encoded.
    pub memo: Vec<u8>,
    /// The search attributes.
    pub attributes: Vec<(Name, AttributeValue)>,
}

impl NewRun {
    /// Returns the run id of the first run of the chain: its own, if it is the first.
    pub fn chain(&self) -> &Name {
        if self.first_run_id.is_empty() { &self.run_id } else { &self.first_run_id }
    }
}

/// The run that a child belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The parent's number.
    pub run: RunNo,
    /// The operation of the parent that awaits the child.
    pub seq: Seq,
    /// The rule for the child when the parent closes.
    pub close: ParentClose,
}

/// A run as a store keeps it: all that describes it but its history.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// The run's number.
    pub no: RunNo,
    /// The run id.
    pub run_id: Name,
    /// The caller's id for the workflow.
    pub workflow_id: Name,
    /// The workflow type.
    pub workflow: Name,
    /// The queue that it is served on.
    pub queue: Name,
    /// The run's status.
    pub status: Status,
    /// When the run was started.
    pub started: Timestamp,
    /// When the run closed.
    pub closed: Option<Timestamp>,
    /// The number of turns recorded: also the number of the next turn.
    pub turns: u64,
    /// The node that holds it in memory.
    pub owner: Option<NodeNo>,
    /// The fence.
    pub epoch: Epoch,
    /// The pins: what the run keeps for its whole life, encoded.
    pub pins: Vec<u8>,
    /// The run that this one is a child of.
    pub parent: Option<Parent>,
    /// The run id of the first run of the chain.
    pub first_run_id: Name,
    /// Why the run is stuck. None: it is not.
    pub stuck: Option<Stuck>,
    /// The crash count: how often the process died while the run's code was played, since a turn was last committed.
    pub crash_count: u32,
    /// The memo, encoded.
    pub memo: Vec<u8>,
    /// The snapshot that the run published last.
    pub published: Option<Vec<u8>>,
    /// The result or failure of the run, encoded.
    pub result: Option<Vec<u8>>,
}

impl RunRow {
    /// Creates the row of a run that is started under this number, with this many turns.
    pub fn started(no: RunNo, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Self {
        Self {
            no,
            run_id: new.run_id.clone(),
            workflow_id: new.workflow_id.clone(),
            workflow: new.workflow.clone(),
            queue: new.queue.clone(),
            status: Status::Open,
            started: new.started,
            closed: None,
            turns,
            owner,
            epoch,
            pins: new.pins.clone(),
            parent: new.parent.clone(),
            first_run_id: new.chain().clone(),
            stuck: None,
            crash_count: 0,
            memo: new.memo.clone(),
            published: None,
            result: None,
        }
    }

    /// Creates the row of a run that another store kept, under this number. Its owner and its parent belong to the other store.
    #[must_use]
    pub fn imported(&self, no: RunNo) -> Self {
        Self { no, owner: None, epoch: Epoch::default(), parent: None, crash_count: 0, ..self.clone() }
    }
}

/// All that a store keeps of a run beside its row and its turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Belongings {
    /// The request that started the run.
    pub request: Option<Name>,
    /// The search attributes.
    pub attributes: Vec<(Name, AttributeValue)>,
    /// All messages that the run was ever sent, with their outcomes: a message that is sent again is recognised by its
    /// key.
    pub messages: Vec<MessageRow>,
}
