//! Panics of the guards in this crate, which no code may ignore.

use std::any::Any;

/// The prefix of the message of such a panic.
pub(crate) const VIOLATION: &str = "lock rule broken: ";

/// Ends the process if a caught panic came from a guard of this crate: code that survives other panics would hide it
/// from every test. Release builds have no guards.
pub fn abort_on_violation(panic: &(dyn Any + Send)) {
    if is_violation(panic) {
        eprintln!("a rule of the locks is broken (see the panic above): the process ends here");
        std::process::abort();
    }
}

fn is_violation(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|message| message.starts_with(VIOLATION))
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::{Mutex, assert_may_block, forbid_blocking, ranks};

    fn caught(code: fn()) -> bool {
        is_violation(&*catch_unwind(code).expect_err("it panics"))
    }

    #[test]
    fn panics_of_the_guards_are_told_from_others() {
        assert!(caught(|| {
            let _forbidden = forbid_blocking("a test");
            assert_may_block("a read");
        }));
        assert!(caught(|| {
            let (low, high) = (Mutex::new(ranks::RUN, ()), Mutex::new(ranks::TIMERS, ()));
            let _held = high.lock();
            let _ = low.lock();
        }));
        assert!(!caught(|| panic!("another")));
    }
}
