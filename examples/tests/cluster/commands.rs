//! The map of docs/border.md on a real server: what each command becomes there, and what comes back.

use dacapo::prelude::*;
use dacapo::{CancelType, Error, FailureKind, IdReuse, ParentClose, Priority, Query, QueueSettings};
use futures::FutureExt;
use serde_json::Value;

use crate::{Namespace, described, within};

const GO: Signal<u64> = Signal::new("go");
const ADD: Signal<u64> = Signal::new("add");
const RETURNED: Query<(), u64> = Query::new("returned");
const CITY: Attr<String> = Attr::new("city");

/// The attributes of the first event of this type.
pub(crate) fn attributes(events: &[Value], kind: &str) -> Value {
    let named = format!("EVENT_TYPE_{kind}");
    let event = events.iter().find(|event| event["eventType"] == named.as_str());
    let event = event.unwrap_or_else(|| panic!("there is no {kind}"));
    let held = event.as_object().unwrap().iter().find(|(name, _)| name.ends_with("EventAttributes"));
    held.map(|(_, attributes)| attributes.clone()).unwrap_or_default()
}

#[activity]
async fn echo(ctx: ActivityCtx, word: String) -> Result<String, Failure> {
    let tenant: String = dacapo::decode(&ctx.info().headers["tenant"]).expect("it is a text");
    Ok(format!("{word} for {tenant}"))
}

#[workflow]
async fn calls(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(echo, "lamp".into())
        .schedule_to_close(secs(60))
        .schedule_to_start(secs(50))
        .start_to_close(secs(40))
        .heartbeat_timeout(secs(30))
        .retry(Retry::exponential().attempts(3).first_pause(millis(20)).non_retryable("NoFunds"))
        .priority(Priority { key: 2, ..Priority::default() })
        .header("tenant", "ada")
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activity_keeps_its_options_and_headers() {
    let namespace = Namespace::new();
    let app = namespace.serve((calls, echo)).await;
    let run = app.start(calls, ()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("lamp for ada"));
    let scheduled = attributes(&namespace.events("run"), "ACTIVITY_TASK_SCHEDULED");
    let timeouts = ["scheduleToCloseTimeout", "scheduleToStartTimeout", "startToCloseTimeout", "heartbeatTimeout"];
    assert_eq!(timeouts.map(|name| scheduled[name].as_str().unwrap_or_default()), ["60s", "50s", "40s", "30s"]);
    assert_eq!(scheduled["retryPolicy"]["maximumAttempts"], 3);
    assert_eq!(scheduled["retryPolicy"]["initialInterval"], "0.020s");
    assert_eq!(scheduled["retryPolicy"]["nonRetryableErrorTypes"][0], "NoFunds");
    assert_eq!(scheduled["priority"]["priorityKey"], 2);
    app.shutdown().await;
}

#[workflow]
async fn races(ctx: Ctx) -> Result<u64, Failure> {
    match ctx.race(ctx.next_signal(GO), ctx.sleep(hours(1))).await? {
        First(n) => Ok(n),
        Second(()) => Ok(0),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timer_that_loses_a_race_is_cancelled() {
    let namespace = Namespace::new();
    let app = namespace.serve(races).await;
    let run = app.start(races, ()).id("run").await.unwrap();
    described("it waits", &run, |run| run.turns == 1).await;
    run.signal(GO, 7).await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(7));
    let events = namespace.events("run");
    assert_eq!(attributes(&events, "TIMER_STARTED")["startToFireTimeout"], "3600s");
    assert_eq!(attributes(&events, "TIMER_CANCELED")["timerId"], attributes(&events, "TIMER_STARTED")["timerId"]);
    app.shutdown().await;
}

#[activity]
async fn works(ctx: ActivityCtx) -> Result<(), Failure> {
    loop {
        ctx.heartbeat(&"on it")?;
        tokio::select! {
            cancelled = ctx.cancelled() => return Err(cancelled.into()),
            // sleep: the server answers a heartbeat with the wish to cancel.
            () = tokio::time::sleep(millis(50)) => {}
        }
    }
}

#[workflow]
async fn cancels(ctx: Ctx) -> Result<String, Failure> {
    let call = ctx.call(works, ()).heartbeat_timeout(secs(30)).cancel_type(CancelType::WaitCompleted);
    let (work, handle) = ctx.cancellable(call);
    let waits = ctx.next_signal(GO);
    let ended =
        ctx.parallel([work.boxed(), async move { waits.await.map(|_| handle.cancel("no longer wanted")) }.boxed()]);
    let failure = ended.await.swap_remove(0).unwrap_err();
    Ok(failure.is_cancelled().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_activity_learns_it_by_its_heartbeat_and_is_waited_for() {
    let namespace = Namespace::new();
    // The server is told of each heartbeat, and so answers each.
    let often = |queue: QueueSettings| queue.max_heartbeat_throttle_interval(millis(100));
    let opened = namespace.open().await.settings(|app| app.every_queue(often));
    let app = opened.serve((cancels, works)).await.unwrap();
    let run = app.start(cancels, ()).id("run").await.unwrap();
    let is_begun =
        |run: &dacapo::Description| run.pending.first().is_some_and(|activity| activity.last_heartbeat.is_some());
    described("it works", &run, is_begun).await;
    run.signal(GO, 1).await.unwrap();
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("true"));
    let events = namespace.events("run");
    attributes(&events, "ACTIVITY_TASK_CANCEL_REQUESTED");
    attributes(&events, "ACTIVITY_TASK_CANCELED");
    app.shutdown().await;
}

#[workflow]
async fn child(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    Ok(n + ctx.next_signal(GO).await?)
}

#[workflow]
async fn parent(ctx: Ctx) -> Result<String, Failure> {
    let call = ctx.child(child, 1).id("the-child").parent_close(ParentClose::RequestCancel).run_timeout(secs(100));
    let started = call.header("tenant", "ada").started().await?;
    let run_id = started.run_id().clone();
    ctx.signal_external("the-child", GO, 41).await?;
    let sum = started.await?;
    assert!(!run_id.is_empty());
    let second = ctx.child(child, 1).id("another-child").started().await?;
    ctx.cancel_external("another-child", "not needed").await?;
    let cancelled = second.await.unwrap_err();
    let missing = ctx.signal_external("no-such-run", GO, 1).await.unwrap_err();
    Ok(format!(
        "{sum}, {}, {}",
        cancelled.is_cancelled(),
        missing.to_string().contains("no-such-run") || missing.type_name.is_some()
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_are_started_signalled_and_cancelled() {
    let namespace = Namespace::new();
    let app = namespace.serve((parent, child)).await;
    let run = app.start(parent, ()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("42, true, true"));
    let events = namespace.events("run");
    let initiated = attributes(&events, "START_CHILD_WORKFLOW_EXECUTION_INITIATED");
    assert_eq!((&initiated["workflowId"], &initiated["workflowRunTimeout"]), (&"the-child".into(), &"100s".into()));
    assert_eq!(initiated["parentClosePolicy"], "PARENT_CLOSE_POLICY_REQUEST_CANCEL");
    assert!(initiated["header"]["fields"]["tenant"].is_object());
    for kind in [
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED",
        "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
        "CHILD_WORKFLOW_EXECUTION_CANCELED",
    ] {
        attributes(&events, kind);
    }
    let parent = app.handle(child, "the-child").describe().await.unwrap().parent.unwrap();
    assert_eq!(parent.workflow_id, "run");
    let failure = app.handle(child, "another-child").result().await.unwrap_err();
    let Error::Run { status: Status::Cancelled, failure, .. } = failure else { panic!("{failure}") };
    assert!(failure.to_string().contains("not needed"), "{failure}");
    app.shutdown().await;
}

#[workflow]
async fn describes_itself(ctx: Ctx, round: u64) -> Result<u64, Failure> {
    if round == 0 {
        ctx.set_attr(CITY, "Lisboa".into());
        ctx.set_memo("stage", "packing");
        return Err(ctx.continue_as_new(describes_itself, 1));
    }
    ctx.next_signal(GO).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memo_attributes_and_waiting_signals_go_on_to_the_next_run() {
    let namespace = Namespace::new();
    let app = namespace.serve(describes_itself).await;
    let first = app.start(describes_itself, 0).id("run").memo("order", &42).delay(secs(60)).await.unwrap();
    first.signal(GO, 7).await.unwrap();
    assert_eq!(within("it ends", first.result()).await, Ok(7), "a signal that the first run had was not lost");
    let last = first.latest().describe().await.unwrap();
    assert_ne!(first.run_id(), Some(last.run_id.as_str()));
    assert_eq!(last.attributes.get("city"), Some(&"Lisboa".into()));
    assert_eq!(app.decode::<String>(&last.memo["stage"]).as_deref(), Ok("packing"));
    assert_eq!(app.decode::<u64>(&last.memo["order"]), Ok(42));
    let closed = first.describe().await.unwrap();
    assert_eq!((closed.status, closed.next_run_id.as_ref()), (Status::ContinuedAsNew, Some(&last.run_id)));
    app.shutdown().await;
}

#[workflow]
async fn fails_twice(ctx: Ctx) -> Result<u64, Failure> {
    match ctx.info().start.attempt {
        3 => Ok(3),
        attempt => Err(format!("attempt {attempt} failed").into()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflow_with_a_retry_policy_is_run_again() {
    let namespace = Namespace::new();
    let app = namespace.serve(fails_twice).await;
    let run = app.start(fails_twice, ()).retry(Retry::exponential().first_pause(millis(10))).await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(3));
    app.shutdown().await;
}

#[workflow]
async fn draws(ctx: Ctx) -> Result<(u64, u64), Failure> {
    let drawn = ctx.raw().random_u64();
    let number: u64 = ctx
        .side_effect("draw", move || async move { Ok(drawn) })
        .retry(Retry::exponential().first_pause(millis(1)))
        .await?;
    ctx.sleep(millis(1)).await?;
    Ok((drawn, number))
}

/// Fails in its first two attempts.
#[workflow]
async fn stumbles(ctx: Ctx) -> Result<u64, Failure> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
    let effect = || async {
        match ATTEMPTS.fetch_add(1, Ordering::SeqCst) + 1 {
            3 => Ok(3),
            n => Err(Failure::application(format!("attempt {n} failed"))),
        }
    };
    ctx.side_effect("stumble", effect).retry(Retry::exponential().first_pause(millis(20))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn side_effect_is_recorded_as_a_local_activity_and_tried_again_by_replay() {
    let namespace = Namespace::new();
    let app = namespace.serve((draws, stumbles)).await;
    let (drawn, number) = within("it ends", app.start(draws, ()).await.unwrap().result()).await.unwrap();
    assert_eq!(drawn, number);
    let run = app.start(stumbles, ()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(3));
    let types = namespace.event_types("run");
    let count = |kind: &str| types.iter().filter(|event| *event == kind).count();
    assert_eq!((count("MARKER_RECORDED"), count("TIMER_FIRED")), (3, 2), "{types:?}");
    app.shutdown().await;
}

#[workflow]
async fn asks_another_service(ctx: Ctx, endpoint: String) -> Result<String, Failure> {
    let asked = ctx.nexus::<_, u64>(endpoint, "Quotes", "quote", &"lamp");
    let failure = asked.with(|call| call.schedule_to_close = Some(secs(1))).await.unwrap_err();
    let FailureKind::Nexus(failed) = &failure.kind else { return Ok(format!("{failure:?}")) };
    Ok(format!("{} {}", failed.service, failure.root_cause()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nexus_operation_without_a_worker_times_out_with_its_name() {
    let namespace = Namespace::new();
    // The endpoints of a server are those of all its namespaces.
    let name = format!("quotes-{}", namespace.name);
    let target = ["--target-task-queue", "quotes", "--target-namespace", &namespace.name];
    namespace.server.tool(&[&["operator", "nexus", "endpoint", "create", "--name", &name], &target[..]].concat());
    let app = namespace.serve(asks_another_service).await;
    let run = app.start(asks_another_service, name.clone()).id("run").await.unwrap();
    let told = within("it ends", run.result()).await.unwrap();
    assert!(told.starts_with("Quotes ") && told.contains("timed out"), "{told}");
    let scheduled = attributes(&namespace.events("run"), "NEXUS_OPERATION_SCHEDULED");
    assert_eq!((&scheduled["endpoint"], &scheduled["operation"]), (&name.into(), &"quote".into()));
    app.shutdown().await;
}

#[activity]
async fn slow(ctx: ActivityCtx) -> Result<(), Failure> {
    Err(ctx.cancelled().await.into())
}

/// Begins operations that do not end, and does not wait for them.
#[workflow]
async fn loses_patience(ctx: Ctx, endpoint: String) -> Result<u32, Failure> {
    let mut lost = 0;
    let patience = || ctx.sleep(secs(3));
    lost += u32::from(matches!(ctx.race(ctx.call_local(slow, ()), patience()).await?, Second(())));
    lost += u32::from(matches!(ctx.race(ctx.child(child, 1).id("the-child"), patience()).await?, Second(())));
    let asked = ctx.nexus::<_, u64>(endpoint, "Quotes", "quote", &"lamp");
    lost += u32::from(matches!(ctx.race(asked, patience()).await?, Second(())));
    drop(ctx.signal_external("no-such-run", GO, 1));
    ctx.sleep(millis(1)).await?;
    Ok(lost)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_lose_a_race_are_cancelled() {
    let namespace = Namespace::new();
    let name = format!("patience-{}", namespace.name);
    let target = ["--target-task-queue", "quotes", "--target-namespace", &namespace.name];
    namespace.server.tool(&[&["operator", "nexus", "endpoint", "create", "--name", &name], &target[..]].concat());
    let app = namespace.serve((loses_patience, child, slow)).await;
    let run = app.start(loses_patience, name).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(3));
    let ended = within("it ends", app.handle(child, "the-child").result()).await;
    assert!(matches!(ended, Err(Error::Run { status: Status::Cancelled, .. })), "{ended:?}");
    let events = namespace.events("run");
    attributes(&events, "NEXUS_OPERATION_CANCEL_REQUESTED");
    attributes(&events, "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED");
    let local = attributes(&events, "MARKER_RECORDED");
    assert!(local["failure"]["canceledFailureInfo"].is_object(), "{local}");
    let signals = namespace.event_types("run").iter().filter(|event| event.starts_with("SIGNAL_EXTERNAL")).count();
    assert_eq!(signals, 0, "a signal that is cancelled at once is not sent");
    app.shutdown().await;
}

/// Adds up numbers by a handler, and returns the sum when it is told to.
async fn sum_of(ctx: Ctx) -> Result<u64, Failure> {
    let sum = ctx.cell(0_u64);
    let returned = ctx.cell(0_u64);
    let asked = returned.clone();
    ctx.on_query(RETURNED, move |()| Ok(asked.read(|sum| *sum)));
    let added = sum.clone();
    ctx.on_signal(ADD, move |n| {
        let added = added.clone();
        async move {
            added.update(|sum| *sum += n);
            Ok(())
        }
    });
    ctx.next_signal(GO).await?;
    let sum = sum.read(|sum| *sum);
    returned.update(|returned| *returned = sum);
    Ok(sum)
}

mod root_first {
    use super::*;

    #[workflow(order = "root_first")]
    pub(super) async fn sums(ctx: Ctx) -> Result<u64, Failure> {
        sum_of(ctx).await
    }
}

mod handlers_first {
    use super::*;

    #[workflow(order = "handlers_first")]
    pub(super) async fn sums(ctx: Ctx) -> Result<u64, Failure> {
        sum_of(ctx).await
    }
}

/// Sends a number and the signal to return, to be played in one task.
async fn add_and_go(client: &dacapo::Connection) {
    let run = client.handle(handlers_first::sums, "run");
    run.signal(ADD, 5).await.unwrap();
    run.signal(GO, 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_of_units_that_a_start_pins_is_kept_by_every_replay() {
    for (order, sum) in [(dacapo::Order::RootFirst, 0), (dacapo::Order::HandlersFirst, 5)] {
        let namespace = Namespace::new();
        let client = Dacapo::connect(&namespace.url).await.unwrap();
        let pins = dacapo::Pins { order, ..dacapo::Pins::default() };
        client.start(handlers_first::sums, ()).id("run").pins(pins).await.unwrap();
        add_and_go(&client).await;
        // Code of the other order.
        let app = match order {
            dacapo::Order::RootFirst => namespace.serve(handlers_first::sums).await,
            dacapo::Order::HandlersFirst => namespace.serve(root_first::sums).await,
        };
        let run = client.handle(handlers_first::sums, "run");
        assert_eq!(within("it ends", run.result()).await, Ok(sum), "{order:?}");
        // A closed run has left memory, so it is played again to answer.
        crate::wait("it leaves memory", async || (app.runs_in_memory() == 0).then_some(())).await;
        assert_eq!(within("it answers", run.query(RETURNED, ())).await, Ok(sum), "{order:?}");
        let completed = attributes(&namespace.events("run"), "WORKFLOW_TASK_COMPLETED");
        let flags = completed["sdkMetadata"]["langUsedFlags"].to_string();
        assert_eq!(flags.contains("100"), order == dacapo::Order::RootFirst, "{flags}");
        app.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_began_in_one_order_goes_on_in_it_under_code_of_the_other() {
    for (began_root_first, sum) in [(true, 0), (false, 5)] {
        let namespace = Namespace::new();
        let client = Dacapo::connect(&namespace.url).await.unwrap();
        let app = match began_root_first {
            true => namespace.serve(root_first::sums).await,
            false => namespace.serve(handlers_first::sums).await,
        };
        let run = client.start(handlers_first::sums, ()).id("run").await.unwrap();
        described("it waits", &run, |run| run.turns == 1).await;
        app.shutdown().await;
        add_and_go(&client).await;
        let app = match began_root_first {
            true => namespace.serve(handlers_first::sums).await,
            false => namespace.serve(root_first::sums).await,
        };
        assert_eq!(within("it ends", run.result()).await, Ok(sum), "it began root first: {began_root_first}");
        app.shutdown().await;
    }
}

#[workflow]
async fn calls_without_a_limit(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(ends_at_once, ()).await
}

#[activity]
async fn ends_at_once() -> Result<u64, Failure> {
    Ok(1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activity_without_a_timeout_gets_the_start_to_close_timeout_of_the_url() {
    for (parameter, timeout) in [("", "600s"), ("?start_to_close=90s", "90s")] {
        let namespace = Namespace::new();
        let opened = Dacapo::open(&format!("{}{parameter}", namespace.url)).await.unwrap();
        let app = opened.serve((calls_without_a_limit, ends_at_once)).await.unwrap();
        let run = app.start(calls_without_a_limit, ()).id("run").await.unwrap();
        assert_eq!(within("it ends", run.result()).await, Ok(1));
        let scheduled = attributes(&namespace.events("run"), "ACTIVITY_TASK_SCHEDULED");
        assert_eq!(scheduled["startToCloseTimeout"], timeout);
        app.shutdown().await;
    }
}

/// Starts a child with all options, and another one of the same workflow id.
#[workflow]
async fn starts_twins(ctx: Ctx) -> Result<String, Failure> {
    let twin = || {
        let call = ctx.child(ends_early, ()).id("twin").id_reuse(IdReuse::RejectDuplicate);
        call.priority(Priority { key: 2, ..Priority::default() }).with(|child| {
            child.memo.insert("order".into(), dacapo::Payload::json("42"));
            child.search_attributes.insert("city".into(), "Lisboa".into());
        })
    };
    twin().await?;
    let refused = twin().await.unwrap_err();
    Ok(refused.chain().filter_map(|link| link.type_name.clone()).map(|name| name.to_string()).collect())
}

#[workflow]
async fn ends_early(_ctx: Ctx) -> Result<(), Failure> {
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_keeps_its_memo_attributes_priority_and_rule_for_its_id() {
    let namespace = Namespace::new();
    let app = namespace.serve((starts_twins, ends_early)).await;
    let run = app.start(starts_twins, ()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("AlreadyExists"));
    let initiated = attributes(&namespace.events("run"), "START_CHILD_WORKFLOW_EXECUTION_INITIATED");
    assert_eq!(initiated["workflowIdReusePolicy"], "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE");
    assert_eq!(initiated["priority"]["priorityKey"], 2);
    let twin = app.handle(ends_early, "twin").describe().await.unwrap();
    assert_eq!(app.decode::<u64>(&twin.memo["order"]), Ok(42));
    assert_eq!(twin.attributes.get("city"), Some(&"Lisboa".into()));
    app.shutdown().await;
}

#[workflow]
async fn moves_to_the_night(ctx: Ctx, round: u64) -> Result<u64, Failure> {
    match round {
        0 => Err(ctx.continue_as_new_with(moves_to_the_night, 1, |next| {
            next.queue = Some("night".into());
            next.retry = Some(Retry::exponential().attempts(3).first_pause(millis(20)));
        })),
        _ => Ok(round),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_continues_as_new_keeps_the_queue_and_retry_policy_that_it_names() {
    let namespace = Namespace::new();
    let opened = namespace.open().await.queue("default").queue("night");
    let app = opened.serve(moves_to_the_night).await.unwrap();
    let run = app.start(moves_to_the_night, 0).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(1));
    let started = attributes(&namespace.events("run"), "WORKFLOW_EXECUTION_STARTED");
    assert_eq!(started["taskQueue"]["name"], "night");
    assert_eq!(started["retryPolicy"]["maximumAttempts"], 3);
    app.shutdown().await;
}

const STOP: Signal<()> = Signal::new("stop");
const RAISE: Update<u64, u64> = Update::new("raise");

/// Continues as new while a handler waits for the signal `go`, and waits for that handler.
#[workflow(unfinished_handlers = "wait")]
async fn waits_for_its_handler(ctx: Ctx, round: u64) -> Result<u64, Failure> {
    let inside = ctx.clone();
    ctx.on_update(
        RAISE,
        |_| Ok(()),
        move |n| {
            let ctx = inside.clone();
            async move { Ok(n + ctx.next_signal(GO).await?) }
        },
    );
    if round == 1 {
        return Ok(round);
    }
    ctx.next_signal(STOP).await?;
    Err(ctx.continue_as_new(waits_for_its_handler, 1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn update_to_a_run_that_waits_for_its_handlers_to_continue_as_new_is_rejected_at_once() {
    let namespace = Namespace::new();
    let app = namespace.serve(waits_for_its_handler).await;
    let run = app.start(waits_for_its_handler, 0).id("run").await.unwrap();
    let first = run.update(RAISE, 40).accepted().await.unwrap();
    let before = run.describe().await.unwrap().turns;
    run.signal(STOP, ()).await.unwrap();
    described("it has returned", &run, |run| run.turns > before).await;
    let rejected = within("it is answered", run.update(RAISE, 1).into_future()).await.unwrap_err().to_string();
    assert!(rejected.contains("continued as new before update \"raise\" of id "), "{rejected}");
    assert!(run.describe().await.unwrap().status.is_open(), "the handler has not ended");
    run.signal(GO, 2).await.unwrap();
    assert_eq!(within("it is answered", first.answer()).await, Ok(42));
    assert_eq!(within("it ends", run.result()).await, Ok(1));
    app.shutdown().await;
}
