//! Units as the executor keeps them: their state, when they are runnable, and what follows from their end.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::Waker;

use super::cancel_scope::{EXECUTION, HANDLERS, ScopeId};
use super::slot::SlotId;
use super::state::State;
use crate::job::{Signal, Update};
use crate::{CancelOperation, Failure, Name, Ordinal, Payload, Rng, Seg, UnitId};

/// The key of a unit within its run, for as long as the run is in memory. It never decides an order.
pub(crate) type UnitKey = u32;

/// The future that a unit plays, and that the closure of a side effect returns.
pub type UnitFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// The scheduling state of a unit.
///
/// ```text
/// Idle ──woken──▶ Queued ──a step──▶ Running ──paused──▶ Idle
///                   ▲                   │
///                   └── woken meanwhile ┘
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Go {
    Idle,
    Queued,
    Running,
    /// Woken while it was running: it runs again in the next round.
    RunningAgain,
}

/// The effect of a unit's end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OnEnd {
    /// The run ends.
    Root,
    /// The slot waits for one unit less; a failure is in the value that was handed over.
    Joined(SlotId),
    /// The slot waits for one unit less; a failure fails the run.
    Launched(SlotId),
    /// A handler of this phase (or of the run) is done, and its update answered.
    Handler(Box<HandlerEnd>),
    /// None: the effect has moved to the unit's async part.
    HandedOver,
}

/// The effect of a handler's end: the update that it answers, and the phase that goes on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandlerEnd {
    pub(crate) update: Option<Name>,
    pub(crate) phase: Option<u64>,
    pub(crate) site: &'static Location<'static>,
    /// When the handler's message came.
    pub(crate) came: Ordinal,
    /// The message that it was started for, until its first step.
    pub(crate) message: Option<HandlerMessage>,
}

/// The message that a handler is started for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HandlerMessage {
    Signal(Box<Signal>),
    Update(Box<Update>),
}

pub(crate) struct Unit {
    pub(crate) id: UnitId,
    pub(crate) go: Go,
    pub(crate) on_end: OnEnd,
    /// The number of children it ever started: the index of the next.
    pub(crate) children: u32,
    /// Results that came for it and that it has not seen yet, earliest first. One is shown per step.
    pub(crate) reveals: VecDeque<SlotId>,
    /// The cancellation scope its waits belong to, unless they are in an inner one.
    pub(crate) scope: ScopeId,
    /// Operations it dropped or was cancelled out of, to be cancelled before its next command.
    pub(crate) cancels: Vec<(CancelOperation, &'static Location<'static>)>,
    /// Its own stream of random numbers, once it has drawn one.
    pub(crate) rng: Option<Box<Rng>>,
    /// Whether it was aborted and only its destructors are left to run.
    pub(crate) dying: bool,
    /// The turn it was started in.
    pub(crate) since: u64,
    /// The future that it plays; taken out while the unit runs.
    pub(crate) future: Option<UnitFuture>,
    /// The waker that it is polled with, from its first step on.
    pub(crate) waker: Option<Waker>,
}

impl State {
    /// Adds a unit; it is runnable in the next round unless it `waits` for its phase.
    pub(crate) fn spawn(
        &mut self,
        id: UnitId,
        on_end: OnEnd,
        scope: ScopeId,
        future: UnitFuture,
        waits: bool,
    ) -> UnitKey {
        let key = self.next_unit;
        self.next_unit += 1;
        self.inhabit(scope);
        let unit = Unit {
            id,
            go: Go::Idle,
            on_end,
            children: 0,
            reveals: VecDeque::new(),
            scope,
            cancels: Vec::new(),
            rng: None,
            dying: false,
            since: self.turn,
            future: Some(future),
            waker: None,
        };
        self.units.insert(key, Box::new(unit));
        if !waits {
            self.make_runnable(key);
        }
        key
    }

    /// Returns the id of the running unit's next child.
    pub(crate) fn next_child(&mut self, seg: fn(u32) -> Seg) -> UnitId {
        let unit = self.running_unit();
        let index = unit.children;
        unit.children += 1;
        unit.id.child(seg(index))
    }

    pub(crate) fn make_runnable(&mut self, key: UnitKey) {
        let Some(unit) = self.units.get_mut(&key) else { return };
        match unit.go {
            Go::Idle if !unit.dying => {
                unit.go = Go::Queued;
                self.next_round.push(key);
            }
            Go::Running => unit.go = Go::RunningAgain,
            Go::Idle | Go::Queued | Go::RunningAgain => {}
        }
    }

    /// Aborts a unit: it gets no further step, and its future is dropped before anything else happens.
    pub(crate) fn abort(&mut self, key: UnitKey) {
        let Some(unit) = self.units.get_mut(&key) else { return };
        if !unit.dying {
            unit.dying = true;
            self.aborted.insert(unit.id.clone(), key);
        }
    }

    /// Replaces the running unit, which is done, by this future, as a child of it.
    pub(crate) fn hand_over(&mut self, future: UnitFuture) {
        let id = self.next_child(Seg::A);
        let unit = self.running_unit();
        let (scope, on_end) = (unit.scope, std::mem::replace(&mut unit.on_end, OnEnd::HandedOver));
        let phase = match &on_end {
            OnEnd::Handler(end) => end.phase,
            _ => None,
        };
        let key = self.spawn(id, on_end, scope, future, false);
        self.set_current(phase, key);
        self.handler_is_due(key);
    }

    /// Returns the scope of the units that the running unit launches: that of the workflow function, or that of the
    /// handlers.
    pub(crate) fn launch_scope(&self) -> ScopeId {
        if self.running_id().is_handler() { HANDLERS } else { EXECUTION }
    }

    pub(crate) fn is_alive(&self, key: UnitKey) -> bool {
        self.units.get(&key).is_some_and(|unit| !unit.dying)
    }
}
