//! Deduplication of reports on stuck runs: a bad deploy stops many runs for one cause, and one line says as much as a
//! thousand.

use std::collections::HashMap;
use std::time::Duration;

use dacapo_core::Timestamp;

/// Reduces a reason to what does not differ from run to run: numbers, ids and values go, places in the code stay.
pub(crate) fn cause_of(reason: &str) -> String {
    let mut lines = reason.lines();
    // What a thread was doing when the watch looked at it is chance.
    let headline = lines.next().unwrap_or_default().split("; its thread: ").next().unwrap_or_default();
    let mut cause = without_numbers(headline);
    for line in lines {
        let is_command = line.starts_with("   | recorded: ") || line.starts_with("   | new: ");
        if let Some((_, place)) = line.rsplit_once(", at ").filter(|_| is_command) {
            cause.push('\n');
            cause.push_str(place.split(',').next().unwrap_or_default());
        }
    }
    cause
}

/// Replaces words with digits by `#`, except after a colon, as in `main.rs:26:46`.
fn without_numbers(text: &str) -> String {
    let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        let is_number = word.contains(|letter: char| letter.is_ascii_digit()) && !out.ends_with(':');
        out.push_str(if is_number { "#" } else { word });
        rest = after;
    }
    out
}

/// How long a cause is remembered after it was logged in full.
const MEMORY: Duration = Duration::from_secs(600);
/// The maximum number of causes that are remembered.
const MOST: usize = 1_000;

/// The causes that were logged lately, and the number of runs of each.
#[derive(Default)]
pub(crate) struct Causes(HashMap<String, (Timestamp, u64)>);

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
    /// Counts one more run of this cause, and decides how it is logged.
    pub(crate) fn again(&mut self, cause: String, now: Timestamp) -> Repeat {
        if self.0.len() >= MOST {
            self.0.retain(|_, (since, _)| now.since(*since) < MEMORY);
        }
        let (since, count) = self.0.entry(cause).or_insert((now, 0));
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
        let mut again =
            |cause: &str, second: u64| causes.again(cause.to_owned(), Timestamp::from_millis(second * 1_000));
        let reported: Vec<Repeat> = (0..200).map(|_| again("a", 0)).filter(|repeat| *repeat != Repeat::Quiet).collect();
        assert_eq!(reported, [Repeat::First, Repeat::Count(9), Repeat::Count(99)]);
        assert_eq!(again("b", 1), Repeat::First);
        assert_eq!(again("a", 599), Repeat::Quiet);
        assert_eq!(again("a", 600), Repeat::First);
    }

    #[test]
    fn numbers_ids_and_values_are_no_part_of_the_cause() {
        let same = |one: &str, other: &str| assert_eq!(cause_of(one), cause_of(other));
        let differ = |one: &str, other: &str| assert_ne!(cause_of(one), cause_of(other));
        let report = |input: &str, place: &str| {
            format!(
                "nondeterminism: a command differs\n  --> turn 1\n   | new:      activity {input} #1, at {place}, by build 2\n   = help"
            )
        };
        same(&report("a", "main.rs:1:2"), &report("b", "main.rs:1:2"));
        differ(&report("a", "main.rs:1:2"), &report("a", "main.rs:1:3"));
        let panic =
            |order: &str, line: u32| format!("workflow code panicked, after src/a.rs:{line}:5: no order {order:?}");
        same(&panic("o-17", 3), &panic("o-4711", 3));
        differ(&panic("o-17", 3), &panic("o-17", 4));
        same("deadlock: turn 7; its thread: it computes", "deadlock: turn 8; its thread: it sleeps");
        differ("deadlock: turn 7", "no workflow is registered");
    }
}
