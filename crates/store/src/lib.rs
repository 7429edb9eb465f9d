//! The store interface of Dacapo: what a store keeps and promises.
//!
//! A store keeps runs, their turns, tasks, timers and messages. Only a [`Write`] changes it. [`apply`] decides once
//! what a write means, over the primitives that each store offers as [`Rows`]. A write is applied whole or not at all:
//! it is refused alone, before it has changed anything. Many writes share one transaction ([`Group`]).
//!
//! The fence is one comparison: a turn is committed if it is the next turn of an open run under the epoch that its node
//! holds. It refuses nodes that have lost the run, and recognises a turn that was committed before and whose
//! acknowledgement was lost.

mod apply;
mod balance;
#[cfg(any(test, feature = "conformance"))]
#[expect(missing_docs, reason = "the name of a rule says what it is")]
pub mod conformance;
mod end;
mod error;
mod group;
mod import;
mod load;
mod memory;
mod message;
mod nodes;
mod number;
mod private;
mod reads;
mod refused;
mod reset;
mod rows;
mod run;
mod running;
mod running_file;
mod search;
mod send;
mod shards;
mod start;
mod task;
mod timer;
mod turn;
mod write;

pub use apply::apply;
pub use balance::{Balance, Member, OwnedShard, balance};
pub use dacapo_client::{Filter, IdConflict, Status, Stuck, StuckCause};
pub use error::StoreError;
pub use group::{Batch, Done, Group, Writes};
pub use load::{ReadAlong, Records, StoredRun};
pub use memory::{MemoryCluster, MemoryNode, MemoryStore, Reading};
pub use message::{MessageRow, NewMessage, is_request};
pub use nodes::{CallAnswered, Looked, NodeEvents, NodeRow, Nodes, Notice, Recipient, SharedStore};
pub use number::{Epoch, MessageNo, NodeNo, RunNo, Shard, TaskNo};
pub use private::private_file;
pub use reads::{ReadMessages, ReadRuns, ReadTasks, ReadTimers, ReadTurns, Store, Upkeep};
pub use refused::Refused;
pub use rows::{Rows, SWEEP_BYTES};
pub use run::{Belongings, NewRun, Parent, RunRow};
pub use running::{Doing, NoteSlot, RunningNotes};
pub use running_file::RunningFile;
pub use search::{Dialect, ListPlace, SqlQuery, SqlValue};
pub use shards::{Shards, SharedShards};
pub use task::{NewTask, TaskRow};
pub use timer::{TimerKind, TimerRow};
pub use write::{
    AttemptWrite, ClosedRun, Closing, CrashCount, ImportWrite, OutgoingMessage, ResetWrite, SentMessage, StartedRun,
    TurnOf, TurnWrite, TurnWritten, Write, Written,
};
