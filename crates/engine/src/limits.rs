//! Limits on what is stored.

use dacapo_core::{CommandKind, Failure, Outcome, Payload, TurnRecord};

/// Why this turn cannot be stored: a payload of it is too large.
pub(crate) fn oversized(record: &TurnRecord, limit: usize) -> Option<String> {
    record.commands.iter().find_map(|command| {
        let size = largest(&command.kind)?;
        (size > limit).then(|| {
            format!(
                "{} at {} has a payload of {size} bytes, and the limit is {limit}: store large data elsewhere and pass a \
                 reference, or raise the payload limit",
                command.kind, command.site
            )
        })
    })
}

/// The result of an attempt, which fails if it is too large.
pub(crate) fn fitting(result: Result<Payload, Failure>, limit: usize) -> Result<Payload, Failure> {
    let size = result.as_ref().map_or(0, |payload| payload.data.len());
    if size <= limit {
        return result;
    }
    let message = format!(
        "the result has {size} bytes, and the limit is {limit}: store large data elsewhere and return a reference"
    );
    Err(Failure::application(message).typed("PayloadTooLarge").not_retryable())
}

/// The size of the largest payload of a command.
fn largest(command: &CommandKind) -> Option<usize> {
    let of = |payloads: &[Payload]| payloads.iter().map(|payload| payload.data.len()).max();
    match command {
        CommandKind::Activity(c) => of(&c.input),
        CommandKind::LocalActivity(c) => of(&c.input),
        CommandKind::Child(c) => of(&c.input),
        CommandKind::SignalExternal(c) => of(&c.input),
        CommandKind::ContinueAsNew(c) => of(&c.input),
        CommandKind::Complete { result } => Some(result.data.len()),
        CommandKind::State(c) => c.value.as_ref().map(|value| value.data.len()),
        CommandKind::Memo(changes) | CommandKind::SearchAttributes(changes) => {
            changes.values().flatten().map(|value| value.data.len()).max()
        }
        CommandKind::CompleteUpdate(c) => match &c.outcome {
            Outcome::Completed(payload) => Some(payload.data.len()),
            Outcome::Failed(_) => None,
        },
        _ => None,
    }
}
