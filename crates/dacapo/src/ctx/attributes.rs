//! What a run can be found by, noted with, and asked for while it is not in memory.

use std::any::type_name;
use std::panic::Location;

use dacapo_core::Name;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::{Recorded, encoded};
use crate::{Attr, Ctx, FromAttribute, IntoAttribute, attribute};

impl<S> Ctx<S> {
    /// Sets a search attribute. A value that stores cannot hold, such as a number that is not finite or a keyword of more
    /// than 255 bytes, fails the activation: the run is stuck, and says why.
    #[track_caller]
    pub fn set_attr<T: IntoAttribute>(&self, attribute: Attr<T>, value: T) {
        let (name, value) = attribute::checked(attribute.into(), value)
            .unwrap_or_else(|bad| self.raw.refuse(bad.to_string(), Location::caller()));
        self.raw.upsert_search_attributes([(name, Some(value))]);
    }

    /// Removes a search attribute.
    #[track_caller]
    pub fn remove_attr<T>(&self, attribute: Attr<T>) {
        self.raw.upsert_search_attributes([(attribute.into(), None)]);
    }

    /// A search attribute as it now stands. One that has another type than the code expects fails the activation.
    #[track_caller]
    pub fn attr<T: FromAttribute>(&self, attribute: Attr<T>) -> Option<T> {
        let info = self.raw.info()?;
        let value = info.search_attributes.get(attribute.name())?;
        Some(T::from_attribute(value).unwrap_or_else(|| {
            let (name, wanted) = (attribute.name(), type_name::<T>());
            let text = format!(
                "search attribute {name:?}: {value:?} is no `{wanted}`\nThe run stays open; it goes on once the code reads the \
                 attribute as what was set."
            );
            self.raw.refuse(text, Location::caller())
        }))
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
