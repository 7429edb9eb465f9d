//! What a turn leads to once it is committed, as its plan knows it: plain values.

use std::sync::Arc;

use dacapo_core::{Name, Outcome, Rejected, ScheduleActivity, Seq};
use dacapo_store::Status;

/// What is done once a turn is committed, as far as it is known before. What only the commit knows (numbers of rows, other
/// runs) comes with its answer, and both become effects.
#[derive(Default)]
pub(crate) struct PlannedEffects {
    /// The activities behind the write's tasks, in their order.
    pub(crate) tasks: Vec<Arc<ScheduleActivity>>,
    /// Activities that were cancelled; whether their outcome is waited for.
    pub(crate) cancelled: Vec<(Seq, bool)>,
    /// Local work that was cancelled; whether its outcome is waited for.
    pub(crate) cancelled_local: Vec<(Seq, bool)>,
    /// Updates that were accepted, answered, rejected.
    pub(crate) accepted: Vec<Name>,
    pub(crate) answered: Vec<(Name, Outcome)>,
    pub(crate) rejected: Vec<Rejected>,
    /// How the run ended.
    pub(crate) closed: Option<(Status, Outcome)>,
}
