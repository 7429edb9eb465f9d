//! The player of a run: one thread at a time, and not for ever. A turn that does not return in time is taken from it: the
//! run is parked and played by another, and whatever the first one still comes to is void.

use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use dacapo_core::{Activation, Completion, Run};
use dacapo_store::Doing;
use dacapo_worker::{Deadlock, Entity, StuckTurn, TerminationId, WatchedTurn, Worker};

use crate::inner::{Inner, lock};
use crate::report::trace as traces;
use crate::run::cached_run::{About, Live, Stage};

/// How the play of an activation goes on, for the two who may see it end: the player, and the watch over it. It lives as
/// long as the player is at it.
#[derive(Default)]
pub(crate) enum Play {
    #[default]
    GoesOn,
    /// It was given up on, and its code is asked to stop.
    GivenUp(TerminationId),
    /// It has returned.
    Over,
}

/// A watch over a player, until it is dropped. However many turns it plays, each has its own time.
pub(crate) struct Watching {
    inner: Arc<Inner>,
    worker: Arc<Worker>,
    play: Arc<Mutex<Play>>,
    watched: Option<WatchedTurn>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watched = None;
        let before = std::mem::replace(&mut *lock(&self.play), Play::Over);
        if let Play::GivenUp(termination) = before {
            self.inner.has_stopped(&self.worker, termination);
        }
    }
}

impl Inner {
    /// Plays an activation under the deadlock watch. None if the run was taken from this player meanwhile.
    pub(crate) fn activate(
        self: &Arc<Self>,
        live: &Arc<Live>,
        player: u64,
        about: &Arc<About>,
        run: &mut Run,
        activation: Activation,
    ) -> Option<Completion> {
        let watching = self.watch_player(live, player, about, run);
        let noted = self.note(match activation {
            Activation::Query(_) => Doing::Answer(live.no),
            _ => Doing::Run(live.no),
        });
        let completion = self.play_one(about, run, activation);
        drop((noted, watching));
        live.has_player(player).then_some(completion)
    }

    /// Watches over the player of a run, who loses it if a turn does not return in time.
    pub(crate) fn watch_player(
        self: &Arc<Self>,
        live: &Arc<Live>,
        player: u64,
        about: &Arc<About>,
        run: &Run,
    ) -> Option<Watching> {
        let stuck = live.clone();
        self.watch_over(about, run, move |this, deadlock, play| this.replace_player(stuck, player, deadlock, play))
    }

    /// Watches over whoever plays a run on this thread. If a turn does not return in time, `give_up` is told, and its code is
    /// asked to stop until it does. None if its queue gives turns all the time there is.
    pub(crate) fn watch_over(
        self: &Arc<Self>,
        about: &Arc<About>,
        run: &Run,
        give_up: impl FnOnce(&Arc<Self>, Deadlock, Weak<Mutex<Play>>) + Send + 'static,
    ) -> Option<Watching> {
        let worker = self.worker(&about.queue).clone();
        let limit = worker.values().workflow_deadlock_timeout;
        if limit.is_zero() {
            return None;
        }
        let play = Arc::<Mutex<Play>>::default();
        let (this, about, worker_of, play_of) = (Arc::downgrade(self), about.clone(), worker.clone(), play.clone());
        let give_up = move |deadlock: Deadlock| {
            if let Some(this) = this.upgrade() {
                this.stop_turn(&worker_of, &about, &deadlock, &play_of);
                give_up(&this, deadlock, Arc::downgrade(&play_of));
            }
        };
        let watched = self.host.watch(run.watch(), limit, Box::new(give_up));
        Some(Watching { inner: self.clone(), worker, play, watched })
    }

    /// Plays an activation, and counts it if it is a new turn.
    pub(crate) fn play_one(&self, about: &About, run: &mut Run, activation: Activation) -> Completion {
        let is_new = matches!(activation, Activation::Turn(_)) && !traces::is_replay(&activation);
        let began = is_new.then(Instant::now);
        let completion = traces::play(about, run, activation);
        if let Some(began) = began {
            let meters = self.worker(&about.queue).meters();
            meters.turns.increment(1);
            meters.turn_seconds.record(began.elapsed());
        }
        completion
    }

    /// Asks a turn to stop that did not return in time.
    fn stop_turn(self: &Arc<Self>, worker: &Arc<Worker>, about: &About, deadlock: &Deadlock, play: &Mutex<Play>) {
        let About { workflow, workflow_id, run_id, queue, .. } = about;
        worker.meters().deadlocks.increment(1);
        let entity = Entity::turn(workflow, workflow_id, run_id, queue);
        let code = Arc::new(StuckTurn::new(deadlock.watch.clone()));
        let termination = worker.terminate(entity, code, &deadlock.reason, self.host.now());
        let before = std::mem::replace(&mut *lock(play), Play::GivenUp(termination));
        match before {
            // It returned this very moment.
            Play::Over => self.has_stopped(worker, termination),
            Play::GoesOn | Play::GivenUp(_) => self.watch_zombies(worker),
        }
    }

    /// A player does not return: all it took is put back, and the run says why it does not go on.
    fn replace_player(self: &Arc<Self>, live: Arc<Live>, player: u64, deadlock: Deadlock, play: Weak<Mutex<Play>>) {
        let mut state = live.lock();
        if state.player != player || state.gone {
            return;
        }
        state.player += 1;
        state.lost_player = play;
        state.put_back_all();
        state.stage = Stage::Busy;
        drop(state);
        self.later(move |this| this.park(live, deadlock.reason));
    }
}
