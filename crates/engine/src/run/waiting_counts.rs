//! How many messages wait in the store for runs that are not in memory, so that not every sender has them counted: the count
//! grows with what waits, and a run that is not played only gets more.

use std::collections::BTreeMap;
use std::time::Duration;

use dacapo_store::RunNo;
use dacapo_sync::{Mutex, ranks};

use crate::host::Steady;

/// For how long a count is used. Other nodes send, too.
const USED_FOR: Duration = Duration::from_secs(1);
/// The part of the room left at a count that is sent to without another count: so no few nodes together exceed the limit.
const PART: usize = 8;
/// The most runs whose counts are kept.
const MOST: usize = 10_000;

/// Counts of waiting messages.
pub(crate) struct WaitingCounts(Mutex<BTreeMap<RunNo, Counted>>);

struct Counted {
    waiting: usize,
    /// How many more may be sent before they are counted again.
    left: usize,
    until: Steady,
}

impl WaitingCounts {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::WAITING_COUNTS, BTreeMap::new()))
    }

    /// Returns how many messages wait for a run, and counts one more. None: they have to be counted again.
    pub(crate) fn next(&self, run: RunNo, now: Steady) -> Option<usize> {
        let mut counts = self.0.lock();
        let counted = counts.get_mut(&run).filter(|counted| counted.left > 0 && now < counted.until)?;
        counted.left -= 1;
        counted.waiting += 1;
        Some(counted.waiting - 1)
    }

    /// Notes how many messages wait for a run, to which one more is sent.
    pub(crate) fn note(&self, run: RunNo, waiting: usize, limit: usize, now: Steady) {
        let mut counts = self.0.lock();
        if counts.len() >= MOST {
            counts.clear();
        }
        let left = limit.saturating_sub(waiting) / PART;
        counts.insert(run, Counted { waiting: waiting + 1, left, until: now.after(USED_FOR) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunNo = RunNo(1);

    #[test]
    fn count_is_used_for_a_part_of_the_room_and_for_a_while() {
        let (counts, now) = (WaitingCounts::new(), Steady::default());
        assert_eq!(counts.next(RUN, now), None);
        counts.note(RUN, 4, 20, now);
        assert_eq!([1, 2, 3].map(|_| counts.next(RUN, now)), [Some(5), Some(6), None]);
        assert_eq!(counts.next(RunNo(2), now), None);
        counts.note(RUN, 7, 100, now);
        assert_eq!(counts.next(RUN, now.after(USED_FOR)), None, "it is too old");
        counts.note(RUN, 14, 20, now);
        assert_eq!(counts.next(RUN, now), None, "near the limit each is counted");
    }
}
