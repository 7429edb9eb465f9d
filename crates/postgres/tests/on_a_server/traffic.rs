//! What a write and a load cost: round trips and statements are exact numbers.

use dacapo_core::{Seq, Timestamp};
use dacapo_postgres::PostgresStore;
use dacapo_store::{
    MessageNo, NewMessage, NewTask, ReadMessages, RunNo, TaskNo, TimerKind, TurnOf, TurnWrite, Write, Written,
};

use crate::nodes::{new, node, started, turn, write};
use crate::schema::Schema;

/// What a node does of itself is not counted, but it must not be taken for dead.
const QUIET: &str = "&lease=600s&renewal=100s";

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

fn signal(run: RunNo, number: usize) -> Write {
    let message = NewMessage { key: format!("signal:{number}").into(), sent: Timestamp::from_millis(3), job: vec![7] };
    Write::Send { run, message, ended: None }
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
fn lone_start_turn_or_signal_costs_two_round_trips() {
    let schema = Schema::new();
    let node = node(&schema.with(QUIET));
    let store = &*node.store;
    // The first write of a kind prepares its statements, and the first task draws numbers.
    let run = started(store, 1);
    write(store, turn(run, 0)).unwrap();
    write(store, signal(run, 1)).unwrap();
    let tasks = tasks_of(&write(store, busy_turn(run, 1, waiting(store, run), vec![TaskNo(0)])).unwrap());

    assert_eq!(cost(store, Write::Start(Box::new(new(2)))), (2, 9), "a start");
    assert_eq!(cost(store, signal(run, 2)), (2, 8), "a signal");
    let busy = busy_turn(run, 2, waiting(store, run), tasks);
    assert_eq!(cost(store, busy), (2, 11), "a turn that takes a message, ends a task, and makes a task and a timer");
    assert_eq!(cost(store, turn(run, 3)), (2, 6), "a turn that writes only its record");
}
