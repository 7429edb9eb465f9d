//! Mail: what others send a run. Durable when acknowledged, keyed, and marked by the turn that takes it.

use dacapo_core::{Name, Timestamp};

use crate::{MailNo, RunNo};

/// Something to be sent to a run: one job, under a key. The same key twice is the same mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMail {
    /// Unique within the run.
    pub key: Name,
    /// When it was sent.
    pub sent: Timestamp,
    /// The job it brings, encoded.
    pub job: Vec<u8>,
}

/// Whether mail of this key is somebody's request, who may send it again when the run that took it has gone on as another.
pub fn is_request(key: &str) -> bool {
    key.starts_with("signal:") || key.starts_with("update:")
}

/// Mail as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRow {
    /// Its number.
    pub no: MailNo,
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
