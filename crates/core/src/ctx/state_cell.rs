//! State cells: values that several units of a run share.

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crate::run::{Hold, Holder, Mode, Shared};
use crate::{Ctx, ViolationKind};

impl Ctx {
    /// A value that units and handlers of this run share. It is rebuilt by replay like everything else in memory.
    pub fn state<S: Send + 'static>(&self, value: S) -> StateCell<S> {
        StateCell { shared: self.shared.clone(), value: Arc::new(Mutex::new(value)) }
    }
}

/// A value shared by units of one run. Closures over it run at once and only compute: they may not call the ctx.
pub struct StateCell<S> {
    shared: Arc<Shared>,
    value: Arc<Mutex<S>>,
}

impl<S> Clone for StateCell<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), value: self.value.clone() }
    }
}

impl<S> StateCell<S> {
    /// Changes the value.
    #[track_caller]
    pub fn update<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let alive = self.shared.enter(Location::caller()).is_some();
        let mut value = self.enter();
        let _hold = alive.then(|| Hold::mode(Mode::Closure));
        change(&mut value)
    }

    /// Looks at the value. Conditions, validators and queries may do this too.
    #[track_caller]
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        let holder = Holder::of_thread();
        let computes = matches!(holder.mode, Mode::Closure | Mode::Query) && holder.plays(self.shared.lock().token);
        let step = !computes && self.shared.enter(Location::caller()).is_some();
        let value = self.enter();
        let _hold = step.then(|| Hold::mode(Mode::Closure));
        look(&value)
    }

    fn enter(&self) -> MutexGuard<'_, S> {
        match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.shared.misuse(self.shared.lock(), ViolationKind::CellReentered),
        }
    }
}
