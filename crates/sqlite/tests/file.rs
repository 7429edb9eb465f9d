//! The file itself: who may open it, what is refused, what survives.

use std::fs;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};

use dacapo_core::{Failure, FailureKind, Seq, Timestamp};
use dacapo_sqlite::SqliteStore;
use dacapo_store::conformance::order;
use dacapo_store::{
    Filter, NewRun, NewTask, ReadMessages, ReadRuns, ReadTasks, ReadTurns, RunNo, Status, StoreError, TurnOf,
    TurnWrite, Upkeep, Write, Writes, Written,
};
use tempfile::TempDir;

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").to_str().unwrap().to_owned();
    (folder, path)
}

fn new_run(number: usize) -> NewRun {
    NewRun { started: Timestamp::from_millis(number as u64), ..order(number) }
}

fn write(store: &SqliteStore, write: Write) -> Result<Written, StoreError> {
    let (told, answer) = mpsc::channel();
    store.submit(write, Box::new(move |written| told.send(written).unwrap()));
    answer.recv().unwrap()
}

fn start(store: &SqliteStore, number: usize) -> Result<Written, StoreError> {
    write(store, Write::Start(Box::new(new_run(number))))
}

fn refusal(opened: Result<SqliteStore, StoreError>) -> StoreError {
    opened.err().expect("it must not open")
}

#[test]
fn a_file_is_served_by_one_process_and_read_by_others() {
    let (_folder, path) = folder();
    let serving = SqliteStore::open(&path).unwrap();
    assert!(matches!(refusal(SqliteStore::open(&path)), StoreError::Busy(_)));
    let reading = SqliteStore::open_read_only(&path).unwrap();
    start(&serving, 1).unwrap();
    assert_eq!(reading.count(&Filter::default(), u64::MAX).unwrap(), 1);
    assert!(matches!(start(&reading, 2), Err(StoreError::Unsupported(_))));
    drop(serving);
    assert_eq!(SqliteStore::open(&path).unwrap().count(&Filter::default(), u64::MAX).unwrap(), 1);
}

#[test]
fn acknowledged_writes_are_there_when_the_file_is_opened_again() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    (0..100).for_each(|number| drop(start(&store, number).unwrap()));
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.count(&Filter::default(), u64::MAX).unwrap(), 100);
    let row = store.find("order-42", None).unwrap().unwrap();
    let mut turns = 0;
    store
        .turns(row.no, 0, &mut |_, _| {
            turns += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((row.run_id.as_str(), turns), ("run-42", 0));
}

/// Writes of many threads share transactions, and one that is refused does not concern the others.
#[test]
fn a_number_is_given_once_over_all_processes() {
    let (_folder, path) = folder();
    let mut last = RunNo(0);
    for number in 0..3 {
        let store = SqliteStore::open(&path).unwrap();
        let Written::Started { run, .. } = start(&store, number).unwrap() else { panic!("it was started") };
        assert!(run.run > last, "{} after {last}", run.run);
        last = run.run;
        let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
        write(&store, Write::Close { run: last, status: Status::Terminated, at: Timestamp(1), failure }).unwrap();
        write(&store, Write::Delete { run: last }).unwrap();
        write(&store, Write::Sweep { most: 100 }).unwrap();
        // As a process that dies does.
        drop(store);
    }
}

#[test]
fn writes_of_many_threads_are_all_answered_and_refused_alone() {
    let (_folder, path) = folder();
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let store = store.clone();
            std::thread::spawn(move || {
                // Every second start takes an id that another thread wants too.
                let number = |place: usize| if place.is_multiple_of(2) { place } else { 1000 * (thread + 1) + place };
                (0..50).filter(|place| start(&store, number(*place)).is_ok()).count()
            })
        })
        .collect();
    let started: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(started, 8 * 25 + 25);
    assert_eq!(store.count(&Filter::default(), u64::MAX).unwrap(), 8 * 25 + 25);
}

#[test]
fn files_that_are_not_ours_are_refused_and_left_as_they_are() {
    let (folder, path) = folder();
    let untouched = |bytes: &[u8], opens: fn(&str) -> Result<SqliteStore, StoreError>| {
        let path = folder.path().join("other.db");
        fs::write(&path, bytes).unwrap();
        let error = refusal(opens(path.to_str().unwrap()));
        assert_eq!(fs::read(&path).unwrap(), bytes, "{error}");
        error
    };
    let text = b"this is no database, and it is long enough to have a header of its own, as databases do. ".repeat(20);
    for opens in [SqliteStore::open, SqliteStore::open_read_only] {
        assert!(matches!(untouched(&text, opens), StoreError::Foreign(_)));
    }
    assert!(matches!(refusal(SqliteStore::open_read_only(&path)), StoreError::Unavailable(_)));
    assert!(!fs::exists(&path).unwrap());
    let another = folder.path().join("another.db");
    rusqlite::Connection::open(&another).unwrap().execute_batch("CREATE TABLE songs (name)").unwrap();
    let error = untouched(&fs::read(&another).unwrap(), SqliteStore::open).to_string();
    assert!(error.contains("other.db: it is another program's database"), "{error}");
    fs::remove_file(&another).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["other.db"], "nothing is left beside it");
}

#[test]
fn a_file_of_another_program_or_of_a_later_version_is_refused() {
    let (_folder, path) = folder();
    drop(SqliteStore::open(&path).unwrap());
    let change = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    change("PRAGMA user_version = 99");
    for opens in [SqliteStore::open, SqliteStore::open_read_only] {
        assert_eq!(refusal(opens(&path)), StoreError::Newer { found: 99, known: 2 });
    }
    change("PRAGMA user_version = 1; PRAGMA application_id = 7");
    for opens in [SqliteStore::open, SqliteStore::open_read_only] {
        assert!(matches!(refusal(opens(&path)), StoreError::Foreign(_)));
    }
    change("PRAGMA application_id = 0");
    assert!(matches!(refusal(SqliteStore::open(&path)), StoreError::Foreign(_)));
    change("PRAGMA application_id = 0x6463706f");
    for opens in [SqliteStore::open, SqliteStore::open_read_only] {
        let StoreError::Foreign(why) = refusal(opens(&path)) else {
            panic!("a file of a development build is refused")
        };
        assert!(why.contains("a development build wrote it") && why.contains("start with a new file"), "{why}");
    }
}

#[test]
fn a_file_that_was_cut_short_is_an_error_and_not_a_panic() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    (0..200).for_each(|number| drop(start(&store, number).unwrap()));
    store.close().unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    for kept in [100, 4096, whole.len() / 2] {
        fs::write(&path, &whole[..kept]).unwrap();
        let read = SqliteStore::open(&path).and_then(|store| store.list(&Filter::default(), None, 1000));
        assert!(read.is_err(), "{kept} of {} bytes were read as a whole file", whole.len());
    }
}

/// The rules hold in the table itself, whatever code is in front of it.
#[test]
fn the_schema_itself_refuses_duplicates() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(path.to_str().unwrap()).unwrap());
    let file = rusqlite::Connection::open(&path).unwrap();
    let run = |run_id: &str, workflow_id: &str, status: u8, request: &str| {
        file.execute(
            "INSERT INTO runs (run_id, workflow_id, workflow, queue, status, started, turns, epoch, pins, first_run_id, \
             request, memo) VALUES (?, ?, 'w', 'q', ?, 0, 0, 0, x'', '', ?, x'')",
            rusqlite::params![run_id, workflow_id, status, request],
        )
    };
    let turn = |turn: u8| file.execute("INSERT INTO turns (run, turn, record, sum) VALUES (1, ?, x'', 0)", [turn]);
    let message =
        |key: &str| file.execute("INSERT INTO messages (run, key, sent, job, sum) VALUES (1, ?, 0, x'', 0)", [key]);
    run("r1", "w1", 0, "q1").unwrap();
    turn(0).unwrap();
    message("k1").unwrap();
    for (what, refused) in [
        ("a run id of its own", run("r1", "w2", 0, "q2")),
        ("one open run of a workflow id", run("r2", "w1", 0, "q2")),
        ("one run of a request", run("r2", "w2", 0, "q1")),
        ("one turn of a number", turn(0)),
        ("one message of a key", message("k1")),
    ] {
        let error = refused.expect_err(what).to_string();
        assert!(error.contains("UNIQUE constraint failed"), "{what}: {error}");
    }
    run("r2", "w1", 1, "q2").expect("a closed run may share the workflow id of an open one");
}

#[test]
fn a_file_that_is_removed_while_it_is_served_takes_nothing_more() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    start(&store, 1).unwrap();
    fs::remove_file(&path).unwrap();
    let refused = start(&store, 2).unwrap_err().to_string();
    assert!(refused.contains("was removed or replaced"), "{refused}");
    fs::write(&path, "").unwrap();
    assert_eq!(start(&store, 3).unwrap_err().to_string(), refused, "another file in its place is another file");
}

/// `rm orders.db` while nothing was committed: the end of the process was quiet, and so was the loss.
#[test]
fn a_file_that_is_removed_while_nothing_happens_is_told_at_the_end() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    start(&store, 1).unwrap();
    fs::remove_file(&path).unwrap();
    let told = store.close().unwrap_err().to_string();
    assert!(told.contains("was removed or replaced"), "{told}");
    assert_eq!(store.close(), Ok(()), "told once");
}

/// `ln orders.db other.db`: a second process served the other name, and half of what both wrote was lost.
#[test]
fn file_with_two_names_is_not_served() {
    let (folder, path) = folder();
    let other = folder.path().join("other.db").to_str().unwrap().to_owned();
    let store = SqliteStore::open(&path).unwrap();
    start(&store, 1).unwrap();
    fs::hard_link(&path, &other).unwrap();
    let refused = refusal(SqliteStore::open(&other)).to_string();
    assert!(refused.contains("has 2 names (hard links)"), "{refused}");
    assert!(!fs::exists(format!("{other}-lease")).unwrap() && !fs::exists(format!("{other}-wal")).unwrap());
    let stopped = start(&store, 2).unwrap_err().to_string();
    assert!(stopped.contains("has 2 names (hard links)"), "{stopped}");
    drop(store);
    fs::remove_file(&other).unwrap();
    assert_eq!(SqliteStore::open(&path).unwrap().count(&Filter::default(), u64::MAX).unwrap(), 1);
}

/// `rm orders.db-lease`: a second process served the file beside the first.
#[test]
fn a_process_whose_lease_is_removed_writes_nothing_more() {
    let (_folder, path) = folder();
    let first = SqliteStore::open(&path).unwrap();
    start(&first, 1).unwrap();
    fs::remove_file(format!("{path}-lease")).unwrap();
    let refused = refusal(SqliteStore::open(&path));
    assert!(matches!(refused, StoreError::Busy(_)), "the file itself is locked: {refused}");
    let stopped = start(&first, 2).unwrap_err().to_string();
    assert!(stopped.contains("-lease was removed or replaced"), "{stopped}");
    drop(first);
    let second = SqliteStore::open(&path).unwrap();
    start(&second, 2).unwrap();
    assert_eq!(second.count(&Filter::default(), u64::MAX).unwrap(), 2);
}

#[test]
fn a_link_to_nothing_is_refused() {
    let (folder, path) = folder();
    let link = folder.path().join("link.db").to_str().unwrap().to_owned();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let refused = refusal(SqliteStore::open(&link)).to_string();
    assert!(refused.contains("is a link to a file that is not there"), "{refused}");
}

/// A folder in which SQLite may not keep its index; a link that leads nowhere stands in its way just as well.
#[test]
fn a_file_alone_can_be_looked_at_where_nothing_can_be_written() {
    let (folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    start(&store, 1).unwrap();
    store.close().unwrap();
    drop(store);
    let alone = folder.path().join("al%6fne?.db").to_str().unwrap().to_owned();
    fs::copy(&path, &alone).unwrap();
    std::os::unix::fs::symlink("nowhere/at/all", format!("{alone}-shm")).unwrap();
    let plain = rusqlite::Connection::open_with_flags(&alone, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    plain.query_row("SELECT count(*) FROM runs", [], |_| Ok(())).expect_err("SQLite alone cannot read it");
    let reading = SqliteStore::open_read_only(&alone).unwrap();
    assert_eq!(reading.count(&Filter::default(), u64::MAX).unwrap(), 1);
    assert_eq!(reading.problems().unwrap(), Vec::<String>::new());
    fs::write(format!("{alone}-wal"), "something").unwrap();
    let refused = refusal(SqliteStore::open_read_only(&alone)).to_string();
    assert!(refused.contains("the right to write"), "{refused}");
}

#[test]
fn a_file_that_is_no_longer_served_is_whole_by_itself() {
    let (folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    (0..20).for_each(|number| drop(start(&store, number).unwrap()));
    store.close().unwrap();
    assert!(start(&store, 99).is_err(), "nothing is written after the end");
    let copy = folder.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    let copy = SqliteStore::open_read_only(copy.to_str().unwrap()).unwrap();
    assert_eq!(copy.count(&Filter::default(), u64::MAX).unwrap(), 20);
}

/// S4-44
#[test]
fn a_batch_that_fails_at_its_last_command_stores_nothing() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    let Written::Started { run, .. } = start(&store, 1).unwrap() else { panic!("a start is answered with a run") };
    let file = rusqlite::Connection::open(&path).unwrap();
    let trap =
        "CREATE TRIGGER trap BEFORE INSERT ON tasks WHEN NEW.seq = 99 BEGIN SELECT RAISE(ABORT, 'the last'); END";
    file.execute_batch(trap).unwrap();
    let before = store.run(run.run).unwrap();
    let task = |seq| NewTask {
        seq: Seq(seq),
        queue: "main".into(),
        ready: Timestamp::default(),
        priority: 0,
        position: seq as u32,
        offered: false,
    };
    let turn = TurnWrite { tasks: (0..100).map(task).collect(), ..turn_of(run.run, 0) };
    let (told, answer) = mpsc::channel();
    store.submit(Write::Turn(Box::new(turn)), Box::new(move |result| told.send(result).unwrap()));
    assert!(answer.recv().unwrap().unwrap_err().to_string().contains("the last"));
    assert_eq!(store.run(run.run).unwrap(), before);
    assert_eq!((store.tasks_of(run.run).unwrap(), store.unseen(run.run).unwrap().len()), (Vec::new(), 1));
    let mut turns = 0;
    store
        .turns(run.run, 0, &mut |_, _| {
            turns += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(turns, 0);
}

fn turn_of(run: RunNo, turn: u64) -> TurnWrite {
    TurnWrite { ..TurnWrite::new(TurnOf::Run(run), turn, Timestamp::default(), vec![1]) }
}
