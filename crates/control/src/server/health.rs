//! Whether the process is there, whether it can work, and its metrics.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Control;
use super::problem::Problem;

pub(super) async fn alive() -> &'static str {
    "ok\n"
}

pub(super) async fn ready(State(control): State<Arc<Control>>) -> Response {
    match (control.ready)() {
        Ok(()) => "ok\n".into_response(),
        Err(why) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
    }
}

pub(super) async fn metrics(State(control): State<Arc<Control>>) -> Response {
    match &control.metrics {
        Some(render) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render()).into_response(),
        None => {
            let detail =
                "this program gives its metrics to no recorder that can be asked: hand it over with `Control::metrics`";
            Problem::new(StatusCode::NOT_FOUND, detail).into_response()
        }
    }
}
