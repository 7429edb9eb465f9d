//! The ranked locks that this thread holds, in builds with debug assertions.

use std::cell::RefCell;

use crate::Rank;
use crate::violation::VIOLATION;

thread_local! {
    static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
}

/// Checks that a lock of this rank may be taken now, and notes that it is.
#[track_caller]
pub(crate) fn take(rank: Rank) {
    if !cfg!(debug_assertions) {
        return;
    }
    // A thread that ends drops its locals in any order: locks taken then are not checked.
    let _ = HELD.try_with(|held| {
        let highest = held.borrow().iter().copied().max_by_key(|held| held.number);
        if let Some(highest) = highest.filter(|highest| highest.number >= rank.number) {
            assert!(
                std::thread::panicking(),
                "{VIOLATION}lock order: {:?} (rank {}) is taken while {:?} (rank {}) is held; ranks must rise",
                rank.name,
                rank.number,
                highest.name,
                highest.number
            );
        }
    });
    note(rank);
}

/// Notes that a lock of this rank is held.
pub(crate) fn note(rank: Rank) {
    if cfg!(debug_assertions) {
        let _ = HELD.try_with(|held| held.borrow_mut().push(rank));
    }
}

/// Notes that a lock of this rank is released.
pub(crate) fn release(rank: Rank) {
    if !cfg!(debug_assertions) {
        return;
    }
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        if let Some(at) = held.iter().rposition(|held| *held == rank) {
            held.remove(at);
        }
    });
}

/// Returns a lock that this thread holds and under which it must not block, if there is one.
pub(crate) fn not_blocking() -> Option<Rank> {
    HELD.try_with(|held| held.borrow().iter().copied().find(|held| !held.may_block)).ok().flatten()
}
