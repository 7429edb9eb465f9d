//! Activities in the workflow's own process.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use dacapo_core::{CancelType, Failure, LocalActivity, Name, Payload, Retry};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recorded::{Recorded, accepted, encoded};
use crate::interceptor::OutboundKind;
use crate::{ActivityFn, ActivityType, Ctx};

impl<S> Ctx<S> {
    /// Runs an activity in the process that plays the workflow, between this turn and the next: for short work that needs
    /// no queue.
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

    /// [`Ctx::call_local`] for an activity that is only known by its name.
    #[track_caller]
    pub fn call_local_raw(&self, activity: impl Into<Name>, input: Value) -> LocalCall<Value> {
        self.call_local_payloads(activity.into(), vec![encoded(self, &input, Location::caller())])
    }

    #[track_caller]
    fn call_local_payloads<O: DeserializeOwned>(&self, name: Name, input: Vec<Payload>) -> LocalCall<O> {
        let recorded = Recorded::new(self, "result of local activity", name.clone(), Location::caller());
        let headers = self.outbound_headers(OutboundKind::LocalActivity, &name);
        let pending = self.raw.local_activity_args(name, input);
        let pending = headers.into_iter().fold(pending, |pending, (name, value)| pending.header(name, value));
        LocalCall { pending, recorded }
    }
}

/// An activity in the workflow's own process: await it for its result. Dropping it cancels the activity.
#[must_use = "dropping an activity cancels it; await it or call `.detach()`"]
pub struct LocalCall<O> {
    pending: LocalActivity,
    recorded: Recorded<O>,
}

impl<O> LocalCall<O> {
    /// When it is tried again.
    #[track_caller]
    pub fn retry(self, retry: Retry) -> Self {
        Self { pending: self.pending.retry(retry), ..self }
    }

    /// The longest time from now to the end of the last attempt.
    #[track_caller]
    pub fn schedule_to_close(self, timeout: Duration) -> Self {
        Self { pending: self.pending.schedule_to_close(timeout), ..self }
    }

    /// The longest time an attempt may wait for a slot.
    #[track_caller]
    pub fn schedule_to_start(self, timeout: Duration) -> Self {
        Self { pending: self.pending.schedule_to_start(timeout), ..self }
    }

    /// The longest time of one attempt.
    #[track_caller]
    pub fn start_to_close(self, timeout: Duration) -> Self {
        Self { pending: self.pending.start_to_close(timeout), ..self }
    }

    /// Pauses longer than this become a timer of the run.
    #[track_caller]
    pub fn local_retry_threshold(self, threshold: Duration) -> Self {
        Self { pending: self.pending.local_retry_threshold(threshold), ..self }
    }

    /// What a cancellation does.
    #[track_caller]
    pub fn cancel_type(self, cancel: CancelType) -> Self {
        Self { pending: self.pending.cancel_type(cancel), ..self }
    }

    /// Something that travels beside the arguments.
    #[track_caller]
    pub fn header(self, name: impl Into<Name>, value: impl Into<Payload>) -> Self {
        Self { pending: self.pending.header(name, value), ..self }
    }

    /// One line for people.
    #[track_caller]
    pub fn summary(self, summary: impl Into<String>) -> Self {
        Self { pending: self.pending.summary(summary), ..self }
    }

    /// Detaches the activity: it runs on, and the workflow does not await its result. A long pause between two attempts ends it: no turn is left to
    /// schedule the next.
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
