//! The rows of a search attribute: one, or one for each keyword of a list.

use rusqlite::Row;

use dacapo_core::{AttributeValue, Name};
use dacapo_store::{RunNo, StoreError};

use crate::columns::{moment, name, time};
use crate::store_error::{corrupt, store_error};
use crate::sum::{self, Sum};

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of an attribute, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "run, name, place, count, kind, text, number, real, sum";

const KEYWORD: i64 = 0;
const INT: i64 = 1;
const FLOAT: i64 = 2;
const BOOL: i64 = 3;
const TIME: i64 = 4;
const KEYWORDS: i64 = 5;

/// One row of an attribute.
#[derive(Default)]
pub(crate) struct Part {
    /// The place of this keyword in its list; 0 for other kinds.
    pub(crate) place: i64,
    /// The number of rows of this attribute.
    pub(crate) count: i64,
    pub(crate) kind: i64,
    pub(crate) text: Option<String>,
    pub(crate) number: Option<i64>,
    pub(crate) real: Option<f64>,
}

impl Part {
    pub(crate) fn sum(&self, run: RunNo, name: &str) -> Sum {
        let Self { place, count, kind, text, number, real } = self;
        // SQLite keeps no sign of a zero.
        let real = real.map(|real| (real + 0.0).to_bits().cast_signed());
        let sum = Sum::of(sum::Part::Attribute, run.0).text(name).number(*place).number(*count).number(*kind);
        sum.option_text(text.as_deref()).option_number(*number).option_number(real)
    }
}

/// Returns the rows of a value.
pub(crate) fn parts(value: &AttributeValue) -> Vec<Part> {
    let one = Part { count: 1, ..Part::default() };
    let number = |kind, number| Part { kind, number: Some(number), ..Part { count: 1, ..Part::default() } };
    match value {
        AttributeValue::Keyword(keyword) => vec![Part { kind: KEYWORD, text: Some(keyword.to_string()), ..one }],
        AttributeValue::Int(value) => vec![number(INT, *value)],
        AttributeValue::Float(value) => vec![Part { kind: FLOAT, real: Some(*value), ..one }],
        AttributeValue::Bool(value) => vec![number(BOOL, i64::from(*value))],
        AttributeValue::Time(value) => vec![number(TIME, moment(*value))],
        AttributeValue::Keywords(keywords) => {
            let count = keywords.len() as i64;
            let part = |(place, keyword): (i64, &Name)| {
                let text = Some(keyword.to_string());
                Part { place, count, kind: KEYWORDS, text, ..Part::default() }
            };
            (0..).zip(keywords).map(part).collect()
        }
        other => unreachable!("a kind of attribute that this store does not know: {other:?}"),
    }
}

/// Reads a row of an attribute and compares its checksum.
pub(crate) fn read(row: &Row<'_>) -> Result<(Name, Part)> {
    let read = || {
        let part = Part {
            place: row.get(2)?,
            count: row.get(3)?,
            kind: row.get(4)?,
            text: row.get(5)?,
            number: row.get(6)?,
            real: row.get(7)?,
        };
        Ok((RunNo(row.get(0)?), name(row, 1)?, part, row.get(8)?))
    };
    let (run, name, part, stored) = read().map_err(store_error)?;
    part.sum(run, &name).check(stored, || format!("attribute {:?} of {run}", name.as_str()))?;
    Ok((name, part))
}

/// Returns the values of these rows, which are in the order of their names and places.
pub(crate) fn values(run: RunNo, rows: Vec<(Name, Part)>) -> Result<Vec<(Name, AttributeValue)>> {
    rows.chunk_by(|(one, _), (other, _)| one == other).map(|rows| Ok((rows[0].0.clone(), value(run, rows)?))).collect()
}

/// Returns the value of all rows of one attribute.
fn value(run: RunNo, rows: &[(Name, Part)]) -> Result<AttributeValue> {
    let damaged = || {
        let name = rows[0].0.as_str();
        corrupt(format!("attribute {name:?} of {run} lacks a row, or has no value of its kind"))
    };
    let count = rows.len() as i64;
    if (0..).zip(rows).any(|(place, (_, part))| (part.place, part.count) != (place, count)) {
        return Err(damaged());
    }
    let Part { kind, text, number, real, .. } = &rows[0].1;
    Ok(match (*kind, count, text, number, real) {
        (KEYWORD, 1, Some(text), None, None) => AttributeValue::Keyword(text.clone().into()),
        (INT, 1, None, Some(number), None) => AttributeValue::Int(*number),
        (FLOAT, 1, None, None, Some(real)) => AttributeValue::Float(*real),
        (BOOL, 1, None, Some(number @ 0..=1), None) => AttributeValue::Bool(*number == 1),
        (TIME, 1, None, Some(number), None) => AttributeValue::Time(time(*number)),
        (KEYWORDS, ..) => {
            let keyword = |(_, part): &(Name, Part)| Some(Name::from(part.text.clone()?));
            AttributeValue::Keywords(rows.iter().map(keyword).collect::<Option<_>>().ok_or_else(damaged)?)
        }
        _ => return Err(damaged()),
    })
}
