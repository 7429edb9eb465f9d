//! Phases: handlers over one state that are open for a part of the workflow function's life.

use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::branches::UnitGroup;
use super::race::Either;
use super::state_cell::StateCell;
use crate::job::{Signal, Update};
use crate::run::{SignalHandler, UnitFuture, UpdateHandler};
use crate::{Cancelled, Ctx, Failure, Name, Payload, ViolationKind};

impl Ctx {
    /// Builds a phase over this state. It opens when the workflow function itself awaits it; one phase is open at a
    /// time.
    #[track_caller]
    pub fn phase<S: Send + 'static>(&self, state: &StateCell<S>) -> PhaseBuilder<S> {
        PhaseBuilder {
            ctx: self.clone(),
            state: state.clone(),
            signals: Vec::new(),
            updates: Vec::new(),
            until: Arc::new(|_| false),
            timeout: None,
            serial: true,
            site: Location::caller(),
        }
    }
}

/// The result of the synchronous part of a phase's handler.
pub enum Handled {
    /// The handler is done; the payload answers an update.
    Done(Payload),
    /// The handler failed; the failure answers an update, and ends nothing else.
    Failed(Failure),
    /// The handler goes on, as a unit of its own.
    Async(UnitFuture),
}

impl Handled {
    /// Returns [`Handled::Done`] with an empty payload.
    pub fn done() -> Self {
        Self::Done(Payload::empty())
    }

    /// Returns [`Handled::Async`] with this future.
    pub fn with(future: impl Future<Output = Result<Payload, Failure>> + Send + 'static) -> Self {
        Self::Async(Box::pin(future))
    }
}

/// The reason why a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseEnd {
    /// The condition of the phase holds.
    Condition,
    /// The time of the phase is over.
    Timeout,
}

/// The synchronous part of a handler of messages `M`.
type Part<S, M> = Arc<dyn Fn(&mut S, M) -> Handled + Send + Sync>;
type Validator<S> = Arc<dyn Fn(&S, &Update) -> Result<(), Failure> + Send + Sync>;

/// A builder for a phase. Await it to open the phase; it ends on its condition or its timeout, after the handlers that
/// are running then.
#[must_use = "a phase does nothing unless it is awaited"]
pub struct PhaseBuilder<S> {
    ctx: Ctx,
    state: StateCell<S>,
    signals: Vec<(Name, Part<S, Signal>)>,
    updates: Vec<(Name, Validator<S>, Part<S, Update>)>,
    until: Arc<dyn Fn(&S) -> bool + Send + Sync>,
    timeout: Option<Duration>,
    serial: bool,
    site: &'static Location<'static>,
}

impl<S: Send + 'static> PhaseBuilder<S> {
    /// Handles signals of this name while the phase is open.
    pub fn on_signal(
        mut self,
        name: impl Into<Name>,
        handler: impl Fn(&mut S, Signal) -> Handled + Send + Sync + 'static,
    ) -> Self {
        self.signals.push((name.into(), Arc::new(handler)));
        self
    }

    /// Handles updates of this name while the phase is open. The validator only reads.
    pub fn on_update(
        mut self,
        name: impl Into<Name>,
        validator: impl Fn(&S, &Update) -> Result<(), Failure> + Send + Sync + 'static,
        handler: impl Fn(&mut S, Update) -> Handled + Send + Sync + 'static,
    ) -> Self {
        self.updates.push((name.into(), Arc::new(validator), Arc::new(handler)));
        self
    }

    /// Ends the phase once this condition holds.
    pub fn until(mut self, condition: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self {
        self.until = Arc::new(condition);
        self
    }

    /// Ends the phase after this long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Lets handlers run concurrently; by default one ends before the next begins.
    pub fn concurrent(mut self) -> Self {
        self.serial = false;
        self
    }

    async fn play(self) -> Result<PhaseEnd, Cancelled> {
        let ctx = self.ctx.clone();
        let Some(open) = self.open() else { return Err(Cancelled::evicted()) };
        let (state, until) = (self.state.clone(), self.until.clone());
        let condition = ctx.wait_until_at(move || state.read(|state| until(state)), self.site);
        let ended = match self.timeout {
            None => condition.await.map(|()| PhaseEnd::Condition),
            Some(timeout) => match ctx.race(condition, ctx.timer_at(timeout, self.site)).await {
                Ok(Either::First(())) => Ok(PhaseEnd::Condition),
                Ok(Either::Second(())) => Ok(PhaseEnd::Timeout),
                Err(failure) => Err(Cancelled { reason: failure.message }),
            },
        };
        open.finish().await?;
        ended
    }

    fn open(&self) -> Option<OpenPhase> {
        let shared = &self.ctx.shared;
        let mut state = shared.enter(self.site)?;
        let refuse = match state.running_id() {
            unit if !unit.is_root() => Some("only the workflow function itself can open a phase"),
            _ if state.messages().phase.is_some() => Some("a phase is open already; one at a time"),
            _ => None,
        };
        if let Some(text) = refuse {
            shared.misuse(state, ViolationKind::Misuse(text.to_owned()));
        }
        let id = state.open_phase(self.serial);
        for (name, part) in &self.signals {
            let (cell, part, ctx) = (self.state.clone(), part.clone(), self.ctx.clone());
            let start = Arc::new(move |signal| handle(&ctx, &cell, &part, signal));
            let handler = SignalHandler { start, phase: Some(id), site: self.site };
            if let Err(text) = state.handle_signals(name, handler) {
                shared.misuse(state, ViolationKind::Misuse(text));
            }
        }
        for (name, validator, part) in &self.updates {
            let (cell, part, ctx) = (self.state.clone(), part.clone(), self.ctx.clone());
            let start = Arc::new(move |update| handle(&ctx, &cell, &part, update));
            let (cell, validator) = (self.state.clone(), validator.clone());
            let validator: crate::run::ValidatorFn =
                Arc::new(move |update| cell.read(|state| validator(state, update)));
            let handler = UpdateHandler { validator: Some(validator), start, phase: Some(id), site: self.site };
            if let Err(text) = state.handle_updates(name, handler) {
                shared.misuse(state, ViolationKind::Misuse(text));
            }
        }
        drop(state);
        Some(OpenPhase { ctx: self.ctx.clone(), id, site: self.site })
    }
}

/// Handles one message: runs its synchronous part over the state, then, if there is one, its async part as a unit of
/// its own.
fn handle<S: Send + 'static, M: Send + 'static>(
    ctx: &Ctx,
    cell: &StateCell<S>,
    part: &Part<S, M>,
    message: M,
) -> UnitFuture {
    let (ctx, cell, part) = (ctx.clone(), cell.clone(), part.clone());
    Box::pin(async move {
        match cell.update(|state| part(state, message)) {
            Handled::Done(answer) => Ok(answer),
            Handled::Failed(failure) => Err(failure),
            Handled::Async(future) => {
                if let Some(mut state) = ctx.shared.enter_poll() {
                    state.hand_over(future);
                }
                Ok(Payload::empty())
            }
        }
    })
}

impl<S: Send + 'static> IntoFuture for PhaseBuilder<S> {
    type Output = Result<PhaseEnd, Cancelled>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.play())
    }
}

/// An open phase. Dropping it closes the phase.
struct OpenPhase {
    ctx: Ctx,
    id: u64,
    site: &'static Location<'static>,
}

impl OpenPhase {
    /// Stops taking messages, and waits for the handlers that are running.
    async fn finish(self) -> Result<(), Cancelled> {
        let shared = self.ctx.shared.clone();
        let Some(slot) = shared.enter_poll().map(|mut state| state.close_phase(self.id, self.site)) else {
            return Err(Cancelled::evicted());
        };
        let mut group = UnitGroup::of_slot(shared, slot);
        std::future::poll_fn(|cx| group.poll_done(cx)).await
    }
}

impl Drop for OpenPhase {
    fn drop(&mut self) {
        if let Some(mut state) = self.ctx.shared.enter_drop() {
            state.end_phase(self.id);
        }
    }
}
