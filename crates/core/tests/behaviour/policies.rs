//! Policies at work in the executor: what they decide, what is logged, what replays.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use dacapo_core::{
    Action, Activation, ActivationError, Choice, ChoiceLog, CommandKind, Completion, Ctx, Either, Enabled, Failure,
    Job, Operation, Outcome, OwnPolicy, Payload, Pins, Policy, PolicyError, PolicySpec, Resolution, Run, RunOptions,
    Timestamp, Transcript, Turn, Workflow,
};
use dacapo_testkit::{expect, workflow};
use proptest::prelude::*;

use crate::kit::*;

/// Always the last of what is enabled.
struct Last;

impl Policy for Last {
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        Ok(enabled.len() - 1)
    }
}

/// The first and the last by turns: a policy with a memory.
#[derive(Default)]
struct ByTurns(bool);

impl Policy for ByTurns {
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        self.0 = !self.0;
        Ok(if self.0 { enabled.len() - 1 } else { 0 })
    }

    fn follow(&mut self, _: &Enabled<'_>, _: usize) {
        self.0 = !self.0;
    }
}

fn options(policy: PolicySpec, own: Option<OwnPolicy>) -> RunOptions {
    let pins = Pins { policy, ..Pins::default() };
    RunOptions { pins, own_policy: own, double_play: true, ..RunOptions::default() }
}

fn deterministic() -> RunOptions {
    options(PolicySpec::Deterministic, None)
}

fn random(seed: u64) -> RunOptions {
    options(PolicySpec::Random { seed }, None)
}

fn own<P: Policy + 'static>(make: fn() -> P) -> RunOptions {
    options(PolicySpec::Own { name: "own".into() }, Some(Arc::new(move || Box::new(make()))))
}

/// Plays a run to its end: each turn resolves all that is pending, latest first. With `evicting` the run is built again
/// from its transcript before every turn.
fn play_out(workflow: &Workflow, options: &RunOptions, evicting: bool) -> Result<Transcript, ActivationError> {
    let mut run = Run::new(workflow.clone(), options.clone())?;
    let mut transcript = Transcript::new("kit", options.pins.clone());
    let mut jobs = vec![start_job()];
    loop {
        let turn = Turn::new(Timestamp::default(), jobs);
        match run.activate(Activation::Turn(turn.clone())) {
            Completion::Turn(done) => {
                transcript.record(&turn, &done, &"kit".into());
                if done.closed {
                    return Ok(transcript);
                }
            }
            Completion::Failed(error) => return Err(*error),
            other => panic!("{other:?}"),
        }
        if evicting {
            run = transcript.replay(workflow, options.clone()).unwrap();
        }
        let pending = run.inspect().pending;
        assert!(!pending.is_empty(), "the run waits for nothing");
        let resolution = |operation| match operation {
            Operation::Timer => Resolution::Timer,
            _ => Resolution::Activity(Outcome::Completed(Payload::empty())),
        };
        jobs = pending.iter().rev().map(|op| Job::resolve(op.seq, resolution(op.operation))).collect();
    }
}

/// What a run said by `set_state`, and its result.
fn said(transcript: &Transcript) -> String {
    let commands = transcript.turns.iter().flat_map(|turn| &turn.commands);
    let words = commands.filter_map(|command| match &command.kind {
        CommandKind::State(state) => state.value.as_ref().map(Payload::to_string),
        CommandKind::Complete { result } => Some(format!("= {result}")),
        CommandKind::Fail { failure } => Some(format!("! {failure}")),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn log(transcript: &Transcript) -> ChoiceLog {
    ChoiceLog::from_turns(transcript.turns.iter().filter_map(|turn| turn.choices.clone())).unwrap()
}

fn speakers(names: &'static [&'static str]) -> Workflow {
    workflow(move |ctx: Ctx, _| async move {
        let total = ctx.state(0);
        let branches = names.iter().map(|name| {
            let (ctx, total) = (ctx.clone(), total.clone());
            async move {
                ctx.set_state("said", *name);
                total.update(|total| *total += name.len());
            }
        });
        ctx.parallel(branches).await;
        say(total.read(usize::to_string))
    })
}

const ABC: &[&str] = &["a", "bb", "ccc"];

/// S1-1, S1-12, S1-66, T-15: the executor obeys, and code that does not care for order comes to the same.
#[test]
fn the_policy_decides_the_order_of_units_and_not_the_result() {
    let played = |options| said(&play_out(&speakers(ABC), &options, false).unwrap());
    assert_eq!(played(deterministic()), "a bb ccc = 6");
    assert_eq!(played(own(|| Last)), "ccc bb a = 6");
    assert_eq!(played(own(ByTurns::default)), "a ccc bb = 6");
}

/// C-16, S1-8, S1-53: every order is found, and every log replays to the same commands.
#[test]
fn a_thousand_seeds_explore_every_order_and_each_replays() {
    let workflow = speakers(ABC);
    let mut orders = BTreeSet::new();
    for seed in 0..1000 {
        let options = RunOptions { double_play: false, ..random(seed) };
        let transcript = play_out(&workflow, &options, false).unwrap();
        assert!(transcript.replay(&workflow, options).is_ok(), "seed {seed}");
        orders.insert(said(&transcript));
    }
    let all = ["a bb ccc", "a ccc bb", "bb a ccc", "bb ccc a", "ccc a bb", "ccc bb a"];
    assert_eq!(orders, all.map(|order| format!("{order} = 6")).into());
}

/// Two branches; each chooses one of three and says what it chose.
fn choosers() -> Workflow {
    workflow(|ctx: Ctx, _| async move {
        let branches = ["p", "q"].map(|name| {
            let ctx = ctx.clone();
            async move {
                let chosen = ctx.choose(3);
                let path = |ctx: Ctx| async move { ctx.set_state("path", format!("{name}{chosen}")) };
                let paths = [path(ctx.clone()), path(ctx.clone()), path(ctx.clone())];
                for (number, path) in paths.into_iter().enumerate() {
                    if number == chosen as usize {
                        path.await;
                    }
                }
            }
        });
        ctx.parallel(branches).await;
        say("done")
    })
}

/// S1-6, S1-20, S1-33, C-39, C-47: which unit goes and which branch is taken, in one log, each with its whole set. As
/// many entries as steps and branch points: two of the root, two of the branches, two choices.
#[test]
fn every_choice_is_logged_with_what_was_enabled() {
    let transcript = play_out(&choosers(), &own(|| Last), false).unwrap();
    assert_eq!(said(&transcript), "q2 p2 = done", "the third path alone was taken, in both branches");
    let unit = |id: &str| Action::Unit(id.parse().unwrap());
    let xor = |number| Action::branch(number).unwrap();
    let xors = vec![xor(1), xor(2), xor(3)];
    let choice = |step, enabled: &[Action], chosen| Choice { step, enabled: enabled.to_vec(), chosen };
    let expected = [
        choice(0, &[unit("[]")], unit("[]")),
        choice(1, &[unit("[p0]"), unit("[p1]")], unit("[p1]")),
        choice(2, &xors, xor(3)),
        choice(3, &[unit("[p0]")], unit("[p0]")),
        choice(4, &xors, xor(3)),
        choice(5, &[unit("[]")], unit("[]")),
    ];
    assert_eq!(log(&transcript).iter().collect::<Vec<_>>(), expected);
}

/// S1-33, C-47: the deterministic policy takes the first, and logs nothing.
#[test]
fn the_deterministic_policy_takes_the_first_path_and_writes_no_log() {
    let transcript = play_out(&choosers(), &deterministic(), false).unwrap();
    assert_eq!(said(&transcript), "p0 q0 = done");
    assert!(transcript.turns.iter().all(|turn| turn.choices.is_none()));
}

/// C-47, C-15: a race asks the policy when nothing says who was first, and only then.
#[test]
fn a_race_asks_the_policy_only_between_equals() {
    let race = workflow(|ctx: Ctx, _| async move {
        let equal = ctx.race(async { Ok::<_, Failure>(()) }, async { Ok::<_, Failure>(()) }).await?;
        let (first, second) = (ctx.activity("first", ""), ctx.activity("second", ""));
        let unequal = ctx.race(first, second).await?;
        let side = |either: &Either<_, _>| if matches!(either, Either::First(_)) { "first" } else { "second" };
        ctx.set_state("equal", side(&equal));
        // The driver resolves the later one first.
        say(if matches!(unequal, Either::First(_)) { "first" } else { "second" })
    });
    assert_eq!(said(&play_out(&race, &deterministic(), false).unwrap()), "first = second");
    let transcript = play_out(&race, &own(|| Last), false).unwrap();
    assert_eq!(said(&transcript), "second = second");
    let branch_points = log(&transcript).iter().filter(|choice| choice.chosen.unit().is_none()).count();
    assert_eq!(branch_points, 1);
}

/// S1-9, S1-68, C-8: the record was made with three branches; the report names both sets, and the run stays open.
#[test]
fn replaying_with_a_branch_less_diverges_and_names_both_sets() {
    let recorded = play_out(&speakers(ABC), &random(1), false).unwrap();
    let failed = recorded.replay(&speakers(&ABC[..2]), random(1)).err().unwrap();
    let units = |ids: &[&str]| ids.iter().map(|id| Action::Unit(id.parse().unwrap())).collect::<Vec<_>>();
    let (expected, actual) = (units(&["[p0]", "[p1]", "[p2]"]), units(&["[p0]", "[p1]"]));
    let divergence = PolicyError::Divergence { step: 1, expected, actual };
    assert_eq!(*failed.error, ActivationError::Policy(divergence));
    assert!(recorded.replay(&speakers(ABC), random(1)).is_ok(), "with the code that recorded it, it goes on");
}

/// S1-68: a program that chooses more, or less, than was recorded.
#[test]
fn a_log_that_is_too_short_or_too_long_fails_loudly() {
    let choices = |n: usize| {
        workflow(move |ctx: Ctx, _| async move {
            let sum: u32 = (0..n).map(|_| ctx.choose(1)).sum();
            say(sum.to_string())
        })
    };
    let recorded = play_out(&choices(3), &random(1), false).unwrap();
    let failed = |n| recorded.replay(&choices(n), random(1)).err().unwrap().to_string();
    expect!["turn 0 does not replay: the scheduler policy could not pick: the choice log ends after 4 choices and the program asks for one more; play the log with the code and input that recorded it"].assert_eq(&failed(4));
    expect!["turn 0 does not replay: the scheduler policy could not pick: the turn ended after 3 choices and its recording holds 1 more; play the log with the code and input that recorded it"].assert_eq(&failed(2));
}

/// Branches that yield, work and choose, over several turns.
fn wandering() -> Workflow {
    workflow(|ctx: Ctx, _| async move {
        let branches = (0..4).map(|number| {
            let ctx = ctx.clone();
            async move {
                for round in 0..3 {
                    ctx.set_state("at", format!("{number}.{round}.{}", ctx.choose(5)));
                    if ctx.choose(2) == 0 {
                        ctx.yield_now().await;
                    } else {
                        ctx.activity("work", "").await.unwrap();
                    }
                }
            }
        });
        ctx.parallel(branches).await;
        say("done")
    })
}

/// S1-34: the policy's state is the run's: a run rebuilt before every turn goes on as one that stayed in memory.
#[test]
fn a_run_that_is_rebuilt_between_turns_makes_the_choices_it_would_have_made() {
    for options in [random(1), random(2), own(|| Last), own(ByTurns::default)] {
        let stayed = play_out(&wandering(), &options, false).unwrap();
        assert!(stayed.turns.len() > 2, "several turns");
        let rebuilt = play_out(&wandering(), &options, true).unwrap();
        assert_eq!(stayed.diff(&rebuilt).map(|difference| difference.to_string()), None);
    }
}

/// S1-15, S1-52
#[test]
fn under_the_deterministic_policy_the_same_program_has_one_trace() {
    let bytes = play_out(&wandering(), &deterministic(), false).unwrap().to_bytes();
    for _ in 0..25 {
        assert_eq!(play_out(&wandering(), &deterministic(), false).unwrap().to_bytes(), bytes);
    }
}

/// S1-12: one round of very many, under each policy.
#[test]
fn ten_thousand_branches_are_played_logged_and_replayed() {
    const MANY: u32 = 10_000;
    let many = workflow(|ctx: Ctx, _| async move {
        let branches = (0..MANY).map(|number| {
            let ctx = ctx.clone();
            async move {
                ctx.yield_now().await;
                number
            }
        });
        let sum: u32 = ctx.parallel(branches).await.into_iter().sum();
        say(sum.to_string())
    });
    for options in [deterministic(), random(5), own(|| Last)] {
        let options = RunOptions { double_play: false, ..options };
        let transcript = play_out(&many, &options, false).unwrap();
        assert_eq!(said(&transcript), format!("= {}", MANY * (MANY - 1) / 2));
        let choices = if options.pins.policy == PolicySpec::Deterministic { 0 } else { u64::from(2 * MANY + 2) };
        assert_eq!(log(&transcript).len(), choices, "one for each step");
        assert!(transcript.replay(&many, options).is_ok());
    }
}

struct Rude(fn() -> Result<usize, PolicyError>);

impl Policy for Rude {
    fn choose(&mut self, _: &Enabled<'_>) -> Result<usize, PolicyError> {
        (self.0)()
    }
}

/// S1-68: a policy that panicked took the whole worker with it, because the executor asks it outside any unit.
#[test]
fn a_policy_that_errs_or_panics_fails_the_activation() {
    let failed = |options| play_out(&speakers(ABC), &options, false).unwrap_err().to_string();
    let refuses = failed(own(|| Rude(|| Err(PolicyError::Refused { reason: "not today".to_owned() }))));
    expect!["the scheduler policy could not pick: the policy refused to choose: not today; see the policy's own documentation"].assert_eq(&refuses);
    expect!["the scheduler policy could not pick: the policy answered 7 for a set of 1 actions; it must answer an index below the set's length"].assert_eq(&failed(own(|| Rude(|| Ok(7)))));
    expect!["the scheduler policy could not pick: the policy refused to choose: it panicked: on purpose; see the policy's own documentation"].assert_eq(&failed(own(|| Rude(|| panic!("on purpose")))));
}

/// S1-12
#[test]
fn run_pinned_to_a_policy_that_is_not_provided_is_refused() {
    let missing = options(PolicySpec::Own { name: "own".into() }, None);
    let refused = Run::new(speakers(ABC), missing).err();
    let unknown = PolicyError::UnknownPolicy { name: "own".to_owned() };
    assert_eq!(refused, Some(ActivationError::Policy(unknown)));
}

/// C-16, C-48: handlers first is an order like any other to a policy.
#[test]
fn a_random_policy_plays_runs_with_handlers_first() {
    let mut options = random(3);
    options.pins.order = dacapo_core::Order::HandlersFirst;
    let transcript = play_out(&wandering(), &options, true).unwrap();
    assert!(transcript.replay(&wandering(), options).is_ok());
}

/// T-16, S0-36: the child of the first branch is made last, at another address and under a later key; its id goes first.
#[test]
fn the_order_of_units_follows_their_ids_and_not_when_or_where_they_were_made() {
    let late = workflow(|ctx: Ctx, _| async move {
        let branches = [2, 0].map(|rounds| {
            let ctx = ctx.clone();
            async move {
                for _ in 0..rounds {
                    ctx.yield_now().await;
                }
                let inside = ctx.clone();
                let child = async move {
                    inside.activity("wait", "").await.unwrap();
                    inside.set_state("said", format!("after {rounds} rounds"));
                };
                ctx.parallel([child]).await;
            }
        });
        ctx.parallel(branches).await;
        say("done")
    });
    let transcript = play_out(&late, &deterministic(), false).unwrap();
    assert_eq!(said(&transcript), "after 2 rounds after 0 rounds = done");
}

/// A step of a made-up program.
#[derive(Clone, Debug)]
enum Op {
    Say,
    Yield,
    Work,
    Choose(u32),
    Race,
    Parallel(Vec<Vec<Op>>),
    /// Branches that are given up while they run.
    Drop(Vec<Vec<Op>>),
}

fn play_ops(ctx: Ctx, ops: Vec<Op>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        for op in ops {
            let branches = |branches: Vec<Vec<Op>>| {
                let ctx = ctx.clone();
                ctx.clone().parallel(branches.into_iter().map(move |ops| play_ops(ctx.clone(), ops)))
            };
            match op {
                Op::Say => ctx.set_state("said", "something"),
                Op::Yield => ctx.yield_now().await,
                Op::Work => drop(ctx.activity("work", "").await),
                Op::Choose(n) => ctx.set_state("chose", ctx.choose(n).to_string()),
                Op::Race => drop(ctx.race(ctx.activity("race", ""), ctx.sleep(secs(1))).await),
                Op::Parallel(ops) => drop(branches(ops).await),
                Op::Drop(ops) => {
                    let given_up = branches(ops);
                    ctx.yield_now().await;
                    ctx.yield_now().await;
                    drop(given_up);
                }
            }
        }
    })
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let leaf =
        prop_oneof![Just(Op::Say), Just(Op::Yield), Just(Op::Work), (1..4u32).prop_map(Op::Choose), Just(Op::Race)];
    let op = leaf.prop_recursive(3, 24, 3, |op| {
        let branches = prop::collection::vec(prop::collection::vec(op, 0..4), 1..4);
        prop_oneof![branches.clone().prop_map(Op::Parallel), branches.prop_map(Op::Drop)]
    });
    prop::collection::vec(op, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// S1-55, S0-1, C-16: whatever the program and the seed, the recorded log replays, in one piece and turn by turn.
    #[test]
    fn the_log_of_any_program_under_any_seed_replays(ops in ops(), seed in any::<u64>()) {
        let program = workflow(move |ctx: Ctx, _| {
            let ops = ops.clone();
            async move {
                play_ops(ctx, ops).await;
                say("done")
            }
        });
        for options in [random(seed), deterministic(), own(ByTurns::default)] {
            let stayed = play_out(&program, &options, false).unwrap();
            prop_assert!(stayed.replay(&program, options.clone()).is_ok());
            let rebuilt = play_out(&program, &options, true).unwrap();
            prop_assert_eq!(stayed.diff(&rebuilt).map(|difference| difference.to_string()), None);
        }
    }
}
