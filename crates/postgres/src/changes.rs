//! What a group of writes changes, collected while it is applied.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_core::{AttributeValue, Name, Seq};
use dacapo_store::{AttemptWrite, MessageNo, MessageRow, RunNo, RunRow, TaskNo, TaskRow, TimerRow};

/// Rows to be written. A later change of a row replaces an earlier one, so each row is written once.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) runs: BTreeMap<RunNo, RunChange>,
    pub(crate) deleted_runs: BTreeSet<RunNo>,
    /// A removed attribute has no value.
    pub(crate) attributes: BTreeMap<(RunNo, Name), Option<AttributeValue>>,
    pub(crate) turns: Vec<(RunNo, u64, Vec<u8>)>,
    /// Turns to be copied: from a run, to a run, the first of this count.
    pub(crate) copies: Vec<(RunNo, RunNo, u64)>,
    pub(crate) new_tasks: BTreeMap<TaskNo, TaskRow>,
    pub(crate) attempts: BTreeMap<TaskNo, AttemptWrite>,
    pub(crate) crash_counts: BTreeMap<TaskNo, u32>,
    pub(crate) ended_tasks: BTreeSet<TaskNo>,
    pub(crate) ended_activities: BTreeSet<(RunNo, Seq)>,
    /// Runs that lose all their tasks.
    pub(crate) ended_runs: BTreeSet<RunNo>,
    pub(crate) new_timers: BTreeSet<TimerRow>,
    /// Removed before the new ones are added.
    pub(crate) ended_timers: BTreeSet<TimerRow>,
    pub(crate) new_messages: BTreeMap<MessageNo, NewRow>,
    pub(crate) taken: BTreeMap<MessageNo, u64>,
    pub(crate) outcomes: BTreeMap<(RunNo, Name), Vec<u8>>,
    /// Runs whose unseen messages move to another.
    pub(crate) moved: Vec<(RunNo, RunNo)>,
}

/// A message that is added, and the chain by which a caller's request is found again.
pub(crate) struct NewRow {
    pub(crate) row: MessageRow,
    pub(crate) chain: Option<Name>,
}

/// A run that is added or changed.
pub(crate) struct RunChange {
    /// The run as it is after the group.
    pub(crate) row: RunRow,
    pub(crate) request: Option<Name>,
    pub(crate) extent: Extent,
    pub(crate) has_memo: bool,
    pub(crate) has_published: bool,
}

impl RunChange {
    /// Returns a change that changes nothing yet.
    pub(crate) fn of(row: RunRow) -> Self {
        Self { row, request: None, extent: Extent::Nothing, has_memo: false, has_published: false }
    }
}

/// How much of a run's row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Nothing yet.
    Nothing,
    /// A turn is counted: its number, the crash count, and that the run is not stuck.
    Turn,
    /// Any column.
    Any,
    /// The row is new.
    New,
}
