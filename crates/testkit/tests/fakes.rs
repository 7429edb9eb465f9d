//! Fakes: they get the ctx of their attempts, take virtual time, and can be replaced.

use std::sync::Arc;

use dacapo::prelude::*;
use dacapo::{FailureKind, TimeoutKind};
use dacapo_testkit::{Fake, Kit, Sweep};

#[activity]
async fn import(files: u64) -> Result<u64, Failure> {
    panic!("tests import none of {files} files")
}

#[workflow]
async fn with_heartbeats(ctx: Ctx, files: u64) -> Result<u64, Failure> {
    ctx.call(import, files).heartbeat_timeout(mins(1)).await
}

#[workflow]
async fn with_start_to_close(ctx: Ctx, files: u64) -> Result<u64, Failure> {
    ctx.call(import, files).start_to_close(mins(10)).retry(Retry::exponential().attempts(2)).await
}

#[workflow]
async fn local(ctx: Ctx, files: u64) -> Result<u64, Failure> {
    ctx.call_local(import, files).start_to_close(mins(10)).retry(Retry::exponential().attempts(1)).await
}

#[workflow]
async fn impatient(ctx: Ctx, files: u64) -> Result<u64, Failure> {
    match ctx.race(ctx.call(import, files), ctx.sleep(mins(3))).await? {
        First(imported) => Ok(imported),
        Second(()) => Ok(0),
    }
}

#[test]
fn fake_that_sleeps_takes_virtual_time() {
    let mut kit = Kit::new();
    kit.fake_with(import, |ctx, files| async move {
        ctx.sleep(mins(9)).await;
        Ok(files)
    });
    let begun = kit.now();
    assert_eq!(kit.run(with_start_to_close, 1), Ok(1));
    assert_eq!(kit.now().since(begun), mins(9));
}

fn timeout(kind: TimeoutKind) -> FailureKind {
    FailureKind::Timeout(kind)
}

#[test]
fn attempt_that_falls_silent_times_out_and_the_next_one_gets_its_details() {
    let mut kit = Kit::new();
    let imports = kit.fake_with(import, |ctx, files| async move {
        let done = ctx.details::<u64>()?.unwrap_or(0);
        for file in done..files {
            ctx.sleep(secs(40)).await;
            ctx.heartbeat(&(file + 1))?;
            if ctx.info().attempt == 1 && file == 2 {
                ctx.hang::<()>().await;
            }
        }
        Ok(done)
    });
    let begun = kit.now();
    assert_eq!(kit.run(with_heartbeats, 5), Ok(3), "the second attempt goes on after the third file");
    assert_eq!(imports.attempts().iter().map(|attempt| attempt.attempt).collect::<Vec<_>>(), [1, 2]);
    // Three files, the timeout, the pause before the next attempt, and two files more.
    assert_eq!(kit.now().since(begun), secs(3 * 40 + 60 + 1 + 2 * 40));
}

#[test]
fn attempt_that_takes_too_long_times_out() {
    for workflow in [false, true] {
        let mut kit = Kit::new();
        let imports = kit.fake_with(import, |ctx, files| async move {
            ctx.sleep(mins(10)).await;
            Ok(files)
        });
        let begun = kit.now();
        let failure = if workflow { kit.run(local, 1) } else { kit.run(with_start_to_close, 1) }.unwrap_err();
        assert_eq!(failure.cause().unwrap().kind, timeout(TimeoutKind::StartToClose));
        let (attempts, time) = if workflow { (1, mins(10)) } else { (2, mins(20) + secs(1)) };
        assert_eq!((imports.count(), kit.now().since(begun)), (attempts, time));
    }
}

#[workflow]
async fn cancelled_by_its_caller(ctx: Ctx, files: u64) -> Result<u64, Failure> {
    ctx.call(import, files).heartbeat_timeout(mins(5)).cancel_type(CancelType::WaitCompleted).await
}

#[test]
fn fake_sees_its_cancellation_at_its_next_heartbeat_and_cleans_up_on_virtual_time() {
    let mut kit = Kit::new();
    kit.fake_with(import, |ctx, _| async move {
        loop {
            ctx.sleep(mins(1)).await;
            if let Err(cancelled) = ctx.heartbeat(&()) {
                ctx.sleep(secs(30)).await; // Cleaning up takes time.
                return Err(cancelled);
            }
        }
    });
    let begun = kit.now();
    let run = kit.start(cancelled_by_its_caller, 1);
    kit.advance(mins(3) + secs(20));
    kit.cancel(&run, "no longer needed").unwrap();
    assert!(kit.result(&run).unwrap_err().is_cancelled());
    assert_eq!(kit.now().since(begun), mins(4) + secs(30));
}

#[test]
fn fake_can_wait_for_its_cancellation() {
    let mut kit = Kit::new();
    kit.fake_with(import, |ctx, _| async move { Err(ctx.cancelled().await.into()) });
    let run = kit.start(cancelled_by_its_caller, 1);
    kit.advance(mins(1));
    kit.cancel(&run, "no longer needed").unwrap();
    assert!(kit.result(&run).unwrap_err().is_cancelled());
}

#[test]
fn attempt_that_its_workflow_no_longer_wants_is_dropped() {
    let mut kit = Kit::new();
    let running = Arc::new(());
    let held_by_attempts = running.clone();
    kit.fake_with(import, move |ctx, _| {
        let running = held_by_attempts.clone();
        async move {
            let _running = running;
            ctx.hang().await
        }
    });
    let run = kit.start(impatient, 1);
    assert_eq!(Arc::strong_count(&running), 3);
    assert_eq!(kit.result(&run), Ok(0));
    kit.advance(secs(0));
    assert_eq!(Arc::strong_count(&running), 2, "the attempt is gone");
}

#[workflow]
async fn in_parallel(ctx: Ctx, files: u64) -> Result<Vec<u64>, Failure> {
    ctx.try_join((0..files).map(|file| ctx.call(import, file))).await
}

fn slowest_first(kit: &mut Kit) -> Fake<impl dacapo::ActivityType<Input = u64> + use<>> {
    kit.fake_with(import, |ctx, file| async move {
        ctx.sleep(mins(10 - file)).await;
        Ok(file)
    })
}

#[test]
fn fakes_that_sleep_together_end_in_the_order_of_virtual_time() {
    let mut kit = Kit::new();
    slowest_first(&mut kit);
    let begun = kit.now();
    let run = kit.start(in_parallel, 4);
    assert_eq!(kit.result(&run), Ok(vec![0, 1, 2, 3]));
    assert_eq!(kit.now().since(begun), mins(10));
    let turns = kit.turns(&run);
    let results: Vec<&str> = turns.lines().skip(1).map(|line| line.split(" -> ").next().unwrap()).collect();
    let expected = [3, 2, 1, 0].map(|seq| format!("#{seq}"));
    assert!(results.iter().zip(&expected).all(|(turn, seq)| turn.contains(seq)), "{turns}");
}

#[test]
fn fakes_that_sleep_make_the_same_history_in_every_play() {
    let play = || {
        let mut kit = Kit::new();
        slowest_first(&mut kit);
        let run = kit.start(in_parallel, 6);
        kit.result(&run).unwrap();
        kit.history(&run).to_text()
    };
    assert_eq!(play(), play());
}

#[test]
fn fake_that_takes_time_is_attempted_again_wherever_the_process_crashes() {
    let swept = Sweep::new(Kit::new).play(|kit| {
        kit.fake_with(import, |ctx, files| async move {
            ctx.sleep(secs(30)).await;
            ctx.heartbeat(&1)?;
            ctx.sleep(secs(30)).await;
            Ok(files)
        });
        assert_eq!(kit.run(with_heartbeats, 7), Ok(7));
    });
    assert_eq!(swept.crashes, swept.moments);
    assert!(swept.moments > 6, "{swept:?}");
}

#[test]
fn second_fake_of_an_activity_takes_the_place_of_the_first() {
    let mut kit = Kit::new();
    let first = kit.fake(import, |_| Err(Failure::application("the first").non_retryable()));
    let second = kit.fake(import, |_| Ok(2));
    assert_eq!(kit.run(with_heartbeats, 1), Ok(2));
    assert_eq!((first.count(), second.count()), (0, 1));
    // Also between runs, and in the middle of one.
    let third = kit.fake(import, |_| Err("the third".into()));
    let run = kit.start(with_heartbeats, 1);
    kit.fake(import, |_| Ok(4));
    assert_eq!(kit.result(&run), Ok(4));
    assert_eq!((second.count(), third.count()), (1, 1));
}

#[activity]
async fn real(n: u64) -> Result<u64, Failure> {
    Ok(n + 1)
}

#[workflow]
async fn calls_real(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.call(real, n).await
}

#[test]
fn fake_takes_the_place_of_a_served_activity_in_either_order() {
    let mut kit = Kit::new();
    kit.serve(real);
    kit.fake(real, |n| Ok(10 * n));
    assert_eq!(kit.run(calls_real, 4), Ok(40));
    let mut kit = Kit::new();
    kit.fake(real, |n| Ok(10 * n));
    kit.serve(real);
    assert_eq!(kit.run(calls_real, 4), Ok(40));
}
