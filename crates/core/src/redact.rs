//! Reports without payloads, for logs that must not hold secrets.

use crate::identity::Difference;
use crate::nondeterminism::{Mismatch, Nondeterminism};
use crate::{ActivationError, Command, CommandKind, Failure, Outcome, Payload};

impl ActivationError {
    /// Replaces payloads and messages of failures in the report by their sizes.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        if let Self::Nondeterminism(report) = &mut self {
            report.redact();
        }
        self
    }
}

impl Nondeterminism {
    fn redact(&mut self) {
        match &mut self.mismatch {
            Mismatch::Missing { recorded: command } | Mismatch::Extra { new: command } => redact_command(command),
            Mismatch::Changed { recorded, new, differences } => {
                redact_command(recorded);
                redact_command(new);
                differences.iter_mut().for_each(Difference::redact);
            }
        }
    }
}

impl Difference {
    /// Replaces the values of a field that holds payloads or failures.
    fn redact(&mut self) {
        if matches!(self.field(), "input" | "result" | "value" | "outcome" | "memo" | "search_attributes" | "failure") {
            (self.recorded, self.new) = (size(self.recorded.len()), size(self.new.len()));
        }
    }
}

/// Replaces what the text of a command shows of payloads.
pub(crate) fn redact_command(command: &mut Command) {
    match &mut command.kind {
        CommandKind::State(state) => state.value.iter_mut().for_each(redact_payload),
        CommandKind::Complete { result } => redact_payload(result),
        CommandKind::CompleteUpdate(update) => match &mut update.outcome {
            Outcome::Completed(result) => redact_payload(result),
            Outcome::Failed(failure) => redact_failure(failure),
        },
        CommandKind::Fail { failure } | CommandKind::CancelRun { failure } => redact_failure(failure),
        _ => {}
    }
}

fn redact_payload(payload: &mut Payload) {
    *payload = Payload::json(size(payload.inline_size()));
}

fn redact_failure(failure: &mut Failure) {
    *failure = Failure::application(size(failure.to_string().len()));
}

fn size(bytes: usize) -> String {
    format!("({bytes} bytes)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallSite, UnitId};

    /// Binary payloads are printed in hexadecimal digits, two for each byte.
    #[test]
    fn redacted_command_shows_the_size_of_its_payload_and_not_of_its_text() {
        let result = Payload::new("binary/encrypted".into(), vec![0xff; 300].into());
        let kind = CommandKind::Complete { result };
        let mut command = Command { kind, unit: UnitId::default(), site: CallSite::default() };
        redact_command(&mut command);
        assert_eq!(command.kind, CommandKind::Complete { result: Payload::json("(300 bytes)") });
    }
}
