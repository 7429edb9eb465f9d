//! What of a row of an attribute a comparison with a value looks at.

use dacapo_client::{Comparison, Literal};
use dacapo_core::{Timestamp, parse_timestamp};

/// A value that is bound.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
}

const INT: i64 = 1;
const FLOAT: i64 = 2;
const BOOL: i64 = 3;
const TIME: i64 = 4;

/// Which column of an attribute's row is compared, and of which kind it must be. Texts are of two kinds, and no other kind has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Word,
    Number(i64),
    Real,
}

impl Column {
    pub(super) const fn kind(self) -> Option<i64> {
        match self {
            Self::Word => None,
            Self::Number(kind) => Some(kind),
            Self::Real => Some(FLOAT),
        }
    }
}

/// The moment as stores keep it.
pub(super) fn moment(time: Timestamp) -> SqlValue {
    SqlValue::Int(i64::try_from(time.0).unwrap_or(i64::MAX))
}

/// Returns the comparisons of which one must hold, for an attribute whose kind is not known.
pub(super) fn comparisons(comparison: Comparison, literal: &Literal) -> Vec<(Column, Comparison, SqlValue)> {
    let one = |column, value| vec![(column, comparison, value)];
    match literal {
        Literal::Text(text) => {
            let mut all = one(Column::Word, SqlValue::Text(text.clone()));
            all.extend(parse_timestamp(text).map(|time| (Column::Number(TIME), comparison, moment(time))));
            all
        }
        Literal::Int(number) => vec![
            (Column::Number(INT), comparison, SqlValue::Int(*number)),
            (Column::Real, comparison, SqlValue::Float(*number as f64)),
        ],
        Literal::Float(number) => {
            let mut all = one(Column::Real, SqlValue::Float(*number));
            all.extend(
                among_integers(comparison, *number)
                    .map(|(comparison, whole)| (Column::Number(INT), comparison, SqlValue::Int(whole))),
            );
            all
        }
        Literal::Bool(value) => one(Column::Number(BOOL), SqlValue::Int(i64::from(*value))),
        Literal::Time(time) => one(Column::Number(TIME), moment(*time)),
        // Attributes are never compared with these.
        _ => Vec::new(),
    }
}

/// Returns the comparison of a whole number that says the same, so that databases do not convert each by rules of their own.
fn among_integers(comparison: Comparison, number: f64) -> Option<(Comparison, i64)> {
    use Comparison::{AtLeast, AtMost, Equal, Greater, Less, NotEqual};
    let is_whole = number.fract() == 0.0;
    let always = (AtLeast, i64::MIN);
    if number >= i64::MAX as f64 || number < i64::MIN as f64 {
        let is_met =
            if number > 0.0 { matches!(comparison, Less | AtMost) } else { matches!(comparison, Greater | AtLeast) };
        return (is_met || comparison == NotEqual).then_some(always);
    }
    match comparison {
        Equal => is_whole.then_some((Equal, number as i64)),
        NotEqual => Some(if is_whole { (NotEqual, number as i64) } else { always }),
        Less | AtMost if !is_whole => Some((AtMost, number.floor() as i64)),
        Greater | AtLeast if !is_whole => Some((AtLeast, number.ceil() as i64)),
        other => Some((other, number as i64)),
    }
}
