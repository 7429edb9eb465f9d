//! Phases: stretches of the root's life in which a set of handlers over one state is open.

use std::collections::VecDeque;
use std::panic::Location;

use super::slot::{SlotId, What};
use super::state::State;
use super::unit::UnitKey;
use crate::options::CancelType;

/// The open phase of a run. There is at most one.
pub(crate) struct Phase {
    pub(crate) id: u64,
    /// Whether its handlers go one after the other.
    serial: bool,
    /// Handlers that have started and are not done.
    running: usize,
    /// Started handlers whose go has not come.
    held: VecDeque<UnitKey>,
    /// What the phase waits on once it takes nothing more.
    closing: Option<SlotId>,
}

impl State {
    pub(crate) fn open_phase(&mut self, serial: bool) -> u64 {
        let id = self.messages.next_phase;
        self.messages.next_phase += 1;
        self.messages.phase = Some(Phase { id, serial, running: 0, held: VecDeque::new(), closing: None });
        id
    }

    fn phase(&mut self, id: Option<u64>) -> Option<&mut Phase> {
        let phases = self.messages.phase.iter_mut().chain(&mut self.messages.given_up);
        phases.into_iter().find(|phase| Some(phase.id) == id)
    }

    /// Counts a handler of this phase in. Says whether it has to wait for others.
    pub(crate) fn enter_phase(&mut self, id: Option<u64>) -> bool {
        let Some(phase) = self.phase(id) else { return false };
        phase.running += 1;
        phase.serial && phase.running > 1
    }

    pub(crate) fn hold_back(&mut self, key: UnitKey) {
        if let Some(phase) = &mut self.messages.phase {
            phase.held.push_back(key);
        }
    }

    /// Counts a handler of this phase out, and lets the next one go.
    pub(crate) fn leave_phase(&mut self, id: Option<u64>) {
        let Some(phase) = self.phase(id) else { return };
        phase.running -= 1;
        let next = phase.held.pop_front();
        let closing = phase.closing.filter(|_| phase.running == 0);
        if let Some(key) = next {
            self.make_runnable(key);
        }
        self.messages.given_up.retain(|phase| phase.running > 0);
        if let Some(slot) = closing {
            self.count_down(slot);
        }
    }

    /// The phase takes nothing more. Gives what to await until its running handlers are done.
    pub(crate) fn close_phase(&mut self, id: u64, site: &'static Location<'static>) -> SlotId {
        self.remove_handlers(id);
        let slot = self.open_wait(What::Units, site);
        if let Some(opened) = self.slots.get_mut(&slot) {
            opened.cancel = CancelType::WaitCompleted;
            opened.count = 1;
        }
        match self.phase(Some(id)) {
            Some(phase) if phase.running > 0 => phase.closing = Some(slot),
            _ => self.count_down(slot),
        }
        slot
    }

    /// Nothing keeps the next phase from opening. Handlers that have started still get their go.
    pub(crate) fn end_phase(&mut self, id: u64) {
        self.remove_handlers(id);
        let ended = self.messages.phase.take_if(|phase| phase.id == id);
        self.messages.given_up.extend(ended.filter(|phase| phase.running > 0));
    }
}
