//! Values as people read them.

use std::time::Duration;

use dacapo_client::Status;
use dacapo_core::{DurationText, Payload, Timestamp};

/// The moment, to the second.
pub(crate) fn moment(at: Timestamp) -> String {
    let whole = Timestamp(at.0 / 1_000_000_000 * 1_000_000_000);
    whole.to_string().replace('T', " ").trim_end_matches('Z').to_owned()
}

/// The duration, rounded to what its size makes readable.
pub(crate) fn duration(time: Duration) -> String {
    let rounded = match time.as_millis() {
        0..10_000 => Duration::from_millis(time.as_millis() as u64),
        _ => Duration::from_secs(time.as_secs()),
    };
    DurationText(rounded).to_string()
}

/// The status, or that the run is stuck.
pub(crate) fn status(status: Status, stuck: bool) -> String {
    if stuck { "stuck".to_owned() } else { status.to_string() }
}

/// The argument of a command as a payload: JSON as it is, anything else as a text.
pub(crate) fn payload(text: &str) -> Payload {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Payload::json(text.to_owned()),
        Err(_) => Payload::json(serde_json::Value::String(text.to_owned()).to_string()),
    }
}

/// A line of a table: columns of these widths, and what is left.
pub(crate) fn columns(parts: &[(&str, usize)], last: &str) -> String {
    let mut line = String::new();
    for (part, width) in parts {
        line += part;
        line += &" ".repeat(width.saturating_sub(part.chars().count()) + 2);
    }
    line + last
}

/// The text on one line, cut off after so many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    match line.chars().count() > most {
        true => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => line,
    }
}
