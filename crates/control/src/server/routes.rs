//! The router: all paths and what they pass.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::HeaderMap;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Extension, Json, Router, middleware};

use super::guard::{self, Caller};
use super::problem::Problem;
use super::table::{Asked, Parameters, ROUTES, Route};
use super::{Control, call, events, health, open_api};

/// The most bytes of a request: more than the largest payload that a backend takes.
const MAX_BODY: usize = 32 * 1024 * 1024;
impl Control {
    /// Returns the router with all paths.
    pub fn router(self) -> Router {
        router(Arc::new(self))
    }
}

fn router(control: Arc<Control>) -> Router {
    let mut api = Router::new()
        .route("/capabilities", get(capabilities))
        .route("/call", on(MethodFilter::POST, as_data))
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
