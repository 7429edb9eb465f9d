//! The enabled set: what a policy sees.

use std::fmt;
use std::sync::Arc;

use super::action::Action;
use super::remaining::Remaining;

/// The actions that may happen next, in canonical order, duplicates kept.
///
/// It is a view: the rest of a round of ten thousand units is shown without copying one of them.
#[derive(Clone, Copy)]
pub struct Enabled<'a>(View<'a>);

#[derive(Clone, Copy)]
enum View<'a> {
    Sorted(&'a [Action]),
    Picked(&'a [&'a Action]),
    Rest { set: &'a Arc<[Action]>, rest: &'a Remaining },
    Branches(u32),
}

impl<'a> Enabled<'a> {
    pub(crate) fn sorted(actions: &'a [Action]) -> Self {
        Self(View::Sorted(actions))
    }

    /// Creates a view of actions that were brought into order by [`canonical`].
    pub(crate) fn picked(actions: &'a [&'a Action]) -> Self {
        Self(View::Picked(actions))
    }

    pub(crate) fn rest(set: &'a Arc<[Action]>, rest: &'a Remaining) -> Self {
        Self(View::Rest { set, rest })
    }

    pub(crate) fn branches(n: u32) -> Self {
        Self(View::Branches(n))
    }

    /// Returns how many actions are enabled. A policy is never given an empty set.
    pub fn len(&self) -> usize {
        match self.0 {
            View::Sorted(actions) => actions.len(),
            View::Picked(actions) => actions.len(),
            View::Rest { rest, .. } => rest.len(),
            View::Branches(n) => n as usize,
        }
    }

    /// Returns whether nothing is enabled.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the action at this index, if there are that many.
    pub fn get(&self, index: usize) -> Option<Action> {
        match self.0 {
            View::Sorted(actions) => actions.get(index).cloned(),
            View::Picked(actions) => actions.get(index).map(|action| Action::clone(action)),
            View::Rest { set, rest } => rest.nth(index).map(|place| set[place].clone()),
            View::Branches(n) => (index < n as usize).then(|| Action::branch_at(index)),
        }
    }

    /// Returns all actions, in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = Action> + use<'a> {
        let branches = if let View::Branches(n) = self.0 { n as usize } else { 0 };
        self.stored().cloned().chain((0..branches).map(Action::branch_at))
    }

    /// Returns whether both views show the same actions in the same order.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (View::Branches(a), View::Branches(b)) => a == b,
            (View::Branches(_), _) | (_, View::Branches(_)) => {
                self.len() == other.len() && self.iter().eq(other.iter())
            }
            _ => self.len() == other.len() && self.stored().eq(other.stored()),
        }
    }

    /// Returns the number of branches, if these are the branches of one XOR point and nothing else.
    pub(crate) fn as_branches(&self) -> Option<u32> {
        match self.0 {
            View::Branches(n) => Some(n),
            View::Sorted([Action::XorBranch(_), ..]) | View::Picked([Action::XorBranch(_), ..]) => {
                let numbered = self.stored().enumerate().all(|(place, action)| *action == Action::branch_at(place));
                if numbered { u32::try_from(self.len()).ok() } else { None }
            }
            View::Sorted(_) | View::Picked(_) | View::Rest { .. } => None,
        }
    }

    /// Returns whether the view shows what remains of this very set in memory.
    pub(crate) fn is_rest_of(&self, whole: &Arc<[Action]>) -> bool {
        matches!(self.0, View::Rest { set, .. } if Arc::ptr_eq(set, whole))
    }

    /// Returns the shared set, if the view shows all of one.
    pub(crate) fn as_shared(&self) -> Option<&'a Arc<[Action]>> {
        match self.0 {
            View::Rest { set, rest } if rest.is_whole() => Some(set),
            View::Rest { .. } | View::Sorted(_) | View::Picked(_) | View::Branches(_) => None,
        }
    }

    /// Returns the set as one shared slice; a view that shows all of a shared set costs nothing here.
    pub(crate) fn to_shared(self) -> Arc<[Action]> {
        match (self.as_shared(), self.0) {
            (Some(set), _) => Arc::clone(set),
            (None, View::Sorted(actions)) => actions.into(),
            (None, View::Picked(_) | View::Rest { .. } | View::Branches(_)) => self.iter().collect(),
        }
    }

    /// Returns the actions that exist in memory: all but numbered branches.
    fn stored(&self) -> impl Iterator<Item = &'a Action> + use<'a> {
        let (sorted, picked, rest) = match self.0 {
            View::Sorted(actions) => (actions, &[][..], None),
            View::Picked(actions) => (&[][..], actions, None),
            View::Rest { set, rest } => (&[][..], &[][..], Some(rest.iter().map(move |place| &set[place]))),
            View::Branches(_) => (&[][..], &[][..], None),
        };
        sorted.iter().chain(picked.iter().copied()).chain(rest.into_iter().flatten())
    }
}

impl fmt::Debug for Enabled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Sorts these actions into canonical order.
pub(crate) fn canonical(actions: &[Action]) -> Vec<&Action> {
    let mut keyed: Vec<_> = actions.iter().map(|action| (action.sort_key(), action)).collect();
    keyed.sort();
    keyed.into_iter().map(|(_, action)| action).collect()
}

/// Returns whether a set is in one of the two orders that a run may have: handlers last, as [`Action`] is ordered, or
/// handlers first.
pub(crate) fn is_canonical(set: &[Action]) -> bool {
    let handlers_first = |a: &Action, b: &Action| match (a.unit(), b.unit()) {
        (Some(a), Some(b)) => (!a.is_handler(), a) <= (!b.is_handler(), b),
        _ => a <= b,
    };
    set.is_sorted() || set.is_sorted_by(handlers_first)
}
