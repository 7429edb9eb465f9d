//! The page of errors: what a user did, and what the error says.

use std::fmt;
use std::path::Path;

use dacapo::Error;

/// Errors in the order in which they are shown.
#[derive(Default)]
pub(crate) struct Page {
    rows: Vec<(String, String)>,
}

impl Page {
    /// Adds what a call answered that cannot succeed.
    pub(crate) fn error<T>(&mut self, cause: &str, answer: Result<T, Error>) {
        match answer {
            Ok(_) => panic!("{cause}: it was accepted"),
            Err(error) => self.text(cause, &error.to_string()),
        }
    }

    /// Adds a text that is no error of a call, such as why a run is stuck.
    pub(crate) fn text(&mut self, cause: &str, text: &str) {
        self.rows.push((cause.to_owned(), stable(text)));
    }

    pub(crate) fn errors(&self) -> usize {
        self.rows.len()
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (cause, text)) in (1..).zip(&self.rows) {
            writeln!(f, "{number}. {cause}\n    {}\n", text.trim_end().replace('\n', "\n    "))?;
        }
        Ok(())
    }
}

/// Replaces what differs from one execution to the next: folders, process ids, run ids, lines and columns.
fn stable(text: &str) -> String {
    let folder = std::env::temp_dir();
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (shown, len) = replaced(rest, &folder).unwrap_or_else(|| (c.to_string(), c.len_utf8()));
        out.push_str(&shown);
        rest = &rest[len..];
    }
    out
}

/// What stands for the beginning of this text, and how long that is.
fn replaced(text: &str, folder: &Path) -> Option<(String, usize)> {
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let uuid = text.get(..36).filter(|uuid| {
        let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
        parts == [8, 4, 4, 4, 12] && uuid.chars().all(|c| is_hex(c) || c == '-')
    });
    if uuid.is_some() {
        return Some(("RUN-ID".to_owned(), 36));
    }
    if let Some(after) = text.strip_prefix(&*folder.to_string_lossy()) {
        // A folder of `tempfile` is one component below.
        let name = after.strip_prefix('/')?.split(['/', '"', '`', ' ', ':']).next()?;
        return Some(("/tmp/FOLDER".to_owned(), text.len() - after.len() + 1 + name.len()));
    }
    if let Some(after) = text.strip_prefix(".rs:") {
        let place = after.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(after.len());
        return Some((".rs:LINE".to_owned(), 4 + after[..place].trim_end_matches(':').len()));
    }
    let after = text.strip_prefix("process ")?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    (digits > 0).then(|| ("process PID".to_owned(), 8 + digits))
}
