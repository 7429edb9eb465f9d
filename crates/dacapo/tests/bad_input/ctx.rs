//! The calls of workflow code. What makes no sense fails the activation: nothing of the turn is stored, the run stays open
//! and says what is wrong and where. What others answer is a failure that the code sees.

use std::collections::HashMap;
use std::pin::Pin;

use dacapo::core::Workflow;
use dacapo::prelude::*;
use dacapo::{Payload, Status};
use dacapo_testkit::Kit;
use serde_json::json;

use crate::setup::{NUDGE, RAISE};

type Code = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

struct Row {
    call: &'static str,
    given: &'static str,
    says: &'static str,
    body: fn(Ctx) -> Code,
}

macro_rules! row {
    ($call:literal, $given:literal, $says:literal, $ctx:ident => $body:expr) => {
        Row {
            call: $call,
            given: $given,
            says: $says,
            body: |$ctx: Ctx| {
                Box::pin(async move {
                    let _result = $body;
                    Ok(())
                })
            },
        }
    };
}

/// Takes what cannot be written as JSON.
#[activity]
async fn store_map(_map: HashMap<Vec<u8>, u8>) -> Result<(), Failure> {
    Ok(())
}

/// Takes what cannot be written as JSON.
#[workflow]
async fn map_flow(_ctx: Ctx, _map: HashMap<Vec<u8>, u8>) -> Result<(), Failure> {
    Ok(())
}

fn odd_map() -> HashMap<Vec<u8>, u8> {
    HashMap::from([(vec![1], 1)])
}

fn shrinking() -> Retry {
    Retry { factor: 0.5, ..Retry::exponential() }
}

fn calls() -> Vec<Row> {
    vec![
        row!("Ctx::call", "what is no JSON", "cannot be encoded", ctx => ctx.call(store_map, odd_map()).await?),
        row!("Ctx::call_raw", "no name", "activity type is empty", ctx => ctx.call_raw("", [json!(1)]).await?),
        row!("Call::retry", "pauses that shrink", "factor is 0.5", ctx =>
            ctx.call_raw("x", [json!(1)]).retry(shrinking()).await?),
        row!("Call::schedule_to_close", "zero", "schedule-to-close timeout is zero", ctx =>
            ctx.call_raw("x", [json!(1)]).schedule_to_close(secs(0)).await?),
        row!("Call::schedule_to_start", "zero", "schedule-to-start timeout is zero", ctx =>
            ctx.call_raw("x", [json!(1)]).schedule_to_start(secs(0)).await?),
        row!("Call::start_to_close", "zero", "start-to-close timeout is zero", ctx =>
            ctx.call_raw("x", [json!(1)]).start_to_close(secs(0)).await?),
        row!("Call::heartbeat_timeout", "zero", "heartbeat timeout is zero", ctx =>
            ctx.call_raw("x", [json!(1)]).heartbeat_timeout(secs(0)).await?),
        row!("Call::header", "a value that JSON cannot hold", "header \"tenant\": a value of type", ctx =>
            ctx.call_raw("x", []).header("tenant", &odd_map()).await?),
        row!("Call::queue", "no name", "queue name is empty", ctx => ctx.call_raw("x", [json!(1)]).queue("").await?),
        row!("Ctx::call_local", "what is no JSON", "cannot be encoded", ctx =>
            ctx.call_local(store_map, odd_map()).await?),
        row!("LocalCall::header", "a value that JSON cannot hold", "header \"tenant\": a value of type", ctx =>
            ctx.call_local_raw("x", []).header("tenant", &odd_map()).await?),
        row!("Ctx::call_local_raw", "no name", "activity type is empty", ctx =>
            ctx.call_local_raw("", [json!(1)]).await?),
        row!("LocalCall::retry", "pauses that shrink", "factor is 0.5", ctx =>
            ctx.call_local_raw("x", [json!(1)]).retry(shrinking()).await?),
        row!("LocalCall::schedule_to_close", "zero", "timeout is zero", ctx =>
            ctx.call_local_raw("x", [json!(1)]).schedule_to_close(secs(0)).await?),
        row!("LocalCall::schedule_to_start", "zero", "timeout is zero", ctx =>
            ctx.call_local_raw("x", [json!(1)]).schedule_to_start(secs(0)).await?),
        row!("LocalCall::start_to_close", "zero", "timeout is zero", ctx =>
            ctx.call_local_raw("x", [json!(1)]).start_to_close(secs(0)).await?),
        row!("Ctx::side_effect", "no name", "name of a side effect is empty", ctx => ctx.side_effect("", || async { Ok(1) }).await?),
        row!("SideEffect::retry", "pauses that shrink", "factor is 0.5", ctx =>
            ctx.side_effect("x", || async { Ok(1) }).retry(shrinking()).await?),
        row!("SideEffect::start_to_close", "zero", "timeout is zero", ctx =>
            ctx.side_effect("x", || async { Ok(1) }).start_to_close(secs(0)).await?),
        row!("Ctx::nexus", "an engine that has none", "does not support Nexus operations", ctx =>
            ctx.nexus::<_, ()>("e", "s", "o", &1).await?),
        row!("Ctx::promise", "no name", "promise name is empty", ctx => ctx.promise(Promise::<u8>::new("")).await?),
        row!("Ctx::promise_raw", "no name", "promise name is empty", ctx => ctx.promise_raw("").await?),
    ]
}

fn children() -> Vec<Row> {
    vec![
        row!("Ctx::child", "what is no JSON", "cannot be encoded", ctx => ctx.child(map_flow, odd_map()).await?),
        row!("Ctx::child_raw", "no name", "workflow type is empty", ctx => ctx.child_raw("", [json!(1)]).await?),
        row!("Child::header", "a value that JSON cannot hold", "header \"tenant\": a value of type", ctx =>
            ctx.child_raw("x", []).header("tenant", &odd_map()).await?),
        row!("SignalExternalCall::header", "a value that JSON cannot hold", "header \"tenant\": a value of type", ctx =>
            ctx.signal_external("x", NUDGE, 1).header("tenant", &odd_map()).await?),
        row!("Ctx::encode", "a value that JSON cannot hold", "cannot be encoded", ctx => ctx.encode(&odd_map())?),
        row!("Ctx::decode", "another type", "cannot be read as `u8`", ctx => ctx.decode::<u8>(&Payload::json("true"))?),
        row!("Child::id", "no id", "workflow id is empty", ctx => ctx.child_raw("x", [json!(1)]).id("").await?),
        row!("Child::queue", "no name", "queue name is empty", ctx => ctx.child_raw("x", [json!(1)]).queue("").await?),
        row!("Child::retry", "pauses that shrink", "factor is 0.5", ctx =>
            ctx.child_raw("x", [json!(1)]).retry(shrinking()).await?),
        row!("Child::execution_timeout", "zero", "timeout is zero", ctx =>
            ctx.child_raw("x", [json!(1)]).execution_timeout(secs(0)).await?),
        row!("Child::run_timeout", "zero", "timeout is zero", ctx =>
            ctx.child_raw("x", [json!(1)]).run_timeout(secs(0)).await?),
        row!("Child::with", "a cron line", "does not support cron lines", ctx =>
            ctx.child_raw("x", [json!(1)]).with(|child| child.cron = Some("@daily".into())).await?),
        row!("Child::started", "an id in use", "in use by run", ctx =>
            ctx.child_raw("bad", [json!(1)]).id("bad").started().await?),
        row!("Ctx::continue_as_new", "what is no JSON", "cannot be encoded", ctx =>
            Err(ctx.continue_as_new(map_flow, odd_map()))?),
        row!("Ctx::continue_as_new_with", "a queue without a name", "queue name is empty", ctx =>
            Err(ctx.continue_as_new_with(map_flow, HashMap::new(), |next| next.queue = Some("".into())))?),
        row!("Ctx::signal_external", "no id", "workflow id is empty", ctx => ctx.signal_external("", NUDGE, 1).await?),
        row!("Ctx::signal_external", "an absent run", "no open run of workflow id \"x\"", ctx =>
            ctx.signal_external("x", NUDGE, 1).await?),
        row!("Ctx::signal_external_raw", "no name", "signal name is empty", ctx =>
            ctx.signal_external_raw("x", "", json!(1)).await?),
        row!("Ctx::cancel_external", "no id", "workflow id is empty", ctx => ctx.cancel_external("", "").await?),
    ]
}

fn messages() -> Vec<Row> {
    vec![
        row!("Ctx::on_signal", "a second handler", "has a handler already", ctx => {
            ctx.on_signal(NUDGE, |_| async { Ok(()) });
            ctx.on_signal(NUDGE, |_| async { Ok(()) });
        }),
        row!("Ctx::on_signal_raw", "a second handler", "has a handler already", ctx => {
            ctx.on_signal_raw("x", |_| async { Ok(()) });
            ctx.on_signal_raw("x", |_| async { Ok(()) });
        }),
        row!("Ctx::on_update", "a second handler", "has a handler already", ctx => {
            ctx.on_update(RAISE, |_| Ok(()), |by| async move { Ok(by) });
            ctx.on_update(RAISE, |_| Ok(()), |by| async move { Ok(by) });
        }),
        row!("Ctx::on_update_raw", "a second handler", "has a handler already", ctx => {
            ctx.on_update_raw("x", |_| Ok(()), |value| async move { Ok(value) });
            ctx.on_update_raw("x", |_| Ok(()), |value| async move { Ok(value) });
        }),
        row!("Ctx::next_signal", "a signal that a handler takes", "handler", ctx => {
            ctx.on_signal(NUDGE, |_| async { Ok(()) });
            ctx.next_signal(NUDGE).await?
        }),
        row!("Ctx::next_signal_raw", "a signal that a handler takes", "handler", ctx => {
            ctx.on_signal(NUDGE, |_| async { Ok(()) });
            ctx.next_signal_raw("nudge").await?
        }),
        row!("Ctx::try_signal", "a signal that a handler takes", "handler", ctx => {
            ctx.on_signal(NUDGE, |_| async { Ok(()) });
            ctx.try_signal(NUDGE)?
        }),
        row!("Ctx::try_signal_raw", "a signal that a handler takes", "handler", ctx => {
            ctx.on_signal(NUDGE, |_| async { Ok(()) });
            ctx.try_signal_raw("nudge")
        }),
        row!("Ctx::phase", "a branch", "phase", ctx => {
            let inner = ctx.clone();
            ctx.parallel([async move {
                let cell = inner.cell(0);
                inner.phase(&cell).until(|_| true).await.map(drop).map_err(Failure::from)
            }]).await;
        }),
        row!("Phase::on_signal", "a second handler", "has a handler already", ctx => {
            ctx.on_signal(NUDGE, |_| async { Ok(()) });
            let cell = ctx.cell(0);
            ctx.phase(&cell).on_signal(NUDGE, |_, _| Handled::Done(())).until(|_| true).await?
        }),
        row!("Phase::on_update", "a second handler", "has a handler already", ctx => {
            ctx.on_update(RAISE, |_| Ok(()), |by| async move { Ok(by) });
            let cell = ctx.cell(0);
            ctx.phase(&cell).on_update(RAISE, |_, _| Ok(()), |_, by| Handled::Done(by)).until(|_| true).await?
        }),
    ]
}

fn values() -> Vec<Row> {
    vec![
        row!("Ctx::set_attr", "no name", "name of a search attribute is empty", ctx => ctx.set_attr(Attr::new(""), 1)),
        row!("Ctx::set_attr", "a number that is not finite", "\"ratio\": inf is not a finite number", ctx =>
            ctx.set_attr(Attr::new("ratio"), f64::INFINITY)),
        row!("Ctx::set_attr", "a long keyword", "is 300 bytes long, at most 255 are allowed", ctx =>
            ctx.set_attr(Attr::new("city"), "x".repeat(300))),
        row!("Ctx::remove_attr", "no name", "name of a search attribute is empty", ctx => ctx.remove_attr(Attr::<u8>::new(""))),
        row!("Ctx::attr", "another type", "is no `u8`", ctx => {
            ctx.set_attr(Attr::new("x"), "text");
            ctx.attr(Attr::<u8>::new("x"))
        }),
        row!("Ctx::set_memo", "no name", "name of a memo entry is empty", ctx => ctx.set_memo("", &1)),
        row!("Ctx::remove_memo", "no name", "name of a memo entry is empty", ctx => ctx.remove_memo("")),
        row!("Ctx::memo", "another type", "cannot be read as `u8`", ctx => {
            ctx.set_memo("x", "text");
            ctx.memo::<u8>("x")
        }),
        row!("Ctx::publish", "what is no JSON", "cannot be encoded", ctx => ctx.publish(&odd_map())),
        row!("DurableKeys::set", "no name", "key is empty", ctx => ctx.keys().set(Key::new(""), &1)),
        row!("DurableKeys::set", "what is no JSON", "cannot be encoded", ctx => ctx.keys().set(Key::new("x"), &odd_map())),
        row!("DurableKeys::get", "another type", "cannot be read as `u8`", ctx => {
            ctx.keys().set(Key::new("x"), &"text".to_owned());
            ctx.keys().get(Key::<u8>::new("x"))
        }),
        row!("DurableKeys::clear", "no name", "key is empty", ctx => ctx.keys().clear(Key::<u8>::new(""))),
        row!("DurableKeys::set_raw", "no name", "key is empty", ctx => ctx.keys().set_raw("", "1")),
        row!("DurableKeys::clear_raw", "no name", "key is empty", ctx => ctx.keys().clear_raw("")),
        row!("Ctx::choose", "nothing to choose from", "choose", ctx => ctx.choose(0)),
        row!("Ctx::patched", "no name", "patch name is empty", ctx => ctx.patched("")),
        row!("Ctx::deprecate_patch", "no name", "patch name is empty", ctx => ctx.deprecate_patch("")),
        row!("Ctx::n_of_m", "more than there are", "n_of_m of 2 futures cannot have 3 successes", ctx => {
            ctx.n_of_m(3, [ctx.sleep(secs(1)), ctx.sleep(secs(2))]).await?
        }),
        row!("Ctx::state", "a second guard", "cell", ctx => {
            let _first = ctx.state();
            let _second = ctx.state();
        }),
    ]
}

/// Calls that cannot be given anything bad, and why.
const NOTHING_BAD: &[(&str, &str)] = &[
    ("Call::cancel_type", "every type has a meaning"),
    ("Call::priority", "every number has a place"),
    ("Call::header_payload", "headers are opaque"),
    ("Call::summary", "a line for people"),
    ("Call::detach", "takes nothing"),
    ("LocalCall::local_retry_threshold", "any pause can be the longest"),
    ("LocalCall::cancel_type", "every type has a meaning"),
    ("LocalCall::header_payload", "headers are opaque"),
    ("LocalCall::summary", "a line for people"),
    ("LocalCall::detach", "takes nothing"),
    ("SideEffect::summary", "a line for people"),
    ("NexusCall::with", "the engine refuses the call as a whole"),
    ("NexusCall::started", "the engine refuses the call as a whole"),
    ("NexusCall::detach", "the engine refuses the call as a whole"),
    ("Child::parent_close", "every policy has a meaning"),
    ("Child::id_reuse", "every policy has a meaning"),
    ("Child::cancel_type", "every type has a meaning"),
    ("Child::header_payload", "headers are opaque"),
    ("SignalExternalCall::header_payload", "headers are opaque"),
    ("SignalExternalCall::detach", "takes nothing"),
    ("Child::priority", "every number has a place"),
    ("Child::summary", "a line for people"),
    ("Child::workflow_id", "takes nothing"),
    ("Child::detach", "takes nothing"),
    ("StartedChild::workflow_id", "takes nothing"),
    ("StartedChild::run_id", "takes nothing"),
    ("StartedChild::signal", "the signal is typed, and the child is known"),
    ("StartedChild::detach", "takes nothing"),
    ("Ctx::continue_as_new_raw", "no name means this workflow"),
    ("Ctx::on_query", "a second handler takes the place of the first"),
    ("Ctx::on_query_raw", "a second handler takes the place of the first"),
    ("Handled::with", "any future can be played"),
    ("Phase::until", "a condition is a condition"),
    ("Phase::timeout", "it may end at once, or never"),
    ("Phase::concurrent", "takes nothing"),
    ("OpenPromise::id", "takes nothing"),
    ("Ctx::parallel", "no branches at all are done at once"),
    ("Ctx::launch", "any future can be played"),
    ("Ctx::scope", "any body can be played"),
    ("Ctx::join", "no futures at all are done at once"),
    ("Ctx::try_join", "no futures at all are done at once"),
    ("Ctx::race", "any two futures can race"),
    ("Ctx::race_of", "any futures can race"),
    ("Ctx::select_all", "a race of no branches never ends, which is of use beside others"),
    ("Ctx::with_timeout", "it may end at once, or never"),
    ("Ctx::shield", "any future can be played"),
    ("Ctx::cancellable", "any future can be played"),
    ("Ctx::cancellation", "takes nothing"),
    ("Ctx::keys", "takes nothing"),
    ("DurableKeys::get_raw", "a key that was never set holds nothing"),
    ("Ctx::with_state", "any value can be a state"),
    ("Ctx::state_cell", "takes nothing"),
    ("Ctx::raw", "takes nothing"),
    ("Ctx::plain", "takes nothing"),
    ("Ctx::cell", "any value can be shared"),
    ("Ctx::now", "takes nothing"),
    ("Ctx::info", "takes nothing"),
    ("Ctx::log", "a line is a line"),
    ("Ctx::random", "takes nothing"),
    ("Ctx::random_u64", "takes nothing"),
    ("Ctx::uuid", "takes nothing"),
    ("Ctx::sleep", "it may end at once, or at the end of time"),
    ("Ctx::wait_until", "a condition is a condition"),
    ("Ctx::wait_state", "a condition is a condition"),
    ("Ctx::yield_now", "takes nothing"),
];

/// Plays a workflow that makes the call, and gives what is said of it: why the run is stuck, or how it failed.
fn said(body: fn(Ctx) -> Code) -> String {
    let mut kit = Kit::new().runs_may_get_stuck();
    kit.serve(Workflow::new("bad", move |raw, _| {
        let ctx = Ctx::from(raw);
        async move { body(ctx).await.map(|()| Payload::empty()) }
    }));
    let app = kit.app();
    let started = kit.wait(app.start_raw("bad", []).id("bad").into_future()).unwrap();
    kit.advance(secs(0));
    let described = kit.wait(started.describe()).unwrap();
    match (described.stuck, described.result, described.status) {
        (Some(stuck), None, Status::Open) => {
            assert_eq!(described.turns, 0, "nothing of the turn is stored");
            stuck.reason
        }
        (None, Some(Err(failure)), Status::Failed) => failure.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn invalid_argument_of_every_ctx_call_makes_the_run_stuck_with_a_reason_and_stores_nothing() {
    let mut unclear = Vec::new();
    for row in [calls(), children(), messages(), values()].into_iter().flatten() {
        let Row { call, given, says, body } = row;
        let said = said(body);
        if !said.contains(says) {
            unclear.push(format!("{call}, given {given}, says: {said}"));
        }
    }
    assert!(unclear.is_empty(), "{}", unclear.join("\n"));
    for (call, why) in NOTHING_BAD {
        assert!(!why.is_empty(), "{call}");
    }
}
