//! The deterministic policy: one set, one answer.

use std::mem::size_of;

use dacapo_core::{Deterministic, PolicyError, PolicyKind, PolicyOptions, Rng, Scheduler};

use crate::kit::*;

/// S1-3, S1-4, S1-45, C-17
#[test]
fn a_set_gets_one_answer_in_every_order_of_its_list() {
    let set = [unit("[]"), unit("[p0]"), unit("[p1,l0]"), xor(1), xor(2)];
    let mut scheduler = deterministic();
    let mut orders = 0;
    permute(&mut set.to_vec(), 0, &mut |list| {
        orders += 1;
        assert_eq!(scheduler.choose(list), Ok(unit("[]")));
    });
    assert_eq!(orders, 120);
    for _ in 0..120 {
        assert_eq!(scheduler.choose(&set), Ok(unit("[]")));
    }
}

fn permute(list: &mut Vec<dacapo_core::Action>, from: usize, each: &mut dyn FnMut(&[dacapo_core::Action])) {
    if from == list.len() {
        return each(list);
    }
    for place in from..list.len() {
        list.swap(from, place);
        permute(list, from + 1, each);
        list.swap(from, place);
    }
}

/// S1-21, S1-46
#[test]
fn units_go_before_branches_and_lower_ids_before_higher() {
    let mut scheduler = deterministic();
    assert_eq!(scheduler.choose(&[xor(1), unit("[p2]"), unit("[p1]")]), Ok(unit("[p1]")));
    assert_eq!(scheduler.choose(&[xor(3), xor(1), xor(2)]), Ok(xor(1)));
    assert_eq!(scheduler.choose(&units(["[h0]", "[p10]", "[p9,p3]"])), Ok(unit("[p9,p3]")));
    assert_eq!(scheduler.choose(&units(["[h0]", "[p0]", "[]"])), Ok(unit("[]")));
}

/// S1-22
#[test]
fn a_thousand_choices_leave_no_trace_in_the_deterministic_policy() {
    assert_eq!(size_of::<Deterministic>(), 0);
    let mut scheduler = deterministic();
    let before = format!("{scheduler:?}");
    for n in 1..=1000 {
        scheduler.choose(&actions(n)).unwrap();
        scheduler.pick_branch(n).unwrap();
    }
    assert_eq!(format!("{scheduler:?}"), before);
}

/// S1-6: what follows from the transcript is not logged.
#[test]
fn the_deterministic_policy_writes_no_log() {
    let mut scheduler = deterministic();
    scheduler.begin_turn(0, None);
    assert!(scheduler.is_deterministic());
    assert_eq!(scheduler.pick_branch(3), Ok(0));
    assert_eq!(
        play(&mut scheduler, &[branches(3)]).unwrap(),
        branches(3).into_iter().map(|unit| (unit, 0)).collect::<Vec<_>>()
    );
    assert!(scheduler.get_log().is_empty());
    assert_eq!((scheduler.get_position(), scheduler.end_turn()), (0, Ok(None)));
}

/// S1-15
#[test]
fn twenty_five_runs_under_the_deterministic_policy_have_one_trace() {
    let rounds = [ids(["[]"]), ids(["[]", "[p0]", "[p1]", "[h0]"]), ids(["[p0]", "[p1]"])];
    let trace = play(&mut deterministic(), &rounds).unwrap();
    assert_eq!(trace.len(), 7);
    for _ in 0..25 {
        assert_eq!(play(&mut deterministic(), &rounds).unwrap(), trace);
    }
}

/// S1-3: the shortcut of the scheduler, which takes the least without sorting, and the policy itself, which takes the
/// first of the canonical view, are one.
#[test]
fn the_policy_as_an_object_answers_like_the_scheduler_s_shortcut() {
    let mut object = Scheduler::with_policy("deterministic", Box::new(Deterministic));
    let (mut scheduler, mut rng) = (deterministic(), Rng::from_seed(1));
    for n in 1..100 {
        let list = shuffled(&actions(n), &mut rng);
        assert_eq!(object.choose(&list), scheduler.choose(&list));
    }
}

/// S1-76
#[test]
fn every_policy_refuses_to_choose_among_nothing() {
    let replay = || Scheduler::from_log(log([choice(0, &[xor(1)], &xor(1))])).unwrap();
    for mut scheduler in [deterministic(), random(0), replay(), last()] {
        assert_eq!(scheduler.choose(&[]), Err(PolicyError::NoEnabledActions));
        assert_eq!(scheduler.pick_branch(0), Err(PolicyError::NoEnabledActions));
        assert_eq!((scheduler.get_position(), scheduler.get_log().len()), (0, 0));
    }
}

/// S1-2
#[test]
fn policies_are_known_by_name_and_no_other_name_is() {
    assert_eq!("deterministic".parse(), Ok(PolicyKind::Deterministic));
    assert_eq!("random".parse(), Ok(PolicyKind::Random));
    assert_eq!(PolicyKind::default(), PolicyKind::Deterministic);
    for name in ["", "Random", "replay", "fair"] {
        let error = name.parse::<PolicyKind>().unwrap_err();
        assert_eq!(error, PolicyError::UnknownPolicy { name: name.to_owned() });
        assert!(error.to_string().contains("write \"deterministic\" or \"random\""), "{error}");
    }
    let replay = PolicyKind::Replay(log([choice(0, &[xor(1)], &xor(1))]));
    for (kind, name) in
        [(PolicyKind::Deterministic, "deterministic"), (PolicyKind::Random, "random"), (replay, "replay")]
    {
        assert_eq!(kind.to_string(), name);
        assert!(Scheduler::new(kind, PolicyOptions::default()).unwrap().choose(&[xor(1)]).is_ok(), "{name}");
    }
}
