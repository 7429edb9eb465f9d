//! Several nodes on one store: which of them owns a run, and how they reach each other.
//!
//! A run belongs to a shard, and a shard to one node that serves its task queue. The owner alone plays the run; any node
//! may send it messages, and work at its activities. A node notifies the owner of what it has stored for a run. A
//! notice may be lost or come twice, so every node also looks for itself from time to time.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Name, Seq, Timestamp};

use crate::{NodeNo, RunNo, RunRow, Shards, StoreError, TaskNo, TaskRow, TimerRow};

type Result<T> = std::result::Result<T, StoreError>;

/// Whether several nodes may serve a store at once.
pub trait Nodes {
    /// Returns what a node needs to share the store with others. None: one process serves it.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }
}

/// A store that several nodes serve.
pub trait SharedStore: Send + Sync {
    /// Makes this process a node that serves these queues. `events` is called from now on; the store may call it on any
    /// thread, and holds no lock meanwhile.
    fn join(&self, queues: &[Name], build: &Name, events: Arc<dyn NodeEvents>) -> Result<()>;
    /// Returns this node's number.
    fn node(&self) -> NodeNo;
    /// Returns whether this node owns the shard of a run. Reads memory alone.
    fn owns(&self, run: RunNo) -> bool;
    /// Returns whether a node serves this queue, as far as this one knows. Reads memory alone.
    fn is_served(&self, queue: &str) -> bool;
    /// Returns whether another node serves this queue, as far as this one knows. Reads memory alone.
    fn others_serve(&self, queue: &str) -> bool;
    /// Returns the builds that other nodes run, as far as this one knows. Reads memory alone.
    fn other_builds(&self) -> Vec<Name>;
    /// Reads the time of day by the clock that all nodes share.
    fn clock(&self) -> Result<Timestamp>;

    /// Notifies the owner of a run, or the nodes that serve a queue. Never waits: notices that are equal may be sent as
    /// one.
    fn notify(&self, to: Recipient, notice: Notice);
    /// Calls a node, and hands its answer to `answered`. If there is no such node it fails with [`Refused::NotOwner`], and the
    /// call is not carried out. If the node is gone before it has answered, it is not known whether the call was.
    ///
    /// [`Refused::NotOwner`]: crate::Refused::NotOwner
    fn call(&self, to: Recipient, request: Vec<u8>, answered: CallAnswered);

    /// Waits until the lease of this node runs, if it is over: meanwhile others may have taken its runs, and what it has of them
    /// in memory may be outdated.
    fn confirm_lease(&self) -> Result<()>;
    /// Serves no queue from now on: the node gives all its shards to others that serve their queues, and gets none.
    fn stop_serving(&self) -> Result<()>;

    /// Takes tasks that no node has, at most so many for each queue. They are this node's from now on.
    fn claim(&self, places: &[(Name, usize)]) -> Result<Vec<TaskRow>>;
    /// Gives tasks back that this node cannot work at. For a while it takes none of them.
    fn decline(&self, tasks: &[TaskNo]) -> Result<()>;
    /// Lists the tasks of runs in these shards that are this node's to work at: those of its queues that no other node
    /// has. Above this number, in the order of their numbers.
    fn tasks_in(&self, shards: &Shards, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>>;
    /// Looks for what notices may have missed: messages for runs in these shards, and the ends of these runs.
    fn look(&self, shards: &Shards, runs: &[RunNo]) -> Result<Looked>;
    /// Lists open runs in these shards that have messages that no turn has taken.
    fn unseen_in(&self, shards: &Shards) -> Result<Vec<RunNo>>;
    /// Lists stuck runs in these shards.
    fn stuck_in(&self, shards: &Shards) -> Result<Vec<RunRow>>;
    /// Lists the timers of a run.
    fn timers_of(&self, run: RunNo) -> Result<Vec<TimerRow>>;
    /// Lists the nodes, those that are gone left out.
    fn nodes(&self) -> Result<Vec<NodeRow>>;
}

/// The findings of a node that looks for what notices may have missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Open runs that have messages which no turn has taken, and whose start time has come.
    pub unseen: Vec<RunNo>,
    /// The runs that are closed or gone.
    pub ended: Vec<RunNo>,
    /// The runs that are stuck.
    pub stuck: Vec<RunNo>,
    /// The tasks that are this node's to work at. It may not know all of them: the answer to a claim may be lost.
    pub tasks: Vec<TaskNo>,
}

/// The callback that gets the answer to a call.
pub type CallAnswered = Box<dyn FnOnce(Result<Vec<u8>>) + Send>;

/// To whom a notice or a call goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipient {
    /// The owner of this run.
    OwnerOf(RunNo),
    /// A node.
    Node(NodeNo),
    /// The nodes that serve this queue.
    Serving(Name),
}

/// A notice from one node to another: a hint to look at the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Notice {
    /// Something was stored for an owned run: a message, a start, its end.
    Stored(RunNo),
    /// A node waits for the end of an owned run.
    Watched(RunNo, NodeNo),
    /// A run that this node waits for has closed, or is stuck.
    Changed(RunNo),
    /// An activity that this node works at is no longer wanted.
    Cancelled(RunNo, Seq),
    /// There are tasks that no node has.
    Tasks,
}

/// The listener of a node.
pub trait NodeEvents: Send + Sync {
    /// The process is a node from now on: it may write, and owns no shard yet. Called once, by [`SharedStore::join`], which fails if
    /// this does.
    fn joined(&self) -> Result<()> {
        Ok(())
    }
    /// The node owns these shards from now on.
    fn gained(&self, shards: Shards);
    /// The node is about to give these shards to others. It begins no attempt of their runs any more, and returns the
    /// attempts that it goes on with.
    fn giving(&self, shards: Shards) -> Vec<TaskNo>;
    /// The node owns these shards no longer. With `all`, other nodes took it for dead: nothing that it held is its own
    /// any more.
    fn lost(&self, shards: Shards, all: bool);
    /// A notice of another node has come.
    fn notified(&self, notice: Notice);
    /// Another node calls. `answer` is called once.
    fn called(&self, request: Vec<u8>, answer: Box<dyn FnOnce(Vec<u8>) + Send>);
    /// It is time to look at the store for what notices may have missed.
    fn look(&self, owned: Shards);
}

/// A node that serves a store.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// The node's number.
    pub no: NodeNo,
    /// The node's name.
    pub name: Name,
    /// The build that it runs.
    pub build: Name,
    /// The queues that it serves.
    pub queues: Vec<Name>,
    /// The number of shards that it owns.
    pub shards: usize,
    /// How long its lease runs from now on. Zero: the other nodes may take its shards.
    pub lease: Duration,
}
