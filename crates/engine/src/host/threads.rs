//! The host of real programs: threads for turns, the program's runtime for attempts, a thread that watches the clock.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dacapo_core::{DurationText, Name, Timestamp, Watch};
use dacapo_sync::{Condvar, Mutex, ranks};
use dacapo_worker::{Attempt, Attempts, DeadlockWatch, GiveUp, TurnPool, WatchedTurn};
use tokio::runtime::Handle;

use crate::engine::Engine;
use crate::host::clock::{Clocks, WallClock};
use crate::host::step_watch::StepWatch;
use crate::host::{Host, Steady, Work, WorkKind};
use crate::options::Options;

/// The time between two reads of the machine's clock, while something is due later and the system does not report that
/// the clock was set.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);

/// Threads, a runtime and clocks.
pub struct Threads {
    pool: TurnPool,
    attempts: Attempts,
    clocks: Arc<Clocks>,
    alarm: Arc<Alarm>,
    steps: Option<Arc<StepWatch>>,
    deadlocks: DeadlockWatch,
    force_exit: Duration,
}

struct Alarm {
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Default)]
struct AlarmState {
    at: Option<Steady>,
    stopped: bool,
}

impl Alarm {
    /// Waits until the time of the alarm has come, or the clock was set forward. False once the alarm is stopped.
    fn wait(&self, clocks: &Clocks, looks_at_clock: bool) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return false;
            }
            if looks_at_clock && clocks.follow() {
                return true;
            }
            match state.at.map(|at| at.since(clocks.steady_now())) {
                None => self.changed.wait(&mut state),
                Some(Duration::ZERO) => {
                    state.at = None;
                    return true;
                }
                Some(rest) => {
                    let rest = if looks_at_clock { rest.min(LOOK_AT_CLOCK) } else { rest };
                    self.changed.wait_for(&mut state, rest);
                }
            }
        }
    }
}

impl Threads {
    /// Creates a host for an engine with these options: with so many threads for turns, whose attempts run on this
    /// runtime, and which ends the process so long after the engine began to shut itself down.
    pub fn new(
        options: &Options,
        turn_threads: usize,
        force_exit: Duration,
        runtime: Handle,
    ) -> std::io::Result<Arc<Self>> {
        // Where the kernel offers no such timer, the clock is read once a second.
        let steps = StepWatch::new().ok().map(Arc::new);
        Self::with(options, turn_threads, force_exit, runtime, Arc::new(SystemTime::now), steps)
    }

    /// Creates a host like `new`, with another clock in place of the machine's, which is read once a second while
    /// timers wait: for tests that set it.
    pub fn with_clock(
        options: &Options,
        turn_threads: usize,
        force_exit: Duration,
        runtime: Handle,
        wall: WallClock,
    ) -> std::io::Result<Arc<Self>> {
        Self::with(options, turn_threads, force_exit, runtime, wall, None)
    }

    fn with(
        options: &Options,
        turn_threads: usize,
        force_exit: Duration,
        runtime: Handle,
        wall: WallClock,
        steps: Option<Arc<StepWatch>>,
    ) -> std::io::Result<Arc<Self>> {
        let lanes = options.queues.iter().map(|(queue, values)| (queue.clone(), values.max_concurrent_workflows));
        let alarm = Alarm { state: Mutex::new(ranks::CLOCK, AlarmState::default()), changed: Condvar::new() };
        Ok(Arc::new(Self {
            deadlocks: DeadlockWatch::new()?,
            force_exit,
            pool: TurnPool::new(turn_threads, lanes)?,
            attempts: Attempts::new(runtime),
            clocks: Arc::new(Clocks::new(wall)),
            alarm: Arc::new(alarm),
            steps,
        }))
    }

    /// Starts the threads that call the engine when its time has come, until it is stopped or gone.
    pub fn watch(&self, engine: &Engine) -> std::io::Result<()> {
        let (alarm, clocks, weak) = (self.alarm.clone(), self.clocks.clone(), engine.downgrade());
        let looks_at_clock = self.steps.is_none();
        thread("dacapo-clock", move || while alarm.wait(&clocks, looks_at_clock) && weak.tick() {})?;
        if let Some(steps) = self.steps.clone() {
            let (clocks, weak) = (self.clocks.clone(), engine.downgrade());
            thread("dacapo-clock-steps", move || while steps.wait() && (!clocks.follow() || weak.tick()) {})?;
        }
        Ok(())
    }

    /// Ends the threads. Turns that are being played end by themselves.
    pub fn stop(&self) {
        self.alarm.state.lock().stopped = true;
        self.alarm.changed.notify_all();
        if let Some(steps) = &self.steps {
            steps.stop();
        }
        self.pool.close();
        self.deadlocks.stop();
    }

    /// The number of threads that play turns, and of threads that were abandoned and have not returned.
    pub fn turn_threads(&self) -> (usize, usize) {
        self.pool.threads()
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}

impl Host for Threads {
    fn now(&self) -> Timestamp {
        self.clocks.now()
    }

    fn steady_now(&self) -> Steady {
        self.clocks.steady_now()
    }

    fn perform(&self, work: Work) {
        let (kind, run, queue) = (work.kind, work.run, work.queue.clone());
        let perform = move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work.perform())) {
                tracing::error!(%kind, ?run, "the engine panicked; this is a bug of Dacapo");
                resume_unwind(panic);
            }
        };
        match kind {
            WorkKind::Evict => self.pool.submit_unhurried(perform),
            _ => self.pool.submit(queue.as_ref(), perform),
        }
    }

    fn attempt(&self, attempt: Attempt) {
        self.attempts.start(attempt);
    }

    fn watch(&self, turn: Watch, limit: Duration, give_up: GiveUp) -> Option<WatchedTurn> {
        Some(self.deadlocks.begin(turn, limit, give_up))
    }

    fn end_process(&self, why: &str) {
        force_exit_after(self.force_exit, why);
    }

    fn wake_at(&self, at: Steady) {
        let mut state = self.alarm.state.lock();
        if state.at.is_none_or(|before| at < before) {
            state.at = Some(at);
            self.alarm.changed.notify_one();
        }
    }

    fn run_id(&self) -> Name {
        // These rise with time, which keeps the index on them short.
        uuid::Uuid::now_v7().to_string().into()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the process with exit code 1 after this time, whatever it is doing then. Has no effect on a process that ends
/// before.
pub fn force_exit_after(time: Duration, why: &str) {
    let why = why.to_owned();
    let exit = thread("dacapo-exit", move || {
        std::thread::sleep(time);
        let time = DurationText(time);
        eprintln!("dacapo: the process ends now, with exit code 1: its shutdown did not end within {time} ({why})");
        std::process::exit(1);
    });
    if let Err(error) = exit {
        tracing::error!(%error, "no thread can be started to end the process if its shutdown hangs");
    }
}
