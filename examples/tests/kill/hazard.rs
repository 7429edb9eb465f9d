//! Code that kills its own process.

use std::process::{Command, Output};

use tempfile::TempDir;

/// One life of the program on this folder.
fn live(folder: &TempDir, words: &[&str]) -> Output {
    let file = folder.path().join("hazard.db");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hazard"));
    command.arg(file).args(words).output().unwrap()
}

/// An activity that aborts takes its process with it three times; then it is quarantined, and the process stays up. All that
/// is healthy is done, whatever ran beside it, and what is released is tried again.
#[test]
fn an_activity_that_kills_its_process_is_quarantined_after_three_deaths() {
    let folder = TempDir::new().unwrap();
    let mut deaths = 0;
    let survivor = loop {
        let life = live(&folder, &[]);
        if life.status.success() {
            break life;
        }
        assert_eq!(life.status.code(), None, "{}", String::from_utf8_lossy(&life.stderr));
        deaths += 1;
        assert!(deaths < 10, "it is never quarantined");
    };
    assert_eq!(deaths, 3);
    let said = String::from_utf8(survivor.stdout).unwrap();
    assert!(said.contains("all that is healthy is done"), "{said}");
    assert!(said.contains("quarantined: it is not tried until it is released"), "{said}");
    assert!(said.contains("died 3 times"), "{said}");
    let complaint = String::from_utf8(survivor.stderr).unwrap();
    assert_eq!(complaint.matches("is quarantined").count(), 1, "{complaint}");

    let again = live(&folder, &[]);
    assert!(again.status.success(), "the next process finds it quarantined");
    assert_eq!(String::from_utf8(again.stderr).unwrap(), "", "it is said loud once");
    let mended = live(&folder, &["mended"]);
    let said = String::from_utf8(mended.stdout).unwrap();
    assert!(said.ends_with("no harm done\n"), "{said}{}", String::from_utf8_lossy(&mended.stderr));
    assert!(live(&folder, &["mended"]).status.code() == Some(1), "there is nothing more to release");
}
