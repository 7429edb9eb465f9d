//! Deduplication of reports on stuck runs: a bad deploy stops many runs for one cause, and one line says as much as a
//! thousand.

use std::collections::HashMap;
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_store::StuckCause;

/// How long a cause is remembered after it was logged in full.
const MEMORY: Duration = Duration::from_secs(600);
/// The maximum number of causes that are remembered.
const MOST: usize = 1_000;

/// The causes that were logged lately, and the number of runs of each.
#[derive(Default)]
pub(crate) struct Causes(HashMap<(StuckCause, String), (Timestamp, u64)>);

/// How one more run of a cause is logged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// In full.
    First,
    /// Only the number of further runs since.
    Count(u64),
    Quiet,
}

impl Causes {
    /// Counts one more run of this cause and subject, and decides how it is logged.
    pub(crate) fn again(&mut self, cause: StuckCause, subject: String, now: Timestamp) -> Repeat {
        if self.0.len() >= MOST {
            self.0.retain(|_, (since, _)| now.since(*since) < MEMORY);
        }
        let (since, count) = self.0.entry((cause, subject)).or_insert((now, 0));
        if now.since(*since) >= MEMORY {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        match *count {
            1 => Repeat::First,
            more if 10_u64.pow(more.ilog10()) == more => Repeat::Count(more - 1),
            _ => Repeat::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_reported_in_full_once_then_counted_and_in_full_again_after_a_while() {
        let mut causes = Causes::default();
        let mut again = |subject: &str, second: u64| {
            causes.again(StuckCause::Panic, subject.to_owned(), Timestamp::from_millis(second * 1_000))
        };
        let reported: Vec<Repeat> = (0..200).map(|_| again("a", 0)).filter(|repeat| *repeat != Repeat::Quiet).collect();
        assert_eq!(reported, [Repeat::First, Repeat::Count(9), Repeat::Count(99)]);
        assert_eq!(again("b", 1), Repeat::First);
        assert_eq!(again("a", 599), Repeat::Quiet);
        assert_eq!(again("a", 600), Repeat::First);
    }
}
