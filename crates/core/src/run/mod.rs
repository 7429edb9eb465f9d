//! The executor of one run: `activate(Activation) -> Completion`.
//!
//! A turn applies its jobs, then plays rounds until no unit is runnable. Each unit of a round gets one step; a unit that
//! becomes runnable meanwhile goes in the next round. Everything a unit decides passes through [`State`], under a lock
//! that user code never holds, and only while that unit holds the turn. There is no clock, thread, file or socket here:
//! what a turn decides follows from the activations alone.

mod boundary;
mod cancel_scope;
mod close;
mod conditions;
mod current_turn;
mod double_play;
mod emit;
mod give_up;
mod inspect;
mod jobs;
mod matcher;
mod message_order;
mod messages;
mod phase;
mod query;
mod rounds;
mod seq_set;
mod shared;
mod slot;
mod state;
mod step;
mod unit;
mod watch;
mod workflow;

pub use current_turn::is_playing;
pub use inspect::{Inspection, PendingOperation, UnitView, Wait};
pub use shared::Reporter;
pub use state::{RunClosure, UnfinishedHandlers};
pub use unit::UnitFuture;
pub use watch::Watch;
pub use workflow::{Order, OwnPolicy, Pins, ReplaySilencer, RunOptions, SEMANTICS, Workflow, WorkflowCode};

pub(crate) use cancel_scope::{EXECUTION, ScopeId};
pub(crate) use conditions::{CellId, Condition};
pub(crate) use current_turn::{CurrentTurn, ThreadWork, TurnGuard};
pub(crate) use emit::Ticket;
pub(crate) use messages::{SignalFn, SignalHandler, UpdateFn, UpdateHandler, ValidatorFn};
pub(crate) use shared::Shared;
pub(crate) use slot::{Polled, SlotId, Value, What};
pub(crate) use state::State;
pub(crate) use unit::{OnEnd, UnitKey};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::activation::{Activation, Turn};
use crate::policy::RunScheduler;
use crate::{ActivationError, Completion, Ctx, JobError, Seq, TurnDone};
use current_turn::new_token;
use give_up::{drop_quietly, last_words};
use matcher::Matcher;
use state::{Life, Notes};

/// One run in memory, which can go on from its current state.
///
/// It is `Send`, so a worker may play each turn on another thread. Dropping it is an eviction.
pub struct Run {
    workflow: Workflow,
    order: Order,
    shared: Arc<Shared>,
    /// The round being played, in order.
    round: Vec<UnitKey>,
    /// A second instance that gets the same activations and must decide the same.
    twin: Option<Box<Twin>>,
    poisoned: Option<Box<str>>,
    /// Whether reports leave payloads out.
    redact: bool,
}

/// The second instance, and the replay silencer for its plays.
struct Twin {
    run: Run,
    silencer: Option<ReplaySilencer>,
}

impl Run {
    /// Creates a run of this workflow, before its first turn.
    pub fn new(workflow: Workflow, options: RunOptions) -> Result<Self, ActivationError> {
        if options.pins.semantics == 0 || options.pins.semantics > SEMANTICS {
            return Err(ActivationError::UnknownSemantics { found: options.pins.semantics, known: SEMANTICS });
        }
        let twin = match options.double_play {
            true => {
                let silencer = options.silencer.clone();
                let options = RunOptions { double_play: false, reporter: None, ..options.clone() };
                let run = Self::new(workflow.clone(), options)?;
                let mut state = run.shared.lock();
                (state.second, state.is_played_twice) = (true, true);
                drop(state);
                Some(Box::new(Twin { run, silencer }))
            }
            false => None,
        };
        let scheduler = options.pins.policy.scheduler(options.own_policy.as_deref().map(|own| own as _))?;
        let mut state = State::new(scheduler, workflow.handler_policy());
        state.handlers_first = options.pins.order == Order::HandlersFirst;
        state.is_played_twice = options.double_play;
        let shared = Arc::new(Shared::new(state, options.reporter));
        Ok(Self {
            workflow,
            order: options.pins.order,
            shared,
            round: Vec::new(),
            twin,
            poisoned: None,
            redact: options.redact,
        })
    }

    /// Plays one activation. Exactly one completion answers it, whatever happens; no input makes this panic.
    pub fn activate(&mut self, activation: Activation) -> Completion {
        let completion = match self.twin.take() {
            None => self.play(activation),
            Some(mut twin) => {
                let first = self.play(activation.clone());
                let answer = match first {
                    first if double_play::is_stopped(&first) => first,
                    first => double_play::compare_plays(first, twin.play(activation), self.redact),
                };
                self.twin = Some(twin);
                answer
            }
        };
        match completion {
            Completion::Failed(error) if self.redact => Completion::Failed(Box::new(error.redacted())),
            completion => completion,
        }
    }

    fn play(&mut self, activation: Activation) -> Completion {
        // Panics of user code are caught where it runs; this catches all others, so that no bug of the core takes the
        // worker down.
        catch_unwind(AssertUnwindSafe(|| self.play_fenced(activation))).unwrap_or_else(|payload| {
            let error =
                ActivationError::Panic { message: last_words(payload), unit: crate::UnitId::root(), site: None };
            self.poisoned = Some(error.to_string().into());
            self.take_apart();
            Completion::Failed(Box::new(error))
        })
    }

    fn play_fenced(&mut self, activation: Activation) -> Completion {
        let result = match activation {
            Activation::Evict => {
                self.evict();
                return Completion::Evicted;
            }
            _ if self.poisoned.is_some() => {
                Err(ActivationError::Poisoned(self.poisoned.clone().unwrap_or_default().into()))
            }
            Activation::Query(queries) => self.answer(queries).map(Completion::Query),
            Activation::Turn(turn) => self.play_turn(turn).map(Completion::Turn),
        };
        result.unwrap_or_else(|error| Completion::Failed(Box::new(error)))
    }

    fn play_turn(&mut self, turn: Turn) -> Result<TurnDone, ActivationError> {
        self.admit(&turn)?;
        let token = new_token();
        let _hold = TurnGuard::new(token, ThreadWork::Kernel);
        let before = self.shared.lock().now;
        let jobs = turn.jobs.len();
        let done = self.begin(token, turn).and_then(|()| self.drain()).and_then(|steps| self.finish(steps, jobs));
        let mut state = self.shared.lock();
        // Up to this point a watcher may abandon the turn.
        let done = if state.abandoned { Err(ActivationError::Abandoned) } else { done };
        state.token = 0;
        state.running = None;
        match &done {
            // A turn that was refused whole must leave no trace, not even a later clock.
            Ok(done) if done.number.is_none() => state.now = before,
            Ok(_) => state.turn += 1,
            Err(error) => {
                let message = error.to_string();
                drop(state);
                self.poisoned = Some(message.into());
                self.take_apart();
            }
        }
        done
    }

    /// Refuses a turn that cannot be played, and applies no job of it then.
    fn admit(&mut self, turn: &Turn) -> Result<(), ActivationError> {
        let mut state = self.shared.lock();
        match state.life {
            Life::Evicted => return Err(ActivationError::Evicted),
            Life::Closed => return Err(ActivationError::Closed),
            Life::New | Life::Open => {}
        }
        if let Some(fault) = state.fault.take() {
            // Code used the run while it was at rest.
            drop(state);
            self.poisoned = Some(fault.to_string().into());
            self.take_apart();
            return Err(*fault);
        }
        match turn.recorded.as_ref().and_then(|recorded| recorded.number) {
            Some(found) if found != state.turn => Err(JobError::OutOfOrder { expected: state.turn, found })?,
            _ => Ok(state.check_jobs(self.workflow.name(), &turn.jobs)?),
        }
    }

    fn begin(&mut self, token: u64, turn: Turn) -> Result<(), ActivationError> {
        let mut state = self.shared.lock();
        state.token = token;
        state.interrupt = None;
        state.now = state.now.max(turn.now);
        state.history = turn.history;
        state.replaying = turn.replaying || turn.recorded.is_some();
        let number = state.turn;
        let (matcher, choices) = match turn.recorded {
            Some(recorded) => (Some(Box::new(Matcher::new(recorded.commands, recorded.build))), Some(recorded.choices)),
            None => (None, None),
        };
        state.matcher = matcher;
        // Every policy but the deterministic one records its choices, so a turn recorded without any made none.
        let choices = choices.map(|choices| choices.unwrap_or_default());
        let choices = choices.filter(|_| !state.scheduler.is_deterministic());
        if !state.scheduler.is_deterministic() {
            drop(state);
            self.shared.ask(|scheduler| {
                scheduler.begin_turn(number, choices);
                Ok(())
            })?;
            state = self.shared.lock();
        }
        state.begin_places();
        let starts = state.life == Life::New;
        let mut wakers = Vec::new();
        for job in turn.jobs {
            wakers.append(&mut state.apply(job));
        }
        if starts {
            // The workflow function takes the input, so that the run does not keep a copy of it.
            let input =
                Arc::get_mut(&mut state.start).map(|start| std::mem::take(&mut start.input)).unwrap_or_default();
            let root = self.workflow.root(Ctx::new(self.shared.clone()), input);
            state.spawn(crate::UnitId::root(), OnEnd::Root, EXECUTION, root, false);
        }
        drop(state);
        self.wake(wakers);
        Ok(())
    }

    fn finish(&mut self, steps: u64, jobs: usize) -> Result<TurnDone, ActivationError> {
        let mut state = self.shared.lock();
        if state.abandoned {
            return Err(ActivationError::Abandoned);
        }
        let (turn, position) = (state.turn, state.commands.len());
        if let Some(report) = state.matcher.as_mut().and_then(|matcher| matcher.missing(turn, position)) {
            state.fail_replay(report);
        }
        if let Some(fault) = state.fault.take() {
            return Err(*fault);
        }
        let mut choices = None;
        if !state.scheduler.is_deterministic() {
            drop(state);
            choices = self.shared.ask(RunScheduler::end_turn)?;
            state = self.shared.lock();
        }
        let commands = std::mem::take(&mut state.commands);
        if state.matcher.take().is_some() {
            state.count(&commands);
        }
        assert!(state.seals.iter().all(|seal| seal.sealed), "invariant 2: every command is sealed by the step's end");
        state.seals.clear();
        let Notes { rejected, warnings, leftover, left_updates, dropped } = state.take_notes();
        let void = steps == 0 && commands.is_empty() && rejected.len() == jobs;
        Ok(TurnDone {
            number: (!void).then_some(turn),
            commands,
            rejected,
            choices: choices.filter(|_| !void),
            published: state.published.take().map(|snapshot| *snapshot),
            warnings,
            closed: state.life == Life::Closed,
            leftover,
            left_updates,
            dropped,
        })
    }

    /// Takes the closure of a side effect. `None` once it was taken, or when its result is already known.
    pub fn take_closure(&mut self, seq: Seq) -> Option<RunClosure> {
        self.shared.lock().take_closure(seq)
    }

    /// Returns a handle that watches over the run from another thread.
    pub fn watch(&self) -> Watch {
        let twin = self.twin.as_ref().map(|twin| twin.run.shared.clone());
        Watch::new(self.shared.clone(), twin)
    }

    /// Drops the run's futures without polling them. Destructors run, with a ctx that does nothing.
    fn evict(&mut self) {
        self.take_apart();
        if let Some(twin) = &mut self.twin {
            twin.evict();
        }
    }

    fn take_apart(&mut self) {
        let _hold = TurnGuard::new(0, ThreadWork::Teardown);
        let mut husk = State::new(RunScheduler::deterministic(), UnfinishedHandlers::default());
        husk.life = Life::Evicted;
        let mut old = std::mem::replace(&mut *self.shared.lock(), husk);
        // One by one, so that a destructor that panics keeps no other from running.
        for item in old.take_user_code() {
            drop_quietly(item);
        }
        drop_quietly(old);
    }
}

impl Twin {
    fn play(&mut self, activation: Activation) -> Completion {
        let _silencer = self.silencer.as_ref().map(|silencer| silencer());
        self.run.play(activation)
    }

    fn evict(&mut self) {
        let _silencer = self.silencer.as_ref().map(|silencer| silencer());
        self.run.evict();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.evict();
    }
}
