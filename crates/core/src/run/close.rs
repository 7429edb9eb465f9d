//! Closing: the workflow function ends first, then the handlers that are left, then the run.

use super::Run;
use super::current_turn::{ThreadWork, TurnGuard};
use super::give_up::drop_quietly;
use super::state::{Ending, Life, State, UnfinishedHandlers};
use super::unit::{OnEnd, Unit, UnitKey};
use crate::{CommandKind, CompleteUpdate, Failure, FailureKind, Outcome, Payload, UnitId, Warning};

impl Run {
    /// Ends the workflow function: the units it launched are dropped without a command, handlers may still finish.
    pub(super) fn end_root(&mut self, result: Result<Payload, Failure>) {
        let mut state = self.shared.lock();
        let kind = state.ending_of(result);
        state.ending = Some(Box::new(Ending { kind, site: self.workflow.site(), dropped: Vec::new() }));
        let mut left: Vec<UnitKey> =
            state.units.iter().filter(|(_, unit)| !unit.id.is_handler()).map(|(key, _)| *key).collect();
        if state.goes_on_as_new() {
            left.extend(state.recall_handlers());
        }
        drop(state);
        self.drop_units(&left);
    }

    /// Ends a turn in which no unit is runnable any more: rejects updates that have no handler, and closes the run if
    /// its workflow has returned.
    pub(super) fn at_quiescence(&mut self) {
        let mut state = self.shared.lock();
        state.reject_unhandled();
        if state.ending.is_none() || (state.waits_for_handlers() && !state.units.is_empty()) {
            return;
        }
        let left: Vec<UnitKey> = state.units.keys().copied().collect();
        state.abandon_handlers(&left);
        drop(state);
        self.drop_units(&left);
        let mut state = self.shared.lock();
        let is_new = state.goes_on_as_new();
        let Ending { kind, site, mut dropped } = *state.ending.take().expect("a run that closes has an ending");
        state.emit_for(UnitId::root(), kind, site);
        state.life = Life::Closed;
        dropped.extend(state.open_operations());
        dropped.sort();
        let leftover = state.untaken_signals();
        let left_updates = if is_new { state.untaken_updates() } else { Vec::new() };
        state.leave_behind(leftover, left_updates, dropped);
    }

    fn drop_units(&mut self, keys: &[UnitKey]) {
        let mut state = self.shared.lock();
        let units: Vec<Box<Unit>> = keys.iter().filter_map(|key| state.units.remove(key)).collect();
        let State { aborted, units: left, .. } = &mut *state;
        aborted.retain(|_, key| left.contains_key(key));
        state.running = None;
        drop(state);
        let panicked: Vec<String> = {
            let _hold = TurnGuard::mode(ThreadWork::Teardown);
            units.into_iter().filter_map(drop_quietly).collect()
        };
        let mut state = self.shared.lock();
        panicked.into_iter().for_each(|message| state.warn(Warning::DestructorPanicked { message }));
    }
}

impl State {
    /// Returns whether the workflow function has returned to continue as a new run.
    pub(crate) fn goes_on_as_new(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| matches!(ending.kind, CommandKind::ContinueAsNew(_)))
    }

    pub(crate) fn waits_for_handlers(&self) -> bool {
        self.unfinished_handlers == UnfinishedHandlers::Wait
    }

    fn ending_of(&mut self, result: Result<Payload, Failure>) -> CommandKind {
        if let Some(failure) = self.launched_failure.take() {
            return CommandKind::Fail { failure };
        }
        match result {
            Ok(result) => CommandKind::Complete { result },
            Err(failure) => match self.continue_as_new.take() {
                Some(mut next) if failure.chain().any(|link| link.kind == FailureKind::ContinueAsNew) => {
                    let facts = self.facts();
                    next.memo.get_or_insert_with(|| facts.memo.clone());
                    next.search_attributes.get_or_insert_with(|| facts.search_attributes.clone());
                    CommandKind::ContinueAsNew(next)
                }
                _ if failure.is_cancelled() && self.run_cancelled() => {
                    CommandKind::CancelRun { failure: Box::new(failure) }
                }
                _ => CommandKind::Fail { failure: Box::new(failure) },
            },
        }
    }

    /// Answers the senders of accepted updates whose handlers are abandoned: their updates fail.
    fn abandon_handlers(&mut self, left: &[UnitKey]) {
        if left.is_empty() {
            return;
        }
        let mut handlers: Vec<(UnitId, OnEnd)> = left
            .iter()
            .filter_map(|key| self.units.get(key))
            .map(|unit| (unit.id.clone(), unit.on_end.clone()))
            .collect();
        handlers.sort_by(|a, b| a.0.cmp(&b.0));
        let reason = match self.goes_on_as_new() {
            true => "the workflow continued as new before this update was done; the new run does not know of it",
            false => "the workflow completed before this update did",
        };
        for (unit, on_end) in &handlers {
            if let OnEnd::Handler(end) = on_end
                && let Some(update) = &end.update
            {
                self.answered(update);
                let failure = Failure::application(reason).typed("RunClosed");
                let outcome = Outcome::Failed(Box::new(failure.non_retryable()));
                let answer = CompleteUpdate { update: update.clone(), outcome };
                self.emit_for(unit.clone(), CommandKind::CompleteUpdate(Box::new(answer)), end.site);
            }
        }
        self.warn(Warning::UnfinishedHandlers { units: handlers.into_iter().map(|(unit, _)| unit).collect() });
    }
}
