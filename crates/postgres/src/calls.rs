//! Calls between nodes: rows of a table that is in no log.

use std::collections::BTreeSet;

use dacapo_store::NodeNo;

use crate::failure::Failure;
use crate::notification::Listener;
use crate::outbox::Outbox;
use crate::row::get;
use crate::session::Session;

// Each of these may be made again if its answer is lost.
const CALL: &str = "INSERT INTO calls (id, node, caller, request) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
const SEE_CALLS: &str = "SELECT id, request FROM calls WHERE node = $1 AND NOT is_taken AND answer IS NULL";
const TAKE_CALLS: &str = "UPDATE calls SET is_taken = true WHERE id = ANY($1)";
const ANSWER: &str = "UPDATE calls SET answer = $2 WHERE id = $1 RETURNING caller";
const SEE_ANSWERS: &str = "SELECT id, answer FROM calls WHERE caller = $1 AND answer IS NOT NULL";
/// Calls that are answered, or that no node will answer any more.
const FORGET_CALLS: &str = "DELETE FROM calls WHERE caller = $1 AND id = ANY($2)";
const OWN_CALLS: &str = "SELECT id FROM calls WHERE caller = $1";

/// Calls a node.
pub(crate) async fn call(session: &Session<'_>, id: i64, node: NodeNo, request: &[u8]) -> Result<(), Failure> {
    session.query(CALL, &[&id, &node.0, &session.me.0, &request]).await.map(drop)
}

/// Answers a call of another node. Returns which: none if it does not wait any more.
pub(crate) async fn answer(session: &Session<'_>, id: i64, answer: &[u8]) -> Result<Option<NodeNo>, Failure> {
    let rows = session.query(ANSWER, &[&id, &answer]).await?;
    Ok(rows.first().map(|row| get(row, 0).map(NodeNo)).transpose()?)
}

/// Carries out the calls of other nodes that wait.
pub(crate) async fn take_calls(session: &Session<'_>, outbox: &Outbox, listener: &dyn Listener) -> Result<(), Failure> {
    let rows = session.query(SEE_CALLS, &[&session.me.0]).await?;
    if outbox.is_closed() {
        // A store that is closed begins nothing more. Their callers learn that the node is gone.
        return Ok(());
    }
    let mut taken: Vec<i64> = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = get(row, 0)?;
        taken.push(id);
        if outbox.begin_call(id) {
            listener.called(id, get(row, 1)?);
        }
    }
    if !taken.is_empty() {
        session.query(TAKE_CALLS, &[&taken]).await?;
    }
    Ok(())
}

/// Hands on the answers to calls of this node.
pub(crate) async fn take_answers(session: &Session<'_>, outbox: &Outbox) -> Result<(), Failure> {
    let rows = session.query(SEE_ANSWERS, &[&session.me.0]).await?;
    let mut ended: Vec<i64> = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = get(row, 0)?;
        ended.push(id);
        if let Some(answered) = outbox.end_waiting(id) {
            answered(Ok(get(row, 1)?));
        }
    }
    if !ended.is_empty() {
        forget_calls(session, &ended).await?;
    }
    Ok(())
}

/// Removes calls of this node.
pub(crate) async fn forget_calls(session: &Session<'_>, calls: &[i64]) -> Result<(), Failure> {
    session.query(FORGET_CALLS, &[&session.me.0, &calls]).await.map(drop)
}

/// Ends calls of which the server knows nothing any more: it has lost their table.
pub(crate) async fn end_lost_calls(session: &Session<'_>, outbox: &Outbox) -> Result<(), Failure> {
    // In this order: a call that is sent later is in neither.
    let (waiting, unsent) = outbox.open_calls();
    let rows = session.query(OWN_CALLS, &[&session.me.0]).await?;
    let stored: BTreeSet<i64> = rows.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
    outbox.end_calls(|id, _| waiting.contains(&id) && !unsent.contains(&id) && !stored.contains(&id));
    Ok(())
}
