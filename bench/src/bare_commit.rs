//! The bare commit: what one step of a workflow writes, through Dacapo's own store, and nothing else.
//!
//! Once through a thread that writes and back, which is what a step of any system with a writer costs at least; and once on
//! the thread that asks.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use dacapo::core::{Name, Seq, Timestamp};
use dacapo_bench_meter::{Latencies, Line, Shape, System, Usage, payload};
use dacapo_sqlite::SqliteStore;
use dacapo_store::conformance::order;
use dacapo_store::{
    NewRun, NewTask, ReadRuns, ReadTurns, RunNo, StoreError, TaskNo, TurnOf, TurnWrite, Write, Writes, Written,
};

use crate::embedded::{Embedded, file_url};

/// More bytes than the store lets its log grow to before it is written over.
const LOG: usize = 20 << 20;

type WriteResult = Result<Written, StoreError>;

pub(crate) struct BareCommit {
    store: Arc<SqliteStore>,
    writer: Sender<Write>,
    answers: Receiver<WriteResult>,
    run: RunNo,
    turn: u64,
    task: TaskNo,
    /// What a step records.
    record: Vec<u8>,
    through_thread: Measured,
    same_thread: Measured,
}

#[derive(Default)]
struct Measured {
    times: Latencies,
    usage: Usage,
}

impl BareCommit {
    /// In a file of its own.
    pub(crate) async fn open(folder: &Path) -> Result<Self> {
        let record = record_of_a_step(&folder.join("step.db")).await?;
        let file = folder.join("bare.db");
        let store = Arc::new(SqliteStore::open(&file.display().to_string())?);
        let (writer, answers) = writer_thread(store.clone());
        let (through_thread, same_thread) = (Measured::default(), Measured::default());
        let (run, turn, task) = (RunNo(0), 0, TaskNo(0));
        let mut bare = Self { store, writer, answers, run, turn, task, record, through_thread, same_thread };
        let write = bare.turn(TurnOf::New(Box::new(new_run())));
        bare.committed(submit(&bare.store, write).recv()?)?;
        bare.warm_up()?;
        Ok(bare)
    }

    /// A log that grows is dearer to flush than one that is written over: one large record lets it grow.
    fn warm_up(&mut self) -> Result<()> {
        let record = std::mem::replace(&mut self.record, vec![0; LOG]);
        let write = self.turn(TurnOf::Run(self.run));
        self.record = record;
        self.committed(submit(&self.store, write).recv()?)
    }

    /// Commits so many steps one after another, in both ways.
    pub(crate) fn commit(&mut self, steps: u32) -> Result<()> {
        let before = Usage::now();
        for _ in 0..steps {
            let write = self.turn(TurnOf::Run(self.run));
            let begun = Instant::now();
            self.writer.send(write)?;
            let answer = self.answers.recv()?;
            self.through_thread.times.push(begun.elapsed());
            self.committed(answer)?;
        }
        self.through_thread.usage = self.through_thread.usage + before.since();
        let before = Usage::now();
        for _ in 0..steps {
            let write = self.turn(TurnOf::Run(self.run));
            let begun = Instant::now();
            let answer = submit(&self.store, write).recv()?;
            self.same_thread.times.push(begun.elapsed());
            self.committed(answer)?;
        }
        self.same_thread.usage = self.same_thread.usage + before.since();
        Ok(())
    }

    /// What all commits used.
    pub(crate) fn usage(&self) -> Usage {
        self.through_thread.usage + self.same_thread.usage
    }

    /// The average through the thread, in milliseconds.
    pub(crate) fn mean(&self) -> f64 {
        self.through_thread.times.mean()
    }

    /// The middle one through the thread, in milliseconds.
    pub(crate) fn p50(&self) -> f64 {
        self.through_thread.times.p50()
    }

    /// One through the thread that nothing disturbed, in milliseconds.
    pub(crate) fn quiet(&self) -> f64 {
        self.through_thread.times.quiet()
    }

    /// What came of it, once the file is seen to hold every turn.
    pub(crate) fn lines(&self, workload: &str) -> Result<[Line; 2]> {
        let kept = self.store.run(self.run)?.context("the run of the bare commits is gone")?.turns;
        if kept != self.turn {
            bail!("{} turns were committed, and the file has {kept}", self.turn);
        }
        let line = |system: &str, Measured { times, usage }: &Measured| {
            Line::new(workload, system, (times.count() as u64, "commits"), times.seconds(), times).used(*usage)
        };
        Ok([line("bare_commit", &self.through_thread), line("bare_commit_same_thread", &self.same_thread)])
    }

    /// What a step writes: its record, the task that is over, and the next one.
    fn turn(&self, run: TurnOf) -> Write {
        let next = NewTask {
            seq: Seq(self.turn),
            queue: Name::from_static("default"),
            ready: Timestamp(self.turn),
            priority: 0,
            position: 0,
            offered: false,
        };
        Write::Turn(Box::new(TurnWrite {
            tasks: vec![next],
            ended_tasks: vec![self.task],
            ..TurnWrite::new(run, self.turn, Timestamp(self.turn), self.record.clone())
        }))
    }

    fn committed(&mut self, answer: WriteResult) -> Result<()> {
        let Written::Turn(written) = answer? else { bail!("a turn was answered as something else") };
        self.run = written.run;
        self.task = *written.tasks.first().context("a turn made no task")?;
        self.turn += 1;
        Ok(())
    }
}

fn submit(store: &SqliteStore, write: Write) -> Receiver<WriteResult> {
    let (tell, told) = channel();
    // The caller may have gone away.
    store.submit(write, Box::new(move |answer| drop(tell.send(answer))));
    told
}

fn writer_thread(store: Arc<SqliteStore>) -> (Sender<Write>, Receiver<WriteResult>) {
    let ((writer, queue), (tell, answers)) = (channel::<Write>(), channel());
    std::thread::spawn(move || {
        for write in queue {
            let tell = tell.clone();
            store.submit(write, Box::new(move |answer| drop(tell.send(answer))));
        }
    });
    (writer, answers)
}

fn new_run() -> NewRun {
    NewRun {
        run_id: Name::from_static("0199b7a0-0000-7000-8000-000000000000"),
        workflow_id: Name::from_static("bare"),
        workflow: Name::from_static("chain"),
        queue: Name::from_static("default"),
        pins: Vec::new(),
        start: Vec::new(),
        ..order(0)
    }
}

/// What Dacapo records for a step in the middle of a chain, to the byte.
async fn record_of_a_step(file: &Path) -> Result<Vec<u8>> {
    let embedded = Embedded::open(&file_url(file)).await?;
    embedded.run(Shape::Chain(5), "step".to_owned(), payload(0)).await?;
    embedded.close().await;
    let store = SqliteStore::open_read_only(&file.display().to_string())?;
    let run = store.find("step", None)?.context("the run is not in the file")?.no;
    let mut record = None;
    store.turns(run, 3, &mut |_, bytes| {
        record = Some(bytes.to_vec());
        ControlFlow::Break(())
    })?;
    record.context("the run has no third turn")
}
