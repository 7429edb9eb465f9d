//! Backups on a disk whose power is cut: at every change that a backup makes, it is there whole or not at all, and once it was
//! acknowledged it stays.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use dacapo_faults::{Disk, Fault};
use dacapo_sqlite::{BackupFiles, SqliteStore, Tuning};
use dacapo_store::conformance::order;
use dacapo_store::{Filter, NewRun, ReadRuns, Upkeep, Write, Writes};

const RUNS: u64 = 6;

/// The disk of the test, or one that leaves out a flush.
#[derive(Clone, Copy, PartialEq)]
enum Leaves {
    Nothing,
    FlushOfFile,
    FlushOfFolder,
}

struct OnDisk<'d>(&'d Disk, Leaves);

impl BackupFiles for OnDisk<'_> {
    fn flush(&self, file: &Path) -> Result<()> {
        if self.1 == Leaves::FlushOfFile { Ok(()) } else { self.0.flush(file) }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }

    fn flush_folder(&self, _: &Path) -> Result<()> {
        if self.1 == Leaves::FlushOfFolder { Ok(()) } else { self.0.flush_folder() }
    }
}

fn start(store: &SqliteStore, number: u64, size: usize) {
    let new = NewRun { start: vec![number as u8; size], ..order(number as usize) };
    let (told, answer) = mpsc::channel();
    store.submit(Write::Start(Box::new(new)), Box::new(move |written| told.send(written).unwrap()));
    answer.recv().unwrap().unwrap();
}

/// A disk with a store of some runs.
fn filled() -> (Disk, SqliteStore, PathBuf) {
    let disk = Disk::new();
    let store = SqliteStore::open(&disk.path("store.db")).unwrap();
    (0..RUNS).for_each(|number| start(&store, number, 3_000));
    let copy = PathBuf::from(disk.path("copy.db"));
    (disk, store, copy)
}

/// Backs up once for every change of that with the power cut at it, and once with the power cut afterwards. Gives what is wrong.
fn cut_everywhere(leaves: Leaves) -> Vec<String> {
    let (disk, store, copy) = filled();
    let before = disk.counts().changes;
    store.back_up_on(&copy, &OnDisk(&disk, leaves)).unwrap();
    let after = disk.counts().changes;
    let mut wrong = Vec::new();
    for change in before..=after {
        for luck in [0, change + 1, change + 2] {
            let (disk, store, copy) = filled();
            disk.fail_from(change, u64::MAX, Fault::PowerLoss);
            let is_acknowledged = store.back_up_on(&copy, &OnDisk(&disk, leaves)).is_ok();
            assert_eq!(is_acknowledged, change == after);
            drop(store);
            disk.cut();
            disk.restore(luck);
            let how = match std::fs::exists(&copy).unwrap() {
                true => whats_wrong(copy.to_str().unwrap()),
                false => is_acknowledged.then(|| "it is gone".to_owned()),
            };
            wrong.extend(how.map(|how| format!("change {change}, luck {luck}: {how}")));
            assert_eq!(whats_wrong(&disk.path("store.db")), None, "the store itself");
        }
    }
    wrong
}

fn whats_wrong(path: &str) -> Option<String> {
    let store = match SqliteStore::open(path) {
        Ok(store) => store,
        Err(error) => return Some(error.to_string()),
    };
    match (store.count(&Filter::default(), u64::MAX), store.problems()) {
        (Ok(RUNS), Ok(problems)) if problems.is_empty() => None,
        (runs, problems) => Some(format!("{runs:?} runs, {problems:?}")),
    }
}

#[test]
fn a_backup_is_there_whole_or_not_at_all_wherever_the_power_fails() {
    assert_eq!(cut_everywhere(Leaves::Nothing), [""; 0]);
}

/// Without either flush a backup that was acknowledged is lost or torn: the sweep above would see it.
#[test]
fn without_the_flush_of_its_file_or_of_its_folder_a_backup_is_lost() {
    assert_ne!(cut_everywhere(Leaves::FlushOfFile), [""; 0]);
    assert_ne!(cut_everywhere(Leaves::FlushOfFolder), [""; 0]);
}

/// A reader that takes long, such as a backup, keeps the log from beginning anew. It grew, and stayed as long for ever.
#[test]
fn log_that_grew_during_a_read_is_truncated_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").display().to_string();
    let tuning = Tuning { checkpoint_pages: 20, log_bytes: 200_000 };
    let store = SqliteStore::open_tuned(&path, &tuning).unwrap();
    let log = || std::fs::metadata(format!("{path}-wal")).unwrap().len();
    start(&store, 0, 10);
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM runs").unwrap();
    (1..100).for_each(|number| start(&store, number, 10_000));
    assert!(log() > 1_000_000, "{}", log());
    reader.execute_batch("COMMIT").unwrap();
    (100..110).for_each(|number| start(&store, number, 10));
    assert!(log() <= 200_000, "{}", log());
}
