//! The forms of actions and logs: what they look like outside, and that they come back unchanged.

use dacapo_core::{Action, Choice, ChoiceLog, PolicyError, Rng, Scheduler, TurnChoices};
use expect_test::expect;

use crate::kit::*;

/// S1-16
#[test]
fn actions_have_stable_forms_and_branch_zero_has_none() {
    let forms = |action: &Action| {
        let bytes = minicbor::to_vec(action).unwrap();
        assert_eq!(minicbor::decode::<Action>(&bytes).unwrap(), *action);
        let json = serde_json::to_string(action).unwrap();
        assert_eq!(serde_json::from_str::<Action>(&json).unwrap(), *action);
        (action.to_string(), json, bytes)
    };
    let text = str::to_owned;
    assert_eq!(forms(&unit("[p1,l0]")), (text("[p1,l0]"), text(r#"{"unit":"[p1,l0]"}"#), vec![0x82, 4, 1]));
    assert_eq!(forms(&xor(2)), (text("xor 2"), text(r#"{"xor_branch":2}"#), vec![2]));

    assert_eq!(Action::branch(0), None);
    assert!(serde_json::from_str::<Action>(r#"{"xor_branch":0}"#).is_err());
    assert!(minicbor::decode::<Action>(&[0]).is_err());
}

/// S1-75, C-40
#[test]
fn an_action_of_an_unknown_kind_makes_a_log_invalid() {
    let log = log([choice(0, &[unit("[p0]"), xor(7)], &xor(7))]);
    let json = log.to_json().replace("xor_branch", "and_branch");
    assert!(matches!(ChoiceLog::from_json(&json), Err(PolicyError::InvalidLog { .. })));
    // In binary an action is an array or a number; here the 7 becomes something else.
    let good = log.to_bytes();
    let seven = good.iter().rposition(|byte| *byte == 7).unwrap();
    for kind in [0x60, 0xa0, 0xf5, 0xf6, 0xc1, 0x20] {
        let mut bytes = good.clone();
        bytes[seven] = kind;
        assert!(matches!(ChoiceLog::from_bytes(&bytes), Err(PolicyError::InvalidLog { .. })), "{kind:#x}");
    }
}

/// S1-18, S1-74
#[test]
fn every_log_comes_back_from_binary_and_from_json() {
    for seed in 0..50 {
        let log = some_log(seed);
        assert_eq!(ChoiceLog::from_bytes(&log.to_bytes()).as_ref(), Ok(&log));
        assert_eq!(ChoiceLog::from_json(&log.to_json()).as_ref(), Ok(&log));
        let turn = TurnChoices::from(log.clone());
        assert_eq!(minicbor::decode::<TurnChoices>(&minicbor::to_vec(&turn).unwrap()).unwrap(), turn);
        assert_eq!(serde_json::from_str::<TurnChoices>(&serde_json::to_string(&turn).unwrap()).unwrap(), turn);

        // Exported with full sets and imported again, it says the same.
        let choices: Vec<Choice> = log.iter().collect();
        let exported = serde_json::to_string(&choices).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Choice>>(&exported).unwrap(), choices);
        let imported = ChoiceLog::from_choices(log.header().clone(), choices.clone()).unwrap();
        assert_eq!(imported.iter().collect::<Vec<_>>(), choices);
        assert_eq!(imported.len(), log.len());
    }
}

/// A log with rounds, drops, branch points and lists in it.
pub(crate) fn some_log(seed: u64) -> ChoiceLog {
    let (mut scheduler, mut rng) = (random(seed), Rng::from_seed(seed));
    for _ in 0..8 {
        scheduler.begin_round(branches(rng.below(9) as u32)).unwrap();
        let dropped = rng.below(9) as u32;
        while scheduler.next_unit(&mut |unit| unit.path()[0].index() != dropped).unwrap().is_some() {
            for _ in 0..rng.below(3) {
                scheduler.pick_branch(rng.below(5) as u32 + 1).unwrap();
            }
        }
        let mut list = actions(rng.below(5) as u32 + 1);
        list.push(xor(rng.below(3) as u32 + 1));
        scheduler.choose(&list).unwrap();
    }
    scheduler.get_log().clone()
}

/// S1-61: what a store keeps of a log with full sets.
#[test]
fn a_set_is_written_once_for_all_that_is_picked_from_it() {
    let mut scheduler = Scheduler::with_policy("last", Box::new(Last));
    for _ in 0..2 {
        scheduler.begin_round(branches(3)).unwrap();
        while scheduler.next_unit(&mut |unit| *unit != id("[p1]")).unwrap().is_some() {}
    }
    scheduler.pick_branch(3).unwrap();
    for _ in 0..40 {
        scheduler.choose(&[unit("[]")]).unwrap();
    }
    let json: serde_json::Value = serde_json::from_str(&scheduler.get_log().to_json()).unwrap();
    expect![[r#"
        {"algorithm":"last","first_step":0,"format":1,"items":[{"set":[{"unit":"[p0]"},{"unit":"[p1]"},{"unit":"[p2]"}]},{"pick":2},{"drop":1},{"pick":0},"again",{"pick":2},{"drop":1},{"pick":0},{"branch":{"chosen":2,"of":3}},{"set":[{"unit":"[]"}]},{"lone":40}],"seed":null,"version":0}
    "#]]
    .assert_eq(&format!("{json}\n"));
}
