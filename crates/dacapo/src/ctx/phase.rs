//! Phases: stretches of a workflow in which handlers over one state are open.

use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::time::Duration;

use dacapo_core::{Cancelled, Failure, PhaseBuilder, PhaseEnd, StateCell};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::ResultReader;
use crate::interceptor::InboundKind;
use crate::{Converter, Ctx, Signal, Update};

impl<S> Ctx<S> {
    /// Handles signals and updates for a stretch of the workflow, a phase: its handlers share a state, until a condition holds for it or
    /// a timeout is over.
    ///
    /// It opens when it is awaited, in the workflow function itself, and only one is open at a time. It ends after the handlers
    /// that run then.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const VOTE: Signal<String> = Signal::new("vote");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let votes = ctx.cell(Vec::new());
    /// let end = ctx
    ///     .phase(&votes)
    ///     .on_signal(VOTE, |votes, name| {
    ///         votes.push(name);
    ///         Handled::Done(())
    ///     })
    ///     .until(|votes| votes.len() == 3)
    ///     .timeout(days(1))
    ///     .await?;
    /// match end {
    ///     PhaseEnd::Condition => println!("all have voted"),
    ///     PhaseEnd::Timeout => println!("time is up"),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn phase<T: Send + 'static>(&self, state: &StateCell<T>) -> Phase<T> {
        Phase { ctx: self.plain(), builder: self.raw.phase(state) }
    }
}

/// The result of the synchronous part of a phase's handler.
pub enum Handled<O = ()> {
    /// The handler is done. The value answers an update.
    Done(O),
    /// The handler failed. The failure answers an update, and ends no other unit.
    Failed(Failure),
    /// The handler goes on as a unit of its own.
    Async(Pin<Box<dyn Future<Output = Result<O, Failure>> + Send>>),
}

impl<O> Handled<O> {
    /// Goes on with this future, as a unit of its own.
    pub fn with(future: impl Future<Output = Result<O, Failure>> + Send + 'static) -> Self {
        Self::Async(Box::pin(future))
    }

    fn encoded(self, converter: &Converter) -> dacapo_core::Handled
    where
        O: Serialize + Send + 'static,
    {
        match self {
            Self::Done(value) => {
                converter.encode(&value).map_or_else(dacapo_core::Handled::Failed, dacapo_core::Handled::Done)
            }
            Self::Failed(failure) => dacapo_core::Handled::Failed(failure),
            Self::Async(future) => {
                let converter = converter.clone();
                dacapo_core::Handled::with(async move { converter.encode(&future.await?) })
            }
        }
    }
}

/// A phase that is not open yet: await it to open it. It ends on its condition or its timeout, after the handlers that run
/// then.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { Ok(()) }
/// const PAY: Update<u64, u64> = Update::new("pay");
///
/// /// Takes payments until the price is reached, for a week at most.
/// #[workflow]
/// async fn collect(ctx: Ctx, price: u64) -> Result<u64, Failure> {
///     let paid = ctx.cell(0);
///     let unit = ctx.clone();
///     ctx.phase(&paid)
///         .on_update(
///             PAY,
///             |_, cents| if *cents > 0 { Ok(()) } else { Err("pay more than nothing".into()) },
///             move |paid, cents| {
///                 *paid += cents;
///                 let (total, ctx) = (*paid, unit.clone());
///                 Handled::with(async move { ctx.call(charge, cents).await.map(|()| total) })
///             },
///         )
///         .until(move |paid| *paid >= price)
///         .timeout(days(7))
///         .await?;
///     Ok(paid.read(|paid| *paid))
/// }
/// ```
#[must_use = "a phase does nothing unless it is awaited"]
pub struct Phase<S> {
    ctx: Ctx,
    builder: PhaseBuilder<S>,
}

impl<S: Send + 'static> Phase<S> {
    /// Handles signals of this name while the phase is open. One that does not decode fails alone.
    pub fn on_signal<T: DeserializeOwned + 'static>(
        self,
        signal: Signal<T>,
        handler: impl Fn(&mut S, T) -> Handled + Send + Sync + 'static,
    ) -> Self {
        let (converter, check) = (self.ctx.converter().clone(), self.ctx.check_message(InboundKind::Signal));
        let builder = self.builder.on_signal(signal, move |state, signal| {
            let value = check(&signal.name, &signal.headers, &signal.input)
                .and_then(|()| converter.decode_message("signal", &signal.name, &signal.input));
            match value {
                Ok(value) => handler(state, value).encoded(&converter),
                Err(failure) => dacapo_core::Handled::Failed(failure),
            }
        });
        Self { builder, ..self }
    }

    /// Handles updates of this name while the phase is open. The validator decides whether one is accepted, and only reads.
    #[track_caller]
    pub fn on_update<I, O>(
        self,
        update: Update<I, O>,
        validator: impl Fn(&S, &I) -> Result<(), Failure> + Send + Sync + 'static,
        handler: impl Fn(&mut S, I) -> Handled<O> + Send + Sync + 'static,
    ) -> Self
    where
        I: DeserializeOwned + 'static,
        O: Serialize + Send + 'static,
    {
        let accepted = ResultReader::<I>::new(&self.ctx, "accepted update", update.into(), Location::caller());
        let (converter, check) = (self.ctx.converter().clone(), self.ctx.check_message(InboundKind::Update));
        let answers = converter.clone();
        let builder = self.builder.on_update(
            update,
            move |state, update| {
                check(&update.name, &update.headers, &update.input)?;
                validator(state, &converter.decode_message("update", &update.name, &update.input)?)
            },
            move |state, update| {
                let input = accepted.value(update.input.first().unwrap_or(&Default::default()));
                handler(state, input).encoded(&answers)
            },
        );
        Self { builder, ..self }
    }

    /// Ends the phase as soon as this condition holds.
    pub fn until(self, condition: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self {
        Self { builder: self.builder.until(condition), ..self }
    }

    /// Ends the phase after this time.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { builder: self.builder.timeout(timeout), ..self }
    }

    /// Lets handlers run concurrently; by default one ends before the next begins.
    pub fn concurrent(self) -> Self {
        Self { builder: self.builder.concurrent(), ..self }
    }
}

impl<S: Send + 'static> IntoFuture for Phase<S> {
    type Output = Result<PhaseEnd, Cancelled>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        self.builder.into_future()
    }
}
