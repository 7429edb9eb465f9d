//! Threads for turns, outside any async runtime. A thread that user code never returns is abandoned, and another takes
//! its place.
//!
//! Work comes through lanes, one for each queue, and each lane has a limited number of places. There are a few threads,
//! as many as the processors can use. While user code holds all of them and work waits, more are started, so that a
//! turn that blocks does not delay the others. Extra threads end when, not counting those that user code holds, there
//! have been more than the few for a second, however much work there is.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dacapo_core::Name;
use dacapo_sync::{Condvar, Mutex, ranks};

use crate::{Level, meter};

type Work = Box<dyn FnOnce() + Send>;

/// When no work was taken for this long although some waits, all threads are blocked. A thread that has been at one piece
/// of work for this long counts as blocked.
const BLOCKED_AFTER: Duration = Duration::from_millis(20);
/// Follow-up work of a turn often comes at once, and waking a thread takes about as long. So one thread spins this long
/// before it sleeps.
const STAYS_AWAKE: Duration = Duration::from_micros(50);
/// How long a thread that is not needed stays.
const LINGERS: Duration = Duration::from_secs(1);

/// Threads that take work in the order of its arrival, as far as the lanes have places.
pub struct TurnPool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    came: Condvar,
    /// Set to call the thread that spins.
    called: AtomicBool,
    /// Wakes the keeper thread, which starts more threads where they are needed.
    waits: Condvar,
    /// The number of threads when none is blocked.
    few: usize,
    /// The most threads that could be of use: as many as the lanes have places.
    most: usize,
}

struct State {
    /// The lanes. The first is for work that belongs to no queue.
    lanes: Vec<Lane>,
    came: u64,
    taken: u64,
    started: usize,
    /// When each busy thread began its present piece of work.
    busy: BTreeMap<usize, Instant>,
    /// Since when there have been more threads than needed.
    spare_since: Option<Instant>,
    /// The number of threads that serve, without abandoned ones.
    serving: usize,
    abandoned: usize,
    keeper_sleeps: bool,
    /// Whether a thread spins for work, and is not called yet.
    awake: bool,
    closed: bool,
}

struct Lane {
    queue: Option<Name>,
    places: usize,
    running: usize,
    /// The queued work, each piece with its arrival number over all lanes.
    work: VecDeque<(u64, Work)>,
    /// The gauges of waiting and running work. None for work that belongs to no queue.
    shown: Option<(Level, Level)>,
}

/// A thread of a pool, for the deadlock watch.
#[derive(Clone)]
pub struct TurnThread {
    shared: Arc<Shared>,
    hold: Arc<Mutex<ThreadHold>>,
    /// The thread's number in the pool.
    number: usize,
    /// The operating system's number of the thread, where it has one.
    id: Option<u32>,
}

/// The work that a thread holds. Whichever takes the lane frees its place: the thread itself, or the deadlock watch
/// that gives up on it.
#[derive(Default)]
struct ThreadHold {
    lane: Option<usize>,
    abandoned: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<TurnThread>> = const { RefCell::new(None) };
}

impl Lane {
    fn new(queue: Option<Name>, places: usize) -> Self {
        let levels = |queue: &Name| (meter::TURNS_WAITING.level(&[queue]), meter::TURNS_PLAYING.level(&[queue]));
        Self { shown: queue.as_ref().map(levels), queue, places, running: 0, work: VecDeque::new() }
    }

    fn change<R>(&mut self, change: impl FnOnce(&mut Self) -> R) -> R {
        let result = change(self);
        if let Some((waiting, playing)) = &mut self.shown {
            waiting.set(self.work.len());
            playing.set(self.running);
        }
        result
    }

    /// Returns how much of the lane's work could be done now.
    fn ready(&self) -> usize {
        self.work.len().min(self.places.saturating_sub(self.running))
    }
}

impl State {
    /// Adds work to the lane of its queue. If the pool is closed, returns it, so that the caller drops it without a
    /// lock.
    fn add(&mut self, queue: Option<&Name>, work: Work) -> Result<(), Work> {
        if self.closed {
            return Err(work);
        }
        let came = self.came;
        self.came += 1;
        let at = queue.and_then(|queue| self.lanes.iter().position(|lane| lane.queue.as_ref() == Some(queue)));
        self.lanes[at.unwrap_or(0)].change(|lane| lane.work.push_back((came, work)));
        Ok(())
    }

    fn ready(&self) -> usize {
        self.lanes.iter().map(Lane::ready).sum()
    }

    /// Takes the oldest work among the lanes that have a place.
    fn take(&mut self) -> Option<(usize, Work)> {
        let ready = self.lanes.iter().enumerate().filter(|(_, lane)| lane.ready() > 0);
        let (at, _) = ready.min_by_key(|(_, lane)| lane.work.front().map(|(came, _)| *came))?;
        let lane = &mut self.lanes[at];
        let (_, work) = lane.change(|lane| {
            lane.running += 1;
            lane.work.pop_front()
        })?;
        self.taken += 1;
        Some((at, work))
    }

    /// Returns whether there have been enough threads for a while without one that is free now.
    fn has_one_too_many(&mut self, few: usize) -> bool {
        let is_spare = self.serving > few && {
            let blocked = self.busy.values().filter(|since| since.elapsed() >= BLOCKED_AFTER).count();
            self.serving - blocked > few
        };
        match is_spare {
            true => self.spare_since.get_or_insert_with(Instant::now).elapsed() >= LINGERS,
            false => {
                self.spare_since = None;
                false
            }
        }
    }
}

impl Shared {
    /// Returns the next piece of work for a thread. None once the pool is closed, or if there is one thread too many;
    /// that thread is then no longer counted.
    fn next(&self, thread: usize) -> Option<(usize, Work)> {
        let mut state = self.state.lock();
        let mut rested = false;
        loop {
            // Under the same lock as the check: two threads that check at once must not both end as the one too many.
            if state.closed || state.has_one_too_many(self.few) {
                state.serving -= 1;
                // The work that it was woken for is for another thread.
                self.came.notify_one();
                return None;
            }
            if let Some(work) = state.take() {
                state.busy.insert(thread, Instant::now());
                return Some(work);
            }
            if !rested && !state.awake {
                (state.awake, rested) = (true, true);
                self.called.store(false, Ordering::Relaxed);
                drop(state);
                let since = Instant::now();
                while !self.called.load(Ordering::Acquire) && since.elapsed() < STAYS_AWAKE {
                    std::hint::spin_loop();
                }
                state = self.state.lock();
                state.awake = false;
                continue;
            }
            match state.serving <= self.few {
                true => self.came.wait(&mut state),
                // Threads that are blocked now may be free when it looks again.
                false => _ = self.came.wait_for(&mut state, LINGERS),
            }
        }
    }

    fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let mut state = self.state.lock();
        let number = state.started;
        state.started += 1;
        state.serving += 1;
        drop(state);
        let shared = self.clone();
        let started =
            std::thread::Builder::new().name(format!("dacapo-turn-{number}")).spawn(move || shared.serve(number));
        if started.is_err() {
            self.state.lock().serving -= 1;
        }
        started.map(drop)
    }

    fn serve(self: Arc<Self>, thread: usize) {
        let hold = Arc::new(Mutex::new(ranks::TURN_THREAD, ThreadHold::default()));
        CURRENT.set(Some(TurnThread { shared: self.clone(), hold: hold.clone(), number: thread, id: thread_id() }));
        while let Some((lane, work)) = self.next(thread) {
            hold.lock().lane = Some(lane);
            // User code's panics are caught where it runs. This is the last guard, so that no mistake ends the thread.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                dacapo_sync::abort_on_violation(&*panic);
            }
            let ThreadHold { lane, abandoned } = std::mem::take(&mut *hold.lock());
            let mut state = self.state.lock();
            state.busy.remove(&thread);
            if abandoned {
                // Another thread took the place of this one long ago.
                state.abandoned -= 1;
                drop(state);
                return CURRENT.set(None);
            }
            if let Some(lane) = lane {
                state.lanes[lane].change(|lane| lane.running -= 1);
            }
        }
        CURRENT.set(None);
    }

    /// Starts threads when all threads have been blocked for a while and work waits.
    fn keep(self: Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            // With no work queued, the keeper sleeps.
            while state.keeper_sleeps && !state.closed {
                self.waits.wait(&mut state);
            }
            let (taken, since) = (state.taken, Instant::now());
            while !state.closed && since.elapsed() < BLOCKED_AFTER {
                self.waits.wait_for(&mut state, BLOCKED_AFTER.saturating_sub(since.elapsed()));
            }
            if state.closed {
                return;
            }
            let ready = state.ready();
            let room = self.most.saturating_sub(state.serving);
            let more = if state.taken == taken { ready.min(state.serving.max(1)).min(room) } else { 0 };
            state.keeper_sleeps = ready == 0;
            drop(state);
            for _ in 0..more {
                if let Err(error) = self.start() {
                    tracing::error!(%error, "turns wait, and no thread can be started for them");
                    break;
                }
            }
            state = self.state.lock();
        }
    }
}

impl TurnPool {
    /// Creates a pool of this many threads, one at least, with a lane for each of these queues, each with its number of
    /// places.
    pub fn new(threads: usize, queues: impl IntoIterator<Item = (Name, usize)>) -> std::io::Result<Self> {
        let queues = queues.into_iter().map(|(queue, places)| Lane::new(Some(queue), places.max(1)));
        let lanes: Vec<Lane> = std::iter::once(Lane::new(None, usize::MAX)).chain(queues).collect();
        let few = threads.max(1);
        let places = lanes[1..].iter().fold(0_usize, |sum, lane| sum.saturating_add(lane.places));
        let state = State {
            lanes,
            came: 0,
            taken: 0,
            started: 0,
            busy: BTreeMap::new(),
            spare_since: None,
            serving: 0,
            abandoned: 0,
            keeper_sleeps: true,
            awake: false,
            closed: false,
        };
        let (came, waits, called) = (Condvar::new(), Condvar::new(), AtomicBool::new(false));
        let pool = Self {
            shared: Arc::new(Shared {
                state: Mutex::new(ranks::TURN_POOL, state),
                came,
                called,
                waits,
                few,
                most: places.saturating_add(few),
            }),
        };
        (0..few).try_for_each(|_| pool.shared.start())?;
        let shared = pool.shared.clone();
        std::thread::Builder::new().name("dacapo-keeper".to_owned()).spawn(move || shared.keep())?;
        Ok(pool)
    }

    /// Queues work of a queue, or of none. Work that comes after the pool was closed is dropped.
    pub fn submit(&self, queue: Option<&Name>, work: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock();
        if let Err(work) = state.add(queue, Box::new(work)) {
            drop(state);
            return drop(work);
        }
        let wakes_keeper = std::mem::take(&mut state.keeper_sleeps);
        let is_awake = std::mem::take(&mut state.awake);
        if is_awake {
            self.shared.called.store(true, Ordering::Release);
        }
        drop(state);
        if !is_awake {
            self.shared.came.notify_one();
        }
        if wakes_keeper {
            self.shared.waits.notify_one();
        }
    }

    /// Queues work of no queue that no caller waits for. When called on a thread of the pool, it wakes no other: that
    /// thread looks for work as soon as its present work is done.
    pub fn submit_unhurried(&self, work: impl FnOnce() + Send + 'static) {
        let current = TurnThread::current().filter(|thread| Arc::ptr_eq(&thread.shared, &self.shared));
        let Some(thread) = current else { return self.submit(None, work) };
        // Held until the work is added: a thread that replaces an abandoned one starts after that, and finds the work.
        let hold = thread.hold.lock();
        if hold.abandoned {
            drop(hold);
            return self.submit(None, work);
        }
        let added = self.shared.state.lock().add(None, Box::new(work));
        drop(hold);
        drop(added);
    }

    /// Drops the queued work and accepts no more. Turns that are being played end by themselves.
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let work: Vec<_> =
            state.lanes.iter_mut().map(|lane| lane.change(|lane| std::mem::take(&mut lane.work))).collect();
        drop(state);
        drop(work);
        self.shared.came.notify_all();
        self.shared.waits.notify_all();
    }

    /// Returns how many threads there are, and how many of them were abandoned and have not ended.
    pub fn threads(&self) -> (usize, usize) {
        let state = self.shared.state.lock();
        (state.serving + state.abandoned, state.abandoned)
    }

    /// Returns how much work of this queue, or of none, waits, and how much is being done.
    pub fn depth(&self, queue: Option<&Name>) -> (usize, usize) {
        let state = self.shared.state.lock();
        let lane = state.lanes.iter().find(|lane| lane.queue.as_ref() == queue);
        lane.map_or((0, 0), |lane| (lane.work.len(), lane.running))
    }
}

impl Drop for TurnPool {
    fn drop(&mut self) {
        // Does not join the threads: one that user code keeps busy would keep the whole program from ending.
        self.close();
    }
}

impl TurnThread {
    /// Returns the calling thread, if it belongs to a pool.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Gives up on the thread: it ends when its work does, whenever that is. Its place is free, and another thread
    /// starts now.
    pub fn abandon(&self) -> std::io::Result<()> {
        let mut hold = self.hold.lock();
        let Some(lane) = hold.lane.take() else { return Ok(()) };
        hold.abandoned = true;
        // Counted before the thread can see that it was abandoned, and end.
        let mut state = self.shared.state.lock();
        state.lanes[lane].change(|lane| lane.running -= 1);
        state.serving -= 1;
        state.abandoned += 1;
        state.busy.remove(&self.number);
        drop((state, hold));
        self.shared.start()
    }

    /// Returns the operating system's number of the thread, where it has one.
    pub fn id(&self) -> Option<u32> {
        self.id
    }
}

/// Reads the thread's number: on Linux the link `/proc/thread-self` ends in it.
fn thread_id() -> Option<u32> {
    let link = std::fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}
