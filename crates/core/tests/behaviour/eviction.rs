//! Eviction: futures are dropped and never polled; destructors run against a ctx that does nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dacapo_core::{Activation, Activity, Completion, Ctx, Run, RunOptions};
use dacapo_testkit::{check, expect, workflow};

use crate::kit::*;

/// S0-41, S0-75, S3-8, C-35
#[test]
fn an_eviction_polls_nothing_drops_every_guard_once_and_decides_nothing() {
    let (polls, diary) = (Arc::new(AtomicUsize::new(0)), Diary::default());
    let (counted, notes) = (polls.clone(), diary.clone());
    let run = workflow(move |ctx: Ctx, _| {
        let (polls, diary) = (counted.clone(), notes.clone());
        async move {
            let watched = |name: &'static str| {
                let (ctx, polls, guard) = (ctx.clone(), polls.clone(), Guard(diary.clone(), name));
                async move {
                    let _guard = guard;
                    let mut activity = ctx.activity(name, "");
                    std::future::poll_fn(|cx| {
                        polls.fetch_add(1, Ordering::Relaxed);
                        std::pin::Pin::new(&mut activity).poll(cx)
                    })
                    .await
                }
            };
            let (branch, launched) = (watched("branch"), watched("launched"));
            let handler = watched("handler");
            let handler = Mutex::new(Some(handler));
            ctx.on_signal("s", move |_| {
                let handler = handler.lock().unwrap().take();
                async move {
                    if let Some(handler) = handler {
                        handler.await?;
                    }
                    Ok(())
                }
            });
            drop(ctx.launch(launched));
            ctx.parallel([branch]).await;
            watched("root").await
        }
    });
    let options = RunOptions { pins: root_first(), double_play: false, ..RunOptions::default() };
    let mut run = Run::new(run, options).unwrap();
    let signal = dacapo_core::Job::Signal(Box::new(dacapo_core::Signal { name: "s".into(), ..Default::default() }));
    let begun = run.activate(turn(vec![start_job(), signal]));
    expect![[r#"
        turn 0  [l0] activity launched  [p1] activity branch  [h0] activity handler
    "#]]
    .assert_eq(&shown(&begun));
    let before = polls.load(Ordering::Relaxed);
    assert_eq!(run.activate(Activation::Evict), Completion::Evicted);
    assert_eq!(polls.load(Ordering::Relaxed), before, "nothing was polled");
    let mut dropped = diary.lines();
    dropped.sort();
    assert_eq!(dropped, ["branch", "handler", "launched"], "each guard was dropped once");
    let after = run.inspect();
    assert_eq!((after.units.len(), after.pending.len(), after.runnable.len()), (0, 0, 0));
    drop(run);
    assert_eq!(diary.lines().len(), 3, "and not again");
}

/// C-35
#[test]
fn a_destructor_that_uses_its_ctx_during_eviction_does_nothing() {
    check(
        |ctx: Ctx, _| async move {
            let _calls = CallsWhenDropped(ctx.clone());
            let inside = ctx.clone();
            drop(ctx.launch(async move {
                let _calls = CallsWhenDropped(inside.clone());
                inside.activity("launched", "").await
            }));
            let done = ctx.activity("A", "").await?;
            ctx.set_state("A", done);
            ctx.shield(ctx.next_signal("never")).await?;
            say("never")
        },
        "start
         evict
         resolve A = a
         evict",
        expect![[r#"
            turn 0  [] activity A  [l0] activity launched
            evicted
            turn 1  [] state A = a
            evicted
        "#]],
    );
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a destructor that panics");
    }
}

/// C-35
#[test]
fn destructor_that_panics_during_eviction_affects_no_other_run() {
    check(
        |ctx: Ctx, _| async move {
            let bomb = Bomb;
            let diary = Diary::default();
            let guard = Guard(diary, "dropped all the same");
            ctx.activity("A", "").await?;
            drop(guard);
            std::mem::forget(bomb);
            say("done")
        },
        "start
         evict
         resolve A",
        expect![[r#"
            turn 0  [] activity A
            evicted
            turn 1  [] complete done
        "#]],
    );
}

/// C-35: dropping a run is an eviction.
#[test]
fn dropping_a_run_is_an_eviction() {
    let diary = Diary::default();
    let notes = diary.clone();
    let run = workflow(move |ctx: Ctx, _| {
        let guard = Guard(notes.clone(), "dropped");
        async move {
            let _guard = guard;
            let _calls = CallsWhenDropped(ctx.clone());
            ctx.activity("A", "").await
        }
    });
    let mut run = single(&run);
    run.activate(start());
    drop(run);
    assert_eq!(diary.lines(), ["dropped"]);
}

/// S4-54: a future carried out of its run knows that the run is gone; it neither hangs nor panics.
#[test]
fn a_future_kept_past_its_run_s_eviction_says_so() {
    let kept: Arc<Mutex<Option<Activity>>> = Arc::default();
    let keeper = kept.clone();
    let run = workflow(move |ctx: Ctx, _| {
        *keeper.lock().unwrap() = Some(ctx.activity("A", ""));
        async move {
            ctx.next_signal("never").await?;
            say("never")
        }
    });
    let mut run = single(&run);
    run.activate(start());
    run.activate(Activation::Evict);
    let mut future = kept.lock().unwrap().take().unwrap();
    let polled = std::pin::Pin::new(&mut future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    let std::task::Poll::Ready(Err(failure)) = polled else { panic!("{polled:?}") };
    assert_eq!(failure.to_string(), "the run was evicted from memory");
    assert!(failure.is_cancelled());
}

/// C-35
#[test]
fn an_evicted_run_takes_no_turn_and_a_second_eviction() {
    let mut run = single(&workflow(|_: Ctx, input| async move { Ok(input) }));
    run.activate(Activation::Evict);
    expect![[r#"
        failed: the run was evicted: build it again from its transcript
    "#]]
    .assert_eq(&shown(&run.activate(start())));
    assert_eq!(run.activate(Activation::Evict), Completion::Evicted);
}

/// C-35: wakers kept by foreign channels outlive the run, and waking them then does nothing.
#[test]
fn channel_whose_sender_outlives_the_run_wakes_no_unit() {
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let run = workflow(move |_: Ctx, _| {
        let receiver = receiver.lock().unwrap().take().unwrap();
        async move {
            receiver.await.ok();
            say("never")
        }
    });
    let mut run = single(&run);
    run.activate(start());
    run.activate(Activation::Evict);
    sender.send(()).unwrap_err();
    expect![[r#"
        failed: the run was evicted: build it again from its transcript
    "#]]
    .assert_eq(&shown(&run.activate(start())));
}
