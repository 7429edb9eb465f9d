//! Search attributes: typed payloads, with the type as metadata.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use dacapo_core::{AttributeValue, Name, Payload, Timestamp};
use serde_json::{Value, json};

use super::payload::{payload_from_proto, payload_to_proto};
use crate::proto::common;

const TYPE: Name = Name::from_static("type");

pub(crate) fn attribute_to_proto(value: &AttributeValue) -> common::Payload {
    let (kind, value) = match value {
        AttributeValue::Keyword(keyword) => ("Keyword", json!(keyword)),
        AttributeValue::Int(number) => ("Int", json!(number)),
        AttributeValue::Float(number) => ("Double", json!(number)),
        AttributeValue::Bool(value) => ("Bool", json!(value)),
        AttributeValue::Time(time) => ("Datetime", json!(time.to_string())),
        AttributeValue::Keywords(keywords) => ("KeywordList", json!(keywords)),
        // A kind that a later core adds is found by its text.
        other => ("Keyword", json!(other.to_string())),
    };
    let mut payload = Payload::json(value.to_string());
    payload.metadata.insert(TYPE, Bytes::from_static(kind.as_bytes()));
    payload_to_proto(&payload)
}

/// The payload that removes an attribute.
fn removal() -> common::Payload {
    let mut payload = Payload::json("[]");
    payload.metadata.insert(TYPE, Bytes::from_static(b"KeywordList"));
    payload_to_proto(&payload)
}

/// None for an attribute that cannot be read, or that was removed.
pub(crate) fn attribute_from_proto(payload: common::Payload) -> Option<AttributeValue> {
    let payload = payload_from_proto(payload);
    let kind = payload.metadata.get(&TYPE).map(|kind| String::from_utf8_lossy(kind).into_owned());
    let value: Value = serde_json::from_slice(payload.bytes().ok()?).ok()?;
    match (kind.as_deref(), value) {
        (Some("Datetime"), Value::String(text)) => Some(AttributeValue::Time(moment(&text)?)),
        (_, Value::String(text)) => Some(AttributeValue::Keyword(text.into())),
        (_, Value::Bool(value)) => Some(AttributeValue::Bool(value)),
        (Some("Double"), Value::Number(number)) => Some(AttributeValue::Float(number.as_f64()?)),
        (_, Value::Number(number)) => {
            number.as_i64().map(AttributeValue::Int).or_else(|| number.as_f64().map(AttributeValue::Float))
        }
        (_, Value::Array(items)) if !items.is_empty() => {
            let keyword = |item: Value| item.as_str().map(|text| Name::from(text.to_owned()));
            items.into_iter().map(keyword).collect::<Option<Vec<Name>>>().map(AttributeValue::Keywords)
        }
        _ => None,
    }
}

fn moment(text: &str) -> Option<Timestamp> {
    let time: prost_wkt_types::Timestamp = text.parse().ok()?;
    Some(super::time::time_from_proto(time))
}

pub(crate) fn attributes_to_proto(
    changes: impl IntoIterator<Item = (Name, Option<AttributeValue>)>,
) -> Option<common::SearchAttributes> {
    let indexed_fields: HashMap<String, common::Payload> = changes
        .into_iter()
        .map(|(name, value)| (name.to_string(), value.as_ref().map_or_else(removal, attribute_to_proto)))
        .collect();
    (!indexed_fields.is_empty()).then_some(common::SearchAttributes { indexed_fields })
}

pub(crate) fn attributes_from_proto(attributes: Option<common::SearchAttributes>) -> BTreeMap<Name, AttributeValue> {
    let fields = attributes.map(|attributes| attributes.indexed_fields).unwrap_or_default();
    let read = |(name, payload)| Some((Name::from(name), attribute_from_proto(payload)?));
    fields.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_of_every_kind_comes_back() {
        let samples = [
            AttributeValue::from("ada"),
            AttributeValue::from(-7),
            AttributeValue::from(7.5),
            AttributeValue::from(7.0),
            AttributeValue::from(true),
            AttributeValue::from(Timestamp(1_790_000_000_123_456_789)),
            AttributeValue::from(vec!["a".to_owned(), "b".to_owned()]),
        ];
        for value in samples {
            assert_eq!(attribute_from_proto(attribute_to_proto(&value)), Some(value));
        }
        let set = BTreeMap::from([(Name::from("customer"), AttributeValue::from("ada"))]);
        let sent = attributes_to_proto(set.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
        assert_eq!(attributes_from_proto(sent), set);
        let removed = attributes_to_proto([(Name::from("customer"), None)]);
        assert_eq!(attributes_from_proto(removed), BTreeMap::new());
    }
}
