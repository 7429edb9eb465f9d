//! A host without threads and without a clock: the test does the work, in the order in which it came, and time moves
//! when no work is left.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dacapo_core::{Name, Timestamp, Watch};
use dacapo_engine::{Host, Steady, Work};
use dacapo_sync::allow_blocking;
use dacapo_worker::{ActivityFuture, Attempt, AttemptCode, AttemptHandle, GiveUp, WatchedTurn};
use parking_lot::{Mutex, MutexGuard};

use crate::crash::{Crash, Moment};
use crate::ledger::Ledger;

/// The host of a kit.
pub(crate) struct VirtualHost {
    state: Mutex<State>,
    crash: Arc<Crash>,
    ledger: Arc<Ledger>,
}

struct State {
    /// The steady clock, which is never set.
    now: Timestamp,
    /// By how much engine time is ahead of the steady clock.
    ahead: Duration,
    work: VecDeque<Item>,
    /// Attempts that wait for something.
    waiting: Vec<(ActivityFuture, AttemptHandle)>,
    wake: Option<Timestamp>,
    next_id: u64,
    /// Activities whose attempts ignore their cancellation, as code does that blocks or spins.
    deaf: BTreeSet<Name>,
    /// Why the process was to end, each time.
    ends: Vec<String>,
}

enum Item {
    Work(Work),
    Attempt(Attempt),
}

impl VirtualHost {
    pub(crate) fn new(now: Timestamp, next_id: u64, crash: Arc<Crash>, ledger: Arc<Ledger>) -> Arc<Self> {
        let state = State {
            now,
            ahead: Duration::ZERO,
            work: VecDeque::new(),
            waiting: Vec::new(),
            wake: None,
            next_id,
            deaf: BTreeSet::new(),
            ends: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), crash, ledger })
    }

    /// Drops all work of a dead process. The work may hold the engine, which holds this host.
    pub(crate) fn bury(&self) {
        let mut state = self.lock();
        let (work, waiting) = (std::mem::take(&mut state.work), std::mem::take(&mut state.waiting));
        drop(state);
        drop((work, waiting));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Does one piece of work. Returns false if there is none now.
    pub(crate) fn step(&self) -> bool {
        if self.crash.is_dead() {
            return false;
        }
        let item = self.lock().work.pop_front();
        match item {
            // The test's thread does everything, also where it belongs to an async runtime.
            Some(Item::Work(work)) => allow_blocking(|| work.perform()),
            Some(Item::Attempt(attempt)) => allow_blocking(|| self.run(attempt)),
            None => return allow_blocking(|| self.poll_waiting()),
        }
        true
    }

    fn run(&self, attempt: Attempt) {
        let (code, handle) = attempt.into_parts();
        if handle.is_given_up() || !self.crash.passes(Moment::BeforeAttempt) {
            return;
        }
        self.ledger.made(handle.ctx().info());
        match code {
            AttemptCode::Blocking(call) => self.finish(&handle, call()),
            AttemptCode::Async(mut future) => match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => self.finish(&handle, result),
                Poll::Pending => self.lock().waiting.push((future, handle)),
            },
        }
    }

    fn finish(&self, handle: &AttemptHandle, result: Result<dacapo_core::Payload, dacapo_core::Failure>) {
        if self.crash.passes(Moment::AfterAttempt) {
            handle.finish(result);
        }
    }

    /// Polls the attempts that wait. Returns whether one went on.
    fn poll_waiting(&self) -> bool {
        let waiting = std::mem::take(&mut self.lock().waiting);
        let mut moved = false;
        for (mut future, handle) in waiting {
            if handle.is_given_up() && !self.lock().deaf.contains(&handle.ctx().info().activity) {
                moved = true;
                continue;
            }
            match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => {
                    self.finish(&handle, result);
                    moved = true;
                }
                Poll::Pending => self.lock().waiting.push((future, handle)),
            }
        }
        // An attempt that only reported progress may have caused work.
        moved || !self.lock().work.is_empty()
    }

    /// Makes attempts of this activity ignore their cancellation.
    pub(crate) fn deafen(&self, activity: Name) {
        self.lock().deaf.insert(activity);
    }

    /// Returns why the process was to end, each time the engine asked for it.
    pub(crate) fn ends(&self) -> Vec<String> {
        self.lock().ends.clone()
    }

    /// Returns the moment at which the engine wants to be woken.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.lock().wake
    }

    /// Moves time to this moment, if it is later than now.
    pub(crate) fn move_to(&self, at: Timestamp) {
        let mut state = self.lock();
        state.now = state.now.max(at);
        state.wake = state.wake.filter(|wake| *wake > state.now);
    }

    /// Lets time pass. Wakes that were due meanwhile come late.
    pub(crate) fn pass(&self, time: Duration) {
        let mut state = self.lock();
        state.now = state.now.after(time);
    }

    /// Sets the machine's clock forward by this much.
    pub(crate) fn step_clock(&self, by: Duration) {
        self.lock().ahead += by;
    }

    pub(crate) fn ids_used(&self) -> u64 {
        self.lock().next_id
    }

    pub(crate) fn clock(&self) -> Timestamp {
        self.lock().now
    }
}

impl Host for VirtualHost {
    fn now(&self) -> Timestamp {
        let state = self.lock();
        state.now.after(state.ahead)
    }

    fn steady_now(&self) -> Steady {
        Steady(self.lock().now)
    }

    fn perform(&self, work: Work) {
        self.lock().work.push_back(Item::Work(work));
    }

    fn attempt(&self, attempt: Attempt) {
        self.lock().work.push_back(Item::Attempt(attempt));
    }

    /// Returns none: there is no second thread that could watch.
    fn watch(&self, _: Watch, _: Duration, _: GiveUp) -> Option<WatchedTurn> {
        None
    }

    fn end_process(&self, why: &str) {
        self.lock().ends.push(why.to_owned());
    }

    fn wake_at(&self, Steady(at): Steady) {
        let mut state = self.lock();
        if state.wake.is_none_or(|before| at < before) {
            state.wake = Some(at);
        }
    }

    fn run_id(&self) -> Name {
        let mut state = self.lock();
        state.next_id += 1;
        format!("run-{:06}", state.next_id).into()
    }
}
