//! A worker serves one queue. Each queue has settings of its own and handles its own code that does not stop, so that
//! problems in one queue do not affect the others.
//!
//! ```text
//! application ── worker (one for each queue) ─┬─ turns       places of a lane (`TurnPool`), deadlock watch
//!                                             ├─ activities  attempts, each with what it started (`Attempt`)
//!                                             └─ zombies     turns and attempts that were asked to stop (`Zombies`)
//! ```

use std::fmt;
use std::sync::Arc;

use dacapo_core::{Name, Timestamp};
use dacapo_sync::{Mutex, MutexGuard, ranks};

use crate::{
    Entity, Health, Interrupt, Level, Meters, QueueValues, ShutdownWait, TerminationId, ZombieLimit, Zombies, meter,
};

/// A worker, which serves one queue.
pub struct Worker {
    queue: Name,
    values: QueueValues,
    meters: Arc<Meters>,
    zombies: Mutex<Watched>,
}

/// The code that was asked to stop, and the gauges that show it.
struct Watched {
    zombies: Zombies,
    terminating: Level,
    count: Level,
}

impl Worker {
    /// Creates a worker for this queue, with these settings.
    pub fn new<'a>(queue: Name, values: QueueValues, activities: impl IntoIterator<Item = &'a Name>) -> Self {
        let zombies = Mutex::new(
            ranks::ZOMBIES,
            Watched {
                zombies: Zombies::new(values.zombies()),
                terminating: meter::TERMINATING.level(&[&queue]),
                count: meter::ZOMBIES.level(&[&queue]),
            },
        );
        Self { meters: Arc::new(Meters::new(&queue, activities)), queue, values, zombies }
    }

    /// Returns the worker's queue.
    pub fn queue(&self) -> &Name {
        &self.queue
    }

    /// Returns the worker's settings.
    pub fn values(&self) -> &QueueValues {
        &self.values
    }

    /// Returns the worker's meters.
    pub fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.zombies.lock()
    }

    fn change<R>(&self, change: impl FnOnce(&mut Zombies) -> R) -> R {
        let mut watched = self.watched();
        let result = change(&mut watched.zombies);
        let (terminating, count) = (watched.zombies.terminating(), watched.zombies.count());
        watched.terminating.set(terminating);
        watched.count.set(count);
        result
    }

    /// Asks code to stop, now and again until it has [ended](Self::finished).
    pub fn terminate(&self, entity: Entity, code: Arc<dyn Interrupt>, reason: &str, now: Timestamp) -> TerminationId {
        let (id, effects) = self.change(|zombies| zombies.request(entity, code, reason, now));
        // Code that was asked in this moment is no zombie yet.
        let _ = effects.perform();
        id
    }

    /// Ends a termination: the code has ended.
    pub fn finished(&self, id: TerminationId, now: Timestamp) {
        let effects = self.change(|zombies| zombies.finished(id, now));
        // One zombie less cannot reach the limit.
        let _ = effects.perform();
    }

    /// Performs what is due by now.
    pub fn tick(&self, now: Timestamp) -> ZombieLimit {
        let effects = self.change(|zombies| zombies.tick(now));
        effects.perform()
    }

    /// Returns when [`Self::tick`] has something to do.
    pub fn next(&self) -> Option<Timestamp> {
        self.watched().zombies.next()
    }

    /// Returns the health of the queue.
    pub fn health(&self) -> Health {
        self.watched().zombies.health()
    }

    /// Returns whether a shutdown that began at `since` goes on waiting for code that was asked to stop.
    pub fn wait(&self, since: Timestamp, now: Timestamp) -> ShutdownWait {
        self.watched().zombies.wait(since, now)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("queue", &self.queue).field("health", &self.health()).finish_non_exhaustive()
    }
}
