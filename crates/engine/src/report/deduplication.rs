//! What reports of parked runs have in common: a bad deploy parks many runs for one cause, and one line says as much as a
//! thousand.

use std::collections::HashMap;
use std::time::Duration;

use dacapo_core::Timestamp;

/// A reason without what differs from run to run: numbers, ids and values go, places in the code stay.
pub(crate) fn cause_of(reason: &str) -> String {
    let mut lines = reason.lines();
    // What a thread was doing when it was looked at is chance.
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

/// Words with digits become `#`, except after a colon, as in `main.rs:26:46`.
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

/// How long a cause is remembered after it was told in full.
const MEMORY: Duration = Duration::from_secs(600);
/// The most causes that are remembered.
const MOST: usize = 1_000;

/// What was said lately, and of how many runs.
#[derive(Default)]
pub(crate) struct Said(HashMap<String, (Timestamp, u64)>);

/// How much is to be said of one more run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Say {
    /// All of it.
    InFull,
    /// That there are so many more since.
    Count(u64),
    Nothing,
}

impl Said {
    /// One more run has this cause.
    pub(crate) fn again(&mut self, cause: String, now: Timestamp) -> Say {
        if self.0.len() >= MOST {
            self.0.retain(|_, (since, _)| now.since(*since) < MEMORY);
        }
        let (since, count) = self.0.entry(cause).or_insert((now, 0));
        if now.since(*since) >= MEMORY {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        match *count {
            1 => Say::InFull,
            more if 10_u64.pow(more.ilog10()) == more => Say::Count(more - 1),
            _ => Say::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_is_told_in_full_then_counted_and_told_again_when_it_is_forgotten() {
        let mut said = Said::default();
        let mut say = |cause: &str, second: u64| said.again(cause.to_owned(), Timestamp::from_millis(second * 1_000));
        let told: Vec<Say> = (0..200).map(|_| say("a", 0)).filter(|say| *say != Say::Nothing).collect();
        assert_eq!(told, [Say::InFull, Say::Count(9), Say::Count(99)]);
        assert_eq!(say("b", 1), Say::InFull);
        assert_eq!(say("a", 599), Say::Nothing);
        assert_eq!(say("a", 600), Say::InFull);
    }

    #[test]
    fn what_differs_from_run_to_run_is_no_part_of_the_cause() {
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
