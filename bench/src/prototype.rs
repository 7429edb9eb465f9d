//! What group commit gives at best on this machine: a loop that writes and flushes, and decides nothing.
//!
//! One thread writes, fully durable, into tables that only grow; a group takes all that is waiting. There are no ids to look
//! up, no fences, no indexes, no replay and no user code, so nothing durable can be faster with the same rows.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dacapo_bench_meter::{Latencies, Line, Usage, payload};
use rusqlite::{Connection, params};

pub(crate) struct Prototype {
    workload: &'static str,
    shape: Waves,
    steps: Option<Sender<Step>>,
    done: Receiver<Vec<u32>>,
    writer: JoinHandle<Result<()>>,
    rounds: u64,
    seconds: f64,
    times: Latencies,
    usage: Usage,
}

/// Workflows that go on side by side, each taking one step after another.
#[derive(Clone, Copy)]
pub(crate) struct Waves {
    pub(crate) workflows: u32,
    pub(crate) steps: u32,
    /// Rows of one step.
    pub(crate) rows: u32,
}

struct Step {
    workflow: u32,
    step: u32,
    payload: String,
}

impl Prototype {
    pub(crate) fn open(file: &Path, workload: &'static str, shape: Waves) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
             CREATE TABLE rows_0 (no INTEGER PRIMARY KEY, run INTEGER, step INTEGER, record BLOB) STRICT;
             CREATE TABLE rows_1 (no INTEGER PRIMARY KEY, run INTEGER, step INTEGER, record BLOB) STRICT;
             CREATE TABLE rows_2 (no INTEGER PRIMARY KEY, run INTEGER, step INTEGER, record BLOB) STRICT;",
        )?;
        let ((steps, queue), (tell, done)) = (channel(), channel());
        let writer = std::thread::spawn(move || write(&connection, shape.rows, &queue, &tell));
        let (times, usage) = (Latencies::default(), Usage::default());
        Ok(Self { workload, shape, steps: Some(steps), done, writer, rounds: 0, seconds: 0.0, times, usage })
    }

    /// Takes all steps of all workflows once.
    pub(crate) fn play(&mut self) -> Result<()> {
        let (begun, before) = (Instant::now(), Usage::now());
        let mut taken = vec![0; self.shape.workflows as usize];
        for workflow in 0..self.shape.workflows {
            self.submit(workflow, 0)?;
        }
        let mut open = self.shape.workflows;
        while open > 0 {
            for workflow in self.done.recv().context("the writer has ended")? {
                let step = &mut taken[workflow as usize];
                *step += 1;
                if *step < self.shape.steps {
                    let step = *step;
                    self.submit(workflow, step)?;
                } else {
                    self.times.push(begun.elapsed());
                    open -= 1;
                }
            }
        }
        self.seconds += begun.elapsed().as_secs_f64();
        self.usage = self.usage + before.since();
        self.rounds += 1;
        Ok(())
    }

    /// For as long as that, once at least.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    fn submit(&self, workflow: u32, step: u32) -> Result<()> {
        let steps = self.steps.as_ref().context("the prototype is closed")?;
        Ok(steps.send(Step { workflow, step, payload: payload(u64::from(workflow)) })?)
    }

    /// Ends writing, and checks what is in the file.
    pub(crate) fn close(mut self, file: &Path, unit: &str) -> Result<Line> {
        self.steps = None;
        self.writer.join().ok().context("the writer panicked")??;
        let n = self.rounds * u64::from(self.shape.workflows) * u64::from(self.shape.steps);
        let rows: i64 = Connection::open(file)?.query_row("SELECT count(*) FROM rows_0", [], |row| row.get(0))?;
        ensure!(rows as u64 == n, "{n} steps were taken, and the file has {rows}");
        Ok(Line::new(self.workload, "prototype", (n, unit), self.seconds, &self.times).used(self.usage))
    }
}

fn write(connection: &Connection, rows: u32, queue: &Receiver<Step>, tell: &Sender<Vec<u32>>) -> Result<()> {
    while let Ok(first) = queue.recv() {
        let group: Vec<Step> = std::iter::once(first).chain(queue.try_iter()).collect();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for step in &group {
            for table in 0..rows {
                // The payload once, and beside it what refers to it.
                let record = if table == 0 { step.payload.as_bytes() } else { &step.payload.as_bytes()[..16] };
                let sql = format!("INSERT INTO rows_{table} (run, step, record) VALUES (?, ?, ?)");
                connection.prepare_cached(&sql)?.execute(params![step.workflow, step.step, record])?;
            }
        }
        connection.execute_batch("COMMIT")?;
        if tell.send(group.iter().map(|step| step.workflow).collect()).is_err() {
            break;
        }
    }
    Ok(())
}
