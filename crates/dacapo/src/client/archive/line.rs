//! The lines of a file of histories, and what they stand for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dacapo_core::{AttributeValue, Name, Timestamp};
use dacapo_store::{MessageNo, MessageRow, RunNo, RunRow, Status};
use serde::{Deserialize, Serialize};

use crate::client::{Error, Result};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    File {
        kind: String,
        version: u32,
    },
    Run(Box<RunLine>),
    Attribute {
        name: Name,
        value: AttributeValue,
    },
    Message(MessageLine),
    Turn {
        number: u64,
        record: String,
    },
    End {
        run_id: String,
    },
    /// The run was deleted while it was written: what stands here of it is not whole.
    Gone {
        run_id: String,
    },
    /// The file is whole.
    Complete {
        runs: u64,
    },
}

/// A run, without its turns. Bytes are written in base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunLine {
    run_id: String,
    workflow_id: String,
    workflow: String,
    queue: String,
    status: i64,
    /// Nanoseconds since 1970, as all moments.
    started: u64,
    closed: Option<u64>,
    turns: u64,
    first_run_id: String,
    #[serde(default)]
    pub(super) request: Option<String>,
    pins: String,
    memo: String,
    published: Option<String>,
    result: Option<String>,
}

/// A message of a run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageLine {
    key: String,
    sent: u64,
    job: String,
    taken: Option<u64>,
    outcome: Option<String>,
}

pub(super) fn to_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn bad(line: u64, what: impl std::fmt::Display) -> Error {
    dacapo_client::Error::InvalidArgument(format!(
        "the archive cannot be imported: line {line}: {what}. Export it again with `Runs::export`"
    ))
    .into()
}

pub(super) fn from_text(line: u64, text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|error| bad(line, error))
}

impl MessageLine {
    pub(super) fn of(row: &MessageRow) -> Self {
        Self {
            key: row.key.to_string(),
            sent: row.sent.0,
            job: to_text(&row.job),
            taken: row.taken,
            outcome: row.outcome.as_deref().map(to_text),
        }
    }

    pub(super) fn into_row(self, line: u64) -> Result<MessageRow> {
        Ok(MessageRow {
            no: MessageNo::default(),
            run: RunNo::default(),
            key: self.key.into(),
            sent: Timestamp(self.sent),
            job: from_text(line, &self.job)?,
            taken: self.taken,
            outcome: self.outcome.map(|text| from_text(line, &text)).transpose()?,
        })
    }
}

impl RunLine {
    pub(super) fn of(row: &RunRow, request: Option<&Name>) -> Self {
        Self {
            run_id: row.run_id.to_string(),
            workflow_id: row.workflow_id.to_string(),
            workflow: row.workflow.to_string(),
            queue: row.queue.to_string(),
            status: row.status.code(),
            started: row.started.0,
            closed: row.closed.map(|closed| closed.0),
            turns: row.turns,
            first_run_id: row.first_run_id.to_string(),
            request: request.map(Name::to_string),
            pins: to_text(&row.pins),
            memo: to_text(&row.memo),
            published: row.published.as_deref().map(to_text),
            result: row.result.as_deref().map(to_text),
        }
    }

    pub(super) fn into_row(self, line: u64) -> Result<RunRow> {
        let status = Status::from_code(self.status);
        let bytes = |text: Option<String>| text.map(|text| from_text(line, &text)).transpose();
        Ok(RunRow {
            no: RunNo::default(),
            status: status.ok_or_else(|| bad(line, format_args!("unknown status {}", self.status)))?,
            run_id: self.run_id.into(),
            workflow_id: self.workflow_id.into(),
            workflow: self.workflow.into(),
            queue: self.queue.into(),
            started: Timestamp(self.started),
            closed: self.closed.map(Timestamp),
            turns: self.turns,
            owner: None,
            epoch: Default::default(),
            pins: from_text(line, &self.pins)?,
            parent: None,
            first_run_id: self.first_run_id.into(),
            stuck: None,
            crash_count: 0,
            memo: from_text(line, &self.memo)?,
            published: bytes(self.published)?,
            result: bytes(self.result)?,
        })
    }
}
