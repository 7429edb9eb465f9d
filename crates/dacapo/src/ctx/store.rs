//! Durable keys.

use std::panic::Location;

use dacapo_core::{Name, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::{Recorded, encoded};
use crate::{Ctx, Key};

impl<S> Ctx<S> {
    /// The run's durable keys: `ctx.store().set(KEY, &value)`.
    pub fn store(&self) -> Store<'_, S> {
        Store { ctx: self }
    }
}

/// The durable keys of a run. Setting one is a command: replay checks key and value.
#[derive(Debug)]
pub struct Store<'c, S = ()> {
    ctx: &'c Ctx<S>,
}

impl<S> Clone for Store<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Store<'_, S> {}

impl<S> Store<'_, S> {
    /// The value of a key, if it has one.
    #[track_caller]
    pub fn get<T: DeserializeOwned>(&self, key: Key<T>) -> Option<T> {
        let recorded = Recorded::new(self.ctx, "durable key", key.into(), Location::caller());
        self.ctx.raw.get_state(key).map(|value| recorded.value(&value))
    }

    /// Sets a key.
    #[track_caller]
    pub fn set<T: Serialize>(&self, key: Key<T>, value: &T) {
        self.ctx.raw.set_state(key, encoded(self.ctx, value, Location::caller()));
    }

    /// Clears a key.
    #[track_caller]
    pub fn clear<T>(&self, key: Key<T>) {
        self.ctx.raw.clear_state(key);
    }

    /// The value of a key that is only known by its name.
    #[track_caller]
    pub fn get_raw(&self, key: impl Into<Name>) -> Option<Payload> {
        self.ctx.raw.get_state(key)
    }

    /// Sets a key that is only known by its name.
    #[track_caller]
    pub fn set_raw(&self, key: impl Into<Name>, value: impl Into<Payload>) {
        self.ctx.raw.set_state(key, value);
    }

    /// Clears a key that is only known by its name.
    #[track_caller]
    pub fn clear_raw(&self, key: impl Into<Name>) {
        self.ctx.raw.clear_state(key);
    }
}
