//! Timers in memory: the earliest of those the store keeps, and those that concern this process alone.
//!
//! The store may hold millions; memory holds the earliest few thousand, and knows up to which moment it holds them all.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_core::{Name, Seq, TimeoutKind, Timestamp};
use dacapo_store::{RunNo, TimerKind, TimerRow};

/// The most stored timers in memory.
const MOST: usize = 20_000;

/// Something that this process alone has to do at some moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Due {
    /// A task may be tried again.
    Task { run: RunNo, seq: Seq, attempt: u32 },
    /// An attempt has taken too long, or was silent for too long.
    Attempt { run: RunNo, seq: Seq, attempt: u32, kind: TimeoutKind },
    /// A stored timer fired, and what it brings could not be written.
    Again(TimerRow),
    /// What an attempt reported last is stored.
    Report { run: RunNo, seq: Seq, attempt: u32 },
    /// A run whose time had not come begins.
    Begin(RunNo),
    /// A run that could not be played is tried again.
    Retry(RunNo),
    /// A run that is on trial has been played for so long that it killed nobody.
    Acquit(RunNo),
    /// An attempt that is on trial has run for so long that others are tried beside it.
    EndTrial { run: RunNo, seq: Seq, attempt: u32 },
    /// Turns that were held back are committed.
    Flush(RunNo),
    /// Attempts of a queue are asked to stop, because the engine shuts down.
    AskToStop(Name),
    /// What has not stopped is left behind.
    CutOff(Name),
    /// A shutdown waits no longer for code that was asked to stop before.
    StopWaiting,
    /// Code of a queue that was asked to stop is asked again, or counts as a zombie.
    Zombies(Name),
    /// Runs that closed too long ago are deleted.
    Expire,
    /// Some of what deleted runs left is removed.
    Sweep,
    /// Local work is tried again.
    Local { run: RunNo, seq: Seq, attempt: u32 },
    /// Local work has taken too long.
    LocalTimeout { run: RunNo, seq: Seq, attempt: u32, kind: TimeoutKind },
}

/// By which something of this process's own can be called off.
pub(crate) type AlarmNo = (Timestamp, u64);

#[derive(Debug, Default)]
pub(crate) struct Timers {
    stored: BTreeSet<TimerRow>,
    /// Stored timers that fired and that no committed turn has taken yet: they are still in the store.
    fired: BTreeSet<TimerRow>,
    /// All stored timers due before this are in memory.
    horizon: Timestamp,
    own: BTreeMap<AlarmNo, Due>,
    /// Tells apart what is due at the same moment, in the order in which it came.
    next: u64,
}

/// What is due now.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fired {
    pub(crate) stored: Vec<TimerRow>,
    pub(crate) own: Vec<Due>,
}

impl Timers {
    /// How many rows to read from the store to fill up.
    pub(crate) fn to_read(&self) -> usize {
        MOST / 2 + self.fired.len()
    }

    /// Takes over the earliest rows of the store, of which at most `asked` were asked for.
    pub(crate) fn fill(&mut self, rows: Vec<TimerRow>, asked: usize) {
        self.horizon = match rows.last() {
            // There may be more that are due when the last of these is.
            Some(last) if rows.len() >= asked => last.due,
            _ => Timestamp(u64::MAX),
        };
        let horizon = self.horizon;
        let fired = &self.fired;
        self.stored.extend(rows.into_iter().filter(|row| row.due < horizon && !fired.contains(row)));
    }

    /// A timer was stored.
    pub(crate) fn add(&mut self, row: TimerRow) {
        // This one is for processes that come later.
        if row.kind == TimerKind::Retry {
            self.fired.insert(row);
        } else if row.due < self.horizon {
            self.stored.insert(row);
        }
        if self.stored.len() > MOST {
            self.forget_later_half();
        }
    }

    /// The later half stays in the store alone, unless all are due at one moment.
    fn forget_later_half(&mut self) {
        let middle = self.stored.iter().nth(self.stored.len() / 2).map(|row| row.due);
        let Some(middle) = middle.filter(|middle| self.stored.first().is_some_and(|first| first.due < *middle)) else {
            return;
        };
        self.horizon = middle;
        self.stored.retain(|row| row.due < middle);
    }

    /// A stored timer is over.
    pub(crate) fn remove(&mut self, row: &TimerRow) {
        self.stored.remove(row);
        self.fired.remove(row);
    }

    /// Timers of a run that fired and are still in the store.
    pub(crate) fn fired_of(&self, run: RunNo) -> Vec<TimerRow> {
        self.fired.iter().filter(|row| row.run == run).copied().collect()
    }

    pub(crate) fn own(&mut self, at: Timestamp, due: Due) -> AlarmNo {
        let key = (at, self.next);
        self.own.insert(key, due);
        self.next += 1;
        key
    }

    /// What was to be done need not be done.
    pub(crate) fn cancel(&mut self, alarm: AlarmNo) {
        self.own.remove(&alarm);
    }

    /// Whether the store has to be read again before anything can be said of this moment.
    pub(crate) fn is_low(&self, now: Timestamp) -> bool {
        self.horizon <= now || (self.stored.is_empty() && self.horizon < Timestamp(u64::MAX))
    }

    /// The next moment at which something is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let stored = self.stored.first().map(|row| row.due);
        let own = self.own.first_key_value().map(|((at, _), _)| *at);
        let horizon = Some(self.horizon).filter(|horizon| *horizon < Timestamp(u64::MAX));
        [stored, own, horizon].into_iter().flatten().min()
    }

    /// Takes what is due.
    pub(crate) fn fire(&mut self, now: Timestamp) -> Fired {
        let mut fired = Fired::default();
        while let Some(row) = self.stored.first().copied().filter(|row| row.due <= now) {
            self.stored.remove(&row);
            self.fired.insert(row);
            fired.stored.push(row);
        }
        while let Some(entry) = self.own.first_entry().filter(|entry| entry.key().0 <= now) {
            fired.own.push(entry.remove());
        }
        fired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(due: u64, run: i64) -> TimerRow {
        TimerRow { due: Timestamp(due), run: RunNo(run), kind: TimerKind::Start }
    }

    #[test]
    fn timers_beyond_what_was_read_stay_in_the_store_until_it_is_read_again() {
        let mut timers = Timers::default();
        timers.fill(vec![row(1, 1), row(2, 2), row(3, 3)], 3);
        timers.add(row(9, 9));
        assert_eq!(timers.fire(Timestamp(10)).stored, [row(1, 1), row(2, 2)]);
        assert!(timers.is_low(Timestamp(10)));
        timers.fill(vec![row(2, 2), row(3, 3), row(9, 9)], 4);
        assert_eq!(timers.fire(Timestamp(10)).stored, [row(3, 3), row(9, 9)], "what fired before is not due again");
        assert!(!timers.is_low(Timestamp(10)), "fewer came than were asked for, so there are no more");
    }

    #[test]
    fn memory_holds_the_earliest_of_very_many_timers() {
        let mut timers = Timers::default();
        timers.fill(Vec::new(), 1);
        for due in (0..=MOST as u64).rev() {
            timers.add(row(due, 1));
        }
        assert_eq!(timers.stored.len(), MOST / 2);
        assert_eq!(timers.horizon, Timestamp(MOST as u64 / 2));
        timers.add(row(MOST as u64 / 2, 2));
        assert_eq!(timers.stored.len(), MOST / 2, "the store alone keeps what is due later");
    }

    #[test]
    fn what_this_process_alone_has_to_do_comes_in_order() {
        let mut timers = Timers::default();
        timers.own(Timestamp(5), Due::Retry(RunNo(1)));
        timers.own(Timestamp(5), Due::Retry(RunNo(2)));
        timers.own(Timestamp(4), Due::Flush(RunNo(3)));
        timers.own(Timestamp(6), Due::Flush(RunNo(4)));
        let fired = timers.fire(Timestamp(5)).own;
        assert_eq!(fired, [Due::Flush(RunNo(3)), Due::Retry(RunNo(1)), Due::Retry(RunNo(2))]);
    }
}
