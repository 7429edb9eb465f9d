//! Logs that are removed or damaged. SQLite takes both for the end of the log and says nothing, so a store notes outside the log
//! how its last commit is recognised.

use std::fs;

use dacapo_core::{Failure, Name, Timestamp};
use dacapo_sqlite::SqliteStore;
use dacapo_store::conformance::order;
use dacapo_store::{
    CrashCount, Epoch, Filter, NewMessage, ReadRuns, RunNo, Status, StoreError, Stuck, StuckCause, TurnOf, TurnWrite,
    Upkeep, Write, Writes,
};
use tempfile::TempDir;

struct Place {
    _folder: TempDir,
    path: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db").to_str().unwrap().to_owned();
        Self { _folder: folder, path }
    }

    fn log(&self) -> String {
        format!("{}-wal", self.path)
    }

    fn note(&self) -> String {
        format!("{}-commits", self.path)
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path).unwrap()
    }

    /// Why it does not open for serving.
    fn loss(&self) -> String {
        match SqliteStore::open(&self.path) {
            Err(StoreError::Lost(why)) => why,
            Err(other) => panic!("{other} is another refusal"),
            Ok(store) => panic!("it is served with {} runs", count(&store)),
        }
    }

    /// A store that so many runs were started in, left as by a process that died.
    fn with_runs(runs: u64) -> Self {
        let place = Self::new();
        let store = place.open();
        (0..runs).for_each(|number| start(&store, number).unwrap());
        place
    }
}

fn start(store: &SqliteStore, number: u64) -> Result<(), StoreError> {
    let new = order(number as usize);
    write(store, Write::Start(Box::new(new)))
}

fn write(store: &SqliteStore, write: Write) -> Result<(), StoreError> {
    let (told, answer) = std::sync::mpsc::channel();
    store.submit(write, Box::new(move |written| told.send(written.map(drop)).unwrap()));
    answer.recv().unwrap()
}

fn count(store: &SqliteStore) -> u64 {
    store.count(&Filter::default(), u64::MAX).unwrap()
}

#[test]
fn file_whose_log_lost_its_tail_is_not_served_until_the_loss_is_accepted() {
    let place = Place::with_runs(20);
    let mut log = fs::read(place.log()).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 1;
    fs::write(place.log(), &log).unwrap();
    let loss = place.loss();
    assert!(loss.contains("lacks the last commit") && loss.contains(&place.note()), "{loss}");
    assert!(fs::read(place.log()).unwrap() == log, "a refused open leaves the log for the operator");
    let reading = SqliteStore::open_read_only(&place.path).unwrap();
    let left = count(&reading);
    assert!((1..20).contains(&left), "{left} runs are left");
    assert_eq!(reading.problems().unwrap(), [loss]);
    drop(reading);
    fs::remove_file(place.note()).unwrap();
    let store = place.open();
    assert_eq!((count(&store), store.problems().unwrap()), (left, Vec::new()));
    start(&store, 99).unwrap();
    drop(store);
    assert_eq!(count(&place.open()), left + 1);
}

#[test]
fn every_damaged_byte_of_a_log_is_noticed_or_harmless() {
    let place = Place::with_runs(6);
    let (file, log, note) =
        (fs::read(&place.path).unwrap(), fs::read(place.log()).unwrap(), fs::read(place.note()).unwrap());
    let mut refused = 0;
    // One byte of every frame's header and page, and of the header of the log.
    for at in (0..log.len()).step_by(1_031) {
        let mut damaged = log.clone();
        damaged[at] ^= 0x10;
        let _ = fs::remove_file(format!("{}-shm", place.path));
        fs::write(&place.path, &file).unwrap();
        fs::write(place.log(), &damaged).unwrap();
        fs::write(place.note(), &note).unwrap();
        match SqliteStore::open(&place.path) {
            Err(StoreError::Lost(_)) => refused += 1,
            Err(other) => panic!("byte {at}: {other}"),
            Ok(store) => assert_eq!(count(&store), 6, "byte {at}"),
        }
    }
    assert!(refused > 10, "{refused} refusals");
}

#[test]
fn file_whose_log_was_removed_at_rest_is_not_served() {
    let place = Place::with_runs(3);
    fs::remove_file(place.log()).unwrap();
    // Nothing was ever moved into the file, so that it has no tables either.
    place.loss();
    fs::remove_file(place.note()).unwrap();
    assert_eq!(count(&place.open()), 0);
}

#[test]
fn file_behind_its_note_is_not_served_though_its_log_is_new() {
    let place = Place::with_runs(3);
    let store = place.open();
    store.close().unwrap();
    drop(store);
    let old = fs::read(&place.path).unwrap();
    let store = place.open();
    start(&store, 3).unwrap();
    store.close().unwrap();
    drop(store);
    // As a restored backup is.
    fs::write(&place.path, old).unwrap();
    place.loss();
}

#[test]
fn log_that_is_removed_while_it_is_served_is_noticed_before_the_next_commit_and_rescued() {
    let place = Place::new();
    let store = place.open();
    (0..3).for_each(|number| start(&store, number).unwrap());
    fs::remove_file(place.log()).unwrap();
    let told = start(&store, 3).unwrap_err().to_string();
    assert!(told.contains("-wal was removed while") && told.contains("nothing is lost"), "{told}");
    assert_eq!(start(&store, 4).unwrap_err().to_string(), told, "nothing more is written");
    drop(store);
    let store = place.open();
    assert_eq!((count(&store), store.problems().unwrap()), (3, Vec::new()));
}

#[test]
fn log_that_is_replaced_while_it_is_served_is_noticed_at_the_end() {
    let place = Place::new();
    let store = place.open();
    start(&store, 0).unwrap();
    fs::rename(place.log(), format!("{}.away", place.log())).unwrap();
    fs::write(place.log(), "").unwrap();
    let told = store.close().unwrap_err().to_string();
    assert!(told.contains("-wal was replaced while") && told.contains("put it back"), "{told}");
    drop(store);
    place.loss();
    fs::rename(format!("{}.away", place.log()), place.log()).unwrap();
    let _ = fs::remove_file(format!("{}-shm", place.path));
    assert_eq!(count(&place.open()), 1);
}

#[test]
fn log_that_is_removed_before_the_process_dies_is_noticed_by_the_next_one() {
    let place = Place::new();
    let store = place.open();
    start(&store, 0).unwrap();
    fs::remove_file(place.log()).unwrap();
    drop(store);
    place.loss();
}

#[test]
fn note_that_is_torn_or_of_another_store_counts_as_none() {
    let place = Place::with_runs(3);
    place.open().close().unwrap();
    let older = fs::read(&place.path).unwrap();
    start(&place.open(), 3).unwrap();
    let note = fs::read(place.note()).unwrap();
    let foreign = fs::read(Place::with_runs(9).note()).unwrap();
    let mut torn: Vec<Vec<u8>> = (0..note.len()).map(|length| note[..length].to_vec()).collect();
    torn.extend((0..note.len()).map(|at| [&note[..at], &[note[at] ^ 1], &note[at + 1..]].concat()));
    torn.push(foreign);
    for bytes in torn {
        for log in [place.log(), format!("{}-shm", place.path)] {
            let _ = fs::remove_file(log);
        }
        fs::write(&place.path, &older).unwrap();
        fs::write(place.note(), &bytes).unwrap();
        assert_eq!(count(&place.open()), 3, "note {bytes:?}");
    }
    fs::write(place.note(), &note).unwrap();
    place.loss();
}

#[test]
fn backup_has_no_note_and_is_served_where_it_is() {
    let place = Place::with_runs(3);
    let store = place.open();
    let copy = Place::new();
    store.back_up(copy.path.as_ref()).unwrap();
    start(&store, 3).unwrap();
    assert_eq!(count(&copy.open()), 3);
    assert!(fs::read(copy.note()).unwrap_or_default().iter().all(|byte| *byte == 0), "it names no commit");
}

/// A database that is removed on purpose, to begin anew, needs no further step. One whose log is left was not.
#[test]
fn database_removed_with_its_log_is_made_anew_and_one_whose_log_is_left_is_not() {
    let place = Place::with_runs(3);
    place.open().close().unwrap();
    fs::remove_file(&place.path).unwrap();
    assert!(fs::exists(place.note()).unwrap());
    assert_eq!(count(&place.open()), 0);

    let place = Place::with_runs(3);
    assert!(fs::metadata(place.log()).unwrap().len() > 0, "the process died");
    fs::remove_file(&place.path).unwrap();
    place.loss();
}

/// A commit of each kind, after those that it needs.
fn writes_of_every_kind(run: RunNo) -> Vec<Write> {
    let epoch = Epoch::default();
    let turn = |number| {
        let of = TurnOf::Run(run);
        Write::Turn(Box::new(TurnWrite::new(of, number, Timestamp::from_millis(number), vec![number as u8])))
    };
    let message = |key: &'static str| {
        let message = NewMessage { key: Name::from_static(key), sent: Timestamp::default(), job: vec![1] };
        Write::Send { run, message, ended: None }
    };
    let stuck = Stuck {
        cause: StuckCause::Internal,
        subject: String::new(),
        reason: "broken".into(),
        since: Timestamp::default(),
        attempts: 1,
        retry: Timestamp::default(),
    };
    let failure = Box::new(Failure::application("enough"));
    vec![
        turn(0),
        message("signal:1"),
        Write::SetStuck { run, epoch, stuck: Some(stuck) },
        Write::SetStuck { run, epoch, stuck: None },
        turn(1),
        Write::Settle { run, epoch, turn: 2, messages: Vec::new(), tasks: Vec::new() },
        Write::CrashCounts(vec![CrashCount::Cleared(run)]),
        message("signal:2"),
        Write::Close { run, status: Status::Terminated, at: Timestamp::default(), failure },
        Write::Delete { run },
        Write::Sweep { most: 1 },
        Write::Sweep { most: 100 },
    ]
}

/// The note may be older than the file, by any number of commits, and must then refuse nothing: the system wrote it to the disk
/// when it pleased. And it must refuse every file that is older than itself, whatever the commits were.
#[test]
fn note_refuses_each_older_file_and_no_newer_one_whatever_was_committed() {
    let place = Place::new();
    let store = place.open();
    let mut states = Vec::new();
    let mut keep = || {
        let files = [&place.path, &place.log(), &place.note()].map(|path| fs::read(path).unwrap());
        states.push(files);
    };
    start(&store, 0).unwrap();
    keep();
    let run = store.find("order-0", None).unwrap().unwrap().no;
    for next in writes_of_every_kind(run) {
        write(&store, next).unwrap();
        keep();
    }
    start(&store, 1).unwrap();
    keep();
    drop(store);
    for (noted, [_, _, note]) in states.iter().enumerate() {
        for (there, [file, log, _]) in states.iter().enumerate() {
            let _ = fs::remove_file(format!("{}-shm", place.path));
            fs::write(&place.path, file).unwrap();
            fs::write(place.log(), log).unwrap();
            fs::write(place.note(), note).unwrap();
            match SqliteStore::open(&place.path) {
                Ok(_) => assert!(noted <= there, "commit {noted} was noted, and a file with commit {there} is served"),
                Err(StoreError::Lost(_)) => assert!(noted > there, "commit {noted} was noted, and {there} is refused"),
                Err(other) => panic!("{other}"),
            }
        }
    }
}
