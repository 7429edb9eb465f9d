//! Code that kills its own process.

use std::process::{Command, Output};

use tempfile::TempDir;

/// A file on which a run does harm in one way, life after life.
struct Hazard {
    folder: TempDir,
    way: &'static str,
}

impl Hazard {
    fn new(way: &'static str) -> Self {
        Self { folder: TempDir::new().unwrap(), way }
    }

    fn live(&self) -> Output {
        self.command().output().unwrap()
    }

    /// A life with code that does no harm any more.
    fn live_fixed(&self) -> Output {
        self.command().env("HAZARD_CORRECTED", "1").output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hazard"));
        command.arg(self.folder.path().join("hazard.db")).arg(self.way);
        // Quarantined at the third death, and not delayed before: the test need not wait for delays, nor for twenty deaths.
        command.env("DACAPO_CRASH_DELAY_AFTER", "0").env("DACAPO_CRASH_QUARANTINE_AFTER", "3");
        command
    }

    /// Lives until one does not die, and gives that one and how many died before.
    fn outlive(&self) -> (Output, usize) {
        for deaths in 0..10 {
            let life = self.live();
            if life.status.success() {
                return (life, deaths);
            }
            assert_eq!(life.status.code(), None, "{}: {}", self.way, text(&life.stderr));
        }
        panic!("{}: it is never quarantined", self.way);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The code kills its process three times; then it is quarantined, and the process stays up. All healthy work is done, also
/// work that ran beside it, and what is released goes on with fixed code.
#[track_caller]
fn assert_quarantined(way: &'static str, words: &[&str]) {
    let hazard = Hazard::new(way);
    let (survivor, deaths) = hazard.outlive();
    let said = text(&survivor.stdout);
    assert_eq!(deaths, 3, "{way}: {said}");
    assert!(said.contains("all that is healthy is done"), "{way}: {said}");
    assert!(said.contains("died 3 times") && said.contains("Handle::release"), "{way}: {said}");
    assert!(said.contains("stuck: [\"deadly\"]"), "{way}: {said}");
    for word in words {
        assert!(said.contains(word), "{way}: {word:?} is not in {said}");
    }
    let complaint = text(&survivor.stderr);
    assert_eq!(complaint.matches("is quarantined").count(), 1, "{way}: {complaint}");

    let again = hazard.live();
    assert!(again.status.success(), "{way}: the next process finds it quarantined: {}", text(&again.stderr));
    let reminder = text(&again.stderr);
    assert_eq!(reminder.matches("is quarantined").count(), 1, "{way}: each process says it once: {reminder}");
    let fixed = hazard.live_fixed();
    let said = text(&fixed.stdout);
    assert!(said.ends_with("no harm done\n"), "{way}: {said}{}", text(&fixed.stderr));
    assert_eq!(hazard.live_fixed().status.code(), Some(1), "{way}: there is nothing more to release");
}

#[test]
fn an_activity_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("activity", &["activity \"explode\"", "quarantined: it is not tried until it is released"]);
}

#[test]
fn a_turn_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("turn", &["workflow \"deadly\""]);
}

#[test]
fn a_turn_that_overflows_its_stack_is_quarantined_after_three_deaths() {
    assert_quarantined("overflow", &["workflow \"deadly\""]);
}

/// Nothing of it is stored when it kills its process for the first time; its caller starts it again and again.
#[test]
fn a_first_turn_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("first-turn", &["workflow \"deadly\""]);
}

#[test]
fn local_work_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("local-activity", &["workflow \"deadly\""]);
    assert_quarantined("closure", &["workflow \"deadly\""]);
}

#[test]
fn query_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("query", &["it is not asked: ", "workflow \"deadly\""]);
    assert_quarantined("busy-query", &["it is not asked: ", "workflow \"deadly\""]);
}
