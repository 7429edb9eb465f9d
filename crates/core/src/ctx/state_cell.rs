//! State cells: values that several units of a run share.

use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{Arc, MutexGuard};

use crate::lock::Lock;
use crate::run::{CellId, CurrentTurn, Shared, ThreadWork, TurnGuard};
use crate::{Ctx, ViolationKind};

impl Ctx {
    /// Creates a value that units and handlers of this run share. Replay rebuilds it like everything else in memory.
    pub fn state<S: Send + 'static>(&self, value: S) -> StateCell<S> {
        StateCell { shared: self.shared.clone(), id: self.shared.next_cell(), value: Arc::new(Lock::new(value)) }
    }
}

/// A value shared by units of one run. Closures over it run at once and only compute: they may not call the ctx.
pub struct StateCell<S> {
    shared: Arc<Shared>,
    id: CellId,
    value: Arc<Lock<S>>,
}

impl<S> Clone for StateCell<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), id: self.id, value: self.value.clone() }
    }
}

impl<S> StateCell<S> {
    /// Changes the value.
    #[track_caller]
    pub fn update<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let alive = self.shared.enter(Location::caller()).is_some();
        let mut value = self.enter();
        self.shared.lock().change_cell(self.id);
        let _hold = alive.then(|| TurnGuard::mode(ThreadWork::Closure));
        change(&mut value)
    }

    /// Reads the value. Conditions, validators and queries may do this too.
    #[track_caller]
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        let step = !self.is_computed() && self.shared.enter(Location::caller()).is_some();
        let value = self.enter();
        let _hold = step.then(|| TurnGuard::mode(ThreadWork::Closure));
        look(&value)
    }

    /// Enters the cell for as long as the guard lives. The guard is not `Send`, so it cannot be held over an await.
    /// Conditions, validators and queries may enter it too, to read.
    #[track_caller]
    pub fn lock(&self) -> StateGuard<'_, S> {
        let (only_looks, site) = (self.is_computed(), Location::caller());
        if !only_looks {
            drop(self.shared.enter(site));
        }
        StateGuard { cell: self, value: self.enter(), only_looks, is_changed: false, site }
    }

    /// Returns whether the caller is a closure of this run, which may only read. If it is a condition, it depends on
    /// this cell.
    fn is_computed(&self) -> bool {
        let current = CurrentTurn::of_thread();
        if !matches!(current.mode, ThreadWork::Closure | ThreadWork::Query) {
            return false;
        }
        let mut state = self.shared.lock();
        let computes = current.plays(state.token);
        if computes {
            state.read_cell(self.id);
        }
        computes
    }

    fn enter(&self) -> MutexGuard<'_, S> {
        match self.value.try_lock() {
            Some(value) => value,
            None => self.shared.misuse(self.shared.lock(), ViolationKind::CellReentered),
        }
    }
}

/// A guard of a state cell that is entered: the value, to read and to change.
#[must_use = "the cell is left when its guard is dropped"]
pub struct StateGuard<'c, S> {
    cell: &'c StateCell<S>,
    value: MutexGuard<'c, S>,
    only_looks: bool,
    /// Whether the run knows that the value may have changed.
    is_changed: bool,
    site: &'static Location<'static>,
}

impl<S> Deref for StateGuard<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.value
    }
}

impl<S> DerefMut for StateGuard<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        if self.only_looks {
            let text = "a condition, validator or query changed a state cell; such closures only look".to_owned();
            self.cell.shared.refuse(text, self.site);
        }
        if !std::mem::replace(&mut self.is_changed, true) {
            self.cell.shared.lock().change_cell(self.cell.id);
        }
        &mut self.value
    }
}
