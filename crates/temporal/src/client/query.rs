//! Queries: of the program, and those that this backend answers itself.

use dacapo_client::{Error, QueryRun, Result, RunRef};
use dacapo_core::{Inspection, Payload};

use super::refusals::refused_for;
use super::rpc::{Rpc, execution, send};
use super::start::header;
use crate::convert::{first_from_proto, payloads_to_proto};
use crate::proto::query::WorkflowQuery;
use crate::proto::service::QueryWorkflowRequest;
use crate::reserved::{self, INSPECT, PUBLISHED};

pub(super) async fn query(rpc: &Rpc, run: &RunRef, query: QueryRun) -> Result<Payload> {
    reserved::check_name("query", &query.name)?;
    reserved::check_headers(&query.headers)?;
    ask(rpc, run, query).await
}

/// Returns the snapshot that the run published last.
pub(super) async fn published(rpc: &Rpc, run: &RunRef) -> Result<Option<Payload>> {
    let answer = ask(rpc, run, QueryRun { name: PUBLISHED.into(), ..QueryRun::default() }).await?;
    let published: Option<Payload> = read(&answer, "the published snapshot")?;
    Ok(published)
}

pub(super) async fn inspect(rpc: &Rpc, run: &RunRef) -> Result<Inspection> {
    let answer = ask(rpc, run, QueryRun { name: INSPECT.into(), ..QueryRun::default() }).await?;
    read(&answer, "the inspection")
}

fn read<T: serde::de::DeserializeOwned>(answer: &Payload, what: &str) -> Result<T> {
    serde_json::from_str(answer.as_text().unwrap_or_default()).map_err(|error| {
        Error::Refused(format!(
            "{what} of the run cannot be read: {error}. It is played by a worker of another kind, or by another version of Dacapo"
        ))
    })
}

async fn ask(rpc: &Rpc, run: &RunRef, query: QueryRun) -> Result<Payload> {
    let request = QueryWorkflowRequest {
        namespace: rpc.namespace(),
        execution: Some(execution(run)),
        query: Some(WorkflowQuery {
            query_type: query.name.to_string(),
            query_args: payloads_to_proto(&query.input),
            header: header(&query.headers),
        }),
        ..QueryWorkflowRequest::default()
    };
    match send!(rpc, query_workflow, request).await {
        Ok(answer) => Ok(first_from_proto(answer.query_result)),
        Err(status) => Err(refused_for(status, rpc, run).await),
    }
}
