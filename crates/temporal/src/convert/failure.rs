//! Failures. The kinds are Temporal's, so that a failure of a workflow or activity of another language keeps its type, its details and
//! its causes on the way, and ours do there.

use dacapo_core::{
    ActivityFailed, ChildFailed, Failure, FailureKind, Name, NexusFailed, Origin, RetryState, TimeoutKind,
};

use serde::Deserialize;

use super::payload::{payload_from_proto, payloads_from_proto, payloads_to_proto};
use crate::proto::common;
use crate::proto::enums::{RetryState as ProtoRetryState, TimeoutType};
use crate::proto::failure as proto;
use proto::failure::FailureInfo;

/// The program that reports failures, as Temporal's tools show it.
const SOURCE: &str = "Dacapo";
/// The source of failures that reject an update: the server does not say whether a validator or a handler failed.
const REJECTION: &str = "Dacapo, rejection";
/// The deepest cause that is read or written, as elsewhere in the records of a run.
const MAX_CAUSES: usize = 64;

pub(crate) fn failure_to_proto(failure: &Failure) -> proto::Failure {
    let chain: Vec<&Failure> = failure.chain().take(MAX_CAUSES).collect();
    let mut cause = None;
    for failure in chain.into_iter().rev() {
        let mut link = link_to_proto(failure);
        link.cause = cause.take().map(Box::new);
        cause = Some(link);
    }
    cause.unwrap_or_default()
}

/// A failure that rejects an update.
pub(crate) fn rejection_to_proto(failure: &Failure) -> proto::Failure {
    proto::Failure { source: REJECTION.to_owned(), ..failure_to_proto(failure) }
}

/// Whether a failure of an update is a rejection. One of another SDK never is: there is no telling.
pub(crate) fn is_rejection(failure: &proto::Failure) -> bool {
    failure.source == REJECTION
}

pub(crate) fn failure_from_proto(failure: proto::Failure) -> Failure {
    let mut links = Vec::new();
    let mut next = Some(failure);
    while let Some(mut failure) = next.filter(|_| links.len() < MAX_CAUSES) {
        next = failure.cause.take().map(|cause| *cause);
        links.push(link_from_proto(failure));
    }
    links
        .into_iter()
        .rev()
        .reduce(|cause, failure| failure.caused_by(cause))
        .unwrap_or_else(|| Failure::application(""))
}

fn link_to_proto(failure: &Failure) -> proto::Failure {
    let (source, stack_trace) = match &failure.origin {
        Some(origin) => (origin.source.to_string(), origin.stack.clone()),
        None => (SOURCE.to_owned(), String::new()),
    };
    proto::Failure {
        message: failure.message.clone(),
        source,
        stack_trace,
        failure_info: Some(info_to_proto(failure)),
        ..proto::Failure::default()
    }
}

fn info_to_proto(failure: &Failure) -> FailureInfo {
    let details = || payloads_to_proto(&failure.details);
    match &failure.kind {
        FailureKind::Timeout(kind) => FailureInfo::TimeoutFailureInfo(proto::TimeoutFailureInfo {
            timeout_type: timeout_to_proto(*kind) as i32,
            last_heartbeat_details: details(),
        }),
        FailureKind::Cancelled => FailureInfo::CanceledFailureInfo(proto::CanceledFailureInfo {
            details: details(),
            ..proto::CanceledFailureInfo::default()
        }),
        FailureKind::Terminated => FailureInfo::TerminatedFailureInfo(proto::TerminatedFailureInfo::default()),
        FailureKind::Server => {
            FailureInfo::ServerFailureInfo(proto::ServerFailureInfo { non_retryable: failure.non_retryable })
        }
        FailureKind::Reset => {
            FailureInfo::ResetWorkflowFailureInfo(proto::ResetWorkflowFailureInfo { last_heartbeat_details: details() })
        }
        FailureKind::Activity(failed) => FailureInfo::ActivityFailureInfo(proto::ActivityFailureInfo {
            activity_type: Some(common::ActivityType { name: failed.activity.to_string() }),
            activity_id: failed.id.to_string(),
            retry_state: retry_state_to_proto(failed.retry) as i32,
            ..proto::ActivityFailureInfo::default()
        }),
        FailureKind::Child(failed) => {
            FailureInfo::ChildWorkflowExecutionFailureInfo(proto::ChildWorkflowExecutionFailureInfo {
                workflow_execution: Some(common::WorkflowExecution {
                    workflow_id: failed.workflow_id.to_string(),
                    run_id: failed.run_id.to_string(),
                }),
                workflow_type: Some(common::WorkflowType { name: failed.workflow.to_string() }),
                retry_state: retry_state_to_proto(failed.retry) as i32,
                ..proto::ChildWorkflowExecutionFailureInfo::default()
            })
        }
        FailureKind::Nexus(failed) => {
            FailureInfo::NexusOperationExecutionFailureInfo(proto::NexusOperationFailureInfo {
                endpoint: failed.endpoint.to_string(),
                service: failed.service.to_string(),
                operation: failed.operation.to_string(),
                operation_token: failed.token.to_string(),
                ..proto::NexusOperationFailureInfo::default()
            })
        }
        // A kind that a later core adds reads as an application failure.
        _ => FailureInfo::ApplicationFailureInfo(proto::ApplicationFailureInfo {
            r#type: failure.type_name.as_ref().map(Name::to_string).unwrap_or_default(),
            non_retryable: failure.non_retryable,
            details: details(),
            ..proto::ApplicationFailureInfo::default()
        }),
    }
}

fn link_from_proto(failure: proto::Failure) -> Failure {
    let proto::Failure { mut message, source, mut stack_trace, failure_info, encoded_attributes, .. } = failure;
    if let Some(text) = encoded_attributes.and_then(text_from_proto) {
        (message, stack_trace) = (text.message, text.stack_trace);
    }
    let mut read = Failure::application(message);
    if let Some(info) = failure_info {
        info_from_proto(&mut read, info);
    }
    if ![SOURCE, REJECTION].contains(&source.as_str()) || !stack_trace.is_empty() {
        read.origin = Some(Box::new(Origin { source: source.into(), stack: stack_trace }));
    }
    read
}

/// The text of a failure that its program has encoded as a value, so that codecs see it.
#[derive(Deserialize)]
struct EncodedText {
    message: String,
    #[serde(default)]
    stack_trace: String,
}

/// None if a codec that only the other program has was applied: then a stand-in is the text.
fn text_from_proto(payload: common::Payload) -> Option<EncodedText> {
    serde_json::from_slice(payload_from_proto(payload).bytes().ok()?).ok()
}

fn info_from_proto(failure: &mut Failure, info: FailureInfo) {
    match info {
        FailureInfo::ApplicationFailureInfo(info) => {
            failure.type_name = (!info.r#type.is_empty()).then(|| info.r#type.into());
            failure.non_retryable = info.non_retryable;
            failure.details = payloads_from_proto(info.details);
        }
        FailureInfo::TimeoutFailureInfo(info) => {
            failure.kind = FailureKind::Timeout(timeout_from_proto(info.timeout_type()));
            failure.details = payloads_from_proto(info.last_heartbeat_details);
        }
        FailureInfo::CanceledFailureInfo(info) => {
            failure.kind = FailureKind::Cancelled;
            failure.details = payloads_from_proto(info.details);
        }
        FailureInfo::TerminatedFailureInfo(_) => failure.kind = FailureKind::Terminated,
        FailureInfo::ServerFailureInfo(info) => {
            failure.kind = FailureKind::Server;
            failure.non_retryable = info.non_retryable;
        }
        FailureInfo::ResetWorkflowFailureInfo(info) => {
            failure.kind = FailureKind::Reset;
            failure.details = payloads_from_proto(info.last_heartbeat_details);
        }
        FailureInfo::ActivityFailureInfo(info) => {
            let retry = retry_state_from_proto(info.retry_state());
            failure.kind = FailureKind::Activity(Box::new(ActivityFailed {
                activity: info.activity_type.unwrap_or_default().name.into(),
                id: info.activity_id.into(),
                retry,
            }));
        }
        FailureInfo::ChildWorkflowExecutionFailureInfo(info) => {
            let retry = retry_state_from_proto(info.retry_state());
            let run = info.workflow_execution.unwrap_or_default();
            failure.kind = FailureKind::Child(Box::new(ChildFailed {
                workflow: info.workflow_type.unwrap_or_default().name.into(),
                workflow_id: run.workflow_id.into(),
                run_id: run.run_id.into(),
                retry,
            }));
        }
        FailureInfo::NexusOperationExecutionFailureInfo(info) => {
            failure.kind = FailureKind::Nexus(Box::new(NexusFailed {
                endpoint: info.endpoint.into(),
                service: info.service.into(),
                operation: info.operation.into(),
                token: info.operation_token.into(),
            }));
        }
        FailureInfo::NexusHandlerFailureInfo(info) => {
            failure.kind = FailureKind::Server;
            failure.type_name = Some(info.r#type.into());
        }
    }
}

fn timeout_to_proto(kind: TimeoutKind) -> TimeoutType {
    match kind {
        TimeoutKind::StartToClose => TimeoutType::StartToClose,
        TimeoutKind::ScheduleToStart => TimeoutType::ScheduleToStart,
        TimeoutKind::ScheduleToClose => TimeoutType::ScheduleToClose,
        TimeoutKind::Heartbeat => TimeoutType::Heartbeat,
        // A deadline that the workflow set itself is no timeout of the server.
        _ => TimeoutType::Unspecified,
    }
}

fn timeout_from_proto(kind: TimeoutType) -> TimeoutKind {
    match kind {
        TimeoutType::StartToClose => TimeoutKind::StartToClose,
        TimeoutType::ScheduleToStart => TimeoutKind::ScheduleToStart,
        TimeoutType::ScheduleToClose => TimeoutKind::ScheduleToClose,
        TimeoutType::Heartbeat => TimeoutKind::Heartbeat,
        TimeoutType::Unspecified => TimeoutKind::Deadline,
    }
}

fn retry_state_to_proto(state: RetryState) -> ProtoRetryState {
    match state {
        RetryState::InProgress => ProtoRetryState::InProgress,
        RetryState::NonRetryableFailure => ProtoRetryState::NonRetryableFailure,
        RetryState::Timeout => ProtoRetryState::Timeout,
        RetryState::MaximumAttemptsReached => ProtoRetryState::MaximumAttemptsReached,
        RetryState::RetryPolicyNotSet => ProtoRetryState::RetryPolicyNotSet,
        RetryState::InternalServerError => ProtoRetryState::InternalServerError,
        RetryState::CancelRequested => ProtoRetryState::CancelRequested,
        _ => ProtoRetryState::Unspecified,
    }
}

fn retry_state_from_proto(state: ProtoRetryState) -> RetryState {
    match state {
        ProtoRetryState::Unspecified => RetryState::Unspecified,
        ProtoRetryState::InProgress => RetryState::InProgress,
        ProtoRetryState::NonRetryableFailure => RetryState::NonRetryableFailure,
        ProtoRetryState::Timeout => RetryState::Timeout,
        ProtoRetryState::MaximumAttemptsReached => RetryState::MaximumAttemptsReached,
        ProtoRetryState::RetryPolicyNotSet => RetryState::RetryPolicyNotSet,
        ProtoRetryState::InternalServerError => RetryState::InternalServerError,
        ProtoRetryState::CancelRequested => RetryState::CancelRequested,
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::Payload;

    use super::super::payload::payload_to_proto;
    use super::*;

    fn kinds() -> Vec<FailureKind> {
        let timeouts = [
            TimeoutKind::StartToClose,
            TimeoutKind::ScheduleToStart,
            TimeoutKind::ScheduleToClose,
            TimeoutKind::Heartbeat,
            TimeoutKind::Deadline,
        ];
        let states = [
            RetryState::Unspecified,
            RetryState::InProgress,
            RetryState::NonRetryableFailure,
            RetryState::Timeout,
            RetryState::MaximumAttemptsReached,
            RetryState::RetryPolicyNotSet,
            RetryState::InternalServerError,
            RetryState::CancelRequested,
        ];
        let activity = |retry| {
            FailureKind::Activity(Box::new(ActivityFailed { activity: "charge".into(), id: "7".into(), retry }))
        };
        let child = |retry| {
            FailureKind::Child(Box::new(ChildFailed {
                workflow: "checkout".into(),
                workflow_id: "order-42".into(),
                run_id: "r".into(),
                retry,
            }))
        };
        let nexus = NexusFailed {
            endpoint: "bank".into(),
            service: "cards".into(),
            operation: "charge".into(),
            token: "t".into(),
        };
        let mut kinds = vec![
            FailureKind::Application,
            FailureKind::Cancelled,
            FailureKind::Terminated,
            FailureKind::Server,
            FailureKind::Reset,
            FailureKind::Nexus(Box::new(nexus)),
        ];
        kinds.extend(timeouts.map(FailureKind::Timeout));
        kinds.extend(states.map(activity));
        kinds.extend(states.map(child));
        kinds
    }

    #[test]
    fn failure_of_every_kind_comes_back_with_its_causes() {
        for kind in kinds() {
            let failure = Failure::new(kind, "it failed")
                .caused_by(Failure::application("no funds").typed("NoFunds").non_retryable());
            assert_eq!(failure_from_proto(failure_to_proto(&failure)), failure);
        }
        let mut detailed = Failure::application("no funds").typed("NoFunds");
        detailed.details = vec![Payload::json("7")];
        detailed.origin = Some(Box::new(Origin { source: "PythonSDK".into(), stack: "at line 3".into() }));
        assert_eq!(failure_from_proto(failure_to_proto(&detailed)), detailed);
    }

    #[test]
    fn text_that_was_encoded_is_read_where_no_codec_hides_it() {
        let text_of = |attributes: Payload| {
            let failure = failure_from_proto(proto::Failure {
                message: "Encoded failure".into(),
                source: "PythonSDK".into(),
                encoded_attributes: Some(payload_to_proto(&attributes)),
                ..proto::Failure::default()
            });
            (failure.message, failure.origin.unwrap_or_default().stack)
        };
        let plain = Payload::json(r#"{"message":"no funds","stack_trace":"at line 3"}"#);
        assert_eq!(text_of(plain), ("no funds".into(), "at line 3".into()));
        let encrypted = Payload::new("binary/encrypted".into(), vec![1, 2].into());
        assert_eq!(text_of(encrypted), ("Encoded failure".into(), String::new()));
    }

    #[test]
    fn chain_of_causes_is_cut_where_a_record_would_cut_it() {
        let mut link = proto::Failure { message: "deepest".into(), ..proto::Failure::default() };
        for depth in 0..99 {
            link =
                proto::Failure { message: depth.to_string(), cause: Some(Box::new(link)), ..proto::Failure::default() };
        }
        let failure = failure_from_proto(link);
        assert_eq!(failure.chain().count(), MAX_CAUSES);
        assert_eq!(failure.message, "98");
    }
}
