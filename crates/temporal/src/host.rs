//! The process that a worker of a cluster lives in: threads for turns, the deadlock watch, and a clock for code that was asked to stop.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dacapo_client::Error;
use dacapo_core::{Name, Timestamp, Watch};
use dacapo_worker::{
    AttemptHandle, DeadlockWatch, Entity, GiveUp, TurnHost, TurnPool, WatchedTurn, Worker, ZombieLimit,
};
use tokio::sync::watch;

/// The reason why a program has to end.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) why: String,
    /// The error of the cluster, if it is the reason.
    pub(crate) error: Option<Error>,
}

/// Threads and clocks of one program.
pub(crate) struct ClusterHost {
    pub(crate) pool: TurnPool,
    deadlocks: DeadlockWatch,
    began: Instant,
    began_at: Timestamp,
    /// Tells all that wait when the list of code that was asked to stop has changed.
    changed: watch::Sender<()>,
    /// Why the program has to end, once it has to.
    ends: watch::Sender<Option<End>>,
    this: Weak<Self>,
}

impl ClusterHost {
    pub(crate) fn new(threads: usize, queues: impl IntoIterator<Item = (Name, usize)>) -> std::io::Result<Arc<Self>> {
        let (pool, deadlocks) = (TurnPool::new(threads, queues)?, DeadlockWatch::new()?);
        Ok(Arc::new_cyclic(|this| Self {
            pool,
            deadlocks,
            began: Instant::now(),
            began_at: wall_clock(),
            changed: watch::Sender::new(()),
            ends: watch::Sender::new(None),
            this: this.clone(),
        }))
    }

    /// The time of day.
    pub(crate) fn now(&self) -> Timestamp {
        wall_clock()
    }

    /// Asks an attempt to stop that was given up on, and keeps asking until it has ended.
    pub(crate) fn terminate(&self, worker: &Arc<Worker>, entity: Entity, handle: &AttemptHandle, reason: &str) {
        let id = worker.terminate(entity, Arc::new(handle.clone()), reason, self.steady_now());
        let (this, of) = (self.this.clone(), worker.clone());
        handle.on_end(move || {
            if let Some(host) = this.upgrade() {
                of.finished(id, host.steady_now());
                host.changed.send_replace(());
            }
        });
        self.changed.send_replace(());
    }

    /// Looks at code that was asked to stop whenever its time has come, until there are too many zombies.
    pub(crate) async fn watch_zombies(&self, workers: &[Arc<Worker>]) {
        let mut changed = self.changed.subscribe();
        loop {
            let next = workers.iter().filter_map(|worker| worker.next()).min();
            let pause = next.map(|at| at.since(self.steady_now()));
            tokio::select! {
                _ = changed.changed() => {}
                () = sleep(pause) => {}
            }
            let now = self.steady_now();
            for worker in workers {
                if worker.tick(now) == ZombieLimit::Reached {
                    let why = format!(
                        "queue {:?} has {} zombies and has reached max_zombie_count: the process shuts down and has to \
                         be started again",
                        worker.queue(),
                        worker.health().zombies
                    );
                    self.end(why, None);
                }
            }
        }
    }

    /// Says that the program has to end. The first reason counts.
    pub(crate) fn end(&self, why: String, error: Option<Error>) {
        self.ends.send_if_modified(|end| {
            let is_first = end.is_none();
            end.get_or_insert(End { why, error });
            is_first
        });
    }

    /// Waits until there is a reason why the program has to end.
    pub(crate) async fn ends(&self) -> String {
        let mut ends = self.ends.subscribe();
        let reason = ends.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.map(|end| end.why).unwrap_or_default()
    }

    /// Why the program has to end, if it has to.
    pub(crate) fn end_reason(&self) -> Option<String> {
        self.ends.borrow().as_ref().map(|end| end.why.clone())
    }

    /// The error of the cluster for which the program has to end, if there is one.
    pub(crate) fn error(&self) -> Option<Error> {
        self.ends.borrow().as_ref().and_then(|end| end.error.clone())
    }

    /// Waits until all code that was asked to stop has ended, or the settings say to wait no longer.
    pub(crate) async fn wait_for_zombies(&self, workers: &[Arc<Worker>], since: Timestamp) {
        use dacapo_worker::ShutdownWait::Until;
        let mut changed = self.changed.subscribe();
        while workers.iter().any(|worker| matches!(worker.wait(since, self.steady_now()), Until(_))) {
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
    }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl TurnHost for ClusterHost {
    fn watch(&self, turn: Watch, limit: Duration, give_up: GiveUp) -> Option<WatchedTurn> {
        Some(self.deadlocks.begin(turn, limit, give_up))
    }

    fn steady_now(&self) -> Timestamp {
        self.began_at.after(self.began.elapsed())
    }

    fn terminations_changed(&self, _: &Arc<Worker>) {
        self.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use dacapo_worker::{ActivityCtx, ActivityInfo, Attempt, QueueValues};

    use super::*;

    /// There is one notice for each change, and the watch of the first queue took it.
    #[tokio::test]
    async fn zombie_of_one_queue_is_counted_while_others_watch_theirs() {
        let host = ClusterHost::new(1, [("one".into(), 1), ("two".into(), 1)]).unwrap();
        let values = QueueValues { max_zombie_count: 1, zombie_grace_period: Duration::ZERO, ..QueueValues::default() };
        let worker = |queue: &'static str| Arc::new(Worker::new(queue.into(), values.clone(), [].into_iter()));
        let (one, two) = (worker("one"), worker("two"));
        for worker in [one, two.clone()] {
            let watching = host.clone();
            tokio::spawn(async move { watching.watch_zombies(&[worker]).await });
        }
        // Both wait now.
        tokio::task::yield_now().await;
        let ctx = ActivityCtx::with_token(ActivityInfo::default(), Arc::new(|_| {}), 1, None);
        let attempt = Attempt::of_future(ctx, Box::pin(pending()), |_| {});
        host.terminate(&two, Entity::activity(&ActivityInfo::default()), &attempt.handle(), "of the test");
        let why = tokio::time::timeout(Duration::from_secs(60), host.ends()).await.unwrap();
        assert!(why.contains("queue \"two\" has 1 zombies"), "{why}");
        host.pool.close();
    }
}
