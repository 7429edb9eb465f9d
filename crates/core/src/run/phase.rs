//! Phases: parts of the workflow function's life in which a set of handlers over one state is open.

use std::collections::VecDeque;
use std::panic::Location;

use super::messages::Messages;
use super::slot::{SlotId, What};
use super::state::State;
use super::unit::UnitKey;
use crate::options::CancelType;

/// The open phase of a run. There is at most one.
pub(crate) struct Phase {
    pub(crate) id: u64,
    /// Whether its handlers run one after the other.
    serial: bool,
    /// Handlers that have started and are not done.
    running: usize,
    /// Of a serial phase: the handler that the others wait for.
    pub(crate) current: Option<UnitKey>,
    /// Started handlers that wait for the current one: their first step comes after its end.
    pub(crate) waiting: VecDeque<UnitKey>,
    /// The slot on which the phase waits for its handlers once it takes no more messages.
    closing: Option<SlotId>,
}

impl State {
    pub(crate) fn open_phase(&mut self, serial: bool) -> u64 {
        let messages = self.messages();
        let id = messages.next_phase;
        messages.next_phase += 1;
        messages.phase = Some(Phase { id, serial, running: 0, current: None, waiting: VecDeque::new(), closing: None });
        id
    }

    fn phase(&mut self, id: Option<u64>) -> Option<&mut Phase> {
        let Messages { phase, left_phases, .. } = &mut **self.messages.as_mut()?;
        phase.iter_mut().chain(left_phases).find(|phase| Some(phase.id) == id)
    }

    /// Counts a handler that starts in this phase. Returns whether it has to wait for others.
    pub(crate) fn enter_phase(&mut self, id: Option<u64>) -> bool {
        let Some(phase) = self.phase(id) else { return false };
        phase.running += 1;
        phase.serial && phase.running > 1
    }

    pub(crate) fn wait_for_phase(&mut self, key: UnitKey) {
        if let Some(phase) = &mut self.messages().phase {
            phase.waiting.push_back(key);
        }
    }

    /// Makes this handler, or its async part, the one that the others of its phase wait for.
    pub(crate) fn set_current(&mut self, id: Option<u64>, key: UnitKey) {
        if let Some(phase) = self.phase(id).filter(|phase| phase.serial) {
            phase.current = Some(key);
        }
    }

    /// Counts a handler of this phase that is done, and lets the next one start.
    pub(crate) fn leave_phase(&mut self, id: Option<u64>) {
        let Some(phase) = self.phase(id) else { return };
        phase.running -= 1;
        let next = phase.waiting.pop_front();
        phase.current = next;
        let done = phase.running == 0;
        let closing = phase.closing.filter(|_| done);
        if let Some(key) = next {
            self.handler_is_due(key);
            self.make_runnable(key);
        }
        if let Some(slot) = closing {
            self.count_down(slot);
        }
        if done {
            self.messages().left_phases.retain(|phase| Some(phase.id) != id);
        }
    }

    /// Stops the phase from taking messages. Returns the slot to await until its running handlers are done.
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

    /// Ends a phase that is over or was dropped. Its handlers keep the messages they have taken: those that are left go
    /// on as before.
    pub(crate) fn end_phase(&mut self, id: u64) {
        self.remove_handlers(id);
        let messages = self.messages();
        let ended = messages.phase.take_if(|phase| phase.id == id);
        messages.left_phases.extend(ended.filter(|phase| phase.running > 0));
    }
}
