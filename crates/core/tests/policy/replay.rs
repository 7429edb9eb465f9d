//! The replaying policy: the recorded trace, or a loud failure.

use dacapo_core::{ChoiceLog, Divergence, PolicyError, PolicyKind, PolicyOptions, Rng, Scheduler};

use crate::kit::*;

fn lenient(log: ChoiceLog) -> Scheduler {
    let options = PolicyOptions { divergence: Divergence::Lenient, ..PolicyOptions::default() };
    Scheduler::new(PolicyKind::Replay(log), options).unwrap()
}

/// S1-8, S1-11, S1-17, S1-19, S1-32, S1-63: `new`, `choose`, `get_log` and `from_log`, and both ways to a replay.
#[test]
fn a_recording_is_replayed_exactly_by_both_constructors() {
    let mut recording = random(8);
    let sets: Vec<_> = (1..60).map(|n| actions(n % 7 + 1)).collect();
    let trace: Vec<_> =
        sets.iter().map(|set| (recording.choose(set).unwrap(), recording.pick_branch(4).unwrap())).collect();
    let log = recording.get_log().clone();
    let by_new = Scheduler::new(PolicyKind::Replay(log.clone()), PolicyOptions::default()).unwrap();
    let by_log = Scheduler::from_log(log.clone()).unwrap();
    for mut replay in [by_new, by_log] {
        let replayed: Vec<_> =
            sets.iter().map(|set| (replay.choose(set).unwrap(), replay.pick_branch(4).unwrap())).collect();
        assert_eq!(replayed, trace);
        assert_eq!(*replay.get_log(), log);
        assert_eq!(replay.get_position(), 118);
    }
}

/// S1-28, S1-49
#[test]
fn replay_follows_two_entries_and_counts_its_position() {
    let (first, second) = (actions(2), [xor(1)]);
    let mut replay = Scheduler::from_log(log([choice(0, &first, &unit("[p1]")), choice(1, &second, &xor(1))])).unwrap();
    assert_eq!(replay.get_position(), 0);
    assert_eq!(replay.choose(&first), Ok(unit("[p1]")));
    assert_eq!(replay.get_position(), 1);
    assert_eq!(replay.choose(&second), Ok(xor(1)));
    assert_eq!(replay.get_position(), 2);
}

/// S1-9, S1-29, S1-50
#[test]
fn a_set_that_lost_a_member_is_a_divergence_that_names_both_sets() {
    let recorded = actions(3);
    let mut replay = Scheduler::from_log(log([choice(0, &recorded, &unit("[p0]"))])).unwrap();
    let error = replay.choose(&recorded[..2]).unwrap_err();
    let expected = PolicyError::Divergence { step: 0, expected: recorded.clone(), actual: recorded[..2].to_vec() };
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "divergence at step 0: the recording chose among {[p0], [p1], [p2]}, now enabled is {[p0], [p1]}; play the log \
         with the code and input that recorded it"
    );
    assert_eq!((replay.get_position(), replay.get_log().len()), (0, 0));
}

/// S1-9, C-17: the case that a shortcut for sets of one would let through.
#[test]
fn a_set_that_shrank_to_one_is_a_divergence() {
    let recorded = actions(2);
    let record = || Scheduler::from_log(log([choice(0, &recorded, &unit("[p0]"))])).unwrap();
    assert!(matches!(record().choose(&recorded[..1]), Err(PolicyError::Divergence { step: 0, .. })));
    let mut in_a_round = record();
    in_a_round.begin_round(branches(1)).unwrap();
    assert!(matches!(in_a_round.next_unit(&mut |_| true), Err(PolicyError::Divergence { step: 0, .. })));
}

/// S1-9
#[test]
fn a_choice_of_another_kind_is_a_divergence() {
    let recorded = actions(3);
    let mut replay = Scheduler::from_log(log([choice(0, &recorded, &unit("[p0]"))])).unwrap();
    let actual = vec![xor(1), xor(2), xor(3)];
    assert_eq!(replay.pick_branch(3), Err(PolicyError::Divergence { step: 0, expected: recorded, actual }));
}

/// S1-39, C-17
#[test]
fn a_shuffled_list_of_the_same_actions_does_not_diverge() {
    let set = [unit("[]"), unit("[p0]"), unit("[p0]"), unit("[h1]"), xor(2)];
    let (mut recording, mut rng) = (random(3), Rng::from_seed(3));
    let trace: Vec<_> = (0..50).map(|_| recording.choose(&set).unwrap()).collect();
    let mut replay = Scheduler::from_log(recording.get_log().clone()).unwrap();
    let replayed: Vec<_> = (0..50).map(|_| replay.choose(&shuffled(&set, &mut rng)).unwrap()).collect();
    assert_eq!(replayed, trace);
}

/// S1-30, S1-51, C-6
#[test]
fn a_question_after_the_last_entry_is_an_error_and_not_a_choice() {
    let set = actions(1);
    let mut replay = Scheduler::from_log(log([choice(0, &set, &set[0])])).unwrap();
    replay.choose(&set).unwrap();
    for _ in 0..2 {
        assert_eq!(replay.choose(&set), Err(PolicyError::LogExhausted { position: 1 }));
        assert_eq!(replay.pick_branch(2), Err(PolicyError::LogExhausted { position: 1 }));
        replay.begin_round(branches(1)).unwrap();
        assert_eq!(replay.next_unit(&mut |_| true), Err(PolicyError::LogExhausted { position: 1 }));
    }
    assert_eq!(replay.get_position(), 1);
}

/// S1-31
#[test]
fn a_log_whose_steps_start_elsewhere_replays_by_position() {
    let set = actions(3);
    let mut replay = Scheduler::from_log(log([choice(41, &set, &set[2]), choice(42, &set, &set[0])])).unwrap();
    assert_eq!([replay.choose(&set), replay.choose(&set)], [Ok(set[2].clone()), Ok(set[0].clone())]);
    assert_eq!(replay.get_position(), 2);
    assert_eq!(replay.get_log().iter().map(|choice| choice.step).collect::<Vec<_>>(), [41, 42]);
}

/// S1-62
#[test]
fn an_extra_action_fails_a_strict_replay_and_warns_in_a_lenient_one() {
    let recorded = log([choice(0, &actions(2), &unit("[p1]")), choice(1, &actions(2), &unit("[p0]"))]);
    let strict = PolicyOptions::default();
    assert_eq!(strict.divergence, Divergence::Strict);
    let mut strict = Scheduler::new(PolicyKind::Replay(recorded.clone()), strict).unwrap();
    assert!(matches!(strict.choose(&actions(3)), Err(PolicyError::Divergence { step: 0, .. })));

    let mut lenient = lenient(recorded);
    assert_eq!(lenient.choose(&actions(3)), Ok(unit("[p1]")));
    assert_eq!(lenient.choose(&actions(2)), Ok(unit("[p0]")));
    let [warning] = lenient.warnings() else { panic!("one warning, for the one set that differed") };
    assert_eq!((warning.step, &warning.expected, &warning.actual), (0, &actions(2), &actions(3)));
    assert_eq!(
        warning.to_string(),
        "step 0: the recording chose among {[p0], [p1]}, enabled was {[p0], [p1], [p2]}; its pick was followed"
    );
}

/// S1-62
#[test]
fn a_lenient_replay_fails_when_the_recorded_pick_is_gone_or_the_log_ends() {
    let mut replay = lenient(log([choice(0, &actions(3), &unit("[p2]"))]));
    assert!(matches!(replay.choose(&actions(2)), Err(PolicyError::Divergence { step: 0, .. })));
    assert_eq!(replay.choose(&actions(4)), Ok(unit("[p2]")));
    assert_eq!(replay.choose(&actions(4)), Err(PolicyError::LogExhausted { position: 1 }));
}

/// S1-9: a divergence that was returned changes nothing.
#[test]
fn after_a_divergence_the_recorded_question_still_gets_its_answer() {
    let mut replay = Scheduler::from_log(log([choice(0, &actions(3), &unit("[p1]"))])).unwrap();
    assert!(replay.choose(&actions(2)).is_err());
    assert_eq!(replay.choose(&actions(3)), Ok(unit("[p1]")));
}
