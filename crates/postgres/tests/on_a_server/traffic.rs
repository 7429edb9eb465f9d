//! What a write and a load cost: round trips and statements are exact numbers.

use std::ops::ControlFlow;

use dacapo_core::{Failure, FailureKind, Seq, Timestamp};
use dacapo_postgres::PostgresStore;
use dacapo_store::{
    MessageNo, NewTask, ReadMessages, ReadRuns, ReadTurns, Records, RunNo, Status, StoredRun, TaskNo, TimerKind,
    TurnOf, TurnWrite, Write, Written,
};

use crate::kit::{QUIET, new, node, signal, start, started, turn, write};
use crate::schema::Schema;

/// Does something, and returns the round trips and statements of the commits and of the reads that it needed.
fn counted<R>(store: &PostgresStore, act: impl FnOnce() -> R) -> ([(u64, u64); 2], R) {
    let before = store.traffic();
    let done = act();
    let after = store.traffic();
    ([0, 1].map(|kind| (after[kind].0 - before[kind].0, after[kind].1 - before[kind].1)), done)
}

/// Returns the round trips and statements of a write, which must succeed.
fn cost(store: &PostgresStore, one: Write) -> (u64, u64) {
    let ([commits, reads], written) = counted(store, || write(store, one));
    written.expect("the write is made");
    assert_eq!(reads, (0, 0));
    commits
}

fn read_cost<R>(store: &PostgresStore, read: impl FnOnce() -> R) -> ((u64, u64), R) {
    let ([_, reads], read) = counted(store, read);
    (reads, read)
}

/// Returns the message of a run that no turn has taken.
fn waiting(store: &PostgresStore, run: RunNo) -> MessageNo {
    store.unseen(run).unwrap().last().expect("a message waits").no
}

/// A turn that takes a message, ends a task, and makes a task and a timer.
fn busy_turn(run: RunNo, number: u64, taken: MessageNo, ended: Vec<TaskNo>) -> Write {
    let mut turn = TurnWrite::new(TurnOf::Run(run), number, Timestamp::from_millis(2), vec![1; 9]);
    turn.taken.push(taken);
    turn.ended_tasks = ended;
    turn.timers.push((Timestamp::from_millis(900_000), TimerKind::Sleep(Seq(number))));
    let (queue, ready) = ("main".into(), Timestamp::from_millis(2));
    turn.tasks.push(NewTask { seq: Seq(number), queue, ready, priority: 0, position: 0, offered: false });
    Write::Turn(Box::new(turn))
}

fn tasks_of(written: &Written) -> Vec<TaskNo> {
    match written {
        Written::Turn(turn) => turn.tasks.clone(),
        other => panic!("a turn was answered with {other:?}"),
    }
}

#[test]
fn lone_start_or_signal_costs_two_round_trips_and_a_turn_one() {
    let schema = Schema::new();
    let node = node(&schema.with(QUIET));
    let store = &*node.store;
    // The first writes of a kind prepare their statements, and the first task draws numbers.
    let run = started(store, 1);
    let mut tasks = vec![TaskNo(0)];
    for number in [0, 2] {
        write(store, turn(run, number)).unwrap();
        write(store, signal(run, number as usize)).unwrap();
        let busy = busy_turn(run, number + 1, waiting(store, run), tasks);
        tasks = tasks_of(&write(store, busy).unwrap());
    }

    assert_eq!(cost(store, start(new(2))), (2, 9), "a start");
    assert_eq!(cost(store, signal(run, 4)), (2, 8), "a signal");
    let busy = busy_turn(run, 4, waiting(store, run), tasks);
    assert_eq!(cost(store, busy), (1, 11), "a turn that takes a message, ends a task, and makes a task and a timer");
    assert_eq!(cost(store, turn(run, 5)), (1, 6), "a turn that writes only its record");
}

fn shown(records: &Records) -> Vec<(u64, Vec<u8>)> {
    let mut shown = Vec::new();
    let _ = records.show(&mut |turn, record| {
        shown.push((turn, record.to_vec()));
        ControlFlow::Continue(())
    });
    shown
}

/// Adds a run with so many turns, each with a record of this length.
fn with_turns(store: &PostgresStore, schema: &Schema, number: usize, turns: u64, length: usize) -> RunNo {
    let run = started(store, number);
    schema.execute(&format!(
        "INSERT INTO turns (run, turn, record) SELECT {0}, turn, convert_to(rpad(turn::text, {length}, '.'), 'UTF8') \
         FROM generate_series(0, {turns} - 1) AS turn; UPDATE runs SET turns = {turns} WHERE no = {0}",
        run.0
    ));
    run
}

#[test]
fn cold_load_costs_one_round_trip_and_a_long_history_one_more_for_each_portion() {
    let schema = Schema::new();
    let node = node(&schema.with(QUIET));
    let store = &*node.store;
    let load = |run| store.load(run).unwrap().expect("the run is there");
    // The first ones prepare the statements.
    let first = with_turns(store, &schema, 0, 1, 1);
    load(first);
    store.records(first, 0, 0).unwrap();
    // Full are 256 records, or as many as have a million bytes.
    for (number, (turns, length, first)) in
        [(0, 9, 0), (1, 9, 1), (255, 9, 255), (256, 9, 256), (600, 9, 256), (7, 400_000, 3)].into_iter().enumerate()
    {
        let run = with_turns(store, &schema, number + 1, turns, length);
        write(store, signal(run, 1)).unwrap();
        let (cost, loaded) = read_cost(store, || load(run));
        assert_eq!(cost, (1, 3), "{turns} turns of {length} bytes");
        let StoredRun { row, along } = loaded;
        let along = along.expect("all of it is read at once");
        assert_eq!(Some(row), store.run(run).unwrap());
        let unseen = along.unseen.expect("they are few");
        assert_eq!(unseen, store.unseen(run).unwrap());
        assert_eq!(unseen.len(), 2, "the start and the signal");

        let mut all = shown(&along.records);
        assert_eq!(all.len(), first, "{turns} turns of {length} bytes");
        let mut next = along.records.next();
        while let Some(from) = next {
            let (cost, records) = read_cost(store, || store.records(run, from, 0).unwrap());
            assert_eq!(cost, (1, 1));
            all.extend(shown(&records));
            next = records.next();
        }
        let record = |turn: u64| {
            let mut record = turn.to_string().into_bytes();
            record.resize(length, b'.');
            (turn, record)
        };
        assert!(all == (0..turns).map(record).collect::<Vec<_>>(), "{turns} turns of {length} bytes");
    }
    assert!(store.load(RunNo(1)).unwrap().is_none());
}

#[test]
fn load_of_a_closed_run_brings_its_row_alone_and_that_of_an_open_one_no_more_messages_than_may_be_needed() {
    let schema = Schema::new();
    let node = node(&schema.with(QUIET));
    let store = &*node.store;
    let run = with_turns(store, &schema, 1, 3, 9);
    let unseen = || store.load(run).unwrap().unwrap().along.expect("it is open").unseen;
    let add = |from: usize, until: usize, length: usize| {
        schema.execute(&format!(
            "INSERT INTO messages (no, run, key, sent, job) SELECT 1000 + number, {}, 'signal:' || number, 3, \
             convert_to(repeat('.', {length}), 'UTF8') FROM generate_series({from}, {until}) AS number",
            run.0
        ));
    };
    // The start is one of them.
    add(1, 255, 1);
    assert_eq!(unseen().map(|unseen| unseen.len()), Some(256));
    add(256, 256, 1);
    assert_eq!(unseen(), None, "they are too many");
    schema.execute("DELETE FROM messages WHERE no > 1010");
    add(11, 12, 400_000);
    assert_eq!(unseen().map(|unseen| unseen.len()), Some(13));
    add(13, 14, 400_000);
    assert_eq!(unseen(), None, "they are too large");
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run, status: Status::Terminated, at: Timestamp::from_millis(4), failure }).unwrap();
    let ([_, cost], loaded) = counted(store, || store.load(run).unwrap().expect("it is there"));
    assert_eq!((cost, loaded.row.turns, loaded.along.is_none()), ((1, 3), 3, true));
}

#[test]
fn reader_that_wants_one_record_is_not_sent_a_history() {
    let schema = Schema::new();
    let node = node(&schema.with(QUIET));
    let store = &*node.store;
    let run = with_turns(store, &schema, 1, 600, 9);
    let mut counted = |most: usize| {
        let mut seen = 0;
        let mut show = |_: u64, _: &[u8]| {
            seen += 1;
            if seen == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (cost, ()) = read_cost(store, || store.turns(run, 0, &mut show).unwrap());
        (cost.1, seen)
    };
    counted(1);
    // 4 records, then 16, 64 and 256 at a time.
    assert_eq!([1, 4, 5, 20, 84, 9_999].map(&mut counted), [(1, 1), (1, 4), (2, 5), (2, 20), (3, 84), (6, 600)]);
}
