//! Calls of the ctx that answer at once: time, randomness, facts, durable keys, patches, choices.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::Arc;

use crate::activation::History;
use crate::command::{PatchMarker, SetState};
use crate::job::Start;
use crate::rng::{derive, mix};
use crate::run::{CurrentTurn, State, ThreadWork};
use crate::{
    AttributeValue, CommandKind, ContinueAsNew, Ctx, Failure, FailureKind, Name, OperationId, Payload, Rng, Timestamp,
    UnitId, ViolationKind,
};

/// Facts about the run.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// The data with which the run started.
    pub start: Arc<Start>,
    /// The turn being played, from 0.
    pub turn: u64,
    /// The size of the history before this turn.
    pub history: History,
    /// Whether this turn was played before. For logging and metrics only: code must not decide by it.
    pub replaying: bool,
    /// The current memo.
    pub memo: BTreeMap<Name, Payload>,
    /// The current search attributes.
    pub search_attributes: BTreeMap<Name, AttributeValue>,
}

impl Ctx {
    /// Returns the time of this turn. It does not change while the turn is played, and never goes back.
    #[track_caller]
    pub fn now(&self) -> Timestamp {
        self.shared.look(Location::caller()).map_or_else(Timestamp::default, |state| state.now)
    }

    /// Returns facts about the run.
    #[track_caller]
    pub fn info(&self) -> Option<Info> {
        let state = self.shared.look(Location::caller())?;
        Some(Info {
            start: state.start.clone(),
            turn: state.turn,
            history: state.history,
            replaying: state.replaying,
            memo: state.facts().memo.clone(),
            search_attributes: state.facts().search_attributes.clone(),
        })
    }

    /// Returns the running unit, if it does its work for the first time: `None` on replay, and in the second instance
    /// of a run that is played twice. For logs and metrics only: code must not decide by it.
    #[track_caller]
    pub fn first_time(&self) -> Option<UnitId> {
        let state = self.shared.look(Location::caller())?;
        // A query is answered once, whether the run was replayed or stayed in memory.
        let replaying = state.replaying && CurrentTurn::of_thread().mode != ThreadWork::Query;
        (!replaying && !state.second).then(|| state.running_id())
    }

    /// Returns 64 random bits, the same on every replay. Each unit has its own stream.
    #[track_caller]
    pub fn random_u64(&self) -> u64 {
        self.shared.enter(Location::caller()).map_or(0, |mut state| state.rng().next_u64())
    }

    /// Returns a random number from 0 up to, but not including, 1; the same on every replay.
    #[track_caller]
    pub fn random(&self) -> f64 {
        self.shared.enter(Location::caller()).map_or(0.0, |mut state| state.rng().next_f64())
    }

    /// Returns a random UUID, the same on every replay.
    #[track_caller]
    pub fn uuid(&self) -> OperationId {
        let bits = |mut state: std::sync::MutexGuard<'_, State>| (state.rng().next_u64(), state.rng().next_u64());
        let (high, low) = self.shared.enter(Location::caller()).map_or((0, 0), bits);
        OperationId::from_bits(high, low)
    }

    /// Picks one of `n` branches, from 0; those not picked never start. The policy decides: the deterministic one takes
    /// the first, a random one explores, and its pick is recorded and replayed.
    #[track_caller]
    pub fn choose(&self, n: u32) -> u32 {
        let alive = self.shared.enter(Location::caller()).is_some();
        if alive { self.shared.pick_branch(n) } else { 0 }
    }

    /// Returns whether to take the path that this patch introduced: true for runs that reach it for the first time, and
    /// on replay for those that took it. The answer of the first call holds for the whole run.
    #[track_caller]
    pub fn patched(&self, id: impl Into<Name>) -> bool {
        let site = Location::caller();
        let id = id.into();
        let Some(mut state) = self.shared.enter(site) else { return false };
        let recorded = state.matcher.as_ref().is_some_and(|matcher| matcher.holds_patch(&id));
        let replaying = state.replaying;
        let facts = state.facts_mut();
        if let Some(answer) = facts.patches.get(&id) {
            return *answer;
        }
        let answer = !replaying || recorded || facts.notified.contains(&id);
        facts.patches.insert(id.clone(), answer);
        if answer {
            state.emit(CommandKind::Patch(PatchMarker { id, deprecated: false }), site);
        }
        answer
    }

    /// Declares that the path before this patch is gone from the code. Once no run that took it is left, the call can
    /// be removed too: that shifts no later command.
    #[track_caller]
    pub fn deprecate_patch(&self, id: impl Into<Name>) {
        let site = Location::caller();
        let id = id.into();
        let Some(mut state) = self.shared.enter(site) else { return };
        if state.facts_mut().patches.insert(id.clone(), true).is_none() {
            state.emit(CommandKind::Patch(PatchMarker { id, deprecated: true }), site);
        }
    }

    /// Returns the value of a durable key.
    #[track_caller]
    pub fn get_state(&self, key: impl Into<Name>) -> Option<Payload> {
        let key = key.into();
        self.shared.look(Location::caller())?.facts().store.get(&key).cloned()
    }

    /// Sets a durable key. It is a command: replay checks key and value.
    #[track_caller]
    pub fn set_state(&self, key: impl Into<Name>, value: impl Into<Payload>) {
        let (key, value) = (key.into(), value.into());
        let Some(mut state) = self.shared.enter(Location::caller()) else { return };
        state.facts_mut().store.insert(key.clone(), value.clone());
        state.emit(CommandKind::State(SetState { key, value: Some(value) }), Location::caller());
    }

    /// Clears a durable key.
    #[track_caller]
    pub fn clear_state(&self, key: impl Into<Name>) {
        let key = key.into();
        let Some(mut state) = self.shared.enter(Location::caller()) else { return };
        state.facts_mut().store.remove(&key);
        state.emit(CommandKind::State(SetState { key, value: None }), Location::caller());
    }

    /// Publishes a snapshot that queries can be answered with while the run is not in memory, and after it closed. Not
    /// a command: it is rebuilt by replay and never compared.
    #[track_caller]
    pub fn publish(&self, snapshot: impl Into<Payload>) {
        if let Some(mut state) = self.shared.enter(Location::caller()) {
            state.published = Some(Box::new(snapshot.into()));
        }
    }

    /// Merges search attributes into the run's; `None` removes one. A value that stores cannot hold fails the activation
    /// ([`AttributeValue::check`]).
    #[track_caller]
    pub fn set_attrs(&self, changes: impl IntoIterator<Item = (Name, Option<AttributeValue>)>) {
        let changes: BTreeMap<_, _> = changes.into_iter().collect();
        let bad = changes.iter().find_map(|(name, value)| value.as_ref()?.check(name).err());
        let Some(mut state) = self.shared.enter(Location::caller()) else { return };
        if let Some(bad) = bad {
            drop(state);
            self.refuse(bad.to_string(), Location::caller());
        }
        merge(&mut state.facts_mut().search_attributes, &changes);
        state.emit(CommandKind::SearchAttributes(changes), Location::caller());
    }

    /// Merges entries into the run's memo; `None` removes one.
    #[track_caller]
    pub fn set_memo(&self, changes: impl IntoIterator<Item = (Name, Option<Payload>)>) {
        let changes: BTreeMap<_, _> = changes.into_iter().collect();
        let Some(mut state) = self.shared.enter(Location::caller()) else { return };
        merge(&mut state.facts_mut().memo, &changes);
        state.emit(CommandKind::Memo(changes), Location::caller());
    }

    /// Ends this run and continues as a new one: workflow code must return the failure that this gives, with `Err`.
    #[track_caller]
    pub fn continue_as_new(&self, next: ContinueAsNew) -> Failure {
        if let Some(mut state) = self.shared.enter(Location::caller()) {
            if !state.running_id().is_root() {
                let text = "only the workflow function itself can continue as new".to_owned();
                self.shared.misuse(state, ViolationKind::Misuse(text));
            }
            state.continue_as_new = Some(Box::new(next));
        }
        Failure::new(FailureKind::ContinueAsNew, "the workflow continues as a new run")
    }
}

impl State {
    /// Returns the running unit's own stream of random numbers.
    fn rng(&mut self) -> &mut Rng {
        let seed = self.seed;
        let unit = self.running_unit();
        // Handlers count apart from branches and launched units: `[h0]` and `[p0]` are two units of one run.
        let first = if unit.id.is_handler() { 2 } else { 1 };
        let path =
            unit.id.path().iter().fold(first, |hash, seg| mix(hash ^ u64::from(seg.index()).wrapping_add(1) << 8));
        unit.rng.get_or_insert_with(|| Box::new(Rng::from_seed(derive(seed ^ USER_STREAM, path))))
    }
}

/// The constant that keeps user randomness apart from the seeds of ids and policies.
const USER_STREAM: u64 = 0x7573_6572_5f72_6e67;

fn merge<T: Clone>(into: &mut BTreeMap<Name, T>, changes: &BTreeMap<Name, Option<T>>) {
    for (name, change) in changes {
        match change {
            Some(value) => drop(into.insert(name.clone(), value.clone())),
            None => drop(into.remove(name)),
        }
    }
}
