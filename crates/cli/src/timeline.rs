//! A run as bars over time: one line for each operation and message.

use std::collections::BTreeMap;

use dacapo_client::{EventKind, HistoryEvent, OperationKind, OperationStart};
use dacapo_core::{DurationText, Failure, Payload, Seq, Timestamp};

use crate::output::{Colour, Output};
use crate::text::{columns, duration, short};

/// The characters of a bar.
const WIDTH: usize = 40;
/// The characters of a name.
const NAME: usize = 34;

/// One line.
struct Line {
    name: String,
    from: Timestamp,
    to: Option<Timestamp>,
    note: String,
    colour: Colour,
    /// Whether it is a moment without a length.
    is_moment: bool,
}

/// Draws what happened, up to now or to the end of the run.
pub(crate) fn draw(events: &[HistoryEvent], now: Timestamp, output: Output) -> String {
    let Some(first) = events.first().map(|event| event.at) else { return String::new() };
    let end = match events.last() {
        Some(HistoryEvent { at, kind: EventKind::Closed { .. }, .. }) => *at,
        _ => now.max(first),
    };
    let scale = Scale { first, length: end.since(first).as_nanos().max(1) };
    let lines = lines(events);
    let drawn = lines.iter().map(|line| {
        let bar = output.coloured(line.colour, &scale.bar(line, end));
        columns(&[(&short(&line.name, NAME), NAME)], &format!("▕{bar}▏ {}", line.note))
    });
    drawn.map(|line| line.trim_end().to_owned() + "\n").collect()
}

struct Scale {
    first: Timestamp,
    length: u128,
}

impl Scale {
    fn column(&self, at: Timestamp) -> usize {
        let part = at.since(self.first).as_nanos() * (WIDTH as u128 - 1) / self.length;
        (part as usize).min(WIDTH - 1)
    }

    fn bar(&self, line: &Line, end: Timestamp) -> String {
        let (from, to) = (self.column(line.from), self.column(line.to.unwrap_or(end)));
        let fill = match (line.is_moment, line.to) {
            (true, _) => '◆',
            (false, Some(_)) => '█',
            (false, None) => '░',
        };
        let to = if line.is_moment { from } else { to };
        (0..WIDTH).map(|column| if (from..=to).contains(&column) { fill } else { ' ' }).collect()
    }
}

fn lines(events: &[HistoryEvent]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut of: BTreeMap<Seq, usize> = BTreeMap::new();
    for event in events {
        match &event.kind {
            EventKind::OperationEnded { seq, result, attempts, .. } => {
                if let Some(line) = of.get(seq).and_then(|place| lines.get_mut(*place)) {
                    line.end(event.at, result, *attempts);
                }
            }
            EventKind::OperationCancelled { seq } => {
                if let Some(line) = of.get(seq).and_then(|place| lines.get_mut(*place)) {
                    (line.note, line.colour) = ("cancelled".to_owned(), Colour::Yellow);
                    line.to.get_or_insert(event.at);
                }
            }
            EventKind::OperationStarted(start) => {
                of.insert(start.seq, lines.len());
                lines.push(Line::started(event.at, start));
            }
            other => lines.extend(message(other).map(|(name, colour)| Line::moment(event.at, name, colour))),
        }
    }
    lines
}

/// Returns the name of a message that came, and its colour.
fn message(event: &EventKind) -> Option<(String, Colour)> {
    match event {
        EventKind::Signalled { signal, .. } => Some((format!("signal {signal}"), Colour::Blue)),
        EventKind::UpdateReceived { update, .. } => Some((format!("update {update}"), Colour::Blue)),
        EventKind::CancelRequested { .. } => Some(("cancel".to_owned(), Colour::Yellow)),
        _ => None,
    }
}

impl Line {
    fn moment(at: Timestamp, name: String, colour: Colour) -> Self {
        Self { name, from: at, to: Some(at), note: String::new(), colour, is_moment: true }
    }

    fn started(at: Timestamp, start: &OperationStart) -> Self {
        let name = match (start.operation, start.duration) {
            (OperationKind::Timer, Some(time)) => format!("timer {}", DurationText(time)),
            (kind, _) => format!("{kind} {}", start.name),
        };
        Self { name, from: at, to: None, note: "pending".to_owned(), colour: Colour::Dim, is_moment: false }
    }

    fn end(&mut self, at: Timestamp, result: &Result<Payload, Failure>, attempts: u32) {
        self.to = Some(at);
        self.colour = if result.is_ok() { Colour::Green } else { Colour::Red };
        self.note = duration(at.since(self.from));
        if attempts > 1 {
            self.note += &format!(", {attempts} attempts");
        }
        if let Err(failure) = result {
            self.note += &format!(", failed: {}", short(&failure.message, 60));
        }
    }
}
