//! Values whose methods are activities.

use std::sync::Arc;

use dacapo_worker::Activity;

use crate::Layers;
use crate::activity::{ActivityType, served};

/// A type with methods that are activities. `#[activities]` implements it; a program serves the value, or its `Arc`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no activities",
    note = "mark its impl block with `#[activities]` and the methods in it with `#[activity]`"
)]
pub trait Activities: Send + Sync + Sized + 'static {
    /// Lists the activities: adds each of them to the list.
    fn list(list: &mut ActivityList<'_, Self>);
}

/// The activities of a value, as they are listed.
pub struct ActivityList<'r, T> {
    receiver: &'r Arc<T>,
    layers: &'r Layers,
    activities: Vec<Activity>,
}

impl<'r, T: Activities> ActivityList<'r, T> {
    pub(crate) fn of(receiver: &'r Arc<T>, layers: &'r Layers) -> Vec<Activity> {
        let mut list = Self { receiver, layers, activities: Vec::new() };
        T::list(&mut list);
        list.activities
    }

    /// Adds an activity, by its type.
    pub fn add<A: ActivityType<Receiver = T>>(&mut self) {
        self.activities.push(served::<A>(self.receiver.clone(), self.layers));
    }
}
