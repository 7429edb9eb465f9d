//! Activities in the workflow's own process.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use dacapo_core::{CancelType, Failure, LocalActivity, Name, Payload, Retry};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recorded::{ResultReader, accepted, encoded_all};
use super::setters::{header_setters, setters};
use crate::interceptor::OutboundKind;
use crate::{ActivityFn, ActivityType, Ctx};

impl<S> Ctx<S> {
    /// Calls a short activity that runs in the process of this workflow, without a task queue: await it for its result.
    ///
    /// It costs no write of its own: its result is recorded by the turn that takes it. If the process dies before, the activity runs
    /// again.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let receipt = ctx.call_local(charge, order).start_to_close(secs(2)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn call_local<F, P>(
        &self,
        activity: F,
        input: <F::Activity as ActivityType>::Input,
    ) -> LocalCall<<F::Activity as ActivityType>::Output>
    where
        F: ActivityFn<P>,
    {
        let _ = activity;
        let input = accepted(self, F::Activity::encode(input, self.converter()), Location::caller());
        self.call_local_payloads(Name::from_static(F::Activity::NAME), input)
    }

    /// Runs a local activity by its name, with JSON. Several arguments are several values. See [`Ctx::call_local`].
    #[track_caller]
    pub fn call_local_raw(
        &self,
        activity: impl Into<Name>,
        input: impl IntoIterator<Item = Value>,
    ) -> LocalCall<Value> {
        self.call_local_payloads(activity.into(), encoded_all(self, input, Location::caller()))
    }

    #[track_caller]
    fn call_local_payloads<O: DeserializeOwned>(&self, name: Name, input: Vec<Payload>) -> LocalCall<O> {
        let recorded = ResultReader::new(self, "result of local activity", name.clone(), Location::caller());
        let headers = self.outbound_headers(OutboundKind::LocalActivity, &name);
        let pending = self.raw.local_activity_args(name, input);
        let pending = headers.into_iter().fold(pending, |pending, (name, value)| pending.header(name, value));
        LocalCall { pending, recorded }
    }
}

/// An activity in the workflow's own process: await it for its result. Dropping it cancels the activity.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[activity] async fn look_up(city: String) -> Result<u32, Failure> { Ok(0) }
/// # async fn example(ctx: Ctx, city: String) -> Result<(), Failure> {
/// let code = ctx.call_local(look_up, city).retry(Retry::exponential().attempts(3)).start_to_close(secs(1)).await?;
/// # Ok(()) }
/// ```
#[must_use = "dropping an activity cancels it; await it or call `.detach()`"]
pub struct LocalCall<O> {
    pending: LocalActivity,
    recorded: ResultReader<O>,
}

impl<O> LocalCall<O> {
    setters! {
        /// Sets when failed attempts are tried again.
        retry(retry: Retry);

        /// Limits the time from this call to the end of the last attempt.
        schedule_to_close(timeout: Duration);

        /// Limits the time that an attempt waits for a free place.
        schedule_to_start(timeout: Duration);

        /// Limits the time of one attempt.
        start_to_close(timeout: Duration);

        /// Sets from which length on a pause between two attempts becomes a timer of the run, which survives a restart.
        local_retry_threshold(threshold: Duration);

        /// Sets what a cancellation does: whether it is sent to the attempt, and whether the workflow waits for its end.
        cancel_type(cancel: CancelType);

        /// Sets a line for people, which histories show.
        summary(summary: impl Into<String>);
    }

    header_setters! {}

    /// Detaches the activity: it runs on, and the workflow does not await its result. A long pause between two attempts ends
    /// it, because no turn schedules the next one.
    pub fn detach(self) {
        self.pending.detach();
    }
}

impl<O: DeserializeOwned> Future for LocalCall<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|outcome| self.recorded.read(outcome))
    }
}
