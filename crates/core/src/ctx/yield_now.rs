//! Yielding: the unit goes on in the next round.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::Ctx;

impl Ctx {
    /// Ends the unit's step; it goes on in the next round.
    pub fn yield_now(&self) -> YieldNow {
        YieldNow { yielded: false }
    }
}

/// A future that ends the unit's step.
#[must_use = "yielding does nothing unless it is awaited"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
