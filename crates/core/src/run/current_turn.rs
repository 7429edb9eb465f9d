//! The current turn: a mark on the thread that plays it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The work that the thread does for the run it plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadWork {
    /// A unit has its step: it may call its ctx.
    Step,
    /// The executor itself works, between steps.
    Kernel,
    /// The executor runs a closure: the closure may not call its ctx.
    Closure,
    /// The executor answers a query: nothing may change.
    Query,
    /// The executor drops futures because their run or scope is over: calls do nothing.
    Teardown,
}

#[derive(Clone, Copy)]
pub(crate) struct CurrentTurn {
    token: u64,
    pub(crate) mode: ThreadWork,
}

thread_local! {
    static CURRENT_TURN: Cell<CurrentTurn> = const { Cell::new(CurrentTurn { token: 0, mode: ThreadWork::Kernel }) };
}

static NEXT_TOKEN: AtomicU64 = AtomicU64::new(1);

/// Returns a token for one activation of one instance of a run. The process never uses it again. A thread whose mark
/// has another token may not touch the run: it plays another run, or a turn that was abandoned.
pub(crate) fn new_token() -> u64 {
    NEXT_TOKEN.fetch_add(1, Ordering::Relaxed)
}

impl CurrentTurn {
    /// Returns the mark of this thread.
    pub(crate) fn of_thread() -> Self {
        CURRENT_TURN.get()
    }

    /// Returns whether this thread plays the activation with this token.
    pub(crate) const fn plays(self, token: u64) -> bool {
        token != 0 && self.token == token
    }
}

/// Returns whether this thread plays a turn or answers a query now. Layers above must not run activities on such a
/// thread.
pub fn is_playing() -> bool {
    CurrentTurn::of_thread().token != 0
}

/// A guard that marks the thread for as long as the guard lives.
pub(crate) struct TurnGuard(CurrentTurn);

impl TurnGuard {
    pub(crate) fn new(token: u64, mode: ThreadWork) -> Self {
        Self(CURRENT_TURN.replace(CurrentTurn { token, mode }))
    }

    /// Creates a guard for the same activation in another mode.
    pub(crate) fn mode(mode: ThreadWork) -> Self {
        let current = CURRENT_TURN.get();
        Self(CURRENT_TURN.replace(CurrentTurn { mode, ..current }))
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        CURRENT_TURN.set(self.0);
    }
}
