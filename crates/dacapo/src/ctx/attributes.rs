//! Search attributes, the memo, and the published snapshot of a run.

use std::panic::Location;

use dacapo_core::Name;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::{ResultReader, encoded};
use crate::type_names::short_type_name;
use crate::{Attr, Ctx, FromAttribute, IntoAttribute, attribute};

impl<S> Ctx<S> {
    /// Sets a search attribute: a typed value that descriptions of the run show. No filter can search by attributes yet.
    ///
    /// A value that stores cannot hold, such as a number that is not finite or a keyword of more than 255 bytes, fails the
    /// activation: the run is stuck, and says why.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const CITY: Attr<String> = Attr::new("city");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// ctx.set_attr(CITY, "Lisboa".into());
    /// assert_eq!(ctx.attr(CITY).as_deref(), Some("Lisboa"));
    /// ctx.remove_attr(CITY);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn set_attr<T: IntoAttribute>(&self, attribute: Attr<T>, value: T) {
        // A closure would not know the caller.
        let caller = Location::caller();
        let (name, value) =
            attribute::checked(attribute.into(), value).unwrap_or_else(|bad| self.raw.refuse(bad.to_string(), caller));
        self.raw.set_attrs([(name, Some(value))]);
    }

    /// Removes a search attribute. See [`Ctx::set_attr`] for an example.
    #[track_caller]
    pub fn remove_attr<T>(&self, attribute: Attr<T>) {
        self.raw.set_attrs([(attribute.into(), None)]);
    }

    /// Returns the current value of a search attribute, or none if it has none.
    /// One that has another type than the code expects fails the activation. See [`Ctx::set_attr`] for an example.
    #[track_caller]
    pub fn attr<T: FromAttribute>(&self, attribute: Attr<T>) -> Option<T> {
        let caller = Location::caller();
        let info = self.raw.info()?;
        let value = info.search_attributes.get(attribute.name())?;
        Some(T::from_attribute(value).unwrap_or_else(|| {
            let (name, wanted) = (attribute.name(), short_type_name::<T>());
            let value = if self.converter().redacts() { "its value".to_owned() } else { format!("{value:?}") };
            let text = format!(
                "search attribute {name:?}: {value} is no `{wanted}`\nThe run stays open; it goes on once the code reads the \
                 attribute as what was set."
            );
            self.raw.refuse(text, caller)
        }))
    }

    /// Sets a memo entry: a note for people, which descriptions of the run show.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// ctx.set_memo("customer", "Ada Lovelace");
    /// let customer: Option<String> = ctx.memo("customer");
    /// ctx.remove_memo("customer");
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn set_memo<T: Serialize + ?Sized>(&self, name: impl Into<Name>, value: &T) {
        let value = encoded(self, value, Location::caller());
        self.raw.set_memo([(name.into(), Some(value))]);
    }

    /// Removes a memo entry. See [`Ctx::set_memo`] for an example.
    #[track_caller]
    pub fn remove_memo(&self, name: impl Into<Name>) {
        self.raw.set_memo([(name.into(), None)]);
    }

    /// Returns the current value of a memo entry, or none if it has none. See [`Ctx::set_memo`] for an example.
    #[track_caller]
    pub fn memo<T: DeserializeOwned>(&self, name: impl Into<Name>) -> Option<T> {
        let name = name.into();
        let recorded = ResultReader::new(self, "memo", name.clone(), Location::caller());
        Some(recorded.value(self.raw.info()?.memo.get(&name)?))
    }

    /// Publishes a snapshot that callers can read while the run is not in memory, and after it is closed
    /// (`Handle::published`).
    ///
    /// It is no command: replay rebuilds it and never compares it, so its content may change with every deploy.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// ctx.publish(&format!("{} of 10 parts are done", 3));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn publish<T: Serialize + ?Sized>(&self, snapshot: &T) {
        let snapshot = encoded(self, snapshot, Location::caller());
        self.raw.publish(snapshot);
    }
}
