//! What holds for any set, any seed and any order of calls.

use dacapo_core::{Action, ChoiceLog, PolicyError, Scheduler, Seg, UnitId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::kit::*;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

fn seg() -> impl Strategy<Value = Seg> {
    (0..4, prop_oneof![4 => 0..5u32, 1 => u32::MAX - 1..=u32::MAX]).prop_map(|(letter, index)| match letter {
        0 => Seg::P(index),
        1 => Seg::L(index),
        2 => Seg::H(index),
        _ => Seg::A(index),
    })
}

/// A list, and the same list in another order.
fn shuffled_twice(size: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<Action>, Vec<Action>)> {
    vec(action(), size).prop_flat_map(|set| (Just(set.clone()), Just(set).prop_shuffle()))
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => vec(seg(), 0..6).prop_map(|path| Action::Unit(path.into_iter().collect())),
        1 => (1..6u32).prop_map(xor),
    ]
}

proptest! {
    #![proptest_config(cases(10_000))]

    /// S1-4, S1-54, S1-76
    #[test]
    fn the_deterministic_choice_is_the_least_of_any_set((set, list) in shuffled_twice(0..20)) {
        let chosen = deterministic().choose(&set);
        prop_assert_eq!(&deterministic().choose(&list), &chosen);
        prop_assert_eq!(chosen, set.into_iter().min().ok_or(PolicyError::NoEnabledActions));
    }

    /// S1-37
    #[test]
    fn the_order_of_actions_is_total(a in action(), b in action(), c in action()) {
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a.cmp(&b).is_eq(), a == b);
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
    }

    /// S1-4, S1-37, C-17: a policy that takes the last sees the greatest last, whatever the list.
    #[test]
    fn a_policy_sees_any_set_in_order(list in vec(action(), 1..30)) {
        let mut scheduler = last();
        prop_assert_eq!(scheduler.choose(&list).ok(), list.iter().max().cloned());
        let mut sorted = list;
        sorted.sort();
        prop_assert_eq!(scheduler.get_log().iter().next().unwrap().enabled, sorted);
    }

    /// S1-26, S1-39
    #[test]
    fn the_random_choice_follows_from_seed_and_set((set, list) in shuffled_twice(1..20), seed: u64) {
        let (mut one, mut two) = (random(seed), random(seed));
        for _ in 0..3 {
            prop_assert_eq!(one.choose(&set), two.choose(&list));
        }
        prop_assert_eq!(one.get_log(), two.get_log());
    }
}

/// One call of the scheduler's interface.
#[derive(Clone, Debug)]
enum Call {
    Choose(Vec<Action>),
    Branch(u32),
    Round(u32),
    Next { dropped: u32 },
    Turn,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        1 => vec(action(), 0..5).prop_map(Call::Choose),
        1 => (0..5u32).prop_map(Call::Branch),
        1 => (0..20u32).prop_map(Call::Round),
        6 => (0..40u32).prop_map(|dropped| Call::Next { dropped }),
        1 => Just(Call::Turn),
    ]
}

/// Makes the calls; says the answers, and the choices of each turn.
fn make(scheduler: &mut Scheduler, calls: &[Call], recorded: Option<&[ChoiceLog]>) -> (Vec<String>, Vec<ChoiceLog>) {
    let mut dead: Vec<UnitId> = Vec::new();
    let (mut answers, mut turns) = (Vec::new(), Vec::new());
    let of = |turn: usize| recorded.map(|turns| turns[turn].clone().into());
    scheduler.begin_turn(0, of(0));
    for call in calls {
        answers.push(match call {
            Call::Choose(set) => format!("{:?}", scheduler.choose(set)),
            Call::Branch(n) => format!("{:?}", scheduler.pick_branch(*n)),
            Call::Round(n) => {
                // An id is never used twice: who was dropped does not come back.
                let living = branches(*n).into_iter().filter(|unit| !dead.contains(unit)).collect();
                format!("{:?}", scheduler.begin_round(living))
            }
            Call::Next { dropped } => {
                dead.push(UnitId::root().child(Seg::P(*dropped)));
                format!("{:?}", scheduler.next_unit(&mut |unit| !dead.contains(unit)))
            }
            Call::Turn => {
                turns.push(scheduler.end_turn().unwrap().unwrap().into());
                scheduler.begin_turn(turns.len() as u64, of(turns.len()));
                String::new()
            }
        });
    }
    turns.push(scheduler.end_turn().unwrap().unwrap().into());
    (answers, turns)
}

proptest! {
    #![proptest_config(cases(2_000))]

    /// S1-8, S1-36: whatever is asked, in whatever order, a recording of it replays to the same answers and to
    /// the same recording; as recorded turns, as one log, and as a log written by hand from the full sets.
    #[test]
    fn any_recording_replays_to_the_same_answers(calls in vec(call(), 0..60), seed: u64) {
        let (answers, turns) = make(&mut random(seed), &calls, None);
        let (followed, relogged) = make(&mut random(seed ^ 1), &calls, Some(&turns));
        prop_assert_eq!(&followed, &answers);
        let choices = |turns: &[ChoiceLog]| turns.iter().map(|turn| turn.iter().collect()).collect::<Vec<Vec<_>>>();
        prop_assert_eq!(choices(&relogged), choices(&turns));

        let whole = ChoiceLog::from_turns(turns.iter().cloned().map(Into::into)).unwrap();
        let by_hand = ChoiceLog::from_choices(whole.header().clone(), whole.iter()).unwrap();
        for log in [whole, by_hand] {
            prop_assert_eq!(&ChoiceLog::from_bytes(&log.to_bytes()).unwrap(), &log);
            let (replayed, relogged) = make(&mut Scheduler::from_log(log).unwrap(), &calls, None);
            prop_assert_eq!(&replayed, &answers);
            prop_assert_eq!(choices(&relogged), choices(&turns));
        }
    }

    /// S1-24, S1-36
    #[test]
    fn position_and_log_grow_by_one_per_answer(sets in vec(vec(action(), 0..4), 0..40), seed: u64) {
        let mut scheduler = random(seed);
        for set in sets {
            let before = scheduler.get_position();
            let grown = u64::from(scheduler.choose(&set).is_ok());
            prop_assert_eq!(scheduler.get_position(), before + grown);
            prop_assert_eq!(scheduler.get_log().len(), scheduler.get_position());
        }
        let steps: Vec<u64> = scheduler.get_log().iter().map(|choice| choice.step).collect();
        prop_assert_eq!(steps, (0..scheduler.get_position()).collect::<Vec<_>>());
    }
}
