//! Group commit: a thread that commits its write also commits the writes that other threads have queued.
//!
//! There is no writer thread. A submitter puts its write into the queue and, if no thread is committing, commits
//! everything that is queued, over and over until the queue is empty. Otherwise it returns, because the committing
//! thread will find the write. So a lone write costs one commit and no change of threads, and under load many writes
//! share one commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dacapo_sync::{Mutex, ranks};
use metrics::Histogram;

use crate::{StoreError, Write, Written};

/// The callback that gets the result of a write, on the thread that committed it. It must not block.
pub type Done = Box<dyn FnOnce(Result<Written, StoreError>) + Send>;

/// The interface to write to a store.
pub trait Writes: Send + Sync {
    /// Submits a write. `done` is called once, when it is durable or refused.
    fn submit(&self, write: Write, done: Done);

    /// Ends writing: waits for the commit in progress, refuses later writes, and releases the locks that keep other
    /// processes from serving this store. Reading goes on. An error means that acknowledged work may not be where it
    /// should be.
    fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Commits a group of writes in one transaction.
pub trait Batch: Send {
    /// Commits the writes: each gets its own answer, in order. Refused writes have changed nothing.
    fn commit(&mut self, writes: &[Write]) -> Vec<Result<Written, StoreError>>;

    /// Commits nothing from here on. An error means that committed work may not be where it should be.
    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The queue in front of a [`Batch`].
pub struct Group<B> {
    queue: Mutex<Vec<(Write, Done)>>,
    batch: Mutex<B>,
    /// The most writes in one transaction.
    limit: usize,
    /// The number of writes in each transaction.
    sizes: Histogram,
}

impl<B: Batch> Group<B> {
    /// Creates a queue that commits at most `limit` writes in one transaction.
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

    /// Does something with the batch between two commits.
    pub fn between<R>(&self, act: impl FnOnce(&mut B) -> R) -> R {
        let result = act(&mut self.batch.lock());
        // Writes that came meanwhile found the batch locked, and rely on this thread.
        self.lead();
        result
    }

    /// Commits nothing from here on, once the commit in progress is done.
    pub fn close(&self) -> Result<(), StoreError> {
        self.batch.lock().close()
    }

    /// Commits the queued writes, unless another thread is committing.
    fn lead(&self) {
        loop {
            // The thread that holds the lock looks at the queue once more after it released the lock.
            let Some(mut batch) = self.batch.try_lock() else { return };
            let (writes, done): (Vec<Write>, Vec<Done>) = self.take().into_iter().unzip();
            if writes.is_empty() {
                drop(batch);
                // Between the look and the release, another thread may have queued a write and returned.
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
                // A panic in one callback must not keep the others from being called.
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
