//! What is printed: text with colours on a terminal, or JSON.

use std::io::{IsTerminal as _, Write as _};

use dacapo_client::Status;
use serde::Serialize;

use crate::failure::{Failure, Result};

/// How a command prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    colours: bool,
}

/// A colour, as terminals know it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Dim,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
        Self { json, colours }
    }

    /// Prints a value as JSON, or as the text that it has.
    pub(crate) fn print<T: Serialize>(self, value: &T, text: impl FnOnce() -> String) -> Result<()> {
        let text = match self.json {
            true => serde_json::to_string_pretty(value)
                .map_err(|error| Failure::Other(format!("the answer cannot be written as JSON: {error}")))?,
            false => text(),
        };
        let mut out = std::io::stdout().lock();
        let text = text.trim_end_matches('\n');
        // A reader that has seen enough, such as `head`, ends the command without an error.
        match if text.is_empty() { Ok(()) } else { writeln!(out, "{text}") } {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn coloured(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Blue => "34",
            Colour::Dim => "2",
        };
        if self.colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The colour of a status.
pub(crate) const fn colour_of(status: Status, stuck: bool) -> Colour {
    match status {
        _ if stuck => Colour::Red,
        Status::Open => Colour::Blue,
        Status::Completed => Colour::Green,
        Status::Failed | Status::TimedOut => Colour::Red,
        _ => Colour::Yellow,
    }
}
