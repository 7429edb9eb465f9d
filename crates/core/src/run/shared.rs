//! The state that a run's ctxs, futures and wakers share with its executor, and the rules of access to it.

use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::Wake;
use std::thread::panicking;

use super::conditions::CellId;
use super::current_turn::{CurrentTurn, ThreadWork, TurnGuard};
use super::give_up::last_words;
use super::slot::SlotId;
use super::state::{Life, State};
use super::unit::UnitKey;
use crate::lock::Lock;
use crate::policy::RunScheduler;
use crate::{ActivationError, PolicyError, Violation, ViolationKind};

/// A callback that is called with violations the moment they happen, because the activation they fail may come much
/// later.
pub type Reporter = Arc<dyn Fn(&Violation) + Send + Sync>;

/// The payload with which a failed turn unwinds out of user code. Not a panic: no hook runs, nothing is printed.
pub(crate) struct Stop;

/// One run's state. The lock is never contended by design: only the thread that holds the turn uses the state, and no
/// user code ever runs under the lock.
pub(crate) struct Shared {
    state: Lock<State>,
    /// The number of the next state cell.
    next_cell: AtomicU64,
    reporter: Option<Reporter>,
}

impl Shared {
    pub(crate) fn new(state: State, reporter: Option<Reporter>) -> Self {
        Self { state: Lock::new(state), next_cell: AtomicU64::new(0), reporter }
    }

    /// Returns a number for a new state cell.
    pub(crate) fn next_cell(&self) -> CellId {
        self.next_cell.fetch_add(1, Ordering::Relaxed)
    }

    /// Locks the state for the executor itself.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Locks the state for a call of the ctx. `None` means that the run is being torn down and the call does nothing; a
    /// caller without the turn does not return from here.
    pub(crate) fn enter(&self, site: &'static Location<'static>) -> Option<MutexGuard<'_, State>> {
        let mut state = self.admit(Some(site))?;
        state.site = Some(site);
        Some(state)
    }

    /// Locks the state for a call of the ctx that only reads, which a query may make too; see [`Shared::enter`].
    pub(crate) fn look(&self, site: &'static Location<'static>) -> Option<MutexGuard<'_, State>> {
        let current = CurrentTurn::of_thread();
        let state = self.lock();
        if current.mode == ThreadWork::Query && current.plays(state.token) {
            return Some(state);
        }
        drop(state);
        self.enter(site)
    }

    /// Locks the state for a poll of one of the run's futures; see [`Shared::enter`].
    pub(crate) fn enter_poll(&self) -> Option<MutexGuard<'_, State>> {
        self.admit(None)
    }

    fn admit(&self, site: Option<&'static Location<'static>>) -> Option<MutexGuard<'_, State>> {
        let current = CurrentTurn::of_thread();
        let mut state = self.lock();
        if state.life == Life::Evicted || panicking() {
            return None;
        }
        if !current.plays(state.token) {
            self.refuse_foreign(state, site);
        }
        match current.mode {
            ThreadWork::Step => {}
            ThreadWork::Teardown => return None,
            ThreadWork::Closure | ThreadWork::Kernel => {
                state.violate(ViolationKind::ClosureCall, site);
                drop(state);
                resume_unwind(Box::new(Stop));
            }
            ThreadWork::Query => {
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

    /// Refuses a call without the turn: the activation fails, now or when the next one comes, and the caller's thread
    /// panics.
    fn refuse_foreign(&self, mut state: MutexGuard<'_, State>, site: Option<&'static Location<'static>>) -> ! {
        let violation = state.violate(ViolationKind::ForeignCall, site);
        let playing = CurrentTurn::of_thread().mode == ThreadWork::Step;
        drop(state);
        self.report(&violation);
        if playing {
            // The thread plays another run's turn, or one that was abandoned: it unwinds without calling the panic
            // hook.
            resume_unwind(Box::new(Stop));
        }
        panic!("{violation}");
    }

    /// Locks the state for a drop of one of the run's futures. Never unwinds.
    pub(crate) fn enter_drop(&self) -> Option<MutexGuard<'_, State>> {
        let current = CurrentTurn::of_thread();
        let mut state = self.lock();
        if state.life == Life::Evicted {
            return None;
        }
        if !current.plays(state.token) {
            let violation = state.violate(ViolationKind::ForeignCall, None);
            drop(state);
            self.report(&violation);
            return None;
        }
        let may = match current.mode {
            ThreadWork::Step | ThreadWork::Teardown => true,
            // A closure over a state cell runs within its unit's step, and may replace what the cell holds.
            ThreadWork::Closure if state.running.is_some() => true,
            ThreadWork::Closure | ThreadWork::Kernel | ThreadWork::Query => {
                state.violate(ViolationKind::ClosureCall, None);
                false
            }
        };
        (may && state.fault.is_none()).then_some(state)
    }

    /// Ends the wait of a future that is dropped. Its waker may be the user's, so it is dropped outside the lock.
    pub(crate) fn leave(&self, slot: SlotId) {
        let waker = self.enter_drop().and_then(|mut state| state.leave(slot, String::new()));
        drop(waker);
    }

    /// Fails the turn because of a call that is not allowed, and unwinds out of the user's code.
    pub(crate) fn misuse(&self, mut state: MutexGuard<'_, State>, kind: ViolationKind) -> ! {
        let site = state.site;
        // A mistake of a query fails the query alone.
        if CurrentTurn::of_thread().mode != ThreadWork::Query {
            state.violate(kind, site);
        }
        drop(state);
        resume_unwind(Box::new(Stop));
    }

    /// Fails the turn because this code cannot read a recorded or delivered value, and unwinds out of the user's code.
    /// In a query it fails the query alone.
    pub(crate) fn refuse(&self, message: String, site: &'static Location<'static>) -> ! {
        let current = CurrentTurn::of_thread();
        let state = self.lock();
        if current.mode == ThreadWork::Query {
            drop(state);
            resume_unwind(Box::new(message));
        }
        if !current.plays(state.token) {
            self.refuse_foreign(state, Some(site));
        }
        let unit = state.running_id();
        let recorded = state.matcher.as_ref().map(|matcher| Box::new(matcher.recorded_turn(state.turn)));
        self.stop(state, ActivationError::Refused { message, recorded, unit, site: site.into() })
    }

    /// Fails the turn and unwinds out of the user's code.
    pub(crate) fn stop(&self, mut state: MutexGuard<'_, State>, error: ActivationError) -> ! {
        state.fail(error);
        drop(state);
        resume_unwind(Box::new(Stop));
    }

    /// Asks the scheduler. Its policy may be the user's own code, so it is asked outside the lock.
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&mut RunScheduler) -> Result<T, PolicyError>,
    ) -> Result<T, PolicyError> {
        let mut scheduler = std::mem::replace(&mut self.lock().scheduler, RunScheduler::deterministic());
        let answer = {
            let _hold = TurnGuard::mode(ThreadWork::Closure);
            catch_unwind(AssertUnwindSafe(|| question(&mut scheduler)))
        };
        self.lock().scheduler = scheduler;
        answer.unwrap_or_else(|payload| {
            Err(PolicyError::Refused { reason: format!("it panicked: {}", last_words(payload)) })
        })
    }

    /// Takes one of `n` equals for the running unit.
    pub(crate) fn pick_branch(&self, n: u32) -> u32 {
        match self.ask(|scheduler| scheduler.pick_branch(n)) {
            Ok(branch) => branch,
            Err(error) => self.stop(self.lock(), ActivationError::Policy(error)),
        }
    }

    fn wake(&self, unit: UnitKey) {
        let current = CurrentTurn::of_thread();
        let mut state = self.lock();
        if state.life == Life::Evicted {
            return;
        }
        // A query must change nothing, and neither must a closure that the executor runs between steps.
        let may_not_wake = match current.mode {
            ThreadWork::Query => true,
            ThreadWork::Closure => state.running.is_none(),
            ThreadWork::Step | ThreadWork::Kernel | ThreadWork::Teardown => false,
        };
        if !current.plays(state.token) || may_not_wake {
            let violation = state.foreign_wake(unit);
            drop(state);
            self.report(&violation);
        } else if !(state.is_waking_peeked() && state.running == Some(unit)) {
            state.make_runnable(unit);
        }
    }

    /// Reports a violation. The reporter is user code, and this may be a destructor: a panic of the reporter is caught
    /// here.
    fn report(&self, violation: &Violation) {
        if let Some(reporter) = &self.reporter
            && let Err(payload) = catch_unwind(AssertUnwindSafe(|| reporter(violation)))
        {
            last_words(payload);
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
