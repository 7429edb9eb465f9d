//! Conversions of other errors into failures, so that `?` works on them.
//!
//! There is no conversion for every error type: a failure is itself an error, and a blanket conversion would overlap
//! with `From<T> for T`. For a type without one here, implement `From<YourError> for Failure`, or call
//! [`Failure::from_error`].

use std::error::Error;

use crate::Failure;
use crate::failure::MAX_CAUSES;

impl Failure {
    /// Creates an application failure with this error's message and its sources as causes. A failure is returned
    /// unchanged.
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        Self::from_error_at(error, MAX_CAUSES)
    }

    fn from_error_at(error: &(dyn Error + 'static), depth: usize) -> Self {
        if let Some(failure) = error.downcast_ref::<Self>() {
            return failure.clone();
        }
        if let Some(cancelled) = error.downcast_ref::<crate::Cancelled>() {
            return cancelled.clone().into();
        }
        let failure = Self::application(error.to_string());
        match error.source() {
            Some(source) if depth > 1 => failure.caused_by(Self::from_error_at(source, depth - 1)),
            _ => failure,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::application(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::application(message)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::from_error(&error)
    }
}

impl From<std::fmt::Error> for Failure {
    fn from(error: std::fmt::Error) -> Self {
        Self::from_error(&error)
    }
}

impl From<std::num::ParseIntError> for Failure {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::from_error(&error)
    }
}

impl From<std::num::ParseFloatError> for Failure {
    fn from(error: std::num::ParseFloatError) -> Self {
        Self::from_error(&error)
    }
}

impl From<std::string::FromUtf8Error> for Failure {
    fn from(error: std::string::FromUtf8Error) -> Self {
        Self::from_error(&error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from_error(&error)
    }
}

impl From<Box<dyn Error + Send + Sync>> for Failure {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::from_error(&*error)
    }
}

impl From<Box<dyn Error>> for Failure {
    fn from(error: Box<dyn Error>) -> Self {
        Self::from_error(&*error)
    }
}
