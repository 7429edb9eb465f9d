//! Starting runs.

use dacapo_client::{Client, Error, StartRun};
use dacapo_core::{AttributeValue, Name, parse_timestamp};

use super::change::fresh_key;
use crate::arguments::Start;
use crate::backend::explained;
use crate::failure::Result;
use crate::output::Output;
use crate::text::payload;

pub(super) async fn start(client: &dyn Client, start: Start, output: Output) -> Result<()> {
    let Start { workflow, input, id, queue, attribute, request_id } = start;
    let attributes = attribute.into_iter().map(|(name, value)| (Name::from(name), attribute_of(&value)));
    let start = StartRun {
        workflow: workflow.into(),
        workflow_id: id.map_or_else(fresh_key, Name::from),
        input: input.iter().map(|text| payload(text)).collect(),
        queue: queue.map(Name::from),
        request_id: request_id.map(Name::from),
        attributes: attributes.collect(),
        ..StartRun::default()
    };
    let started = client.start(start).await.map_err(|error| explained(of_command(error)))?;
    output.print(&started, || {
        let found = if started.is_new { "started" } else { "was started before" };
        format!("{} {found}", started.run)
    })
}

/// Says what to do in the words of the command line: the library's advice names calls.
fn of_command(error: Error) -> Error {
    let Error::WorkflowIdInUse { workflow_id, run_id, .. } = error else { return error };
    let reason = format!(
        "workflow id {workflow_id:?} is in use by run {run_id}: wait for it to close, or choose another `--id`. A start that is \
         repeated gets its run if both have the same `--request-id`"
    );
    Error::WorkflowIdInUse { workflow_id, run_id, reason }
}

/// A number, a truth value, a moment, a list of keywords in brackets, or a keyword.
fn attribute_of(text: &str) -> AttributeValue {
    if let Ok(number) = text.parse::<i64>() {
        return AttributeValue::Int(number);
    }
    if let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) {
        return AttributeValue::Float(number);
    }
    match text {
        "true" => return AttributeValue::Bool(true),
        "false" => return AttributeValue::Bool(false),
        _ => {}
    }
    if let Some(moment) = parse_timestamp(text) {
        return AttributeValue::Time(moment);
    }
    if let Ok(keywords) = serde_json::from_str::<Vec<String>>(text) {
        return AttributeValue::Keywords(keywords.into_iter().map(Name::from).collect());
    }
    AttributeValue::Keyword(text.to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_has_the_kind_that_its_text_looks_like() {
        assert_eq!(attribute_of("7"), AttributeValue::Int(7));
        assert_eq!(attribute_of("7.5"), AttributeValue::Float(7.5));
        assert_eq!(attribute_of("true"), AttributeValue::Bool(true));
        assert_eq!(attribute_of("1970-01-02"), AttributeValue::Time(dacapo_core::Timestamp(86_400_000_000_000)));
        assert_eq!(attribute_of(r#"["a","b"]"#), AttributeValue::Keywords(vec!["a".into(), "b".into()]));
        for text in ["ada", "inf", "[a", ""] {
            assert_eq!(attribute_of(text), AttributeValue::Keyword(text.to_owned().into()));
        }
    }
}
