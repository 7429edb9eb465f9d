//! Whether a run meets conditions, by looking at it: what the SQL means.

use dacapo_client::{Comparison, Condition, Field, Literal, Test};
use dacapo_core::{AttributeValue, Name, parse_timestamp};

use crate::RunRow;

/// Returns whether the run, with these attributes, meets the condition.
pub(crate) fn matches(condition: &Condition, row: &RunRow, attributes: &[(Name, AttributeValue)]) -> bool {
    match condition {
        Condition::All(parts) => parts.iter().all(|part| matches(part, row, attributes)),
        Condition::Any(parts) => parts.iter().any(|part| matches(part, row, attributes)),
        Condition::Is(field, test) => passes(test, &values(field, row, attributes)),
    }
}

/// Returns the value of a field, those of a list, or none.
fn values(field: &Field, row: &RunRow, attributes: &[(Name, AttributeValue)]) -> Vec<AttributeValue> {
    let text = |name: &Name| vec![AttributeValue::Keyword(name.clone())];
    match field {
        Field::WorkflowId => text(&row.workflow_id),
        Field::WorkflowType => text(&row.workflow),
        Field::RunId => text(&row.run_id),
        Field::TaskQueue => text(&row.queue),
        Field::ExecutionStatus => vec![AttributeValue::Int(row.status.code())],
        Field::StuckCause => row.stuck.iter().map(|stuck| AttributeValue::Int(stuck.cause.code())).collect(),
        Field::StartTime => vec![AttributeValue::Time(row.started)],
        Field::CloseTime => row.closed.into_iter().map(AttributeValue::Time).collect(),
        Field::Attribute(name) => match attributes.iter().find(|(other, _)| other == name) {
            Some((_, AttributeValue::Keywords(words))) => words.iter().cloned().map(AttributeValue::Keyword).collect(),
            Some((_, value)) => vec![value.clone()],
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn passes(test: &Test, values: &[AttributeValue]) -> bool {
    use Comparison::{AtLeast, AtMost, Equal, NotEqual};
    let is = |comparison, literal: &Literal| values.iter().any(|value| compares(value, comparison, literal));
    let is_within = |low: &Literal, high: &Literal| {
        values.iter().any(|value| compares(value, AtLeast, low) && compares(value, AtMost, high))
    };
    let starts = |start: &str| {
        values.iter().any(|value| matches!(value, AttributeValue::Keyword(word) if word.starts_with(start)))
    };
    let is_there = !values.is_empty();
    match test {
        Test::Compare(NotEqual, literal) => is_there && !is(Equal, literal),
        Test::Compare(comparison, literal) => is(*comparison, literal),
        Test::In(literals) => literals.iter().any(|literal| is(Equal, literal)),
        Test::NotIn(literals) => is_there && !literals.iter().any(|literal| is(Equal, literal)),
        Test::Between(low, high) => is_within(low, high),
        Test::NotBetween(low, high) => is_there && !is_within(low, high),
        Test::StartsWith(start) => starts(start),
        Test::NotStartsWith(start) => is_there && !starts(start),
        Test::IsNull => !is_there,
        Test::IsNotNull => is_there,
    }
}

/// Values of other types than the literal's are never found.
fn compares(value: &AttributeValue, comparison: Comparison, literal: &Literal) -> bool {
    let order = match (value, literal) {
        (AttributeValue::Keyword(word), Literal::Text(text)) => Some(word.as_str().cmp(text)),
        (AttributeValue::Time(time), Literal::Text(text)) => parse_timestamp(text).map(|other| time.cmp(&other)),
        (AttributeValue::Time(time), Literal::Time(other)) => Some(time.cmp(other)),
        (AttributeValue::Int(value), Literal::Int(other)) => Some(value.cmp(other)),
        (AttributeValue::Int(value), Literal::Float(other)) => (*value as f64).partial_cmp(other),
        (AttributeValue::Int(value), Literal::Status(status)) => Some(value.cmp(&status.code())),
        (AttributeValue::Int(value), Literal::Cause(cause)) => Some(value.cmp(&cause.code())),
        (AttributeValue::Float(value), Literal::Int(other)) => value.partial_cmp(&(*other as f64)),
        (AttributeValue::Float(value), Literal::Float(other)) => value.partial_cmp(other),
        (AttributeValue::Bool(value), Literal::Bool(other)) => Some(value.cmp(other)),
        _ => None,
    };
    order.is_some_and(|order| match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::AtMost => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::AtLeast => order.is_ge(),
    })
}
