//! Pauses of calls that wait until a run has an owner.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::shared::Shared;
use crate::timer::wheel::{Due, Pause};

/// Waits for so long, or until the engine stops.
pub(crate) async fn pause(shared: &Arc<Shared>, time: Duration) {
    let pause = Pause::default();
    shared.arm_in(time, Due::EndPause(pause.clone()));
    let (mut over, mut halted) = (pin!(pause.ended()), pin!(shared.halted.notice()));
    poll_fn(|cx| match over.as_mut().poll(cx).is_ready() || halted.as_mut().poll(cx).is_ready() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}
