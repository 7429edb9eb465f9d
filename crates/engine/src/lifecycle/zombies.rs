//! Code that was asked to stop: attempts whose outcome is void, and turns that did not return. The worker of its queue
//! tracks it until it has ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use dacapo_core::{Name, Timestamp, Watch};
use dacapo_worker::{AttemptHandle, Entity, GiveUp, TurnHost, WatchedTurn, Worker, ZombieLimit};

use crate::lifecycle::shutdown;
use crate::report::log;
use crate::shared::Shared;
use crate::timer::wheel::Due;

/// Gives up on an attempt: its outcome is void, and it is asked to stop until it does.
pub(crate) fn give_up(shared: &Arc<Shared>, handle: &AttemptHandle, reason: &str) {
    let info = handle.ctx().info();
    let worker = shared.workers.of(&info.queue).clone();
    // Two threads may give up on it at once, and it is one zombie at most.
    if !handle.let_go() {
        return;
    }
    let now = shared.host.steady_now().0;
    let id = worker.terminate(Entity::activity(info), Arc::new(handle.clone()), reason, now);
    let (this, of) = (Arc::downgrade(shared), worker.clone());
    handle.on_end(move || {
        if let Some(shared) = this.upgrade() {
            of.finished(id, shared.host.steady_now().0);
            changed(&shared, &of);
        }
    });
    arm(shared, &worker);
}

/// Arms the alarm and checks the shutdown, after the list of code that a worker has asked to stop has changed.
fn changed(shared: &Arc<Shared>, worker: &Worker) {
    arm(shared, worker);
    shutdown::check(shared);
}

/// Arms the alarm at which a worker has to look at its zombies.
fn arm(shared: &Shared, worker: &Worker) {
    let mut alarms = shared.zombie_alarms.lock();
    let (set, wanted) = (alarms.get(worker.queue()).copied(), worker.next());
    match (set, wanted) {
        (Some((at, _)), Some(wanted)) if at.0 <= wanted => {}
        (None, None) => {}
        (before, Some(wanted)) => {
            shared.timers.disarm(before.as_slice());
            let pause = wanted.since(shared.host.steady_now().0);
            alarms.insert(worker.queue().clone(), shared.arm_in(pause, Due::Zombies(worker.queue().clone())));
        }
        (Some(before), None) => {
            shared.timers.disarm(&[before]);
            alarms.remove(worker.queue());
        }
    }
}

/// Checks the zombies of a queue. Too many of them shut the engine down.
pub(crate) fn look(shared: &Arc<Shared>, queue: &Name) {
    shared.zombie_alarms.lock().remove(queue);
    let worker = shared.workers.of(queue).clone();
    let limit = worker.tick(shared.host.steady_now().0);
    arm(shared, &worker);
    if limit == ZombieLimit::Reached {
        let why = format!(
            "queue {queue:?} has {} zombies and has reached max_zombie_count: the process shuts down and has to \
             be started again",
            worker.health().zombies
        );
        if shared.zombie_alarms.shut_down(&why) {
            log::engine_error(&why);
            shared.host.end_process(&why);
            shutdown::begin(shared, None);
        }
    }
}

/// The engine as the host of the turn driver.
pub(crate) struct DriverHost(pub(crate) Weak<Shared>);

impl TurnHost for DriverHost {
    fn watch(&self, turn: Watch, limit: Duration, give_up: GiveUp) -> Option<WatchedTurn> {
        self.0.upgrade()?.host.watch(turn, limit, give_up)
    }

    fn steady_now(&self) -> Timestamp {
        self.0.upgrade().map(|shared| shared.host.steady_now().0).unwrap_or_default()
    }

    fn terminations_changed(&self, worker: &Arc<Worker>) {
        if let Some(shared) = self.0.upgrade() {
            changed(&shared, worker);
        }
    }
}
