//! A turn's batch at the border of the store: taken whole and once, or refused whole.

use std::ops::ControlFlow;
use std::sync::mpsc;

use dacapo_core::{Name, Seq, Timestamp};
use dacapo_store::{
    Conflict, Epoch, MemoryStore, NewRun, NewTask, Refused, RunNo, Runs, StoreError, Tasks, TurnOf, TurnWrite,
    TurnWritten, Turns, Write, Writes, Written,
};

fn write(store: &MemoryStore, write: Write) -> Result<Written, StoreError> {
    let (told, answer) = mpsc::channel();
    store.submit(write, Box::new(move |written| told.send(written).unwrap()));
    answer.recv().unwrap()
}

fn start(store: &MemoryStore, workflow_id: &'static str) -> RunNo {
    let new = NewRun {
        run_id: format!("run of {workflow_id}").into(),
        workflow_id: workflow_id.into(),
        workflow: "kit".into(),
        queue: "main".into(),
        started: Timestamp::from_millis(1),
        pins: Vec::new(),
        start: Vec::new(),
        parent: None,
        first_run_id: Name::default(),
        reuse: Default::default(),
        conflict: Conflict::Fail,
        request: None,
        timers: Vec::new(),
        memo: Vec::new(),
        attributes: Vec::new(),
    };
    match write(store, Write::Start(Box::new(new))).unwrap() {
        Written::Started { run, .. } => run.run,
        other => panic!("a start was answered with {other:?}"),
    }
}

/// A turn that asks for so many activities; the record stands for their types and ids.
fn batch(run: RunNo, tasks: u64, record: &'static str) -> Write {
    let task =
        |seq| NewTask { seq: Seq(seq), queue: "main".into(), ready: Timestamp(0), priority: 0, position: seq as u32 };
    Write::Turn(Box::new(TurnWrite {
        tasks: (0..tasks).map(task).collect(),
        ..TurnWrite::new(TurnOf::Run(run), 0, Timestamp::from_millis(1), record.as_bytes().to_vec())
    }))
}

/// What the store holds of a run: its records, and the places of its tasks.
fn held(store: &MemoryStore, run: RunNo) -> (Vec<String>, Vec<(u64, u32)>) {
    let mut records = Vec::new();
    let mut show = |_: u64, record: &[u8]| {
        records.push(String::from_utf8(record.to_vec()).unwrap());
        ControlFlow::Continue(())
    };
    store.turns(run, 0, &mut show).unwrap();
    let tasks = store.tasks_of(run).unwrap().into_iter().map(|task| (task.turn, task.position)).collect();
    (records, tasks)
}

/// S4-36 S4-41
#[test]
fn a_batch_that_is_sent_again_because_its_answer_was_lost_is_stored_once() {
    let store = MemoryStore::new();
    let run = start(&store, "a");
    let Ok(Written::Turn(first)) = write(&store, batch(run, 2, "charge, ship")) else { panic!("a free turn is taken") };
    assert_eq!((first.run, first.tasks.len()), (run, 2));
    let stored = (vec!["charge, ship".to_owned()], vec![(0, 0), (0, 1)]);
    assert_eq!(held(&store, run), stored);
    let again = write(&store, batch(run, 2, "charge, ship"));
    assert_eq!(again, Ok(Written::Turn(Box::new(TurnWritten { run, ..TurnWritten::default() }))));
    assert_eq!(held(&store, run), stored);
}

/// S4-43
#[test]
fn a_batch_in_the_place_of_another_is_compared_before_it_is_taken_for_the_same() {
    let store = MemoryStore::new();
    let (run, other) = (start(&store, "a"), start(&store, "b"));
    write(&store, batch(run, 1, "charge")).unwrap();
    let stored = held(&store, run);
    let refused = write(&store, batch(run, 1, "refund"));
    assert_eq!(refused, Err(Refused::Fenced { turns: 1, epoch: Epoch::default() }.into()));
    assert_eq!(held(&store, run), stored, "nothing of the second is stored");
    assert_eq!(held(&store, other), (Vec::new(), Vec::new()), "and nothing under another run");
}

/// S4-45
#[test]
fn a_batch_for_a_run_that_does_not_exist_is_refused_and_stores_nothing() {
    let store = MemoryStore::new();
    let nobody = RunNo(4_711);
    assert_eq!(write(&store, batch(nobody, 3, "charge")), Err(Refused::NoSuchRun.into()));
    assert_eq!(held(&store, nobody), (Vec::new(), Vec::new()));
    assert_eq!((store.run(nobody).unwrap(), store.count(&Default::default()).unwrap()), (None, 0));
}
