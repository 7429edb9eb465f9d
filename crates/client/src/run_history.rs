//! The history of a run, as a list and as a text for people.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Deref;

use dacapo_core::{DurationText, Failure, Payload, Seq};
use serde::{Deserialize, Serialize};

use crate::{EventKind, HistoryEvent, OperationKind, OperationStart};

/// The history of a run: a list of events, in order. Printed, it reads as a story.
///
/// ```text
/// 2026-03-01T09:00:00Z  turn 0
///   the run started: checkout("two lamps")
///   activity #0 began: charge("two lamps"), summary: the first half of the price
/// 2026-03-01T09:00:03Z  turn 1
///   activity #0 charge completed: "receipt" (attempt 2; the one before failed: the bank is closed)
///   timer #1 began: 14d
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunHistory(pub Vec<HistoryEvent>);

impl Deref for RunHistory {
    type Target = [HistoryEvent];

    fn deref(&self) -> &[HistoryEvent] {
        &self.0
    }
}

impl IntoIterator for RunHistory {
    type Item = HistoryEvent;
    type IntoIter = std::vec::IntoIter<HistoryEvent>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl RunHistory {
    /// Returns the history as a text for people.
    pub fn to_text(&self) -> String {
        self.write(&Shown::Whole)
    }

    /// Returns the text without payloads, messages of failures and reasons of callers, which may hold secrets: only their sizes
    /// are left.
    pub fn to_redacted_text(&self) -> String {
        self.write(&Shown::Redacted)
    }

    fn write(&self, shown: &Shown) -> String {
        let (mut text, mut names, mut turn) = (String::new(), BTreeMap::new(), None);
        for event in &self.0 {
            if turn.replace(event.turn) != Some(event.turn) {
                let _ = writeln!(text, "{}  turn {}", event.at, event.turn);
            }
            let _ = writeln!(text, "  {}", line(&event.kind, &mut names, shown));
        }
        text
    }
}

impl fmt::Display for RunHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// Whether payloads are shown.
enum Shown {
    Whole,
    Redacted,
}

impl Shown {
    fn payload(&self, payload: &Payload) -> String {
        match (self, payload.bytes()) {
            (Self::Redacted, _) => size(payload.inline_size()),
            (Self::Whole, Ok(bytes)) if payload.as_text().is_none() => {
                format!("({}, {} bytes)", payload.encoding, bytes.len())
            }
            (Self::Whole, _) => payload.to_string(),
        }
    }

    fn text(&self, text: &str) -> String {
        match self {
            Self::Whole => text.to_owned(),
            Self::Redacted => size(text.len()),
        }
    }

    fn arguments(&self, input: &[Payload]) -> String {
        let input: Vec<String> = input.iter().map(|payload| self.payload(payload)).collect();
        format!("({})", input.join(", "))
    }

    fn failure(&self, failure: &Failure) -> String {
        self.text(&failure.to_string())
    }

    fn result(&self, result: &Result<Payload, Failure>) -> String {
        match result {
            Ok(payload) if is_empty(payload) => "completed".to_owned(),
            Ok(payload) => format!("completed: {}", self.payload(payload)),
            Err(failure) => format!("failed: {}", self.failure(failure)),
        }
    }
}

fn is_empty(payload: &Payload) -> bool {
    payload.bytes().is_ok_and(|bytes| bytes.is_empty())
}

fn size(bytes: usize) -> String {
    format!("({bytes} bytes)")
}

/// The start of an operation as a line.
fn started(start: &OperationStart, shown: &Shown) -> String {
    let OperationStart { seq, operation, name, input, summary, duration, target } = start;
    let mut line = format!("{operation} {seq} began: {name}");
    if !input.is_empty() {
        line += &shown.arguments(input);
    }
    if let Some(duration) = duration {
        let _ = write!(line, "{}", DurationText(*duration));
    }
    if let Some(target) = target {
        let to = if *operation == OperationKind::Child { "with workflow id" } else { "to workflow id" };
        let space = if name.is_empty() && input.is_empty() { "" } else { " " };
        let _ = write!(line, "{space}{to} {target}");
    }
    if let Some(summary) = summary {
        let _ = write!(line, ", summary: {}", shown.text(summary));
    }
    line
}

/// Returns the name of an operation in later lines.
fn label(start: &OperationStart) -> String {
    let OperationStart { seq, operation, name, duration, .. } = start;
    match duration {
        Some(duration) => format!("{operation} {seq} {name}{}", DurationText(*duration)),
        None => format!("{operation} {seq} {name}").trim_end().to_owned(),
    }
}

/// One event as a line. `names` knows what earlier lines began.
fn line(kind: &EventKind, names: &mut BTreeMap<Seq, String>, shown: &Shown) -> String {
    let name_of = |seq: &Seq, names: &BTreeMap<Seq, String>| {
        names.get(seq).cloned().unwrap_or_else(|| format!("operation {seq}"))
    };
    match kind {
        EventKind::Started { workflow, input } => format!("the run started: {workflow}{}", shown.arguments(input)),
        EventKind::Reset => "the run was reset: what follows was played anew".to_owned(),
        EventKind::Signalled { signal, input } => format!("signal {signal}{} came", shown.arguments(input)),
        EventKind::UpdateReceived { id, update, input } => {
            format!("update {update}{} came, with id {id}", shown.arguments(input))
        }
        EventKind::UpdateAccepted { id } => format!("update {id} was accepted"),
        EventKind::UpdateCompleted { id, result } => format!("update {id} {}", shown.result(result)),
        EventKind::CancelRequested { reason } => {
            format!("a caller asked the run to cancel: {}", shown.text(reason))
        }
        EventKind::OperationStarted(start) => {
            names.insert(start.seq, label(start));
            started(start, shown)
        }
        EventKind::OperationAccepted { seq, run_id: None } => format!("{} started", name_of(seq, names)),
        EventKind::OperationAccepted { seq, run_id: Some(run_id) } => {
            format!("{} started as run {run_id}", name_of(seq, names))
        }
        EventKind::OperationEnded { seq, result, attempts, last_failure } => {
            let tried = match (attempts, last_failure) {
                (0 | 1, _) => String::new(),
                (attempts, Some(failure)) => {
                    format!(" (attempt {attempts}; the one before failed: {})", shown.failure(failure))
                }
                (attempts, None) => format!(" (attempt {attempts})"),
            };
            format!("{} {}{tried}", name_of(seq, names), shown.result(result))
        }
        EventKind::OperationCancelled { seq } => format!("the workflow cancelled {}", name_of(seq, names)),
        EventKind::Patched { patch } => format!("the workflow took the path of patch {patch}"),
        EventKind::Annotated { names } => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            format!("the workflow set {}", names.join(", "))
        }
        EventKind::Closed { status, result, next_run_id } => {
            let next = next_run_id.as_ref().map(|next| format!(", as run {next}")).unwrap_or_default();
            match result {
                None => format!("the run is {status}{next}"),
                Some(Ok(payload)) if is_empty(payload) => format!("the run is {status}{next}"),
                Some(Ok(payload)) => format!("the run is {status}{next}: {}", shown.payload(payload)),
                Some(Err(failure)) if next_run_id.is_some() => {
                    format!("the run is {status}{next}, because it failed: {}", shown.failure(failure))
                }
                Some(Err(failure)) => format!("the run is {status}: {}", shown.failure(failure)),
            }
        }
        EventKind::Unknown => "an event that this build does not know".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::{FailureKind, Timestamp};

    use super::*;

    fn history(kind: EventKind) -> RunHistory {
        RunHistory(vec![HistoryEvent::new(Timestamp::default(), 0, kind)])
    }

    fn last_line(text: &str) -> &str {
        text.lines().last().unwrap().trim()
    }

    #[test]
    fn payload_that_is_no_text_is_shown_as_its_encoding_and_size() {
        let cipher = Payload::new("binary/encrypted".into(), vec![0xff; 300].into());
        let history = history(EventKind::Signalled { signal: "go".into(), input: vec![cipher, Payload::json("7")] });
        assert_eq!(last_line(&history.to_text()), "signal go((binary/encrypted, 300 bytes), 7) came");
        assert_eq!(last_line(&history.to_redacted_text()), "signal go((300 bytes), (1 bytes)) came");
    }

    #[test]
    fn failure_of_a_run_is_left_out_of_the_redacted_text_whether_or_not_another_run_goes_on() {
        let failure = Failure::new(FailureKind::Application, "the card was stolen");
        for next_run_id in [None, Some("r-2".into())] {
            let result = Some(Err(failure.clone()));
            let history = history(EventKind::Closed { status: crate::Status::Failed, result, next_run_id });
            assert!(history.to_text().contains("the card was stolen"), "{history}");
            assert!(last_line(&history.to_redacted_text()).ends_with(": (19 bytes)"), "{history}");
        }
    }
}
