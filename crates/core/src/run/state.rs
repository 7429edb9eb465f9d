//! The state of a run between and during its turns: a fold over its transcript.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::sync::Arc;
use std::task::Waker;

use super::cancel_scope::{CancelScopes, EXECUTION, ScopeId};
use super::conditions::Conditions;
use super::emit::Seal;
use super::matcher::Matcher;
use super::messages::Messages;
use super::seq_set::SeqSet;
use super::slot::{Slot, SlotId};
use super::unit::{Unit, UnitFuture, UnitKey};
use crate::activation::History;
use crate::job::{Signal, Start, Update};
use crate::policy::RunScheduler;
use crate::small_map::SmallMap;
use crate::{
    ActivationError, AttributeValue, CallSite, Command, CommandKind, ContinueAsNew, Failure, Name, Ordinal, Payload,
    Rejected, Seq, Timestamp, UnitId, Violation, ViolationKind, Warning,
};

/// The closure of a side effect, which the worker takes by its seq.
pub type RunClosure = Box<dyn FnOnce() -> UnitFuture + Send>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// No start job yet.
    New,
    Open,
    /// A terminal command was emitted.
    Closed,
    Evicted,
}

/// The end of a run whose workflow function has returned. It takes effect once the handlers allow it.
pub(crate) struct Ending {
    pub(crate) kind: CommandKind,
    pub(crate) site: &'static Location<'static>,
    /// Operations that were dropped without a command since the workflow function returned, and are not resolved.
    pub(crate) dropped: Vec<Seq>,
}

pub(crate) struct State {
    /// The token of the activation being played; 0 at rest.
    pub(crate) token: u64,
    pub(crate) life: Life,
    /// The first error of this activation. Everything after it is void.
    pub(crate) fault: Option<Box<ActivationError>>,
    pub(crate) interrupt: Option<Box<str>>,
    /// Whether the activation was abandoned while it ran.
    pub(crate) abandoned: bool,

    pub(crate) start: Arc<Start>,
    pub(crate) now: Timestamp,
    pub(crate) turn: u64,
    pub(crate) history: History,
    pub(crate) replaying: bool,
    /// Whether this is the second instance of a run that is played twice.
    pub(crate) second: bool,
    /// Whether this is one of the two instances of such a run.
    pub(crate) is_played_twice: bool,
    pub(crate) seed: u64,
    next_place: u32,
    /// Whether the run is pinned to play handlers before the root.
    pub(crate) handlers_first: bool,

    pub(crate) units: SmallMap<UnitKey, Box<Unit>>,
    pub(crate) next_unit: UnitKey,
    /// Units that were aborted and whose futures are still to be dropped, in the order in which they will be.
    pub(crate) aborted: BTreeMap<UnitId, UnitKey>,
    pub(crate) next_round: Vec<UnitKey>,
    pub(crate) round: u64,
    pub(crate) running: Option<UnitKey>,
    /// The cancellation scope the running unit is in.
    pub(crate) scope: ScopeId,
    /// The call site of the last call of the ctx.
    pub(crate) site: Option<&'static Location<'static>>,
    /// The latest result consumed since a race last asked.
    pub(crate) consumed: Option<Ordinal>,
    look: Option<Box<Look>>,
    pub(crate) scheduler: RunScheduler,

    /// Wakers of results whose unit is gone, to be woken before the next round.
    pub(crate) released: Vec<Waker>,
    pub(crate) slots: SmallMap<SlotId, Box<Slot>>,
    pub(crate) next_seq: u64,
    pub(crate) next_wait: u64,
    pub(crate) tombstones: SeqSet,
    pub(crate) scopes: CancelScopes,
    pub(crate) next_scope: ScopeId,
    pub(crate) conditions: Option<Box<Conditions>>,
    closures: Option<Box<Closures>>,

    pub(crate) commands: Vec<Command>,
    pub(crate) seals: Vec<Seal>,
    /// Positions of commands whose options may still be set.
    pub(crate) open: Vec<u32>,
    pub(crate) matcher: Option<Box<Matcher>>,
    /// The number of operations of each kind that the replayed turns before this one started.
    pub(crate) counts: Vec<(&'static str, u64)>,
    pub(crate) messages: Option<Box<Messages>>,
    notes: Option<Box<Notes>>,

    /// The failure of a launched unit: the run's result, whatever the workflow function returns.
    pub(crate) launched_failure: Option<Box<Failure>>,
    pub(crate) continue_as_new: Option<Box<ContinueAsNew>>,
    pub(crate) ending: Option<Box<Ending>>,
    pub(crate) unfinished_handlers: UnfinishedHandlers,

    facts: Option<Box<Facts>>,
    pub(crate) published: Option<Box<Payload>>,
}

/// The user's closures that a run holds, besides its units and handlers. Most runs hold none.
#[derive(Default)]
pub(crate) struct Closures {
    pub(crate) closures: BTreeMap<Seq, RunClosure>,
    /// Items that are not needed any more, to be dropped outside the lock.
    pub(crate) spent: Vec<Box<dyn Any + Send>>,
}

/// The results of a turn besides its commands. Most turns have none.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) rejected: Vec<Rejected>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) leftover: Vec<Signal>,
    pub(crate) left_updates: Vec<Update>,
    pub(crate) dropped: Vec<Seq>,
}

/// The named facts of a run: patches, durable keys, memo and search attributes. Most runs have none.
#[derive(Clone, Default)]
pub(crate) struct Facts {
    /// The answers of `patched`.
    pub(crate) patches: BTreeMap<Name, bool>,
    /// Patches whose marker a later part of the history holds.
    pub(crate) notified: BTreeSet<Name>,
    /// Durable keys.
    pub(crate) store: BTreeMap<Name, Payload>,
    pub(crate) memo: BTreeMap<Name, Payload>,
    pub(crate) search_attributes: BTreeMap<Name, AttributeValue>,
}

/// The state of the running unit's races. Most runs have no race.
#[derive(Default)]
pub(crate) struct Look {
    /// The number of races that poll a side now, one within the other.
    pub(crate) depth: u32,
    /// Whether results are peeked at and not taken.
    pub(crate) peeking: bool,
    /// The earliest result that was peeked at.
    pub(crate) peeked: Option<Ordinal>,
    /// The wakers of futures whose results were peeked at and not taken.
    pub(crate) wakers: Vec<Waker>,
    /// Whether those wakers are being woken: the running unit needs no further step for that.
    pub(crate) wakes_peeked: bool,
    /// The limit for taking results: a result that came after this one is not taken yet.
    pub(crate) horizon: Option<Ordinal>,
}

/// The rule for handlers that still wait when the workflow function returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedHandlers {
    /// The run closes; updates they were to answer fail. A warning names them.
    #[default]
    WarnAndAbandon,
    /// The run closes when they are done.
    Wait,
}

impl Facts {
    fn of(start: &Start) -> Self {
        let (memo, search_attributes) = (start.memo.clone(), start.search_attributes.clone());
        Self { memo, search_attributes, ..Self::default() }
    }
}

impl State {
    pub(crate) fn new(scheduler: RunScheduler, unfinished_handlers: UnfinishedHandlers) -> Self {
        Self {
            token: 0,
            life: Life::New,
            fault: None,
            interrupt: None,
            abandoned: false,
            start: Arc::default(),
            now: Timestamp::default(),
            turn: 0,
            history: History::default(),
            replaying: false,
            second: false,
            is_played_twice: false,
            seed: 0,
            next_place: 0,
            handlers_first: false,
            units: SmallMap::new(),
            next_unit: 0,
            aborted: BTreeMap::new(),
            next_round: Vec::new(),
            round: 0,
            running: None,
            scope: EXECUTION,
            site: None,
            consumed: None,
            look: None,
            scheduler,
            slots: SmallMap::new(),
            released: Vec::new(),
            next_seq: 0,
            next_wait: 0,
            tombstones: SeqSet::default(),
            scopes: CancelScopes::of_run(),
            next_scope: 3,
            conditions: None,
            closures: None,
            commands: Vec::new(),
            seals: Vec::new(),
            open: Vec::new(),
            matcher: None,
            counts: Vec::new(),
            messages: None,
            notes: None,
            launched_failure: None,
            continue_as_new: None,
            ending: None,
            unfinished_handlers,
            facts: None,
            published: None,
        }
    }

    /// Resets the places of events, which count from the start of each turn.
    pub(crate) fn begin_places(&mut self) {
        self.next_place = 0;
    }

    /// Drops the closure of this side effect, which is not needed any more.
    pub(crate) fn drop_closure(&mut self, seq: Seq) {
        if let Some(body) = self.take_closure(seq) {
            self.closures_mut().spent.push(Box::new(body));
        }
    }

    pub(crate) fn take_closure(&mut self, seq: Seq) -> Option<RunClosure> {
        self.closures.as_mut()?.closures.remove(&seq)
    }

    /// Takes everything that may run the user's destructors, piece by piece.
    pub(crate) fn take_user_code(&mut self) -> Vec<Box<dyn Any + Send>> {
        let mut items: Vec<Box<dyn Any + Send>> = Vec::new();
        items.extend(self.units.take_values().into_iter().map(|unit| unit as _));
        items.extend(self.slots.take_values().into_iter().map(|slot| slot as _));
        items.extend(std::mem::take(&mut self.released).into_iter().map(|waker| Box::new(waker) as _));
        if let Some(closures) = self.closures.take() {
            let Closures { closures, spent } = *closures;
            items.extend(closures.into_values().map(|body| Box::new(body) as _));
            items.extend(spent);
        }
        if let Some(conditions) = &mut self.conditions {
            conditions.take_all(&mut items);
        }
        if let Some(messages) = &mut self.messages {
            messages.take_handlers(&mut items);
        }
        items.push(Box::new(std::mem::replace(&mut self.scheduler, RunScheduler::deterministic())));
        items
    }

    /// Keeps an item of the user that is not needed any more, to be dropped outside the lock.
    pub(crate) fn spend(&mut self, item: impl Any + Send) {
        self.closures_mut().spent.push(Box::new(item));
    }

    pub(crate) fn take_spent(&mut self) -> Vec<Box<dyn Any + Send>> {
        self.closures.as_mut().map(|closures| std::mem::take(&mut closures.spent)).unwrap_or_default()
    }

    pub(crate) fn closures_mut(&mut self) -> &mut Closures {
        self.closures.get_or_insert_default()
    }

    pub(crate) fn next_ordinal(&mut self) -> Ordinal {
        let place = self.next_place;
        self.next_place += 1;
        Ordinal { turn: self.turn, place }
    }

    pub(crate) fn running_unit(&mut self) -> &mut Unit {
        let key = self.running.expect("invariant 3: only the unit that holds the turn may emit");
        self.units.get_mut(&key).expect("the running unit is a unit")
    }

    pub(crate) fn running_id(&self) -> UnitId {
        let unit = self.running.and_then(|key| self.units.get(&key));
        unit.map_or_else(UnitId::root, |unit| unit.id.clone())
    }

    pub(crate) fn look_mut(&mut self) -> &mut Look {
        self.look.get_or_insert_default()
    }

    /// Returns whether a result that came then is only peeked at now.
    pub(crate) fn only_looks(&self, came: Ordinal) -> bool {
        self.look.as_ref().is_some_and(|look| look.peeking || look.horizon.is_some_and(|horizon| horizon < came))
    }

    pub(crate) fn is_peeking(&self) -> bool {
        self.look.as_ref().is_some_and(|look| look.peeking)
    }

    /// Returns whether a race polls one of its sides now.
    pub(crate) fn is_within_race(&self) -> bool {
        self.look.as_ref().is_some_and(|look| look.depth > 0)
    }

    pub(crate) fn is_waking_peeked(&self) -> bool {
        self.look.as_ref().is_some_and(|look| look.wakes_peeked)
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        self.notes.get_or_insert_default().warnings.push(warning);
    }

    pub(crate) fn reject(&mut self, update: Name, failure: Failure) {
        self.notes.get_or_insert_default().rejected.push(Rejected { update, failure });
    }

    /// Records what is left of a run that closes.
    pub(crate) fn leave_behind(&mut self, leftover: Vec<Signal>, left_updates: Vec<Update>, dropped: Vec<Seq>) {
        if !leftover.is_empty() || !left_updates.is_empty() || !dropped.is_empty() {
            let notes = self.notes.get_or_insert_default();
            (notes.leftover, notes.left_updates, notes.dropped) = (leftover, left_updates, dropped);
        }
    }

    pub(crate) fn take_notes(&mut self) -> Notes {
        self.notes.take().map_or_else(Notes::default, |notes| *notes)
    }

    /// Returns the run's facts, to be changed. Memo and search attributes begin as the start gives them.
    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        self.facts.get_or_insert_with(|| Box::new(Facts::of(&self.start)))
    }

    pub(crate) fn facts(&self) -> Cow<'_, Facts> {
        self.facts.as_ref().map_or_else(|| Cow::Owned(Facts::of(&self.start)), |facts| Cow::Borrowed(&**facts))
    }

    pub(crate) fn site(&self) -> Option<CallSite> {
        self.site.map(CallSite::from)
    }

    /// Records the first error; the activation fails with it.
    pub(crate) fn fail(&mut self, error: ActivationError) {
        self.fault.get_or_insert_with(|| Box::new(error));
    }

    pub(crate) fn violate(&mut self, kind: ViolationKind, site: Option<&'static Location<'static>>) -> Violation {
        let site = site.or(self.site).map(CallSite::from);
        let violation = Violation { kind, unit: self.running_id(), site };
        self.fail(ActivationError::Violation(violation.clone()));
        violation
    }

    pub(crate) fn foreign_wake(&mut self, key: UnitKey) -> Violation {
        let unit = self.units.get(&key).map_or_else(UnitId::root, |unit| unit.id.clone());
        let violation = Violation { kind: ViolationKind::ForeignWake, unit, site: self.site() };
        self.fail(ActivationError::Violation(violation.clone()));
        violation
    }
}
