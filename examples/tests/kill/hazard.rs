//! A program whose code kills its own process, started again and again.

use std::process::{Command, Output};

use tempfile::TempDir;

/// A store on which a run does harm in one way, life after life of a process.
pub(crate) struct Hazard {
    folder: TempDir,
    /// None: a file in the folder.
    url: Option<String>,
    way: &'static str,
}

impl Hazard {
    /// On this database, with a local folder of the process. None: on a file of its own.
    pub(crate) fn on(url: Option<String>, way: &'static str) -> Self {
        Self { folder: TempDir::new().unwrap(), url, way }
    }

    pub(crate) fn live(&self) -> Output {
        self.command().output().unwrap()
    }

    /// A life with code that does no harm any more.
    fn live_fixed(&self) -> Output {
        self.command().env("HAZARD_CORRECTED", "1").output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hazard"));
        match &self.url {
            None => command.arg(self.folder.path().join("hazard.db")),
            Some(url) => command.arg(url).env("DACAPO_STATE_DIR", self.folder.path().join("state")),
        };
        command.arg(self.way);
        // Quarantined at the third death, and not delayed before: the test need not wait for delays, nor for twenty deaths.
        command.env("DACAPO_CRASH_DELAY_AFTER", "0").env("DACAPO_CRASH_QUARANTINE_AFTER", "3");
        command
    }

    /// Lives until one does not die, and gives that one and how many died before.
    pub(crate) fn outlive(&self) -> (Output, usize) {
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

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The code kills its process three times; then it is quarantined, and the process stays up. All healthy work is done, also
/// work that ran beside it, and what is released goes on with fixed code.
#[track_caller]
pub(crate) fn assert_quarantined(hazard: &Hazard, words: &[&str]) {
    let way = hazard.way;
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
