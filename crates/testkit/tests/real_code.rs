//! Real activities in a kit: they run in real time, on the kit's runtime, while virtual time stands still.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dacapo::prelude::*;
use dacapo::{ActivityCall, CodeFuture, Interceptor, Next};
use dacapo_testkit::{Kit, Sweep};
use futures::channel::oneshot;

#[activity]
async fn greet(name: String) -> Result<String, Failure> {
    // sleep: a timer that needs a runtime is what this test is about.
    tokio::time::sleep(millis(1)).await;
    Ok(format!("hello {name}"))
}

/// Needs a runtime on its thread, as blocking clients of async libraries do.
#[activity]
fn shout(ctx: ActivityCtx, name: String) -> Result<String, Failure> {
    ctx.heartbeat(&1)?;
    let greeting = tokio::runtime::Handle::current().block_on(async {
        // sleep: a timer that needs a runtime is what this test is about.
        tokio::time::sleep(millis(1)).await;
        format!("HELLO {name}")
    });
    Ok(greeting)
}

#[workflow]
async fn greeting(ctx: Ctx, name: String) -> Result<String, Failure> {
    ctx.sleep(days(1)).await?;
    let side = ctx.side_effect("look around", || async {
        // sleep: a timer that needs a runtime is what this test is about.
        tokio::time::sleep(millis(1)).await;
        Ok(1)
    });
    let here = ctx.call_local(greet, name.clone()).await?;
    let loud = ctx.call(shout, name).start_to_close(millis(1)).await?;
    Ok(format!("{here}, {loud}, {}", side.await?))
}

fn greeted(kit: &mut Kit) {
    kit.serve((greet, shout));
    let begun = kit.now();
    assert_eq!(kit.run(greeting, "ada".into()), Ok("hello ada, HELLO ada, 1".into()));
    assert_eq!(kit.now().since(begun), days(1), "virtual time stands still while real code runs");
}

#[test]
fn real_async_and_blocking_activities_run_in_a_kit() {
    greeted(&mut Kit::new());
}

/// The kit does everything on the test's thread and may block it.
#[tokio::test]
async fn real_activities_run_in_a_kit_on_a_thread_of_an_async_runtime() {
    greeted(&mut Kit::new());
}

#[test]
fn real_activities_are_attempted_again_wherever_the_process_crashes() {
    let swept = Sweep::new(Kit::new).play(|kit| {
        kit.serve((greet, shout));
        assert_eq!(kit.run(greeting, "ada".into()), Ok("hello ada, HELLO ada, 1".into()));
    });
    assert_eq!(swept.crashes, swept.moments);
}

/// The side effect has the name of the activity.
#[workflow]
async fn looks_and_greets(ctx: Ctx) -> Result<String, Failure> {
    let waited = ctx.side_effect("greet", || async {
        // sleep: a timer that needs a runtime is what this test is about.
        tokio::time::sleep(millis(1)).await;
        Ok("looked".to_owned())
    });
    ctx.call(greet, waited.await?).await
}

#[test]
fn side_effect_with_the_name_of_a_faked_activity_runs_in_real_time() {
    let mut kit = Kit::new();
    kit.fake(greet, |name| Ok(format!("faked {name}")));
    let begun = kit.now();
    assert_eq!(kit.run(looks_and_greets, ()), Ok("faked looked".into()));
    assert_eq!(kit.now(), begun);
}

/// Waits for something real before every attempt.
struct Waits;

impl Interceptor for Waits {
    fn activity(&self, call: ActivityCall, next: Next<ActivityCall, CodeFuture>) -> CodeFuture {
        Box::pin(async move {
            // sleep: a timer that needs a runtime is what this test is about.
            tokio::time::sleep(millis(1)).await;
            next.run(call).await
        })
    }
}

#[workflow]
async fn greets(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(greet, "ada".into()).await
}

#[test]
fn fake_behind_an_interceptor_that_takes_real_time_takes_virtual_time() {
    let mut kit = Kit::new().intercept(Waits);
    kit.fake_with(greet, |ctx, name| async move {
        ctx.sleep(days(2)).await;
        Ok(name)
    });
    let begun = kit.now();
    assert_eq!(kit.run(greets, ()), Ok("ada".into()));
    assert_eq!(kit.now().since(begun), days(2));
}

/// The kit does everything on the test's thread and may block it.
#[tokio::test]
async fn kit_plays_and_describes_a_run_on_a_thread_of_an_async_runtime() {
    let mut kit = Kit::new();
    let faked = kit.fake(greet, |name| Ok(format!("hello {name}")));
    kit.fake(shout, Ok);
    let started = kit.start(greeting, "ada".into());
    assert!(!kit.is_closed(&started));
    assert_eq!(kit.result(&started), Ok("hello ada, ada, 1".into()));
    assert!(kit.is_closed(&started));
    assert_eq!(faked.count(), 1);
    assert_eq!(kit.histories().len(), 1);
    kit.restart();
    assert!(kit.turns(&started).contains("greet"));
}

/// Channels of tokio have a budget in each task of a runtime; the kit's polls must not use up that of the test.
#[activity]
async fn relay(messages: u64) -> Result<u64, Failure> {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    (0..messages).for_each(|n| sender.send(n).expect("the receiver is here"));
    drop(sender);
    let mut sum = 0;
    while let Some(n) = receiver.recv().await {
        sum += n;
    }
    Ok(sum)
}

#[workflow]
async fn relays(ctx: Ctx, messages: u64) -> Result<u64, Failure> {
    ctx.call(relay, messages).await
}

#[tokio::test]
async fn real_activity_does_not_use_up_the_budget_of_the_test_task() {
    let mut kit = Kit::new();
    kit.serve(relay);
    assert_eq!(kit.run(relays, 1_000), Ok(499_500));
}

/// Each call waits for a thread that ends in an order of its own.
struct Stamper {
    turn: AtomicU64,
}

#[activities]
impl Stamper {
    #[activity]
    async fn stamp(self: Arc<Self>, n: u64) -> Result<u64, Failure> {
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            // Threads that start later end earlier, as far as the scheduler allows.
            (0..1_000 * (10 - n)).for_each(|_| std::hint::spin_loop());
            let _ = sender.send(());
        });
        receiver.await.or_fail()?;
        Ok(self.turn.fetch_add(1, Ordering::Relaxed))
    }
}

#[workflow]
async fn stamps(ctx: Ctx) -> Result<Vec<u64>, Failure> {
    ctx.try_join((0..5).map(|n| ctx.call(Stamper::stamp, n))).await
}

#[test]
fn real_activities_go_on_one_after_the_other_in_the_order_of_their_start() {
    let mut kit = Kit::new();
    kit.serve(Stamper { turn: AtomicU64::new(0) });
    assert_eq!(kit.run(stamps, ()), Ok(vec![0, 1, 2, 3, 4]));
}

#[activity]
async fn hangs() -> Result<(), Failure> {
    std::future::pending().await
}

#[activity]
fn blocks(ctx: ActivityCtx) -> Result<(), Failure> {
    while ctx.cancellation().is_none() {
        std::thread::park_timeout(millis(10));
    }
    Ok(())
}

#[workflow]
async fn waits_for_hangs(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(hangs, ()).start_to_close(secs(1)).await
}

#[workflow]
async fn waits_for_blocks(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(blocks, ()).start_to_close(secs(1)).await
}

fn message(test: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).expect_err("the test must fail");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn real_activity_that_exceeds_the_limit_fails_the_test_and_says_what_to_write() {
    let limited = || Kit::new().real_time_limit(millis(20));
    let hanging = message(|| {
        let mut kit = limited();
        kit.serve(hangs);
        let _ = kit.run(waits_for_hangs, ());
    });
    let blocking = message(|| {
        let mut kit = limited();
        kit.serve(blocks);
        let _ = kit.run(waits_for_blocks, ());
    });
    for (text, name) in [(hanging, "hangs"), (blocking, "blocks")] {
        assert!(
            text.starts_with(&format!("{name:?} of run \"test-1\" has not ended after 20ms of real time")),
            "{text}"
        );
        assert!(text.contains("`kit.fake_with`"), "{text}");
    }
}
