//! Wakes from outside a run: they are reported when they happen, and not at the run's next message.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use dacapo_core::Ctx;
use dacapo_engine::Options;
use dacapo_testkit::Simulation;

use crate::kit::{Serve, completed, describe, options, signal, stuck};
use crate::log::logged;

#[test]
fn wake_from_outside_is_logged_and_the_run_says_so_at_once() {
    let outside: Arc<Mutex<Option<Waker>>> = Arc::default();
    let kept = outside.clone();
    let serve = options().workflow("waits", move |ctx: Ctx, _| {
        let kept = kept.clone();
        async move {
            let mut signal = std::pin::pin!(ctx.next_signal("go"));
            // A future of another runtime keeps the waker, and wakes it later.
            let signal = poll_fn(|cx| match signal.as_mut().poll(cx) {
                Poll::Ready(signal) => Poll::Ready(signal),
                Poll::Pending => {
                    *kept.lock().unwrap() = Some(cx.waker().clone());
                    Poll::Pending
                }
            });
            Ok(signal.await?.input[0].clone())
        }
    });
    let sim = Simulation::new(Options { double_play: false, ..serve });
    sim.start("waits", "a", "").unwrap();
    sim.settle();
    assert_eq!(describe(&sim, "a").stuck, None);
    let waker = outside.lock().unwrap().take().unwrap();
    let lines = logged(|| {
        waker.wake_by_ref();
        waker.wake_by_ref();
        sim.settle();
    });
    let lines: Vec<&str> = lines.lines().filter(|line| line.contains("outside the run woke this unit")).collect();
    assert_eq!(lines.len(), 1, "it is logged once: {lines:?}");
    let (reason, ..) = stuck(&sim, "a");
    assert!(reason.contains("outside the run woke this unit"), "{reason}");
    // The run is played again from the beginning, and goes on.
    signal(&sim, "a", "go", "on");
    assert_eq!(sim.result("a"), completed("on"));
    assert_eq!(describe(&sim, "a").stuck, None);
}
