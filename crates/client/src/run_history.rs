//! The history of a run, as a list and as a text for people.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Deref;

use dacapo_core::{Failure, Payload, Seq};
use serde::{Deserialize, Serialize};

use crate::{EventKind, HistoryEvent};

/// The history of a run: a list of events, in order. Printed, it reads as a story.
///
/// ```text
/// 2026-03-01T09:00:00Z  turn 0
///   the run started: checkout("two lamps")
///   activity #0 began: charge("two lamps")
/// 2026-03-01T09:00:03Z  turn 1
///   activity #0 charge completed: "receipt" (attempt 2; the one before failed: the bank is closed)
///   timer #1 began: 1209600s
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
        match self {
            Self::Whole => payload.to_string(),
            Self::Redacted => size(&payload.to_string()),
        }
    }

    fn reason(&self, reason: &str) -> String {
        match self {
            Self::Whole => reason.to_owned(),
            Self::Redacted => size(reason),
        }
    }

    fn arguments(&self, input: &[Payload]) -> String {
        let input: Vec<String> = input.iter().map(|payload| self.payload(payload)).collect();
        format!("({})", input.join(", "))
    }

    fn failure(&self, failure: &Failure) -> String {
        match self {
            Self::Whole => failure.to_string(),
            Self::Redacted => size(&failure.to_string()),
        }
    }

    fn result(&self, result: &Result<Payload, Failure>) -> String {
        match result {
            Ok(payload) if payload.to_string().is_empty() => "completed".to_owned(),
            Ok(payload) => format!("completed: {}", self.payload(payload)),
            Err(failure) => format!("failed: {}", self.failure(failure)),
        }
    }
}

fn size(text: &str) -> String {
    format!("({} bytes)", text.len())
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
            format!("a caller asked the run to cancel: {}", shown.reason(reason))
        }
        EventKind::OperationStarted { seq, operation, name, input } => {
            names.insert(*seq, format!("{operation} {seq} {name}"));
            let input = if input.is_empty() { String::new() } else { shown.arguments(input) };
            format!("{operation} {seq} began: {name}{input}")
        }
        EventKind::OperationAccepted { seq } => format!("{} started", name_of(seq, names)),
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
        EventKind::Closed { status, result: None } => format!("the run is {status}"),
        EventKind::Closed { status, result: Some(result) } => match result {
            Ok(payload) if payload.to_string().is_empty() => format!("the run is {status}"),
            Ok(payload) => format!("the run is {status}: {}", shown.payload(payload)),
            Err(failure) => format!("the run is {status}: {}", shown.failure(failure)),
        },
        EventKind::Unknown => "an event that this build does not know".to_owned(),
    }
}
