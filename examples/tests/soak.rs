//! Endurance: mixed load, kills, evictions, retention and backups all at once, for as long as `DACAPO_SOAK_SECONDS` says. In
//! the end every run that was acknowledged is accounted for, with the right value, and the file is empty and sound.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dacapo::Dacapo;

struct Soak {
    folder: tempfile::TempDir,
    lives: u64,
    dice: u64,
}

impl Soak {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn endure(&self, life: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_endure"))
            .args([self.path("endure.db"), self.path("acks"), self.path("account"), life.to_owned()])
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % limit
    }

    /// The lines of a file, each an id and a value. A process that was killed may have left the last one in part.
    fn lines(&self, name: &str) -> Vec<(String, u64)> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        let whole = text.lines().filter_map(|line| line.split_once(' '));
        whole.filter_map(|(id, value)| Some((id.to_owned(), value.parse().ok()?))).collect()
    }
}

/// Copies the file while it is served, and looks at the copy.
async fn back_up(soak: &Soak, number: u64) {
    let copy = soak.path(&format!("copy-{number}.db"));
    let store = Dacapo::open(&format!("sqlite:{}?mode=ro", soak.path("endure.db"))).await.unwrap();
    store.runs().back_up(&copy).await.unwrap();
    let store = Dacapo::open(&format!("sqlite:{copy}?mode=ro")).await.unwrap();
    assert_eq!(store.runs().verify(|_| {}).await.unwrap(), []);
    for file in [copy.clone(), format!("{copy}-wal"), format!("{copy}-shm")] {
        let _ = std::fs::remove_file(file);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_of_all_features_ends_with_every_run_accounted_for() {
    let seconds = std::env::var("DACAPO_SOAK_SECONDS").map_or(8, |text| text.parse().unwrap());
    let (began, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut soak = Soak { folder: tempfile::tempdir().unwrap(), lives: 0, dice: 0x5eed };
    let (mut kills, mut backups, mut largest) = (0, 0, 0);
    while began.elapsed() < time {
        soak.lives += 1;
        let mut process = soak.endure(&soak.lives.to_string());
        let lives = Duration::from_millis(200 + soak.below(4_000)).min(time);
        let until = Instant::now() + lives;
        if soak.below(2) == 0 && Path::new(&soak.path("endure.db")).exists() && soak.lives > 1 {
            back_up(&soak, backups).await;
            backups += 1;
        }
        while Instant::now() < until {
            // sleep: the process lives for a while before it is killed.
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(process.try_wait().unwrap().is_none(), "it ended by itself");
        }
        process.kill().unwrap();
        process.wait().unwrap();
        kills += 1;
        largest = largest.max(std::fs::metadata(soak.path("endure.db")).map_or(0, |file| file.len()));
    }
    let mut last = soak.endure("drain");
    assert!(last.wait().unwrap().success(), "the last process drains the file and finds it sound");

    let mut accounts: BTreeMap<String, u64> = BTreeMap::new();
    for (id, value) in soak.lines("account") {
        assert_eq!(
            *accounts.entry(id.clone()).or_insert(value),
            value,
            "{id} has one value however often it is written"
        );
    }
    let acks = soak.lines("acks");
    for (id, expected) in &acks {
        assert_eq!(accounts.get(id), Some(expected), "{id} was acknowledged");
    }
    assert!(!acks.is_empty());
    println!(
        "{:.0?}: {} runs acknowledged, all accounted for; {kills} kills, {backups} backups, largest file {} KiB",
        began.elapsed(),
        acks.len(),
        largest / 1024
    );
}
