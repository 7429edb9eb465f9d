//! The core's mutex. It wraps std's, because the core's dependencies are fixed, and ignores poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mutex that stays usable after the thread that held it has panicked: the core keeps its own state valid between
/// statements, and a panic of user code fails the turn that changed the user's state.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock and takes it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock unless it is held.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn lock_whose_holder_panicked_can_be_taken_again() {
        let lock = Lock::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic!("while the lock is held");
        }));
        assert!(panicked.is_err());
        assert_eq!(lock.try_lock().map(|value| *value), Some(1));
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    fn try_lock_does_not_wait_for_a_lock_that_is_held() {
        let lock = Lock::new(());
        let _held = lock.lock();
        assert!(lock.try_lock().is_none());
    }
}
