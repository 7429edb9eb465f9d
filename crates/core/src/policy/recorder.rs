//! The recorder: writes choices into a log, each set once.

use std::sync::Arc;

use super::action::Action;
use super::choice_log::{ChoiceLog, LogHeader};
use super::enabled::Enabled;
use super::item::Item;
use super::remaining::Remaining;

/// A log, and the state of the set that its last items refer to.
#[derive(Debug)]
pub(crate) struct Recorder {
    log: ChoiceLog,
    set: Arc<[Action]>,
    rest: Remaining,
}

impl Recorder {
    pub(crate) fn new(header: LogHeader, first_step: u64) -> Self {
        Self { log: ChoiceLog::empty(header, first_step), set: Arc::default(), rest: Remaining::default() }
    }

    pub(crate) fn log(&self) -> &ChoiceLog {
        &self.log
    }

    pub(crate) fn into_log(self) -> ChoiceLog {
        self.log
    }

    /// Writes one choice. The index is below the length of the set.
    pub(crate) fn choice(&mut self, enabled: &Enabled<'_>, chosen: usize) {
        self.log.len += 1;
        if let Some(of) = enabled.as_branches() {
            return self.log.items.push(Item::Branch { of, chosen: chosen as u32 });
        }
        if enabled.len() == 1 && !self.is_open(enabled) {
            return self.lone(enabled);
        }
        self.open(enabled);
        let place = self.place(chosen);
        self.log.items.push(Item::Pick(place));
    }

    /// Writes that the unit at this index was found dropped. A set of which nothing was picked leaves no trace.
    pub(crate) fn dropped(&mut self, enabled: &Enabled<'_>, index: usize) {
        if enabled.len() > 1 || self.is_open(enabled) {
            self.open(enabled);
            let place = self.place(index);
            self.log.items.push(Item::Drop(place));
        }
    }

    /// Returns whether the members left of the open set are the enabled actions.
    fn is_open(&self, enabled: &Enabled<'_>) -> bool {
        // A unit that leaves a round leaves this set too, so two views of one shared set have the same members left.
        self.rest.len() == enabled.len() && (enabled.is_rest_of(&self.set) || enabled.same(&self.view()))
    }

    /// Opens the enabled set, unless the members left of the open set are the enabled actions.
    fn open(&mut self, enabled: &Enabled<'_>) {
        if self.is_open(enabled) {
            return;
        }
        if self.set.len() == enabled.len() && enabled.same(&Enabled::sorted(&self.set)) {
            self.log.items.push(Item::Again);
            // Of two equal sets the round's own is kept, because the next call recognises it without comparing members.
            if let Some(shared) = enabled.as_shared() {
                self.set = Arc::clone(shared);
            }
        } else {
            self.set = enabled.to_shared();
            self.log.items.push(Item::Set(Arc::clone(&self.set)));
        }
        self.rest.reset(self.set.len());
    }

    fn lone(&mut self, enabled: &Enabled<'_>) {
        if self.set.len() != 1 || !enabled.same(&Enabled::sorted(&self.set)) {
            self.set = enabled.to_shared();
            self.log.items.push(Item::Set(Arc::clone(&self.set)));
        }
        self.rest.reset(0);
        match self.log.items.last_mut() {
            Some(Item::Lone(times)) => *times += 1,
            _ => self.log.items.push(Item::Lone(1)),
        }
    }

    /// Removes the member at this index of those left, and returns its place in the whole set.
    fn place(&mut self, index: usize) -> u32 {
        let place = self.rest.nth(index).expect("a pick is one of what is left");
        self.rest.remove(place);
        place as u32
    }

    fn view(&self) -> Enabled<'_> {
        Enabled::rest(&self.set, &self.rest)
    }
}
