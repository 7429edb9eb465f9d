//! Validation of a turn before it is stored: sizes, names, and numbers out of range. A turn that fails is not
//! committed: the run stays as it was recorded, is stuck with the reason, and goes on once its code is changed.

use std::collections::BTreeMap;
use std::time::Duration;

use dacapo_client::grouped;
use dacapo_core::{
    AttributeValue, Command, CommandKind, Failure, Headers, Name, Outcome, Payload, Retry, Target, Timeouts, TurnRecord,
};
use dacapo_store::StuckCause;

use crate::names::check_name;
use crate::report::stuck_reason::StuckReason;

/// Returns why this turn cannot be stored, if it cannot. `published` is the snapshot that it published.
pub(crate) fn validate(
    record: &TurnRecord,
    published: Option<&Payload>,
    limit: usize,
    redact: bool,
) -> Option<StuckReason> {
    if let Some(size) = published.map(Payload::inline_size).filter(|size| *size > limit) {
        let text = too_large("the published value", size, limit);
        return Some(StuckReason::new(StuckCause::Limit, "the published value", text));
    }
    record.commands.iter().find_map(|command| {
        let problem = oversized(&command.kind, limit).or_else(|| out_of_range(&command.kind))?;
        let Command { kind, site, unit, .. } = command;
        // A command may show its payload, and that may be what is too large.
        let shown = if redact { kind.word().to_owned() } else { kind.to_string() };
        let shown: String = shown.chars().take(100).collect();
        let shown = shown.trim_end();
        let text = format!("{shown}, asked for by {} at {site}: {problem}", unit.named());
        Some(StuckReason::new(StuckCause::Limit, site.to_string(), text))
    })
}

fn oversized(command: &CommandKind, limit: usize) -> Option<String> {
    let headers = headers_of(command).map(|headers| ("the header section", headers_size(headers)));
    let payload = largest(command).map(|size| ("a payload", size));
    let (what, size) = [payload, headers].into_iter().flatten().find(|(_, size)| *size > limit)?;
    Some(too_large(what, size, limit))
}

fn too_large(what: &str, size: usize, limit: usize) -> String {
    format!(
        "{what} is {} bytes long, at most {} are allowed: store large data elsewhere and pass a reference, or raise \
         `payload_limit`",
        grouped(size),
        grouped(limit)
    )
}

/// The size of the largest part of a failure or of its causes: a message, or a value among the details.
pub(crate) fn failure_size(failure: &Failure) -> usize {
    let parts = failure.chain().flat_map(|failure| {
        let details = failure.details.iter().map(|payload| payload.inline_size());
        details.chain([failure.message.len()])
    });
    parts.max().unwrap_or(0)
}

/// The size of all headers of a call together, with their names.
pub(crate) fn headers_size(headers: &Headers) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.inline_size()).sum()
}

/// Replaces a failure that is too large to be stored by one that says so.
pub(crate) fn failure_within_limit(failure: Failure, limit: usize) -> Failure {
    let size = failure_size(&failure);
    if size <= limit {
        return failure;
    }
    let begins: String = failure.message.chars().take(limit.min(100)).collect();
    let message = format!(
        "{begins} (a part of this failure was {} bytes long, at most {} are allowed)",
        grouped(size),
        grouped(limit)
    );
    let mut shorter = Failure::new(failure.kind, message).typed("PayloadTooLarge");
    shorter.non_retryable = failure.non_retryable;
    shorter
}

/// Replaces the result of an attempt by a failure if it is too large.
pub(crate) fn within_limit(result: Result<Payload, Failure>, limit: usize) -> Result<Payload, Failure> {
    let size = match &result {
        Ok(payload) => payload.inline_size(),
        Err(_) => return result.map_err(|failure| failure_within_limit(failure, limit)),
    };
    if size <= limit {
        return result;
    }
    let message = format!(
        "the result is {} bytes long, at most {} are allowed: store it elsewhere and return a reference",
        grouped(size),
        grouped(limit)
    );
    Err(Failure::application(message).typed("PayloadTooLarge").non_retryable())
}

/// The size of the largest payload of a command.
fn largest(command: &CommandKind) -> Option<usize> {
    let of = |payloads: &[Payload]| payloads.iter().map(|payload| payload.inline_size()).max();
    match command {
        CommandKind::Activity(c) => of(&c.input),
        CommandKind::LocalActivity(c) => of(&c.input),
        CommandKind::Child(c) => of(&c.input),
        CommandKind::SignalExternal(c) => of(&c.input),
        CommandKind::ContinueAsNew(c) => of(&c.input),
        CommandKind::Complete { result } => Some(result.inline_size()),
        CommandKind::State(c) => c.value.as_ref().map(|value| value.inline_size()),
        CommandKind::Memo(changes) => changes.values().flatten().map(Payload::inline_size).max(),
        CommandKind::CompleteUpdate(c) => match &c.outcome {
            Outcome::Completed(payload) => Some(payload.inline_size()),
            Outcome::Failed(failure) => Some(failure_size(failure)),
        },
        CommandKind::Fail { failure } | CommandKind::CancelRun { failure } => Some(failure_size(failure)),
        _ => None,
    }
}

/// The headers of a command that has some.
fn headers_of(command: &CommandKind) -> Option<&Headers> {
    match command {
        CommandKind::Activity(c) => Some(&c.headers),
        CommandKind::LocalActivity(c) => Some(&c.headers),
        CommandKind::Child(c) => Some(&c.headers),
        CommandKind::SignalExternal(c) => Some(&c.headers),
        CommandKind::ContinueAsNew(c) => Some(&c.headers),
        _ => None,
    }
}

fn out_of_range(command: &CommandKind) -> Option<String> {
    let header = headers_of(command).and_then(|headers| headers.keys().find_map(|key| name("header name", key)));
    header.or_else(|| fields_out_of_range(command))
}

fn fields_out_of_range(command: &CommandKind) -> Option<String> {
    match command {
        CommandKind::Activity(c) => name("activity type", &c.activity)
            .or_else(|| queue(c.queue.as_ref()))
            .or_else(|| check_retry(c.retry.as_ref()))
            .or_else(|| timeouts(&c.timeouts)),
        CommandKind::LocalActivity(c) => name("activity type", &c.activity)
            .or_else(|| check_retry(c.retry.as_ref()))
            .or_else(|| timeouts(&c.timeouts)),
        CommandKind::SideEffect(c) => name("name of a side effect", &c.name)
            .or_else(|| check_retry(c.retry.as_ref()))
            .or_else(|| timeouts(&c.timeouts)),
        CommandKind::Child(c) => name("workflow type", &c.workflow)
            .or_else(|| name("workflow id", &c.workflow_id))
            .or_else(|| queue(c.queue.as_ref()))
            .or_else(|| check_retry(c.retry.as_ref()))
            .or_else(|| zero("execution timeout", c.execution_timeout))
            .or_else(|| zero("run timeout", c.run_timeout))
            .or_else(|| attributes(&c.search_attributes)),
        CommandKind::SignalExternal(c) => name("signal name", &c.signal).or_else(|| target(&c.target)),
        CommandKind::CancelExternal(c) => target(&c.target),
        CommandKind::Promise(c) => name("promise name", &c.name),
        CommandKind::Patch(c) => name("patch name", &c.id),
        CommandKind::State(c) => name("key", &c.key),
        CommandKind::Memo(changes) => changes.keys().find_map(|key| name("name of a memo entry", key)),
        CommandKind::SearchAttributes(changes) => {
            changes.keys().find_map(|key| name("name of a search attribute", key))
        }
        CommandKind::ContinueAsNew(c) => queue(c.queue.as_ref())
            .or_else(|| check_retry(c.retry.as_ref()))
            .or_else(|| zero("run timeout", c.run_timeout))
            .or_else(|| attributes(c.search_attributes.as_ref()?)),
        _ => None,
    }
}

fn name(what: &str, name: &Name) -> Option<String> {
    check_name(what, name).err().map(|error| error.to_string())
}

fn attributes(attributes: &BTreeMap<Name, AttributeValue>) -> Option<String> {
    let named = attributes.keys().find_map(|key| name("name of a search attribute", key));
    let bad = || attributes.iter().find_map(|(name, value)| value.check(name).err());
    named.or_else(|| bad().map(|bad| bad.to_string()))
}

fn queue(queue: Option<&Name>) -> Option<String> {
    queue.and_then(|queue| name("queue name", queue))
}

fn target(target: &Target) -> Option<String> {
    match target {
        Target::Workflow { workflow_id, .. } | Target::Child { workflow_id } => name("workflow id", workflow_id),
    }
}

pub(crate) fn check_retry(retry: Option<&Retry>) -> Option<String> {
    let factor = retry?.factor;
    let odd = !factor.is_finite() || factor < 1.0;
    odd.then(|| format!("retry factor is {factor}, and pauses cannot become shorter: set 1 or more"))
}

fn timeouts(timeouts: &Timeouts) -> Option<String> {
    zero("schedule-to-close timeout", timeouts.schedule_to_close)
        .or_else(|| zero("schedule-to-start timeout", timeouts.schedule_to_start))
        .or_else(|| zero("start-to-close timeout", timeouts.start_to_close))
        .or_else(|| zero("heartbeat timeout", timeouts.heartbeat))
}

fn zero(what: &str, timeout: Option<Duration>) -> Option<String> {
    timeout
        .filter(Duration::is_zero)
        .map(|_| format!("{what} is zero, which is over before anything begins: set a longer one, or none"))
}
