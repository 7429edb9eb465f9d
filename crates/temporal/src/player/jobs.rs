//! From Temporal's activations to ours: jobs become jobs, queries and evictions activations of their own.

use dacapo_core::{
    Continued, Failure, Job, Lineage, Name, Outcome, Pins, Query, RelatedRun, Resolution, Signal, Start, StartOutcome,
    Terms, Update, from_stored,
};

use crate::convert::{
    attributes_from_proto, duration_from_proto, failure_from_proto, headers_from_proto, map_from_proto,
    payload_from_proto, payloads_from_proto, priority_from_proto, retry_from_proto, time_from_proto,
};
use crate::flags::pins_of;
use crate::numbers::from_temporal;
use crate::proto::activation::workflow_activation_job::Variant;
use crate::proto::activation::{self, InitializeWorkflow, QueryWorkflow, RemoveFromCache};
use crate::proto::{activity, child, common, enums, nexus, sdk_common};
use crate::reserved::{LEFT_SIGNALS, PINS, PREFIX};

/// The purpose of an activation.
pub(crate) enum Work {
    /// A turn, whose jobs are still Temporal's.
    Turn(Vec<Variant>),
    /// Queries, which come alone.
    Queries(Vec<Query>),
    /// The run leaves the cache.
    Evict(RemoveFromCache),
}

/// Sorts the jobs of an activation.
///
/// # Errors
/// Queries that do not come alone: core promises that they do, and takes no answer to them beside commands.
pub(crate) fn work(jobs: Vec<activation::WorkflowActivationJob>) -> Result<Work, String> {
    let mut turn = Vec::new();
    let mut queries = Vec::new();
    for variant in jobs.into_iter().filter_map(|job| job.variant) {
        match variant {
            Variant::RemoveFromCache(reason) => return Ok(Work::Evict(reason)),
            Variant::QueryWorkflow(query) => queries.push(query_of(query)),
            other => turn.push(other),
        }
    }
    match (turn.is_empty(), queries.is_empty()) {
        (true, false) => Ok(Work::Queries(queries)),
        (_, true) => Ok(Work::Turn(turn)),
        (false, false) => Err(format!(
            "{} queries came with {} other jobs; this is a bug of Temporal's core",
            queries.len(),
            turn.len()
        )),
    }
}

fn query_of(query: QueryWorkflow) -> Query {
    Query {
        id: query.query_id.into(),
        name: query.query_type.into(),
        input: query.arguments.into_iter().map(payload_from_proto).collect(),
        headers: headers_from_proto(query.headers),
    }
}

/// The start of a run, and the signals that the run before it left to it.
///
/// # Errors
/// The signals cannot be read: another build has written them.
pub(crate) fn start(init: InitializeWorkflow, run_id: &Name, queue: &Name) -> Result<(Start, Vec<Signal>), String> {
    let mut headers = headers_from_proto(init.headers.clone());
    let left = headers.remove(LEFT_SIGNALS).map_or(Ok(Vec::new()), |payload| {
        let bytes = payload.bytes().map_err(|error| error.to_string())?;
        from_stored(bytes).map_err(|error| format!("the signals that the run before left cannot be read: {error}"))
    })?;
    headers.retain(|name, _| !name.starts_with(PREFIX));
    let start = Start {
        workflow: init.workflow_type.clone().into(),
        workflow_id: init.workflow_id.clone().into(),
        run_id: run_id.clone(),
        input: init.arguments.iter().cloned().map(payload_from_proto).collect(),
        seed: init.randomness_seed,
        queue: queue.clone(),
        started: init.start_time.map(time_from_proto).unwrap_or_default(),
        attempt: u32::try_from(init.attempt).unwrap_or(1).max(1),
        headers,
        memo: init.memo.clone().map(|memo| map_from_proto(memo.fields)).unwrap_or_default(),
        search_attributes: attributes_from_proto(init.search_attributes.clone()),
        identity: init.identity.clone().into(),
        lineage: Some(Box::new(lineage(&init))),
        terms: Some(Box::new(terms(init))),
    };
    Ok((start, left))
}

/// The settings that the start of a run pins, if it does.
pub(crate) fn pinned(init: &InitializeWorkflow) -> Option<Pins> {
    let flags: Vec<u32> = serde_json::from_slice(&init.headers.get(PINS)?.data).ok()?;
    pins_of(&flags)
}

fn lineage(init: &InitializeWorkflow) -> Lineage {
    let because = match init.continued_initiator() {
        enums::ContinueAsNewInitiator::Unspecified => None,
        enums::ContinueAsNewInitiator::Workflow => Some(Continued::Workflow),
        enums::ContinueAsNewInitiator::Retry => Some(Continued::Retry),
        enums::ContinueAsNewInitiator::CronSchedule => Some(Continued::Cron),
    };
    Lineage {
        parent: init.parent_workflow_info.clone().map(related),
        root: init.root_workflow.clone().map(|root| RelatedRun {
            namespace: Name::default(),
            workflow_id: root.workflow_id.into(),
            run_id: root.run_id.into(),
        }),
        continued_from: some(&init.continued_from_execution_run_id),
        continued_because: because,
        last_failure: init.continued_failure.clone().map(|failure| Box::new(failure_from_proto(failure))),
        last_result: payloads_from_proto(init.last_completion_result.clone()),
        first_run_id: init.first_execution_run_id.clone().into(),
        original_run_id: init.original_execution_run_id.clone().into(),
    }
}

fn terms(init: InitializeWorkflow) -> Terms {
    Terms {
        execution_timeout: init.workflow_execution_timeout.map(duration_from_proto),
        run_timeout: init.workflow_run_timeout.map(duration_from_proto),
        task_timeout: init.workflow_task_timeout.map(duration_from_proto),
        expires: init.workflow_execution_expiration_time.map(time_from_proto),
        retry: init.retry_policy.map(retry_from_proto),
        cron: some(&init.cron_schedule),
        cron_interval: init.cron_schedule_to_schedule_interval.map(duration_from_proto),
        priority: priority_from_proto(init.priority),
    }
}

fn related(run: sdk_common::NamespacedWorkflowExecution) -> RelatedRun {
    RelatedRun { namespace: run.namespace.into(), workflow_id: run.workflow_id.into(), run_id: run.run_id.into() }
}

fn some(text: &str) -> Option<Name> {
    (!text.is_empty()).then(|| Name::from(text.to_owned()))
}

/// A job that is the same here as there. None for jobs that the player looks at itself: starts, queries, evictions.
pub(crate) fn job(variant: Variant, is_side_effect: impl FnOnce(u32) -> bool) -> Option<Job> {
    Some(match variant {
        Variant::NotifyHasPatch(patch) => Job::Patch { id: patch.patch_id.into() },
        Variant::UpdateRandomSeed(seed) => Job::Seed { seed: seed.randomness_seed },
        Variant::SignalWorkflow(signal) => Job::Signal(Box::new(Signal {
            name: signal.signal_name.into(),
            input: signal.input.into_iter().map(payload_from_proto).collect(),
            identity: signal.identity.into(),
            headers: headers_from_proto(signal.headers),
        })),
        Variant::DoUpdate(update) => Job::Update(Box::new(Update {
            id: update.id.into(),
            name: update.name.into(),
            input: update.input.into_iter().map(payload_from_proto).collect(),
            headers: headers_from_proto(update.headers),
            identity: update.meta.map(|meta| meta.identity).unwrap_or_default().into(),
            accepted: !update.run_validator,
        })),
        Variant::CancelWorkflow(cancel) => Job::Cancel { reason: cancel.reason },
        Variant::InitializeWorkflow(_) | Variant::QueryWorkflow(_) | Variant::RemoveFromCache(_) => return None,
        resolved => resolution(resolved, is_side_effect)?,
    })
}

fn resolution(variant: Variant, is_side_effect: impl FnOnce(u32) -> bool) -> Option<Job> {
    let (seq, resolution) = match variant {
        Variant::FireTimer(timer) => (timer.seq, Resolution::Timer),
        Variant::ResolveActivity(resolved) => {
            let result = resolved.result?.status?;
            (resolved.seq, activity_resolution(result, is_side_effect(resolved.seq)))
        }
        Variant::ResolveChildWorkflowExecutionStart(started) => {
            (started.seq, Resolution::ChildStarted(child_started(started.status?)))
        }
        Variant::ResolveChildWorkflowExecution(resolved) => {
            (resolved.seq, Resolution::Child(child_outcome(resolved.result?.status?)))
        }
        Variant::ResolveSignalExternalWorkflow(resolved) => {
            (resolved.seq, Resolution::SignalExternal { failure: boxed(resolved.failure) })
        }
        Variant::ResolveRequestCancelExternalWorkflow(resolved) => {
            (resolved.seq, Resolution::CancelExternal { failure: boxed(resolved.failure) })
        }
        Variant::ResolveNexusOperationStart(started) => {
            (started.seq, Resolution::NexusStarted(nexus_started(started.status?)))
        }
        Variant::ResolveNexusOperation(resolved) => {
            (resolved.seq, Resolution::Nexus(nexus_outcome(resolved.result?.status?)))
        }
        _ => return None,
    };
    Some(Job::resolve(from_temporal(seq), resolution))
}

fn boxed(failure: Option<crate::proto::failure::Failure>) -> Option<Box<Failure>> {
    failure.map(|failure| Box::new(failure_from_proto(failure)))
}

fn completed(result: Option<common::Payload>) -> Outcome {
    Outcome::Completed(result.map(payload_from_proto).unwrap_or_default())
}

fn failed(failure: Option<crate::proto::failure::Failure>) -> Outcome {
    Outcome::Failed(Box::new(failure_from_proto(failure.unwrap_or_default())))
}

fn activity_resolution(status: activity::activity_resolution::Status, is_side_effect: bool) -> Resolution {
    use activity::activity_resolution::Status;
    let outcome = match status {
        Status::Completed(done) => completed(done.result),
        Status::Failed(done) => failed(done.failure),
        Status::Cancelled(done) => failed(done.failure),
        Status::Backoff(backoff) => {
            return Resolution::Backoff {
                attempt: backoff.attempt,
                pause: backoff.backoff_duration.map(duration_from_proto).unwrap_or_default(),
                first_scheduled: backoff.original_schedule_time.map(time_from_proto),
            };
        }
    };
    if is_side_effect { Resolution::SideEffect(outcome) } else { Resolution::Activity(outcome) }
}

fn child_started(status: activation::resolve_child_workflow_execution_start::Status) -> StartOutcome {
    use activation::resolve_child_workflow_execution_start::Status;
    match status {
        Status::Succeeded(started) => StartOutcome::As(started.run_id.into()),
        Status::Cancelled(cancelled) => {
            StartOutcome::Failed(Box::new(failure_from_proto(cancelled.failure.unwrap_or_default())))
        }
        Status::Failed(refused) => {
            use child::StartChildWorkflowExecutionFailedCause as Cause;
            let (why, kind) = match refused.cause() {
                Cause::WorkflowAlreadyExists => ("its workflow id is in use", "AlreadyExists"),
                Cause::NamespaceNotFound => ("there is no such namespace", "NamespaceNotFound"),
                Cause::InvalidVersioningOverride => ("its versioning override is invalid", "InvalidVersioningOverride"),
                Cause::Unspecified => ("the server gave no reason", "StartFailed"),
            };
            let message = format!(
                "child {:?} of workflow id {:?} cannot be started: {why}",
                refused.workflow_type, refused.workflow_id
            );
            StartOutcome::Failed(Box::new(Failure::application(message).typed(kind)))
        }
    }
}

fn child_outcome(status: child::child_workflow_result::Status) -> Outcome {
    use child::child_workflow_result::Status;
    match status {
        Status::Completed(done) => completed(done.result),
        Status::Failed(done) => failed(done.failure),
        Status::Cancelled(done) => failed(done.failure),
    }
}

fn nexus_started(status: activation::resolve_nexus_operation_start::Status) -> StartOutcome {
    use activation::resolve_nexus_operation_start::Status;
    match status {
        Status::OperationToken(token) => StartOutcome::As(token.into()),
        Status::StartedSync(_) => StartOutcome::As(Name::default()),
        Status::Failed(failure) => StartOutcome::Failed(Box::new(failure_from_proto(failure))),
    }
}

fn nexus_outcome(status: nexus::nexus_operation_result::Status) -> Outcome {
    use nexus::nexus_operation_result::Status;
    match status {
        Status::Completed(result) => completed(Some(result)),
        Status::Failed(failure) | Status::Cancelled(failure) | Status::TimedOut(failure) => failed(Some(failure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_among_other_jobs_are_refused_and_not_dropped() {
        let job = |variant| activation::WorkflowActivationJob { variant: Some(variant) };
        let query = || job(Variant::QueryWorkflow(QueryWorkflow::default()));
        let timer = || job(Variant::FireTimer(activation::FireTimer::default()));
        assert!(matches!(work(vec![query(), query()]), Ok(Work::Queries(queries)) if queries.len() == 2));
        assert!(matches!(work(vec![timer()]), Ok(Work::Turn(jobs)) if jobs.len() == 1));
        assert!(work(vec![timer(), query()]).is_err_and(|why| why.contains("1 queries came with 1 other jobs")));
    }
}
