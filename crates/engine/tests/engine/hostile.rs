//! What a hostile reader tried: crowds of timers, cancels, resets and continue-as-news that once lost something.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use dacapo_core::{ContinueAsNew, Ctx, Failure, Order, Payload, Pins, Retry, Timestamp, Update};
use dacapo_engine::{Cache, Options, RunId, UpdateStage, WaitFor};
use dacapo_store::Status;
use dacapo_testkit::Simulation;

use crate::kit::{
    NO_ROWS, Serve, World, completed, describe, options, payload, resolve, rows, secs, signal, signal_of, status, text,
    update_of,
};

/// Sleeps as often as its input says, always until the same moment.
async fn sleeps(ctx: Ctx, many: Payload) -> Result<Payload, Failure> {
    let many: usize = text(&many).parse().expect("a number of timers");
    let sleeps: Vec<_> = (0..many).map(|_| ctx.sleep(secs(5))).collect();
    for sleep in sleeps {
        sleep.await?;
    }
    Ok(payload("awake"))
}

/// Timers were read in pages of 10,000, and a moment with more of them than that was read again and again.
#[test]
fn very_many_timers_of_one_moment_all_fire() {
    for (many, restarts) in [("10050", true), ("20050", false)] {
        let sim = Simulation::new(Options { double_play: false, ..options().workflow("sleeps", sleeps) });
        sim.start("sleeps", "a", many).unwrap();
        sim.settle();
        let sim = if restarts { sim.restart() } else { sim };
        sim.advance(secs(60));
        assert_eq!(sim.result("a"), completed("awake"), "{many} timers");
        assert_eq!(rows(&sim, "a"), NO_ROWS, "{many} timers");
    }
}

/// The cancel found nothing in this process's task queue, and left the task in the store for the worker that serves its queue.
#[test]
fn a_cancelled_activity_of_another_queue_is_not_tried_by_the_next_process() {
    let world = World::default();
    let serving = || {
        let world = world.clone();
        options()
            .workflow("w", |ctx: Ctx, _| async move {
                let work = ctx.activity("work", "x").queue("other");
                ctx.next_signal("go").await?;
                drop(work);
                Ok(payload("done"))
            })
            .activity("work", move |_, input| {
                world.note(text(&input));
                Ok(payload(""))
            })
    };
    let sim = Simulation::new(serving());
    sim.start("w", "a", "").unwrap();
    sim.settle();
    assert_eq!(rows(&sim, "a"), (1, 0, 0), "the task waits in its queue");
    signal(&sim, "a", "go", "");
    assert_eq!(sim.result("a"), completed("done"));
    assert_eq!(rows(&sim, "a"), NO_ROWS);

    let mut both = serving();
    both.queue("other");
    let sim = sim.redeploy(both);
    sim.play_out();
    assert_eq!(world.notes(), [""; 0], "an activity of a closed run was tried");
}

/// The resolution was of the run before, and the run after the reset waited for it for ever.
#[test]
fn a_promise_that_was_resolved_is_known_to_the_run_after_a_reset() {
    let sim = Simulation::new(options().workflow("w", |ctx: Ctx, _| async move {
        let paid = ctx.promise("paid");
        ctx.next_signal("first").await?;
        let paid = paid.await?;
        ctx.next_signal("go").await?;
        Ok(paid)
    }));
    sim.start("w", "a", "").unwrap();
    sim.settle();
    signal(&sim, "a", "first", "");
    sim.settle();
    resolve(&sim, "a", "paid", Ok(payload("42"))).unwrap();
    sim.settle();
    sim.wait(sim.engine().reset(&RunId::of("a"), 2, "again")).unwrap();
    sim.settle();
    signal(&sim, "a", "go", "");
    assert_eq!(sim.result("a"), completed("42"));
}

/// Stuck runs cannot leave memory, and the cache found only them when it looked for one to evict.
#[test]
fn stuck_runs_do_not_keep_others_in_memory() {
    const KEPT: usize = 10;
    const STUCK: usize = 20;
    let serve = options()
        .workflow("bad", |_: Ctx, _| async move { panic!("bad deploy") })
        .workflow("good", |ctx: Ctx, _| async move { Ok(ctx.next_signal("go").await?.input[0].clone()) })
        .cache(Cache::AtMost(KEPT));
    let sim = Simulation::new(Options { double_play: false, ..serve });
    for number in 0..STUCK {
        sim.start("bad", format!("bad-{number}").leak(), "").unwrap();
    }
    sim.settle();
    for number in 0..500 {
        sim.start("good", format!("good-{number}").leak(), "").unwrap();
        sim.settle();
        let in_memory = sim.engine().runs_in_memory();
        assert!(in_memory <= KEPT + STUCK, "{in_memory} runs are in memory after {number} good ones");
    }
    signal(&sim, "good-0", "go", "went");
    sim.settle();
    assert_eq!(status(&sim, "good-0"), Status::Completed);
}

/// The pause was more than a duration or a timestamp holds, and the sum panicked.
#[test]
fn retry_pause_of_the_longest_duration_does_not_overflow() {
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.activity("work", "x")
                .retry(Retry::exponential().first_pause(Duration::MAX).max_pause(Duration::MAX))
                .await
        })
        .activity("work", |_, _| Err(Failure::application("not yet")));
    let sim = Simulation::new(serve);
    sim.start("w", "a", "").unwrap();
    sim.settle();
    let run = describe(&sim, "a");
    assert_eq!((run.status, run.stuck.is_none(), run.pending.len()), (Status::Open, true, 1));
    let pending = &run.pending[0];
    assert_eq!((pending.attempt, pending.next_attempt), (2, Some(Timestamp(u64::MAX))), "it waits for the end of time");
}

/// Keeps what updates put, and goes on as another run at the first signal; the second run tells all at the next one.
async fn keeps(ctx: Ctx, before: Payload) -> Result<Payload, Failure> {
    let list = Arc::new(Mutex::new(vec![text(&before)]));
    let kept = list.clone();
    let put = move |update: Update| {
        let kept = kept.clone();
        async move {
            kept.lock().unwrap().push(text(&update.input[0]));
            Ok(update.input[0].clone())
        }
    };
    ctx.on_update("put", |_| Ok(()), put);
    ctx.next_signal("go").await?;
    let all = list.lock().unwrap().join(",");
    if all.starts_with("second") {
        return Ok(payload(all));
    }
    let input = vec![payload(format!("second({all})"))];
    Err(ctx.continue_as_new(ContinueAsNew { workflow: "keeps".into(), input, ..ContinueAsNew::default() }))
}

/// The run accepted the update in the turn that ended it: it was answered, and the next run knew nothing of it. Whichever
/// comes first, the next run takes it, or knows what it did.
#[test]
fn an_update_beside_a_continue_as_new_reaches_the_next_run() {
    let orders = [(Order::RootFirst, "second(first),U"), (Order::HandlersFirst, "second(first,U)")];
    for ((order, expected), update_first) in
        orders.into_iter().flat_map(|order| [false, true].map(|update_first| (order, update_first)))
    {
        let mut serve = options().workflow("keeps", keeps);
        serve.pins.push(("keeps".into(), Pins { order, ..Pins::default() }));
        let sim = Simulation::new(serve);
        sim.start("keeps", "a", "first").unwrap();
        sim.settle();
        let (engine, to) = (sim.engine(), RunId::of("a"));
        let mut signal_sent = pin!(engine.signal(&to, signal_of("go", ""), None));
        let mut update_sent = pin!(engine.update(&to, update_of("u", "put", "U"), WaitFor::Completed));
        let mut cx = Context::from_waker(Waker::noop());
        if update_first {
            assert!(update_sent.as_mut().poll(&mut cx).is_pending());
        }
        assert!(signal_sent.as_mut().poll(&mut cx).is_pending());
        let answer = sim.wait(update_sent).unwrap();
        assert_eq!(answer, UpdateStage::Completed(Ok(payload("U"))), "update first: {update_first}");
        sim.wait(signal_sent).unwrap();
        sim.settle();
        signal(&sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed(expected), "{order:?}, update first: {update_first}");
    }
}

/// The child's parent was the first run of the chain, and the end of the last one did not concern it.
#[test]
fn children_of_a_run_that_went_on_as_another_are_released_at_the_end_of_the_chain() {
    let serve = options()
        .workflow("parent", |ctx: Ctx, round| async move {
            if text(&round) == "last" {
                ctx.next_signal("end").await?;
                return Ok(payload("done"));
            }
            ctx.child("child", "").workflow_id("child").detach();
            ctx.sleep(secs(1)).await?;
            let (workflow, input) = ("parent".into(), vec![payload("last")]);
            Err(ctx.continue_as_new(ContinueAsNew { workflow, input, ..ContinueAsNew::default() }))
        })
        .workflow("child", |ctx: Ctx, _| async move { Ok(ctx.next_signal("never").await?.input[0].clone()) });
    let sim = Simulation::new(serve);
    sim.start("parent", "a", "first").unwrap();
    sim.advance(secs(10));
    assert_eq!(status(&sim, "child"), Status::Open, "its parent goes on");
    signal(&sim, "a", "end", "");
    assert_eq!(sim.result("a"), completed("done"));
    assert_eq!(status(&sim, "child"), Status::Terminated, "its parent is closed");
}

/// The next turn said that the run goes on, and no longer said that its activity does not.
#[test]
fn activity_without_a_worker_is_still_reported_after_the_next_turn() {
    let sim = Simulation::new(options().workflow("w", |ctx: Ctx, _| async move {
        let missing = ctx.activity("missing", "");
        ctx.next_signal("go").await?;
        missing.await
    }));
    sim.start("w", "a", "").unwrap();
    sim.settle();
    let before = describe(&sim, "a").stuck.expect("it is not served").reason;
    assert!(before.contains("missing"), "{before}");
    signal(&sim, "a", "go", "");
    sim.settle();
    assert_eq!(describe(&sim, "a").turns, 2);
    assert_eq!(describe(&sim, "a").stuck.map(|stuck| stuck.reason), Some(before));
}
