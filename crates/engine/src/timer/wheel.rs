//! The timer wheel: the earliest of the timers that the store keeps, and those that concern this process alone.
//!
//! The store may hold millions; memory holds the earliest few thousand, and knows up to which moment it holds them all.
//! Stored timers count engine time. Those of this process count steady time, so that a step of the machine's clock times
//! out nothing that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dacapo_core::{Name, Seq, TimeoutKind, Timestamp};
use dacapo_store::{RunNo, TimerKind, TimerRow};
use dacapo_sync::{Mutex, MutexGuard, ranks};
use dacapo_worker::DrainStep;
use tokio::sync::Notify;

use crate::host::Steady;

/// The maximum number of stored timers in memory.
const MOST: usize = 20_000;

/// The work for which an alarm of this process is armed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Due {
    /// A task may be tried again.
    Task { run: RunNo, seq: Seq, attempt: u32 },
    /// An attempt has taken too long, or was silent for too long.
    Attempt { run: RunNo, seq: Seq, attempt: u32, kind: TimeoutKind },
    /// A stored timer fired and is handled again: it could not be written, or the activity has time left.
    Again(TimerRow),
    /// The latest report of an attempt is stored.
    Report { run: RunNo, seq: Seq, attempt: u32 },
    /// A run whose start time had not come begins.
    Begin(RunNo),
    /// A run that could not be played is played again.
    Retry(RunNo),
    /// A run on probation has been played for so long without killing the process that it is cleared.
    ClearRun(RunNo),
    /// An attempt on probation has run for so long that others run beside it.
    EndProbation { run: RunNo, seq: Seq, attempt: u32 },
    /// Deferred turns are committed.
    Flush(RunNo),
    /// A step of a shutdown.
    Drain(DrainStep),
    /// Code of a queue that was asked to stop is asked again, or counts as a zombie.
    Zombies(Name),
    /// Runs that closed too long ago are deleted.
    Expire,
    /// Some of the rows that deleted runs left are removed.
    Sweep,
    /// Local work is tried again.
    Local { run: RunNo, seq: Seq, attempt: u32 },
    /// A call that waits until a run has an owner looks again.
    EndPause(Pause),
    /// Local work has taken too long.
    LocalTimeout { run: RunNo, seq: Seq, attempt: u32, kind: TimeoutKind },
}

/// A pause that an alarm ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pause(Arc<Notify>);

impl Pause {
    pub(crate) fn end(&self) {
        self.0.notify_one();
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        self.0.notified().await;
    }
}

impl PartialEq for Pause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The key by which an alarm of this process can be disarmed.
pub(crate) type AlarmNo = (Steady, u64);

/// All timers in memory.
pub(crate) struct Timers {
    wheel: Mutex<Wheel>,
    /// Held while the store is read: one thread reads it at a time.
    reading: Mutex<()>,
}

#[derive(Debug, Default)]
struct Wheel {
    stored: BTreeSet<TimerRow>,
    /// Stored timers that fired and that no committed turn has taken yet: they are still in the store.
    fired: BTreeSet<TimerRow>,
    /// All stored timers due before this are in memory.
    horizon: Timestamp,
    own: BTreeMap<AlarmNo, Due>,
    /// Tells apart alarms that are due at the same moment, in the order in which they were armed.
    next: u64,
    /// While the store is read: the timers that were added and removed meanwhile, in order.
    changes: Option<Vec<(TimerRow, bool)>>,
}

/// The timers and alarms that are due now.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fired {
    pub(crate) stored: Vec<TimerRow>,
    pub(crate) own: Vec<Due>,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { wheel: Mutex::new(ranks::TIMERS, Wheel::default()), reading: Mutex::new(ranks::REFILL, ()) }
    }

    /// Held by the thread that reads the store, from before [`Self::begin_to_read`] until after [`Self::fill`].
    pub(crate) fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock()
    }

    /// Arms an alarm of this process, and returns its key and the moment of the next wake-up.
    pub(crate) fn arm(&self, at: Steady, due: Due, now: (Timestamp, Steady)) -> (AlarmNo, Option<Steady>) {
        let mut wheel = self.wheel.lock();
        let alarm = (at, wheel.next);
        wheel.own.insert(alarm, due);
        wheel.next += 1;
        (alarm, wheel.next_wake(now))
    }

    /// Disarms alarms.
    pub(crate) fn disarm(&self, alarms: &[AlarmNo]) {
        if !alarms.is_empty() {
            let mut wheel = self.wheel.lock();
            alarms.iter().for_each(|alarm| drop(wheel.own.remove(alarm)));
        }
    }

    /// Notes timers that were stored and others that ended. Returns the moment of the next wake-up if it is earlier
    /// than before.
    pub(crate) fn change(&self, added: &[TimerRow], ended: &[TimerRow], now: (Timestamp, Steady)) -> Option<Steady> {
        if added.is_empty() && ended.is_empty() {
            return None;
        }
        let mut wheel = self.wheel.lock();
        let before = wheel.next_wake(now);
        // In this order, like the store: a timer that begins and ends in one write is over.
        added.iter().for_each(|row| wheel.add(*row));
        ended.iter().for_each(|row| wheel.remove(row));
        wheel.next_wake(now).filter(|next| before.is_none_or(|before| *next < before))
    }

    /// Begins to read the store, if memory does not know all timers up to `now`; without `now` in any case. Returns how
    /// many rows to read.
    pub(crate) fn begin_to_read(&self, now: Option<Timestamp>) -> Option<usize> {
        let mut wheel = self.wheel.lock();
        if now.is_some_and(|now| !wheel.is_low(now)) {
            return None;
        }
        wheel.changes.get_or_insert_default();
        Some(MOST / 2 + wheel.fired.len())
    }

    /// Takes over the earliest rows of the store, of which at most `asked` were asked for.
    pub(crate) fn fill(&self, rows: Vec<TimerRow>, asked: usize) {
        self.wheel.lock().fill(rows, asked);
    }

    /// Notes timers that another process has stored, unless they are known. Returns the moment of the next wake-up if it is
    /// earlier than before.
    pub(crate) fn add_unknown(&self, rows: &[TimerRow], now: (Timestamp, Steady)) -> Option<Steady> {
        let mut wheel = self.wheel.lock();
        let before = wheel.next_wake(now);
        for row in rows {
            if !wheel.fired.contains(row) {
                wheel.add(*row);
            }
        }
        wheel.next_wake(now).filter(|next| before.is_none_or(|before| *next < before))
    }

    /// Forgets the stored timers of runs that another process plays from now on.
    pub(crate) fn forget(&self, is_lost: impl Fn(RunNo) -> bool) {
        let wheel = &mut *self.wheel.lock();
        wheel.stored.retain(|row| !is_lost(row.run));
        wheel.fired.retain(|row| !is_lost(row.run));
        if let Some(changes) = &mut wheel.changes {
            changes.retain(|(row, _)| !is_lost(row.run));
        }
    }

    /// Forgets that a timer has fired, because another process plays its run.
    pub(crate) fn forget_fired(&self, row: &TimerRow) {
        self.wheel.lock().fired.remove(row);
    }

    /// Timers of a run that fired and are still in the store.
    pub(crate) fn fired_of(&self, run: RunNo) -> Vec<TimerRow> {
        self.wheel.lock().fired.iter().filter(|row| row.run == run).copied().collect()
    }

    /// The moment of the next wake-up.
    pub(crate) fn next_wake(&self, now: (Timestamp, Steady)) -> Option<Steady> {
        self.wheel.lock().next_wake(now)
    }

    /// Takes the timers and alarms that are due.
    pub(crate) fn fire(&self, now: (Timestamp, Steady)) -> Fired {
        self.wheel.lock().fire(now)
    }
}

impl Wheel {
    fn fill(&mut self, rows: Vec<TimerRow>, asked: usize) {
        self.horizon = match rows.last() {
            // There may be more that are due when the last of these is.
            Some(last) if rows.len() >= asked => last.due,
            _ => Timestamp(u64::MAX),
        };
        let horizon = self.horizon;
        let fired = &self.fired;
        self.stored.extend(rows.into_iter().filter(|row| row.due < horizon && !fired.contains(row)));
        // It is unknown whether the rows are from before or after these changes: made again, the changes are right in
        // both cases.
        for (row, is_new) in self.changes.take().unwrap_or_default() {
            match is_new {
                true => self.add(row),
                false => self.remove(&row),
            }
        }
    }

    /// Notes a timer that was stored.
    fn add(&mut self, row: TimerRow) {
        if let Some(changes) = &mut self.changes {
            changes.push((row, true));
        }
        // This timer is for processes that come later.
        if row.kind == TimerKind::Retry {
            self.fired.insert(row);
        } else if row.due < self.horizon {
            self.stored.insert(row);
        }
        if self.stored.len() > MOST {
            self.forget_later_half();
        }
    }

    /// Leaves the later half to the store alone, unless all are due at one moment.
    fn forget_later_half(&mut self) {
        let middle = self.stored.iter().nth(self.stored.len() / 2).map(|row| row.due);
        let Some(middle) = middle.filter(|middle| self.stored.first().is_some_and(|first| first.due < *middle)) else {
            return;
        };
        self.horizon = middle;
        self.stored.retain(|row| row.due < middle);
    }

    /// Notes that a stored timer is over.
    fn remove(&mut self, row: &TimerRow) {
        if let Some(changes) = &mut self.changes {
            changes.push((*row, false));
        }
        self.stored.remove(row);
        self.fired.remove(row);
    }

    /// Whether the store has to be read again before memory knows all timers up to this moment.
    fn is_low(&self, now: Timestamp) -> bool {
        self.horizon <= now || (self.stored.is_empty() && self.horizon < Timestamp(u64::MAX))
    }

    /// The next moment at which something is due.
    fn next_wake(&self, (now, steady): (Timestamp, Steady)) -> Option<Steady> {
        let stored = self.stored.first().map(|row| row.due);
        let horizon = Some(self.horizon).filter(|horizon| *horizon < Timestamp(u64::MAX));
        let stored = [stored, horizon].into_iter().flatten().min().map(|due| steady.after(due.since(now)));
        let own = self.own.first_key_value().map(|((at, _), _)| *at);
        [stored, own].into_iter().flatten().min()
    }

    fn fire(&mut self, (now, steady): (Timestamp, Steady)) -> Fired {
        let mut fired = Fired::default();
        while let Some(row) = self.stored.first().copied().filter(|row| row.due <= now) {
            self.stored.remove(&row);
            self.fired.insert(row);
            fired.stored.push(row);
        }
        while let Some(entry) = self.own.first_entry().filter(|entry| entry.key().0 <= steady) {
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

    fn at(moment: u64) -> (Timestamp, Steady) {
        (Timestamp(moment), Steady(Timestamp(moment)))
    }

    #[test]
    fn timers_beyond_what_was_read_stay_in_the_store_until_it_is_read_again() {
        let mut timers = Wheel::default();
        timers.fill(vec![row(1, 1), row(2, 2), row(3, 3)], 3);
        timers.add(row(9, 9));
        assert_eq!(timers.fire(at(10)).stored, [row(1, 1), row(2, 2)]);
        assert!(timers.is_low(Timestamp(10)));
        timers.fill(vec![row(2, 2), row(3, 3), row(9, 9)], 4);
        assert_eq!(timers.fire(at(10)).stored, [row(3, 3), row(9, 9)], "what fired before is not due again");
        assert!(!timers.is_low(Timestamp(10)), "fewer came than were asked for, so there are no more");
    }

    #[test]
    fn memory_holds_the_earliest_of_very_many_timers() {
        let mut timers = Wheel::default();
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
    fn alarms_of_this_process_come_in_order() {
        let timers = Timers::new();
        let arm = |moment: u64, due| timers.arm(Steady(Timestamp(moment)), due, at(0));
        arm(5, Due::Retry(RunNo(1)));
        arm(5, Due::Retry(RunNo(2)));
        let (_, wake) = arm(4, Due::Flush(RunNo(3)));
        assert_eq!(wake, Some(Steady(Timestamp(0))), "the store was not read yet");
        arm(6, Due::Flush(RunNo(4)));
        let fired = timers.fire(at(5)).own;
        assert_eq!(fired, [Due::Flush(RunNo(3)), Due::Retry(RunNo(1)), Due::Retry(RunNo(2))]);
    }

    #[test]
    fn timers_that_change_while_the_store_is_read_are_neither_lost_nor_kept_too_long() {
        let timers = Timers::new();
        assert_eq!(timers.begin_to_read(Some(Timestamp(0))), Some(MOST / 2));
        // The rows that were read know nothing of the one that was added, and still hold the one that ended.
        timers.change(&[row(3, 3)], &[row(2, 2)], at(0));
        timers.fill(vec![row(1, 1), row(2, 2)], 10);
        assert_eq!(timers.fire(at(9)).stored, [row(1, 1), row(3, 3)]);
    }

    #[test]
    fn a_step_of_engine_time_fires_stored_timers_and_no_alarm_of_this_process() {
        let timers = Timers::new();
        timers.fill(vec![row(100, 1)], 10);
        timers.arm(Steady(Timestamp(50)), Due::Sweep, at(0));
        assert_eq!(timers.next_wake(at(0)), Some(Steady(Timestamp(50))));
        let stepped = (Timestamp(100), Steady(Timestamp(1)));
        assert_eq!(timers.next_wake(stepped), Some(Steady(Timestamp(1))));
        let fired = timers.fire(stepped);
        assert_eq!((fired.stored.len(), fired.own.len()), (1, 0));
    }

    #[test]
    fn an_earlier_timer_armed_behind_a_later_one_asks_for_an_earlier_wake_up() {
        let timers = Timers::new();
        timers.fill(Vec::new(), 1);
        assert_eq!(timers.change(&[row(9, 1)], &[], at(1)), Some(Steady(Timestamp(9))));
        assert_eq!(timers.change(&[row(5, 2)], &[], at(1)), Some(Steady(Timestamp(5))));
        assert_eq!(timers.change(&[row(7, 3)], &[], at(1)), None);
    }
}
