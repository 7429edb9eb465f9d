//! Two nodes at the same rows: the second waits until the first has committed, and decides by what it finds then.

use dacapo_core::{Failure, FailureKind, IdReuse, Name, ParentClose, Seq, Timestamp};
use dacapo_postgres::PostgresStore;
use dacapo_store::{
    Closing, NewRun, Parent, ReadRuns, Refused, RunNo, SharedStore, Status, StoreError, TimerKind, TurnOf, TurnWrite,
    Write,
};

use crate::kit::{
    LONG, TestNode, WriteResult, as_write, attempt, make_tasks, new, node_of, plain_turn, refused, run_of_each, signal,
    start, submit_on_a_thread, task, turn, turns, two_nodes, until, write,
};
use crate::schema::Schema;

/// Two nodes, and a gate.
struct Two {
    schema: Schema,
    a: TestNode,
    b: TestNode,
}

impl Two {
    fn new() -> Self {
        let schema = Schema::new();
        let [a, b] = two_nodes([&schema.named("a", LONG), &schema.named("b", LONG)]);
        Self { schema, a, b }
    }

    /// Starts a run of each node.
    fn runs(&self) -> [RunNo; 2] {
        run_of_each(&[&self.a, &self.b]).try_into().expect("there are two")
    }

    /// Has the first node make a write, which waits at the gate before this change, and meanwhile the second another, until that waits or is
    /// answered. Returns both answers.
    fn one_after_the_other(&self, (change, condition): (&str, &str), first: Write, second: Write) -> [WriteResult; 2] {
        self.schema.add_gate(change, condition);
        let shut = self.schema.shut_gate();
        let one = submit_on_a_thread(&self.a.store, first);
        until("the first waits at the gate", || self.schema.is_waiting("a"));
        let other = submit_on_a_thread(&self.b.store, second);
        let mut early = None;
        until("the second waits, or is answered", || {
            early = other.now();
            early.is_some() || self.schema.is_waiting("b")
        });
        drop(shut);
        [one.get(), early.unwrap_or_else(|| other.get())]
    }
}

fn ending() -> Closing {
    Closing { status: Status::Completed, result: vec![1], to_parent: None, next: None, carried: Vec::new() }
}

fn terminated(run: RunNo) -> Write {
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    Write::Close { run, status: Status::Terminated, at: Timestamp::from_millis(9), failure }
}

/// A turn that starts so many children, and first this one.
fn parent_of(run: RunNo, first: NewRun, count: u64) -> Write {
    let child = |seq: u64, new: NewRun| {
        let parent = Some(Parent { run, seq: Seq(seq), close: ParentClose::Abandon });
        (Seq(seq), NewRun { parent, ..new })
    };
    let rest = (1..count).map(|seq| child(seq, new(10_000 + seq as usize)));
    let children = [child(0, first)].into_iter().chain(rest).collect();
    as_write(TurnWrite { children, ..plain_turn(run, 0) })
}

/// A group that starts more ids than the table of locks has room for locks them all.
#[test]
fn an_id_that_a_start_has_looked_up_is_no_other_s_until_that_is_committed() {
    let used = || NewRun { run_id: "first".into(), reuse: IdReuse::RejectDuplicate, ..new(1) };
    // It closes with its first turn, so that the table itself has nothing against it beside another run.
    let closed = || {
        let other = NewRun { run_id: "second".into(), ..new(1) };
        let turn = TurnWrite::new(TurnOf::New(Box::new(other)), 0, Timestamp::from_millis(2), vec![0; 9]);
        as_write(TurnWrite { close: Some(ending()), ..turn })
    };
    for case in ["one id before one", "many before one", "one before many"] {
        let two = Two::new();
        let [of_a, of_b] = two.runs();
        let first = if case == "many before one" { parent_of(of_a, used(), 250) } else { start(used()) };
        let second = match case {
            "one before many" => parent_of(of_b, NewRun { run_id: "second".into(), ..new(1) }, 250),
            _ => closed(),
        };
        let [one, other] = two.one_after_the_other(("INSERT ON runs", "NEW.run_id = 'first'"), first, second);
        one.unwrap_or_else(|error| panic!("{case}: {error}"));
        // A child that cannot be started is no error: its parent is told.
        assert_eq!(other.is_ok(), case == "one before many", "{case}: {other:?}");
        let found = two.a.store.find("order-1", None).unwrap().map(|row| row.run_id);
        let all = two.schema.number("SELECT count(*) FROM runs WHERE workflow_id = 'order-1'");
        assert_eq!((found, all), (Some(Name::from("first")), 1), "{case}");
    }
}

#[test]
fn a_request_that_a_start_has_looked_up_is_no_other_s_until_that_is_committed() {
    let two = Two::new();
    let asked = |number: usize| start(NewRun { request: Some("request".into()), ..new(number) });
    let [one, other] = two.one_after_the_other(("INSERT ON runs", "NEW.run_id = 'run-1'"), asked(1), asked(2));
    one.expect("the first makes the request");
    other.expect_err("the request is that of another start");
    assert_eq!(two.schema.number("SELECT count(*) FROM runs WHERE request = 'request'"), 1);
}

#[test]
fn a_message_that_comes_before_the_end_of_a_run_keeps_it_open() {
    let two = Two::new();
    let [_, run] = two.runs();
    let start = two.schema.number(&format!("SELECT no FROM messages WHERE run = {}", run.0));
    let last = TurnWrite { taken: vec![dacapo_store::MessageNo(start)], close: Some(ending()), ..plain_turn(run, 0) };
    let gate = ("INSERT ON messages", "NEW.key = 'signal:1'");
    let [sent, ended] = two.one_after_the_other(gate, signal(run, 1), as_write(last));
    sent.expect("the run is open");
    assert_eq!(refused(ended), Refused::UnseenMessages);
}

#[test]
fn a_message_that_comes_after_the_end_of_a_run_is_refused() {
    let two = Two::new();
    let [_, run] = two.runs();
    let gate = ("UPDATE ON runs", "NEW.status <> 0");
    let [ended, sent] = two.one_after_the_other(gate, terminated(run), signal(run, 1));
    ended.expect("the run is open");
    assert_eq!(refused(sent), Refused::Closed(Status::Terminated));
}

/// The second kind of turn is not committed in one round trip.
#[test]
fn a_turn_that_comes_after_the_end_of_its_run_is_refused() {
    for memo in [None, Some(vec![1])] {
        let two = Two::new();
        let [_, run] = two.runs();
        let gate = ("UPDATE ON runs", "NEW.status <> 0");
        let late = as_write(TurnWrite { memo, ..plain_turn(run, 0) });
        let [ended, played] = two.one_after_the_other(gate, terminated(run), late);
        ended.expect("the run is open");
        assert_eq!(refused(played), Refused::Closed(Status::Terminated));
        assert_eq!(turns(&two.b.store, run), 0);
    }
}

#[test]
fn an_attempt_that_comes_after_the_end_of_its_task_is_refused() {
    let two = Two::new();
    let [run, _] = two.runs();
    let ended_tasks = make_tasks(&two.a.store, run, 0, vec![task(1, true)]);
    assert_eq!(two.b.store.claim(&[("main".into(), 1)]).unwrap().len(), 1);
    let task = ended_tasks[0];
    let timers = vec![(Timestamp::from_millis(900_000), TimerKind::Sleep(Seq(2)))];
    let ends = as_write(TurnWrite { ended_tasks, timers, ..plain_turn(run, 1) });
    let [ended, attempted] = two.one_after_the_other(("INSERT ON timers", "true"), ends, attempt(task, 2));
    ended.expect("the turn is the next");
    assert_eq!(refused(attempted), Refused::NoSuchTask);
}

#[test]
fn nodes_that_bring_a_new_queue_at_once_make_its_shards_once() {
    let schema = Schema::new();
    drop(PostgresStore::open(schema.url()).expect("the tables are made"));
    schema.add_gate("INSERT ON shards", "true");
    let shut = schema.shut_gate();
    let joining = ["a", "b"].map(|name| {
        let url = schema.named(name, LONG);
        std::thread::spawn(move || node_of(&url, &["main"]))
    });
    until("both wait", || schema.is_waiting("a") && schema.is_waiting("b"));
    drop(shut);
    let nodes = joining.map(|joining| joining.join().expect("both join"));
    assert_eq!(schema.number("SELECT count(*) FROM shards"), 16);
    until("they share them", || nodes.iter().all(|node| node.shards() == 8));
}

/// The row of a run has room for 1,024 of them.
#[test]
fn a_queue_for_which_no_shards_are_left_is_refused() {
    let schema = Schema::new();
    drop(PostgresStore::open(schema.url()).expect("the tables are made"));
    schema.execute("INSERT INTO shards (no, queue) SELECT no, 'of_others' FROM generate_series(0, 1015) AS no");
    let node = node_of(&schema.with(LONG), &["late"]);
    until("it has the eight that are left", || node.shards() == 8);
    write(&node.store, start(NewRun { queue: "late".into(), ..new(1) })).expect("its queue has shards");
    match write(&node.store, start(NewRun { queue: "later".into(), ..new(2) })) {
        Err(StoreError::Unsupported(error)) => assert!(error.contains("all 1,024 of the store are in use"), "{error}"),
        other => panic!("the start was answered with {other:?}"),
    }
}

/// The table has the last word: a row that comes between the look and the insert, past the locks, ends as one that was there before.
#[test]
fn a_run_that_comes_past_the_locks_is_found_after_all() {
    let two = Two::new();
    let run = two.runs()[0];
    two.schema.add_gate("INSERT ON runs", "NEW.run_id = 'run-1'");
    let shut = two.schema.shut_gate();
    let late = submit_on_a_thread(&two.a.store, start(new(1)));
    until("the start waits at the gate", || two.schema.is_waiting("a"));
    two.schema.execute(&format!(
        "INSERT INTO runs SELECT (jsonb_populate_record(runs, '{{\"no\": {}, \"run_id\": \"other\", \"workflow_id\": \"order-1\"}}')).* \
         FROM runs WHERE no = {}",
        run.0 + (1 << 30),
        run.0
    ));
    drop(shut);
    assert!(matches!(refused(late.get()), Refused::InUse { .. }));
    write(&two.a.store, turn(run, 0)).expect("the node goes on");
}
