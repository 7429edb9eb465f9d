//! The host of real programs: threads for turns, the program's runtime for attempts, a thread that watches the clock.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use dacapo_core::{Name, Timestamp, Watch};
use dacapo_worker::{Attempt, Attempts, DeadlockWatch, GiveUp, TurnPool, WatchedTurn};
use tokio::runtime::Handle;

use crate::host::{Host, Work};
use crate::{Engine, Options};

/// Threads, a runtime and a clock.
pub struct Threads {
    pool: TurnPool,
    attempts: Attempts,
    alarm: Arc<Alarm>,
    watcher: Mutex<Option<JoinHandle<()>>>,
    deadlocks: DeadlockWatch,
    force_exit: Duration,
}

#[derive(Default)]
struct Alarm {
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Default)]
struct AlarmState {
    at: Option<Timestamp>,
    stopped: bool,
}

impl Alarm {
    fn lock(&self) -> MutexGuard<'_, AlarmState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the moment that was last asked for has come. False once it is stopped.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return false;
            }
            state = match state.at.map(|at| at.since(now())) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    state.at = None;
                    return true;
                }
                Some(rest) => self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

impl Threads {
    /// A host for an engine with these options: with so many threads for turns, whose attempts run on this runtime, and
    /// which ends the process so long after the engine began to shut down by itself.
    pub fn new(
        options: &Options,
        turn_threads: usize,
        force_exit: Duration,
        runtime: Handle,
    ) -> std::io::Result<Arc<Self>> {
        let lanes = options.queues.iter().map(|(queue, values)| (queue.clone(), values.max_concurrent_workflows));
        Ok(Arc::new(Self {
            deadlocks: DeadlockWatch::new()?,
            force_exit,
            pool: TurnPool::new(turn_threads, lanes)?,
            attempts: Attempts::new(runtime),
            alarm: Arc::default(),
            watcher: Mutex::default(),
        }))
    }

    /// Calls the engine when its time has come, until it is stopped or gone.
    pub fn watch(&self, engine: &Engine) -> std::io::Result<()> {
        let (alarm, engine): (_, Weak<_>) = (self.alarm.clone(), Arc::downgrade(&engine.inner));
        let watcher = std::thread::Builder::new().name("dacapo-clock".to_owned()).spawn(move || {
            while alarm.wait() {
                match engine.upgrade() {
                    Some(engine) => engine.tick(),
                    None => return,
                }
            }
        })?;
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
        Ok(())
    }

    /// Ends the threads. Turns that are being played end by themselves.
    pub fn stop(&self) {
        self.alarm.lock().stopped = true;
        self.alarm.changed.notify_all();
        self.pool.close();
        self.deadlocks.stop();
    }
}

impl Threads {
    /// How many threads play turns, and how many were abandoned and have not come back.
    pub fn turn_threads(&self) -> (usize, usize) {
        self.pool.threads()
    }
}

impl Host for Threads {
    fn now(&self) -> Timestamp {
        now()
    }

    fn play(&self, queue: Option<&Name>, work: Work) {
        self.pool.submit(queue, work);
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

    fn wake_at(&self, at: Timestamp) {
        let mut state = self.alarm.lock();
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

/// Ends the process with exit code 1 after this time, whatever it is doing then. A process that ends by itself before
/// does not notice.
pub fn force_exit_after(time: Duration, why: &str) {
    let why = why.to_owned();
    let exit = std::thread::Builder::new().name("dacapo-exit".to_owned()).spawn(move || {
        std::thread::sleep(time);
        eprintln!("dacapo: the process ends now, with exit code 1: its shutdown did not end within {time:?} ({why})");
        std::process::exit(1);
    });
    if let Err(error) = exit {
        tracing::error!(%error, "no thread can be started to end the process if its shutdown does not");
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
