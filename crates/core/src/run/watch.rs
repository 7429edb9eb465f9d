//! Watching a run from another thread while it plays.

use std::sync::Arc;

use super::current_turn::new_token;
use super::shared::Shared;
use crate::{CallSite, UnitId};

/// A handle that shows what a run is doing now, and that can stop it. Cheap to clone.
#[derive(Clone)]
pub struct Watch {
    first: Arc<Shared>,
    /// The second instance of a run that is played twice: it may hang although the first did not.
    twin: Option<Arc<Shared>>,
}

impl Watch {
    pub(super) fn new(first: Arc<Shared>, twin: Option<Arc<Shared>>) -> Self {
        Self { first, twin }
    }

    /// Returns the instance that is being played, or the first.
    fn current(&self) -> &Shared {
        self.twin.as_ref().filter(|twin| twin.lock().token != 0).unwrap_or(&self.first)
    }

    /// Returns the number of the turn that is being played, or that comes next.
    pub fn turn(&self) -> u64 {
        self.current().lock().turn
    }

    /// Returns whether an activation is being played.
    pub fn is_playing(&self) -> bool {
        self.current().lock().token != 0
    }

    /// Returns the unit that is running.
    pub fn running(&self) -> Option<UnitId> {
        let state = self.current().lock();
        state.running.is_some().then(|| state.running_id())
    }

    /// Returns the call site of the last call that workflow code made.
    pub fn site(&self) -> Option<CallSite> {
        self.current().lock().site()
    }

    /// Stops the turn that is being played at its next call of the ctx, its next poll, or the end of its round. The
    /// activation fails. Code that does none of these cannot be stopped, only abandoned.
    pub fn interrupt(&self, reason: impl Into<String>) {
        let mut state = self.current().lock();
        if state.token != 0 {
            state.interrupt = Some(reason.into().into_boxed_str());
        }
    }

    /// Abandons the turn that is being played: what its thread still does is void, and its completion is a failed
    /// activation. The run may at once be built again from its transcript and played elsewhere. Returns false if
    /// nothing is being played.
    pub fn abandon(&self) -> bool {
        let mut state = self.current().lock();
        let plays = state.token != 0;
        if plays {
            state.abandoned = true;
            state.token = new_token();
        }
        plays
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (turn, running, site) = (self.turn(), self.running(), self.site());
        f.debug_struct("Watch").field("turn", &turn).field("running", &running).field("site", &site).finish()
    }
}
