//! The map of docs/border.md on a real server, field by field: what goes there, and what comes back.

use dacapo::prelude::*;
use dacapo::{
    AttributeValue, FailureKind, ParentClose, Payload, Priority, Query, QueueSettings, TimeoutKind, Timestamp,
};

use crate::commands::attributes;
use crate::{Namespace, wait, within};

const CITY: Attr<String> = Attr::new("city");
const ROOMS: Attr<i64> = Attr::new("rooms");
const PRICE: Attr<f64> = Attr::new("price");
const SOLD: Attr<bool> = Attr::new("sold");
const BUILT: Attr<Timestamp> = Attr::new("built");
const TAGS: Attr<Vec<String>> = Attr::new("tags");

/// A whole second: the server's index has no finer time.
const YEAR_2000: Timestamp = Timestamp(946_684_800 * 1_000_000_000);
const YEAR_2001: Timestamp = Timestamp(978_307_200 * 1_000_000_000);

fn tags(of: &[&str]) -> Vec<String> {
    of.iter().map(|&tag| tag.to_owned()).collect()
}

/// Returns the attributes that its start set, and sets others.
#[workflow]
async fn is_sold(ctx: Ctx) -> Result<String, Failure> {
    let seen = (ctx.attr(CITY), ctx.attr(ROOMS), ctx.attr(PRICE), ctx.attr(SOLD), ctx.attr(BUILT), ctx.attr(TAGS));
    ctx.set_attr(CITY, "Porto".into());
    ctx.set_attr(ROOMS, -3);
    ctx.set_attr(PRICE, 0.25);
    ctx.set_attr(SOLD, true);
    ctx.set_attr(BUILT, YEAR_2001);
    ctx.set_attr(TAGS, tags(&["river", "light"]));
    Ok(format!("{seen:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_of_every_kind_go_to_the_server_and_come_back() {
    let namespace = Namespace::new();
    namespace.server.add_attributes(&namespace.name);
    let app = namespace.serve(is_sold).await;
    let start = app.start(is_sold, ()).id("run").attr(CITY, "Lisboa".into()).attr(ROOMS, 5).attr(PRICE, 2.5);
    let run = start.attr(SOLD, false).attr(BUILT, YEAR_2000).attr(TAGS, tags(&["garden"])).await.unwrap();
    let seen = within("it ends", run.result()).await.unwrap();
    let expected = (Some("Lisboa"), Some(5), Some(2.5), Some(false), Some(YEAR_2000), Some(["garden"]));
    assert_eq!(seen, format!("{expected:?}"));
    let expected: [(&str, AttributeValue); 6] = [
        ("built", YEAR_2001.into()),
        ("city", "Porto".into()),
        ("price", 0.25.into()),
        ("rooms", (-3_i64).into()),
        ("sold", true.into()),
        ("tags", tags(&["river", "light"]).into()),
    ];
    let described = run.describe().await.unwrap();
    for (name, value) in expected {
        assert_eq!(described.attributes.get(name), Some(&value), "{name}");
    }
    // The server indexes them as what they are.
    let query = "city = 'Porto' AND rooms < 0 AND price < 0.5 AND sold = true AND built > '2000-06-01T00:00:00Z' AND tags = 'river'";
    let listed = async || Some(()).filter(|()| namespace.tool(&["workflow", "list", "--query", query]).contains("run"));
    wait("it is found", listed).await;
    app.shutdown().await;
}

#[activity]
async fn echo(ctx: ActivityCtx, word: String) -> Result<String, Failure> {
    let tenant: String = dacapo::decode(&ctx.info().headers["tenant"]).expect("it is a text");
    Ok(format!("{word} for {tenant}"))
}

fn fair() -> Priority {
    Priority { key: 2, fairness_key: Some("ada".into()), fairness_weight: Some(2.5) }
}

#[workflow]
async fn sees_its_priority(ctx: Ctx) -> Result<String, Failure> {
    let terms = ctx.info().start.terms.clone().unwrap_or_default();
    Ok(format!("{:?}", terms.priority))
}

#[workflow]
async fn shares_fairly(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(echo, "lamp".into()).priority(fair()).header("tenant", "ada").await?;
    ctx.child(sees_its_priority, ()).priority(fair()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fairness_key_and_weight_reach_the_server_and_the_child() {
    let namespace = Namespace::new();
    let app = namespace.serve((shares_fairly, sees_its_priority, echo)).await;
    let run = app.start(shares_fairly, ()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(format!("{:?}", fair())));
    let events = namespace.events("run");
    for kind in ["ACTIVITY_TASK_SCHEDULED", "START_CHILD_WORKFLOW_EXECUTION_INITIATED"] {
        let priority = &attributes(&events, kind)["priority"];
        let fields = ["priorityKey", "fairnessKey", "fairnessWeight"].map(|name| priority[name].to_string());
        assert_eq!(fields, ["2", "\"ada\"", "2.5"], "{kind}");
    }
    app.shutdown().await;
}

const LAST: Query<(), Option<u64>> = Query::new("last");
const GO: Signal<()> = Signal::new("go");

/// Returns 7. A later run of its cron line waits.
#[workflow]
async fn recurs(ctx: Ctx) -> Result<u64, Failure> {
    let lineage = ctx.info().start.lineage.clone().unwrap_or_default();
    let last = lineage.last_result.first().map(|last| ctx.decode::<u64>(last)).transpose()?;
    ctx.on_query(LAST, move |()| Ok(last));
    if last.is_some() {
        ctx.next_signal(GO).await?;
    }
    Ok(7)
}

#[workflow]
async fn fails_twice(ctx: Ctx) -> Result<u32, Failure> {
    match ctx.info().start.attempt {
        3 => Ok(3),
        attempt => Err(format!("attempt {attempt} failed").into()),
    }
}

#[workflow]
async fn has_children_that_come_again(ctx: Ctx) -> Result<u32, Failure> {
    let recurring = ctx.child(recurs, ()).id("recurs").parent_close(ParentClose::Abandon);
    let started = recurring.with(|child| child.cron = Some("@every 1s".into())).started().await?;
    started.detach();
    ctx.child(fails_twice, ()).retry(Retry::exponential().first_pause(millis(10)).attempts(3)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_with_a_cron_line_or_a_retry_policy_is_run_again() {
    let namespace = Namespace::new();
    let app = namespace.serve((has_children_that_come_again, recurs, fails_twice)).await;
    let run = app.start(has_children_that_come_again, ()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(3));
    let initiated = attributes(&namespace.events("run"), "START_CHILD_WORKFLOW_EXECUTION_INITIATED");
    assert_eq!(initiated["cronSchedule"], "@every 1s");
    let again = app.handle(recurs, "recurs");
    let last = wait("it recurs", async || again.query(LAST, ()).await.ok().flatten()).await;
    assert_eq!(last, 7, "a run knows the result of the one before");
    again.terminate("not needed").await.unwrap();
    app.shutdown().await;
}

#[workflow]
async fn goes_on(ctx: Ctx, round: u64) -> Result<String, Failure> {
    if round == 0 {
        return Err(ctx.continue_as_new_with(goes_on, 1, |next| {
            next.run_timeout = Some(secs(100));
            next.task_timeout = Some(secs(7));
            next.headers.insert("tenant".into(), Payload::json("\"ada\""));
        }));
    }
    let start = ctx.info().start;
    let (tenant, terms) = (ctx.decode::<String>(&start.headers["tenant"])?, start.terms.clone().unwrap_or_default());
    Ok(format!("{tenant} {:?} {:?}", terms.run_timeout, terms.task_timeout))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_continues_as_new_keeps_the_headers_and_timeouts_that_it_names() {
    let namespace = Namespace::new();
    let app = namespace.serve(goes_on).await;
    let run = app.start(goes_on, 0).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("ada Some(100s) Some(7s)"));
    let started = attributes(&namespace.events("run"), "WORKFLOW_EXECUTION_STARTED");
    assert_eq!((&started["workflowRunTimeout"], &started["workflowTaskTimeout"]), (&"100s".into(), &"7s".into()));
    assert!(started["header"]["fields"]["tenant"].is_object());
    app.shutdown().await;
}

#[activity]
async fn takes_a_second() -> Result<(), Failure> {
    // sleep: longer than the timeouts of the calls.
    tokio::time::sleep(secs(1)).await;
    Ok(())
}

#[activity]
async fn fails() -> Result<(), Failure> {
    Err("not now".into())
}

/// The timeouts by which local activities have failed.
#[workflow]
async fn calls_locally(ctx: Ctx) -> Result<String, Failure> {
    let kind = |result: Result<(), Failure>| match &result.unwrap_err().root_cause().kind {
        FailureKind::Timeout(kind) => Some(*kind),
        _ => None,
    };
    let told = ctx.call_local(echo, "lamp".into()).header("tenant", "ada").await?;
    let short = ctx.call_local(takes_a_second, ()).start_to_close(millis(50)).retry(Retry::none()).await;
    let spent = Retry::exponential().first_pause(millis(10)).max_pause(millis(10));
    let spent = ctx.call_local(takes_a_second, ()).schedule_to_close(millis(300)).retry(spent).await;
    // Its worker runs one at a time.
    let first = ctx.call_local(takes_a_second, ());
    let second = ctx.call_local(fails, ()).schedule_to_start(millis(50)).retry(Retry::none());
    let (first, waited) = futures::future::join(first, second).await;
    first?;
    Ok(format!("{told}: {:?}, {:?}, {:?}", kind(short), kind(spent), kind(waited)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_activity_keeps_its_headers_and_each_of_its_timeouts() {
    let namespace = Namespace::new();
    let one = |queue: QueueSettings| queue.max_concurrent_activities(1);
    let opened = namespace.open().await.settings(|app| app.every_queue(one));
    let app = opened.serve((calls_locally, echo, takes_a_second, fails)).await.unwrap();
    let run = app.start(calls_locally, ()).id("run").await.unwrap();
    let [short, spent, waited] =
        [TimeoutKind::StartToClose, TimeoutKind::ScheduleToClose, TimeoutKind::ScheduleToStart];
    let expected = format!("lamp for ada: {:?}, {:?}, {:?}", Some(short), Some(spent), Some(waited));
    assert_eq!(within("it ends", run.result()).await, Ok(expected));
    app.shutdown().await;
}
