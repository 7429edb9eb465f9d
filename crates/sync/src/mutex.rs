//! A mutex with a rank, and the condition variable that goes with it.
//!
//! They use those of the standard library, so that this crate has no dependency. `parking_lot` would serve as well: it
//! yields the processor a few times before it sleeps, and no measured workload gains or loses by that beyond the noise.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use crate::{Rank, held};

/// A mutex of a lock class.
pub struct Mutex<T: ?Sized> {
    rank: Rank,
    inner: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// Creates a mutex of this class around a value.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { rank, inner: std::sync::Mutex::new(value) }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock and takes it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        held::take(self.rank);
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner: Some(inner), _held: Held(self.rank) }
    }

    /// Takes the lock if no thread holds it. It never waits, so any order is allowed.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        held::note(self.rank);
        Some(MutexGuard { inner: Some(inner), _held: Held(self.rank) })
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mutex({})", self.rank.name)
    }
}

/// A lock that is held until this is dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    /// None only while a condition variable has it.
    inner: Option<std::sync::MutexGuard<'a, T>>,
    /// Dropped after the lock is released.
    _held: Held,
}

const HELD: &str = "a guard holds its lock but while it waits";

struct Held(Rank);

impl Drop for Held {
    fn drop(&mut self) {
        held::release(self.0);
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect(HELD)
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect(HELD)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A condition variable for a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// Creates a condition variable on which no thread waits.
    pub const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    /// Wakes one thread that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Releases the lock, waits for a wake-up and takes the lock again. May return without a wake-up.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.inner.take().expect(HELD);
        guard.inner = Some(self.0.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits as [`Self::wait`] does, for at most this time. Returns whether the time was over before a wake-up came.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        let inner = guard.inner.take().expect(HELD);
        let (inner, waited) = self.0.wait_timeout(inner, time).unwrap_or_else(PoisonError::into_inner);
        guard.inner = Some(inner);
        waited.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const LOW: Rank = Rank::new(1, "low");
    const HIGH: Rank = Rank::new(2, "high");

    fn panics(f: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it must panic");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[test]
    fn locks_taken_in_rising_order_are_allowed_again_and_again() {
        let (low, high) = (Mutex::new(LOW, 1), Mutex::new(HIGH, 2));
        for _ in 0..3 {
            let (a, b) = (low.lock(), high.lock());
            assert_eq!((*a, *b), (1, 2));
        }
    }

    #[test]
    fn a_lock_taken_below_a_held_one_panics_and_names_both() {
        let (low, high) = (Mutex::new(LOW, ()), Mutex::new(HIGH, ()));
        let message = panics(|| {
            let _high = high.lock();
            let _low = low.lock();
        });
        assert!(message.contains("\"low\" (rank 1)") && message.contains("\"high\" (rank 2)"), "{message}");
        // The failed attempt leaves no trace: the right order works afterwards.
        let (_low, _high) = (low.lock(), high.lock());
    }

    #[test]
    fn two_locks_of_one_class_cannot_be_held_at_once() {
        let (one, other) = (Mutex::new(LOW, ()), Mutex::new(LOW, ()));
        let message = panics(|| {
            let _one = one.lock();
            let _other = other.lock();
        });
        assert!(message.contains("ranks must rise"), "{message}");
    }

    #[test]
    fn a_lock_released_before_another_no_longer_counts() {
        let (low, high) = (Mutex::new(LOW, ()), Mutex::new(HIGH, ()));
        let held = high.lock();
        drop(held);
        drop(low.lock());
    }

    #[test]
    fn try_lock_is_allowed_in_any_order_and_counts_while_it_is_held() {
        let (low, high) = (Mutex::new(LOW, ()), Mutex::new(HIGH, ()));
        let held = high.lock();
        drop(low.try_lock().expect("no thread holds it"));
        drop(held);
        let _low = low.try_lock().expect("no thread holds it");
        let message = panics(|| drop(Mutex::new(LOW, ()).lock()));
        assert!(message.contains("ranks must rise"), "{message}");
    }

    #[test]
    fn a_panic_under_a_lock_leaves_it_usable() {
        let mutex = Mutex::new(LOW, 0);
        panics(|| {
            let mut value = mutex.lock();
            *value = 7;
            panic!("{}", "while it is held".to_owned());
        });
        assert_eq!(*mutex.lock(), 7);
    }
}
