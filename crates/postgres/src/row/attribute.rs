//! The rows of a search attribute: one, or one for each keyword of a list.

use dacapo_core::{AttributeValue, Name};
use dacapo_store::{RunNo, StoreError};
use tokio_postgres::Row;

use super::{get, moment, name, time};
use crate::failure::corrupt;

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of an attribute, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "name, place, parts, kind, word, number, real";

const KEYWORD: i16 = 0;
const INT: i16 = 1;
const FLOAT: i16 = 2;
const BOOL: i16 = 3;
const TIME: i16 = 4;
const KEYWORDS: i16 = 5;

/// One row of an attribute.
#[derive(Clone, Default)]
pub(crate) struct Part {
    /// The place of this keyword in its list; 0 for other kinds.
    pub(crate) place: i32,
    /// The number of rows of this attribute.
    pub(crate) parts: i32,
    pub(crate) kind: i16,
    pub(crate) word: Option<String>,
    pub(crate) number: Option<i64>,
    pub(crate) real: Option<f64>,
}

/// Returns the rows of a value.
pub(crate) fn parts(value: &AttributeValue) -> Vec<Part> {
    let one = Part { parts: 1, ..Part::default() };
    let number = |kind, number| Part { kind, number: Some(number), parts: 1, ..Part::default() };
    match value {
        AttributeValue::Keyword(keyword) => vec![Part { kind: KEYWORD, word: Some(keyword.to_string()), ..one }],
        AttributeValue::Int(value) => vec![number(INT, *value)],
        AttributeValue::Float(value) => vec![Part { kind: FLOAT, real: Some(*value), ..one }],
        AttributeValue::Bool(value) => vec![number(BOOL, i64::from(*value))],
        AttributeValue::Time(value) => vec![number(TIME, moment(*value))],
        AttributeValue::Keywords(keywords) => {
            let parts = keywords.len() as i32;
            let part = |(place, keyword): (i32, &Name)| {
                let word = Some(keyword.to_string());
                Part { place, parts, kind: KEYWORDS, word, ..Part::default() }
            };
            (0..).zip(keywords).map(part).collect()
        }
        other => unreachable!("a kind of attribute that this store does not know: {other:?}"),
    }
}

/// Reads a row of an attribute.
pub(crate) fn read(row: &Row) -> Result<(Name, Part)> {
    let part = Part {
        place: get(row, 1)?,
        parts: get(row, 2)?,
        kind: get(row, 3)?,
        word: get(row, 4)?,
        number: get(row, 5)?,
        real: get(row, 6)?,
    };
    Ok((name(row, 0)?, part))
}

/// Returns the values of these rows, which are in the order of their names and places.
pub(crate) fn values(run: RunNo, rows: &[(Name, Part)]) -> Result<Vec<(Name, AttributeValue)>> {
    rows.chunk_by(|(one, _), (other, _)| one == other).map(|rows| Ok((rows[0].0.clone(), value(run, rows)?))).collect()
}

/// Returns the value of all rows of one attribute.
fn value(run: RunNo, rows: &[(Name, Part)]) -> Result<AttributeValue> {
    let damaged = || {
        let name = rows[0].0.as_str();
        corrupt(format!("attribute {name:?} of {run} lacks a row, or has no value of its kind"))
    };
    let count = rows.len() as i32;
    if (0..).zip(rows).any(|(place, (_, part))| (part.place, part.parts) != (place, count)) {
        return Err(damaged());
    }
    let Part { kind, word, number, real, .. } = &rows[0].1;
    Ok(match (*kind, count, word, number, real) {
        (KEYWORD, 1, Some(word), None, None) => AttributeValue::Keyword(word.clone().into()),
        (INT, 1, None, Some(number), None) => AttributeValue::Int(*number),
        (FLOAT, 1, None, None, Some(real)) => AttributeValue::Float(*real),
        (BOOL, 1, None, Some(number @ 0..=1), None) => AttributeValue::Bool(*number == 1),
        (TIME, 1, None, Some(number), None) => AttributeValue::Time(time(*number)),
        (KEYWORDS, ..) => {
            let keyword = |(_, part): &(Name, Part)| Some(Name::from(part.word.clone()?));
            AttributeValue::Keywords(rows.iter().map(keyword).collect::<Option<_>>().ok_or_else(damaged)?)
        }
        _ => return Err(damaged()),
    })
}
