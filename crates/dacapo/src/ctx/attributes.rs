//! What a run can be found by, noted with, and asked for while it is not in memory.

use std::panic::Location;

use dacapo_core::Name;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::{Recorded, encoded};
use crate::{Attr, Ctx};

impl<S> Ctx<S> {
    /// Sets a search attribute.
    #[track_caller]
    pub fn set_attr<T: Serialize>(&self, attribute: Attr<T>, value: T) {
        let value = encoded(self, &value, Location::caller());
        self.raw.upsert_search_attributes([(attribute.into(), Some(value))]);
    }

    /// Removes a search attribute.
    #[track_caller]
    pub fn remove_attr<T>(&self, attribute: Attr<T>) {
        self.raw.upsert_search_attributes([(attribute.into(), None)]);
    }

    /// A search attribute as it now stands.
    #[track_caller]
    pub fn attr<T: DeserializeOwned>(&self, attribute: Attr<T>) -> Option<T> {
        let recorded = Recorded::new(self, "search attribute", attribute.into(), Location::caller());
        Some(recorded.value(self.raw.info()?.search_attributes.get(attribute.name())?))
    }

    /// Sets an entry of the memo.
    #[track_caller]
    pub fn set_memo<T: Serialize + ?Sized>(&self, name: impl Into<Name>, value: &T) {
        let value = encoded(self, value, Location::caller());
        self.raw.upsert_memo([(name.into(), Some(value))]);
    }

    /// Removes an entry of the memo.
    #[track_caller]
    pub fn remove_memo(&self, name: impl Into<Name>) {
        self.raw.upsert_memo([(name.into(), None)]);
    }

    /// An entry of the memo as it now stands.
    #[track_caller]
    pub fn memo<T: DeserializeOwned>(&self, name: impl Into<Name>) -> Option<T> {
        let name = name.into();
        let recorded = Recorded::new(self, "memo", name.clone(), Location::caller());
        Some(recorded.value(self.raw.info()?.memo.get(&name)?))
    }

    /// Publishes a snapshot that queries can be answered with while the run is not in memory, and after it closed. Not a
    /// command: it is rebuilt by replay and never compared.
    #[track_caller]
    pub fn publish<T: Serialize + ?Sized>(&self, snapshot: &T) {
        let snapshot = encoded(self, snapshot, Location::caller());
        self.raw.publish(snapshot);
    }
}
