//! Messages: signals, updates, results and other jobs sent to a run. A message is durable when it is acknowledged, has
//! a key, and is marked by the turn that takes it.

use dacapo_core::{Name, Timestamp};

use crate::{MessageNo, RunNo};

/// A message to a run: one job, under a key. A second message with the same key is the same message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The key, unique within the run.
    pub key: Name,
    /// When the message was sent.
    pub sent: Timestamp,
    /// The job it brings, encoded.
    pub job: Vec<u8>,
}

/// Returns whether a message with this key is a caller's request, which may be sent again after the run that took it
/// continued as new.
pub fn is_request(key: &str) -> bool {
    key.starts_with("signal:") || key.starts_with("update:")
}

/// A message as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// The message's number.
    pub no: MessageNo,
    /// The run that it is sent to.
    pub run: RunNo,
    /// The message's key.
    pub key: Name,
    /// When the message was sent.
    pub sent: Timestamp,
    /// The job it brings, encoded.
    pub job: Vec<u8>,
    /// The turn that took it. None: no turn has.
    pub taken: Option<u64>,
    /// The outcome for the caller that waits for it, encoded: the answer to an update.
    pub outcome: Option<Vec<u8>>,
}
