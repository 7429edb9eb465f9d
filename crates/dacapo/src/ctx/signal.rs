//! Waiting for signals.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use dacapo_core::{Failure, Name};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::interceptor::{InboundKind, check_message};
use crate::{Ctx, Layers, Signal};

impl<S> Ctx<S> {
    /// Waits for the next signal of this name, and returns its value.
    ///
    /// Signals are kept until they are taken, in the order in which they were acknowledged, so one that came before the wait
    /// is there at once. A signal that has a handler cannot be waited for. A signal that does not decode is taken, and ends
    /// the wait with a failure of type [`crate::json::BAD_INPUT`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let name = ctx.next_signal(APPROVE).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn next_signal<T: DeserializeOwned>(&self, signal: Signal<T>) -> SignalWait<T> {
        SignalWait {
            pending: self.raw.next_signal(signal),
            raw: self.raw.clone(),
            layers: self.layers.clone(),
            value: PhantomData,
        }
    }

    /// Waits for the next signal of this name, as JSON. See [`Ctx::next_signal`].
    #[track_caller]
    pub fn next_signal_raw(&self, signal: impl Into<Name>) -> SignalWait<Value> {
        SignalWait {
            pending: self.raw.next_signal(signal),
            raw: self.raw.clone(),
            layers: self.layers.clone(),
            value: PhantomData,
        }
    }

    /// Takes the next signal of this name if one has come, and does not wait.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const ADD: Signal<u64> = Signal::new("add");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// while let Some(n) = ctx.try_signal(ADD)? {
    ///     println!("{n}");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_signal<T: DeserializeOwned>(&self, signal: Signal<T>) -> Result<Option<T>, Failure> {
        self.taken(signal.into())
    }

    #[track_caller]
    fn taken<T: DeserializeOwned>(&self, name: Name) -> Result<Option<T>, Failure> {
        let Some(signal) = self.raw.try_signal(name) else { return Ok(None) };
        received(&self.layers, &self.raw, &signal).map(Some)
    }

    /// Takes the next signal of this name if one has come, as JSON. See [`Ctx::try_signal`].
    #[track_caller]
    pub fn try_signal_raw(&self, signal: impl Into<Name>) -> Result<Option<Value>, Failure> {
        self.taken(signal.into())
    }
}

/// A wait for a signal. A signal that came for a wait which was dropped goes to the next wait.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct SignalWait<T> {
    pending: dacapo_core::SignalWait,
    raw: dacapo_core::Ctx,
    layers: Layers,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Future for SignalWait<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let signal = ready!(Pin::new(&mut self.pending).poll(cx))?;
        Poll::Ready(received(&self.layers, &self.raw, &signal))
    }
}

/// Shows a signal that is taken to the interceptors of the app, and decodes its value.
fn received<T: DeserializeOwned>(
    layers: &Layers,
    ctx: &dacapo_core::Ctx,
    signal: &dacapo_core::Signal,
) -> Result<T, Failure> {
    if !layers.interceptors.is_empty() {
        let run = ctx.info().unwrap_or_default().start;
        check_message(layers, &run, InboundKind::Signal, &signal.name, &signal.headers, &signal.input)?;
    }
    layers.converter.decode_message("signal", &signal.name, &signal.input)
}
