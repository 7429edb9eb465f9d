//! A place in a choice log, from which the log is read choice by choice.

use std::sync::Arc;

use super::action::Action;
use super::enabled::Enabled;
use super::item::Item;
use super::remaining::Remaining;

/// The position of a reader in a choice log. The items are passed to each call: the cursor belongs to the owner of the
/// log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogCursor {
    next: usize,
    /// The number of choices of the `Lone` at `next` that were read.
    lone: u64,
    set: Arc<[Action]>,
    rest: Remaining,
    position: u64,
    /// Whether the open set equals that of the current round and has lost the same members, so that what is left of
    /// them need not be compared. This makes following a round of n units cost n and not n².
    in_step: bool,
}

impl LogCursor {
    /// Returns how many choices were read.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the next choice: the set it was made from, and the index of the pick in it.
    pub(crate) fn peek<'a>(&'a mut self, items: &'a [Item]) -> Option<(Enabled<'a>, usize)> {
        self.settle(items);
        match items.get(self.next)? {
            Item::Pick(place) => Some((Enabled::rest(&self.set, &self.rest), self.rest.rank(*place as usize))),
            Item::Lone(_) => Some((Enabled::sorted(&self.set), 0)),
            Item::Branch { of, chosen } => Some((Enabled::branches(*of), *chosen as usize)),
            Item::Set(_) | Item::Again | Item::Drop(_) => None,
        }
    }

    /// Advances past the next choice, if there is one.
    pub(crate) fn advance(&mut self, items: &[Item]) {
        self.settle(items);
        match items.get(self.next) {
            Some(Item::Pick(place)) => {
                self.in_step = false;
                self.rest.remove(*place as usize);
                self.next += 1;
            }
            Some(Item::Lone(times)) if self.lone + 1 < *times => self.lone += 1,
            Some(Item::Lone(_)) => (self.lone, self.next) = (0, self.next + 1),
            Some(Item::Branch { .. }) => self.next += 1,
            Some(Item::Set(_) | Item::Again | Item::Drop(_)) | None => return,
        }
        self.position += 1;
    }

    /// Marks the cursor as out of step: a round begins that was not compared yet, or the round differs from the log.
    pub(crate) fn fall_out_of_step(&mut self) {
        self.in_step = false;
    }

    /// Opens the next set if it equals this one; the cursor is then in step with the round.
    pub(crate) fn open(&mut self, items: &[Item], set: &[Action]) {
        let same = match items.get(self.next) {
            Some(Item::Set(recorded)) => recorded[..] == *set,
            Some(Item::Again) => self.set[..] == *set,
            _ => false,
        };
        self.in_step = same && self.pass(items);
    }

    /// Returns the log's next item for the round that it is in step with.
    pub(crate) fn in_round(&self, items: &[Item]) -> Option<InRound> {
        match items.get(self.next).filter(|_| self.in_step)? {
            Item::Pick(place) => Some(InRound::Pick(*place as usize)),
            Item::Drop(place) => Some(InRound::Drop(*place as usize)),
            Item::Set(_) | Item::Again | Item::Lone(_) | Item::Branch { .. } => None,
        }
    }

    /// Advances past that item and stays in step: the round loses the same member.
    pub(crate) fn keep_step(&mut self, said: InRound) {
        let place = match said {
            InRound::Pick(place) => {
                self.position += 1;
                place
            }
            InRound::Drop(place) => place,
        };
        self.rest.remove(place);
        self.next += 1;
    }

    /// Passes all items up to the next choice.
    fn settle(&mut self, items: &[Item]) {
        while self.pass(items) {
            self.in_step = false;
        }
    }

    /// Passes the next item if it is no choice, and returns whether it did.
    fn pass(&mut self, items: &[Item]) -> bool {
        match items.get(self.next) {
            Some(Item::Set(set)) => {
                self.set = Arc::clone(set);
                self.rest.reset(set.len());
            }
            Some(Item::Again) => self.rest.reset(self.set.len()),
            Some(Item::Drop(place)) => {
                self.rest.remove(*place as usize);
            }
            Some(Item::Pick(_) | Item::Lone(_) | Item::Branch { .. }) | None => return false,
        }
        self.next += 1;
        true
    }
}

/// The item of a log for a round: the unit at this place was picked, or found dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InRound {
    Pick(usize),
    Drop(usize),
}
