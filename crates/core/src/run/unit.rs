//! Units as the executor keeps them: where they stand, when they are runnable, what becomes of their end.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::Waker;

use super::scope::{EXECUTION, HANDLERS, ScopeId};
use super::slot::SlotId;
use super::state::State;
use crate::job::{Signal, Update};
use crate::{CancelOperation, Failure, Name, Ordinal, Payload, Rng, Seg, UnitId};

/// A unit within its run, for as long as the run is in memory. Never part of an order.
pub(crate) type UnitKey = u32;

/// What a unit plays, and what the body of a `run` gives.
pub type UnitFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Whether a unit has a go coming.
///
/// ```text
/// Idle ──woken──▶ Queued ──its go──▶ Running ──paused──▶ Idle
///                   ▲                   │
///                   └── woken meanwhile ┘
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Go {
    Idle,
    Queued,
    Running,
    /// Woken while it was running: it goes again in the next round.
    RunningAgain,
}

/// What a unit's end means to others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OnEnd {
    /// The run ends.
    Root,
    /// One less for whoever waits on this slot; a failure is in the value that was handed over.
    Joined(SlotId),
    /// As above, but a failure fails the run.
    Launched(SlotId),
    /// A handler of this phase (or of the run) is done, and its update answered.
    Handler(Box<HandlerEnd>),
    /// Its async part ends it.
    HandedOver,
}

/// What the end of a handler answers and lets go on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandlerEnd {
    pub(crate) update: Option<Name>,
    pub(crate) phase: Option<u64>,
    pub(crate) site: &'static Location<'static>,
    /// When its message came.
    pub(crate) came: Ordinal,
    /// What it was started for, until it has had its first go.
    pub(crate) message: Option<Message>,
}

/// What a handler is started for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Signal(Box<Signal>),
    Update(Box<Update>),
}

pub(crate) struct Unit {
    pub(crate) id: UnitId,
    pub(crate) go: Go,
    pub(crate) on_end: OnEnd,
    /// How many children it ever started: the index of the next.
    pub(crate) children: u32,
    /// Results that came for it and that it has not seen yet, earliest first. One is shown per step.
    pub(crate) reveals: VecDeque<SlotId>,
    /// The cancellation scope its waits belong to, unless they stand in an inner one.
    pub(crate) scope: ScopeId,
    /// Operations it dropped or was cancelled out of, to be cancelled before its next command.
    pub(crate) cancels: Vec<(CancelOperation, &'static Location<'static>)>,
    /// Its own stream of random numbers, once it has drawn one.
    pub(crate) rng: Option<Box<Rng>>,
    /// Whether it was dropped by whoever started it and only its destructors are left.
    pub(crate) dying: bool,
    /// The turn it was started in.
    pub(crate) since: u64,
    /// What it plays; away while it has its go.
    pub(crate) future: Option<UnitFuture>,
    /// What it is polled with, from its first step on.
    pub(crate) waker: Option<Waker>,
}

impl State {
    /// Adds a unit; it is runnable in the next round unless `held`.
    pub(crate) fn spawn(
        &mut self,
        id: UnitId,
        on_end: OnEnd,
        scope: ScopeId,
        future: UnitFuture,
        held: bool,
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
        if !held {
            self.make_runnable(key);
        }
        key
    }

    /// The id of the running unit's next child.
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

    /// Gives a unit up: it gets no further go, and its future is dropped before anything else happens.
    pub(crate) fn abort(&mut self, key: UnitKey) {
        let Some(unit) = self.units.get_mut(&key) else { return };
        if !unit.dying {
            unit.dying = true;
            self.aborted.insert(unit.id.clone(), key);
        }
    }

    /// The running unit is done, and this future goes on in its stead, as a child of it.
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

    /// The scope of what the running unit launches: beside the workflow function, or beside the handlers.
    pub(crate) fn launch_scope(&self) -> ScopeId {
        if self.running_id().is_handler() { HANDLERS } else { EXECUTION }
    }

    pub(crate) fn is_alive(&self, key: UnitKey) -> bool {
        self.units.get(&key).is_some_and(|unit| !unit.dying)
    }
}
