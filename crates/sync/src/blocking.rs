//! Code that must not block, and the check for calls that block.

use std::cell::Cell;

use crate::held;
use crate::violation::VIOLATION;

thread_local! {
    static FORBIDDEN: Cell<Option<&'static str>> = const { Cell::new(None) };
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call on a thread of an async runtime that may block, such as one of `spawn_blocking`.
pub fn allow_blocking<R>(call: impl FnOnce() -> R) -> R {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            ALLOWED.set(self.0);
        }
    }
    let _reset = Reset(ALLOWED.replace(true));
    call()
}

/// Returns whether [`allow_blocking`] is on the stack of this thread.
pub fn is_blocking_allowed() -> bool {
    ALLOWED.get()
}

/// A guard: until it is dropped, its thread must not block.
#[must_use]
pub struct Forbidden {
    before: Option<&'static str>,
}

/// Forbids this thread to block from here on, for this reason, until the guard is dropped.
pub fn forbid_blocking(why: &'static str) -> Forbidden {
    let before = if cfg!(debug_assertions) { FORBIDDEN.replace(Some(why)) } else { None };
    Forbidden { before }
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            FORBIDDEN.set(self.before);
        }
    }
}

/// Panics, in builds with debug assertions, if this thread must not block: it runs a commit callback, for instance, or
/// holds a lock that other threads wait for.
#[track_caller]
pub fn assert_may_block(what: &str) {
    if !cfg!(debug_assertions) || std::thread::panicking() {
        return;
    }
    if let Some(why) = FORBIDDEN.get() {
        panic!("{VIOLATION}{what} may block, and this thread must not: {why}");
    }
    if let Some(rank) = held::not_blocking() {
        panic!("{VIOLATION}{what} may block, and this thread must not: it holds the lock {:?}", rank.name());
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::{Mutex, Rank};

    fn panics(f: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it must panic");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[test]
    fn blocking_is_refused_while_it_is_forbidden_and_allowed_after() {
        let outer = forbid_blocking("a commit callback");
        let inner = forbid_blocking("another reason");
        assert!(panics(|| assert_may_block("a read")).contains("another reason"));
        drop(inner);
        assert!(panics(|| assert_may_block("a read")).contains("a commit callback"));
        drop(outer);
        assert_may_block("a read");
    }

    #[test]
    fn blocking_is_refused_under_a_lock_that_others_wait_for() {
        let (short, long) = (Mutex::new(Rank::new(2, "a run"), ()), Mutex::new(Rank::blocking(1, "the writer"), ()));
        let _long = long.lock();
        assert_may_block("a commit");
        let _short = short.lock();
        assert!(panics(|| assert_may_block("a read")).contains("\"a run\""));
    }
}
