//! Conditions that units wait for, and when each has to be evaluated.
//!
//! A condition is a closure of the user. While it is evaluated, the state cells that it reads are recorded, and it is
//! evaluated again when one of them has changed. A condition that reads no cell may depend on anything, and is
//! evaluated after every round in which a unit ran. One that reads cells and depends on something else as well is
//! evaluated when the turn comes to rest, as long as units wait for no more than [`FEW`] such conditions: beyond that,
//! n units with a condition each would cost n² evaluations.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Run;
use super::current_turn::{ThreadWork, TurnGuard};
use super::slot::{SlotId, Value};
use super::state::State;
use crate::{ActivationError, ViolationKind};

/// A closure that returns whether a wait is over. It is shared with the future that awaits it, and the executor runs
/// it.
pub(crate) type Condition = Arc<dyn Fn() -> bool + Send + Sync>;

/// The largest number of conditions that read cells for which all of them are evaluated whenever a turn comes to rest.
const FEW: usize = 64;

/// The number of a state cell within its run.
pub(crate) type CellId = u64;

/// A condition that a unit waits for.
struct Waiting {
    condition: Condition,
    /// The cells that it read when it was last evaluated.
    cells: BTreeSet<CellId>,
}

#[derive(Default)]
pub(crate) struct Conditions {
    /// All waits, in the order in which they began.
    waiting: BTreeMap<SlotId, Waiting>,
    /// The waits whose condition reads this cell.
    readers: BTreeMap<CellId, BTreeSet<SlotId>>,
    /// The waits whose condition reads no cell.
    unbound: BTreeSet<SlotId>,
    /// Cells that changed since conditions were last evaluated.
    changed: BTreeSet<CellId>,
    /// The cells that the condition being evaluated has read so far.
    reads: Option<BTreeSet<CellId>>,
}

impl Conditions {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn insert(&mut self, slot: SlotId, condition: Condition, cells: BTreeSet<CellId>) {
        if cells.is_empty() {
            self.unbound.insert(slot);
        }
        for cell in &cells {
            self.readers.entry(*cell).or_default().insert(slot);
        }
        self.waiting.insert(slot, Waiting { condition, cells });
    }

    pub(super) fn remove(&mut self, slot: SlotId) -> Option<Condition> {
        let Waiting { condition, cells } = self.waiting.remove(&slot)?;
        self.unbound.remove(&slot);
        for cell in cells {
            if let Some(readers) = self.readers.get_mut(&cell) {
                readers.remove(&slot);
                if readers.is_empty() {
                    self.readers.remove(&cell);
                }
            }
        }
        Some(condition)
    }

    /// Records the cells that a condition read when it was evaluated again.
    fn rebind(&mut self, slot: SlotId, cells: BTreeSet<CellId>) {
        if self.waiting.get(&slot).is_some_and(|waiting| waiting.cells != cells)
            && let Some(condition) = self.remove(slot)
        {
            self.insert(slot, condition, cells);
        }
    }

    /// Returns the conditions that may hold now and did not before, in the order in which the waits began.
    fn take_due(&mut self) -> Vec<(SlotId, Condition)> {
        let mut due = self.unbound.clone();
        for cell in std::mem::take(&mut self.changed) {
            due.extend(self.readers.get(&cell).into_iter().flatten());
        }
        let condition = |slot| Some((slot, self.waiting.get(&slot)?.condition.clone()));
        due.into_iter().filter_map(condition).collect()
    }

    /// Returns how many conditions read cells.
    fn bound_count(&self) -> usize {
        self.waiting.len() - self.unbound.len()
    }

    /// Returns all conditions that read cells.
    fn bound(&self) -> Vec<(SlotId, Condition)> {
        let bound = self.waiting.iter().filter(|(_, waiting)| !waiting.cells.is_empty());
        bound.map(|(slot, waiting)| (*slot, waiting.condition.clone())).collect()
    }

    /// Moves all closures to `items`, to be dropped one by one.
    pub(super) fn take_all(&mut self, items: &mut Vec<Box<dyn Any + Send>>) {
        let waiting = std::mem::take(&mut self.waiting).into_values();
        items.extend(waiting.map(|waiting| Box::new(waiting.condition) as _));
    }
}

impl State {
    /// Returns whether a unit waits for a condition.
    pub(crate) fn has_conditions(&self) -> bool {
        self.conditions.as_ref().is_some_and(|conditions| !conditions.is_empty())
    }

    /// Records the cells that are read from now on, until [`State::take_reads`].
    pub(crate) fn begin_reads(&mut self) {
        self.conditions.get_or_insert_default().reads = Some(BTreeSet::new());
    }

    pub(crate) fn take_reads(&mut self) -> BTreeSet<CellId> {
        self.conditions.as_mut().and_then(|conditions| conditions.reads.take()).unwrap_or_default()
    }

    /// Records that the closure being evaluated reads this cell.
    pub(crate) fn read_cell(&mut self, cell: CellId) {
        if let Some(reads) = self.conditions.as_mut().and_then(|conditions| conditions.reads.as_mut()) {
            reads.insert(cell);
        }
    }

    /// Records that this cell may have changed.
    pub(crate) fn change_cell(&mut self, cell: CellId) {
        if let Some(conditions) = self.conditions.as_mut().filter(|conditions| conditions.readers.contains_key(&cell)) {
            conditions.changed.insert(cell);
        }
    }

    /// Begins a wait for this condition, which was evaluated, did not hold and read these cells.
    pub(crate) fn await_condition(&mut self, slot: SlotId, condition: Condition, cells: BTreeSet<CellId>) {
        self.conditions.get_or_insert_default().insert(slot, condition, cells);
    }

    pub(crate) fn forget_condition(&mut self, slot: SlotId) -> Option<Condition> {
        self.conditions.as_mut()?.remove(slot)
    }
}

impl Run {
    /// Ends the waits whose condition holds, in the order in which they began.
    pub(super) fn check_conditions(&mut self) -> Result<(), ActivationError> {
        let due = self.shared.lock().conditions.as_mut().map(|conditions| conditions.take_due()).unwrap_or_default();
        self.end_those_that_hold(due).map(drop)
    }

    fn evaluate(&self, condition: &Condition) -> Result<(bool, BTreeSet<CellId>), ActivationError> {
        self.shared.lock().begin_reads();
        let holds = self.compute(|| condition())?;
        Ok((holds, self.shared.lock().take_reads()))
    }

    fn end_wait(&mut self, slot: SlotId) {
        let mut state = self.shared.lock();
        let condition = state.forget_condition(slot);
        let ordinal = state.next_ordinal();
        state.deliver(slot, ordinal, Value::Done);
        drop(state);
        drop(condition);
    }

    /// Evaluates the conditions that read cells when the turn comes to rest, because they may depend on something else
    /// as well. Returns whether a wait has ended. If there are many, they are not evaluated. Where runs are played
    /// twice, a condition that then holds although no cell that it read has changed fails the activation: elsewhere its
    /// wait would not end.
    pub(super) fn check_unchanged_conditions(&mut self) -> Result<bool, ActivationError> {
        let (bound, is_played_twice) = {
            let state = self.shared.lock();
            let bound = state.conditions.as_ref().map(|conditions| (conditions.bound_count(), conditions));
            match bound {
                Some((1..=FEW, conditions)) => (conditions.bound(), false),
                Some((_, conditions)) if state.is_played_twice => (conditions.bound(), true),
                _ => return Ok(false),
            }
        };
        match is_played_twice {
            true => self.refuse_unchanged(bound).map(|()| false),
            false => self.end_those_that_hold(bound),
        }
    }

    /// Ends the waits whose condition holds. Returns whether there was one.
    fn end_those_that_hold(&mut self, conditions: Vec<(SlotId, Condition)>) -> Result<bool, ActivationError> {
        let mut has_ended = false;
        for (slot, condition) in conditions {
            let (holds, cells) = self.evaluate(&condition)?;
            match holds {
                true => {
                    self.end_wait(slot);
                    has_ended = true;
                }
                false => {
                    if let Some(conditions) = &mut self.shared.lock().conditions {
                        conditions.rebind(slot, cells);
                    }
                }
            }
        }
        Ok(has_ended)
    }

    fn refuse_unchanged(&mut self, bound: Vec<(SlotId, Condition)>) -> Result<(), ActivationError> {
        for (slot, condition) in bound {
            let holds = {
                let _hold = TurnGuard::mode(ThreadWork::Closure);
                catch_unwind(AssertUnwindSafe(|| condition()))
            };
            let mut state = self.shared.lock();
            if matches!(holds, Ok(true)) && state.fault.is_none() {
                let site = state.slots.get(&slot).map(|slot| slot.site);
                let text = format!(
                    "a condition came to hold, and no state cell that it reads has changed: where more than {FEW} conditions \
                     are waited for, one is evaluated only when one has. Put everything that it depends on into state cells, \
                     or read none in it"
                );
                state.violate(ViolationKind::Misuse(text), site);
            }
            if let Some(fault) = state.fault.take() {
                return Err(*fault);
            }
        }
        Ok(())
    }
}
