//! What functions of the user's return, seen by generated code: a result, whose error becomes a failure in whichever way
//! its type offers.

use std::error::Error;
use std::marker::PhantomData;

use dacapo_core::Failure;

/// The return type of a workflow, an activity or a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no result",
    label = "this has to be a `Result`",
    note = "workflows and activities can fail: return `Result<O, Failure>`"
)]
pub trait Returned {
    /// The value on success.
    type Value;
    /// The error.
    type Error;
}

impl<T, E> Returned for Result<T, E> {
    type Value = T;
    type Error = E;
}

/// Stands for an error of type `E`. Method lookup on `&&Thrown` finds `ByInto` first, for it is implemented for `&Thrown`,
/// then `ByError` one borrow further, and `AnyType` last: so a type's own conversion is preferred, and a type without any
/// is told what to do.
pub struct Thrown<E>(PhantomData<fn() -> E>);

impl<E> Thrown<E> {
    /// Chooses the conversion of this error.
    pub fn of(_: &E) -> Self {
        Self(PhantomData)
    }
}

/// Errors with a conversion `Into<Failure>`.
pub trait ByInto {
    /// The way from the error to the failure.
    fn way(&self) -> IntoWay {
        IntoWay
    }
}

impl<E: Into<Failure>> ByInto for &Thrown<E> {}

/// Errors of any other kind.
pub trait ByError {
    /// The way from the error to the failure.
    fn way(&self) -> ErrorWay {
        ErrorWay
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> ByError for &&Thrown<E> {}

/// Everything else, which is no error.
pub trait AnyType {
    /// The way that is none.
    fn way(&self) -> NoWay {
        NoWay
    }
}

impl<E> AnyType for Thrown<E> {}

/// The conversion by `Into<Failure>`.
pub struct IntoWay;

impl IntoWay {
    /// The failure.
    pub fn failure(self, error: impl Into<Failure>) -> Failure {
        error.into()
    }
}

/// The conversion of an error's text into an application failure.
pub struct ErrorWay;

impl ErrorWay {
    /// The failure.
    pub fn failure(self, error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        error.into().into()
    }
}

/// No conversion: the type is no error.
pub struct NoWay;

impl NoWay {
    /// Never a failure: the bound says what to do.
    pub fn failure<E: BecomesFailure>(self, _: E) -> Failure {
        unreachable!("no type becomes a failure by nothing")
    }
}

/// Implemented for nothing: it is here for its message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not become a `Failure`",
    note = "implement `From<{Self}> for Failure`, or `std::error::Error` for it, or return `Result<O, Failure>`"
)]
pub trait BecomesFailure {}
