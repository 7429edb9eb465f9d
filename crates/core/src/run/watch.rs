//! Watching a run from another thread while it plays.

use std::sync::Arc;

use super::current_turn::new_token;
use super::shared::Shared;
use crate::{CallSite, UnitId};

/// A handle on a run for whoever looks after it: what it is doing now, and how to stop it. Cheap to clone.
#[derive(Clone)]
pub struct Watch {
    first: Arc<Shared>,
    /// The second instance of a run that is played twice: it is stuck in its own right.
    twin: Option<Arc<Shared>>,
}

impl Watch {
    pub(super) fn new(first: Arc<Shared>, twin: Option<Arc<Shared>>) -> Self {
        Self { first, twin }
    }

    /// The instance that is being played, or the first.
    fn current(&self) -> &Shared {
        self.twin.as_ref().filter(|twin| twin.lock().token != 0).unwrap_or(&self.first)
    }

    /// The turn that is being played, or that comes next.
    pub fn turn(&self) -> u64 {
        self.current().lock().turn
    }

    /// Whether an activation is being played.
    pub fn is_playing(&self) -> bool {
        self.current().lock().token != 0
    }

    /// The unit that has its go.
    pub fn running(&self) -> Option<UnitId> {
        let state = self.current().lock();
        state.running.is_some().then(|| state.running_id())
    }

    /// The last call that workflow code made.
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

    /// Gives up on the turn that is being played: whatever its thread still does is void, and whatever it returns is a
    /// failed activation. The run may at once be built again from its transcript and played elsewhere. False if nothing is
    /// being played.
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
