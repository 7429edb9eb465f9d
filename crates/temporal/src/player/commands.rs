//! From our commands to Temporal's, one to one where there is one.

use std::collections::BTreeMap;
use std::time::Duration;

use dacapo_core::{
    CallNexus, CallSite, CancelExternal, CancelOperation, Command, CommandKind, CompleteUpdate, ContinueAsNew, Failure,
    Headers, Name, Operation, Outcome, Payload, ScheduleActivity, ScheduleLocalActivity, SignalExternal, StartChild,
    Target,
};

use crate::convert::{
    attributes_to_proto, child_cancel_to_proto, duration_to_proto, failure_to_proto, headers_to_proto,
    id_reuse_to_proto, map_to_proto, nexus_cancel_to_proto, parent_close_to_proto, payload_to_proto, payloads_list,
    priority_to_proto, rejection_to_proto, retry_to_proto, task_cancel_to_proto, time_to_proto,
};
use crate::numbers::to_temporal;
use crate::proto::commands::workflow_command::Variant;
use crate::proto::commands::{self, WorkflowCommand};
use crate::proto::{common, sdk, sdk_common};
use crate::reserved::{PREFIX, SIDE_EFFECT};

/// The server starts no timer of no duration, so such a timer takes as long as the shortest.
const SHORTEST_TIMER: Duration = Duration::from_millis(1);
/// The start-to-close timeout of side effects, for the server, which demands one.
const UNLIMITED: Duration = Duration::from_secs(10 * 365 * 86_400);
/// The most bytes of a summary that the server keeps.
const LONGEST_SUMMARY: usize = 400;

/// The facts with which commands are translated.
pub(crate) struct Translation<'a> {
    /// The run's namespace and queue, for operations that name none.
    pub(crate) namespace: &'a str,
    pub(crate) queue: &'a str,
    /// The start-to-close timeout of activities that have no timeout which bounds an attempt: the server demands one.
    pub(crate) start_to_close: Duration,
    /// The ids by which the server knows the updates of the run.
    pub(crate) updates: &'a BTreeMap<Name, String>,
}

impl Translation<'_> {
    /// Translates a command. None for one that leaves no trace on the server, because replay makes it again.
    ///
    /// # Errors
    /// The command's kind, if there is nothing like it on a Temporal cluster.
    pub(crate) fn command(&self, command: &Command) -> Result<Option<WorkflowCommand>, String> {
        let (variant, summary) = match &command.kind {
            CommandKind::Activity(c) => (self.activity(c), c.summary.as_deref()),
            CommandKind::LocalActivity(c) => (self.local_activity(c), c.summary.as_deref()),
            CommandKind::SideEffect(c) => {
                (side_effect_attempt(&c.name, c.id.to_string(), to_temporal(c.seq)), c.summary.as_deref())
            }
            CommandKind::Timer(c) => (start_timer(to_temporal(c.seq), c.duration), c.summary.as_deref()),
            CommandKind::Child(c) => (self.child(c), c.summary.as_deref()),
            CommandKind::SignalExternal(c) => (self.signal(c), None),
            CommandKind::CancelExternal(c) => (self.cancel_external(c), None),
            CommandKind::Nexus(c) => (nexus(c), c.summary.as_deref()),
            CommandKind::Cancel(c) => return Ok(cancel(c).map(WorkflowCommand::from)),
            // Durable keys are made again by replay, and a promise is resolved by an update.
            CommandKind::State(_) | CommandKind::Promise(_) => return Ok(None),
            other => return self.without_summary(other).map(|variant| Some(variant.into())),
        };
        let user_metadata = Some(metadata(summary, &command.site));
        Ok(Some(WorkflowCommand { variant: Some(variant), user_metadata, ..WorkflowCommand::default() }))
    }

    fn without_summary(&self, command: &CommandKind) -> Result<Variant, String> {
        Ok(match command {
            CommandKind::Patch(c) => Variant::SetPatchMarker(commands::SetPatchMarker {
                patch_id: c.id.to_string(),
                deprecated: c.deprecated,
            }),
            CommandKind::SearchAttributes(changes) => {
                let search_attributes =
                    attributes_to_proto(changes.iter().map(|(name, value)| (name.clone(), value.clone())));
                Variant::UpsertWorkflowSearchAttributes(commands::UpsertWorkflowSearchAttributes { search_attributes })
            }
            CommandKind::Memo(changes) => Variant::ModifyWorkflowProperties(commands::ModifyWorkflowProperties {
                upserted_memo: Some(common::Memo { fields: memo_changes(changes) }),
            }),
            CommandKind::AcceptUpdate { update } => {
                self.update_response(update, commands::update_response::Response::Accepted(()))
            }
            CommandKind::CompleteUpdate(c) => self.update_outcome(c),
            CommandKind::Complete { result } => {
                Variant::CompleteWorkflowExecution(commands::CompleteWorkflowExecution {
                    result: Some(payload_to_proto(result)),
                })
            }
            CommandKind::Fail { failure } => Variant::FailWorkflowExecution(commands::FailWorkflowExecution {
                failure: Some(failure_to_proto(failure)),
            }),
            CommandKind::CancelRun { failure } => Variant::CancelWorkflowExecution(cancelled(failure)),
            CommandKind::ContinueAsNew(c) => Variant::ContinueAsNewWorkflowExecution(self.continue_as_new(c)),
            other => return Err(format!("a Temporal cluster has nothing like the command {:?}", other.word())),
        })
    }

    fn activity(&self, c: &ScheduleActivity) -> Variant {
        let timeouts = &c.timeouts;
        let fallback = timeouts.schedule_to_close.is_none().then_some(self.start_to_close);
        Variant::ScheduleActivity(commands::ScheduleActivity {
            seq: to_temporal(c.seq),
            activity_id: c.id.to_string(),
            activity_type: c.activity.to_string(),
            task_queue: self.queue_or_own(c.queue.as_ref()),
            headers: headers_to_proto(&c.headers),
            arguments: payloads_list(&c.input),
            schedule_to_close_timeout: timeouts.schedule_to_close.map(duration_to_proto),
            schedule_to_start_timeout: timeouts.schedule_to_start.map(duration_to_proto),
            start_to_close_timeout: timeouts.start_to_close.or(fallback).map(duration_to_proto),
            heartbeat_timeout: timeouts.heartbeat.map(duration_to_proto),
            retry_policy: c.retry.as_ref().map(retry_to_proto),
            cancellation_type: task_cancel_to_proto(c.cancel) as i32,
            priority: priority_to_proto(&c.priority),
            ..commands::ScheduleActivity::default()
        })
    }

    fn local_activity(&self, c: &ScheduleLocalActivity) -> Variant {
        let timeouts = &c.timeouts;
        let fallback = timeouts.schedule_to_close.is_none().then_some(self.start_to_close);
        Variant::ScheduleLocalActivity(commands::ScheduleLocalActivity {
            seq: to_temporal(c.seq),
            activity_id: c.id.to_string(),
            activity_type: c.activity.to_string(),
            attempt: c.attempt,
            original_schedule_time: c.first_scheduled.map(time_to_proto),
            headers: headers_to_proto(&c.headers),
            arguments: payloads_list(&c.input),
            schedule_to_close_timeout: timeouts.schedule_to_close.map(duration_to_proto),
            schedule_to_start_timeout: timeouts.schedule_to_start.map(duration_to_proto),
            start_to_close_timeout: timeouts.start_to_close.or(fallback).map(duration_to_proto),
            retry_policy: c.retry.as_ref().map(retry_to_proto),
            local_retry_threshold: c.local_retry_threshold.map(duration_to_proto),
            cancellation_type: task_cancel_to_proto(c.cancel) as i32,
            ..commands::ScheduleLocalActivity::default()
        })
    }

    fn child(&self, c: &StartChild) -> Variant {
        Variant::StartChildWorkflowExecution(commands::StartChildWorkflowExecution {
            seq: to_temporal(c.seq),
            namespace: c.namespace.as_deref().unwrap_or(self.namespace).to_owned(),
            workflow_id: c.workflow_id.to_string(),
            workflow_type: c.workflow.to_string(),
            task_queue: self.queue_or_own(c.queue.as_ref()),
            input: payloads_list(&c.input),
            workflow_execution_timeout: c.execution_timeout.map(duration_to_proto),
            workflow_run_timeout: c.run_timeout.map(duration_to_proto),
            workflow_task_timeout: c.task_timeout.map(duration_to_proto),
            parent_close_policy: parent_close_to_proto(c.parent_close) as i32,
            workflow_id_reuse_policy: id_reuse_to_proto(c.id_reuse) as i32,
            retry_policy: c.retry.as_ref().map(retry_to_proto),
            cron_schedule: c.cron.as_ref().map(Name::to_string).unwrap_or_default(),
            headers: headers_to_proto(&c.headers),
            memo: map_to_proto(&c.memo),
            search_attributes: attributes_to_proto(
                c.search_attributes.iter().map(|(name, value)| (name.clone(), Some(value.clone()))),
            ),
            cancellation_type: child_cancel_to_proto(c.cancel) as i32,
            priority: priority_to_proto(&c.priority),
            ..commands::StartChildWorkflowExecution::default()
        })
    }

    fn signal(&self, c: &SignalExternal) -> Variant {
        use commands::signal_external_workflow_execution::Target as To;
        let target = match &c.target {
            Target::Child { workflow_id } => To::ChildWorkflowId(workflow_id.to_string()),
            other => To::WorkflowExecution(self.execution(other)),
        };
        Variant::SignalExternalWorkflowExecution(commands::SignalExternalWorkflowExecution {
            seq: to_temporal(c.seq),
            signal_name: c.signal.to_string(),
            args: payloads_list(&c.input),
            headers: headers_to_proto(&c.headers),
            target: Some(target),
        })
    }

    fn cancel_external(&self, c: &CancelExternal) -> Variant {
        Variant::RequestCancelExternalWorkflowExecution(commands::RequestCancelExternalWorkflowExecution {
            seq: to_temporal(c.seq),
            workflow_execution: Some(self.execution(&c.target)),
            reason: c.reason.clone(),
        })
    }

    fn execution(&self, target: &Target) -> sdk_common::NamespacedWorkflowExecution {
        let (namespace, workflow_id, run_id) = match target {
            Target::Workflow { namespace, workflow_id, run_id } => (namespace.as_ref(), workflow_id, run_id.as_ref()),
            Target::Child { workflow_id } => (None, workflow_id, None),
        };
        sdk_common::NamespacedWorkflowExecution {
            namespace: namespace.map_or(self.namespace, Name::as_str).to_owned(),
            workflow_id: workflow_id.to_string(),
            run_id: run_id.map(Name::to_string).unwrap_or_default(),
        }
    }

    fn continue_as_new(&self, c: &ContinueAsNew) -> commands::ContinueAsNewWorkflowExecution {
        commands::ContinueAsNewWorkflowExecution {
            workflow_type: c.workflow.to_string(),
            task_queue: self.queue_or_own(c.queue.as_ref()),
            arguments: payloads_list(&c.input),
            workflow_run_timeout: c.run_timeout.map(duration_to_proto),
            workflow_task_timeout: c.task_timeout.map(duration_to_proto),
            memo: c.memo.as_ref().map(map_to_proto).unwrap_or_default(),
            headers: headers_to_proto(&c.headers),
            search_attributes: c.search_attributes.as_ref().and_then(|set| {
                attributes_to_proto(set.iter().map(|(name, value)| (name.clone(), Some(value.clone()))))
            }),
            retry_policy: c.retry.as_ref().map(retry_to_proto),
            backoff_start_interval: c.start_delay.map(duration_to_proto),
            ..commands::ContinueAsNewWorkflowExecution::default()
        }
    }

    fn queue_or_own(&self, queue: Option<&Name>) -> String {
        queue.map_or(self.queue, Name::as_str).to_owned()
    }

    fn update_outcome(&self, c: &CompleteUpdate) -> Variant {
        use commands::update_response::Response;
        self.update_response(
            &c.update,
            match &c.outcome {
                Outcome::Completed(result) => Response::Completed(payload_to_proto(result)),
                Outcome::Failed(failure) => Response::Rejected(failure_to_proto(failure)),
            },
        )
    }

    /// Rejects an update that was not accepted.
    pub(crate) fn refused_update(&self, update: &Name, failure: &Failure) -> WorkflowCommand {
        self.update_response(update, commands::update_response::Response::Rejected(rejection_to_proto(failure))).into()
    }

    fn update_response(&self, update: &Name, response: commands::update_response::Response) -> Variant {
        let protocol_instance_id = self.updates.get(update).cloned().unwrap_or_else(|| update.to_string());
        Variant::UpdateResponse(commands::UpdateResponse { protocol_instance_id, response: Some(response) })
    }
}

/// # Errors
/// A header of a program has a reserved name.
pub(super) fn check_headers(command: &Command) -> Result<(), String> {
    let Some(name) = reserved_header(&command.kind) else { return Ok(()) };
    let site = &command.site;
    Err(format!(
        "header {name:?} cannot be sent (at {site}): names that begin with {PREFIX:?} are reserved. Choose another name"
    ))
}

fn reserved_header(command: &CommandKind) -> Option<&Name> {
    let headers = match command {
        CommandKind::Activity(c) => &c.headers,
        CommandKind::LocalActivity(c) => &c.headers,
        CommandKind::Child(c) => &c.headers,
        CommandKind::SignalExternal(c) => &c.headers,
        CommandKind::ContinueAsNew(c) => &c.headers,
        _ => return None,
    };
    headers.keys().find(|name| name.starts_with(PREFIX))
}

/// An attempt of a side effect: a local activity that the server never tries again by itself. Timeouts and further attempts are
/// this backend's: see `side_effects.rs`.
pub(crate) fn side_effect_attempt(name: &Name, activity_id: String, number: u32) -> Variant {
    Variant::ScheduleLocalActivity(commands::ScheduleLocalActivity {
        seq: number,
        activity_id,
        activity_type: format!("{SIDE_EFFECT}{name}"),
        attempt: 1,
        start_to_close_timeout: Some(duration_to_proto(UNLIMITED)),
        retry_policy: Some(common::RetryPolicy { maximum_attempts: 1, ..common::RetryPolicy::default() }),
        cancellation_type: commands::ActivityCancellationType::TryCancel as i32,
        ..commands::ScheduleLocalActivity::default()
    })
}

pub(crate) fn start_timer(number: u32, duration: Duration) -> Variant {
    Variant::StartTimer(commands::StartTimer {
        seq: number,
        start_to_fire_timeout: Some(duration_to_proto(duration.max(SHORTEST_TIMER))),
    })
}

fn nexus(c: &CallNexus) -> Variant {
    Variant::ScheduleNexusOperation(commands::ScheduleNexusOperation {
        seq: to_temporal(c.seq),
        endpoint: c.endpoint.to_string(),
        service: c.service.to_string(),
        operation: c.operation.to_string(),
        input: Some(payload_to_proto(&c.input)),
        schedule_to_close_timeout: c.schedule_to_close.map(duration_to_proto),
        schedule_to_start_timeout: c.schedule_to_start.map(duration_to_proto),
        start_to_close_timeout: c.start_to_close.map(duration_to_proto),
        nexus_header: c.headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        cancellation_type: nexus_cancel_to_proto(c.cancel) as i32,
    })
}

/// None for operations that the server knows nothing of.
fn cancel(c: &CancelOperation) -> Option<Variant> {
    let seq = to_temporal(c.seq);
    Some(match c.operation {
        Operation::Activity => Variant::RequestCancelActivity(commands::RequestCancelActivity { seq }),
        Operation::LocalActivity | Operation::SideEffect => {
            Variant::RequestCancelLocalActivity(commands::RequestCancelLocalActivity { seq })
        }
        Operation::Timer => Variant::CancelTimer(commands::CancelTimer { seq }),
        Operation::Child => Variant::CancelChildWorkflowExecution(commands::CancelChildWorkflowExecution {
            child_workflow_seq: seq,
            reason: c.reason.clone(),
        }),
        Operation::SignalExternal => Variant::CancelSignalWorkflow(commands::CancelSignalWorkflow { seq }),
        Operation::Nexus => Variant::RequestCancelNexusOperation(commands::RequestCancelNexusOperation { seq }),
        _ => return None,
    })
}

/// The server knows a cancelled run by details alone: the failure's text is the only one of them.
fn cancelled(failure: &Failure) -> commands::CancelWorkflowExecution {
    let reason = failure.chain().find(|link| link.kind == dacapo_core::FailureKind::Cancelled).unwrap_or(failure);
    let details = Payload::json(serde_json::Value::from(reason.message.as_str()).to_string());
    commands::CancelWorkflowExecution { details: Some(common::Payloads { payloads: vec![payload_to_proto(&details)] }) }
}

/// A payload without a value removes an entry.
fn memo_changes(changes: &BTreeMap<Name, Option<Payload>>) -> std::collections::HashMap<String, common::Payload> {
    let headers: Headers =
        changes.iter().map(|(name, value)| (name.clone(), value.clone().unwrap_or_default())).collect();
    headers_to_proto(&headers)
}

/// The summary of an operation, and the place in the code that asked for it, as Temporal's tools show them.
fn metadata(summary: Option<&str>, site: &CallSite) -> sdk::UserMetadata {
    let text = |text: &str| payload_to_proto(&Payload::json(serde_json::Value::from(text).to_string()));
    sdk::UserMetadata {
        summary: summary.map(|summary| text(shortened(summary))),
        details: (site.line > 0).then(|| text(&format!("at {site}"))),
    }
}

/// Returns as much of a summary as the server keeps of it as JSON.
fn shortened(summary: &str) -> &str {
    // Two bytes are for the quotation marks.
    let mut room = LONGEST_SUMMARY - 2;
    let end = summary.char_indices().find(|(_, char)| match room.checked_sub(bytes_in_json(*char)) {
        Some(left) => {
            room = left;
            false
        }
        None => true,
    });
    end.map_or(summary, |(end, _)| &summary[..end])
}

/// How many bytes a character has in a JSON text as it is written here.
fn bytes_in_json(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_cut_so_that_the_server_keeps_it_as_json() {
        assert_eq!(shortened("pack the lamps"), "pack the lamps");
        for text in ["x", "\"", "\\", "\n", "\u{1}", "é", "a\"\u{7f}🦀"] {
            let long = text.repeat(500);
            let cut = serde_json::Value::from(shortened(&long)).to_string().len();
            assert!((LONGEST_SUMMARY - 8..=LONGEST_SUMMARY).contains(&cut), "{text:?} is cut to {cut} bytes");
        }
    }

    #[test]
    fn reserved_header_of_the_next_run_is_refused() {
        let headers = Headers::from([("dacapo:pins".into(), Payload::empty())]);
        let next = CommandKind::ContinueAsNew(Box::new(ContinueAsNew { headers, ..ContinueAsNew::default() }));
        let command = Command { kind: next, unit: dacapo_core::UnitId::root(), site: CallSite::default() };
        assert!(check_headers(&command).unwrap_err().contains("\"dacapo:pins\" cannot be sent"));
    }
}
