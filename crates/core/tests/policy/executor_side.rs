//! What the executor uses: turns, rounds, branch points.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use dacapo_core::{
    Action, ChoiceLog, Deterministic, Divergence, Enabled, Policy, PolicyError, PolicyKind, PolicyOptions, Scheduler,
    TurnChoices, UnitId,
};

use crate::kit::*;

type Turns = [Vec<Vec<UnitId>>; 3];

/// Three turns: the root alone, three rounds of different units, a big round that comes twice.
fn turns() -> Turns {
    let mixed = vec![ids(["[]", "[p0]", "[p1]", "[h0]"]), ids(["[p0]", "[p1]"]), ids(["[]"])];
    [vec![ids(["[]"])], mixed, vec![branches(70), branches(70)]]
}

fn play_turn(
    scheduler: &mut Scheduler,
    turn: usize,
    recorded: Option<TurnChoices>,
) -> Result<(Trace, Option<TurnChoices>), PolicyError> {
    scheduler.begin_turn(turn as u64, recorded);
    let trace = play(scheduler, &turns()[turn])?;
    Ok((trace, scheduler.end_turn()?))
}

/// S1-1
#[test]
fn swapping_the_policy_changes_the_order_and_not_the_sum() {
    let mut orders = BTreeSet::new();
    for mut scheduler in [deterministic(), last(), random(1), random(2)] {
        let trace = play(&mut scheduler, &[branches(3)]).unwrap();
        let sum: u32 = trace.iter().map(|(unit, _)| unit.path()[0].index()).sum();
        assert_eq!((trace.len(), sum), (3, 3));
        orders.insert(trace.into_iter().map(|(unit, _)| unit).collect::<Vec<_>>());
    }
    assert!(orders.len() > 1);
}

/// S1-10: the user's fourth policy is obeyed, and logged by the scheduler.
#[test]
fn a_policy_of_the_user_s_own_decides_and_its_log_replays() {
    let mut scheduler = last();
    let trace = play(&mut scheduler, &[branches(3)]).unwrap();
    assert_eq!(trace, [(id("[p2]"), 2), (id("[p1]"), 2), (id("[p0]"), 2)]);
    let mut replay = Scheduler::from_log(scheduler.get_log().clone()).unwrap();
    assert_eq!(play(&mut replay, &[branches(3)]).unwrap(), trace);
}

/// S1-20, S1-61, C-39, C-47
#[test]
fn units_and_branch_points_stand_in_one_log_with_full_sets() {
    let mut scheduler = last();
    play(&mut scheduler, &[branches(2)]).unwrap();
    let xors = [xor(1), xor(2), xor(3)];
    let expected = [
        choice(0, &actions(2), &unit("[p1]")),
        choice(1, &xors, &xor(3)),
        choice(2, &actions(1), &unit("[p0]")),
        choice(3, &xors, &xor(3)),
    ];
    assert_eq!(scheduler.get_log().iter().collect::<Vec<_>>(), expected);
}

/// S1-8, C-6, C-20: turns that are rebuilt from their recordings, then live ones, are what a run that stayed in
/// memory plays, wherever the border lies.
#[test]
fn a_run_rebuilt_from_its_recorded_turns_goes_on_as_one_that_stayed() {
    for make in [|| random(7), last] {
        let mut cached = make();
        let played: Vec<_> = (0..3).map(|turn| play_turn(&mut cached, turn, None).unwrap()).collect();
        for border in 0..=3 {
            let mut rebuilt = make();
            for (turn, expected) in played.iter().enumerate() {
                let recorded = expected.1.clone().filter(|_| turn < border);
                assert_eq!(
                    play_turn(&mut rebuilt, turn, recorded).as_ref(),
                    Ok(expected),
                    "turn {turn}, border {border}"
                );
            }
            assert_eq!(rebuilt.get_position(), cached.get_position());
        }
    }
}

/// S1-24: steps go on over the turns of a run.
#[test]
fn the_logs_of_all_turns_join_to_one_that_replays_the_run() {
    let mut scheduler = random(11);
    let played: Vec<_> = (0..3).map(|turn| play_turn(&mut scheduler, turn, None).unwrap()).collect();
    let whole = ChoiceLog::from_turns(played.iter().filter_map(|(_, choices)| choices.clone())).unwrap();
    let steps: Vec<_> = whole.iter().map(|choice| choice.step).collect();
    assert_eq!(steps, (0..scheduler.get_position()).collect::<Vec<_>>());

    let mut replay = Scheduler::from_log(whole.clone()).unwrap();
    for (turn, expected) in played.iter().enumerate() {
        // A replay policy keeps up with turns that are rebuilt, too.
        let recorded = expected.1.clone().filter(|_| turn == 0);
        assert_eq!(play_turn(&mut replay, turn, recorded).as_ref(), Ok(expected));
    }
    let gap = played.into_iter().rev().filter_map(|(_, choices)| choices);
    assert!(matches!(ChoiceLog::from_turns(gap), Err(PolicyError::InvalidLog { .. })));
}

/// S1-30, C-6
#[test]
fn a_recorded_turn_is_closed_at_both_ends() {
    let mut scheduler = random(1);
    scheduler.begin_turn(0, None);
    play(&mut scheduler, &[branches(3)]).unwrap();
    let recorded = scheduler.end_turn().unwrap();

    // The program asks once more,
    scheduler.begin_turn(0, recorded.clone());
    play(&mut scheduler, &[branches(3)]).unwrap();
    assert_eq!(scheduler.pick_branch(2), Err(PolicyError::LogExhausted { position: 6 }));

    // or once less.
    scheduler.begin_turn(0, recorded.clone());
    scheduler.begin_round(branches(3)).unwrap();
    assert!(scheduler.next_unit(&mut |_| true).is_ok());
    assert_eq!(scheduler.end_turn(), Err(PolicyError::LogNotExhausted { position: 1, left: 5 }));

    // An empty recording is a recording.
    scheduler.begin_turn(1, None);
    let empty = scheduler.end_turn().unwrap();
    assert!(empty.as_ref().unwrap().log().is_empty());
    scheduler.begin_turn(1, empty);
    assert_eq!(scheduler.pick_branch(2), Err(PolicyError::LogExhausted { position: 0 }));
}

/// S1-9
#[test]
fn a_recorded_turn_diverges_when_a_unit_of_its_round_is_missing_or_new() {
    let mut scheduler = last();
    scheduler.begin_turn(0, None);
    play(&mut scheduler, &[branches(3)]).unwrap();
    let recorded = scheduler.end_turn().unwrap();
    for n in [1, 2, 4] {
        scheduler.begin_turn(0, recorded.clone());
        scheduler.begin_round(branches(n)).unwrap();
        let divergence = PolicyError::Divergence { step: 0, expected: actions(3), actual: actions(n) };
        assert_eq!(scheduler.next_unit(&mut |_| true), Err(divergence));
    }
}

/// S1-9: a round that came twice is recorded once; the second must still be the same.
#[test]
fn a_recorded_turn_diverges_when_a_round_that_came_again_is_another() {
    let mut scheduler = last();
    scheduler.begin_turn(0, None);
    play(&mut scheduler, &[branches(2), branches(2)]).unwrap();
    let recorded = scheduler.end_turn().unwrap();
    scheduler.begin_turn(0, recorded);
    play(&mut scheduler, &[branches(2)]).unwrap();
    scheduler.begin_round(ids(["[p0]", "[p2]"])).unwrap();
    let divergence = PolicyError::Divergence { step: 4, expected: actions(2), actual: units(["[p0]", "[p2]"]) };
    assert_eq!(scheduler.next_unit(&mut |_| true), Err(divergence));
}

/// C-6: a recording is followed whatever the policy, and no option softens it.
#[test]
fn a_recorded_turn_is_followed_strictly_by_every_policy() {
    let mut scheduler = last();
    scheduler.begin_turn(0, None);
    let trace = play(&mut scheduler, &[branches(3)]).unwrap();
    let recorded = scheduler.end_turn().unwrap();

    let soft = PolicyOptions { divergence: Divergence::Lenient, max_entries: Some(0), ..PolicyOptions::default() };
    let empty = PolicyKind::Replay(ChoiceLog::from_choices(by_hand(), []).unwrap());
    for kind in [PolicyKind::Deterministic, PolicyKind::Random, empty] {
        let mut scheduler = Scheduler::new(kind, soft.clone()).unwrap();
        scheduler.begin_turn(0, recorded.clone());
        assert!(!scheduler.is_deterministic());
        assert_eq!(play(&mut scheduler, &[branches(3)]).unwrap(), trace);
        assert_eq!(scheduler.end_turn(), Ok(recorded.clone()));

        scheduler.begin_turn(0, recorded.clone());
        scheduler.begin_round(branches(4)).unwrap();
        assert!(matches!(scheduler.next_unit(&mut |_| true), Err(PolicyError::Divergence { .. })));
    }
}

/// A unit dropped in its round never goes; the pick that fell on it is not logged, and the recording still replays.
#[test]
fn a_dropped_unit_never_goes_and_the_recording_replays() {
    // [p9] drops [p3] and [p0]; [p5] drops all that are left.
    let play = |scheduler: &mut Scheduler| {
        let mut gone = BTreeSet::new();
        let mut trace = Vec::new();
        scheduler.begin_round(branches(10)).unwrap();
        while let Some(unit) = scheduler.next_unit(&mut |unit| !gone.contains(unit))? {
            if unit == id("[p9]") {
                gone.extend(ids(["[p3]", "[p0]"]));
            } else if unit == id("[p5]") {
                gone.extend(branches(10));
            }
            trace.push(unit);
        }
        Ok::<_, PolicyError>(trace)
    };
    let mut lengths = BTreeSet::new();
    for seed in 0..200 {
        let mut scheduler = random(seed);
        scheduler.begin_turn(0, None);
        let trace = play(&mut scheduler).unwrap();
        assert_eq!(trace.last(), Some(&id("[p5]")));
        assert!(trace.iter().skip_while(|unit| **unit != id("[p9]")).all(|unit| !ids(["[p0]", "[p3]"]).contains(unit)));
        lengths.insert(trace.len());
        let recorded = scheduler.end_turn().unwrap();
        let log = ChoiceLog::from(recorded.clone().unwrap());
        assert_eq!(log.len(), trace.len() as u64);

        scheduler.begin_turn(0, recorded.clone());
        assert_eq!(play(&mut scheduler).as_ref(), Ok(&trace));
        assert_eq!(scheduler.end_turn(), Ok(recorded));

        // The same choices, written by hand: there every set starts anew and no drop is noted.
        let by_hand = ChoiceLog::from_choices(by_hand(), log.iter()).unwrap();
        assert_eq!(play(&mut Scheduler::from_log(by_hand).unwrap()).as_ref(), Ok(&trace));
    }
    assert!(lengths.len() > 5, "{lengths:?}");
}

/// S1-9
#[test]
fn a_recorded_pick_that_is_dropped_now_is_a_divergence() {
    let mut scheduler = last();
    scheduler.begin_turn(0, None);
    play(&mut scheduler, &[branches(3)]).unwrap();
    let recorded = scheduler.end_turn().unwrap();
    scheduler.begin_turn(0, recorded);
    scheduler.begin_round(branches(3)).unwrap();
    let divergence = PolicyError::Divergence { step: 0, expected: actions(3), actual: actions(2) };
    assert_eq!(scheduler.next_unit(&mut |unit| *unit != id("[p2]")), Err(divergence));
}

/// S1-9
#[test]
fn a_unit_that_was_dropped_then_and_lives_now_is_a_divergence() {
    let mut scheduler = last();
    scheduler.begin_turn(0, None);
    scheduler.begin_round(branches(3)).unwrap();
    while scheduler.next_unit(&mut |unit| *unit != id("[p1]")).unwrap().is_some() {}
    let recorded = scheduler.end_turn().unwrap();
    scheduler.begin_turn(0, recorded);
    scheduler.begin_round(branches(3)).unwrap();
    assert_eq!(scheduler.next_unit(&mut |_| true), Ok(Some(id("[p2]"))));
    let divergence = PolicyError::Divergence { step: 1, expected: actions(1), actual: actions(2) };
    assert_eq!(scheduler.next_unit(&mut |_| true), Err(divergence));
}

/// A round may be empty, or lose all its units before one goes.
#[test]
fn round_without_units_ends_at_once() {
    for mut scheduler in [deterministic(), random(0), last()] {
        scheduler.begin_round(Vec::new()).unwrap();
        assert_eq!(scheduler.next_unit(&mut |_| true), Ok(None));
        for n in [1, 5] {
            scheduler.begin_round(branches(n)).unwrap();
            assert_eq!(scheduler.next_unit(&mut |_| false), Ok(None));
            assert_eq!(scheduler.next_unit(&mut |_| true), Ok(None));
        }
        assert_eq!(scheduler.get_log().len(), 0);
    }
}

/// A run has one of two orders; a round is compared in the order it was handed over.
#[test]
fn a_round_with_handlers_first_is_recorded_and_replayed_in_its_own_order() {
    let round = ids(["[h0]", "[h1]", "[]", "[p0]"]);
    let mut first = Scheduler::with_policy("first", Box::new(Deterministic));
    first.begin_turn(0, None);
    let trace = play(&mut first, std::slice::from_ref(&round)).unwrap();
    assert_eq!(trace[0].0, id("[h0]"));
    let recorded = first.end_turn().unwrap().unwrap();
    let stored = ChoiceLog::from_bytes(&recorded.log().to_bytes()).unwrap();
    first.begin_turn(0, Some(stored.clone().into()));
    assert_eq!(play(&mut first, &[round]).unwrap(), trace);

    // Asked with a list, whose order means nothing, the log answers as well.
    let mut listed = Scheduler::from_log(stored).unwrap();
    assert_eq!(listed.choose(&units(["[]", "[p0]", "[h0]", "[h1]"])), Ok(unit("[h0]")));
}

/// A set that no decoder would accept must not get into a log.
#[test]
fn a_round_out_of_order_is_refused() {
    let messy = ids(["[p1]", "[]"]);
    let units = messy.iter().cloned().map(Action::Unit).collect();
    assert_eq!(random(0).begin_round(messy), Err(PolicyError::Unsorted { units }));
}

/// S1-41: whatever a user's policy answers, the scheduler does not panic.
#[test]
fn an_answer_out_of_range_is_an_error() {
    struct Wild(usize);
    impl Policy for Wild {
        fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
            assert_eq!((enabled.get(0).is_some(), enabled.get(self.0)), (true, None));
            Ok(self.0)
        }
    }
    for index in [3, 64, 65, usize::MAX] {
        let mut scheduler = Scheduler::with_policy("wild", Box::new(Wild(index)));
        let error = PolicyError::OutOfRange { index, len: 3 };
        assert_eq!(scheduler.choose(&actions(3)), Err(error.clone()));
        assert_eq!(scheduler.pick_branch(3), Err(error.clone()));
        scheduler.begin_round(branches(3)).unwrap();
        assert_eq!(scheduler.next_unit(&mut |_| true), Err(error));
        assert_eq!(scheduler.get_log().len(), 0);
    }
}

#[test]
fn error_of_a_policy_that_refuses_names_its_reason() {
    struct Moody;
    impl Policy for Moody {
        fn choose(&mut self, _: &Enabled<'_>) -> Result<usize, PolicyError> {
            Err(PolicyError::Refused { reason: "not today".to_owned() })
        }
    }
    let error = Scheduler::with_policy("moody", Box::new(Moody)).pick_branch(2).unwrap_err();
    assert_eq!(error.to_string(), "the policy refused to choose: not today; see the policy's own documentation");
}

#[test]
fn more_branches_than_a_log_can_show_are_refused_by_every_policy() {
    for mut scheduler in [deterministic(), random(0)] {
        assert!(scheduler.pick_branch(1 << 20).is_ok());
        let error = PolicyError::TooManyBranches { n: (1 << 20) + 1, limit: 1 << 20 };
        assert_eq!(scheduler.pick_branch((1 << 20) + 1), Err(error));
    }
}

/// A policy with a memory keeps up with turns that it did not decide.
#[test]
fn a_policy_is_told_of_the_turns_and_of_what_a_recording_chose() {
    struct Listening(Arc<Mutex<Vec<String>>>);
    impl Policy for Listening {
        fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
            self.0.lock().unwrap().push(format!("asked {enabled:?}"));
            Ok(0)
        }
        fn begin_turn(&mut self, turn: u64) {
            self.0.lock().unwrap().push(format!("turn {turn}"));
        }
        fn follow(&mut self, enabled: &Enabled<'_>, chosen: usize) {
            self.0.lock().unwrap().push(format!("told {}", enabled.get(chosen).unwrap()));
        }
    }
    let mut recording = last();
    recording.begin_turn(0, None);
    play(&mut recording, &[branches(2)]).unwrap();
    let recorded = recording.end_turn().unwrap();

    let said = Arc::default();
    let mut scheduler = Scheduler::with_policy("listening", Box::new(Listening(Arc::clone(&said))));
    scheduler.begin_turn(0, recorded);
    play(&mut scheduler, &[branches(2)]).unwrap();
    scheduler.end_turn().unwrap();
    scheduler.begin_turn(1, None);
    scheduler.choose(&[unit("[]")]).unwrap();
    let said = said.lock().unwrap();
    assert_eq!(*said, ["turn 0", "told [p1]", "told xor 3", "told [p0]", "told xor 3", "turn 1", "asked [Unit([])]"]);
}

/// S1-35
#[test]
fn the_enabled_units_of_a_round_can_be_looked_at() {
    let mut scheduler = last();
    assert_eq!(scheduler.enabled(), []);
    scheduler.begin_round(branches(3)).unwrap();
    assert_eq!(scheduler.enabled(), actions(3));
    scheduler.next_unit(&mut |_| true).unwrap();
    assert_eq!(scheduler.enabled(), actions(2));
}

/// S1-60, S1-61: a round costs what its units cost, in memory as on disk; full sets would be fifty million actions.
#[test]
fn a_round_of_ten_thousand_units_makes_a_small_log_that_replays() {
    let mut scheduler = random(1);
    scheduler.begin_turn(0, None);
    scheduler.begin_round(branches(10_000)).unwrap();
    let mut order = Vec::new();
    while let Some(unit) = scheduler.next_unit(&mut |_| true).unwrap() {
        order.push(unit);
    }
    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 10_000);
    let recorded = scheduler.end_turn().unwrap().unwrap();
    assert_eq!(recorded.log().len(), 10_000);
    let bytes = recorded.log().to_bytes();
    assert!(bytes.len() < 80_000, "{} bytes", bytes.len());

    let stored: TurnChoices = ChoiceLog::from_bytes(&bytes).unwrap().into();
    scheduler.begin_turn(0, Some(stored));
    scheduler.begin_round(branches(10_000)).unwrap();
    for unit in order {
        assert_eq!(scheduler.next_unit(&mut |_| true), Ok(Some(unit)));
    }
    assert_eq!(scheduler.next_unit(&mut |_| true), Ok(None));
    assert_eq!(scheduler.end_turn(), Ok(Some(recorded)));
}

/// C-17: sets of one are logged and compared like any other, and cost nothing.
#[test]
fn a_hundred_thousand_rounds_of_the_root_alone_make_a_log_of_a_few_bytes() {
    let mut scheduler = random(1);
    for _ in 0..100_000 {
        scheduler.begin_round(ids(["[]"])).unwrap();
        assert_eq!(scheduler.next_unit(&mut |_| true), Ok(Some(UnitId::root())));
    }
    let log = scheduler.get_log();
    assert_eq!((log.len(), log.to_bytes().len() < 40), (100_000, true));
    assert_eq!(log.iter().last().unwrap(), choice(99_999, &[unit("[]")], &unit("[]")));

    let mut replay = Scheduler::from_log(log.clone()).unwrap();
    for _ in 0..3 {
        replay.begin_round(ids(["[]"])).unwrap();
        assert_eq!(replay.next_unit(&mut |_| true), Ok(Some(UnitId::root())));
    }
    replay.begin_round(ids(["[p0]"])).unwrap();
    assert!(matches!(replay.next_unit(&mut |_| true), Err(PolicyError::Divergence { step: 3, .. })));
}

/// S1-40: what a turn handed out is no longer held.
#[test]
fn a_turn_s_choices_leave_the_scheduler_with_it() {
    let mut scheduler = random(1);
    for turn in 0..1000 {
        scheduler.begin_turn(turn, None);
        play(&mut scheduler, &[branches(10)]).unwrap();
        assert_eq!(scheduler.end_turn().unwrap().unwrap().log().len(), 20);
        assert!(scheduler.get_log().is_empty());
    }
    assert_eq!(scheduler.get_position(), 20_000);
}

/// S1-74: a log that left the system as JSON or as bytes and came back plays the run that recorded it, and none other.
#[test]
fn exported_and_imported_log_replays_the_run_that_recorded_it() {
    use dacapo_core::{RunOptions, Transcript, TurnChoices};

    let racing = || {
        dacapo_testkit::workflow(|ctx: dacapo_core::Ctx, _| async move {
            let branch = |name: u32| {
                let ctx = ctx.clone();
                async move {
                    ctx.set_state("turn of", name.to_string());
                    ctx.activity("work", name.to_string()).await
                }
            };
            ctx.parallel((0..5).map(branch)).await;
            ctx.set_state("chosen", ctx.choose(9).to_string());
            Ok(dacapo_core::Payload::empty())
        })
    };
    let recorded = |seed| {
        let pins = dacapo_core::Pins { policy: dacapo_core::PolicySpec::Random { seed }, ..Default::default() };
        let mut play = dacapo_testkit::Player::new(racing(), pins, dacapo_testkit::Mode::Whole);
        play.play("start\nresolve #0, resolve #1, resolve #2, resolve #3, resolve #4");
        play.transcript.clone()
    };
    let export_json = |choices: &TurnChoices| serde_json::to_string(choices).unwrap();
    let export_bytes = |choices: &TurnChoices| minicbor::to_vec(choices).unwrap();
    let import = |into: &Transcript, logs: Vec<TurnChoices>| {
        let mut transcript = into.clone();
        transcript.turns.iter_mut().zip(logs).for_each(|(turn, choices)| turn.choices = Some(choices));
        transcript.replay(&racing(), RunOptions::default()).map(drop)
    };
    let logs = |transcript: &Transcript| -> Vec<TurnChoices> {
        transcript.turns.iter().map(|turn| turn.choices.clone().expect("a random policy records its choices")).collect()
    };
    let (mine, other) = (recorded(3), recorded(4));
    assert!(mine.diff(&other).is_some(), "the two seeds choose differently");
    let by_json = logs(&mine).iter().map(|log| serde_json::from_str(&export_json(log)).unwrap()).collect();
    let by_bytes = logs(&mine).iter().map(|log| minicbor::decode(&export_bytes(log)).unwrap()).collect();
    assert!(import(&mine, by_json).is_ok());
    assert!(import(&mine, by_bytes).is_ok());
    let foreign = logs(&other).iter().map(|log| serde_json::from_str(&export_json(log)).unwrap()).collect();
    assert!(import(&mine, foreign).is_err(), "the imported log decides, and these commands are not its own");
}
