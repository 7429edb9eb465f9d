//! Double play: two instances of a run that get the same activations must give the same completions.

use crate::identity::{Difference, compare};
use crate::meaning::Meaning;
use crate::{ActivationError, Command, Completion, TurnDone};

/// Returns whether a play was interrupted or abandoned.
pub(super) fn is_stopped(completion: &Completion) -> bool {
    let Completion::Failed(error) = completion else { return false };
    matches!(**error, ActivationError::Interrupted { .. } | ActivationError::Abandoned)
}

/// Compares the completions of both plays. Returns the first if they are the same.
pub(super) fn compare_plays(first: Completion, second: Completion, redact: bool) -> Completion {
    if first == second || has_same_meaning(&first, &second) {
        return first;
    }
    if is_stopped(&second) {
        return second;
    }
    let difference = match (&first, &second) {
        (Completion::Turn(a), Completion::Turn(b)) if a.commands != b.commands => {
            difference(&a.commands, &b.commands, redact)
        }
        // If both plays failed, the activation failed for a reason other than a difference between them.
        (Completion::Failed(_), Completion::Failed(_)) => return first,
        (Completion::Failed(error), _) | (_, Completion::Failed(error)) if redact => {
            format!("only one play failed: {}", error.as_ref().clone().redacted())
        }
        (Completion::Failed(error), _) | (_, Completion::Failed(error)) => format!("only one play failed: {error}"),
        _ if redact => "what they answered".to_owned(),
        _ => format!("{first:?} against {second:?}"),
    };
    Completion::Failed(Box::new(ActivationError::DoublePlay { difference }))
}

/// Returns whether two turns differ in bytes of payloads alone that mean the same, as those of a cipher do.
fn has_same_meaning(first: &Completion, second: &Completion) -> bool {
    let (Completion::Turn(one), Completion::Turn(other)) = (first, second) else { return false };
    let same = |(one, other): (&Command, &Command)| {
        (&one.unit, &one.site) == (&other.unit, &other.site) && compare(&one.kind, &other.kind).is_empty()
    };
    let rest = TurnDone { commands: one.commands.clone(), published: one.published.clone(), ..other.clone() };
    one.commands.len() == other.commands.len()
        && one.commands.iter().zip(&other.commands).all(same)
        && one.published.has_meaning_of(&other.published)
        && *one == rest
}

/// Returns the fields in which two commands of one kind differ.
fn fields(first: &Command, second: &Command) -> String {
    let line =
        |difference: &Difference| format!("\n{}: {} and {}", difference.field(), difference.recorded, difference.new);
    compare(&first.kind, &second.kind).iter().map(line).collect()
}

fn difference(first: &[Command], second: &[Command], redact: bool) -> String {
    let position = first.iter().zip(second).position(|(a, b)| a != b).unwrap_or(first.len().min(second.len()));
    let show = |command: Option<&Command>| match command {
        Some(command) if redact => format!("{} in {} (at {})", command.kind.word(), command.unit.named(), command.site),
        Some(command) => format!("{} in {} (at {})", command.kind, command.unit.named(), command.site),
        None => "nothing".to_owned(),
    };
    let fields = match (first.get(position), second.get(position)) {
        (Some(a), Some(b)) if !redact => fields(a, b),
        _ => String::new(),
    };
    format!(
        "command {position} is {} in one and {} in the other{fields}",
        show(first.get(position)),
        show(second.get(position))
    )
}
