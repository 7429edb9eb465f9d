//! A turn's batch at the border of the store: taken whole and once, or refused whole.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};

use dacapo_core::{Name, Seq, Timestamp};
use dacapo_store::{
    Batch, Done, Epoch, Group, IdConflict, MemoryStore, NewMessage, NewRun, NewTask, ReadRuns, ReadTasks, ReadTurns,
    Refused, RunNo, StoreError, TurnOf, TurnWrite, TurnWritten, Write, Writes, Written,
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
        conflict: IdConflict::Fail,
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
    let task = |seq| NewTask {
        seq: Seq(seq),
        queue: "main".into(),
        ready: Timestamp(0),
        priority: 0,
        position: seq as u32,
        offered: false,
    };
    Write::Turn(Box::new(TurnWrite {
        tasks: (0..tasks).map(task).collect(),
        ..TurnWrite::new(TurnOf::Run(run), 0, Timestamp::from_millis(1), record.as_bytes().to_vec())
    }))
}

/// What the store holds of a run: its records, and the places of its tasks.
fn records_and_tasks(store: &MemoryStore, run: RunNo) -> (Vec<String>, Vec<(u64, u32)>) {
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
    assert_eq!(records_and_tasks(&store, run), stored);
    let again = write(&store, batch(run, 2, "charge, ship"));
    assert_eq!(again, Ok(Written::Turn(Box::new(TurnWritten { run, ..TurnWritten::default() }))));
    assert_eq!(records_and_tasks(&store, run), stored);
}

/// S4-43
#[test]
fn a_batch_in_the_place_of_another_is_compared_before_it_is_taken_for_the_same() {
    let store = MemoryStore::new();
    let (run, other) = (start(&store, "a"), start(&store, "b"));
    write(&store, batch(run, 1, "charge")).unwrap();
    let stored = records_and_tasks(&store, run);
    let refused = write(&store, batch(run, 1, "refund"));
    assert_eq!(refused, Err(Refused::Fenced { turns: 1, epoch: Epoch::default() }.into()));
    assert_eq!(records_and_tasks(&store, run), stored, "nothing of the second is stored");
    assert_eq!(records_and_tasks(&store, other), (Vec::new(), Vec::new()), "and nothing under another run");
}

/// S4-45
#[test]
fn a_batch_for_a_run_that_does_not_exist_is_refused_and_stores_nothing() {
    let store = MemoryStore::new();
    let absent = RunNo(4_711);
    assert_eq!(write(&store, batch(absent, 3, "charge")), Err(Refused::NoSuchRun.into()));
    assert_eq!(records_and_tasks(&store, absent), (Vec::new(), Vec::new()));
    assert_eq!((store.run(absent).unwrap(), store.count(&Default::default(), u64::MAX).unwrap()), (None, 0));
}

/// S4-34: starts and messages make no task, and neither does a turn that is refused.
#[test]
fn tasks_come_from_committed_turns_only() {
    let store = MemoryStore::new();
    let (run, other) = (start(&store, "a"), start(&store, "b"));
    assert_eq!(records_and_tasks(&store, run), (Vec::new(), Vec::new()), "a start makes none");
    let message = NewMessage { key: "signal:1".into(), sent: Timestamp::from_millis(1), job: b"work".to_vec() };
    write(&store, Write::Send { run, message, ended: None }).unwrap();
    assert_eq!(records_and_tasks(&store, run).1, [], "nor does a message");
    write(&store, batch(run, 1, "ship")).unwrap();
    assert_eq!(records_and_tasks(&store, run).1, [(0, 0)], "a committed turn does");
    assert!(write(&store, batch(run, 2, "charge")).is_err());
    assert_eq!(
        (records_and_tasks(&store, run).1, records_and_tasks(&store, other).1),
        (vec![(0, 0)], vec![]),
        "and a refused one does not"
    );
}

/// Counts an answer.
fn count_into(counter: Arc<AtomicUsize>) -> Done {
    Box::new(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

/// Commits nothing and notes how many writes came together. While the first is committed, others are submitted.
struct Sizes {
    group: Arc<OnceLock<Weak<Group<Sizes>>>>,
    waiting: usize,
    seen: Arc<Mutex<Vec<usize>>>,
    done: Arc<AtomicUsize>,
}

impl Batch for Sizes {
    fn commit(&mut self, writes: &[Write]) -> Vec<Result<Written, StoreError>> {
        self.seen.lock().unwrap().push(writes.len());
        let group = self.group.get().and_then(Weak::upgrade).expect("the group is there");
        for _ in 0..std::mem::take(&mut self.waiting) {
            let done = self.done.clone();
            group.submit(Write::Sweep { most: 1 }, count_into(done));
        }
        writes.iter().map(|_| Err(Refused::NoSuchRun.into())).collect()
    }
}

/// What waits is committed together, but never more than the limit in one transaction.
#[test]
fn group_commits_at_most_its_limit_of_writes_in_one_transaction() {
    for (limit, waiting, expected) in
        [(3, 10, vec![1, 3, 3, 3, 1]), (100, 10, vec![1, 10]), (1, 3, vec![1, 1, 1, 1]), (0, 2, vec![1, 1, 1])]
    {
        let (slot, seen, done) = (Arc::new(OnceLock::new()), Arc::default(), Arc::new(AtomicUsize::new(0)));
        let sizes = Sizes { group: slot.clone(), waiting, seen: Arc::clone(&seen), done: done.clone() };
        let group = Arc::new(Group::new(sizes, limit));
        slot.set(Arc::downgrade(&group)).expect("it is set once");
        let counted = done.clone();
        group.submit(Write::Sweep { most: 1 }, count_into(counted));
        assert_eq!(*seen.lock().unwrap(), expected, "limit {limit}, {waiting} waiting");
        assert_eq!(done.load(Ordering::Relaxed), waiting + 1, "every write was answered");
    }
}
