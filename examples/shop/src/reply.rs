//! What goes wrong, as HTTP says it: the engine's own words, under the code that fits.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use dacapo::{EngineError, Error, Refused, StoreError};
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
        Error::Engine(error) => engine_code(error),
        Error::Update(_) | Error::Run { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        Error::Value(_) => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn engine_code(error: &EngineError) -> StatusCode {
    match error {
        EngineError::NotFound { .. } => StatusCode::NOT_FOUND,
        EngineError::Closed { .. } | EngineError::UpdateRejected(_) => StatusCode::CONFLICT,
        EngineError::Refused(Refused::InUse { .. } | Refused::Used { .. } | Refused::OtherRequest(_)) => {
            StatusCode::CONFLICT
        }
        EngineError::BadInput(_) => StatusCode::BAD_REQUEST,
        EngineError::PayloadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        EngineError::InboxFull { .. } => StatusCode::TOO_MANY_REQUESTS,
        EngineError::Stuck(_) | EngineError::UpdateWaits(_) | EngineError::ShutDown | EngineError::ReadOnly => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        EngineError::Store(StoreError::Full(_)) => StatusCode::INSUFFICIENT_STORAGE,
        EngineError::Store(StoreError::Unavailable(_)) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
