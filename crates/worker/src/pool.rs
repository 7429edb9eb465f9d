//! Threads for turns: bare ones, which no async runtime knows of. A thread that user code never gives back is abandoned, and
//! another takes its place.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    started: AtomicUsize,
    alive: AtomicUsize,
    abandoned: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    closed: bool,
}

/// A thread of a pool, for whoever watches over what it does.
#[derive(Clone)]
pub struct TurnThread {
    shared: Arc<Shared>,
    abandoned: Arc<AtomicBool>,
    /// The number by which the operating system knows it, where it has one.
    id: Option<u32>,
}

thread_local! {
    static CURRENT: RefCell<Option<TurnThread>> = const { RefCell::new(None) };
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

    fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let shared = self.clone();
        std::thread::Builder::new().name(format!("dacapo-turn-{number}")).spawn(move || shared.serve())?;
        Ok(())
    }

    fn serve(self: Arc<Self>) {
        let abandoned = Arc::new(AtomicBool::new(false));
        let thread = TurnThread { shared: self.clone(), abandoned: abandoned.clone(), id: thread_id() };
        CURRENT.set(Some(thread));
        self.alive.fetch_add(1, Ordering::Relaxed);
        while let Some(work) = self.next() {
            // User code is fenced where it runs; this is the last fence, so that no mistake takes the thread along.
            let _ = catch_unwind(AssertUnwindSafe(work));
            if abandoned.load(Ordering::Acquire) {
                // Another thread took this one's place long ago.
                self.abandoned.fetch_sub(1, Ordering::Relaxed);
                break;
            }
        }
        self.alive.fetch_sub(1, Ordering::Relaxed);
        CURRENT.set(None);
    }
}

impl TurnPool {
    /// A pool of so many threads, one at least.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        (0..threads.max(1)).try_for_each(|_| shared.start())?;
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

    /// How many threads there are, and how many of them were abandoned and have not come back.
    pub fn threads(&self) -> (usize, usize) {
        (self.shared.alive.load(Ordering::Relaxed), self.shared.abandoned.load(Ordering::Relaxed))
    }

    /// How much work waits for a thread.
    pub fn waiting(&self) -> usize {
        self.shared.lock().work.len()
    }
}

impl Drop for TurnPool {
    fn drop(&mut self) {
        // Nobody waits for the threads: one that user code keeps busy would keep the whole program from ending.
        self.close();
    }
}

impl TurnThread {
    /// The thread that asks, if it is one of a pool.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Gives up on the thread: it ends when its work does, whenever that is, and another takes its place now.
    pub fn abandon(&self) -> std::io::Result<()> {
        if self.abandoned.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.shared.abandoned.fetch_add(1, Ordering::Relaxed);
        self.shared.start()
    }

    /// The number by which the operating system knows it, where it has one.
    pub fn id(&self) -> Option<u32> {
        self.id
    }
}

/// On Linux the link `/proc/thread-self` ends in the number of the thread.
fn thread_id() -> Option<u32> {
    let link = std::fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}
