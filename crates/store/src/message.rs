//! Messages: signals, updates, results and other jobs sent to a run. A message is durable when it is acknowledged, has a key,
//! and is marked by the turn that takes it.

use dacapo_core::{Name, Timestamp};

use crate::{MessageNo, RunNo};

/// A message to a run: one job, under a key. A second message with the same key is the same message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Unique within the run.
    pub key: Name,
    /// When it was sent.
    pub sent: Timestamp,
    /// The job it brings, encoded.
    pub job: Vec<u8>,
}

/// Whether a message with this key is a caller's request, which may be sent again after the run that took it continued as new.
pub fn is_request(key: &str) -> bool {
    key.starts_with("signal:") || key.starts_with("update:")
}

/// A message as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number.
    pub no: MessageNo,
    /// Whose it is.
    pub run: RunNo,
    /// Its key.
    pub key: Name,
    /// When it was sent.
    pub sent: Timestamp,
    /// The job it brings, encoded.
    pub job: Vec<u8>,
    /// The turn that took it.
    pub taken: Option<u64>,
    /// What came of it, encoded, where somebody waits for that: the answer to an update.
    pub outcome: Option<Vec<u8>>,
}
