//! Temporal's own command line tool on runs of ours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dacapo::Query;
use dacapo::prelude::*;

use crate::{Namespace, described, within};

const ADD: Signal<u64> = Signal::new("add");
const SET: Update<u64, u64> = Update::new("set");

/// The line of the only call below.
const CALLED_AT: u32 = line!() + 20;

#[activity]
async fn double(n: u64) -> Result<u64, Failure> {
    Ok(n * 2)
}

#[workflow]
async fn adds(ctx: Ctx) -> Result<u64, Failure> {
    let sum = ctx.cell(0_u64);
    let set = sum.clone();
    ctx.on_update(
        SET,
        |n| if *n < 100 { Ok(()) } else { Err(format!("{n} is too large").into()) },
        move |n| {
            let set = set.clone();
            async move { Ok(set.update(|sum| std::mem::replace(sum, n))) }
        },
    );
    let n = ctx.next_signal(ADD).await?;
    let first = ctx.call(double, n).summary("the first number").await?;
    sum.update(|sum| *sum += first);
    let second = ctx.next_signal(ADD).await?;
    Ok(sum.read(|sum| *sum) + second)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stack_shows_what_each_unit_waits_for_and_where() {
    let namespace = Namespace::new();
    let app = namespace.serve((adds, double)).await;
    app.start(adds, ()).id("run").await.unwrap();
    let stack = namespace.tool(&["workflow", "stack", "--workflow-id", "run"]);
    assert!(stack.contains("the root unit") && stack.contains("waits for signal add"), "{stack}");
    assert!(stack.contains("examples/tests/cluster/tools.rs:"), "{stack}");
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn summary_and_call_site_of_an_activity_are_in_the_servers_history() {
    let namespace = Namespace::new();
    let app = namespace.serve((adds, double)).await;
    let run = app.start(adds, ()).id("run").await.unwrap();
    run.signal(ADD, 1).await.unwrap();
    run.signal(ADD, 1).await.unwrap();
    within("it ends", run.result()).await.unwrap();
    let events = namespace.events("run");
    let scheduled = events.iter().find(|event| event["eventType"] == "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED").unwrap();
    let metadata = |field: &str| BASE64.decode(scheduled["userMetadata"][field]["data"].as_str().unwrap()).unwrap();
    assert_eq!(metadata("summary"), b"\"the first number\"");
    let details = String::from_utf8(metadata("details")).unwrap();
    let line = details.strip_prefix("\"at examples/tests/cluster/tools.rs:").and_then(|place| place.split(':').next());
    assert_eq!(line.and_then(|line| line.parse().ok()), Some(CALLED_AT), "{details}");
    let story = run.history().await.unwrap().to_text();
    assert!(story.contains("double(1), summary: the first number"), "{story}");
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_the_tool_resets_is_played_from_there() {
    let namespace = Namespace::new();
    let app = namespace.serve((adds, double)).await;
    let run = app.start(adds, ()).id("run").await.unwrap();
    described("it waits", &run, |run| run.turns == 1).await;
    run.signal(ADD, 4).await.unwrap();
    described("it has doubled", &run, |run| run.turns == 3).await;
    let of_first_task =
        namespace.events("run").iter().position(|event| event["eventType"] == "EVENT_TYPE_WORKFLOW_TASK_COMPLETED");
    let event_id = (of_first_task.unwrap() + 1).to_string();
    let reset = ["workflow", "reset", "--workflow-id", "run", "--event-id", &event_id, "--reason", "once more"];
    namespace.tool(&reset);
    let again = run.latest();
    again.signal(ADD, 34).await.unwrap();
    assert_eq!(within("it ends", again.result()).await, Ok(42));
    let story = again.history().await.unwrap().to_text();
    assert!(story.contains("the run was reset"), "{story}");
    app.shutdown().await;
}

const DRAWN: Query<(), Vec<u64>> = Query::new("drawn");

/// Draws a random number at its start and one after each of two signals.
#[workflow]
async fn draws(ctx: Ctx) -> Result<Vec<u64>, Failure> {
    let drawn = ctx.cell(vec![ctx.random_u64()]);
    let asked = drawn.clone();
    ctx.on_query(DRAWN, move |()| Ok(asked.read(Clone::clone)));
    for _ in 0..2 {
        ctx.next_signal(ADD).await?;
        let number = ctx.random_u64();
        drawn.update(|drawn| drawn.push(number));
    }
    Ok(drawn.read(Clone::clone))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_the_tool_resets_draws_other_numbers_from_there() {
    let namespace = Namespace::new();
    let app = namespace.serve(draws).await;
    let run = app.start(draws, ()).id("run").await.unwrap();
    described("it waits", &run, |run| run.turns == 1).await;
    run.signal(ADD, 4).await.unwrap();
    described("it has drawn again", &run, |run| run.turns == 2).await;
    let before = within("it answers", run.query(DRAWN, ())).await.unwrap();
    let last_task =
        namespace.events("run").iter().rposition(|event| event["eventType"] == "EVENT_TYPE_WORKFLOW_TASK_COMPLETED");
    let event_id = (last_task.unwrap() + 1).to_string();
    namespace.tool(&["workflow", "reset", "--workflow-id", "run", "--event-id", &event_id, "--reason", "once more"]);
    let again = run.latest();
    again.signal(ADD, 34).await.unwrap();
    let drawn = within("it ends", again.result()).await.unwrap();
    assert_eq!((before.len(), drawn.len(), drawn[0]), (2, 3, before[0]), "what came before the reset is kept");
    assert_ne!(drawn[1], before[1]);
    // A replay draws the same.
    assert_eq!(within("it answers", again.query(DRAWN, ())).await, Ok(drawn));
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_starts_signals_and_updates_a_run_and_shows_its_result() {
    let namespace = Namespace::new();
    let app = namespace.serve((adds, double)).await;
    namespace.tool(&["workflow", "start", "--type", "adds", "--task-queue", "default", "--workflow-id", "run"]);
    let update = ["workflow", "update", "execute", "--workflow-id", "run", "--name", "set", "--input", "36"];
    let printed = namespace.tool(&update);
    let words: Vec<&str> = printed.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair == ["Result", "0"]), "{printed}");
    let updates = |history: &[String]| history.iter().filter(|event| event.contains("UPDATE")).count();
    let before = updates(&namespace.event_types("run"));
    let run = app.handle(adds, "run");
    let rejected = run.update(SET, 100).await.unwrap_err().to_string();
    assert!(rejected.contains("100 is too large"), "{rejected}");
    assert_eq!(updates(&namespace.event_types("run")), before, "a rejected update leaves no trace");
    for n in ["1", "4"] {
        namespace.tool(&["workflow", "signal", "--workflow-id", "run", "--name", "add", "--input", n]);
    }
    assert_eq!(within("it ends", run.result()).await, Ok(42));
    assert!(namespace.tool(&["workflow", "result", "--workflow-id", "run"]).contains("42"));
    app.shutdown().await;
}
