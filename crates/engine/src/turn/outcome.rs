//! The effects of a turn that its plan knows: plain values.

use std::sync::Arc;

use dacapo_core::{Name, Outcome, Rejected, ScheduleActivity, Seq};
use dacapo_store::Status;

/// The effects of a turn, as far as they are known before its commit. What only the commit knows (numbers of rows, other
/// runs) comes with the store's answer, and both become effects.
#[derive(Default)]
pub(crate) struct PlannedEffects {
    /// The activities behind the write's tasks, in their order.
    pub(crate) tasks: Vec<Arc<ScheduleActivity>>,
    /// Activities that were cancelled, and whether the workflow waits for their outcome.
    pub(crate) cancelled: Vec<(Seq, bool)>,
    /// Local work that was cancelled, and whether the workflow waits for its outcome.
    pub(crate) cancelled_local: Vec<(Seq, bool)>,
    /// Updates that were accepted, answered, rejected.
    pub(crate) accepted: Vec<Name>,
    pub(crate) answered: Vec<(Name, Outcome)>,
    pub(crate) rejected: Vec<Rejected>,
    /// The status and the outcome with which the run closed.
    pub(crate) closed: Option<(Status, Outcome)>,
}
