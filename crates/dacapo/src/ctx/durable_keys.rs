//! Durable keys of a run.

use std::panic::Location;

use dacapo_core::{Name, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::{ResultReader, encoded};
use crate::{Ctx, Key};

impl<S> Ctx<S> {
    /// Returns the durable keys of this run: values that it keeps under names. Setting one is recorded, so replay notices code that
    /// would now set another value.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const TOTAL: Key<u64> = Key::new("total");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let total = ctx.keys().get(TOTAL).unwrap_or(0) + 5;
    /// ctx.keys().set(TOTAL, &total);
    /// # Ok(()) }
    /// ```
    pub fn keys(&self) -> DurableKeys<'_, S> {
        DurableKeys { ctx: self }
    }
}

/// The durable keys of a run: values that it keeps under names. Setting one is recorded, and replay compares it.
#[derive(Debug)]
pub struct DurableKeys<'c, S = ()> {
    ctx: &'c Ctx<S>,
}

impl<S> Clone for DurableKeys<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for DurableKeys<'_, S> {}

impl<S> DurableKeys<'_, S> {
    /// Returns the value of a key, or none if it has none.
    #[track_caller]
    pub fn get<T: DeserializeOwned>(&self, key: Key<T>) -> Option<T> {
        let recorded = ResultReader::new(self.ctx, "durable key", key.into(), Location::caller());
        self.ctx.raw.get_state(key).map(|value| recorded.value(&value))
    }

    /// Sets a key.
    #[track_caller]
    pub fn set<T: Serialize>(&self, key: Key<T>, value: &T) {
        self.ctx.raw.set_state(key, encoded(self.ctx, value, Location::caller()));
    }

    /// Removes a key.
    #[track_caller]
    pub fn clear<T>(&self, key: Key<T>) {
        self.ctx.raw.clear_state(key);
    }

    /// Returns the payload of a key by its name, or none if it has none.
    #[track_caller]
    pub fn get_raw(&self, key: impl Into<Name>) -> Option<Payload> {
        self.ctx.raw.get_state(key)
    }

    /// Sets a key by its name.
    #[track_caller]
    pub fn set_raw(&self, key: impl Into<Name>, value: impl Into<Payload>) {
        self.ctx.raw.set_state(key, value);
    }

    /// Removes a key by its name.
    #[track_caller]
    pub fn clear_raw(&self, key: impl Into<Name>) {
        self.ctx.raw.clear_state(key);
    }
}
