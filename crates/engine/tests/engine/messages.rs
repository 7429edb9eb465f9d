//! Messages: signals, updates, queries, promises.

use std::sync::{Arc, Mutex};

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure, Payload};
use dacapo_engine::{Options, RunId, UpdateStage, WaitFor};
use dacapo_store::Status;
use dacapo_testkit::{Simulation, expect};

use crate::kit::{
    NO_ROWS, Serve, completed, describe, options, over_every_cache, over_every_cache_and_restart, payload, query,
    resolve, rows, secs, signal, signal_of, text, turns, update,
};

async fn takes_three(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    ctx.sleep(secs(10)).await?;
    let mut seen = Vec::new();
    for name in ["b", "a", "a"] {
        let signal = ctx.next_signal(name).await?;
        seen.push(text(&signal.input[0]));
    }
    Ok(payload(seen.join(" ")))
}

/// C-31 T-24
#[test]
fn signals_of_one_name_are_taken_in_the_order_they_came() {
    over_every_cache_and_restart(
        || options().workflow("takes", takes_three),
        |sim| {
            sim.start("takes", "x", "").unwrap();
            for (name, value) in [("a", "1"), ("a", "2")] {
                signal(&sim, "x", name, value);
            }
            let sim = sim.restart();
            sim.advance(secs(60));
            assert_eq!(describe(&sim, "x").status, Status::Open);
            signal(&sim, "x", "b", "0");
            assert_eq!(sim.result("x"), completed("0 1 2"));
            let closed = Error::Closed { workflow_id: "x".into(), status: Status::Completed };
            let late = sim.wait(sim.engine().signal(&RunId::of("x"), signal_of("a", "late"), None));
            assert_eq!(late, Err(closed));
            (sim, vec!["x"])
        },
    );
}

#[test]
fn signal_sent_twice_with_one_request_id_is_delivered_once() {
    over_every_cache_and_restart(
        || options().workflow("takes", takes_three),
        |sim| {
            sim.start("takes", "x", "").unwrap();
            let send = |sim: &Simulation, value: &str, request: &'static str| {
                let signal = signal_of("a", value);
                sim.wait(sim.engine().signal(&RunId::of("x"), signal, Some(request.into())))
            };
            assert_eq!(send(&sim, "1", "r-1"), Ok(()));
            sim.settle();
            let sim = sim.restart();
            assert_eq!(send(&sim, "1 again", "r-1"), Ok(()));
            assert_eq!(send(&sim, "2", "r-2"), Ok(()));
            signal(&sim, "x", "b", "0");
            assert_eq!(sim.result("x"), completed("0 1 2"));
            (sim, vec!["x"])
        },
    );
}

/// A message that comes while the last turn is being decided is part of it, or of a turn before it.
#[test]
fn run_closes_only_when_it_has_seen_all_its_messages_however_few_a_turn_takes() {
    let serve = || {
        let mut options = options().workflow("takes", |ctx: Ctx, _| async move {
            let signal = ctx.next_signal("a").await?;
            Ok(signal.input[0].clone())
        });
        options.completions_per_turn = 1;
        options
    };
    over_every_cache(serve, |sim| {
        sim.start("takes", "x", "").unwrap();
        let engine = sim.engine().clone();
        let mut sends: Vec<_> = ["1", "2", "3"]
            .into_iter()
            .map(|value| {
                let engine = engine.clone();
                Box::pin(async move { engine.signal(&RunId::of("x"), signal_of("a", value), None).await })
            })
            .collect();
        for send in &mut sends {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(send.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(sim.result("x"), completed("1"));
        assert_eq!(rows(sim, "x"), NO_ROWS);
        for send in sends {
            assert_eq!(sim.wait(send), Ok(()));
        }
        vec!["x"]
    });
}

/// Adds what updates bring, up to ten at a time; slow ones need a word.
async fn counter(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let sum = Arc::new(Mutex::new(0_u64));
    let number = |payload: &Payload| text(payload).parse::<u64>().unwrap_or(99);
    let (adds, asked, slow) = (sum.clone(), sum.clone(), sum.clone());
    let valid = move |update: &dacapo_core::Update| match number(&update.input[0]) {
        0..=10 => Ok(()),
        _ => Err(Failure::application("ten at most").typed("TooMuch")),
    };
    ctx.on_query("sum", move |_| Ok(payload(asked.lock().unwrap().to_string())));
    ctx.on_update("add", valid, move |update| {
        let adds = adds.clone();
        async move {
            let mut sum = adds.lock().unwrap();
            *sum += number(&update.input[0]);
            Ok(payload(sum.to_string()))
        }
    });
    let inner = ctx.clone();
    ctx.on_update(
        "add later",
        |_| Ok(()),
        move |update| {
            let (slow, ctx) = (slow.clone(), inner.clone());
            async move {
                ctx.sleep(secs(10)).await?;
                let mut sum = slow.lock().unwrap();
                *sum += number(&update.input[0]);
                Ok(payload(sum.to_string()))
            }
        },
    );
    ctx.on_update("fail", |_| Ok(()), |_| async { Err(Failure::application("after acceptance")) });
    ctx.publish("counting");
    ctx.next_signal("end").await?;
    ctx.publish("ended");
    let sum = sum.lock().unwrap().to_string();
    Ok(payload(sum))
}

fn counting() -> Options {
    options().workflow("counter", counter)
}

fn done(value: &str) -> Result<UpdateStage, Error> {
    Ok(UpdateStage::Completed(Ok(payload(value))))
}

#[test]
fn an_update_is_answered_by_its_handler_and_the_same_id_again_has_the_same_answer() {
    over_every_cache_and_restart(counting, |sim| {
        sim.start("counter", "x", "").unwrap();
        assert_eq!(update(&sim, "x", "u-1", "add", "3", WaitFor::Completed), done("3"));
        assert_eq!(update(&sim, "x", "u-2", "add", "4", WaitFor::Completed), done("7"));
        assert_eq!(update(&sim, "x", "u-1", "add", "3", WaitFor::Completed), done("3"));
        let sim = sim.restart();
        assert_eq!(update(&sim, "x", "u-1", "add", "3", WaitFor::Completed), done("3"));
        assert_eq!(query(&sim, "x", "sum").unwrap(), "7");
        signal(&sim, "x", "end", "");
        assert_eq!(sim.result("x"), completed("7"));
        let expected = expect![[r#"
            0 at 0ns: start counter ->
            1 at 0ns: update add u-1 -> accept update u-1, complete update u-1 ok 3
            2 at 0ns: update add u-2 -> accept update u-2, complete update u-2 ok 7
            3 at 0ns: signal end -> complete 7
        "#]];
        expected.assert_eq(&turns(&sim, "x"));
        (sim, vec!["x"])
    });
}

#[test]
fn a_rejected_update_leaves_no_turn_and_the_same_id_again_is_rejected_alike() {
    over_every_cache_and_restart(counting, |sim| {
        sim.start("counter", "x", "").unwrap();
        let rejected = |sim: &Simulation, id, name, value| match update(sim, "x", id, name, value, WaitFor::Accepted) {
            Err(Error::UpdateRejected(failure)) => failure.message,
            other => panic!("{other:?}"),
        };
        assert_eq!(rejected(&sim, "u-1", "add", "11"), "ten at most");
        let sim = sim.restart();
        assert_eq!(rejected(&sim, "u-1", "add", "11"), "ten at most");
        let unknown = rejected(&sim, "u-2", "subtract", "1");
        assert!(unknown.contains("subtract"), "{unknown}");
        assert_eq!((describe(&sim, "x").turns, rows(&sim, "x")), (1, NO_ROWS));
        (sim, vec!["x"])
    });
}

/// C-43
#[test]
fn an_update_that_fails_after_acceptance_was_accepted() {
    over_every_cache(counting, |sim| {
        sim.start("counter", "x", "").unwrap();
        let failed = update(sim, "x", "u-1", "fail", "", WaitFor::Completed);
        let Ok(UpdateStage::Completed(Err(failure))) = failed else { panic!("{failed:?}") };
        assert_eq!(failure.message, "after acceptance");
        vec!["x"]
    });
}

#[test]
fn an_accepted_update_goes_on_after_a_restart_and_is_answered_there() {
    over_every_cache_and_restart(counting, |sim| {
        sim.start("counter", "x", "").unwrap();
        assert_eq!(update(&sim, "x", "u-1", "add later", "5", WaitFor::Accepted), Ok(UpdateStage::Accepted));
        sim.advance(secs(5));
        let sim = sim.restart();
        assert_eq!(update(&sim, "x", "u-1", "add later", "5", WaitFor::Accepted), Ok(UpdateStage::Accepted));
        let engine = sim.engine().clone();
        let again = crate::kit::update_of("u-1", "add later", "5");
        let mut answer = Box::pin(async move { engine.update(&RunId::of("x"), again, WaitFor::Completed).await });
        assert_eq!(sim.try_wait(answer.as_mut()), None);
        sim.advance(secs(5));
        assert_eq!(sim.wait(answer), done("5"));
        (sim, vec!["x"])
    });
}

#[test]
fn updates_that_a_closing_run_did_not_answer_fail_with_the_reason() {
    over_every_cache(counting, |sim| {
        sim.start("counter", "x", "").unwrap();
        assert_eq!(update(sim, "x", "u-1", "add later", "5", WaitFor::Accepted), Ok(UpdateStage::Accepted));
        let engine = sim.engine().clone();
        let again = crate::kit::update_of("u-1", "add later", "5");
        let mut answer = Box::pin(async move { engine.update(&RunId::of("x"), again, WaitFor::Completed).await });
        assert_eq!(sim.try_wait(answer.as_mut()), None);
        sim.wait(sim.engine().terminate(&RunId::of("x"), "enough")).unwrap();
        let told = sim.wait(answer);
        let Ok(UpdateStage::Completed(Err(failure))) = told else { panic!("{told:?}") };
        assert_eq!(failure.type_name.as_deref(), Some("RunClosed"));
        vec!["x"]
    });
}

/// C-32
#[test]
fn a_query_is_answered_by_evicted_and_closed_runs_and_after_what_was_acknowledged() {
    over_every_cache_and_restart(counting, |sim| {
        sim.start("counter", "x", "").unwrap();
        assert_eq!(query(&sim, "x", "sum").unwrap(), "0");
        assert_eq!(update(&sim, "x", "u-1", "add", "3", WaitFor::Accepted), Ok(UpdateStage::Accepted));
        assert_eq!(query(&sim, "x", "sum").unwrap(), "3");
        sim.engine().evict_idle();
        assert_eq!(sim.engine().runs_in_memory(), 0);
        assert_eq!(query(&sim, "x", "sum").unwrap(), "3");
        assert_eq!(describe(&sim, "x").published, Some("counting".into()));
        signal(&sim, "x", "end", "");
        assert_eq!(sim.result("x"), completed("3"));
        let sim = sim.restart();
        let before = sim.moments();
        assert_eq!(query(&sim, "x", "sum").unwrap(), "3");
        assert_eq!(describe(&sim, "x").published, Some("ended".into()), "the snapshot needs no replay");
        assert_eq!(sim.moments(), before, "a question writes nothing");
        let unknown = query(&sim, "x", "product").unwrap_err();
        assert!(matches!(&unknown, Error::QueryFailed(_)) && unknown.to_string().contains("product"), "{unknown}");
        let absent = Error::NotFound { workflow_id: "absent".into(), run_id: None };
        assert_eq!(query(&sim, "absent", "sum"), Err(absent));
        (sim, vec!["x"])
    });
}

#[test]
fn a_query_sees_a_signal_that_was_acknowledged_before_it_was_asked() {
    let serve = || {
        options().workflow("listens", |ctx: Ctx, _| async move {
            let last = Arc::new(Mutex::new(String::new()));
            let (heard, asked) = (last.clone(), last.clone());
            ctx.on_query("last", move |_| Ok(payload(asked.lock().unwrap().clone())));
            ctx.on_signal("say", move |signal| {
                let heard = heard.clone();
                async move {
                    *heard.lock().unwrap() = text(&signal.input[0]);
                    Ok(())
                }
            });
            ctx.next_signal("end").await?;
            Ok(Payload::empty())
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("listens", "x", "").unwrap();
        for word in ["one", "two", "three"] {
            signal(sim, "x", "say", word);
            assert_eq!(query(sim, "x", "last").unwrap(), word);
        }
        vec!["x"]
    });
}

async fn promised(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let (early, late) = (ctx.promise("early"), ctx.promise("late"));
    ctx.publish(late.id().to_string());
    ctx.sleep(secs(10)).await?;
    let early = early.await.map_err(|failure| failure.to_string());
    let late = late.await.map_err(|failure| failure.to_string());
    Ok(payload(format!("{early:?} {late:?}")))
}

/// S4-27
#[test]
fn a_promise_is_resolved_once_by_name_or_id_before_or_after_it_is_awaited() {
    over_every_cache_and_restart(
        || options().workflow("promised", promised),
        |sim| {
            sim.start("promised", "x", "").unwrap();
            assert_eq!(resolve(&sim, "x", "early", Ok("1".into())), Ok(()));
            let sim = sim.restart();
            sim.advance(secs(20));
            let again = resolve(&sim, "x", "early", Ok("2".into())).unwrap_err().to_string();
            assert_eq!(
                again,
                "the run of workflow id \"x\" has no open promise \"early\": it was resolved before, or is not open yet; open now: late. Check the name, or resolve it once the run has opened it"
            );
            let unknown = resolve(&sim, "x", "other", Ok("2".into())).unwrap_err().to_string();
            assert_eq!(
                unknown,
                "the run of workflow id \"x\" has no open promise \"other\": it was resolved before, or is not open yet; open now: late. Check the name, or resolve it once the run has opened it"
            );
            let id = text(&describe(&sim, "x").published.unwrap());
            assert_eq!(resolve(&sim, "x", id, Err(Failure::application("broken"))), Ok(()));
            assert_eq!(sim.result("x"), completed("Ok(1) Err(\"broken\")"));
            let closed = Error::Closed { workflow_id: "x".into(), status: Status::Completed };
            assert_eq!(resolve(&sim, "x", "late", Ok("3".into())), Err(closed));
            let absent = Error::NotFound { workflow_id: "absent".into(), run_id: None };
            assert_eq!(resolve(&sim, "absent", "late", Ok("3".into())), Err(absent));
            (sim, vec!["x"])
        },
    );
}

/// S4-27
#[test]
fn of_two_resolutions_on_their_way_the_first_holds_and_the_second_is_refused() {
    over_every_cache(
        || options().workflow("promised", promised),
        |sim| {
            sim.start("promised", "x", "").unwrap();
            let engine = sim.engine().clone();
            let resolves = ["1", "2"].map(|value| {
                let engine = engine.clone();
                Box::pin(
                    async move { engine.resolve_promise(&RunId::of("x"), "early".into(), Ok(payload(value))).await },
                )
            });
            let mut resolves = resolves;
            for resolve in &mut resolves {
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(resolve.as_mut().poll(&mut cx).is_pending());
            }
            let mut answers = resolves.into_iter().map(|resolve| sim.wait(resolve));
            assert_eq!(answers.next(), Some(Ok(())));
            let second = answers.next().unwrap().unwrap_err();
            let refused = matches!(second, Error::AlreadyResolved(_) | Error::PromiseNotFound { .. });
            assert!(refused, "{second:?}");
            assert_eq!(resolve(sim, "x", "late", Ok("3".into())), Ok(()));
            assert_eq!(sim.result("x"), completed("Ok(1) Ok(3)"));
            vec!["x"]
        },
    );
}
