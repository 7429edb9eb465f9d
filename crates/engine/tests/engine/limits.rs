//! Limits: payloads that are too large, queues that are full, attempts that wait for a place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure, Headers, Payload, Signal};
use dacapo_engine::{ActivityState, NewStart, Options, RunId, WaitFor};
use dacapo_store::{Done, MemoryStore, ReadMessages, Store, Write};
use dacapo_testkit::{LayeredStore, Simulation, StoreLayer};

use crate::kit::{
    Gate, Serve, completed, completed_empty, describe, every_second, options, over_every_cache_and_restart, payload,
    resolve, secs, signal, stuck, text, update,
};

fn waiting_for_go(first: &'static str) -> Options {
    options()
        .workflow("steps", move |ctx: Ctx, _| async move {
            ctx.activity(first, "1").await?;
            ctx.next_signal("go").await?;
            Ok("2".into())
        })
        .activity("work", |_, input| Ok(input))
        .activity("play", |_, input| Ok(input))
}

#[test]
fn payload_beyond_the_limit_makes_its_run_stuck_and_names_the_call() {
    let limited = || {
        let mut options = options()
            .workflow("large", |ctx: Ctx, input: Payload| async move {
                ctx.next_signal("go").await?;
                ctx.activity("work", payload("x".repeat(101))).await?;
                Ok(input)
            })
            .workflow("closure", |ctx: Ctx, _| async move {
                ctx.side_effect("draw", || async { Ok(payload("x".repeat(101))) })
                    .retry(dacapo_core::Retry::none())
                    .await
            })
            .workflow("result", |ctx: Ctx, _| async move { ctx.activity("large", "").await })
            .activity("large", |_, _| Ok(payload("x".repeat(101))))
            .activity("work", |_, input| Ok(input));
        options.payload_limit = 100;
        options
    };
    over_every_cache_and_restart(limited, |sim| {
        sim.start("large", "a", "1").unwrap();
        signal(&sim, "a", "go", "");
        sim.settle();
        let reason = stuck(&sim, "a").0;
        assert!(
            reason.starts_with("activity work, asked for by the root unit at crates/engine/tests/engine/limits.rs:"),
            "{reason}"
        );
        assert!(reason.contains("a payload is 101 bytes long, at most 100 are allowed"), "{reason}");
        for (workflow, id) in [("result", "b"), ("closure", "c")] {
            sim.start(workflow, id, "").unwrap();
            let failure = sim.wait(sim.engine().result(&RunId::of(id))).unwrap().1.unwrap_err();
            assert_eq!(failure.cause().unwrap().type_name.as_deref(), Some("PayloadTooLarge"), "{failure}");
        }
        let new = dacapo_engine::NewStart {
            workflow: "large".into(),
            workflow_id: "d".into(),
            input: vec![payload("x".repeat(101))],
            ..Default::default()
        };
        let refused = sim.wait(sim.engine().start(new)).unwrap_err();
        assert_eq!(
            refused,
            Error::PayloadTooLarge {
                what: "the input".into(),
                size: 101,
                limit: 100,
                setting: Some("payload_limit".into())
            }
        );
        let long = crate::kit::signal_of("go", "x".repeat(101));
        let refused = sim.wait(sim.engine().signal(&RunId::of("a"), long, None)).unwrap_err();
        assert!(matches!(refused, Error::PayloadTooLarge { .. }), "{refused}");
        let mut roomy = sim.options().clone();
        roomy.payload_limit = 1_000;
        let sim = sim.redeploy(roomy);
        assert_eq!(sim.result("a"), completed("1"));
        (sim, vec!["a", "b", "c"])
    });
}

/// Published values and failures are stored like any payload.
#[test]
fn published_values_and_failures_beyond_the_limit_stop_the_run_or_the_sender() {
    let long = || "x".repeat(1_001);
    let limited = || {
        let mut options = options()
            .workflow("publishes", move |ctx: Ctx, _| async move {
                ctx.publish(payload(long()));
                ctx.next_signal("go").await?;
                Ok(payload(""))
            })
            .workflow("fails", move |_: Ctx, _| async move { Err(Failure::application(long())) })
            .workflow("details", move |_: Ctx, _| async move {
                let mut failure = Failure::application("short");
                failure.details.push(payload(long()));
                Err(failure)
            })
            .workflow("update", move |ctx: Ctx, _| async move {
                ctx.on_update("put", move |_| Err(Failure::application(long())), |_| async { Ok(payload("")) });
                ctx.promise("p").await
            })
            .workflow(
                "calls",
                |ctx: Ctx, _| async move { ctx.activity("work", "").retry(dacapo_core::Retry::none()).await },
            )
            .activity("work", move |_, _| Err(Failure::application(long())));
        options.payload_limit = 1_000;
        options
    };
    let sim = Simulation::new(limited());
    for (workflow, what) in [("publishes", "the published value"), ("fails", "fail"), ("details", "fail")] {
        sim.start(workflow, workflow, "").unwrap();
        sim.settle();
        let reason = stuck(&sim, workflow).0;
        assert!(reason.starts_with(what), "{reason}");
        assert!(reason.contains("is 1,001 bytes long, at most 1,000 are allowed"), "{reason}");
    }
    // An attempt is over: its failure is told in short.
    sim.start("calls", "calls", "").unwrap();
    let failure = sim.wait(sim.engine().result(&RunId::of("calls"))).unwrap().1.unwrap_err();
    let cause = failure.cause().unwrap();
    assert_eq!(cause.type_name.as_deref(), Some("PayloadTooLarge"), "{failure}");
    assert!(cause.message.contains("1,001 bytes long, at most 1,000 are allowed"), "{failure}");
    // So is the sender of an update that is rejected.
    sim.start("update", "update", "").unwrap();
    let refused = update(&sim, "update", "u", "put", "", WaitFor::Completed).unwrap_err();
    assert!(refused.to_string().contains("1,001 bytes long, at most 1,000 are allowed"), "{refused}");
    // A caller is refused.
    let refused = resolve(&sim, "update", "p", Err(Failure::application(long()))).unwrap_err();
    assert!(matches!(refused, Error::PayloadTooLarge { size: 1_001, limit: 1_000, .. }), "{refused}");
}

/// A report of an attempt is stored for the next one.
#[test]
fn report_of_progress_beyond_the_limit_is_refused_and_the_one_before_it_stays() {
    let limited = || {
        let reports = |ctx: Ctx, _| async move { ctx.activity("work", "").retry(every_second(3)).await };
        let mut options = options().workflow("reports", reports).activity("work", |ctx, _| match &ctx.info().details {
            None => {
                ctx.heartbeat_payload(payload("half"))?;
                let refused = ctx.heartbeat_payload(payload("x".repeat(1_001))).unwrap_err();
                Err(Failure::application(refused.to_string()))
            }
            Some(details) => Ok(details.clone()),
        });
        options.payload_limit = 1_000;
        options
    };
    let sim = Simulation::new(limited());
    sim.start("reports", "a", "").unwrap();
    sim.settle();
    let failure = describe(&sim, "a").pending[0].last_failure.clone().unwrap();
    assert!(
        failure.message.contains("the report of progress is 1001 bytes long, at most 1000 are allowed"),
        "{failure}"
    );
    assert_eq!(sim.result("a"), completed("half"));
}

/// Headers and metadata are stored like payloads, all of a call together.
#[test]
fn headers_and_metadata_beyond_the_limit_stop_the_run_or_the_sender() {
    let limited = || {
        let mut options = options().workflow("calls", |ctx: Ctx, _| async move {
            let call = ctx.activity("work", "").header("a", payload("x".repeat(499)));
            call.header("b", payload("x".repeat(500))).await
        });
        options.payload_limit = 1_000;
        options
    };
    let sim = Simulation::new(limited());
    sim.start("calls", "calls", "").unwrap();
    sim.settle();
    let reason = stuck(&sim, "calls").0;
    assert!(reason.contains("the header section is 1,001 bytes long, at most 1,000 are allowed"), "{reason}");

    let large = Headers::from([("trace".into(), payload("x".repeat(996)))]);
    let new =
        NewStart { workflow: "calls".into(), workflow_id: "b".into(), headers: large.clone(), ..Default::default() };
    let refused = sim.wait(sim.engine().start(new)).unwrap_err();
    assert_eq!(
        refused,
        Error::PayloadTooLarge {
            what: "the header section".into(),
            size: 1_001,
            limit: 1_000,
            setting: Some("payload_limit".into())
        }
    );
    let signal = Signal { headers: large, ..crate::kit::signal_of("go", "") };
    let refused = sim.wait(sim.engine().signal(&RunId::of("calls"), signal, None)).unwrap_err();
    let what = "the header section of a signal".into();
    assert_eq!(
        refused,
        Error::PayloadTooLarge { what, size: 1_001, limit: 1_000, setting: Some("payload_limit".into()) }
    );
    let unnamed = Signal { headers: Headers::from([("".into(), payload(""))]), ..crate::kit::signal_of("go", "") };
    let refused = sim.wait(sim.engine().signal(&RunId::of("calls"), unnamed, None)).unwrap_err();
    assert_eq!(refused.to_string(), "header name is empty: give it 1 to 1,000 bytes");
    let mut wide = crate::kit::signal_of("go", "x");
    wide.input[0].metadata.insert("note".into(), "x".repeat(996).into());
    let refused = sim.wait(sim.engine().signal(&RunId::of("calls"), wide, None)).unwrap_err();
    assert!(matches!(refused, Error::PayloadTooLarge { size: 1_001, .. }), "{refused}");
}

/// C-31
#[test]
fn full_inbox_refuses_the_sender_and_drops_nothing() {
    let limited = || {
        let mut options = waiting_for_go("work");
        options.message_limit = 3;
        options
    };
    over_every_cache_and_restart(limited, |sim| {
        let cache = sim.options().cache;
        sim.start("steps", "a", "").unwrap();
        sim.settle();
        let mut options = waiting_for_go("play");
        options.message_limit = 3;
        let sim = sim.redeploy(options.cache(cache));
        for _ in 0..3 {
            signal(&sim, "a", "go", "");
            sim.settle();
        }
        let fourth = sim.wait(sim.engine().signal(&RunId::of("a"), crate::kit::signal_of("go", ""), None));
        assert_eq!(
            fourth,
            Err(Error::InboxFull {
                workflow_id: "a".into(),
                waiting: 3,
                limit: 3,
                setting: Some("message_limit".into())
            })
        );
        let sim = sim.redeploy(limited().cache(cache));
        assert_eq!(sim.result("a"), completed("2"));
        (sim, vec!["a"])
    });
}

/// Messages of a run that is not in memory were not counted: fifty signals to a run whose start is delayed, or whose queue no
/// worker serves, were all accepted.
#[test]
fn message_limit_counts_messages_of_runs_that_are_not_in_memory() {
    let serve = || Options { message_limit: 3, ..waiting_for_go("work") };
    let delayed = NewStart { workflow_id: "a".into(), delay: Some(secs(60)), ..NewStart::default() };
    let unserved = NewStart { workflow_id: "a".into(), queue: Some("elsewhere".into()), ..NewStart::default() };
    for new in [delayed, unserved] {
        let sim = Simulation::new(serve());
        sim.wait(sim.engine().start(NewStart { workflow: "steps".into(), ..new })).unwrap();
        sim.settle();
        let first = sim.store().count_unseen(describe(&sim, "a").run).unwrap();
        assert!(first <= 1, "its start may wait as a message");
        for _ in first..3 {
            signal(&sim, "a", "go", "");
        }
        let is_full = |error: &Error| matches!(error, Error::InboxFull { waiting: 3, limit: 3, .. });
        let sim = sim.restart();
        let refused = sim.wait(sim.engine().signal(&RunId::of("a"), crate::kit::signal_of("go", ""), None));
        assert!(refused.as_ref().is_err_and(is_full), "{refused:?}");
        let refused = update(&sim, "a", "u-1", "ask", "", WaitFor::Accepted);
        assert!(refused.as_ref().is_err_and(is_full), "{refused:?}");
        assert_eq!(sim.store().count_unseen(describe(&sim, "a").run).unwrap(), 3);
    }
}

/// How often the messages of a run were counted.
#[derive(Default)]
struct Counts(AtomicUsize);

impl StoreLayer for Counts {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        store.submit(write, done);
    }

    fn counts_unseen(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Each of the thousand senders had all messages counted that waited before its own.
#[test]
fn messages_of_a_run_that_is_not_played_are_counted_for_few_of_their_senders() {
    let store = LayeredStore::new(Arc::new(MemoryStore::new()), Counts::default());
    let sim = Simulation::over(store.clone(), Options { message_limit: 1_000, ..waiting_for_go("work") });
    let delayed = NewStart { workflow_id: "a".into(), delay: Some(secs(60)), ..NewStart::default() };
    sim.wait(sim.engine().start(NewStart { workflow: "steps".into(), ..delayed })).unwrap();
    sim.settle();
    let first = store.count_unseen(describe(&sim, "a").run).unwrap();
    for _ in first..1_000 {
        signal(&sim, "a", "go", "");
    }
    let counted = store.0.load(Ordering::Relaxed);
    assert!(counted < 100, "counted {counted} times");
    let refused = sim.wait(sim.engine().signal(&RunId::of("a"), crate::kit::signal_of("go", ""), None));
    assert!(matches!(refused, Err(Error::InboxFull { waiting: 1_000, limit: 1_000, .. })), "{refused:?}");
}

#[test]
fn no_more_attempts_run_at_a_time_than_the_limit_says() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let sim = Simulation::new({
        let mut options = options()
            .workflow("five", |ctx: Ctx, _| async move {
                ctx.join((0..5).map(|_| ctx.activity("work", ""))).await;
                Ok(Payload::empty())
            })
            .waiting("work", move |_, _| shared_gate.pass());
        options.queue("default").max_concurrent_activities = 2;
        options
    });
    sim.start("five", "a", "").unwrap();
    sim.settle();
    let states: Vec<String> = describe(&sim, "a").pending.iter().map(|task| task.state.to_string()).collect();
    assert_eq!(states, ["running", "running", "ready", "ready", "ready"]);
    gate.open(Ok("".into()));
    assert_eq!(sim.result("a"), completed_empty());
}

/// S3-42
#[test]
fn two_hundred_attempts_run_at_a_time_and_the_rest_wait_their_turn() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let sim = Simulation::new(
        options()
            .workflow("many", |ctx: Ctx, _| async move {
                let results = ctx.join((0..250).map(|n| ctx.activity("work", payload(n.to_string())))).await;
                let done: Vec<String> =
                    results.into_iter().map(|done| done.map(|done| text(&done))).collect::<Result<_, _>>()?;
                let all: Vec<String> = (0..250).map(|n| n.to_string()).collect();
                Ok(payload((done == all).to_string()))
            })
            .waiting("work", move |_, input| {
                let pass = shared_gate.pass();
                async move { pass.await.map(|_| input) }
            }),
    );
    let states = |state| describe(&sim, "a").pending.iter().filter(|task| task.state == state).count();
    sim.start("many", "a", "").unwrap();
    sim.settle();
    assert_eq!((states(ActivityState::Running), states(ActivityState::Ready)), (200, 50));
    gate.open(Ok("".into()));
    assert_eq!(sim.result("a"), completed("true"), "each has its result, in order");
    assert_eq!(sim.attempts().made, 250);
}

/// More input than is kept in memory for pending activities is read again where it was recorded, in the process that
/// scheduled them and in the next.
#[test]
fn activities_get_their_inputs_however_much_there_is_of_them() {
    const MEGABYTE: usize = 1 << 20;
    for restarts in [false, true] {
        let options = options()
            .workflow("wide", |ctx: Ctx, _| async move {
                let input = |number| payload(format!("{number:02} {}", "x".repeat(MEGABYTE)));
                let call = |number| ctx.activity("head", input(number)).retry(every_second(0));
                let calls: Vec<_> = (0..40).map(call).collect();
                let mut heads = Vec::new();
                for call in calls {
                    heads.push(call.await?);
                }
                Ok(payload(heads.iter().map(text).collect::<Vec<_>>().join(" ")))
            })
            .activity("head", |ctx, input| match ctx.info().attempt {
                1 => Err(Failure::application("not yet")),
                _ => Ok(payload(&text(&input)[..2])),
            });
        let sim = Simulation::new(options);
        sim.start("wide", "a", "").unwrap();
        let sim = if restarts { sim.restart() } else { sim };
        let expected: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
        assert_eq!(sim.result("a"), completed(&expected.join(" ")));
    }
}
