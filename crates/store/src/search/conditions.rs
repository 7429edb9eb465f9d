//! A filter as conditions that must all hold, and the order that its list has.

use dacapo_client::{Comparison, Condition, Field, Filter, Literal, Order, Status, Test};

/// Returns the conditions that a run must meet.
pub(crate) fn conditions(filter: &Filter) -> Vec<Condition> {
    let is = |field, comparison, value| Condition::Is(field, Test::Compare(comparison, value));
    let text = |text: &dacapo_core::Name| Literal::Text(text.to_string());
    let Filter { status, workflow, workflow_id, stuck, started_from, started_before, search } = filter;
    let mut all = Vec::new();
    let mut add = |condition: Option<Condition>| all.extend(condition);
    add(status.map(|status| is(Field::ExecutionStatus, Comparison::Equal, Literal::Status(status))));
    add(workflow.as_ref().map(|name| is(Field::WorkflowType, Comparison::Equal, text(name))));
    add(workflow_id.as_ref().map(|id| is(Field::WorkflowId, Comparison::Equal, text(id))));
    add(stuck.then_some(Condition::Is(Field::StuckCause, Test::IsNotNull)));
    add(started_from.map(|from| is(Field::StartTime, Comparison::AtLeast, Literal::Time(from))));
    add(started_before.map(|before| is(Field::StartTime, Comparison::Less, Literal::Time(before))));
    match search.as_ref().and_then(|search| search.condition()) {
        Some(Condition::All(parts)) => all.extend(parts.iter().cloned()),
        Some(other) => all.push(other.clone()),
        None => {}
    }
    all
}

/// Returns the order of the list. A list that is limited to some time is in the order of the starts, so that no run outside of it is looked at.
pub(crate) fn order(filter: &Filter, conditions: &[Condition]) -> Order {
    let asked = filter.search.as_ref().map_or(Order::Newest, |search| search.order());
    let is_limited =
        conditions.iter().any(|condition| matches!(condition, Condition::Is(Field::StartTime, test) if limits(test)));
    if asked == Order::Newest && is_limited { Order::StartTime { descending: true } } else { asked }
}

fn limits(test: &Test) -> bool {
    match test {
        Test::Compare(comparison, _) => *comparison != Comparison::NotEqual,
        Test::Between(..) | Test::In(_) => true,
        _ => false,
    }
}

/// Returns whether the condition asks for runs of this one status.
pub(super) fn asks_for(condition: &Condition, holds: impl Fn(Status) -> bool) -> bool {
    let Condition::Is(Field::ExecutionStatus, Test::Compare(Comparison::Equal, Literal::Status(status))) = condition
    else {
        return false;
    };
    holds(*status)
}
