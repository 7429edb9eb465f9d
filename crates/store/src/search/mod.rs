//! Lists of runs that a filter selects: what it asks for, in which order, and as SQL. Stores with tables share all of it.

mod conditions;
mod driver;
mod matches;
mod place;
mod sql;
mod value;

pub use place::ListPlace;
pub use sql::{Dialect, SqlQuery};
pub use value::SqlValue;

pub(crate) use conditions::{conditions, order};
pub(crate) use matches::matches;
