//! Transcripts: histories in our own format.

use dacapo_client::RawHistory;
use dacapo_core::{Failure, Transcript};

use crate::client::{Error, Result};

/// The format of a history of our own.
pub(crate) const FORMAT: &str = "dacapo-transcript";

/// Reads the transcript of a run.
pub(crate) fn transcript(raw: RawHistory) -> Result<Transcript> {
    if raw.format != FORMAT {
        let words = format!(
            "a transcript was asked for, and the backend has a history of format {:?}: ask an app that serves the workflow",
            raw.format
        );
        return Err(Error::value(Failure::application(words)));
    }
    let unreadable = |error| Failure::application(format!("the transcript cannot be read: {error}"));
    Transcript::from_text(&raw.text).map_err(|error| Error::value(unreadable(error)))
}
