//! Errors as `application/problem+json`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dacapo_client::Error;
use serde::Serialize;

/// An error: what people read, and what programs read.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    /// In a few words, the same for all errors of a kind.
    title: &'static str,
    status: u16,
    /// The text for people: what happened, and what to do.
    detail: String,
    /// The client's error, for its own type on the other side.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<Error>>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { title, status: status.as_u16(), detail: detail.into(), error: None }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Error::InvalidArgument(detail.into()).into()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { error: Some(Box::new(error.clone())), ..Self::new(status(&error), error.to_string()) }
    }
}

const fn status(error: &Error) -> StatusCode {
    match error {
        Error::NotFound { .. }
        | Error::PromiseNotFound { .. }
        | Error::ActivityNotFound { .. }
        | Error::UpdateNotFound { .. } => StatusCode::NOT_FOUND,
        Error::InvalidArgument(_) | Error::InvalidToken(_) | Error::UnknownWorkflow { .. } => StatusCode::BAD_REQUEST,
        Error::PayloadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::InboxFull { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
        Error::ShutDown | Error::Busy(_) | Error::Unavailable(_) | Error::UpdateWaits(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Error::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        Error::Damaged(_) | Error::Unknown(_) => StatusCode::INTERNAL_SERVER_ERROR,
        // What remains depends on the state of the run.
        _ => StatusCode::CONFLICT,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
