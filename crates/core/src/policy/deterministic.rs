//! The default policy: stable order.

use super::Policy;
use super::enabled::Enabled;
use super::error::PolicyError;

/// The policy that takes the first action in canonical order: the same set always gives the same choice. It has no
/// state and writes no log, because its picks follow from the transcript.
///
/// ```
/// use dacapo_core::{Action, PolicyKind, PolicyOptions, Scheduler, Seg, UnitId};
/// let [first, second] = [0, 1].map(|index| Action::Unit(UnitId::root().child(Seg::P(index))));
/// let branch = Action::branch(1).unwrap();
///
/// let mut scheduler = Scheduler::new(PolicyKind::Deterministic, PolicyOptions::default())?;
/// assert_eq!(scheduler.choose(&[branch.clone(), second.clone(), first.clone()])?, first);
/// assert_eq!(scheduler.choose(&[branch, second.clone()])?, second);
/// assert!(scheduler.get_log().is_empty());
/// # Ok::<(), dacapo_core::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deterministic;

impl Policy for Deterministic {
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        if enabled.is_empty() { Err(PolicyError::NoEnabledActions) } else { Ok(0) }
    }
}
