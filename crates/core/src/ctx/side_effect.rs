//! Side effects: closures of the workflow itself, which run once and are recorded.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::operation::PendingOp;
use crate::command::{Operation, ScheduleSideEffect};
use crate::options::{Retry, Timeouts};
use crate::{CommandKind, Ctx, Failure, Name, Payload};

impl Ctx {
    /// Runs a closure outside the workflow and records its result, with the commit that takes it; replay never runs the
    /// closure again. If the process dies before that commit, the closure may run twice.
    ///
    /// The closure gets no ctx, and its name, together with its place in the program, is its identity.
    #[track_caller]
    pub fn side_effect<F, P>(&self, name: impl Into<Name>, body: F) -> SideEffect
    where
        F: FnOnce() -> P + Send + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let name = name.into();
        let op = self.schedule(Operation::SideEffect, name.clone(), Location::caller(), |seq, id| {
            let (retry, timeouts, summary) = (None, Timeouts::default(), None);
            CommandKind::SideEffect(Box::new(ScheduleSideEffect { seq, id, name, retry, timeouts, summary }))
        });
        if let (Some(seq), Some(mut state)) = (op.seq(), self.shared.enter_poll()) {
            state.closures_mut().closures.insert(seq, Box::new(move || Box::pin(body())));
        }
        SideEffect { op }
    }
}

/// A side effect: await it for its result. Dropping it cancels it.
#[must_use = "dropping a side effect cancels it; await it"]
pub struct SideEffect {
    op: PendingOp,
}

impl SideEffect {
    #[track_caller]
    fn change(mut self, change: impl FnOnce(&mut ScheduleSideEffect)) -> Self {
        self.op.set(Location::caller(), |command| match command {
            CommandKind::SideEffect(run) => change(run),
            _ => unreachable!("the command of a side effect"),
        });
        self
    }

    /// Sets the retry policy.
    #[track_caller]
    pub fn retry(self, retry: Retry) -> Self {
        self.change(|run| run.retry = Some(retry))
    }

    /// Sets the longest time of one attempt.
    #[track_caller]
    pub fn start_to_close(self, timeout: Duration) -> Self {
        self.change(|run| run.timeouts.start_to_close = Some(timeout))
    }

    /// Sets a one-line description for people.
    #[track_caller]
    pub fn summary(self, summary: impl Into<String>) -> Self {
        self.change(|run| run.summary = Some(summary.into()))
    }
}

impl Future for SideEffect {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_outcome(cx)
    }
}
