//! Lost power, full disks and failing ones, at every change that a store makes to its disk. What was acknowledged is there
//! afterwards; what was not is there whole or not at all.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc;

use dacapo_core::Timestamp;
use dacapo_faults::{Disk, Fault, FileKind};
use dacapo_sqlite::{SqliteStore, Tuning};
use dacapo_store::conformance::order;
use dacapo_store::{
    Belongings, Closing, ImportWrite, NodeNo, ReadRuns, ReadTurns, RunNo, RunRow, Status, StoreError, TurnOf,
    TurnWrite, Write, Writes, Written,
};

const RUNS: u64 = 4;
const TURNS: u64 = 3;

/// What is played.
#[derive(Clone, Copy)]
struct Shape {
    /// How large records are.
    size: usize,
    /// When the log is moved into the file while work goes on.
    pages: u32,
}

/// All of its log is moved into the file at the end alone.
const SMALL: Shape = Shape { size: 600, pages: 4_000 };
const LARGE: Shape = Shape { size: 20_000, ..SMALL };
/// The log is moved into the file again and again, between commits.
const MOVING: Shape = Shape { pages: 8, ..SMALL };

impl Shape {
    fn open(self, disk: &Disk) -> Result<SqliteStore, StoreError> {
        let tuning = Tuning { checkpoint_pages: self.pages, ..Tuning::default() };
        SqliteStore::open_tuned(&disk.path("store.db"), &tuning)
    }
}

/// The record of a turn: large enough for several pages, and unlike any other.
fn record(run: u64, turn: u64, size: usize) -> Vec<u8> {
    (0..size as u64).map(|at| (at * 31 + run * 7 + turn) as u8).collect()
}

fn turn(of: TurnOf, turn: u64, record: Vec<u8>) -> Write {
    Write::Turn(Box::new(TurnWrite {
        node: NodeNo(1),
        ..TurnWrite::new(of, turn, Timestamp::from_millis(turn), record)
    }))
}

fn write(store: &SqliteStore, write: Write) -> Result<Written, StoreError> {
    let (told, answer) = mpsc::channel();
    store.submit(write, Box::new(move |written| told.send(written).unwrap()));
    answer.recv().unwrap()
}

/// What a client knows: how many turns of each run were acknowledged, and the first error.
#[derive(Debug, Default)]
struct Known {
    turns: BTreeMap<u64, u64>,
    error: Option<StoreError>,
}

/// Two processes, one after the other, each of which plays turns of runs and closes the file in an orderly way. A write
/// that fails is not tried again.
fn play(disk: &Disk, shape: Shape) -> Known {
    let mut known = Known::default();
    for process in 0..2 {
        match shape.open(disk) {
            Ok(store) => {
                play_one(&store, process, shape.size, &mut known);
                store.close().unwrap();
            }
            Err(error) => drop(known.error.get_or_insert(error)),
        }
    }
    known
}

fn play_one(store: &SqliteStore, process: u64, size: usize, known: &mut Known) {
    for run in process * RUNS..(process + 1) * RUNS {
        let mut of = TurnOf::New(Box::new(order(run as usize)));
        for number in 0..TURNS {
            match write(store, turn(of.clone(), number, record(run, number, size))) {
                Ok(Written::Turn(written)) => {
                    of = TurnOf::Run(written.run);
                    known.turns.insert(run, number + 1);
                }
                Ok(other) => panic!("a turn was answered with {other:?}"),
                Err(error) => {
                    known.error.get_or_insert(error);
                    break;
                }
            }
        }
    }
}

/// How a file and what is known of it disagree, if they do.
fn disagreement(disk: &Disk, known: &Known, shape: Shape) -> Option<String> {
    let store = match SqliteStore::open(&disk.path("store.db")) {
        Ok(store) => store,
        Err(error) => return Some(format!("it does not open: {error}")),
    };
    let found = checked(&store, known, shape.size);
    let sound: String = rusqlite::Connection::open(disk.path("store.db"))
        .and_then(|file| file.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .unwrap_or_else(|error| error.to_string());
    found.err().or_else(|| (sound != "ok").then_some(sound))
}

fn checked(store: &SqliteStore, known: &Known, size: usize) -> Result<(), String> {
    for number in 0..2 * RUNS {
        let row = store.find(&format!("order-{number}"), None).map_err(|error| error.to_string())?;
        let acknowledged = known.turns.get(&number).copied().unwrap_or(0);
        let (no, turns) = row.map_or((RunNo(0), 0), |row| (row.no, row.turns));
        // One more may have been on its way.
        if turns < acknowledged || turns > acknowledged + 1 {
            return Err(format!("run {number} has {turns} turns, and {acknowledged} were acknowledged"));
        }
        let mut records = 0;
        let read = store.turns(no, 0, &mut |turn, bytes| {
            records += u64::from(bytes == record(number, turn, size));
            ControlFlow::Continue(())
        });
        read.map_err(|error| error.to_string())?;
        if records != turns {
            return Err(format!("run {number} has {turns} turns and {records} records"));
        }
    }
    Ok(())
}

/// How many changes a play makes to a disk on which nothing goes wrong.
fn changes(shape: Shape) -> u64 {
    let disk = Disk::new();
    let known = play(&disk, shape);
    assert_eq!((known.turns.len() as u64, &known.error), (2 * RUNS, &None));
    assert_eq!(disagreement(&disk, &known, shape), None);
    disk.counts().changes
}

/// Plays once for every change with the power cut at it, and gives the plays after which the file and what is known of it
/// disagree.
fn cut_everywhere(shape: Shape, step: usize, lies: Option<FileKind>) -> Vec<String> {
    let mut wrong = Vec::new();
    for change in (0..changes(shape)).step_by(step) {
        for luck in [0, change + 1] {
            let disk = Disk::new();
            lies.into_iter().for_each(|kind| disk.lie_about(kind));
            disk.fail_from(change, u64::MAX, Fault::PowerLoss);
            let known = play(&disk, shape);
            assert!(known.error.is_some() || !disk.has_power(), "the power was cut");
            disk.cut();
            disk.restore(luck);
            let disagreement = disagreement(&disk, &known, shape);
            wrong.extend(disagreement.map(|how| format!("change {change}, luck {luck}: {how}")));
        }
    }
    wrong
}

#[test]
fn acknowledged_writes_survive_a_power_loss_at_every_change() {
    assert_eq!(cut_everywhere(SMALL, 1, None), [""; 0]);
}

#[test]
fn large_records_survive_a_power_loss_too() {
    assert_eq!(cut_everywhere(LARGE, 7, None), [""; 0]);
}

#[test]
fn a_log_that_is_moved_into_the_file_while_work_goes_on_survives_a_power_loss_too() {
    let main_flushes = |shape| {
        let disk = Disk::new();
        play(&disk, shape);
        disk.counts().main_flushes
    };
    assert!(main_flushes(MOVING) >= main_flushes(SMALL) + 4, "it is moved between commits");
    assert_eq!(cut_everywhere(MOVING, 3, None), [""; 0]);
}

/// A disk with a store of one closed run of three turns.
fn with_closed_run() -> (Disk, SqliteStore, RunRow) {
    let disk = Disk::new();
    let store = SMALL.open(&disk).unwrap();
    let mut of = TurnOf::New(Box::new(order(0)));
    for number in 0..TURNS {
        let Write::Turn(mut play) = turn(of.clone(), number, record(0, number, 600)) else { panic!("it is a turn") };
        let result = Vec::new();
        let closing = Closing { status: Status::Completed, result, to_parent: None, next: None, carried: Vec::new() };
        play.close = (number + 1 == TURNS).then_some(closing);
        let Ok(Written::Turn(written)) = write(&store, Write::Turn(play)) else { panic!("nothing goes wrong yet") };
        of = TurnOf::Run(written.run);
    }
    let row = store.find("order-0", None).unwrap().unwrap();
    (disk, store, row)
}

/// Deletes the run, sweeps it up in two steps, and imports it again under another name.
fn upkeep(row: &RunRow) -> [Write; 4] {
    let run = RunRow { run_id: "elsewhere".into(), workflow_id: "elsewhere".into(), ..row.clone() };
    let turns = (0..TURNS).map(|number| record(0, number, 600)).collect();
    let import = ImportWrite { run, turns, belongings: Belongings::default() };
    let sweep = Write::Sweep { most: 2 };
    [Write::Delete { run: row.no }, sweep.clone(), sweep, Write::Import(Box::new(import))]
}

/// All that there is of both.
fn state(store: &SqliteStore, run: RunNo) -> String {
    let turns_of = |run: RunNo| {
        let mut turns = Vec::new();
        let show = &mut |turn: u64, bytes: &[u8]| {
            turns.push((turn, bytes == record(0, turn, 600)));
            ControlFlow::Continue(())
        };
        store.turns(run, 0, show).unwrap();
        turns
    };
    let imported = store.find("elsewhere", None).unwrap().map(|row| turns_of(row.no));
    let is_there = store.run(run).unwrap().is_some();
    format!("{is_there} {:?} {} {imported:?}", turns_of(run), store.has_remains().unwrap())
}

#[test]
fn deletions_and_imports_are_whole_wherever_the_power_fails() {
    let (disk, store, row) = with_closed_run();
    let before = disk.counts().changes;
    let mut states = vec![state(&store, row.no)];
    for step in upkeep(&row) {
        write(&store, step).unwrap();
        states.push(state(&store, row.no));
    }
    for change in before..disk.counts().changes {
        for luck in [0, change + 1] {
            let (disk, store, row) = with_closed_run();
            disk.fail_from(change, u64::MAX, Fault::PowerLoss);
            let done = upkeep(&row).into_iter().take_while(|step| write(&store, step.clone()).is_ok()).count();
            drop(store);
            disk.restore(luck);
            let found = state(&SMALL.open(&disk).unwrap(), row.no);
            // One more may have been on its way.
            let expected = &states[done..states.len().min(done + 2)];
            assert!(expected.contains(&found), "change {change}, luck {luck}: {found}, and not {expected:#?}");
        }
    }
}

/// Without the flush of the log a commit that was acknowledged is lost: the sweep above would see it, and so does the next
/// process, by the note of the last commit.
#[test]
fn without_the_flush_of_the_log_commits_are_lost() {
    let wrong = cut_everywhere(SMALL, 5, Some(FileKind::Log));
    assert!(wrong.iter().any(|how| how.contains("acknowledged work is missing")), "{wrong:#?}");
}

/// The note of the last commit is not on the disk of these tests: it keeps all that was ever written to it, which is the worst
/// that it can do, in all sweeps of this file. Here it is lost or torn as well.
#[test]
fn note_of_the_last_commit_refuses_nothing_that_a_power_loss_left() {
    let mut noted = 0;
    for change in (0..changes(MOVING)).step_by(9) {
        let disk = Disk::new();
        disk.fail_from(change, u64::MAX, Fault::PowerLoss);
        let known = play(&disk, MOVING);
        disk.cut();
        disk.restore(change + 1);
        let path = disk.path("store.db-commits");
        let note = std::fs::read(&path).unwrap_or_default();
        noted += usize::from(!note.is_empty());
        for left in [note.len(), note.len() / 2, 0] {
            std::fs::write(&path, &note[..left]).unwrap();
            assert_eq!(disagreement(&disk, &known, MOVING), None, "change {change}, {left} bytes of the note");
        }
    }
    assert!(noted > 10, "{noted} notes");
}

/// Without the flush of the file itself a log that was moved into it is lost: the sweep above would see it.
#[test]
fn without_the_flush_of_the_file_what_was_moved_into_it_is_lost() {
    assert_ne!(cut_everywhere(SMALL, 1, Some(FileKind::Main)), [""; 0]);
    assert_ne!(cut_everywhere(MOVING, 7, Some(FileKind::Main)), [""; 0]);
}

/// A disk that is full for a while, from every change on: each write is whole or refused as such, and once there is room
/// again all goes on, in the same process or in the next.
#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing() {
    let mut refused = 0;
    for change in 0..changes(SMALL) {
        let disk = Disk::new();
        disk.fail_from(change, 9, Fault::Full);
        let known = play(&disk, SMALL);
        disk.repair();
        if let Some(error) = &known.error {
            refused += 1;
            assert!(matches!(error, StoreError::Full(_)), "change {change}: {error}");
        }
        assert_eq!(disagreement(&disk, &known, SMALL), None, "change {change}");
        let store = SqliteStore::open(&disk.path("store.db")).unwrap();
        let more = write(&store, turn(TurnOf::New(Box::new(order(99))), 0, vec![1]));
        assert!(more.is_ok(), "change {change}: {more:?}");
    }
    assert!(refused > 20, "{refused} plays met a full disk");
}

/// One change that fails, a write or a flush: the caller that waited for it is told, nothing is written after a commit of unknown
/// outcome, and the next process finds all that was acknowledged.
#[test]
fn a_change_that_fails_stops_the_writer_and_loses_nothing() {
    for change in 0..changes(SMALL) {
        let disk = Disk::new();
        disk.fail_from(change, 1, Fault::Broken);
        let known = play(&disk, SMALL);
        if let Some(error) = &known.error {
            assert!(matches!(error, StoreError::Unavailable(_) | StoreError::Full(_)), "change {change}: {error}");
        }
        assert_eq!(disagreement(&disk, &known, SMALL), None, "change {change}");
    }
}

/// A flush that failed is not tried again by the same process: the data may be gone although the next one succeeds.
#[test]
fn after_a_flush_that_failed_nothing_is_written_by_the_same_process() {
    let disk = Disk::new();
    let store = SqliteStore::open(&disk.path("store.db")).unwrap();
    let start = |number| turn(TurnOf::New(Box::new(order(number as usize))), 0, record(number, 0, 600));
    write(&store, start(0)).unwrap();
    let before = disk.counts();
    write(&store, start(1)).unwrap();
    let changes = disk.counts().changes - before.changes;
    assert_eq!(disk.counts().log_flushes - before.log_flushes, 1, "one commit, one flush");
    // The last change of a commit is its flush.
    disk.fail_from(disk.counts().changes + changes - 1, 1, Fault::Broken);
    let unknown = write(&store, start(2)).unwrap_err();
    assert!(unknown.to_string().contains("outcome of a commit is unknown"), "{unknown}");
    let after = disk.counts();
    assert_eq!(write(&store, start(3)), Err(unknown));
    assert_eq!(disk.counts().changes, after.changes);
    store.close().unwrap();
    drop(store);
    let next = SqliteStore::open(&disk.path("store.db")).unwrap();
    assert!(next.find("order-1", None).unwrap().is_some() && next.find("order-3", None).unwrap().is_none());
    write(&next, start(4)).unwrap();
}
