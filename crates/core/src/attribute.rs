//! Search attributes: typed values by which runs are found.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Name, Timestamp};

/// The most bytes of a keyword.
pub const MAX_KEYWORD: usize = 255;
/// The most keywords of a list.
pub const MAX_KEYWORDS: usize = 100;
/// The last moment that a store can hold: SQL has 64 bits with a sign.
const LAST_TIME: Timestamp = Timestamp(i64::MAX as u64);

/// The value of a search attribute. It is stored as it is, never encoded or encrypted, so that stores can index it.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AttributeValue {
    /// Text that is compared as a whole.
    #[n(0)]
    Keyword(#[n(0)] Name),
    /// A whole number.
    #[n(1)]
    Int(#[n(0)] i64),
    /// A finite number.
    #[n(2)]
    Float(#[n(0)] f64),
    /// True or false.
    #[n(3)]
    Bool(#[n(0)] bool),
    /// A moment.
    #[n(4)]
    Time(#[n(0)] Timestamp),
    /// Several keywords; a run is found by each of them.
    #[n(5)]
    Keywords(#[n(0)] Vec<Name>),
}

/// A search attribute whose value cannot be stored.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("search attribute {name:?}: {problem}")]
pub struct BadAttribute {
    /// The attribute's name.
    pub name: Name,
    /// The value, what is wrong with it, and the limit.
    pub problem: String,
}

impl AttributeValue {
    /// Checks that stores can hold and index the value of the attribute of this name.
    ///
    /// # Errors
    /// [`BadAttribute`], if it is a number that is not finite, a moment after the year 2262, a keyword or a list that is
    /// too long, or an empty list.
    pub fn check(&self, name: &Name) -> Result<(), BadAttribute> {
        let bad = |problem| Err(BadAttribute { name: name.clone(), problem });
        match self {
            Self::Int(_) | Self::Bool(_) => Ok(()),
            Self::Float(value) if value.is_finite() => Ok(()),
            Self::Float(value) => bad(format!("{value} is not a finite number, so no order finds it: leave it out")),
            Self::Time(time) if *time <= LAST_TIME => Ok(()),
            Self::Time(time) => bad(format!("{time} is too late, the last moment is {LAST_TIME}")),
            Self::Keyword(keyword) => too_long(keyword).map_or(Ok(()), bad),
            Self::Keywords(keywords) if keywords.is_empty() => {
                bad("the list has no keyword: remove the attribute instead".to_owned())
            }
            Self::Keywords(keywords) if keywords.len() > MAX_KEYWORDS => {
                bad(format!("the list has {} keywords, at most {MAX_KEYWORDS} are allowed", keywords.len()))
            }
            Self::Keywords(keywords) => keywords.iter().find_map(too_long).map_or(Ok(()), bad),
        }
    }
}

fn too_long(keyword: &Name) -> Option<String> {
    let length = keyword.len();
    (length > MAX_KEYWORD).then(|| format!("a keyword is {length} bytes long, at most {MAX_KEYWORD} are allowed"))
}

/// The value for people: text as it is, lists separated by commas.
impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyword(keyword) => f.write_str(keyword),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Time(time) => write!(f, "{time}"),
            Self::Keywords(keywords) => {
                let keywords: Vec<&str> = keywords.iter().map(Name::as_str).collect();
                f.write_str(&keywords.join(", "))
            }
        }
    }
}

impl From<&'static str> for AttributeValue {
    fn from(keyword: &'static str) -> Self {
        Self::Keyword(keyword.into())
    }
}

impl From<String> for AttributeValue {
    fn from(keyword: String) -> Self {
        Self::Keyword(keyword.into())
    }
}

impl From<i64> for AttributeValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for AttributeValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Timestamp> for AttributeValue {
    fn from(time: Timestamp) -> Self {
        Self::Time(time)
    }
}

impl From<Vec<String>> for AttributeValue {
    fn from(keywords: Vec<String>) -> Self {
        Self::Keywords(keywords.into_iter().map(Name::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<AttributeValue> {
        let keywords = vec!["a".to_owned(), "b".to_owned()];
        vec!["Ulm".into(), (-5_i64).into(), 1.5.into(), true.into(), Timestamp(1_000).into(), keywords.into()]
    }

    #[test]
    fn value_of_every_kind_is_read_back_from_both_forms() {
        for value in samples() {
            assert_eq!(minicbor::decode::<AttributeValue>(&minicbor::to_vec(&value).unwrap()).unwrap(), value);
            assert_eq!(serde_json::from_str::<AttributeValue>(&serde_json::to_string(&value).unwrap()).unwrap(), value);
        }
        assert_eq!(
            serde_json::to_string(&samples()).unwrap(),
            r#"[{"keyword":"Ulm"},{"int":-5},{"float":1.5},{"bool":true},{"time":1000},{"keywords":["a","b"]}]"#
        );
    }

    #[test]
    fn bad_value_is_refused_with_its_attribute_its_value_and_the_limit() {
        let long = || "x".repeat(MAX_KEYWORD + 1);
        let problems: Vec<String> = [
            f64::NAN.into(),
            f64::INFINITY.into(),
            Timestamp(u64::MAX).into(),
            long().into(),
            vec![long()].into(),
            Vec::new().into(),
            vec![String::new(); MAX_KEYWORDS + 1].into(),
        ]
        .iter()
        .map(|value: &AttributeValue| value.check(&"city".into()).unwrap_err().to_string())
        .collect();
        let too_long = "search attribute \"city\": a keyword is 256 bytes long, at most 255 are allowed";
        assert_eq!(
            problems,
            [
                "search attribute \"city\": NaN is not a finite number, so no order finds it: leave it out",
                "search attribute \"city\": inf is not a finite number, so no order finds it: leave it out",
                "search attribute \"city\": 2554-07-21T23:34:33.709551615Z is too late, the last moment is \
                 2262-04-11T23:47:16.854775807Z",
                too_long,
                too_long,
                "search attribute \"city\": the list has no keyword: remove the attribute instead",
                "search attribute \"city\": the list has 101 keywords, at most 100 are allowed",
            ]
        );
        assert!(samples().iter().all(|value| value.check(&"city".into()).is_ok()));
        assert_eq!(AttributeValue::from("x".repeat(MAX_KEYWORD)).check(&"city".into()), Ok(()));
    }
}
