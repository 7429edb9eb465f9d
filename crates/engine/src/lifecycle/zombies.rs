//! Code that was asked to stop: attempts that nobody waits for any more, and turns that did not return. The worker of its
//! queue looks after it until it has ended.

use std::sync::Arc;

use dacapo_core::Name;
use dacapo_worker::{Entity, Grip, Health, TerminationId, Verdict, Worker};

use crate::Engine;
use crate::inner::{Inner, lock};
use crate::timer::wheel::Due;

impl Engine {
    /// How each queue is: what was asked to stop and has not ended.
    pub fn health(&self) -> Vec<(Name, Health)> {
        self.inner.workers().map(|worker| (worker.queue().clone(), worker.health())).collect()
    }

    /// Waits until the engine shuts down by itself, because too much code that was asked to stop runs on; gives the words.
    pub fn doomed(&self) -> impl Future<Output = Arc<str>> + Send + use<> {
        let mut doomed = self.inner.doomed.subscribe();
        async move {
            let why = doomed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
            match why {
                Some(why) => why,
                // The engine is gone and will never be doomed.
                None => std::future::pending().await,
            }
        }
    }
}

impl Inner {
    /// Gives up on an attempt: what it comes to is nobody's, and it is asked to stop until it does.
    pub(crate) fn give_up(self: &Arc<Self>, grip: &Grip, reason: &str) {
        let info = grip.ctx().info();
        let worker = self.worker(&info.queue).clone();
        // Two may give up on it at once, and it is one zombie at most.
        if !grip.let_go() {
            return;
        }
        let id = worker.terminate(Entity::activity(info), Arc::new(grip.clone()), reason, self.host.now());
        let (this, of) = (Arc::downgrade(self), worker.clone());
        grip.on_end(move || {
            if let Some(this) = this.upgrade() {
                this.has_stopped(&of, id);
            }
        });
        self.watch_zombies(&worker);
    }

    /// Code that was asked to stop has ended.
    pub(crate) fn has_stopped(self: &Arc<Self>, worker: &Arc<Worker>, id: TerminationId) {
        worker.finished(id, self.host.now());
        self.watch_zombies(worker);
        self.drained();
    }

    /// Sets the clock to when a worker has to look at its zombies.
    pub(crate) fn watch_zombies(&self, worker: &Worker) {
        let mut alarms = lock(&self.alarms);
        let (set, wanted) = (alarms.get(worker.queue()).copied(), worker.next());
        match (set, wanted) {
            (Some((at, _)), Some(wanted)) if at <= wanted => {}
            (None, None) => {}
            (before, Some(wanted)) => {
                self.cancel_alarms(before.as_slice());
                let alarm = self.own_timer(wanted, Due::Zombies(worker.queue().clone()));
                alarms.insert(worker.queue().clone(), alarm);
            }
            (Some(before), None) => {
                self.cancel_alarms(&[before]);
                alarms.remove(worker.queue());
            }
        }
    }

    /// Its time has come.
    pub(crate) fn look_at_zombies(self: &Arc<Self>, queue: &Name) {
        lock(&self.alarms).remove(queue);
        let worker = self.worker(queue).clone();
        let verdict = worker.tick(self.host.now());
        self.watch_zombies(&worker);
        if verdict == Verdict::ShutDown {
            let why = format!(
                "queue {queue:?} has {} zombies, as many as it bears (max_zombie_count): the process shuts down and has to \
                 be started again",
                worker.health().zombies
            );
            self.doom(&why);
        }
    }

    /// Shuts down by itself, once.
    fn doom(self: &Arc<Self>, why: &str) {
        let first = self.doomed.send_if_modified(|doomed| match doomed {
            Some(_) => false,
            None => {
                *doomed = Some(why.into());
                true
            }
        });
        if first {
            crate::report::log::about_engine(&why);
            self.host.end_process(why);
            self.begin_drain(None);
        }
    }
}
