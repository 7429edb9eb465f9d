//! Scripts, for tests of the core itself: a script of activations plays a workflow, and all its decisions are compared with
//! the expectation.

use std::future::Future;

use dacapo_core::{Ctx, Failure, Payload, Pins, Transcript, Workflow};
use expect_test::Expect;

use crate::player::{Mode, Player};

/// Makes a workflow named `kit` from a function with one argument.
#[track_caller]
pub fn workflow<F, P>(function: F) -> Workflow
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Result<Payload, Failure>> + Send + 'static,
{
    Workflow::new("kit", move |ctx, input: Vec<Payload>| function(ctx, input.into_iter().next().unwrap_or_default()))
}

/// Plays the script whole, with eviction and replay between all turns, and twice side by side. All must print the same
/// and record the same bytes, the record must survive both its forms, and the output must be the expected one.
///
/// ```
/// use dacapo_core::{Ctx, Failure, Payload};
/// use dacapo_testkit::{check, expect};
///
/// async fn greet(ctx: Ctx, name: Payload) -> Result<Payload, Failure> {
///     ctx.activity("say hello", name).await
/// }
///
/// check(
///     greet,
///     "start = ada
///      resolve say hello = hello ada",
///     expect![[r#"
///         turn 0  [] activity say hello
///         turn 1  [] complete hello ada
///     "#]],
/// );
/// ```
#[track_caller]
pub fn check<F, P>(function: F, script: &str, expected: Expect)
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Result<Payload, Failure>> + Send + 'static,
{
    check_workflow(&workflow(function), Pins::default(), script, expected);
}

/// Runs [`check`] for a workflow with options and for a run with pins.
#[track_caller]
pub fn check_workflow(workflow: &Workflow, pins: Pins, script: &str, expected: Expect) {
    let whole = play(workflow, &pins, Mode::Whole, script);
    for mode in [Mode::Evicted, Mode::Double] {
        let other = play(workflow, &pins, mode, script);
        assert_eq!(whole.printed, other.printed, "the script played whole, and {mode:?}");
        let difference = whole.transcript.diff(&other.transcript).map(|difference| difference.to_string());
        assert_eq!(difference, None, "the script recorded whole, and {mode:?}");
    }
    check_forms(&whole.transcript);
    expected.assert_eq(&whole.printed);
}

/// Records the script with one function and replays the record with another.
#[track_caller]
pub fn check_replay<F, P, G, Q>(recorded: F, script: &str, replayed: G, expected: Expect)
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    G: Fn(Ctx, Payload) -> Q + Send + Sync + 'static,
    Q: Future<Output = Result<Payload, Failure>> + Send + 'static,
{
    let transcript = play(&workflow(recorded), &Pins::default(), Mode::Whole, script).transcript;
    let printed: String = replay_turns(&transcript, &workflow(replayed));
    expected.assert_eq(&printed);
}

fn play(workflow: &Workflow, pins: &Pins, mode: Mode, script: &str) -> Player {
    let mut play = Player::new(workflow.clone(), pins.clone(), mode);
    play.play(script);
    play
}

fn replay_turns(transcript: &Transcript, workflow: &Workflow) -> String {
    let mut play = Player::new(workflow.clone(), transcript.pins.clone(), Mode::Whole);
    for record in &transcript.turns {
        if let dacapo_core::Completion::Failed(_) = play.activate(record.clone().into_turn()) {
            break;
        }
    }
    play.printed
}

/// Checks that both forms of a transcript can be read back as the same transcript.
fn check_forms(transcript: &Transcript) {
    let bytes = transcript.to_bytes();
    assert_eq!(Transcript::from_bytes(&bytes).as_ref(), Ok(transcript), "the compact form");
    let text = transcript.to_text();
    assert_eq!(Transcript::from_text(&text).as_ref(), Ok(transcript), "the form for people:\n{text}");
    for record in &transcript.turns {
        assert_eq!(dacapo_core::TurnRecord::from_bytes(&record.to_bytes()).as_ref(), Ok(record));
    }
}
