//! The random policy and its log.

use std::collections::BTreeSet;

use dacapo_core::{Action, Choice, PolicyError, PolicyKind, PolicyOptions, Rng, Scheduler};

use crate::kit::*;

fn picks(scheduler: &mut Scheduler, set: &[Action], times: usize) -> Vec<Action> {
    (0..times).map(|_| scheduler.choose(set).unwrap()).collect()
}

/// S1-5, S1-70
#[test]
fn ten_thousand_draws_over_four_actions_are_uniform() {
    let (mut scheduler, set) = (random(1), actions(4));
    let mut counts = [0; 4];
    for pick in picks(&mut scheduler, &set, 10_000) {
        counts[set.iter().position(|action| *action == pick).unwrap()] += 1;
    }
    assert!(is_uniform(&counts), "{counts:?}");
}

/// S1-23
#[test]
fn draws_are_uniform_over_two_to_ten_actions_and_branches() {
    for n in 2..=10u32 {
        let (mut scheduler, set) = (random(u64::from(n)), actions(n));
        let mut counts = vec![[0; 2]; n as usize];
        for _ in 0..10_000 {
            let pick = scheduler.choose(&set).unwrap();
            counts[set.iter().position(|action| *action == pick).unwrap()][0] += 1;
            counts[scheduler.pick_branch(n).unwrap() as usize][1] += 1;
        }
        for kind in 0..2 {
            let counts: Vec<u64> = counts.iter().map(|both| both[kind]).collect();
            assert!(is_uniform(&counts), "{n}: {counts:?}");
        }
    }
}

/// S1-23: each of the six orders of three units is as likely as the other.
#[test]
fn orders_of_a_round_are_uniform() {
    let mut counts = std::collections::BTreeMap::<Vec<_>, u64>::new();
    let mut scheduler = random(5);
    for turn in 0..6_000 {
        scheduler.begin_turn(turn, None);
        let order = play(&mut scheduler, &[branches(3)]).unwrap().into_iter().map(|(unit, _)| unit).collect();
        *counts.entry(order).or_default() += 1;
    }
    let counts: Vec<u64> = counts.into_values().collect();
    assert!(counts.len() == 6 && is_uniform(&counts), "{counts:?}");
}

/// S1-7, S1-26
#[test]
fn one_seed_gives_one_sequence_and_another_seed_another() {
    let set = actions(5);
    let mut alone = random(1);
    let sequence = picks(&mut alone, &set, 1000);
    let (mut again, mut other) = (random(1), random(2));
    let mut interleaved = Vec::new();
    let mut others = Vec::new();
    for _ in 0..1000 {
        interleaved.push(again.choose(&set).unwrap());
        others.push(other.choose(&set).unwrap());
    }
    assert_eq!(interleaved, sequence);
    assert_ne!(others, sequence);
}

/// S1-47
#[test]
fn random_policy_takes_each_of_two_actions_within_a_hundred_draws() {
    let distinct: BTreeSet<_> = picks(&mut random(3), &actions(2), 100).into_iter().collect();
    assert_eq!(distinct.len(), 2);
}

/// S1-6, S1-48
#[test]
fn one_choice_makes_one_entry_with_step_zero_the_set_and_the_pick() {
    let (mut scheduler, set) = (random(0), [unit("[p0]"), xor(1)]);
    let chosen = scheduler.choose(&set).unwrap();
    assert_eq!(scheduler.get_log().iter().collect::<Vec<_>>(), [choice(0, &set, &chosen)]);
}

/// S1-6, S1-24, S1-25, S1-61
#[test]
fn the_log_holds_every_decision_in_order_with_the_set_that_was_seen() {
    let (mut scheduler, mut rng) = (random(9), Rng::from_seed(9));
    let mut seen: Vec<Choice> = Vec::new();
    for step in 0..500 {
        let n = rng.below(6) as u32 + 1;
        let mut set = actions(n);
        let chosen = match rng.below(3) {
            0 => {
                set = (1..=n).map(xor).collect();
                xor(scheduler.pick_branch(n).unwrap() + 1)
            }
            1 => scheduler.choose(&set).unwrap(),
            _ => {
                set.push(xor(7));
                scheduler.choose(&shuffled(&set, &mut rng)).unwrap()
            }
        };
        seen.push(Choice { step, enabled: set, chosen });
    }
    assert_eq!(scheduler.get_log().iter().collect::<Vec<_>>(), seen);
    assert_eq!((scheduler.get_log().len(), scheduler.get_position()), (500, 500));
    assert_eq!(scheduler.get_log().iter().next().unwrap().step, 0);
}

/// S1-4, S1-39, C-17
#[test]
fn the_random_policy_chooses_from_the_set_and_not_from_the_list() {
    let (mut sorted, mut messy, mut rng) = (random(4), random(4), Rng::from_seed(4));
    let set = actions(20);
    for _ in 0..200 {
        assert_eq!(messy.choose(&shuffled(&set, &mut rng)), sorted.choose(&set));
    }
    assert_eq!(messy.get_log(), sorted.get_log());
}

/// S1-60
#[test]
fn duplicates_survive_logging_and_replay() {
    let set = [unit("[p0]"), unit("[p0]"), unit("[p0]"), xor(1), xor(1)];
    let mut scheduler = random(2);
    let chosen = picks(&mut scheduler, &set, 20);
    assert!(scheduler.get_log().iter().all(|choice| choice.enabled == set));
    let mut replay = Scheduler::from_log(scheduler.get_log().clone()).unwrap();
    assert_eq!(picks(&mut replay, &set, 20), chosen);
    assert!(matches!(
        Scheduler::from_log(scheduler.get_log().clone()).unwrap().choose(&set[1..]),
        Err(PolicyError::Divergence { .. })
    ));
}

/// S1-60
#[test]
fn a_set_of_ten_thousand_is_chosen_from_logged_and_replayed() {
    let (set, mut scheduler) = (actions(10_000), random(6));
    let chosen = picks(&mut scheduler, &set, 3);
    assert!(scheduler.get_log().iter().all(|choice| choice.enabled == set));
    let mut replay = Scheduler::from_log(scheduler.get_log().clone()).unwrap();
    assert_eq!(picks(&mut replay, &set, 3), chosen);
}

/// S1-27, S1-38, C-18
#[test]
fn without_a_seed_the_seed_is_zero_and_the_header_says_so() {
    let mut unseeded = Scheduler::new(PolicyKind::Random, PolicyOptions::default()).unwrap();
    let mut again = Scheduler::new(PolicyKind::Random, PolicyOptions::default()).unwrap();
    let sequence = picks(&mut unseeded, &actions(9), 50);
    assert_eq!(picks(&mut again, &actions(9), 50), sequence);
    assert_eq!(picks(&mut random(0), &actions(9), 50), sequence);
    let header = unseeded.get_log().header();
    assert_eq!((header.algorithm.as_str(), header.version, header.seed), ("xoshiro256++", 1, Some(0)));
    assert_eq!(random(77).get_log().header().seed, Some(77));
    assert_eq!(last().get_log().header().to_string(), "last v0");
}

/// S1-40, S1-65, C-19
#[test]
fn a_full_log_refuses_the_next_choice_and_keeps_the_first() {
    assert_eq!(PolicyOptions::default().max_entries, None);
    let options = PolicyOptions { max_entries: Some(3), ..PolicyOptions::default() };
    let mut scheduler = Scheduler::new(PolicyKind::Random, options.clone()).unwrap();
    let chosen = picks(&mut scheduler, &actions(4), 3);
    let full = scheduler.get_log().clone();
    for _ in 0..2 {
        assert_eq!(scheduler.choose(&actions(4)), Err(PolicyError::LogFull { limit: 3 }));
        assert_eq!(scheduler.pick_branch(2), Err(PolicyError::LogFull { limit: 3 }));
    }
    scheduler.begin_round(branches(2)).unwrap();
    assert_eq!(scheduler.next_unit(&mut |_| true), Err(PolicyError::LogFull { limit: 3 }));
    assert_eq!(*scheduler.get_log(), full);
    assert_eq!(full.iter().map(|choice| choice.chosen).collect::<Vec<_>>(), chosen);

    let mut unlimited = random(0);
    picks(&mut unlimited, &actions(4), 4);
    let replay = PolicyKind::Replay(unlimited.get_log().clone());
    assert_eq!(Scheduler::new(replay, options).unwrap_err(), PolicyError::LogFull { limit: 3 });
}

/// S1-42, S1-72
#[test]
fn schedulers_on_two_threads_do_not_disturb_each_other() {
    let alone: Vec<_> = [1, 2].map(|seed| picks(&mut random(seed), &actions(7), 2000)).into();
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads = [1, 2].map(|seed| {
            let mut scheduler = random(seed);
            scope.spawn(move || picks(&mut scheduler, &actions(7), 2000))
        });
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(together, alone);
}
