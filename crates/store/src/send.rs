//! Messages to runs.

use dacapo_core::{Job, Timestamp, to_stored};

use crate::rows::Rows;
use crate::{NewMessage, RunNo, SentMessage, StoreError, TurnWritten};

type Result<T> = std::result::Result<T, StoreError>;

pub(crate) fn send(rows: &mut impl Rows, run: RunNo, message: &NewMessage) -> Result<SentMessage> {
    let job = message.job.clone();
    match rows.insert_message(run, message, None)? {
        Some(no) => Ok(SentMessage { run, no, job, fresh: true, unseen: 0 }),
        None => {
            let no = rows.message_no(run, &message.key)?.unwrap_or_default();
            Ok(SentMessage { run, no, job, fresh: false, unseen: 0 })
        }
    }
}

/// Sends a run a message about one of its own operations, or about its parent.
pub(crate) fn reply(
    rows: &mut impl Rows,
    run: RunNo,
    key: String,
    sent: Timestamp,
    job: &Job,
    written: &mut TurnWritten,
) -> Result<()> {
    let job = to_stored(job);
    written.sent.push(send(rows, run, &NewMessage { key: key.into(), sent, job })?);
    Ok(())
}
