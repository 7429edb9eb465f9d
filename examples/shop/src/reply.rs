//! What goes wrong, as HTTP says it: the engine's own words, under the code that fits.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use dacapo::{ClientError, Error};
use serde::Serialize;

/// A reply that is no success.
#[derive(Debug)]
pub struct Refusal {
    code: StatusCode,
    message: String,
}

#[derive(Serialize)]
struct Body {
    error: String,
}

impl Refusal {
    /// A refusal with this code.
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(code(&error), error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.code, Json(Body { error: self.message })).into_response()
    }
}

fn code(error: &Error) -> StatusCode {
    match error {
        Error::Client(error) => client_code(error),
        Error::Update(_) | Error::Run { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        Error::Value(_) => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn client_code(error: &ClientError) -> StatusCode {
    match error {
        ClientError::NotFound { .. } => StatusCode::NOT_FOUND,
        ClientError::Closed { .. } | ClientError::UpdateRejected(_) => StatusCode::CONFLICT,
        ClientError::WorkflowIdInUse { .. } | ClientError::RequestIdInUse { .. } => StatusCode::CONFLICT,
        ClientError::InvalidArgument(_) => StatusCode::BAD_REQUEST,
        ClientError::PayloadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ClientError::InboxFull { .. } => StatusCode::TOO_MANY_REQUESTS,
        ClientError::Stuck(_) | ClientError::UpdateWaits(_) | ClientError::ShutDown | ClientError::ReadOnly(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ClientError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        ClientError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
