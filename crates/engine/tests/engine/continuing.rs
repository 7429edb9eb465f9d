//! Continuing as new: what the next run of a chain inherits.

use std::pin::pin;
use std::task::{Context, Waker};

use dacapo_client::Error;
use dacapo_core::{ContinueAsNew, Ctx, Failure, Order, Payload, Pins};
use dacapo_engine::{NewStart, Options, RunId, UpdateStage, WaitFor};
use dacapo_store::{Filter, Status};
use dacapo_testkit::Simulation;

use crate::kit::{
    Serve, completed, describe, failed, options, over_every_cache, over_every_cache_and_restart, payload, secs, signal,
    signal_of, since_start, text, turns, turns_of, update_of,
};

/// Takes one signal for each run, and says what it found.
async fn takes_one(ctx: Ctx, seen: Payload) -> Result<Payload, Failure> {
    let seen = text(&seen);
    let signal = ctx.next_signal("item").await?;
    let seen = format!("{seen}{} ", signal.input[0]);
    if seen.split_whitespace().count() == 3 {
        let info = ctx.info().unwrap();
        return Ok(payload(format!("{seen}{:?} {:?}", info.memo, info.search_attributes)));
    }
    ctx.set_memo([("seen".into(), Some(payload(seen.trim().replace(' ', "+"))))]);
    ctx.set_attrs([("kind".into(), Some("odd".into()))]);
    Err(ctx.continue_as_new(ContinueAsNew { input: vec![payload(seen)], ..ContinueAsNew::default() }))
}

fn serving() -> Options {
    options().workflow("takes one", takes_one)
}

/// C-31
#[test]
fn signals_that_were_not_taken_go_on_with_the_next_run_in_order() {
    over_every_cache_and_restart(serving, |sim| {
        let first = sim.start("takes one", "a", "").unwrap();
        for item in ["x", "y", "z"] {
            let signal = crate::kit::signal_of("item", item);
            sim.wait(sim.engine().signal(&RunId::of("a"), signal, None)).unwrap();
        }
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("x y z {\"seen\": x+y} {\"kind\": Keyword(\"odd\")}"));
        assert_eq!(sim.engine().reader().count(&Filter::default()), Ok(3));
        let last = describe(&sim, "a");
        assert_eq!(last.first_run_id, first.run_id);
        assert_eq!(last.memo.get("seen"), Some(&payload("x+y")));
        let of_first = RunId { workflow_id: "a".into(), run_id: Some(first.run_id) };
        assert_eq!(sim.engine().describe(&of_first).unwrap().status, Status::ContinuedAsNew);
        assert!(turns_of(&sim, &of_first).ends_with("continue as new takes one\n"), "{}", turns_of(&sim, &of_first));
        (sim, vec!["a"])
    });
}

#[test]
fn the_next_run_may_be_another_workflow_with_other_memo_and_a_delay() {
    let serve = || {
        options()
            .workflow("first", |ctx: Ctx, _| async move {
                Err(ctx.continue_as_new(ContinueAsNew {
                    workflow: "second".into(),
                    input: vec!["in".into()],
                    memo: Some([("new".into(), "memo".into())].into()),
                    start_delay: Some(secs(30)),
                    ..ContinueAsNew::default()
                }))
            })
            .workflow("second", |ctx: Ctx, input| async move {
                Ok(payload(format!("{input} {:?}", ctx.info().unwrap().memo)))
            })
    };
    over_every_cache_and_restart(serve, |sim| {
        let memo = [("old".into(), "memo".into())].into();
        let new = NewStart { workflow: "first".into(), workflow_id: "a".into(), memo, ..NewStart::default() };
        sim.wait(sim.engine().start(new)).unwrap();
        sim.settle();
        assert_eq!(describe(&sim, "a").turns, 0);
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("in {\"new\": memo}"));
        assert_eq!(turns(&sim, "a"), "0 at 30s: start second -> complete in {\"new\": memo}\n");
        (sim, vec!["a"])
    });
}

#[test]
fn the_execution_timeout_is_that_of_the_chain_and_the_run_timeout_that_of_each_run() {
    let serve = || {
        options().workflow("again", |ctx: Ctx, _| async move {
            ctx.sleep(secs(40)).await?;
            Err(ctx.continue_as_new(ContinueAsNew::default()))
        })
    };
    over_every_cache(serve, |sim| {
        let new = NewStart {
            workflow: "again".into(),
            workflow_id: "a".into(),
            run_timeout: Some(secs(50)),
            execution_timeout: Some(secs(100)),
            ..NewStart::default()
        };
        sim.wait(sim.engine().start(new)).unwrap();
        let said = "it took longer than its execution timeout".to_owned();
        assert_eq!(failed(sim, "a"), (Status::TimedOut, said));
        assert_eq!(since_start(describe(sim, "a").closed.unwrap()), secs(100));
        assert_eq!(sim.engine().reader().count(&Filter::default()), Ok(3));
        assert_eq!(sim.store().next_due().unwrap(), None);
        vec!["a"]
    });
}

#[test]
fn a_parent_awaits_the_last_run_of_its_child_s_chain() {
    let serve = || {
        serving().workflow("asks", |ctx: Ctx, _| async move { ctx.child("takes one", "").workflow_id("child").await })
    };
    over_every_cache_and_restart(serve, |sim| {
        sim.start("asks", "a", "").unwrap();
        sim.settle();
        signal(&sim, "child", "item", "x");
        sim.settle();
        let sim = sim.restart();
        for item in ["y", "z"] {
            sim.settle();
            signal(&sim, "child", "item", item);
        }
        assert_eq!(sim.result("a"), completed("x y z {\"seen\": x+y} {\"kind\": Keyword(\"odd\")}"));
        (sim, vec!["a", "child"])
    });
}

/// The first run hands its update on; the second refuses what is bad, and answers the rest when it is told to.
async fn hands_on(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    let first = text(&input).is_empty();
    let valid = move |update: &dacapo_core::Update| match !first && update.input[0].as_text() == Some("bad") {
        true => Err(Failure::application("it is bad")),
        false => Ok(()),
    };
    let inner = ctx.clone();
    ctx.on_update("put", valid, move |update| {
        let ctx = inner.clone();
        async move {
            ctx.next_signal("answer").await?;
            Ok(update.input[0].clone())
        }
    });
    ctx.next_signal("go").await?;
    match first {
        true => Err(ctx.continue_as_new(ContinueAsNew { input: vec!["second".into()], ..ContinueAsNew::default() })),
        false => Ok("ended".into()),
    }
}

/// A caller that sent it again, because its connection was lost, was told that the run is closed, or that the update is accepted
/// when it was not.
#[test]
fn an_update_that_was_handed_on_and_is_sent_again_waits_for_the_run_that_has_it() {
    let serve = || {
        let mut options = options().workflow("hands on", hands_on);
        options.pins.push(("hands on".into(), Pins { order: Order::RootFirst, ..Pins::default() }));
        options
    };
    over_every_cache_and_restart(serve, |sim| {
        let send = |sim: &Simulation, id, value, wait| {
            sim.try_wait(sim.engine().update(&RunId::of("a"), update_of(id, "put", value), wait))
        };
        sim.start("hands on", "a", "").unwrap();
        sim.settle();
        let (engine, to) = (sim.engine().clone(), RunId::of("a"));
        let put = |id, value| engine.update(&to, update_of(id, "put", value), WaitFor::Completed);
        let mut go = pin!(engine.signal(&to, signal_of("go", ""), None));
        let (mut good, mut bad) = (pin!(put("u-1", "good")), pin!(put("u-2", "bad")));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(go.as_mut().poll(&mut cx).is_pending());
        assert!(good.as_mut().poll(&mut cx).is_pending() && bad.as_mut().poll(&mut cx).is_pending());
        sim.settle();
        assert_eq!(sim.engine().reader().count(&Filter::default()), Ok(2), "it went on with both");
        let sim = sim.restart();
        assert_eq!(send(&sim, "u-1", "good", WaitFor::Completed), None, "it is not answered yet");
        assert_eq!(send(&sim, "u-1", "good", WaitFor::Accepted), Some(Ok(UpdateStage::Accepted)));
        let refused = send(&sim, "u-2", "bad", WaitFor::Accepted);
        assert!(matches!(refused, Some(Err(Error::UpdateRejected(_)))), "{refused:?}");
        signal(&sim, "a", "answer", "");
        let answered = Some(Ok(UpdateStage::Completed(Ok("good".into()))));
        assert_eq!(send(&sim, "u-1", "good", WaitFor::Completed), answered);
        signal(&sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed("ended"));
        assert_eq!(send(&sim, "u-1", "good", WaitFor::Completed), answered, "also when all of them are closed");
        (sim, vec!["a"])
    });
}

/// With the seed of the run before it would draw the same numbers, and use the same idempotency keys.
#[test]
fn next_run_of_a_chain_draws_other_random_numbers() {
    let serve = || {
        options().workflow("draws", |ctx: Ctx, drawn: Payload| async move {
            let drawn = format!("{} {}", text(&drawn), ctx.random_u64());
            match drawn.split_whitespace().count() {
                3 => Ok(payload(drawn)),
                _ => {
                    Err(ctx.continue_as_new(ContinueAsNew { input: vec![payload(drawn)], ..ContinueAsNew::default() }))
                }
            }
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("draws", "a", "").unwrap();
        let drawn = text(&sim.result("a").1.unwrap());
        let distinct: std::collections::BTreeSet<&str> = drawn.split_whitespace().collect();
        assert_eq!(distinct.len(), 3, "{drawn}");
        vec![]
    });
}
