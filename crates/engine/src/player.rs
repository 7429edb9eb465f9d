//! The player of a run: one thread at a time, and not for ever. A turn that does not return in time is taken from it: the
//! run is parked and played by another, and whatever the first one still comes to is void.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use dacapo_core::{Activation, Completion, Run};
use dacapo_worker::{Deadlock, Entity, StuckTurn, TerminationId, Worker};

use crate::inner::{Inner, lock};
use crate::live::{About, Live, Stage};
use crate::traces;

/// How the play of an activation goes on, for the two who may see it end: the player, and the watch over it.
#[derive(Default)]
enum Play {
    #[default]
    GoesOn,
    /// It was given up on, and its code is asked to stop.
    GivenUp(TerminationId),
    /// It has returned.
    Over,
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
        let stuck = live.clone();
        let completion = self.play_watched(about, run, activation, move |this, deadlock| {
            this.replace_player(stuck, player, deadlock);
        });
        (live.lock().player == player).then_some(completion)
    }

    /// Plays an activation. If it does not return in time, `give_up` is told, and its code is asked to stop until it does.
    pub(crate) fn play_watched(
        self: &Arc<Self>,
        about: &Arc<About>,
        run: &mut Run,
        activation: Activation,
        give_up: impl FnOnce(&Arc<Self>, Deadlock) + Send + 'static,
    ) -> Completion {
        let worker = self.worker(&about.queue).clone();
        let limit = worker.values().workflow_deadlock_timeout;
        let is_new = matches!(activation, Activation::Turn(_)) && !traces::is_replay(&activation);
        let began = is_new.then(Instant::now);
        let play_it = |run: &mut Run| {
            let completion = traces::play(about, run, activation);
            if let Some(began) = began {
                worker.meters().turns.increment(1);
                worker.meters().turn_seconds.record(began.elapsed());
            }
            completion
        };
        if limit.is_zero() {
            return play_it(run);
        }
        let play = Arc::<Mutex<Play>>::default();
        let (this, about_of, worker_of, play_of) = (Arc::downgrade(self), about.clone(), worker.clone(), play.clone());
        let give_up = move |deadlock: Deadlock| {
            if let Some(this) = this.upgrade() {
                this.stop_turn(&worker_of, &about_of, &deadlock, &play_of);
                give_up(&this, deadlock);
            }
        };
        let watched = self.host.watch(run.watch(), limit, Box::new(give_up));
        let completion = play_it(run);
        drop(watched);
        let before = std::mem::replace(&mut *lock(&play), Play::Over);
        if let Play::GivenUp(termination) = before {
            self.has_stopped(&worker, termination);
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
    fn replace_player(self: &Arc<Self>, live: Arc<Live>, player: u64, deadlock: Deadlock) {
        let mut state = live.lock();
        if state.player != player || state.gone {
            return;
        }
        state.player += 1;
        state.put_back_all();
        state.stage = Stage::Busy;
        drop(state);
        self.later(move |this| this.park(live, deadlock.reason));
    }
}
