//! Histories as JSON in the form of Temporal's own tools: `temporal workflow show --output json` reads and prints the same. The
//! derived form of the messages is another one, so the descriptors of the messages lead here.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions};

use crate::proto::history::History;

static HISTORY: LazyLock<MessageDescriptor> = LazyLock::new(|| {
    let descriptors: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    let pool = DescriptorPool::decode(descriptors).expect("the descriptors of temporalio-protos are valid");
    pool.get_message_by_name("temporal.api.history.v1.History").expect("they have histories among them")
});

/// # Errors
/// Why the history cannot be written.
pub(crate) fn history_to_json(history: &History) -> Result<String, String> {
    let message = DynamicMessage::decode(HISTORY.clone(), history.encode_to_vec().as_slice())
        .map_err(|error| error.to_string())?;
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::pretty(&mut json);
    message
        .serialize_with_options(&mut serializer, &SerializeOptions::new().stringify_64_bit_integers(true))
        .map_err(|error| error.to_string())?;
    String::from_utf8(json).map_err(|error| error.to_string())
}

/// # Errors
/// Why the text is no history.
pub(crate) fn history_from_json(json: &str) -> Result<History, String> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    // A server that is newer than this program may know more.
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(HISTORY.clone(), &mut deserializer, &options)
        .map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    History::decode(message.encode_to_vec().as_slice()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::history::{HistoryEvent, WorkflowTaskCompletedEventAttributes, history_event::Attributes};

    #[test]
    fn history_comes_back_from_the_json_of_temporals_tools() {
        let attributes = WorkflowTaskCompletedEventAttributes { scheduled_event_id: 2, ..Default::default() };
        let event = HistoryEvent {
            event_id: 4,
            event_type: crate::proto::enums::EventType::WorkflowTaskCompleted as i32,
            event_time: Some(prost_wkt_types::Timestamp { seconds: 1_790_000_000, nanos: 500_000_000 }),
            attributes: Some(Attributes::WorkflowTaskCompletedEventAttributes(attributes)),
            ..HistoryEvent::default()
        };
        let history = History { events: vec![event] };
        let json = history_to_json(&history).unwrap();
        assert!(json.contains("\"eventId\": \"4\"") && json.contains("EVENT_TYPE_WORKFLOW_TASK_COMPLETED"), "{json}");
        assert_eq!(history_from_json(&json), Ok(history));
        assert!(history_from_json("{").is_err());
        assert!(history_from_json("[]").is_err());
    }
}
