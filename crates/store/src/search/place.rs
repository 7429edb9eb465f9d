//! Where a page of a list ended.

use std::fmt;
use std::str::FromStr;

use dacapo_client::{Filter, Order};
use dacapo_core::Timestamp;

use super::conditions::{conditions, order};
use crate::RunNo;

/// The place of a run in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPlace {
    /// The run's number.
    pub no: RunNo,
    /// The moment by which the list is ordered, if it is ordered by one.
    pub time: Timestamp,
}

impl ListPlace {
    /// Returns the place of the run of this number in the list of a filter.
    pub fn of(filter: &Filter, no: RunNo, started: Timestamp, closed: Option<Timestamp>) -> Self {
        let time = match order(filter, &conditions(filter)) {
            Order::Newest => Timestamp::default(),
            Order::StartTime { .. } => started,
            Order::CloseTime { .. } => closed.unwrap_or_default(),
        };
        Self { no, time }
    }
}

/// In a list that is ordered by number.
impl From<RunNo> for ListPlace {
    fn from(no: RunNo) -> Self {
        Self { no, time: Timestamp::default() }
    }
}

impl fmt::Display for ListPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.time.0, self.no.0)
    }
}

/// Reads what [`fmt::Display`] wrote.
impl FromStr for ListPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (time, no) = text.split_once('-').ok_or(())?;
        let time = time.parse().map_err(|_| ())?;
        Ok(Self { no: RunNo(no.parse().map_err(|_| ())?), time: Timestamp(time) })
    }
}
