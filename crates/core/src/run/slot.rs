//! Slots: where results wait for the futures that await them.

use std::panic::Location;
use std::task::Waker;
use std::time::Duration;

use super::cancel_scope::ScopeId;
use super::state::State;
use super::unit::UnitKey;
use crate::command::Operation;
use crate::job::{Signal, StartOutcome};
use crate::options::CancelType;
use crate::{CancelOperation, Cancelled, Failure, Name, Ordinal, Outcome, Seq, Timestamp};

/// The id of a slot: what a future awaits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum SlotId {
    /// The result of an operation.
    Operation(Seq),
    /// The start of an operation that has one.
    Start(Seq),
    /// Something within the run: a signal, a condition, other units.
    Wait(u64),
    /// A result that never comes.
    Never,
}

/// The value that a slot gives its future.
#[derive(Debug)]
pub(crate) enum Value {
    Done,
    Outcome(Outcome),
    Started(StartOutcome),
    Delivered(Option<Box<Failure>>),
    Backoff { attempt: u32, pause: Duration, first_scheduled: Option<Timestamp> },
    Signal(Box<Signal>),
}

/// The subject of a slot.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Operation(Operation, Name),
    Start(Operation, Name),
    Signal(Name),
    Condition,
    Units,
}

pub(crate) struct Slot {
    pub(crate) what: What,
    pub(crate) site: &'static Location<'static>,
    /// The turn in which the wait began.
    pub(crate) since: u64,
    /// The unit that last polled the future. A result belongs to it.
    pub(crate) owner: Option<UnitKey>,
    pub(crate) waker: Option<Waker>,
    /// The cancellation scope of the last poll.
    pub(crate) scope: ScopeId,
    pub(crate) arrived: Option<(Ordinal, Value)>,
    /// Whether the owner may see the value that arrived.
    pub(crate) revealed: bool,
    pub(crate) cancel: CancelType,
    pub(crate) cancel_sent: bool,
    /// Whether the first of two resolutions came, for operations that have two.
    pub(crate) started: bool,
    /// The number of units that must end before the slot is done.
    pub(crate) count: usize,
}

pub(crate) enum Polled {
    Ready(Value),
    Cancelled(Cancelled),
    Pending,
}

impl State {
    pub(crate) fn open_slot(&mut self, id: SlotId, what: What, site: &'static Location<'static>) {
        let slot = Slot {
            what,
            site,
            since: self.turn,
            owner: None,
            waker: None,
            scope: self.scope,
            arrived: None,
            revealed: false,
            cancel: CancelType::default(),
            cancel_sent: false,
            started: false,
            count: 0,
        };
        self.slots.insert(id, Box::new(slot));
    }

    pub(crate) fn open_wait(&mut self, what: What, site: &'static Location<'static>) -> SlotId {
        let id = SlotId::Wait(self.next_wait);
        self.next_wait += 1;
        self.open_slot(id, what, site);
        id
    }

    /// Puts a result into its slot. A future that was polled before sees it when its unit is shown that result; one
    /// that was not finds it ready.
    pub(crate) fn deliver(&mut self, id: SlotId, ordinal: Ordinal, value: Value) {
        let withheld = matches!(value, Value::Signal(_)) && self.is_withheld(ordinal);
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.arrived = Some((ordinal, value));
        slot.revealed = slot.owner.is_none() && !withheld;
        let Some(owner) = slot.owner else { return };
        match self.units.get_mut(&owner).filter(|unit| !unit.dying) {
            Some(unit) => {
                unit.reveals.push_back(id);
                self.show_next(owner);
            }
            None => self.release(id),
        }
    }

    /// Reveals a result whose unit is gone. Another unit may hold the future: it finds the result ready and is woken,
    /// outside the lock.
    fn release(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.revealed = true;
            self.released.extend(slot.waker.take());
        }
    }

    /// Releases the results that a unit had not seen when it ended.
    pub(crate) fn release_all(&mut self, reveals: impl IntoIterator<Item = SlotId>) {
        reveals.into_iter().for_each(|id| self.release(id));
    }

    /// Shows a unit its next result. The caller wakes the waker that asked for it, outside the lock.
    pub(crate) fn reveal(&mut self, key: UnitKey) -> Option<Waker> {
        if !self.has_reveals(key) || self.withhold(key) {
            return None;
        }
        let unit = self.units.get_mut(&key)?;
        let id = unit.reveals.pop_front()?;
        let slot = self.slots.get_mut(&id)?;
        slot.revealed = true;
        slot.waker.take()
    }

    /// Returns whether a result is still to be shown to a unit. Removes those that were taken back or moved elsewhere
    /// from the unit's queue: that is cheaper here than when they are taken back or moved.
    pub(crate) fn has_reveals(&mut self, key: UnitKey) -> bool {
        let Self { units, slots, .. } = self;
        let Some(unit) = units.get_mut(&key) else { return false };
        let is_due = |id: &SlotId| {
            slots.get(id).is_some_and(|slot| slot.owner == Some(key) && slot.arrived.is_some() && !slot.revealed)
        };
        while unit.reveals.front().is_some_and(|id| !is_due(id)) {
            unit.reveals.pop_front();
        }
        !unit.reveals.is_empty()
    }

    pub(crate) fn poll_slot(&mut self, id: SlotId, waker: &Waker) -> (Polled, Option<Waker>) {
        let running = self.running;
        let scope = self.scope;
        let cancelled = self.cancellation(scope);
        let Some(slot) = self.slots.get_mut(&id) else { return (Polled::Pending, None) };
        if let Some((came, _)) = slot.arrived {
            // A wait that a cancellation does not end takes results that come after it.
            let ends = slot.owner.is_some() && !slot.cancel.waits();
            let lost = cancelled.as_ref().is_some_and(|(at, _)| ends && *at < came);
            if slot.revealed && !lost {
                if self.only_looks(came) {
                    return (self.peek(came, waker), None);
                }
                let slot = self.slots.remove(&id).expect("the slot was just found");
                let (came, value) = slot.arrived.expect("the slot has arrived");
                self.consume(came);
                if let SlotId::Operation(seq) = id {
                    self.discard(SlotId::Start(seq));
                }
                return (Polled::Ready(value), slot.waker);
            }
            if !lost {
                return (Polled::Pending, self.own(id, waker));
            }
        }
        if let Some((at, reason)) = cancelled {
            if !slot.cancel.waits() {
                if self.is_peeking() {
                    return (self.peek(at, waker), None);
                }
                self.consume(at);
                let waker = self.leave(id, reason.clone());
                return (Polled::Cancelled(Cancelled { reason }), waker);
            }
            self.ask_to_cancel(id, reason);
        }
        debug_assert!(running.is_some(), "only a running unit polls");
        (Polled::Pending, self.own(id, waker))
    }

    /// Makes the running unit the owner of this wait. Returns the waker that was replaced, to be dropped outside the
    /// lock.
    fn own(&mut self, id: SlotId, waker: &Waker) -> Option<Waker> {
        let (running, scope) = (self.running, self.scope);
        let slot = self.slots.get_mut(&id)?;
        slot.scope = scope;
        if slot.owner != running {
            slot.owner = running;
            if slot.arrived.is_some() {
                self.move_reveal(id, running);
            }
        }
        let slot = self.slots.get_mut(&id)?;
        match &mut slot.waker {
            Some(kept) if kept.will_wake(waker) => None,
            kept => kept.replace(waker.clone()),
        }
    }

    /// Moves a result that has come, but was not seen, to the unit that awaits its future now.
    fn move_reveal(&mut self, id: SlotId, running: Option<UnitKey>) {
        let came = |state: &Self, id: &SlotId| state.slots.get(id).and_then(|slot| slot.arrived.as_ref().map(|a| a.0));
        let Some(key) = running else { return };
        let place = {
            let Some(unit) = self.units.get(&key) else { return };
            unit.reveals.iter().position(|other| came(self, other) > came(self, &id)).unwrap_or(unit.reveals.len())
        };
        if let Some(unit) = self.units.get_mut(&key) {
            unit.reveals.insert(place, id);
        }
        self.show_next(key);
    }

    /// Makes a unit runnable for its next result, unless that has to wait.
    fn show_next(&mut self, key: UnitKey) {
        if !self.withhold(key) {
            self.make_runnable(key);
        }
    }

    /// Closes the slot of a future that was dropped or cancelled: its operation is cancelled and later results are
    /// ignored. Returns the waker, to be dropped outside the lock.
    pub(crate) fn leave(&mut self, id: SlotId, reason: String) -> Option<Waker> {
        self.ask_to_cancel(id, reason);
        let mut slot = self.slots.remove(&id)?;
        match (id, slot.arrived.take()) {
            (SlotId::Operation(seq), None) => {
                if let (None, Some(ending)) = (self.running, &mut self.ending) {
                    ending.dropped.push(seq);
                }
                self.tombstones.insert(seq);
                self.drop_closure(seq);
                self.discard(SlotId::Start(seq));
            }
            (SlotId::Wait(_), Some((came, Value::Signal(signal)))) => self.give_back(came, signal),
            (SlotId::Wait(_), None) => self.forget_waiter(id, &slot.what),
            _ => {}
        }
        slot.waker
    }

    fn ask_to_cancel(&mut self, id: SlotId, reason: String) {
        let SlotId::Operation(seq) = id else { return };
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let What::Operation(operation, _) = slot.what else { return };
        // When the run closes no unit is running: open operations then end with the run, without a command.
        let Some(unit) = self.running.and_then(|key| self.units.get_mut(&key)) else { return };
        let can_be_cancelled = operation != Operation::CancelExternal && slot.cancel.asks();
        if can_be_cancelled && slot.arrived.is_none() && !slot.cancel_sent {
            slot.cancel_sent = true;
            let site = slot.site;
            unit.cancels.push((CancelOperation { seq, operation, reason }, site));
        }
    }

    /// Records that a race saw a result and did not take it. The waker of the poll is woken again, because its future
    /// may poll only what was woken.
    pub(crate) fn peek(&mut self, came: Ordinal, waker: &Waker) -> Polled {
        let look = self.look_mut();
        look.wakers.push(waker.clone());
        look.peeked = Some(look.peeked.map_or(came, |earlier| earlier.min(came)));
        Polled::Pending
    }

    /// Returns when the earliest result came that the running unit has yet to be shown.
    pub(crate) fn earliest_hidden(&mut self) -> Option<Ordinal> {
        let key = self.running?;
        self.has_reveals(key);
        let unit = self.units.get(&key)?;
        let slot = self.slots.get(unit.reveals.front()?)?;
        slot.arrived.as_ref().map(|(came, _)| *came)
    }

    /// Closes the slot of a detached future: its operation goes on, and its result is ignored.
    pub(crate) fn forget(&mut self, id: SlotId) {
        if let (SlotId::Operation(seq), Some(slot)) = (id, self.slots.get(&id)) {
            if slot.arrived.is_none() {
                self.tombstones.insert(seq);
            }
            self.discard(SlotId::Start(seq));
            self.discard(id);
        }
    }

    /// Closes a slot. Its waker may be the user's, so it is dropped outside the lock.
    fn discard(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.remove(&id) {
            self.spend(slot);
        }
    }

    /// Ends a wait that its own future found to be over.
    pub(crate) fn end_at_once(&mut self, id: SlotId) {
        let ordinal = self.next_ordinal();
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.arrived = Some((ordinal, Value::Done));
            slot.revealed = true;
        }
    }

    pub(crate) fn consume(&mut self, came: Ordinal) {
        self.consumed = self.consumed.max(Some(came));
    }

    /// Returns the operations that are not resolved, and whose futures are still held.
    pub(crate) fn open_operations(&self) -> impl Iterator<Item = Seq> {
        self.slots.iter().filter_map(|(id, slot)| match (id, &slot.arrived) {
            (SlotId::Operation(seq), None) => Some(*seq),
            _ => None,
        })
    }

    /// Records that one of the units that this slot counts has ended.
    pub(crate) fn count_down(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.count = slot.count.saturating_sub(1);
        if slot.count == 0 && slot.arrived.is_none() {
            let ordinal = self.next_ordinal();
            self.deliver(id, ordinal, Value::Done);
        }
    }
}
