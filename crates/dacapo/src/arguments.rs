//! The arguments of a workflow or an activity, as generated code decodes them.

use dacapo_core::{Failure, Payload};
use serde::de::DeserializeOwned;

use crate::Converter;
use crate::json::BAD_INPUT;

/// The arguments of a call, taken one by one.
#[doc(hidden)]
pub struct Arguments<'c> {
    converter: &'c Converter,
    input: std::vec::IntoIter<Payload>,
    taken: usize,
}

impl<'c> Arguments<'c> {
    /// All that came.
    pub fn new(input: Vec<Payload>, converter: &'c Converter) -> Self {
        Self { converter, input: input.into_iter(), taken: 0 }
    }

    /// The next argument. One that did not come is `null`, so that code can add an `Option`.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Failure> {
        self.taken += 1;
        let payload = self.input.next().unwrap_or_default();
        self.converter.decode(&payload).map_err(|mut failure| {
            failure.message = format!("argument `{name}`: {}", failure.message);
            failure
        })
    }

    /// Nothing may be left, except for what says nothing.
    pub fn end(self) -> Result<(), Failure> {
        let extra = self.input.filter(|payload| !matches!(payload.as_text(), Some("" | "null"))).count();
        if extra == 0 {
            return Ok(());
        }
        let (given, taken) = (self.taken + extra, self.taken);
        let message =
            format!("{given} arguments were given, and {taken} are taken: give as many as the function takes");
        Err(Failure::application(message).typed(BAD_INPUT).non_retryable())
    }
}
