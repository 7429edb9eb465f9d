//! The program of the front page, killed as its transcript there shows.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dacapo_engine::{Reader, RunId};
use dacapo_sqlite::SqliteStore;

fn start(file: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_journey")).arg(file).stdout(Stdio::piped()).spawn().unwrap()
}

/// Returns the output up to and including this text, and kills the process then.
fn kill_at(mut journey: Child, words: &str) -> String {
    let (mut said, mut output) = (Vec::new(), journey.stdout.take().unwrap());
    let mut byte = [0];
    while !String::from_utf8_lossy(&said).ends_with(words) {
        if output.read(&mut byte).unwrap() == 0 {
            break;
        }
        said.extend(byte);
    }
    journey.kill().unwrap();
    journey.wait().unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.ends_with(words), "{said}");
    said
}

/// S4-51
#[test]
fn a_journey_that_was_killed_goes_on_with_the_step_it_was_at() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journey.db").to_str().unwrap().to_owned();
    let said = kill_at(start(&file), "step  3 of 13  looking for a train Barcelona - Lyon ...");
    assert!(said.starts_with("A new journey."), "{said}");
    let said = kill_at(start(&file), "step  4 of 13  looking for a train Lyon - Zürich ...");
    let expected = "This journey was begun before:
step  1 of 13  Lisboa - Madrid: EC 115
step  2 of 13  Madrid - Barcelona: EC 118
going on with step 3 of 13
step  3 of 13  looking for a train Barcelona - Lyon ... done
step  4 of 13  looking for a train Lyon - Zürich ...";
    assert_eq!(said, expected);
}

/// `journey | head -1`: `println!` panicked, so did every attempt, and the journey failed for good.
#[test]
fn journey_goes_on_when_its_output_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journey.db").to_str().unwrap().to_owned();
    let mut journey = start(&file);
    drop(journey.stdout.take());
    let turns = || {
        let reader = Reader::new(Arc::new(SqliteStore::open_read_only(&file).ok()?));
        reader.describe(&RunId::of("journey")).ok().map(|run| (run.turns, run.pending))
    };
    let began = Instant::now();
    let retried = loop {
        assert_eq!(journey.try_wait().unwrap(), None, "it goes on");
        assert!(began.elapsed() < Duration::from_secs(60), "the first step neither ends nor fails");
        match turns() {
            Some((1, pending)) if pending.iter().any(|activity| activity.attempt > 1) => break true,
            Some((2.., _)) => break false,
            _ => std::thread::yield_now(),
        }
    };
    journey.kill().unwrap();
    journey.wait().unwrap();
    assert!(!retried, "its first step has failed");
}
