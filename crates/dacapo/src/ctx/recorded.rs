//! ResultReader values, read as the type that the code expects now, and values that are about to be recorded.

use std::marker::PhantomData;
use std::panic::Location;

use dacapo_core::{Failure, Name, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Converter, Ctx};

/// Reads the results of one operation as an `O`. A record that is no `O` fails the activation, and never ends the run.
pub(super) struct ResultReader<O> {
    ctx: dacapo_core::Ctx,
    converter: Converter,
    what: &'static str,
    name: Name,
    site: &'static Location<'static>,
    output: PhantomData<fn() -> O>,
}

impl<O> ResultReader<O> {
    /// Encodes the value of a header of this operation. A value that cannot be encoded fails the activation.
    pub(super) fn header<T>(&self, name: &Name, value: &T, site: &'static Location<'static>) -> Payload
    where
        T: Serialize + ?Sized,
    {
        encoded_header(&self.ctx, &self.converter, name, value, site)
    }
}

impl<O: DeserializeOwned> ResultReader<O> {
    pub(super) fn new<S>(ctx: &Ctx<S>, what: &'static str, name: Name, site: &'static Location<'static>) -> Self {
        Self { ctx: ctx.raw().clone(), converter: ctx.converter().clone(), what, name, site, output: PhantomData }
    }

    pub(super) fn read(&self, outcome: Result<Payload, Failure>) -> Result<O, Failure> {
        outcome.map(|payload| self.value(&payload))
    }

    pub(super) fn value(&self, payload: &Payload) -> O {
        self.converter.decode(payload).unwrap_or_else(|failure| {
            let Self { ctx, what, name, site, .. } = self;
            let advice = "The run stays open; it goes on once the code can read what was recorded.";
            ctx.refuse(format!("the {what} {name:?}: {failure}\n{advice}"), site)
        })
    }
}

/// Encodes a value. One that cannot be encoded fails the activation.
pub(super) fn encoded<S, T: Serialize + ?Sized>(ctx: &Ctx<S>, value: &T, site: &'static Location<'static>) -> Payload {
    accepted(ctx, ctx.converter().encode(value), site)
}

/// Encodes the arguments of a call by name. A value that cannot be encoded fails the activation.
pub(super) fn encoded_all<S>(
    ctx: &Ctx<S>,
    input: impl IntoIterator<Item = Value>,
    site: &'static Location<'static>,
) -> Vec<Payload> {
    input.into_iter().map(|value| encoded(ctx, &value, site)).collect()
}

/// Encodes the value of a header. A value that cannot be encoded fails the activation.
pub(super) fn encoded_header<T: Serialize + ?Sized>(
    ctx: &dacapo_core::Ctx,
    converter: &Converter,
    name: &Name,
    value: &T,
    site: &'static Location<'static>,
) -> Payload {
    converter.encode(value).unwrap_or_else(|failure| ctx.refuse(format!("header {name:?}: {failure}"), site))
}

/// Returns an encoded value. A value that could not be encoded fails the activation.
pub(super) fn accepted<S, T>(ctx: &Ctx<S>, encoded: Result<T, Failure>, site: &'static Location<'static>) -> T {
    encoded.unwrap_or_else(|failure| ctx.raw().refuse(failure.to_string(), site))
}
