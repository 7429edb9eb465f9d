//! Activities, children, promises, runs, signals: each once, with its types.

use dacapo::Payload;
use dacapo::core::{CommandKind, Timeouts};
use dacapo::prelude::*;
use dacapo_testkit::expect;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::kit::{check, commands_of};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    id: String,
}

const CANCEL: Signal<String> = Signal::new("cancel");
const NUDGE: Signal<u64> = Signal::new("nudge");
const APPROVAL: Promise<bool> = Promise::new("approval");

#[activity]
async fn charge(order: Order) -> Result<Receipt, Failure> {
    Ok(Receipt { id: format!("r-{}", order.id) })
}

#[activity]
async fn refund(receipt: String) -> Result<(), Failure> {
    let _ = receipt;
    Ok(())
}

#[activity(name = "ship-it")]
async fn ship(ctx: ActivityCtx, order: Order, express: bool) -> Result<u64, Failure> {
    Ok(order.id + u64::from(express) + u64::from(ctx.info().attempt))
}

#[activity]
async fn tick() -> Result<u64, Failure> {
    Ok(1)
}

#[workflow]
async fn checkout(ctx: Ctx, order: Order) -> Result<Receipt, Failure> {
    let receipt =
        ctx.call(charge, order.clone()).retry(Retry::exponential().attempts(5)).start_to_close(secs(10)).await?;
    match ctx.race(ctx.next_signal(CANCEL), ctx.sleep(days(14))).await? {
        First(_) => ctx.call(refund, receipt.id.clone()).await?,
        Second(()) => {
            ctx.call(ship, (order, true)).await?;
        }
    };
    Ok(receipt)
}

#[test]
fn the_program_of_the_front_page_ships_after_fourteen_days() {
    check(
        checkout,
        r#"start = {"id":7}
           resolve charge = {"id":"r-7"}
           fire
           resolve ship-it = 9"#,
        expect![[r#"
            turn 0  [] activity charge
            turn 1  [] timer 14d
            turn 2  [] activity ship-it
            turn 3  [] complete {"id":"r-7"}
        "#]],
    );
}

#[test]
fn the_program_of_the_front_page_refunds_when_it_is_told_to() {
    check(
        checkout,
        r#"start = {"id":7}
           resolve charge = {"id":"r-7"}
           signal cancel = "changed my mind"
           resolve refund"#,
        expect![[r#"
            turn 0  [] activity charge
            turn 1  [] timer 14d
            turn 2  [] cancel #1  [] activity refund
            turn 3  [] complete {"id":"r-7"}
        "#]],
    );
}

#[workflow]
async fn every_option(ctx: Ctx) -> Result<(u64, u64), Failure> {
    let tuned = ctx
        .call(tick, ())
        .retry(Retry::none())
        .schedule_to_close(mins(3))
        .schedule_to_start(mins(2))
        .start_to_close(mins(1))
        .heartbeat_timeout(secs(1))
        .queue("slow")
        .cancel_type(CancelType::WaitCompleted)
        .priority(Priority { key: 3, ..Priority::default() })
        .header("trace", &1)
        .summary("a tick");
    let local = ctx
        .call_local(tick, ())
        .retry(Retry::none())
        .schedule_to_close(mins(3))
        .schedule_to_start(mins(2))
        .start_to_close(mins(1))
        .local_retry_threshold(secs(1))
        .cancel_type(CancelType::Abandon)
        .header("trace", &1)
        .summary("a local tick");
    ctx.call(tick, ()).detach();
    Ok((tuned.await?, local.await?))
}

#[test]
fn options_of_calls_reach_their_commands() {
    check(
        every_option,
        "start
         resolve #0 = 4, resolve #1 = 5",
        expect![[r#"
            turn 0  [] activity tick  [] local activity tick  [] activity tick
            turn 1  [] complete [4,5]
        "#]],
    );
    let commands = commands_of(every_option, "start");
    let [CommandKind::Activity(tuned), CommandKind::LocalActivity(local), CommandKind::Activity(_)] = &commands[..]
    else {
        panic!("{commands:?}")
    };
    let timeouts = Timeouts {
        schedule_to_close: Some(mins(3)),
        schedule_to_start: Some(mins(2)),
        start_to_close: Some(mins(1)),
        heartbeat: Some(secs(1)),
    };
    assert_eq!((&tuned.timeouts, tuned.retry.as_ref()), (&timeouts, Some(&Retry::none())));
    assert_eq!((tuned.queue.clone(), tuned.cancel), (Some("slow".into()), CancelType::WaitCompleted));
    assert_eq!((tuned.priority.key, tuned.summary.as_deref()), (3, Some("a tick")));
    assert_eq!(tuned.headers["trace"], Payload::from("1"));
    assert_eq!(local.timeouts, Timeouts { heartbeat: None, ..timeouts });
    assert_eq!((local.cancel, local.local_retry_threshold), (CancelType::Abandon, Some(secs(1))));
    assert_eq!((local.summary.as_deref(), &local.headers["trace"]), (Some("a local tick"), &Payload::from("1")));
}

#[workflow]
async fn sum(ctx: Ctx, a: u64, b: u64) -> Result<u64, Failure> {
    ctx.yield_now().await;
    Ok(a + b)
}

#[workflow]
async fn family(ctx: Ctx) -> Result<(u64, String), Failure> {
    let tuned = ctx
        .child(sum, (1, 2))
        .id("sum-1")
        .queue("other")
        .parent_close(ParentClose::Abandon)
        .id_reuse(IdReuse::RejectDuplicate)
        .retry(Retry::none())
        .execution_timeout(hours(2))
        .run_timeout(hours(1))
        .cancel_type(CancelType::WaitCompleted)
        .header("trace", &1)
        .priority(Priority { key: 1, ..Priority::default() })
        .summary("adds")
        .with(|child| child.cron = None);
    assert_eq!(tuned.workflow_id(), "sum-1");
    ctx.child(sum, (5, 6)).detach();
    let started = tuned.started().await?;
    let ids = format!("{} {}", started.workflow_id(), started.run_id());
    started.signal(NUDGE, 3).await?;
    Ok((started.await?, ids))
}

/// S4-26
#[test]
fn child_is_started_signalled_and_awaited_by_its_parent() {
    check(
        family,
        "start
         started #0 = r1
         delivered nudge
         resolve #0 = 3",
        expect![[r#"
            turn 0  [] child sum  [] child sum
            turn 1  [] signal external nudge to child sum-1
            turn 2
            turn 3  [] complete [3,"sum-1 r1"]
        "#]],
    );
    let commands = commands_of(family, "start");
    let CommandKind::Child(child) = &commands[0] else { panic!("{commands:?}") };
    assert_eq!(child.input, [Payload::from("1"), Payload::from("2")]);
    assert_eq!((child.workflow_id.as_str(), child.queue.as_deref()), ("sum-1", Some("other")));
    assert_eq!((child.parent_close, child.id_reuse), (ParentClose::Abandon, IdReuse::RejectDuplicate));
    assert_eq!((child.execution_timeout, child.run_timeout), (Some(hours(2)), Some(hours(1))));
    assert_eq!((child.cancel, child.retry.as_ref()), (CancelType::WaitCompleted, Some(&Retry::none())));
    assert_eq!((child.priority.key, child.summary.as_deref()), (1, Some("adds")));
}

#[workflow]
async fn by_name(ctx: Ctx, text: String) -> Result<serde_json::Value, Failure> {
    let called = ctx.call_raw(text.clone(), [json!({ "n": 1 })]).await?;
    let local = ctx.call_local_raw("local", [json!([2])]).await?;
    let child = ctx.child_raw("child", [json!(3)]).id("c").await?;
    let signal = ctx.next_signal_raw("hello").await?;
    let none = ctx.try_signal_raw("hello")?;
    ctx.signal_external_raw("other", "hello", json!("x")).await?;
    let promise = ctx.promise_raw("word").await?;
    ctx.keys().set_raw("k", "1");
    let stored = ctx.keys().get_raw("k").is_some();
    ctx.keys().clear_raw("k");
    Ok(json!([called, local, child, signal, none, promise, stored]))
}

/// S4-26
#[test]
fn raw_calls_take_names_and_json() {
    check(
        by_name,
        r#"start = "charge"
           resolve charge = 1
           resolve local = 2
           started child = r
           resolve child = 3
           signal hello = "world"
           delivered hello
           resolve word = {"w":1}"#,
        expect![[r#"
            turn 0  [] activity charge
            turn 1  [] local activity local
            turn 2  [] child child
            turn 3
            turn 4
            turn 5  [] signal external hello to other
            turn 6  [] promise word
            turn 7  [] state k = 1  [] state k cleared  [] complete [1,2,3,"world",null,{"w":1},true]
        "#]],
    );
}

#[workflow]
async fn outside(ctx: Ctx) -> Result<(bool, u64, u64), Failure> {
    let promise = ctx.promise(APPROVAL);
    assert_eq!(promise.id().to_string().len(), 36);
    let approved = promise.await?;
    let first = ctx
        .side_effect("draw", || async { Ok(4) })
        .retry(Retry::none())
        .start_to_close(secs(5))
        .summary("a die")
        .await?;
    ctx.signal_external("other", NUDGE, first).header("trace", &1).await?;
    ctx.cancel_external("third", "enough").await?;
    let second = ctx.next_signal(NUDGE).await?;
    let third = ctx.try_signal(NUDGE)?.unwrap_or(0);
    Ok((approved, first, second + third))
}

#[test]
fn promise_side_effect_and_signal_return_typed_values() {
    check(
        outside,
        "start
         resolve approval = true
         resolve draw = 6
         delivered nudge
         delivered third
         signal nudge = 7, signal nudge = 8",
        expect![[r#"
            turn 0  [] promise approval
            turn 1  [] side effect draw
            turn 2  [] signal external nudge to other
            turn 3  [] cancel external third
            turn 4
            turn 5  [] complete [true,6,15]
        "#]],
    );
}

#[workflow]
async fn another(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    match n {
        0 => Err(ctx.continue_as_new(another, 1)),
        1 => Err(ctx.continue_as_new(sum, (1, 2))),
        2 => Err(ctx.continue_as_new_with(another, 3, |next| next.queue = Some("q".into()))),
        _ => Err(ctx.continue_as_new_raw("dynamic", [json!(n)])),
    }
}

#[test]
fn run_continues_as_the_same_workflow_or_another() {
    let next = |n: &str| {
        let commands = commands_of(another, &format!("start = {n}"));
        let [CommandKind::ContinueAsNew(next)] = &commands[..] else { panic!("{commands:?}") };
        (next.workflow.to_string(), next.input.clone(), next.queue.clone())
    };
    assert_eq!(next("0"), ("another".to_owned(), vec!["1".into()], Some("kit".into())));
    assert_eq!(next("1"), ("sum".to_owned(), vec!["1".into(), "2".into()], Some("kit".into())));
    assert_eq!(next("2"), ("another".to_owned(), vec!["3".into()], Some("q".into())));
    assert_eq!(next("9"), ("dynamic".to_owned(), vec!["9".into()], Some("kit".into())));
}

#[workflow]
async fn inline(ctx: Ctx) -> Result<u64, Failure> {
    sum(ctx.clone(), 1, 2).await
}

#[test]
fn workflow_that_is_awaited_as_a_function_is_part_of_its_caller() {
    check(
        inline,
        "start",
        expect![[r#"
        turn 0  [] complete 3
    "#]],
    );
}
