//! Why a run cannot go on: a typed cause, what tells the problem from others, and the text for people.

use dacapo_core::{ActivationError, CallSite, Command, Timestamp};
use dacapo_store::{Stuck, StuckCause};
use dacapo_worker::Deadlock;

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StuckReason {
    pub(crate) cause: StuckCause,
    /// The problem's mark among others of its cause, without what differs from run to run.
    pub(crate) subject: String,
    /// The report: what happened, where, and what to do.
    pub(crate) text: String,
}

impl StuckReason {
    pub(crate) fn new(cause: StuckCause, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { cause, subject: subject.into(), text: text.into() }
    }

    /// A problem of the engine or of the store, whose text is all that is known.
    pub(crate) fn of_text(cause: StuckCause, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cause, subject: without_numbers(headline(&text)), text }
    }

    /// Converts it into the mark that the store keeps.
    pub(crate) fn into_stuck(self, since: Timestamp, attempts: u32, retry: Timestamp) -> Stuck {
        let Self { cause, subject, text } = self;
        Stuck { cause, subject, reason: text, since, attempts, retry }
    }

    /// Returns whether a run is stuck for the same problem.
    pub(crate) fn is_that_of(&self, stuck: &Stuck) -> bool {
        (self.cause, &self.subject) == (stuck.cause, &stuck.subject)
    }
}

impl From<&ActivationError> for StuckReason {
    fn from(error: &ActivationError) -> Self {
        use ActivationError as E;
        let at = |site: &Option<CallSite>| site.as_ref().map_or_else(|| "no call".to_owned(), CallSite::to_string);
        let (cause, text) = (StuckCause::of_activation(error), error.to_string());
        let subject = match error {
            E::Nondeterminism(report) => {
                let place = |command: Option<&Command>| {
                    command.map_or_else(|| "nothing".to_owned(), |command| command.site.to_string())
                };
                format!("recorded {}, new {}", place(report.recorded()), place(report.decided()))
            }
            E::Violation(violation) => {
                format!("{}: {}", at(&violation.site), without_numbers(&violation.kind.to_string()))
            }
            E::Panic { message, site, .. } => {
                format!("after {}: {}", at(site), without_numbers(headline(message)))
            }
            E::Refused { site, .. } => site.to_string(),
            E::Interrupted { site, .. } => at(site),
            _ => return Self::of_text(cause, text),
        };
        Self::new(cause, subject, text)
    }
}

impl From<Deadlock> for StuckReason {
    fn from(deadlock: Deadlock) -> Self {
        let site = deadlock.site.map_or_else(|| "no call".to_owned(), |site| site.to_string());
        Self::new(StuckCause::Deadlock, format!("after {site}"), deadlock.reason)
    }
}

fn headline(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use dacapo_core::UnitId;

    use super::*;

    #[test]
    fn subject_of_a_stuck_run_leaves_out_numbers_ids_and_values() {
        let panic = |order: &str, line: u32| {
            let site = Some(CallSite { file: "src/a.rs".into(), line, column: 5 });
            let message = format!("no order {order:?}, at src/a.rs:9");
            StuckReason::from(&ActivationError::Panic { message, unit: UnitId::root(), site })
        };
        let (one, other) = (panic("o-17", 3), panic("o-4711", 3));
        assert_eq!(
            (one.cause, one.subject.as_str()),
            (StuckCause::Panic, "after src/a.rs:3:5: no order \"#\", at src/a.rs:9")
        );
        assert_ne!(one.text, other.text);
        let mark = |reason: StuckReason| reason.into_stuck(Timestamp(0), 1, Timestamp(0));
        assert!(one.is_that_of(&mark(other)));
        assert!(!one.is_that_of(&mark(panic("o-17", 4))));
        assert!(!one.is_that_of(&mark(StuckReason { cause: StuckCause::Limit, ..one.clone() })));
    }
}
