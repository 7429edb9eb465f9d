//! Lists and counts of runs, by a query in the server's own language. What the server lists is a moment older than what it knows.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dacapo_client::{Count, Cursor, Error, Filter, GroupBy, Order, Page, Result, Search, Status};
use dacapo_core::Timestamp;

use super::describe::description_of;
use super::refusals::refused;
use super::rpc::{Rpc, send};
use super::search::{self, quoted};
use crate::convert::status_to_word;
use crate::proto::service::{CountWorkflowExecutionsRequest, ListWorkflowExecutionsRequest};

/// The most runs that the server returns at once.
const MAX_PAGE: usize = 1_000;

pub(super) async fn list(
    rpc: &Rpc,
    filter: &Filter,
    after: Option<Cursor>,
    limit: usize,
    lacks: Error,
) -> Result<Page> {
    page(rpc, query(filter, lacks)?, after, limit).await
}

/// Returns some open runs of a queue.
pub(super) async fn open_runs(rpc: &Rpc, queue: &str, after: Option<Cursor>, limit: usize) -> Result<Page> {
    let query = format!("ExecutionStatus = 'Running' AND TaskQueue = {}", quoted(queue));
    page(rpc, query, after, limit).await
}

async fn page(rpc: &Rpc, query: String, after: Option<Cursor>, limit: usize) -> Result<Page> {
    let request = ListWorkflowExecutionsRequest {
        namespace: rpc.namespace(),
        page_size: i32::try_from(limit.clamp(1, MAX_PAGE)).unwrap_or(i32::MAX),
        next_page_token: after.map_or(Ok(Vec::new()), token_of)?,
        query,
    };
    let page = send!(rpc, list_workflow_executions, request).await.map_err(|status| refused(&status, rpc.cluster()))?;
    let next = (!page.next_page_token.is_empty()).then(|| cursor_of(&page.next_page_token));
    Ok(Page::new(page.executions.into_iter().map(description_of).collect(), next))
}

pub(super) async fn count(rpc: &Rpc, filter: &Filter, lacks: Error) -> Result<u64> {
    let request = CountWorkflowExecutionsRequest { namespace: rpc.namespace(), query: query(filter, lacks)? };
    let answer =
        send!(rpc, count_workflow_executions, request).await.map_err(|status| refused(&status, rpc.cluster()))?;
    Ok(u64::try_from(answer.count).unwrap_or_default())
}

/// The server counts without a limit, and groups by the status alone.
pub(super) async fn counts(rpc: &Rpc, filter: &Filter, by: Option<GroupBy>, lacks: Error) -> Result<Vec<Count>> {
    let Some(by) = by else { return Ok(vec![Count::new(None, count(rpc, filter, lacks).await?)]) };
    if by != GroupBy::Status {
        return Err(Error::InvalidArgument(
            "a Temporal server counts runs by their status alone: filter by one workflow and count its runs".to_owned(),
        ));
    }
    let query = format!("{} GROUP BY ExecutionStatus", condition(filter, lacks)?);
    let request = CountWorkflowExecutionsRequest { namespace: rpc.namespace(), query };
    let answer =
        send!(rpc, count_workflow_executions, request).await.map_err(|status| refused(&status, rpc.cluster()))?;
    let counts = answer.groups.into_iter().map(|group| {
        let word: Option<String> = group.group_values.first().and_then(|word| serde_json::from_slice(&word.data).ok());
        let word = word.unwrap_or_default();
        let status = Status::ALL.into_iter().find(|status| status_to_word(*status) == word);
        let group_of = status.map_or(word, |status| status.to_string());
        Count::new(Some(group_of), u64::try_from(group.count).unwrap_or_default())
    });
    Ok(counts.collect())
}

fn cursor_of(token: &[u8]) -> Cursor {
    Cursor(URL_SAFE_NO_PAD.encode(token))
}

fn token_of(Cursor(text): Cursor) -> Result<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(&text).map_err(|_| {
        Error::InvalidArgument(format!("invalid cursor {text:?}: pass on the one that the page before returned"))
    })
}

/// The filter in the server's language, with its order.
fn query(filter: &Filter, lacks: Error) -> Result<String> {
    let order = match filter.search.as_ref().map_or(Order::Newest, Search::order) {
        Order::Newest => return condition(filter, lacks),
        Order::StartTime { descending } => ("StartTime", descending),
        Order::CloseTime { descending } => ("CloseTime", descending),
    };
    let direction = if order.1 { "DESC" } else { "ASC" };
    Ok(format!("{} ORDER BY {} {direction}", condition(filter, lacks)?, order.0))
}

/// The filter in the server's language, without an order.
fn condition(filter: &Filter, lacks: Error) -> Result<String> {
    let mut terms = Vec::new();
    if filter.stuck {
        return Err(lacks);
    }
    if filter.status == Some(Status::Unknown) {
        return Err(Error::InvalidArgument(
            "runs cannot be listed by a status that this build does not know".to_owned(),
        ));
    }
    if let Some(status) = filter.status {
        terms.push(format!("ExecutionStatus = '{}'", status_to_word(status)));
    }
    if let Some(workflow) = &filter.workflow {
        terms.push(format!("WorkflowType = {}", quoted(workflow)));
    }
    if let Some(workflow_id) = &filter.workflow_id {
        terms.push(format!("WorkflowId = {}", quoted(workflow_id)));
    }
    if let Some(search) = filter.search.as_ref().and_then(Search::condition) {
        terms.push(search::written(search).ok_or(lacks)?);
    }
    let time = |at: Timestamp| quoted(&at.to_string());
    terms.extend(filter.started_from.map(|from| format!("StartTime >= {}", time(from))));
    terms.extend(filter.started_before.map(|before| format!("StartTime < {}", time(before))));
    Ok(terms.join(" AND "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks() -> Error {
        super::super::capabilities().lacks(dacapo_client::Feature::StuckRuns)
    }

    #[test]
    fn filter_is_a_query_of_the_server_with_quoted_values() {
        let filter = Filter {
            status: Some(Status::Cancelled),
            workflow: Some("o'clock\\".into()),
            workflow_id: Some("order-1".into()),
            started_from: Some(Timestamp::from_millis(1_000)),
            started_before: Some(Timestamp::from_millis(2_500)),
            ..Filter::all()
        };
        assert_eq!(
            query(&filter, lacks()).unwrap(),
            "ExecutionStatus = 'Canceled' AND WorkflowType = 'o\\'clock\\\\' AND WorkflowId = 'order-1' AND \
             StartTime >= '1970-01-01T00:00:01Z' AND StartTime < '1970-01-01T00:00:02.5Z'"
        );
        assert_eq!(query(&Filter::all(), lacks()).unwrap(), "");
    }

    #[test]
    fn list_of_stuck_runs_is_refused_by_name() {
        let unknown = Filter { status: Some(Status::Unknown), ..Filter::all() };
        assert!(matches!(query(&unknown, lacks()), Err(Error::InvalidArgument(_))));
        let refused = query(&Filter::stuck(), lacks()).unwrap_err().to_string();
        assert!(refused.contains("(temporal) does not support lists of stuck runs"), "{refused}");
    }

    #[test]
    fn cursor_comes_back_from_its_text_and_other_text_is_refused() {
        assert_eq!(token_of(cursor_of(&[0, 255])).unwrap(), [0, 255]);
        assert!(matches!(token_of(Cursor("*".into())), Err(Error::InvalidArgument(_))));
    }
}
