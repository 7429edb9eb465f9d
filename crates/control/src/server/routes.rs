//! The paths, each with the call that it makes. The table is the source of the router's document as well.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::HeaderMap;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use axum::{Extension, Json, Router, middleware};
use dacapo_client::{
    ClientCall as Call, CompleteActivity, Cursor, Filter, GroupBy, PollUpdate, QueryRun, ResolvePromise, RunRef,
    SendSignal, SendUpdate, StartRun, Status,
};
use dacapo_core::Name;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::guard::{self, Caller};
use super::problem::Problem;
use super::{Control, call, events, health, open_api};

/// The most bytes of a request: more than the largest payload that a backend takes.
const MAX_BODY: usize = 32 * 1024 * 1024;
/// The runs or events of a page, unless the request asks for another number.
const PAGE: usize = 50;
/// The most of them.
const MAX_PAGE: usize = 1_000;

/// What a path does.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// For people.
    pub(super) summary: &'static str,
    /// The type of the body, if it has one.
    pub(super) body: Option<&'static str>,
    /// The parameters of the query.
    pub(super) query: &'static [&'static str],
    /// The call that is made, from the ids of the path, the query and the body.
    make: fn(&Asked<'_>) -> Result<Call, Problem>,
}

/// A request for a call.
struct Asked<'a> {
    workflow_id: Option<String>,
    query: Parameters,
    body: &'a [u8],
}

/// Everything that a query can say.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    run_id: Option<Name>,
    search: Option<String>,
    status: Option<Status>,
    workflow: Option<Name>,
    workflow_id: Option<Name>,
    stuck: bool,
    after: Option<String>,
    limit: Option<usize>,
    by: Option<GroupBy>,
}

/// The reason that goes with a change.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Reason {
    reason: String,
}

/// The turn from which a run starts again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    turn: u64,
    #[serde(default)]
    reason: String,
}

const OF_RUN: &[&str] = &["run_id"];
const OF_LIST: &[&str] = &["search", "status", "workflow", "workflow_id", "stuck", "after", "limit"];
const OF_COUNTS: &[&str] = &["search", "status", "workflow", "workflow_id", "stuck", "by"];
const OF_HISTORY: &[&str] = &["run_id", "after", "limit"];

macro_rules! route {
    ($method:literal $path:literal, $summary:literal, $body:expr, $query:expr, $make:expr) => {
        Route { method: $method, path: $path, summary: $summary, body: $body, query: $query, make: $make }
    };
}

pub(super) const ROUTES: &[Route] = &[
    route!("GET" "/runs", "List runs.", None, OF_LIST, |asked| {
        Ok(Call::List(asked.filter()?, asked.after(), asked.limit()?))
    }),
    route!("POST" "/runs", "Start a run.", Some("StartRun"), &[], |asked| Ok(Call::Start(asked.body::<StartRun>()?))),
    route!("GET" "/counts", "Count runs, each group up to 10,000.", None, OF_COUNTS, |asked| {
        Ok(Call::Counts(asked.filter()?, asked.query.by))
    }),
    route!("GET" "/stuck", "Group stuck runs by cause.", None, &[], |_| Ok(Call::StuckRuns)),
    route!("GET" "/nodes", "List the processes that serve.", None, &[], |_| Ok(Call::Nodes)),
    route!("GET" "/runs/{workflow_id}", "Describe a run.", None, OF_RUN, |asked| Ok(Call::Describe(asked.run()?))),
    route!("DELETE" "/runs/{workflow_id}", "Delete a closed run.", None, OF_RUN, |asked| Ok(Call::Delete(asked.run()?))),
    route!("GET" "/runs/{workflow_id}/history", "Read what happened in a run.", None, OF_HISTORY, |asked| {
        Ok(Call::History(asked.run()?, asked.after(), asked.limit()?))
    }),
    route!("GET" "/runs/{workflow_id}/raw-history", "Read the history as the backend keeps it.", None, OF_RUN, |asked| {
        Ok(Call::RawHistory(asked.run()?))
    }),
    route!("GET" "/runs/{workflow_id}/inspection", "Say what each unit waits for, and where.", None, OF_RUN, |asked| {
        Ok(Call::Inspect(asked.run()?))
    }),
    route!("GET" "/runs/{workflow_id}/published", "Read the snapshot that the run published last.", None, OF_RUN, |asked| {
        Ok(Call::Published(asked.run()?))
    }),
    route!("GET" "/runs/{workflow_id}/result", "Wait for the result.", None, OF_RUN, |asked| Ok(Call::RunResult(asked.run()?))),
    route!("POST" "/runs/{workflow_id}/signals", "Send a signal.", Some("SendSignal"), OF_RUN, |asked| {
        Ok(Call::Signal(asked.run()?, asked.body::<SendSignal>()?))
    }),
    route!("POST" "/runs/{workflow_id}/queries", "Ask a question.", Some("QueryRun"), OF_RUN, |asked| {
        Ok(Call::Query(asked.run()?, asked.body::<QueryRun>()?))
    }),
    route!("POST" "/runs/{workflow_id}/updates", "Send an update and wait for it.", Some("SendUpdate"), OF_RUN, |asked| {
        Ok(Call::Update(asked.run()?, asked.body::<SendUpdate>()?))
    }),
    route!("POST" "/runs/{workflow_id}/update-results", "Wait for an update.", Some("PollUpdate"), OF_RUN, |asked| {
        Ok(Call::UpdateResult(asked.run()?, asked.body::<PollUpdate>()?))
    }),
    route!("POST" "/runs/{workflow_id}/cancel", "Ask the run to cancel itself.", Some("Reason"), OF_RUN, |asked| {
        Ok(Call::Cancel(asked.run()?, asked.body::<Reason>()?.reason))
    }),
    route!("POST" "/runs/{workflow_id}/terminate", "End the run at once.", Some("Reason"), OF_RUN, |asked| {
        Ok(Call::Terminate(asked.run()?, asked.body::<Reason>()?.reason))
    }),
    route!("POST" "/runs/{workflow_id}/reset", "Start again from a turn, as a new run.", Some("Reset"), OF_RUN, |asked| {
        let Reset { turn, reason } = asked.body()?;
        Ok(Call::Reset(asked.run()?, turn, reason))
    }),
    route!("POST" "/runs/{workflow_id}/release", "Release a quarantined run.", None, OF_RUN, |asked| {
        Ok(Call::Release(asked.run()?))
    }),
    route!("POST" "/runs/{workflow_id}/promises", "Resolve or reject a promise.", Some("ResolvePromise"), OF_RUN, |asked| {
        Ok(Call::ResolvePromise(asked.run()?, asked.body::<ResolvePromise>()?))
    }),
    route!("POST" "/runs/{workflow_id}/activities", "Complete a pending activity.", Some("CompleteActivity"), OF_RUN, |asked| {
        Ok(Call::CompleteActivity(asked.run()?, asked.body::<CompleteActivity>()?))
    }),
];

impl Asked<'_> {
    fn run(&self) -> Result<RunRef, Problem> {
        let workflow_id = self.workflow_id.clone().unwrap_or_default();
        if workflow_id.is_empty() {
            return Err(Problem::invalid("the path has no workflow id"));
        }
        Ok(match &self.query.run_id {
            Some(run_id) => RunRef::exact(workflow_id, run_id.clone()),
            None => RunRef::latest(workflow_id),
        })
    }

    fn filter(&self) -> Result<Filter, Problem> {
        let Parameters { search, status, workflow, workflow_id, stuck, .. } = &self.query;
        let search = match search.as_deref().filter(|text| !text.trim().is_empty()) {
            Some(text) => Some(text.parse().map_err(|error| Problem::invalid(format!("{error}")))?),
            None => None,
        };
        let (workflow, workflow_id) = (workflow.clone(), workflow_id.clone());
        Ok(Filter { search, status: *status, workflow, workflow_id, stuck: *stuck, ..Filter::default() })
    }

    fn after(&self) -> Option<Cursor> {
        self.query.after.clone().map(Cursor)
    }

    fn limit(&self) -> Result<usize, Problem> {
        match self.query.limit.unwrap_or(PAGE) {
            limit @ 1..=MAX_PAGE => Ok(limit),
            other => Err(Problem::invalid(format!("a page has 1 to {MAX_PAGE} items, not {other}"))),
        }
    }

    /// An empty body is one without members.
    fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body = if self.body.is_empty() { b"{}" } else { self.body };
        serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
    }
}

pub(super) fn router(control: Arc<Control>) -> Router {
    let mut api = Router::new()
        .route("/capabilities", get(capabilities))
        .route("/call", post(as_data))
        .route("/events", get(events::of_list))
        .route("/runs/{workflow_id}/events", get(events::of_run));
    for route in ROUTES {
        let handler = move |control, caller, path, query, headers, body| {
            answer(route, control, caller, path, query, headers, body)
        };
        let method =
            Method::from_bytes(route.method.as_bytes()).ok().and_then(|method| MethodFilter::try_from(method).ok());
        api = api.route(route.path, on(method.unwrap_or(MethodFilter::GET), handler));
    }
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(|| async { Json(open_api()) }))
        .nest("/api/v1", api)
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(control.clone(), guard::check))
        .with_state(control)
}

async fn unknown(method: Method, uri: Uri) -> Problem {
    let detail = format!("there is no {method} {}: /openapi.json lists all paths", uri.path());
    Problem::new(StatusCode::NOT_FOUND, detail)
}

async fn capabilities(State(control): State<Arc<Control>>) -> Response {
    Json(control.client.capabilities()).into_response()
}

async fn as_data(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let called = async {
        let body = readable(&headers, body)?;
        let call = serde_json::from_slice(&body);
        let call = call.map_err(|error| Problem::invalid(format!("the call cannot be read: {error}")))?;
        call::as_data(control, caller, call).await
    };
    called.await.into_response()
}

/// A body must say that it is JSON: a form of another page cannot say so.
fn readable(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    let body = body.map_err(|rejected| Problem::new(rejected.status(), rejected.body_text()))?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    match is_json {
        true => Ok(body),
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a change must come with `Content-Type: application/json`",
        )),
    }
}

async fn answer(
    route: &Route,
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    path: Option<Path<String>>,
    query: Result<Query<Parameters>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let called = async {
        let Query(query) = query.map_err(|rejected| Problem::invalid(rejected.body_text()))?;
        let body = if route.method == "GET" { Bytes::new() } else { readable(&headers, body)? };
        let asked = Asked { workflow_id: path.map(|Path(id)| id), query, body: &body };
        call::make(&control, &caller, (route.make)(&asked)?).await
    };
    match called.await {
        Ok(reply) => match serde_json::to_value(reply) {
            // The path says which reply it is.
            Ok(mut reply) => Json(reply.get_mut("with").map(serde_json::Value::take)).into_response(),
            Err(error) => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be written: {error}"))
                    .into_response()
            }
        },
        Err(problem) => problem.into_response(),
    }
}
