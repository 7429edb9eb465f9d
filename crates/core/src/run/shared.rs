//! What a run's ctxs, futures and wakers share with its executor, and who may touch it when.

use std::panic::{Location, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::panicking;

use super::holder::{Holder, Mode};
use super::state::{Life, State};
use super::unit::UnitKey;
use crate::{ActivationError, Violation, ViolationKind};

/// Told of violations the moment they happen, because the activation they fail may be far off.
pub type Reporter = Arc<dyn Fn(&Violation) + Send + Sync>;

/// The payload with which a failed turn unwinds out of user code. Not a panic: no hook runs, nothing is printed.
pub(crate) struct Stop;

/// One run's state. The lock is never contended by design: only the thread that holds the turn has business here, and
/// no user code ever runs under it.
pub(crate) struct Shared {
    state: Mutex<State>,
    reporter: Option<Reporter>,
}

impl Shared {
    pub(crate) fn new(state: State, reporter: Option<Reporter>) -> Self {
        Self { state: Mutex::new(state), reporter }
    }

    /// For the executor itself.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a call of the ctx. None means that the run is being taken apart and the call does nothing; a caller without
    /// the turn does not return from here.
    pub(crate) fn enter(&self, site: &'static Location<'static>) -> Option<MutexGuard<'_, State>> {
        let mut state = self.admit(Some(site))?;
        state.site = Some(site);
        Some(state)
    }

    /// For a call of the ctx that only reads, which a query may make too; see [`Shared::enter`].
    pub(crate) fn look(&self, site: &'static Location<'static>) -> Option<MutexGuard<'_, State>> {
        let holder = Holder::of_thread();
        let state = self.lock();
        if holder.mode == Mode::Query && holder.plays(state.token) {
            return Some(state);
        }
        drop(state);
        self.enter(site)
    }

    /// For a poll of one of the run's futures; see [`Shared::enter`].
    pub(crate) fn enter_poll(&self) -> Option<MutexGuard<'_, State>> {
        self.admit(None)
    }

    fn admit(&self, site: Option<&'static Location<'static>>) -> Option<MutexGuard<'_, State>> {
        let holder = Holder::of_thread();
        let mut state = self.lock();
        if state.life == Life::Evicted || panicking() {
            return None;
        }
        if !holder.plays(state.token) {
            self.refuse_foreign(state, site);
        }
        match holder.mode {
            Mode::Step => {}
            Mode::Teardown => return None,
            Mode::Closure | Mode::Kernel => {
                state.violate(ViolationKind::ClosureCall, site);
                drop(state);
                resume_unwind(Box::new(Stop));
            }
            Mode::Query => {
                drop(state);
                resume_unwind(Box::new(Stop));
            }
        }
        if let Some(reason) = state.interrupt.take() {
            let (unit, last) = (state.running_id(), state.site());
            state.fail(ActivationError::Interrupted { reason: reason.into(), unit, site: last });
        }
        if state.fault.is_some() {
            drop(state);
            resume_unwind(Box::new(Stop));
        }
        Some(state)
    }

    /// A call without the turn: the activation fails, now or when the next one comes, and the caller's thread panics.
    fn refuse_foreign(&self, mut state: MutexGuard<'_, State>, site: Option<&'static Location<'static>>) -> ! {
        let violation = state.violate(ViolationKind::ForeignCall, site);
        let playing = Holder::of_thread().mode == Mode::Step;
        drop(state);
        self.report(&violation);
        if playing {
            // Another run's turn, or one that was given up on: it ends without noise.
            resume_unwind(Box::new(Stop));
        }
        panic!("{violation}");
    }

    /// For a drop of one of the run's futures. Never unwinds.
    pub(crate) fn enter_drop(&self) -> Option<MutexGuard<'_, State>> {
        let holder = Holder::of_thread();
        let mut state = self.lock();
        if state.life == Life::Evicted {
            return None;
        }
        if !holder.plays(state.token) {
            let violation = state.violate(ViolationKind::ForeignCall, None);
            drop(state);
            self.report(&violation);
            return None;
        }
        (matches!(holder.mode, Mode::Step | Mode::Teardown) && state.fault.is_none()).then_some(state)
    }

    /// Fails the turn because of a call that makes no sense, and unwinds out of the user's code.
    pub(crate) fn misuse(&self, mut state: MutexGuard<'_, State>, kind: ViolationKind) -> ! {
        let site = state.site;
        // What a query does wrong fails the query alone.
        if Holder::of_thread().mode != Mode::Query {
            state.violate(kind, site);
        }
        drop(state);
        resume_unwind(Box::new(Stop));
    }

    /// Fails the turn and unwinds out of the user's code.
    pub(crate) fn stop(&self, mut state: MutexGuard<'_, State>, error: ActivationError) -> ! {
        state.fail(error);
        drop(state);
        resume_unwind(Box::new(Stop));
    }

    fn wake(&self, unit: UnitKey) {
        let holder = Holder::of_thread();
        let mut state = self.lock();
        if state.life == Life::Evicted {
            return;
        }
        if !holder.plays(state.token) {
            let violation = state.foreign_wake(unit);
            drop(state);
            self.report(&violation);
        } else if holder.mode != Mode::Query && !(state.is_rousing() && state.running == Some(unit)) {
            state.make_runnable(unit);
        }
    }

    fn report(&self, violation: &Violation) {
        if let Some(reporter) = &self.reporter {
            reporter(violation);
        }
    }
}

/// The waker of one unit: waking it means "runnable in the next round".
pub(crate) struct UnitWaker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) unit: UnitKey,
}

impl Wake for UnitWaker {
    fn wake(self: Arc<Self>) {
        self.shared.wake(self.unit);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.shared.wake(self.unit);
    }
}
