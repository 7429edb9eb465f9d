//! A host without threads and without a clock: the test does the work, in the order in which it came, and time moves
//! when no work is left.

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use dacapo_core::{DurationText, Failure, Name, Payload, Timestamp, Watch};
use dacapo_engine::{Host, Steady, Work};
use dacapo_sync::allow_blocking;
use dacapo_worker::{ActivityFuture, Attempt, AttemptCode, AttemptHandle, GiveUp, WatchedTurn};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::coop::unconstrained;

use crate::crash::{Crash, Moment};
use crate::fake::Fakes;
use crate::ledger::Ledger;
use crate::real_time::{RealTime, runtime};
use crate::virtual_time::VirtualTime;

/// The parts of a test that outlive its processes.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) time: Arc<VirtualTime>,
    pub(crate) ledger: Arc<Ledger>,
    /// The number of run ids that were given out.
    ids: Arc<AtomicU64>,
    fakes: Fakes,
    /// Set if attempts that are not of fakes run in real time, and virtual time stands still meanwhile.
    real: Option<Arc<RealTime>>,
}

impl World {
    pub(crate) fn new(time: Arc<VirtualTime>, fakes: Fakes, real: Option<Arc<RealTime>>) -> Self {
        Self { time, ledger: Arc::default(), ids: Arc::default(), fakes, real }
    }
}

/// The host of a kit.
pub(crate) struct VirtualHost {
    state: Mutex<State>,
    crash: Arc<Crash>,
    world: World,
}

#[derive(Default)]
struct State {
    /// By how much engine time is ahead of the steady clock.
    ahead: Duration,
    work: VecDeque<Item>,
    /// Attempts that wait for something.
    waiting: Vec<Waiting>,
    /// Since when the first of those that take real time is waited for.
    waits_since: Option<Instant>,
    wake: Option<Timestamp>,
    /// Activities whose attempts ignore their cancellation, as code does that blocks or spins.
    ignoring: BTreeSet<Name>,
    /// Why the process was to end, each time.
    ends: Vec<String>,
}

enum Item {
    Work(Work),
    Attempt(Attempt),
}

/// An attempt that has begun and not ended.
struct Waiting {
    future: ActivityFuture,
    handle: AttemptHandle,
    /// Whether it takes real time: virtual time stands still until it ends.
    is_real: bool,
}

impl VirtualHost {
    pub(crate) fn new(world: World, crash: Arc<Crash>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), crash, world })
    }

    /// Drops all work of a dead process. The work may hold the engine, which holds this host.
    pub(crate) fn disconnect(&self) {
        let mut state = self.lock();
        let (work, waiting) = (std::mem::take(&mut state.work), std::mem::take(&mut state.waiting));
        drop(state);
        drop((work, waiting));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn push(&self, item: Item) {
        self.lock().work.push_back(item);
        // Real code on another thread may have caused the work.
        if let Some(real) = &self.world.real {
            real.notify();
        }
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
            None => {
                self.limit_real_code();
                return allow_blocking(|| self.poll_waiting()) || self.wait_for_real_code();
            }
        }
        true
    }

    fn run(&self, attempt: Attempt) {
        let (code, handle) = attempt.into_parts();
        if handle.is_given_up() || !self.crash.passes(Moment::BeforeAttempt) {
            return;
        }
        self.world.ledger.made(handle.ctx().info());
        let is_real = self.world.real.is_some() && !self.world.fakes.contains(&handle.ctx().info().activity);
        let mut future = match code {
            AttemptCode::Async(future) => future,
            AttemptCode::Blocking(call) if is_real => on_a_thread(call),
            AttemptCode::Blocking(call) => return self.finish(&handle, call()),
        };
        if is_real {
            // It begins when its turn comes.
            return self.lock().waiting.push(Waiting { future, handle, is_real });
        }
        let (polled, began_fake) = self.poll(&mut future);
        match polled {
            Poll::Ready(result) => self.finish(&handle, result),
            Poll::Pending => {
                // A side effect may have the name of an activity that is faked.
                let is_real = self.world.real.is_some() && !began_fake;
                self.lock().waiting.push(Waiting { future, handle, is_real });
            }
        }
    }

    /// Polls the code of an attempt. Returns also whether a fake began to answer meanwhile.
    fn poll(&self, future: &mut ActivityFuture) -> (Poll<Result<Payload, Failure>>, bool) {
        self.world.time.take_begun_fake();
        let polled = self.poll_code(future);
        (polled, self.world.time.take_begun_fake())
    }

    /// Polls the code of an attempt, within the kit's runtime if it may need one.
    fn poll_code(&self, future: &mut ActivityFuture) -> Poll<Result<Payload, Failure>> {
        let Some(real) = &self.world.real else {
            return future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        };
        let _runtime = runtime().enter();
        let waker = Waker::from(real.clone());
        // The test may itself be a task of a runtime, whose budget this poll must not use up.
        pin!(unconstrained(future)).poll(&mut Context::from_waker(&waker))
    }

    fn finish(&self, handle: &AttemptHandle, result: Result<Payload, Failure>) {
        if self.crash.passes(Moment::AfterAttempt) {
            handle.finish(result);
        }
    }

    /// Polls the attempts that wait. Returns whether one went on.
    ///
    /// Of those that take real time it polls the first, and ends it when nothing else is left to do. So they go on one
    /// after the other, and their order does not depend on real time.
    fn poll_waiting(&self) -> bool {
        let waiting = std::mem::take(&mut self.lock().waiting);
        let mut moved = self.world.real.as_ref().is_some_and(|real| real.take_wake());
        let mut is_turn_of_real = true;
        for mut attempt in waiting {
            if attempt.handle.is_given_up() && !self.lock().ignoring.contains(&attempt.handle.ctx().info().activity) {
                moved = true;
                continue;
            }
            let (polled, began_fake) = match attempt.is_real && !is_turn_of_real {
                true => (Poll::Pending, false),
                false => self.poll(&mut attempt.future),
            };
            // An interceptor around a fake may have waited for something real before the fake began.
            if attempt.is_real && began_fake {
                attempt.is_real = false;
                self.lock().waits_since = None;
            }
            is_turn_of_real &= !attempt.is_real;
            match polled {
                Poll::Ready(result) if attempt.is_real && self.has_work() => {
                    attempt.future = ended(result);
                    self.lock().waiting.push(attempt);
                }
                Poll::Ready(result) => {
                    if attempt.is_real {
                        self.lock().waits_since = None;
                    }
                    self.finish(&attempt.handle, result);
                    moved = true;
                }
                Poll::Pending => self.lock().waiting.push(attempt),
            }
        }
        // An attempt that only reported progress may have caused work.
        moved || self.has_work()
    }

    fn has_work(&self) -> bool {
        !self.lock().work.is_empty()
    }

    /// Waits, in real time, for the real code that runs, if some does. Returns whether there may be work again.
    fn wait_for_real_code(&self) -> bool {
        let Some(real) = &self.world.real else { return false };
        let mut state = self.lock();
        if !state.waiting.iter().any(|attempt| attempt.is_real) {
            state.waits_since = None;
            return false;
        }
        let since = *state.waits_since.get_or_insert_with(Instant::now);
        drop(state);
        real.wait_until(since + real.limit);
        true
    }

    /// Panics if real code has taken longer than the limit.
    fn limit_real_code(&self) {
        let Some(real) = &self.world.real else { return };
        let state = self.lock();
        let Some(attempt) = state.waiting.iter().find(|attempt| attempt.is_real) else { return };
        let info = attempt.handle.ctx().info().clone();
        let is_late = state.waits_since.is_some_and(|since| since.elapsed() >= real.limit);
        drop(state);
        assert!(
            !is_late,
            "{:?} of run {:?} has not ended after {} of real time: it is not faked, and virtual time stands still while \
             real code runs. Replace it with `kit.fake` or `kit.fake_with`, or allow more with `real_time_limit`",
            info.activity.as_str(),
            info.workflow_id.as_str(),
            DurationText(real.limit),
        );
    }

    /// Makes attempts of this activity ignore their cancellation.
    pub(crate) fn ignore_cancellation(&self, activity: Name) {
        self.lock().ignoring.insert(activity);
    }

    /// Returns why the process was to end, each time the engine asked for it.
    pub(crate) fn ends(&self) -> Vec<String> {
        self.lock().ends.clone()
    }

    /// Returns the moment at which the engine wants to be woken, or a fake wakes up.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        [self.lock().wake, self.world.time.next_sleep()].into_iter().flatten().min()
    }

    /// Moves time to this moment, if it is later than now.
    pub(crate) fn move_to(&self, at: Timestamp) {
        self.world.time.move_to(at);
        let (mut state, now) = (self.lock(), self.clock());
        state.wake = state.wake.filter(|wake| *wake > now);
    }

    /// Lets time pass. Wakes that were due meanwhile come late.
    pub(crate) fn pass(&self, time: Duration) {
        self.world.time.move_to(self.clock().after(time));
    }

    /// Sets the machine's clock forward by this much.
    pub(crate) fn step_clock(&self, by: Duration) {
        self.lock().ahead += by;
    }

    pub(crate) fn clock(&self) -> Timestamp {
        self.world.time.now()
    }
}

/// Returns the future of code that has ended with this result.
fn ended(result: Result<Payload, Failure>) -> ActivityFuture {
    Box::pin(std::future::ready(result))
}

/// Returns the future of a call that may block, on a thread of the kit's runtime.
fn on_a_thread(call: Box<dyn FnOnce() -> Result<Payload, Failure> + Send>) -> ActivityFuture {
    Box::pin(async move {
        let ended = tokio::task::spawn_blocking(call).await;
        ended.unwrap_or_else(|error| Err(Failure::application(error.to_string())))
    })
}

impl Host for VirtualHost {
    fn now(&self) -> Timestamp {
        self.clock().after(self.lock().ahead)
    }

    fn steady_now(&self) -> Steady {
        Steady(self.clock())
    }

    fn perform(&self, work: Work) {
        self.push(Item::Work(work));
    }

    fn attempt(&self, attempt: Attempt) {
        self.push(Item::Attempt(attempt));
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
        format!("run-{:06}", self.world.ids.fetch_add(1, Ordering::Relaxed) + 1).into()
    }
}
