//! Pauses of calls that wait until a run has an owner.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

use crate::shared::Shared;
use crate::timer::wheel::Due;

/// The end of a pause.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pause(Arc<Notify>);

impl Pause {
    pub(crate) fn end(&self) {
        self.0.notify_one();
    }
}

impl PartialEq for Pause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Waits for so long, or until the engine stops.
pub(crate) async fn pause(shared: &Arc<Shared>, time: Duration) {
    let pause = Pause::default();
    shared.arm_in(time, Due::EndPause(pause.clone()));
    let (mut over, mut halted) = (pin!(pause.0.notified()), pin!(shared.halted.notice()));
    poll_fn(|cx| match over.as_mut().poll(cx).is_ready() || halted.as_mut().poll(cx).is_ready() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}
