//! The shop of the demo, killed at random moments.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::shop::command;

fn demo(folder: &std::path::Path) -> std::process::Command {
    let mut command = command(None);
    command.args(["demo", "--json", "-n", "40"]).arg(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the demo to its end, and returns its report.
fn to_its_end(folder: &std::path::Path) -> Value {
    let output = demo(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn shop_that_is_killed_ten_times_ends_with_the_same_balances() {
    let (calm, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = to_its_end(calm.path());
    let sum: i64 = expected["accounts"].as_array().unwrap().iter().map(|account| account[1].as_i64().unwrap()).sum();
    assert_eq!((sum, expected["accounts"].as_array().unwrap().len()), (0, 6));
    assert!(expected["repeated"].as_u64().unwrap() > 0, "some payments are tried again");
    let random = || u64::from(SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos());
    for _ in 0..10 {
        let mut process = demo(killed.path()).spawn().unwrap();
        // sleep: the process is killed at any moment.
        std::thread::sleep(Duration::from_millis(random() % 400));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let report = to_its_end(killed.path());
    assert_eq!((&report["orders"], &report["accounts"]), (&expected["orders"], &expected["accounts"]));
    // Once more: everything is done, and nothing is done again.
    let again = to_its_end(killed.path());
    assert_eq!((&again["accounts"], &again["repeated"]), (&expected["accounts"], &0.into()));
}
