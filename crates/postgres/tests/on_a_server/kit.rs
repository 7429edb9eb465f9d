//! Nodes without an engine, and what they write.

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use dacapo_core::{Name, Seq, Timestamp};
use dacapo_postgres::PostgresStore;
pub(crate) use dacapo_store::conformance::order as new;
use dacapo_store::{
    AttemptWrite, NewMessage, NewRun, NewTask, NodeEvents, NodeNo, Notice, ReadTasks, ReadTurns, Recipient, Refused,
    RunNo, Shards, SharedStore, StoreError, TaskNo, TurnOf, TurnWrite, Write, Writes, Written,
};

/// Short leases, so that a test need not wait long.
pub(crate) const PACE: &str = "&lease=1s&renewal=200ms&slow_poll=500ms";
/// Leases that do not end while a test runs.
pub(crate) const LONG: &str = "&lease=600s&renewal=200ms&slow_poll=100s";
/// The same, of a node that does nothing by itself.
pub(crate) const QUIET: &str = "&lease=600s&renewal=100s&slow_poll=100s";

pub(crate) type WriteResult = Result<Written, StoreError>;

type Giving = Box<dyn FnMut(Shards) -> Vec<TaskNo> + Send>;

/// What happened to a node.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) lost_all: Mutex<usize>,
    pub(crate) gained: Mutex<usize>,
    /// How often the node has looked for what it may have missed. It does so when it is connected for notifications.
    looks: Mutex<usize>,
    pub(crate) notices: Mutex<Vec<Notice>>,
    /// What is to be done when the node gives shards away. It returns the tasks that the node keeps.
    pub(crate) giving: Mutex<Option<Giving>>,
    /// What is to be done when the node loses shards for the first time.
    pub(crate) losing: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// How often the node was called.
    pub(crate) calls: Mutex<usize>,
    /// The answers to calls that wait until they are given. None: they are given at once.
    pub(crate) held_answers: Mutex<Option<Vec<HeldAnswer>>>,
}

type HeldAnswer = Box<dyn FnOnce() + Send>;

impl Seen {
    pub(crate) fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }

    fn looks(&self) -> usize {
        *self.looks.lock().unwrap()
    }

    pub(crate) fn gained(&self) -> usize {
        *self.gained.lock().unwrap()
    }

    /// Holds the answers to calls back, or gives those that were held back and all that follow.
    pub(crate) fn hold_answers(&self, holds: bool) {
        let held = std::mem::replace(&mut *self.held_answers.lock().unwrap(), holds.then(Vec::new));
        held.into_iter().flatten().for_each(|answers| answers());
    }

    pub(crate) fn lost_all(&self) -> usize {
        *self.lost_all.lock().unwrap()
    }
}

impl NodeEvents for Seen {
    fn gained(&self, _: Shards) {
        *self.gained.lock().unwrap() += 1;
    }

    fn giving(&self, shards: Shards) -> Vec<TaskNo> {
        self.giving.lock().unwrap().as_mut().map_or_else(Vec::new, |giving| giving(shards))
    }

    fn lost(&self, _: Shards, all: bool) {
        let losing = self.losing.lock().unwrap().take();
        if let Some(losing) = losing {
            losing();
        }
        *self.lost_all.lock().unwrap() += usize::from(all);
    }

    fn notified(&self, notice: Notice) {
        self.notices.lock().unwrap().push(notice);
    }

    fn called(&self, request: Vec<u8>, answer: Box<dyn FnOnce(Vec<u8>) + Send>) {
        let answers: HeldAnswer = Box::new(move || answer(request.into_iter().rev().collect()));
        *self.calls.lock().unwrap() += 1;
        match &mut *self.held_answers.lock().unwrap() {
            Some(held) => held.push(answers),
            None => answers(),
        }
    }

    fn look(&self, _: Shards) {
        *self.looks.lock().unwrap() += 1;
    }
}

pub(crate) struct TestNode {
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) seen: Arc<Seen>,
}

impl TestNode {
    pub(crate) fn no(&self) -> NodeNo {
        SharedStore::node(&*self.store)
    }

    /// Returns how many shards the node owns, as it knows.
    pub(crate) fn shards(&self) -> usize {
        self.store.nodes().unwrap().iter().find(|row| row.no == self.no()).map_or(0, |row| row.shards)
    }
}

pub(crate) fn node(url: &str) -> TestNode {
    node_of(url, &["main"])
}

pub(crate) fn node_of(url: &str, queues: &[&'static str]) -> TestNode {
    let node = opened(url);
    let queues: Vec<Name> = queues.iter().map(|queue| Name::from_static(queue)).collect();
    node.store.join(&queues, &"test".into(), node.seen.clone()).expect("the node joins");
    until("the node has nothing left to do", || node.seen.looks() > 0);
    node
}

/// Opens the store for a node that has not joined the others.
pub(crate) fn opened(url: &str) -> TestNode {
    let store = Arc::new(PostgresStore::open(url).expect("the store opens"));
    TestNode { store, seen: Arc::default() }
}

/// Calls a node. The answer comes later.
pub(crate) fn call(from: &TestNode, to: &TestNode, request: &[u8]) -> mpsc::Receiver<Result<Vec<u8>, StoreError>> {
    let (sender, answer) = mpsc::channel();
    let answered = Box::new(move |answer| drop(sender.send(answer)));
    from.store.call(Recipient::Node(to.no()), request.to_vec(), answered);
    answer
}

/// Joins two nodes, which share the shards.
pub(crate) fn two_nodes(urls: [&str; 2]) -> [TestNode; 2] {
    let [a, b] = urls.map(node);
    until("each has half of the shards", || a.shards() == 8 && b.shards() == 8);
    [a, b]
}

/// Waits until something holds, and says what if it never does.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "it never came to this: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// The answer to a write that was begun.
pub(crate) struct Answer(mpsc::Receiver<WriteResult>);

impl Answer {
    #[track_caller]
    pub(crate) fn get(&self) -> WriteResult {
        self.0.recv_timeout(Duration::from_secs(60)).expect("every write is answered")
    }

    pub(crate) fn now(&self) -> Option<WriteResult> {
        self.0.try_recv().ok()
    }
}

pub(crate) fn submit(store: &PostgresStore, write: Write) -> Answer {
    let (sender, answer) = mpsc::channel();
    store.submit(write, Box::new(move |written| drop(sender.send(written))));
    Answer(answer)
}

/// Submits a write on a thread of its own, because the one that submits may be the one that commits.
pub(crate) fn submit_on_a_thread(store: &Arc<PostgresStore>, write: Write) -> Answer {
    let (sender, answer) = mpsc::channel();
    let store = store.clone();
    std::thread::spawn(move || store.submit(write, Box::new(move |written| drop(sender.send(written)))));
    Answer(answer)
}

pub(crate) fn write(store: &PostgresStore, write: Write) -> WriteResult {
    submit(store, write).get()
}

#[track_caller]
pub(crate) fn refused(written: WriteResult) -> Refused {
    match written {
        Err(StoreError::Refused(refused)) => refused,
        other => panic!("the answer is {other:?}"),
    }
}

pub(crate) fn start(new: NewRun) -> Write {
    Write::Start(Box::new(new))
}

pub(crate) fn started(store: &PostgresStore, number: usize) -> RunNo {
    match write(store, start(new(number))) {
        Ok(Written::Started { run, .. }) => run.run,
        other => panic!("a start was answered with {other:?}"),
    }
}

/// Starts runs until one is in a shard of each of these nodes, and returns those.
pub(crate) fn run_of_each(nodes: &[&TestNode]) -> Vec<RunNo> {
    let mut number = 1_000;
    nodes
        .iter()
        .map(|node| {
            number += 1;
            let run = started(&node.store, number);
            assert!(node.store.owns(run), "a run starts in a shard of the node that starts it");
            run
        })
        .collect()
}

pub(crate) fn plain_turn(run: RunNo, number: u64) -> TurnWrite {
    TurnWrite::new(TurnOf::Run(run), number, Timestamp::from_millis(2), vec![number as u8; 9])
}

pub(crate) fn as_write(turn: TurnWrite) -> Write {
    Write::Turn(Box::new(turn))
}

pub(crate) fn turn(run: RunNo, number: u64) -> Write {
    as_write(plain_turn(run, number))
}

/// Returns a task of the queue that the test nodes serve. Its node is the one that makes it, unless it is offered to all.
pub(crate) fn task(seq: u64, offered: bool) -> NewTask {
    NewTask { seq: Seq(seq), queue: "main".into(), ready: Timestamp::default(), priority: 0, position: 0, offered }
}

/// Commits a turn that makes tasks, and returns them.
#[track_caller]
pub(crate) fn make_tasks(store: &PostgresStore, run: RunNo, number: u64, tasks: Vec<NewTask>) -> Vec<TaskNo> {
    match write(store, as_write(TurnWrite { tasks, ..plain_turn(run, number) })) {
        Ok(Written::Turn(written)) => written.tasks,
        other => panic!("a turn was answered with {other:?}"),
    }
}

pub(crate) fn attempt(task: TaskNo, number: u32) -> Write {
    Write::Attempt(Box::new(AttemptWrite {
        task,
        attempt: number,
        ready: Timestamp::from_millis(3),
        node: None,
        crash_count: 0,
        external: None,
        failure: None,
        details: None,
    }))
}

/// Returns the node that has a task.
pub(crate) fn node_of_task(store: &PostgresStore, task: TaskNo) -> Option<NodeNo> {
    store.task(task).unwrap().expect("the task is there").node
}

pub(crate) fn claimed(node: &TestNode) -> Vec<TaskNo> {
    let mut tasks: Vec<TaskNo> =
        node.store.claim(&[("main".into(), 100)]).unwrap().iter().map(|task| task.no).collect();
    tasks.sort();
    tasks
}

pub(crate) fn signal(run: RunNo, number: usize) -> Write {
    let message = NewMessage { key: format!("signal:{number}").into(), sent: Timestamp::from_millis(3), job: vec![7] };
    Write::Send { run, message, ended: None }
}

/// Returns the number of turns that are recorded.
pub(crate) fn turns(store: &PostgresStore, run: RunNo) -> usize {
    let mut count = 0;
    let mut show = |_: u64, _: &[u8]| {
        count += 1;
        std::ops::ControlFlow::Continue(())
    };
    store.turns(run, 0, &mut show).unwrap();
    count
}
