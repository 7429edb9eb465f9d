//! Policies: the choice among enabled actions.
//!
//! A policy is asked at two kinds of point only: which runnable unit of the round goes next, and which of several
//! equals is taken. The [`Scheduler`] asks it, checks its answer and logs it; the executor asks the scheduler and has
//! no other way to choose. A policy never sees time, results or state, so it cannot depend on them.
//!
//! Start reading at `scheduler.rs`; `choice_log.rs` says what is recorded and `replay.rs` how it is followed.

mod action;
mod choice_log;
mod cursor;
mod deterministic;
mod enabled;
mod error;
mod item;
mod log_codec;
mod options;
mod picker;
mod random;
mod recorder;
mod remaining;
mod replay;
mod round;
mod run_scheduler;
mod scheduler;
mod spec;
mod turn_choices;

pub use action::Action;
pub use choice_log::{Choice, ChoiceLog, LogHeader};
pub use deterministic::Deterministic;
pub use enabled::Enabled;
pub use error::{PolicyError, PolicyWarning};
pub use options::{Divergence, PolicyKind, PolicyOptions};
pub use random::Random;
pub use replay::Replay;
pub(crate) use run_scheduler::RunScheduler;
pub use scheduler::Scheduler;
pub use spec::PolicySpec;
pub use turn_choices::TurnChoices;

/// A rule that picks among enabled actions. A policy of your own is one method; the scheduler logs what it picks, so
/// its runs can be replayed like any other.
///
/// ```
/// use dacapo_core::{Action, Enabled, Policy, PolicyError, Scheduler};
/// struct Last;
///
/// impl Policy for Last {
///     fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
///         Ok(enabled.len() - 1)
///     }
/// }
///
/// let mut scheduler = Scheduler::with_policy("last", Box::new(Last));
/// assert_eq!(scheduler.pick_branch(3)?, 2);
///
/// let mut replay = Scheduler::from_log(scheduler.get_log().clone())?;
/// assert_eq!(replay.pick_branch(3)?, 2);
/// # Ok::<(), PolicyError>(())
/// ```
pub trait Policy: Send {
    /// Returns the index of the action that happens next. The set is never empty; an index beyond it is refused.
    ///
    /// A unit may be dropped while its round is played. If the pick falls on one, the unit leaves the set and the
    /// policy is asked again.
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError>;

    /// Tells the policy that a turn of a run begins. A policy that draws can start a stream of its own for each turn
    /// here, so that a run rebuilt from its recording draws what it would have drawn.
    fn begin_turn(&mut self, turn: u64) {
        let _ = turn;
    }

    /// Tells the policy that a recording made this choice in its place. A policy with state updates it here.
    fn follow(&mut self, enabled: &Enabled<'_>, chosen: usize) {
        let _ = (enabled, chosen);
    }
}
