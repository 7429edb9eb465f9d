//! Retry policies, priorities, and the rules for cancelled, closed and reused work.

use std::time::Duration;

use dacapo_core::{CancelType, IdReuse, Name, ParentClose, Priority, Retry};

use super::time::{duration_from_proto, duration_to_proto};
use crate::proto::{child, commands, common, enums, nexus};

/// The shortest pause that the server accepts in a retry policy.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

pub(crate) fn retry_to_proto(retry: &Retry) -> common::RetryPolicy {
    let first_pause = retry.first_pause.max(SHORTEST_PAUSE);
    common::RetryPolicy {
        initial_interval: Some(duration_to_proto(first_pause)),
        backoff_coefficient: retry.factor.max(1.0),
        maximum_interval: Some(duration_to_proto(retry.max_pause.max(first_pause))),
        maximum_attempts: i32::try_from(retry.attempts).unwrap_or(i32::MAX),
        non_retryable_error_types: retry.non_retryable.iter().map(Name::to_string).collect(),
    }
}

pub(crate) fn retry_from_proto(retry: common::RetryPolicy) -> Retry {
    let default = Retry::unlimited();
    let first_pause = retry.initial_interval.map_or(default.first_pause, duration_from_proto);
    Retry {
        first_pause,
        factor: if retry.backoff_coefficient >= 1.0 { retry.backoff_coefficient } else { default.factor },
        max_pause: retry.maximum_interval.map_or(first_pause.saturating_mul(100), duration_from_proto),
        attempts: u32::try_from(retry.maximum_attempts).unwrap_or(0),
        non_retryable: retry.non_retryable_error_types.into_iter().map(Name::from).collect(),
    }
}

/// None for the default, which leaves the choice to the server.
pub(crate) fn priority_to_proto(priority: &Priority) -> Option<common::Priority> {
    (*priority != Priority::default()).then(|| common::Priority {
        priority_key: priority.key,
        fairness_key: priority.fairness_key.as_ref().map(Name::to_string).unwrap_or_default(),
        fairness_weight: priority.fairness_weight.unwrap_or_default(),
    })
}

pub(crate) fn priority_from_proto(priority: Option<common::Priority>) -> Priority {
    let Some(priority) = priority else { return Priority::default() };
    Priority {
        key: priority.priority_key,
        fairness_key: (!priority.fairness_key.is_empty()).then(|| priority.fairness_key.into()),
        fairness_weight: (priority.fairness_weight != 0.0).then_some(priority.fairness_weight),
    }
}

pub(crate) fn task_cancel_to_proto(cancel: CancelType) -> commands::ActivityCancellationType {
    match cancel {
        CancelType::Abandon => commands::ActivityCancellationType::Abandon,
        // An activity that was asked to stop is waited for until it has ended: there is no earlier answer.
        CancelType::WaitCompleted | CancelType::WaitRequested => {
            commands::ActivityCancellationType::WaitCancellationCompleted
        }
        _ => commands::ActivityCancellationType::TryCancel,
    }
}

pub(crate) fn child_cancel_to_proto(cancel: CancelType) -> child::ChildWorkflowCancellationType {
    match cancel {
        CancelType::Abandon => child::ChildWorkflowCancellationType::Abandon,
        CancelType::WaitCompleted => child::ChildWorkflowCancellationType::WaitCancellationCompleted,
        CancelType::WaitRequested => child::ChildWorkflowCancellationType::WaitCancellationRequested,
        _ => child::ChildWorkflowCancellationType::TryCancel,
    }
}

pub(crate) fn nexus_cancel_to_proto(cancel: CancelType) -> nexus::NexusOperationCancellationType {
    match cancel {
        CancelType::Abandon => nexus::NexusOperationCancellationType::Abandon,
        CancelType::WaitCompleted => nexus::NexusOperationCancellationType::WaitCancellationCompleted,
        CancelType::WaitRequested => nexus::NexusOperationCancellationType::WaitCancellationRequested,
        _ => nexus::NexusOperationCancellationType::TryCancel,
    }
}

pub(crate) fn parent_close_to_proto(close: ParentClose) -> child::ParentClosePolicy {
    match close {
        ParentClose::Abandon => child::ParentClosePolicy::Abandon,
        ParentClose::RequestCancel => child::ParentClosePolicy::RequestCancel,
        _ => child::ParentClosePolicy::Terminate,
    }
}

pub(crate) fn id_reuse_to_proto(reuse: IdReuse) -> enums::WorkflowIdReusePolicy {
    match reuse {
        IdReuse::AllowDuplicateFailedOnly => enums::WorkflowIdReusePolicy::AllowDuplicateFailedOnly,
        IdReuse::RejectDuplicate => enums::WorkflowIdReusePolicy::RejectDuplicate,
        _ => enums::WorkflowIdReusePolicy::AllowDuplicate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_policies_and_priorities_come_back() {
        let policies = [
            Retry::exponential(),
            Retry::none(),
            Retry::unlimited().factor(1.5).first_pause(Duration::from_millis(20)).non_retryable("NoFunds"),
        ];
        for retry in policies {
            assert_eq!(retry_from_proto(retry_to_proto(&retry)), retry);
        }
        let priority = Priority { key: 3, fairness_key: Some("ada".into()), fairness_weight: Some(2.0) };
        assert_eq!(priority_from_proto(priority_to_proto(&priority)), priority);
        assert_eq!(priority_to_proto(&Priority::default()), None);
    }

    #[test]
    fn retry_policy_is_made_one_that_the_server_accepts() {
        let odd = Retry::exponential().first_pause(Duration::ZERO).max_pause(Duration::ZERO).factor(0.5);
        let sent = retry_to_proto(&odd);
        assert_eq!(sent.initial_interval, Some(duration_to_proto(SHORTEST_PAUSE)));
        assert_eq!(sent.maximum_interval, sent.initial_interval);
        assert!((sent.backoff_coefficient - 1.0).abs() < f64::EPSILON);
    }
}
