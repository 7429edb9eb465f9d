//! Histories: pages of neutral events, and the server's own as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dacapo_client::{Cursor, Error, HistoryPage, RawHistory, Result, RunRef};

use super::events::EventReader;
use super::info::info_of;
use super::refusals::refused_for;
use super::rpc::{Rpc, execution, send};
use crate::history_json::history_to_json;
use crate::proto::history::{History, HistoryEvent, history_event::Attributes};
use crate::proto::service::GetWorkflowExecutionHistoryRequest;

/// The format of a history of the server.
pub(crate) const FORMAT: &str = "temporal-history";
/// How many events are asked for at a time.
const EVENTS: i32 = 1_000;

/// A page as the server sends it.
struct ServerPage {
    events: Vec<HistoryEvent>,
    next: Vec<u8>,
}

async fn fetch(rpc: &Rpc, run: &RunRef, token: Vec<u8>, most: i32) -> Result<ServerPage> {
    let request = GetWorkflowExecutionHistoryRequest {
        namespace: rpc.namespace(),
        execution: Some(execution(run)),
        maximum_page_size: most,
        next_page_token: token,
        ..GetWorkflowExecutionHistoryRequest::default()
    };
    match send!(rpc, get_workflow_execution_history, request).await {
        Ok(page) => Ok(ServerPage { events: page.history.unwrap_or_default().events, next: page.next_page_token }),
        Err(status) => Err(refused_for(status, rpc, run).await),
    }
}

/// Returns the start of a run.
pub(super) async fn first_event(rpc: &Rpc, run: &RunRef) -> Result<Option<HistoryEvent>> {
    Ok(fetch(rpc, run, Vec::new(), 1).await?.events.into_iter().next())
}

/// Returns all events of a run.
pub(super) async fn whole(rpc: &Rpc, run: &RunRef) -> Result<History> {
    let (mut events, mut token) = (Vec::new(), Vec::new());
    loop {
        let page = fetch(rpc, run, token, EVENTS).await?;
        events.extend(page.events);
        token = page.next;
        if token.is_empty() {
            return Ok(History { events });
        }
    }
}

pub(super) async fn raw(rpc: &Rpc, run: &RunRef) -> Result<RawHistory> {
    let history = whole(rpc, run).await?;
    let text = history_to_json(&history)
        .map_err(|error| Error::Refused(format!("the history of run {run} cannot be written as JSON: {error}")))?;
    Ok(RawHistory::new(FORMAT, text))
}

/// Counts the workflow tasks that a run has completed.
pub(super) async fn count_turns(rpc: &Rpc, run: &RunRef) -> Result<u64> {
    let history = whole(rpc, run).await?;
    let completed =
        |event: &&HistoryEvent| matches!(event.attributes, Some(Attributes::WorkflowTaskCompletedEventAttributes(_)));
    Ok(history.events.iter().filter(completed).count() as u64)
}

/// Where a page of neutral events ends: within a page of the server, at the begin of a turn.
struct Place {
    /// The run, so that later pages are of the same one.
    run_id: String,
    token: Vec<u8>,
    /// How many events of that page were returned.
    skip: usize,
    turn: u64,
}

impl Place {
    fn cursor(&self) -> Cursor {
        let token = URL_SAFE_NO_PAD.encode(&self.token);
        Cursor(format!("{}.{}.{}.{token}", self.run_id, self.turn, self.skip))
    }

    fn of(cursor: &Cursor) -> Option<Self> {
        let mut parts = cursor.0.splitn(4, '.');
        let (run_id, turn, skip) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { run_id, token: URL_SAFE_NO_PAD.decode(parts.next()?).ok()?, skip, turn })
    }
}

/// Returns about `limit` events after a cursor. The events of one turn stay together.
pub(super) async fn page(rpc: &Rpc, run: &RunRef, after: Option<Cursor>, limit: usize) -> Result<HistoryPage> {
    let mut place = match after {
        Some(cursor) => Place::of(&cursor).ok_or_else(|| {
            Error::InvalidArgument(format!(
                "invalid cursor {:?}: pass on the one that the page before returned",
                cursor.0
            ))
        })?,
        None => {
            let info = info_of(rpc, run).await?;
            let run_id = info.execution.unwrap_or_default().run_id;
            Place { run_id, token: Vec::new(), skip: 0, turn: 0 }
        }
    };
    let exact = RunRef::exact(run.workflow_id.clone(), place.run_id.clone());
    let mut reader = EventReader::at(place.turn);
    loop {
        let page = fetch(rpc, &exact, place.token.clone(), EVENTS).await?;
        for (at, event) in page.events.into_iter().enumerate().skip(place.skip) {
            if reader.begins_turn(&event) && reader.events().len() >= limit.max(1) {
                (place.skip, place.turn) = (at, reader.turn());
                return Ok(HistoryPage::new(reader.into_events(), Some(place.cursor())));
            }
            reader.read(event);
        }
        if page.next.is_empty() {
            return Ok(HistoryPage::new(reader.into_events(), None));
        }
        (place.token, place.skip) = (page.next, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_in_a_history_comes_back_from_its_cursor() {
        let place = Place { run_id: "0199-ab".into(), token: vec![7, 0, 255], skip: 12, turn: 3 };
        let read = Place::of(&place.cursor()).unwrap();
        assert_eq!((read.run_id, read.token, read.skip, read.turn), (place.run_id, place.token, 12, 3));
        for text in ["", "run", "run.1", "run.1.2", "run.x.2.", "run.1.2.*"] {
            assert!(Place::of(&Cursor(text.into())).is_none(), "{text}");
        }
    }
}
