//! The condition of a search.

use std::fmt;

use dacapo_core::Timestamp;

use crate::{Field, Status, StuckCause};

/// A condition on a run. There is no negation of a whole: it is moved into the tests when the text is parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// All of these hold.
    All(Vec<Condition>),
    /// At least one of these holds.
    Any(Vec<Condition>),
    /// The field passes the test. A run without a value passes [`Test::IsNull`] alone.
    Is(Field, Test),
}

/// A test of one field. A list of keywords passes a test that one of its keywords passes; the opposite of the test, if none does.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The value is to this one as the comparison says.
    Compare(Comparison, Literal),
    /// The value is one of these.
    In(Vec<Literal>),
    /// The value is none of these.
    NotIn(Vec<Literal>),
    /// The value is not below the first and not above the second.
    Between(Literal, Literal),
    /// The value is below the first or above the second.
    NotBetween(Literal, Literal),
    /// The text begins with this one.
    StartsWith(String),
    /// The text does not begin with this one.
    NotStartsWith(String),
    /// The run has no value.
    IsNull,
    /// The run has a value.
    IsNotNull,
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// A value in a search, of the type that its field has.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A text. Compared with an attribute that is a moment, it is a moment.
    Text(String),
    /// A whole number, also for attributes that are not whole.
    Int(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A moment.
    Time(Timestamp),
    /// A status.
    Status(Status),
    /// A cause for which runs are stuck.
    Cause(StuckCause),
}

impl Condition {
    /// Returns the condition that holds for runs with values for which this one does not.
    #[must_use]
    pub(super) fn negated(self) -> Self {
        let all = |parts: Vec<Self>| parts.into_iter().map(Self::negated).collect();
        match self {
            Self::All(parts) => Self::Any(all(parts)),
            Self::Any(parts) => Self::All(all(parts)),
            Self::Is(field, test) => Self::Is(field, test.negated()),
        }
    }
}

impl Test {
    /// Returns the test that a value passes if it does not pass this one.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Compare(comparison, value) => Self::Compare(comparison.negated(), value),
            Self::In(values) => Self::NotIn(values),
            Self::NotIn(values) => Self::In(values),
            Self::Between(low, high) => Self::NotBetween(low, high),
            Self::NotBetween(low, high) => Self::Between(low, high),
            Self::StartsWith(start) => Self::NotStartsWith(start),
            Self::NotStartsWith(start) => Self::StartsWith(start),
            Self::IsNull => Self::IsNotNull,
            Self::IsNotNull => Self::IsNull,
        }
    }
}

impl Comparison {
    const fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::AtLeast,
            Self::AtLeast => Self::Less,
            Self::Greater => Self::AtMost,
            Self::AtMost => Self::Greater,
        }
    }

    /// Returns the comparison of this sign.
    pub(super) fn of(sign: &str) -> Option<Self> {
        let all = [Self::Equal, Self::NotEqual, Self::Less, Self::AtMost, Self::Greater, Self::AtLeast];
        all.into_iter().find(|comparison| comparison.sign() == sign)
    }

    /// Returns the sign, which is also that of SQL.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// The value as text, without quotes.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Int(number) => write!(f, "{number}"),
            // A whole number keeps its point, so that it is read as the same kind again.
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Time(time) => write!(f, "{time}"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Cause(cause) => write!(f, "{cause}"),
        }
    }
}
