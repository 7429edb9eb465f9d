//! Flipped bits in the database file. Whatever is read is what was written, or an error that says that it is damaged; and a look at
//! everything reports each of them.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::mpsc;

use dacapo_core::{AttributeValue, Failure, FailureKind, Name, ParentClose, Seq, Timestamp, TurnRecord};
use dacapo_sqlite::SqliteStore;
use dacapo_store::conformance::order;
use dacapo_store::{
    AttemptWrite, Closing, Filter, NewMessage, NewRun, NewTask, NodeNo, Parent, ReadMessages, ReadRuns, ReadTasks,
    ReadTimers, ReadTurns, RunNo, RunRow, Status, StoreError, Stuck, StuckCause, TaskNo, TimerKind, TurnOf, TurnWrite,
    Upkeep, Write, Writes, Written,
};
use rusqlite::Connection;
use rusqlite::types::Value;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn write(store: &SqliteStore, write: Write) -> Written {
    let (told, answer) = mpsc::channel();
    store.submit(write, Box::new(move |written| told.send(written).unwrap()));
    answer.recv().unwrap().unwrap()
}

fn new_run(workflow_id: &'static str) -> NewRun {
    NewRun {
        run_id: format!("run of {workflow_id}").into(),
        workflow_id: workflow_id.into(),
        request: Some(format!("request of {workflow_id}").into()),
        timers: vec![(at(90), TimerKind::RunTimeout)],
        memo: b"a memo".to_vec(),
        attributes: attributes(),
        ..order(0)
    }
}

/// One attribute of every kind.
fn attributes() -> Vec<(Name, AttributeValue)> {
    let keywords = vec!["fragile".to_owned(), "heavy".to_owned()];
    vec![
        ("colour".into(), "red".into()),
        ("due".into(), at(5).into()),
        ("paid".into(), true.into()),
        ("size".into(), (-7_i64).into()),
        ("tags".into(), keywords.into()),
        ("weight".into(), 2.5.into()),
    ]
}

fn start(store: &SqliteStore, new: NewRun) -> RunNo {
    match write(store, Write::Start(Box::new(new))) {
        Written::Started { run, .. } => run.run,
        other => panic!("a start was answered with {other:?}"),
    }
}

/// A store with something in every column: an open run with a child, which is stuck, and a closed one.
fn fill(store: &SqliteStore) {
    let open = start(store, new_run("open"));
    let task = NewTask { seq: Seq(0), queue: "main".into(), ready: at(2), priority: 3, position: 0, offered: false };
    let turn = TurnWrite {
        tasks: vec![task],
        published: Some(b"a snapshot".to_vec()),
        timers: vec![(at(30), TimerKind::Sleep(Seq(7)))],
        ..TurnWrite::new(TurnOf::Run(open), 0, at(3), record(0))
    };
    let Written::Turn(written) = write(store, Write::Turn(Box::new(turn))) else { panic!("a turn is committed") };
    let attempt = AttemptWrite {
        task: written.tasks[0],
        attempt: 2,
        ready: at(4),
        node: Some(NodeNo(1)),
        crash_count: 1,
        external: Some(at(5)),
        failure: Some(b"it failed".to_vec()),
        details: Some(b"progress".to_vec()),
    };
    write(store, Write::Attempt(Box::new(attempt)));
    let message = NewMessage { key: "update:1".into(), sent: at(6), job: b"an update".to_vec() };
    let Written::Sent(sent) = write(store, Write::Send { run: open, message, ended: None }) else { panic!("sent") };
    let taken = vec![(sent.no, "update:1".into(), Some(b"an answer".to_vec()))];
    write(store, Write::Settle { run: open, epoch: Default::default(), turn: 1, messages: taken, tasks: Vec::new() });
    let link = Parent { run: open, seq: Seq(2), close: ParentClose::Abandon };
    let child = start(store, NewRun { parent: Some(link), ..new_run("child") });
    let stuck = Stuck {
        cause: StuckCause::Nondeterminism,
        subject: "a.rs:1:2".to_owned(),
        reason: "it differs".to_owned(),
        since: at(3),
        attempts: 2,
        retry: at(9),
    };
    write(store, Write::SetStuck { run: child, epoch: Default::default(), stuck: Some(stuck) });
    let closing =
        Closing { status: Status::Completed, result: b"42".to_vec(), to_parent: None, next: None, carried: Vec::new() };
    let first = TurnOf::New(Box::new(NewRun { request: None, ..new_run("closed") }));
    let turn = TurnWrite { close: Some(closing), ..TurnWrite::new(first, 0, at(8), record(0)) };
    write(store, Write::Turn(Box::new(turn)));
    let gone = start(store, new_run("gone"));
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run: gone, status: Status::Terminated, at: at(9), failure });
    write(store, Write::Delete { run: gone });
}

/// The rows that a read gave, or that it is damaged. An error of another kind fails the test.
type Read = Result<Vec<String>, String>;

fn rows<T: Debug>(read: Result<impl IntoIterator<Item = T>, StoreError>) -> Read {
    match read {
        Ok(rows) => Ok(rows.into_iter().map(|row| format!("{row:?}")).collect()),
        Err(StoreError::Corrupt(what)) => Err(what),
        Err(other) => panic!("{other} is another error"),
    }
}

/// The record of an empty turn.
fn record(number: u64) -> Vec<u8> {
    let (now, history, jobs, commands) = (at(3), Default::default(), Vec::new(), Vec::new());
    TurnRecord { number, now, history, jobs, commands, choices: None, build: "test".into() }.to_bytes()
}

/// The turns of a run. A row's checksum binds a record to its place, the record's own covers its bytes.
fn turns(store: &SqliteStore, run: RunNo) -> Read {
    let mut records = Ok(Vec::new());
    let shown = store.turns(run, 0, &mut |turn, record| {
        match (&mut records, TurnRecord::from_bytes(record)) {
            (Ok(records), Ok(record)) => records.push((turn, record)),
            (_, Ok(_)) => {}
            (records, Err(error)) => *records = Err(StoreError::Corrupt(format!("turn {turn}: {error}"))),
        }
        ControlFlow::Continue(())
    });
    rows(shown.and(records))
}

/// All that can be read of a store by what a caller knows: each read by its name. Counts and the first of many are left out: a row that
/// is damaged can look like one that is not there.
fn reads(store: &SqliteStore, runs: &[RunRow], tasks: &[TaskNo]) -> Vec<(String, Read)> {
    let mut reads = vec![
        ("list".to_owned(), rows(store.list(&Filter::default(), None, 99))),
        ("oldest".to_owned(), rows(store.oldest(&Filter::default(), None, 99))),
        ("tasks".to_owned(), rows(store.tasks(&["main".into()], i64::MIN, 99))),
        ("due".to_owned(), rows(store.due(Timestamp(u64::MAX), 99))),
    ];
    for RunRow { no, workflow_id, .. } in runs {
        reads.extend([
            (format!("run {no}"), rows(store.run(*no))),
            (format!("find {workflow_id}"), rows(store.find(workflow_id, None))),
            (format!("request {no}"), rows(store.belongings(*no).map(|all| all.request))),
            (format!("attributes {no}"), rows(store.belongings(*no).map(|all| all.attributes))),
            (format!("messages {no}"), rows(store.belongings(*no).map(|all| all.messages))),
            (format!("unseen {no}"), rows(store.unseen(*no))),
            (format!("message {no}"), rows(store.message(*no, "update:1"))),
            (format!("tasks_of {no}"), rows(store.tasks_of(*no))),
            (format!("turns {no}"), turns(store, *no)),
        ]);
    }
    reads.extend(tasks.iter().map(|task| (format!("task {}", task.0), rows(store.task(*task)))));
    reads
}

/// What a look at everything finds: in the store, in each run, and in the number of its turns.
fn problems(store: &SqliteStore) -> Vec<String> {
    let mut problems = store.problems().unwrap();
    for no in store.numbers(None, 99).unwrap() {
        match (store.run(no), turns(store, no)) {
            (Ok(Some(row)), Ok(turns)) if row.turns == turns.len() as u64 => {}
            (row, turns) => problems.push(format!("{row:?}, {turns:?}")),
        }
    }
    problems
}

/// The value with some bit flipped, for some bits; text stays text, with all that follows from that.
fn flipped(value: &Value) -> Vec<Value> {
    let bytes = |bytes: &[u8], bits: &[u32]| -> Vec<Vec<u8>> {
        let flip = |at: usize, bit: &u32| {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << bit;
            flipped
        };
        (0..bytes.len()).flat_map(|at| bits.iter().map(move |bit| flip(at, bit))).collect()
    };
    match value {
        Value::Integer(number) => [0, 1, 5, 13, 31, 40, 62, 63].map(|bit| Value::from(number ^ (1_i64 << bit))).into(),
        Value::Text(text) => {
            let flipped = bytes(text.as_bytes(), &[1]);
            flipped.into_iter().filter_map(|bytes| String::from_utf8(bytes).ok()).map(Value::from).collect()
        }
        Value::Blob(blob) => bytes(blob, &[0, 7]).into_iter().map(Value::from).collect(),
        Value::Real(real) => [0, 30, 51, 63].map(|bit| Value::from(f64::from_bits(real.to_bits() ^ (1 << bit)))).into(),
        Value::Null => Vec::new(),
    }
}

/// The columns of a table, without those that no read depends on: the number of a turn's row is SQLite's own.
fn columns(file: &Connection, table: &str) -> Vec<String> {
    let sql = format!("SELECT name FROM pragma_table_info('{table}')");
    let names: Vec<String> =
        file.prepare(&sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    names.into_iter().filter(|name| (table, name.as_str()) != ("turns", "no")).collect()
}

struct DamageTest {
    store: SqliteStore,
    file: Connection,
    runs: Vec<RunRow>,
    tasks: Vec<TaskNo>,
    sound: Vec<(String, Read)>,
    tried: usize,
    told: usize,
}

impl DamageTest {
    fn new(path: &str) -> Self {
        let store = SqliteStore::open(path).unwrap();
        fill(&store);
        store.close().unwrap();
        drop(store);
        let store = SqliteStore::open_read_only(path).unwrap();
        let runs = store.list(&Filter::default(), None, 99).unwrap();
        let tasks = store.tasks(&["main".into()], i64::MIN, 99).unwrap().iter().map(|task| task.no).collect::<Vec<_>>();
        let sound = reads(&store, &runs, &tasks);
        assert!(sound.iter().all(|(_, read)| read.is_ok()));
        let test = Self { store, file: Connection::open(path).unwrap(), runs, tasks, sound, tried: 0, told: 0 };
        test.assert_fixed();
        test
    }

    fn assert_fixed(&self) {
        assert_eq!(problems(&self.store), [""; 0]);
    }

    /// Damages every value of a column, one at a time, and repairs it again.
    fn damage(&mut self, table: &str, column: &str) {
        let sql = format!("SELECT DISTINCT {column} FROM {table}");
        let mut statement = self.file.prepare(&sql).unwrap();
        let values: Vec<Value> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        drop(statement);
        self.file.execute_batch(&format!("CREATE TEMP TABLE sound AS SELECT * FROM {table}")).unwrap();
        for value in values {
            for damaged in flipped(&value) {
                let change = format!("UPDATE OR ROLLBACK {table} SET {column} = ? WHERE {column} = ?");
                // The schema itself refuses some, for example a second run of one id.
                let Ok(changed) = self.file.execute(&change, [&damaged, &value]) else { continue };
                assert!(changed > 0);
                self.tried += 1;
                self.look(&format!("{table}.{column}: {value:?} became {damaged:?}"));
                self.repair(table);
            }
        }
        self.file.execute_batch("DROP TABLE sound").unwrap();
    }

    fn repair(&self, table: &str) {
        let script = format!("BEGIN; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM sound; COMMIT");
        self.file.execute_batch(&script).unwrap();
    }

    fn look(&mut self, damage: &str) {
        assert_ne!(problems(&self.store), [""; 0], "{damage}: nothing is reported");
        for ((name, before), (_, now)) in self.sound.iter().zip(reads(&self.store, &self.runs, &self.tasks)) {
            let before = before.as_ref().unwrap();
            match now {
                Err(_) => self.told += 1,
                // Rows whose keys are damaged may be missing.
                Ok(now) => assert!(
                    now.iter().all(|row| before.contains(row)),
                    "{damage}: {name} gives {now:#?} and not {before:#?}"
                ),
            }
        }
    }
}

#[test]
fn flipped_bit_in_any_column_is_reported_and_never_read_as_another_value() {
    let folder = tempfile::tempdir().unwrap();
    let mut test = DamageTest::new(folder.path().join("store.db").to_str().unwrap());
    for table in ["runs", "turns", "tasks", "timers", "messages", "attributes", "numbers", "garbage"] {
        for column in columns(&test.file, table) {
            test.damage(table, &column);
        }
    }
    test.assert_fixed();
    assert!(test.tried > 1_000 && test.told > test.tried, "{} values, {} reads told", test.tried, test.told);
}

/// Each part of a row that has a checksum of its own takes the place of the same part of another row.
#[test]
fn values_that_changed_places_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut test = DamageTest::new(folder.path().join("store.db").to_str().unwrap());
    for (table, row, part) in [
        ("runs", "no", "memo, memo_sum"),
        ("runs", "no", "workflow, queue, started, pins, owner, first_run_id, identity_sum"),
        ("runs", "no", "turns, epoch, crash_count, progress_sum"),
        ("turns", "run", "record, sum"),
        ("messages", "run", "sent, job, chain, sum"),
        ("attributes", "run", "text, number, real, kind, sum"),
    ] {
        test.file.execute_batch(&format!("CREATE TEMP TABLE sound AS SELECT * FROM {table}")).unwrap();
        let sql = format!(
            "UPDATE {table} SET ({part}) = (SELECT {part} FROM sound WHERE sound.{row} <> {table}.{row} LIMIT 1)"
        );
        assert!(test.file.execute(&sql, []).unwrap() > 0);
        test.look(&sql);
        test.repair(table);
        test.assert_fixed();
        test.file.execute_batch("DROP TABLE sound").unwrap();
    }
}
