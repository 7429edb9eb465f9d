//! Timers.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::operation::PendingOp;
use crate::command::{Operation, StartTimer};
use crate::{Cancelled, CommandKind, Ctx, DurationText, Name};

impl Ctx {
    /// Sleeps, for milliseconds or for months.
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Timer {
        self.timer_at(duration, Location::caller())
    }

    pub(crate) fn timer_at(&self, duration: Duration, site: &'static Location<'static>) -> Timer {
        let name = Name::from(DurationText(duration).to_string());
        let op = self.schedule(Operation::Timer, name, site, |seq, _| {
            CommandKind::Timer(Box::new(StartTimer { seq, duration, summary: None }))
        });
        Timer { op }
    }
}

/// A timer: await it to sleep. Dropping it cancels the timer.
#[must_use = "dropping a timer cancels it; await it or call `.detach()`"]
pub struct Timer {
    op: PendingOp,
}

impl Timer {
    /// Sets a one-line description for people.
    #[track_caller]
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.op.set(Location::caller(), |command| match command {
            CommandKind::Timer(timer) => timer.summary = Some(summary.into()),
            _ => unreachable!("the command of a timer"),
        });
        self
    }

    /// Detaches the timer: it runs on, and its end is ignored.
    pub fn detach(self) {
        self.op.detach();
    }
}

impl Future for Timer {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_value(cx).map(|result| result.map(drop))
    }
}
