//! What a search can ask for.

use std::fmt;

use dacapo_core::Name;

/// A field that a search compares: data that every run has, or a search attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The caller's name for the run.
    WorkflowId,
    /// The workflow's type.
    WorkflowType,
    /// The run id.
    RunId,
    /// The status.
    ExecutionStatus,
    /// The task queue.
    TaskQueue,
    /// When the run was started.
    StartTime,
    /// When the run closed.
    CloseTime,
    /// Why an open run is stuck: the word of its cause.
    StuckCause,
    /// A search attribute.
    Attribute(Name),
}

/// The kind of values that a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Status,
    Cause,
    Time,
    /// Each run has a kind of its own.
    Any,
}

const BUILT_IN: [(&str, Field, Kind); 8] = [
    ("WorkflowId", Field::WorkflowId, Kind::Text),
    ("WorkflowType", Field::WorkflowType, Kind::Text),
    ("RunId", Field::RunId, Kind::Text),
    ("ExecutionStatus", Field::ExecutionStatus, Kind::Status),
    ("TaskQueue", Field::TaskQueue, Kind::Text),
    ("StartTime", Field::StartTime, Kind::Time),
    ("CloseTime", Field::CloseTime, Kind::Time),
    ("StuckCause", Field::StuckCause, Kind::Cause),
];

impl Field {
    /// Returns the field of this name. Names that are not built in are those of attributes.
    pub(super) fn of(name: &str) -> Self {
        let known = BUILT_IN.iter().find(|(known, ..)| *known == name);
        known.map_or_else(|| Self::Attribute(name.to_owned().into()), |(_, field, _)| field.clone())
    }

    pub(super) fn kind(&self) -> Kind {
        BUILT_IN.iter().find(|(_, field, _)| field == self).map_or(Kind::Any, |(.., kind)| *kind)
    }

    /// Returns the built-in name that this one was probably meant to be: equal but for case, or with one letter too many, too few or wrong.
    pub(super) fn meant_by(name: &str) -> Option<&'static str> {
        let name = name.to_lowercase();
        BUILT_IN.iter().map(|(known, ..)| *known).find(|known| is_near(&known.to_lowercase(), &name))
    }

    /// Returns the built-in names, for errors.
    pub(super) fn known() -> String {
        BUILT_IN.map(|(name, ..)| name).join(", ")
    }
}

/// Returns whether one change of a letter makes the two texts equal.
fn is_near(one: &str, other: &str) -> bool {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one.as_bytes()[same..], &other.as_bytes()[same..]);
    let after = |text: &[u8], count: usize| text.get(count..).map(<[u8]>::to_vec);
    one == other
        || after(one, 1).is_some_and(|one| one == other)
        || after(other, 1).is_some_and(|other| one == other)
        || after(one, 1).zip(after(other, 1)).is_some_and(|(one, other)| one == other)
}

/// The name as a search has it; that of an attribute in backticks.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, BUILT_IN.iter().find(|(_, field, _)| field == self)) {
            (Self::Attribute(name), _) => write!(f, "`{}`", name.replace('\\', "\\\\").replace('`', "\\`")),
            (_, Some((name, ..))) => f.write_str(name),
            (_, None) => Err(fmt::Error),
        }
    }
}
