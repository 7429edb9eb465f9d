//! Who holds the turn: a mark on the thread that plays it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the thread is doing for the run it plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// A unit has its go: it may call its ctx.
    Step,
    /// The executor itself is at work, between steps.
    Kernel,
    /// A closure is being computed for the executor: it may not call its ctx.
    Closure,
    /// A query is being answered: nothing may change.
    Query,
    /// Futures are being dropped because their run or scope is over: calls do nothing.
    Teardown,
}

#[derive(Clone, Copy)]
pub(crate) struct CurrentTurn {
    token: u64,
    pub(crate) mode: Mode,
}

thread_local! {
    static CURRENT_TURN: Cell<CurrentTurn> = const { Cell::new(CurrentTurn { token: 0, mode: Mode::Kernel }) };
}

static NEXT_TOKEN: AtomicU64 = AtomicU64::new(1);

/// A number for one activation of one instance of a run, never used again in this process. A thread whose mark bears
/// another number has no say: it belongs to another run, or to a turn that was given up on.
pub(crate) fn new_token() -> u64 {
    NEXT_TOKEN.fetch_add(1, Ordering::Relaxed)
}

impl CurrentTurn {
    /// What this thread holds now.
    pub(crate) fn of_thread() -> Self {
        CURRENT_TURN.get()
    }

    /// Whether this thread plays the activation with this token.
    pub(crate) const fn plays(self, token: u64) -> bool {
        token != 0 && self.token == token
    }
}

/// Whether this thread plays a turn or answers a query now. For layers above, whose activities must not be run there.
pub fn is_playing() -> bool {
    CurrentTurn::of_thread().token != 0
}

/// Marks the thread for as long as it lives.
pub(crate) struct TurnGuard(CurrentTurn);

impl TurnGuard {
    pub(crate) fn new(token: u64, mode: Mode) -> Self {
        Self(CURRENT_TURN.replace(CurrentTurn { token, mode }))
    }

    /// The same activation in another mode.
    pub(crate) fn mode(mode: Mode) -> Self {
        let holder = CURRENT_TURN.get();
        Self(CURRENT_TURN.replace(CurrentTurn { mode, ..holder }))
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        CURRENT_TURN.set(self.0);
    }
}
