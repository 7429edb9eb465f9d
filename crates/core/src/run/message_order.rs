//! The order of messages: a wait for a signal is not ready while an earlier message waits for its handler to start.
//!
//! Backends confirm messages to their senders in this order, so the workflow function must not act on a later one
//! before the handler of an earlier one has run up to its first wait. How the messages were split into turns then makes
//! no difference. This holds for runs that play handlers first; runs that play the root first take any signal that is
//! there.

use super::messages::Messages;
use super::phase::Phase;
use super::slot::Value;
use super::state::State;
use super::unit::{Go, OnEnd, Unit, UnitKey};
use crate::Ordinal;

impl State {
    /// Returns whether a signal that came then has to wait for the handler of an earlier message.
    pub(crate) fn is_withheld(&self, came: Ordinal) -> bool {
        self.earliest_unstarted().is_some_and(|earlier| earlier < came)
    }

    /// Returns when the earliest message came whose handler is registered, can start in this turn and has not started.
    fn earliest_unstarted(&self) -> Option<Ordinal> {
        // A run that continues as a new one starts no handler any more.
        if !self.handlers_first || self.goes_on_as_new() {
            return None;
        }
        let messages = self.messages.as_deref()?;
        let queued = messages.earliest_queued(|phase| self.can_start(messages, phase));
        let started = messages.unstarted.first().copied();
        let waiting =
            messages.phases().filter(|phase| self.goes_on(phase)).filter_map(|phase| self.earliest_waiting(phase));
        waiting.chain(queued).chain(started).min()
    }

    /// Returns whether a handler of this phase (or of the run) starts as soon as its message is brought to it.
    fn can_start(&self, messages: &Messages, id: Option<u64>) -> bool {
        let phase = messages.phases().find(|phase| Some(phase.id) == id);
        phase.is_none_or(|phase| phase.current.is_none() || self.goes_on(phase))
    }

    /// Returns whether the handler that others of this phase wait for has a step coming. If it waits itself, those
    /// behind it may wait for long, and no signal waits for them.
    fn goes_on(&self, phase: &Phase) -> bool {
        let current = phase.current.and_then(|key| self.units.get(&key));
        current.is_some_and(|unit| unit.go == Go::Queued)
    }

    fn earliest_waiting(&self, phase: &Phase) -> Option<Ordinal> {
        self.units.get(phase.waiting.front()?).and_then(|unit| unit.message_came())
    }

    /// Keeps a unit from running for its next result if that is a signal which has to wait. Returns whether it is.
    pub(crate) fn withhold(&mut self, key: UnitKey) -> bool {
        // Most steps of most runs end here.
        if self.messages.as_deref().is_none_or(Messages::has_none_waiting) {
            return false;
        }
        let Some(came) = self.next_signal(key).filter(|came| self.is_withheld(*came)) else { return false };
        self.messages().withheld.insert((came, key));
        true
    }

    /// Returns when the signal came that is the next result for this unit, if that is a signal.
    fn next_signal(&mut self, key: UnitKey) -> Option<Ordinal> {
        if !self.has_reveals(key) {
            return None;
        }
        let slot = self.slots.get(self.units.get(&key)?.reveals.front()?)?;
        match slot.arrived {
            Some((came, Value::Signal(_))) => Some(came),
            _ => None,
        }
    }

    /// Makes the units runnable whose signal has to wait no longer.
    pub(crate) fn release_withheld(&mut self) {
        if self.messages.as_ref().is_none_or(|messages| messages.withheld.is_empty()) {
            return;
        }
        let barrier = self.earliest_unstarted();
        let withheld = &mut self.messages().withheld;
        let still = barrier.map(|barrier| withheld.split_off(&(barrier, 0))).unwrap_or_default();
        for (_, key) in std::mem::replace(withheld, still) {
            if self.has_reveals(key) && !self.withhold(key) {
                self.make_runnable(key);
            }
        }
    }

    /// Records that a handler, or its async part, does not wait for its phase: it starts in the next round.
    pub(crate) fn handler_is_due(&mut self, key: UnitKey) {
        if let Some(came) = self.units.get(&key).and_then(|unit| unit.message_came()) {
            self.messages().unstarted.insert(came);
        }
    }

    /// Begins a unit's step. If it is the first step of a handler, the handler's message is taken for good.
    pub(crate) fn begin_step_of(&mut self, key: UnitKey) {
        let Some(unit) = self.units.get_mut(&key) else { return };
        if let OnEnd::Handler(end) = &mut unit.on_end {
            end.message = None;
            let came = end.came;
            self.messages().unstarted.remove(&came);
        }
    }
}

impl Unit {
    /// Returns when the message came that this unit handles.
    fn message_came(&self) -> Option<Ordinal> {
        match &self.on_end {
            OnEnd::Handler(end) => Some(end.came),
            _ => None,
        }
    }
}
