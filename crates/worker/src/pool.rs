//! Threads for turns: bare ones, which no async runtime knows of.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

type Work = Box<dyn FnOnce() + Send>;

/// A few threads that take work in the order in which it came.
pub struct TurnPool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece of work; none once the pool is closed.
    fn next(&self) -> Option<Work> {
        let queue = self.lock();
        let mut queue = self
            .came
            .wait_while(queue, |queue| queue.work.is_empty() && !queue.closed)
            .unwrap_or_else(PoisonError::into_inner);
        if queue.closed { None } else { queue.work.pop_front() }
    }
}

impl TurnPool {
    /// A pool of so many threads, one at least.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let start = |number: usize| {
            let shared = shared.clone();
            std::thread::Builder::new().name(format!("dacapo-turn-{number}")).spawn(move || {
                while let Some(work) = shared.next() {
                    work();
                }
            })
        };
        (0..threads.max(1)).try_for_each(|number| start(number).map(drop))?;
        Ok(Self { shared })
    }

    /// Queues work. What comes after the pool was closed is dropped.
    pub fn submit(&self, work: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.lock();
        if !queue.closed {
            queue.work.push_back(Box::new(work));
            drop(queue);
            self.shared.came.notify_one();
        }
    }

    /// Drops what is queued and takes no more. Turns that are being played end by themselves.
    pub fn close(&self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        let work = std::mem::take(&mut queue.work);
        drop(queue);
        drop(work);
        self.shared.came.notify_all();
    }
}

impl Drop for TurnPool {
    fn drop(&mut self) {
        // Nobody waits for the threads: one that user code keeps busy would keep the whole program from ending.
        self.close();
    }
}
