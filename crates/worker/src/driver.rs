//! The driver of turns: it plays activations of a run for any backend.
//!
//! ```text
//!   backend ── Activation ──▶ Play::activate ──▶ Run::activate ──▶ Completion ──▶ backend
//!                               │  deadlock watch, crash note, span, silence on replay, metrics
//!                               └─ a turn that does not return: the watch takes the run from this thread (`None`)
//! ```
//!
//! It knows no store and no backend. A backend describes the play of a run by a [`RunToPlay`]: the run's name, the note
//! of the play, and what to do when a turn does not return.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use dacapo_core::{Activation, ActivationError, Completion, Run, Timestamp, Watch};
use dacapo_sync::{Mutex, ranks};
use tracing::info_span;

use crate::deadlock::{Deadlock, GiveUp, WatchedTurn};
use crate::interrupt::StuckTurn;
use crate::run_name::RunName;
use crate::silence::silence;
use crate::worker::Worker;
use crate::zombies::{Entity, TerminationId};

/// The driver's interface to its process.
pub trait TurnHost: Send + Sync {
    /// Watches turns that are played on this thread from now on, each with this time limit, until the result is
    /// dropped. None where no thread can watch.
    fn watch(&self, turn: Watch, limit: Duration, give_up: GiveUp) -> Option<WatchedTurn>;
    /// Returns the time by which interrupts are scheduled.
    fn steady_now(&self) -> Timestamp;
    /// Tells the host that the list of code that this worker has asked to stop has changed.
    fn terminations_changed(&self, worker: &Arc<Worker>);
}

/// The callback for a turn that does not return in time, on the thread of the watch: it must not block. It hands the
/// run to another thread; results of the stuck thread are void.
pub type HandOver = Box<dyn FnOnce(Deadlock, StuckPlay) + Send>;

/// A play that was given up on.
#[derive(Clone, Debug, Default)]
pub struct StuckPlay(Weak<Mutex<State>>);

impl StuckPlay {
    /// Returns whether its code still runs.
    pub fn is_running(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// The state of a play, for the two threads that may end it: the one that plays, and the deadlock watch.
#[derive(Debug, Default)]
enum State {
    #[default]
    Plays,
    /// The watch gave up on it, and its code is asked to stop.
    GivenUp(TerminationId),
    Ended,
}

/// A run to be played, and how.
pub struct RunToPlay<'a, N> {
    /// The run's name.
    pub name: &'a Arc<RunName>,
    /// The run.
    pub run: &'a mut Run,
    /// A note that user code runs, which the backend keeps to count crashes. Dropped when the play ends.
    pub note: N,
    /// Takes the run from this thread when a turn does not return.
    pub hand_over: HandOver,
}

/// A thread that plays a run, turn after turn, until this is dropped. Each turn has its own time.
pub struct Play<'a, N> {
    host: Arc<dyn TurnHost>,
    worker: Arc<Worker>,
    name: &'a RunName,
    run: &'a mut Run,
    state: Arc<Mutex<State>>,
    /// Dropped before the note: a play that is no longer watched cannot be given up on.
    watched: Option<WatchedTurn>,
    _note: N,
}

impl Worker {
    /// Begins to play a run on this thread.
    pub fn play<'a, N>(self: &Arc<Self>, host: &Arc<dyn TurnHost>, run: RunToPlay<'a, N>) -> Play<'a, N> {
        let RunToPlay { name, run, note, hand_over } = run;
        let state = Arc::new(Mutex::new(ranks::PLAY, State::Plays));
        let limit = self.values().workflow_deadlock_timeout;
        let watched = match limit.is_zero() {
            true => None,
            false => {
                let (worker, watcher) = (self.clone(), Watcher { host: host.clone(), state: state.clone() });
                let name = name.clone();
                let give_up = move |deadlock: Deadlock| {
                    watcher.stop_turn(&worker, Entity::turn(&name), &deadlock);
                    hand_over(deadlock, StuckPlay(Arc::downgrade(&watcher.state)));
                };
                host.watch(run.watch(), limit, Box::new(give_up))
            }
        };
        Play { host: host.clone(), worker: self.clone(), name, run, state, watched, _note: note }
    }
}

impl<N> Play<'_, N> {
    /// Plays an activation. Returns none if the watch took the run from this thread meanwhile: the completion is void.
    pub fn activate(&mut self, activation: Activation) -> Option<Completion> {
        let completion = match &activation {
            Activation::Turn(turn) if turn.replaying || turn.recorded.is_some() => {
                self.worker.meters().replayed_turns.increment(1);
                let _silence = silence();
                self.run.activate(activation)
            }
            Activation::Turn(_) => {
                let began = Instant::now();
                let completion = self.in_span(activation);
                self.worker.meters().turns.increment(1);
                self.worker.meters().turn_seconds.record(began.elapsed());
                completion
            }
            Activation::Query(_) | Activation::Evict => self.in_span(activation),
        };
        // The watch may have given up on it and not have set the state yet.
        let is_abandoned =
            matches!(&completion, Completion::Failed(error) if matches!(**error, ActivationError::Abandoned));
        (!is_abandoned && matches!(*self.state.lock(), State::Plays)).then_some(completion)
    }

    fn in_span(&mut self, activation: Activation) -> Completion {
        let RunName { workflow, workflow_id, run_id, queue } = self.name;
        // No parent: a turn belongs to its run, and not to what this thread did before.
        let span = match &activation {
            Activation::Turn(_) => info_span!(
                target: "dacapo", parent: None, "turn", %workflow, %workflow_id, %run_id, %queue, turn = self.run.watch().turn()
            ),
            Activation::Query(queries) => info_span!(
                target: "dacapo", parent: None, "query", %workflow, %workflow_id, %run_id, %queue,
                query = queries.first().map(|query| query.name.as_str()).unwrap_or_default()
            ),
            Activation::Evict => tracing::Span::none(),
        };
        span.in_scope(|| self.run.activate(activation))
    }
}

impl<N> Drop for Play<'_, N> {
    fn drop(&mut self) {
        self.watched = None;
        let before = std::mem::replace(&mut *self.state.lock(), State::Ended);
        if let State::GivenUp(termination) = before {
            self.worker.finished(termination, self.host.steady_now());
            self.host.terminations_changed(&self.worker);
        }
    }
}

/// The deadlock watch's end of a play.
struct Watcher {
    host: Arc<dyn TurnHost>,
    state: Arc<Mutex<State>>,
}

impl Watcher {
    /// Asks a turn to stop that did not return in time.
    fn stop_turn(&self, worker: &Arc<Worker>, entity: Entity, deadlock: &Deadlock) {
        worker.meters().deadlocks.increment(1);
        let code = Arc::new(StuckTurn::new(deadlock.watch.clone()));
        let now = self.host.steady_now();
        let termination = worker.terminate(entity, code, &deadlock.reason, now);
        let before = std::mem::replace(&mut *self.state.lock(), State::GivenUp(termination));
        if matches!(before, State::Ended) {
            // The turn ended in this moment.
            worker.finished(termination, now);
        }
        self.host.terminations_changed(worker);
    }
}
