//! Logs that are none: each is refused with its reason, and nothing panics.

use dacapo_core::{Choice, ChoiceLog, LogHeader, Name, PolicyError, PolicyKind, PolicyOptions, Rng, Scheduler};

use crate::forms::some_log;
use crate::kit::*;

fn reason<T: std::fmt::Debug>(result: Result<T, PolicyError>) -> String {
    match result {
        Err(PolicyError::InvalidLog { reason }) => reason,
        other => panic!("{other:?} is no invalid log"),
    }
}

/// S1-41, S1-71
#[test]
fn each_way_to_corrupt_a_list_of_choices_has_its_reason() {
    let (set, good) = (actions(3), |step| choice(step, &actions(3), &unit("[p1]")));
    let from = |choices: Vec<Choice>| reason(ChoiceLog::from_choices(by_hand(), choices));
    assert_eq!(from(vec![good(0), good(2)]), "step 2 stands where step 1 should");
    assert_eq!(from(vec![good(4), good(4)]), "step 4 stands where step 5 should");
    assert_eq!(from(vec![choice(0, &set, &unit("[p7]"))]), "step 0: [p7] was chosen and is not in the set");
    assert_eq!(from(vec![choice(0, &[], &unit("[p1]"))]), "a set is empty");
    assert_eq!(from(vec![choice(0, &units(["[p1]", "[p0]"]), &unit("[p1]"))]), "a set is not sorted");
    assert_eq!(from(vec![choice(0, &[xor(1), unit("[p0]")], &xor(1))]), "a set is not sorted");
    assert_eq!(from(vec![good(u64::MAX)]), "its steps are numbered beyond what a run can reach");
    assert!(
        serde_json::from_str::<Choice>(r#"{"step":-1,"enabled":[{"xor_branch":1}],"chosen":{"xor_branch":1}}"#)
            .is_err()
    );
}

/// S1-41, S1-71: JSON in which one thing is wrong.
#[test]
fn each_way_to_corrupt_a_json_log_has_its_reason() {
    let log = |items: &str| {
        let head = r#"{"format":1,"algorithm":"by hand","version":0,"seed":null,"first_step":0,"items":"#;
        ChoiceLog::from_json(&format!("{head}[{items}]}}"))
    };
    let set = r#"{"set":[{"unit":"[p0]"},{"unit":"[p1]"}]}"#;
    assert_eq!(log(&format!(r#"{set},{{"pick":1}},{{"pick":0}},"again",{{"drop":0}},{{"pick":1}}"#)).unwrap().len(), 3);
    let wrong = [
        (format!(r#"{set},{{"pick":2}}"#), "item 1: what was chosen is not in the set"),
        (format!(r#"{set},{{"pick":1}},{{"pick":1}}"#), "item 2: what was chosen is not in the set"),
        (format!(r#"{set},{{"drop":1}},{{"pick":1}}"#), "item 2: what was chosen is not in the set"),
        (format!(r#"{set},{{"pick":1}},{{"drop":1}}"#), "item 2: what was dropped is not in the set"),
        (format!(r#"{set},{{"lone":4}}"#), "item 1: a run of choices from a set that does not have one member"),
        (r#"{"lone":4}"#.to_owned(), "item 0: a run of choices from a set that does not have one member"),
        (r#"{"set":[{"unit":"[]"}]},{"lone":0}"#.to_owned(), "item 1: a run of no or too many choices"),
        (format!(r#"{{"set":[{{"unit":"[]"}}]}},{{"lone":{}}}"#, u64::MAX), "item 1: a run of no or too many choices"),
        (r#"{"pick":0}"#.to_owned(), "item 0: what was chosen is not in the set"),
        (r#""again""#.to_owned(), "item 0: there is no set to open again"),
        (r#"{"set":[]}"#.to_owned(), "a set is empty"),
        (r#"{"set":[{"unit":"[p1]"},{"unit":"[p0]"}]}"#.to_owned(), "a set is not sorted"),
        (r#"{"branch":{"of":0,"chosen":0}}"#.to_owned(), "item 0: the branch that was chosen does not exist"),
        (r#"{"branch":{"of":3,"chosen":3}}"#.to_owned(), "item 0: the branch that was chosen does not exist"),
        (r#"{"branch":{"of":1048577,"chosen":3}}"#.to_owned(), "item 0: an XOR point has too many branches"),
    ];
    for (items, expected) in wrong {
        let reason = reason(log(&items));
        assert!(reason.contains(expected), "{items}: {reason}");
    }
    for items in [r#"{"pick":-1}"#, r#"{"jump":1}"#, r#"{"set":[{"unit":"p0"}]}"#, r#"{"pick":1,"drop":1}"#, "7"] {
        reason(log(items));
    }
    for whole in ["", "{}", "null", "[]", r#"{"format":1}"#] {
        reason(ChoiceLog::from_json(whole));
    }
}

/// S1-38, S1-75, C-40
#[test]
fn a_log_of_a_later_version_is_refused_by_name() {
    let log = random(1).get_log().clone();
    let later = "it is written in format 2, and this program reads format 1";
    assert!(reason(ChoiceLog::from_json(&log.to_json().replace(r#""format":1"#, r#""format":2"#))).contains(later));
    let mut bytes = log.to_bytes();
    bytes[1] = 2;
    assert!(reason(ChoiceLog::from_bytes(&bytes)).contains(later));

    let drawn = "it was drawn by xoshiro256++ v2, seed 1, which is newer than this program";
    assert!(reason(ChoiceLog::from_json(&log.to_json().replace(r#""version":1"#, r#""version":2"#))).contains(drawn));
    let header = LogHeader { algorithm: Name::from_static("xoshiro256++"), version: 2, seed: Some(1) };
    assert_eq!(reason(ChoiceLog::from_choices(header, [])), drawn);
}

/// S1-41
#[test]
fn a_log_cut_at_any_byte_is_invalid() {
    for seed in 0..2 {
        let log = some_log(seed);
        let bytes = log.to_bytes();
        for end in 0..bytes.len() {
            reason(ChoiceLog::from_bytes(&bytes[..end]));
        }
        let json = log.to_json();
        for end in 0..json.len() {
            reason(ChoiceLog::from_json(&json[..end]));
        }
        assert_eq!(reason(ChoiceLog::from_bytes(&[&bytes[..], &[0]].concat())), "1 bytes follow its end");
    }
}

/// S1-41: a flipped bit makes a log invalid or another valid log, which can be used like any.
#[test]
fn a_log_with_any_bit_flipped_is_invalid_or_sound() {
    let mut invalid = 0;
    for seed in 0..2 {
        let bytes = some_log(seed).to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match ChoiceLog::from_bytes(&bytes) {
                Ok(log) => use_up(&log),
                Err(error) => {
                    assert!(matches!(error, PolicyError::InvalidLog { .. }), "{error}");
                    invalid += 1;
                }
            }
        }
    }
    assert!(invalid > 1000, "{invalid}");
}

/// S1-41
#[test]
fn garbage_is_invalid_or_sound() {
    let mut rng = Rng::from_seed(41);
    let template = some_log(1).to_bytes();
    for _ in 0..20_000 {
        // Half of it has a good beginning, so that the garbage gets as far as the items.
        let good = if rng.below(2) == 0 { 0 } else { rng.below(template.len() as u64) as usize };
        let mut bytes = template[..good].to_vec();
        bytes.extend((0..rng.below(60)).map(|_| rng.next_u64() as u8));
        bytes.push(0xff);
        match ChoiceLog::from_bytes(&bytes) {
            Ok(log) => use_up(&log),
            Err(error) => assert!(matches!(error, PolicyError::InvalidLog { .. }), "{error}"),
        }
        assert!(matches!(ChoiceLog::from_json(&String::from_utf8_lossy(&bytes)), Err(PolicyError::InvalidLog { .. })));
    }
}

/// S1-41: lengths that promise more than memory holds are not believed.
#[test]
fn log_that_announces_more_items_than_it_has_is_refused() {
    let head = random(1).get_log().to_bytes();
    let head = &head[..head.len() - 1];
    let huge = u64::MAX.to_be_bytes();
    for promise in [[head, &[0x9b], &huge].concat(), [head, &[0x81, 0x9b], &huge, &[0xff]].concat()] {
        assert!(!reason(ChoiceLog::from_bytes(&promise)).is_empty());
    }
}

/// Reads a log through, encodes it and plays it against questions it does not expect.
fn use_up(log: &ChoiceLog) {
    let mut count = 0;
    for choice in log.iter().take(300) {
        assert!(choice.enabled.contains(&choice.chosen));
        assert_eq!(choice.step, log.first_step() + count);
        count += 1;
    }
    assert_eq!(count, log.len().min(300));
    assert_eq!(ChoiceLog::from_bytes(&log.to_bytes()).as_ref(), Ok(log));
    assert_eq!(ChoiceLog::from_json(&log.to_json()).as_ref(), Ok(log));
    for divergence in [dacapo_core::Divergence::Strict, dacapo_core::Divergence::Lenient] {
        let options = PolicyOptions { divergence, ..PolicyOptions::default() };
        let mut replay = Scheduler::new(PolicyKind::Replay(log.clone()), options).unwrap();
        for turn in 0..3 {
            replay.begin_turn(turn, Some(log.clone().into()).filter(|_| turn == 1));
            for n in 0..9 {
                let _ = replay.pick_branch(n);
                let _ = replay.choose(&actions(n));
                replay.begin_round(branches(n)).unwrap();
                while let Ok(Some(_)) = replay.next_unit(&mut |unit| unit.path()[0].index() != 2) {
                    let _ = replay.pick_branch(n);
                    let _ = replay.choose(&actions(n));
                }
            }
            let _ = replay.end_turn();
        }
    }
}
