//! Completions as text: one line a turn.

use dacapo_core::{Command, CommandKind, Completion, Transcript};

/// Renders a completion as scripts expect it.
pub fn render_completion(completion: &Completion) -> String {
    match completion {
        Completion::Evicted => "evicted\n".to_owned(),
        Completion::Failed(error) => format!("failed: {error}\n"),
        Completion::Query(answers) => answers
            .iter()
            .map(|answer| match &answer.result {
                Ok(payload) => format!("answer {payload}\n"),
                Err(failure) => format!("no answer: {failure}\n"),
            })
            .collect(),
        Completion::Turn(done) => {
            let mut line = match done.number {
                Some(number) => format!("turn {number}"),
                None => "no turn".to_owned(),
            };
            for command in &done.commands {
                line += &format!("  {}", render_command(command));
            }
            line += "\n";
            for rejected in &done.rejected {
                line += &format!("  rejected {}: {}\n", rejected.update, rejected.failure);
            }
            if let Some(published) = &done.published {
                line += &format!("  published {published}\n");
            }
            for warning in &done.warnings {
                line += &format!("  warning: {warning}\n");
            }
            line
        }
    }
}

/// Renders a history: one line a turn, what woke it and what it decided.
pub(crate) fn render_turns(transcript: &Transcript) -> String {
    let mut text = String::new();
    for turn in &transcript.turns {
        let jobs: Vec<String> = turn.jobs.iter().map(ToString::to_string).collect();
        let commands: Vec<String> = turn.commands.iter().map(render_command).collect();
        text += &format!("turn {}  {} -> {}\n", turn.number, jobs.join(", "), commands.join("  "));
    }
    text
}

fn render_command(command: &Command) -> String {
    let Command { unit, kind, .. } = command;
    match kind {
        CommandKind::Fail { failure } => format!("{unit} fail: {failure}"),
        CommandKind::CancelRun { failure } => format!("{unit} cancelled: {failure}"),
        kind => format!("{unit} {kind}").trim_end().to_owned(),
    }
}
