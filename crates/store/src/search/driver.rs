//! Which condition a database begins with: the one whose index leaves the fewest runs to look at. Without statistics SQLite cannot know, and
//! it does not ask for them.

use dacapo_client::{Comparison, Condition, Field, Literal, Order, Status, Test};

use super::conditions::asks_for;

/// The way in which runs are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// The index of the run ids or workflow ids.
    Id,
    /// The rows of an attribute that is a text, in the order of the runs: the condition of this place.
    Attribute(usize),
    /// The numbers of the runs that have some values of attributes: the condition of this place.
    Attributes(usize),
    /// The index of stuck runs.
    Stuck,
    /// The index of open runs.
    Open,
    /// The index of runs that ended otherwise than by a result.
    Ended,
    /// The index of the workflows.
    Workflow,
    /// The index of the moments by which runs are ordered, or their numbers.
    Order,
}

impl Driver {
    pub(super) fn of(conditions: &[Condition], order: Order) -> Self {
        let has = |holds: &dyn Fn(&Condition) -> bool| conditions.iter().any(holds);
        let place = |holds: fn(&Condition) -> bool| conditions.iter().position(holds);
        if has(&is_one_of_ids) {
            return Self::Id;
        }
        if order == Order::Newest
            && let Some(place) = place(is_text_of_attribute)
        {
            return Self::Attribute(place);
        }
        if let Some(place) = place(is_of_attributes) {
            return Self::Attributes(place);
        }
        if has(
            &|condition| matches!(condition, Condition::Is(Field::StuckCause, test) if !matches!(test, Test::IsNull)),
        ) {
            return Self::Stuck;
        }
        if has(&|condition| asks_for(condition, |status| status == Status::Open)) {
            return Self::Open;
        }
        if has(&|condition| asks_for(condition, |status| status.code() > Status::Completed.code())) {
            return Self::Ended;
        }
        let is_workflow = |condition: &Condition| {
            matches!(condition, Condition::Is(Field::WorkflowType, Test::Compare(Comparison::Equal, _)))
        };
        if order == Order::Newest && has(&is_workflow) {
            return Self::Workflow;
        }
        Self::Order
    }

    /// Returns whether the index that is to be used has this field.
    pub(super) fn uses(self, field: &Field, order: Order) -> bool {
        match self {
            Self::Id => matches!(field, Field::WorkflowId | Field::RunId),
            Self::Stuck => *field == Field::StuckCause,
            Self::Ended => *field == Field::ExecutionStatus,
            Self::Workflow => *field == Field::WorkflowType,
            Self::Order => match order {
                Order::Newest => false,
                Order::StartTime { .. } => *field == Field::StartTime,
                Order::CloseTime { .. } => *field == Field::CloseTime,
            },
            Self::Attribute(_) | Self::Attributes(_) | Self::Open => false,
        }
    }
}

fn is_one_of_ids(condition: &Condition) -> bool {
    use Comparison::Equal;
    matches!(
        condition,
        Condition::Is(Field::WorkflowId | Field::RunId, Test::Compare(Equal, _) | Test::In(_) | Test::StartsWith(_))
    )
}

/// A text that could be a moment is compared with both.
fn is_text_of_attribute(condition: &Condition) -> bool {
    let Condition::Is(Field::Attribute(_), Test::Compare(Comparison::Equal, Literal::Text(text))) = condition else {
        return false;
    };
    dacapo_core::parse_timestamp(text).is_none()
}

/// Returns whether a run that meets the condition has rows in the index of attributes that say so.
fn is_of_attributes(condition: &Condition) -> bool {
    match condition {
        Condition::Any(parts) => parts.iter().all(|part| matches!(part, Condition::Is(..)) && is_of_attributes(part)),
        Condition::Is(Field::Attribute(_), test) => match test {
            Test::Compare(comparison, value) => {
                *comparison != Comparison::NotEqual && !matches!(value, Literal::Bool(_))
            }
            Test::In(_) | Test::Between(..) | Test::StartsWith(_) => true,
            _ => false,
        },
        Condition::All(_) | Condition::Is(..) => false,
    }
}
