//! Searches: a condition on runs and an order, in a subset of the language that users of Temporal know. `docs/search.md` has all of it.

mod condition;
mod error;
mod field;
mod parse;
mod token;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use condition::{Comparison, Condition, Literal, Test};
pub use error::SearchError;
pub use field::Field;

/// A search: a condition that runs must meet, and the order in which they come. It is parsed once, and is a text on the wire.
///
/// ```
/// use dacapo_client::Search;
///
/// let search: Search = "WorkflowType = 'checkout' AND customer IN ('ada', 'bob') ORDER BY StartTime".parse()?;
/// assert_eq!(search.text(), "WorkflowType = 'checkout' AND customer IN ('ada', 'bob') ORDER BY StartTime");
///
/// let error = "WorkflowType = checkout".parse::<Search>().unwrap_err();
/// assert!(error.to_string().contains("column 16"), "{error}");
/// # Ok::<(), dacapo_client::SearchError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Search(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    text: String,
    condition: Option<Condition>,
    order: Order,
}

/// The order of a list of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The run that the backend stored last comes first.
    #[default]
    Newest,
    /// By the moment of the start.
    StartTime {
        /// Whether the latest comes first.
        descending: bool,
    },
    /// By the moment of the end. Open runs are not listed.
    CloseTime {
        /// Whether the latest comes first.
        descending: bool,
    },
}

impl Search {
    /// Returns the text that was parsed.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the condition. None: every run meets it.
    pub fn condition(&self) -> Option<&Condition> {
        self.0.condition.as_ref()
    }

    /// Returns the order.
    pub fn order(&self) -> Order {
        self.0.order
    }
}

impl FromStr for Search {
    type Err = SearchError;

    fn from_str(text: &str) -> Result<Self, SearchError> {
        let (condition, order) = parse::parse(text)?;
        Ok(Self(Arc::new(Parsed { text: text.to_owned(), condition, order })))
    }
}

/// Searches of the same text are the same search.
impl PartialEq for Search {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Search {}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Search {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for Search {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
