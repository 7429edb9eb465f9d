//! Cancellation scopes: a tree in which a cancellation reaches everything below it, up to a shield.

use std::task::Waker;

use super::state::State;
use crate::Ordinal;
use crate::small_map::SmallMap;

pub(crate) type ScopeId = u32;

/// The scope of the whole run, which a cancel job cancels.
pub(crate) const RUN: ScopeId = 0;
/// The scope of the workflow function and the units it launched, which is cancelled when a launched unit fails.
pub(crate) const EXECUTION: ScopeId = 1;
/// The scope of the handlers, which go on when the workflow function has ended.
pub(crate) const HANDLERS: ScopeId = 2;

pub(crate) struct CancelScope {
    parent: Option<ScopeId>,
    /// Whether this is a shield: cancellations of outer scopes stop here.
    shield: bool,
    /// Whether scopes or units were ever started within it: only then can any of them outlive it.
    is_inhabited: bool,
    cancelled: Option<Box<(Ordinal, String)>>,
}

/// All scopes of a run.
pub(crate) struct CancelScopes(SmallMap<ScopeId, CancelScope>);

impl CancelScopes {
    /// Creates the three scopes that every run has.
    pub(crate) fn of_run() -> Self {
        let below = |parent| CancelScope { parent, shield: false, is_inhabited: true, cancelled: None };
        let mut scopes = SmallMap::with_capacity(3);
        scopes.insert(RUN, below(None));
        scopes.insert(EXECUTION, below(Some(RUN)));
        scopes.insert(HANDLERS, below(Some(RUN)));
        Self(scopes)
    }
}

impl State {
    /// Opens a scope within the one the running unit is in now.
    pub(crate) fn open_scope(&mut self, shield: bool) -> ScopeId {
        let id = self.next_scope;
        self.next_scope += 1;
        let parent = self.scope;
        self.inhabit(parent);
        self.scopes.0.insert(id, CancelScope { parent: Some(parent), shield, is_inhabited: false, cancelled: None });
        id
    }

    /// Records that a unit or a scope is started within this scope.
    pub(crate) fn inhabit(&mut self, id: ScopeId) {
        if let Some(scope) = self.scopes.0.get_mut(&id) {
            scope.is_inhabited = true;
        }
    }

    /// Closes a scope. Scopes and units that outlive it move to the scope around it.
    pub(crate) fn close_scope(&mut self, id: ScopeId) {
        let Some(closed) = self.scopes.0.remove(&id) else { return };
        let around = closed.parent.unwrap_or(RUN);
        if self.scope == id {
            self.scope = around;
        }
        if !closed.is_inhabited {
            return;
        }
        self.scopes
            .0
            .values_mut()
            .filter(|scope| scope.parent == Some(id))
            .for_each(|scope| scope.parent = Some(around));
        self.units.values_mut().filter(|unit| unit.scope == id).for_each(|unit| unit.scope = around);
    }

    /// Returns why and since when waits in this scope fail, if they do. Cancellation is a level, not an edge.
    pub(crate) fn cancellation(&self, scope: ScopeId) -> Option<(Ordinal, String)> {
        let mut earliest: Option<&(Ordinal, String)> = None;
        let mut next = Some(scope);
        // A wait that outlived its scope belongs to the run's.
        while let Some(scope) = next.and_then(|id| self.scopes.0.get(&id).or_else(|| self.scopes.0.get(&RUN))) {
            if let Some(cancelled) = &scope.cancelled
                && earliest.is_none_or(|(at, _)| cancelled.0 < *at)
            {
                earliest = Some(cancelled);
            }
            next = if scope.shield { None } else { scope.parent };
        }
        earliest.cloned()
    }

    /// Cancels a scope. Units with waits in it become runnable; their wakers are woken by the caller, outside the lock.
    pub(crate) fn cancel_scope(&mut self, id: ScopeId, at: Ordinal, reason: String) -> Vec<Waker> {
        match self.scopes.0.get_mut(&id) {
            Some(scope) if scope.cancelled.is_none() => scope.cancelled = Some(Box::new((at, reason))),
            _ => return Vec::new(),
        }
        let reached: Vec<_> = self
            .slots
            .iter()
            .filter(|(_, slot)| {
                slot.owner.is_some() && self.cancellation(slot.scope).is_some_and(|(since, _)| since == at)
            })
            .filter_map(|(_, slot)| Some((slot.owner?, slot.waker.clone())))
            .collect();
        for (owner, _) in &reached {
            self.make_runnable(*owner);
        }
        reached.into_iter().filter_map(|(_, waker)| waker).collect()
    }

    /// Returns whether the whole run was asked to cancel.
    pub(crate) fn run_cancelled(&self) -> bool {
        self.scopes.0.get(&RUN).is_some_and(|scope| scope.cancelled.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::{EXECUTION, HANDLERS, RUN};
    use crate::{Activation, Completion, Ctx, Job, Payload, Run, RunOptions, Start, Timestamp, Turn, Workflow};

    /// A run that lives for long would otherwise keep every scope that it ever had.
    #[test]
    fn scope_is_closed_when_it_has_no_handle_and_no_waiting_unit() {
        let workflow = Workflow::new("w", |ctx: Ctx, _: Vec<Payload>| async move {
            for _ in 0..3 {
                ctx.shield(async {}).await;
                ctx.cancellable(async {}).0.await;
            }
            ctx.next_signal("end").await?;
            Ok(Payload::default())
        });
        let mut run = Run::new(workflow, RunOptions { double_play: false, ..RunOptions::default() }).unwrap();
        let start = Job::Start(Box::new(Start { workflow: "w".into(), ..Start::default() }));
        let seed = Job::Seed { seed: 0 };
        let turn = Turn::new(Timestamp::default(), vec![start, seed]);
        let Completion::Turn(done) = run.activate(Activation::Turn(turn)) else { panic!("it is played") };
        assert_eq!(done.number, Some(0));
        let state = run.shared.lock();
        assert_eq!(state.next_scope, HANDLERS + 1 + 6);
        assert_eq!(state.scopes.0.keys().collect::<Vec<_>>(), [&RUN, &EXECUTION, &HANDLERS]);
    }
}
