//! Group commit: whoever has something to write takes along what others have.
//!
//! There is no writer thread. A submitter puts its write into the queue and, if nobody is committing, commits everything
//! that is queued, over and over until the queue is empty; otherwise it goes away, because whoever is committing will
//! find the write. So a lone write costs one commit and no change of threads, and under load many share one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dacapo_sync::{Mutex, ranks};
use metrics::Histogram;

use crate::{StoreError, Write, Written};

/// Told what a write came to, on the thread that committed it. It must not block.
pub type Done = Box<dyn FnOnce(Result<Written, StoreError>) + Send>;

/// Where writes go.
pub trait Writes: Send + Sync {
    /// Submits a write. `done` is called once, when it is durable or refused.
    fn submit(&self, write: Write, done: Done);

    /// Ends writing: waits for the commit that is under way, refuses what comes later, and lets go of whatever keeps others
    /// from serving this store. Reading goes on. An error says that what was acknowledged may not be where it should.
    fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Commits a group of writes in one transaction.
pub trait Batch: Send {
    /// Commits them: each gets its own answer, in order. Those that are refused have changed nothing.
    fn commit(&mut self, writes: &[Write]) -> Vec<Result<Written, StoreError>>;

    /// Commits nothing from here on. An error says that what was committed may not be where it should.
    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The queue before a [`Batch`].
pub struct Group<B> {
    queue: Mutex<Vec<(Write, Done)>>,
    batch: Mutex<B>,
    /// The most writes in one transaction.
    limit: usize,
    /// How many there were in each.
    sizes: Histogram,
}

impl<B: Batch> Group<B> {
    /// Commits at most `limit` writes in one transaction.
    pub fn new(batch: B, limit: usize) -> Self {
        Self {
            queue: Mutex::new(ranks::STORE_QUEUE, Vec::new()),
            batch: Mutex::new(ranks::STORE_WRITER, batch),
            limit: limit.max(1),
            sizes: metrics::histogram!("dacapo_commit_batch_size"),
        }
    }

    fn take(&self) -> Vec<(Write, Done)> {
        let mut queue = self.queue.lock();
        let count = queue.len().min(self.limit);
        if count == queue.len() { std::mem::take(&mut *queue) } else { queue.drain(..count).collect() }
    }

    /// Commits nothing from here on, once the commit that is under way is done.
    pub fn close(&self) -> Result<(), StoreError> {
        self.batch.lock().close()
    }

    /// Commits what is queued, unless somebody is at it.
    fn lead(&self) {
        loop {
            // The thread that holds it looks at the queue once more after letting go.
            let Some(mut batch) = self.batch.try_lock() else { return };
            let (writes, done): (Vec<Write>, Vec<Done>) = self.take().into_iter().unzip();
            if writes.is_empty() {
                drop(batch);
                // Between the look and letting go, somebody may have queued a write and gone away.
                if self.queue.lock().is_empty() {
                    return;
                }
                continue;
            }
            self.sizes.record(writes.len() as f64);
            let answers = batch.commit(&writes);
            assert_eq!(answers.len(), writes.len(), "every write gets one answer");
            drop(batch);
            for (done, answer) in done.into_iter().zip(answers) {
                // A mistake in one must not keep the others from being told.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| done(answer))) {
                    dacapo_sync::abort_on_violation(&*panic);
                }
            }
        }
    }
}

impl<B: Batch> Writes for Group<B> {
    fn submit(&self, write: Write, done: Done) {
        self.queue.lock().push((write, done));
        self.lead();
    }
}
