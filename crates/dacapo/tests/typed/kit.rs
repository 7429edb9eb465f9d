//! Plays a typed workflow by a script, in every mode.

use dacapo::core::{CommandKind, Completion};
use dacapo::{WorkflowFn, WorkflowType};
use dacapo_testkit::{Expect, Mode, Player, check_workflow};

/// Checks what the script prints.
#[track_caller]
pub(crate) fn check<P, F: WorkflowFn<P>>(_: F, script: &str, expected: Expect) {
    let definition = F::Workflow::definition();
    check_workflow(&definition.workflow, definition.pins, script, expected);
}

/// As [`check`], without the lines and columns of call sites: for scripts in which an activation fails.
#[track_caller]
pub(crate) fn check_refused<P, F: WorkflowFn<P>>(_: F, script: &str, expected: Expect) {
    let play = |mode| {
        let definition = F::Workflow::definition();
        let mut play = Player::new(definition.workflow, definition.pins, mode);
        play.play(script);
        without_lines(&play.printed)
    };
    let whole = play(Mode::Whole);
    for mode in [Mode::Evicted, Mode::Double] {
        assert_eq!(whole, play(mode), "the script played whole, and {mode:?}");
    }
    expected.assert_eq(&whole);
}

/// Records the script with one workflow and replays the record with another.
#[track_caller]
pub(crate) fn check_replay<P, F, Q, G>(recorded: F, script: &str, _: G, expected: Expect)
where
    F: WorkflowFn<P>,
    G: WorkflowFn<Q>,
{
    let _ = recorded;
    let (old, new) = (F::Workflow::definition(), G::Workflow::definition());
    let transcript = Player::new(old.workflow, old.pins, Mode::Whole).play(script).transcript.clone();
    let mut play = Player::new(new.workflow, new.pins, Mode::Whole);
    for record in transcript.turns {
        if let Completion::Failed(_) = play.activate(record.into_turn()) {
            break;
        }
    }
    expected.assert_eq(&without_lines(&play.printed));
}

/// `kit.rs:12:34` as `kit.rs`.
fn without_lines(text: &str) -> String {
    let mut parts = text.split(".rs:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        format!("{text}.rs{rest}")
    })
}

/// All commands that the script makes.
pub(crate) fn commands_of<P, F: WorkflowFn<P>>(_: F, script: &str) -> Vec<CommandKind> {
    let definition = F::Workflow::definition();
    let mut play = Player::new(definition.workflow, definition.pins, Mode::Whole);
    let turns = play.play(script).transcript.turns.clone();
    turns.into_iter().flat_map(|turn| turn.commands).map(|command| command.kind).collect()
}
