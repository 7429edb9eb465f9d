//! What must never change: the generator, the draws of the policy, the forms of a log. A run recorded today is replayed
//! by every later release.

use std::fmt::Write;

use dacapo_core::{ChoiceLog, Rng, Scheduler};
use dacapo_testkit::assert_golden;
use expect_test::expect_file;

use crate::kit::*;

/// S1-38, S1-64, C-18: the first numbers are those that the reference implementation gives for seed 0.
#[test]
fn the_generator_gives_the_numbers_it_always_gave() {
    let mut rng = Rng::from_seed(0);
    assert_eq!(
        [rng.next_u64(), rng.next_u64(), rng.next_u64()],
        [5987356902031041503, 7051070477665621255, 6633766593972829180]
    );

    let mut text = String::from("xoshiro256++ v1\n");
    for seed in [0, 1, 42, u64::MAX] {
        let mut rng = Rng::from_seed(seed);
        let words: Vec<_> = (0..6).map(|_| format!("{:016x}", rng.next_u64())).collect();
        let below: Vec<_> = (0..16).map(|_| rng.below(10).to_string()).collect();
        writeln!(text, "seed {seed}: {} below 10: {}", words.join(" "), below.join(" ")).unwrap();
    }
    expect_file!["../golden/generator-v1.txt"].assert_eq(&text);
}

/// S1-38: a seed and a turn decide an order for ever.
#[test]
fn the_random_policy_draws_the_orders_it_always_drew() {
    let mut text = String::new();
    for seed in [0, 7] {
        let mut scheduler = random(seed);
        for turn in [0, 1, 1000] {
            scheduler.begin_turn(turn, None);
            let order: Vec<_> = play(&mut scheduler, &[branches(6)])
                .unwrap()
                .iter()
                .map(|(unit, branch)| format!("{unit}{branch}"))
                .collect();
            writeln!(text, "seed {seed} turn {turn}: {}", order.join(" ")).unwrap();
        }
    }
    expect_file!["../golden/random-policy-v1.txt"].assert_eq(&text);
}

/// One of everything that a log can hold.
fn sample() -> ChoiceLog {
    let mut scheduler = random(42);
    let rounds = [ids(["[]"]), ids(["[]"]), ids(["[]", "[p0]", "[p1,l0]", "[h2,a0]"]), ids(["[p0]", "[p1,l0]"])];
    play(&mut scheduler, &rounds).unwrap();
    for _ in 0..2 {
        scheduler.begin_round(branches(4)).unwrap();
        while scheduler.next_unit(&mut |unit| *unit != id("[p2]")).unwrap().is_some() {}
    }
    for _ in 0..3 {
        scheduler.choose(&[unit("[]")]).unwrap();
    }
    scheduler.choose(&[unit("[]"), unit("[]"), xor(2)]).unwrap();
    scheduler.get_log().clone()
}

/// S1-38, S1-74
#[test]
fn a_log_has_the_bytes_and_the_json_it_always_had() {
    let log = sample();
    let hex: String = log
        .to_bytes()
        .chunks(32)
        .map(|line| line.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}")) + "\n")
        .collect();
    let json = log.to_json() + "\n";
    let number = serde_json::from_str::<serde_json::Value>(&json).unwrap()["format"].as_u64().unwrap();
    assert_golden(env!("CARGO_MANIFEST_DIR"), "choice-log", number, "hex", &hex);
    assert_golden(env!("CARGO_MANIFEST_DIR"), "choice-log", number, "json", &json);
}

/// S1-38, S1-74: read from the files, not from memory.
#[test]
fn a_log_of_the_first_format_is_read_and_replayed() {
    let hex = include_str!("../golden/choice-log-v1.hex").lines().collect::<String>();
    let bytes: Vec<u8> =
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect();
    let stored = ChoiceLog::from_bytes(&bytes).unwrap();
    assert_eq!(ChoiceLog::from_json(include_str!("../golden/choice-log-v1.json")).as_ref(), Ok(&stored));
    let mut replay = Scheduler::from_log(stored.clone()).unwrap();
    for choice in stored.iter() {
        assert_eq!(replay.choose(&choice.enabled), Ok(choice.chosen));
    }
}
