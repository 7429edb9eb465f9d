//! Activities on a task queue.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use dacapo_core::{Activity, CancelType, Failure, Name, Payload, Priority, Retry};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recorded::{ResultReader, accepted, encoded_all};
use super::setters::{header_setters, setters};
use crate::interceptor::OutboundKind;
use crate::{ActivityFn, ActivityType, Ctx};

impl<S> Ctx<S> {
    /// Calls an activity: await it for its result. Options can be set until it is first awaited.
    ///
    /// The activity is tried again until it succeeds or its retry policy ends: by default 4 attempts, after pauses of 1, 2 and
    /// 4 seconds, without a timeout. Several arguments are a tuple; a method is `Bank::charge`. Dropping the call cancels
    /// the activity; `.detach()` lets it run on.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let receipt =
    ///     ctx.call(charge, order).retry(Retry::exponential().attempts(5)).start_to_close(secs(10)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn call<F, P>(
        &self,
        activity: F,
        input: <F::Activity as ActivityType>::Input,
    ) -> Call<<F::Activity as ActivityType>::Output>
    where
        F: ActivityFn<P>,
    {
        let _ = activity;
        let input = accepted(self, F::Activity::encode(input, self.converter()), Location::caller());
        self.call_payloads(Name::from_static(F::Activity::NAME), input)
    }

    /// Calls an activity by its name, with JSON. Several arguments are several values.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo::json::json;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let receipt = ctx.call_raw("charge", [json!({ "order": 42 }), json!("EUR")]).start_to_close(secs(10)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn call_raw(&self, activity: impl Into<Name>, input: impl IntoIterator<Item = Value>) -> Call<Value> {
        self.call_payloads(activity.into(), encoded_all(self, input, Location::caller()))
    }

    #[track_caller]
    fn call_payloads<O: DeserializeOwned>(&self, name: Name, input: Vec<Payload>) -> Call<O> {
        let recorded = ResultReader::new(self, "result of activity", name.clone(), Location::caller());
        let headers = self.outbound_headers(OutboundKind::Activity, &name);
        let pending = self.raw.activity_args(name, input);
        let pending = headers.into_iter().fold(pending, |pending, (name, value)| pending.header(name, value));
        Call { pending, recorded }
    }
}

/// An activity on a task queue: await it for its result. Dropping it cancels the activity.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
/// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
/// let charged = ctx
///     .call(charge, order)
///     .retry(Retry::unlimited().max_pause(mins(5)))
///     .start_to_close(secs(30)) // For one attempt.
///     .schedule_to_close(hours(6)) // For all of them.
///     .queue("payments")
///     .await;
/// match charged {
///     Ok(receipt) => println!("{receipt}"),
///     Err(failure) if failure.is_timeout() => println!("the bank did not answer for six hours"),
///     Err(failure) => return Err(failure),
/// }
/// # Ok(()) }
/// ```
#[must_use = "dropping an activity cancels it; await it or call `.detach()`"]
pub struct Call<O> {
    pending: Activity,
    recorded: ResultReader<O>,
}

impl<O> Call<O> {
    setters! {
        /// Sets when failed attempts are tried again.
        retry(retry: Retry);

        /// Limits the time from this call to the end of the last attempt.
        schedule_to_close(timeout: Duration);

        /// Limits the time that an attempt waits in its queue.
        schedule_to_start(timeout: Duration);

        /// Limits the time of one attempt. An attempt that takes longer has failed, and may be tried again.
        start_to_close(timeout: Duration);

        /// Sets the task queue; by default the queue of the run. A program serves the queues that it names.
        queue(queue: impl Into<Name>);

        /// Sets what a cancellation does: whether it is sent to the attempt, and whether the workflow waits for its end.
        cancel_type(cancel: CancelType);

        /// Sets the priority of the task in its queue: those with lower numbers start first.
        priority(priority: Priority);

        /// Sets a line for people, which histories show.
        summary(summary: impl Into<String>);
    }

    /// Limits the time between two [heartbeats](crate::ActivityCtx::heartbeat) of an attempt. An attempt that is silent for
    /// longer has failed, and may be tried again.
    #[track_caller]
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        Self { pending: self.pending.heartbeat(timeout), ..self }
    }

    header_setters! {}

    /// Detaches the activity: it runs on, and the workflow does not await its result.
    pub fn detach(self) {
        self.pending.detach();
    }
}

impl<O: DeserializeOwned> Future for Call<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|outcome| self.recorded.read(outcome))
    }
}
