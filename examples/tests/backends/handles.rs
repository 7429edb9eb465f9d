//! Handles: starting, ending, describing and listing runs.

use dacapo::prelude::*;
use dacapo::{ClientError, Error, EventKind, Feature, OperationKind};

use crate::{Backend, described, wait};

const GO: Signal<u32> = Signal::new("go");

#[workflow]
async fn waits(ctx: Ctx) -> Result<u32, Failure> {
    ctx.next_signal(GO).await
}

pub(crate) async fn start_with_one_request_id_is_one_start(backend: &Backend) {
    let app = backend.serve(waits).await;
    let first = app.start(waits, ()).id("a").request_id("order-1").await.unwrap();
    let again = app.start(waits, ()).id("a").request_id("order-1").await.unwrap();
    assert_eq!((first.is_new(), again.is_new()), (true, false));
    assert_eq!(first.run_id(), again.run_id());
    first.signal(GO, 1).await.unwrap();
    assert_eq!(again.result().await, Ok(1));
    app.shutdown().await;
}

pub(crate) async fn workflow_id_in_use_is_refused_or_reused(backend: &Backend) {
    let app = backend.serve(waits).await;
    let run = app.start(waits, ()).id("a").await.unwrap();
    let refused = app.start(waits, ()).id("a").await.unwrap_err();
    assert!(matches!(&refused, Error::Client(ClientError::WorkflowIdInUse { .. })), "{refused}");
    let existing = app.start(waits, ()).id("a").id_conflict(IdConflict::UseExisting).await.unwrap();
    assert_eq!(existing.run_id(), run.run_id());
    let next = app.start(waits, ()).id("a").id_conflict(IdConflict::TerminateExisting).await.unwrap();
    assert!(next.is_new());
    assert!(matches!(run.result().await, Err(Error::Run { status: Status::Terminated, .. })));
    next.terminate("done").await.unwrap();
    app.shutdown().await;
}

#[workflow]
async fn cleans_up(ctx: Ctx) -> Result<u32, Failure> {
    match ctx.next_signal(GO).await {
        Err(cancelled) => {
            ctx.shield(ctx.sleep(millis(1))).await?;
            Err(cancelled)
        }
        done => done,
    }
}

pub(crate) async fn run_that_is_cancelled_cleans_up(backend: &Backend) {
    let app = backend.serve(cleans_up).await;
    let run = app.start(cleans_up, ()).await.unwrap();
    run.cancel("too late").await.unwrap();
    let Err(Error::Run { status, failure, .. }) = run.result().await else { panic!("it is cancelled") };
    assert_eq!(status, Status::Cancelled);
    assert!(failure.to_string().contains("too late"), "{failure}");
    let slept = |event: &dacapo::HistoryEvent| matches!(&event.kind, EventKind::OperationStarted(start) if start.operation == OperationKind::Timer);
    assert_eq!(run.history().await.unwrap().iter().filter(|event| slept(event)).count(), 1, "the shield held");
    app.shutdown().await;
}

pub(crate) async fn run_that_is_terminated_ends_at_once(backend: &Backend) {
    let app = backend.serve(waits).await;
    let run = app.start(waits, ()).await.unwrap();
    run.terminate("by hand").await.unwrap();
    let Err(Error::Run { status, failure, .. }) = run.result().await else { panic!("it is terminated") };
    assert_eq!((status, failure.message.as_str()), (Status::Terminated, "by hand"));
    let refused = run.signal(GO, 1).await.unwrap_err();
    assert!(matches!(&refused, Error::Client(ClientError::Closed { .. })), "{refused}");
    app.shutdown().await;
}

pub(crate) async fn run_is_described_listed_and_counted(backend: &Backend) {
    let app = backend.serve(waits).await;
    for id in ["a", "b", "c"] {
        app.start(waits, ()).id(id).memo("of", id).await.unwrap();
    }
    app.handle(waits, "a").signal(GO, 1).await.unwrap();
    app.handle(waits, "a").result().await.unwrap();
    let described = described(&app.handle(waits, "b"), |run| run.turns == 1).await;
    assert_eq!((described.workflow.as_str(), described.status, described.turns), ("waits", Status::Open, 1));
    let of: String = dacapo::decode(&described.memo["of"]).unwrap();
    assert_eq!(of, "b");
    // What some backends list is a moment older than what they know.
    let open = async || Some(app.runs().count(&Filter::open()).await.unwrap()).filter(|open| *open == 2);
    assert_eq!(wait(open).await, 2);
    let page = app.runs().list(&Filter::all(), 2).await.unwrap();
    let next = app.runs().list_from(&Filter::all(), page.next.clone().expect("there is more"), 2).await.unwrap();
    let ids: Vec<&str> = page.runs.iter().chain(&next.runs).map(|run| run.workflow_id.as_str()).collect();
    assert_eq!(ids, ["c", "b", "a"]);
    assert_eq!(next.next, None);
    app.shutdown().await;
}

pub(crate) async fn start_without_a_queue_goes_to_default_or_to_the_first_one_named(backend: &Backend) {
    let queue_of = async |queues: [&'static str; 2], id: &str| {
        let app = backend.open().await.queue(queues[0]).queue(queues[1]).serve(waits).await.unwrap();
        let run = app.start(waits, ()).id(id).await.unwrap();
        let queue = run.describe().await.unwrap().queue;
        run.signal(GO, 1).await.unwrap();
        assert_eq!(run.result().await, Ok(1));
        app.shutdown().await;
        queue
    };
    assert_eq!(queue_of(["bulk", "default"], "a").await.as_str(), "default");
    assert_eq!(queue_of(["slow", "bulk"], "b").await.as_str(), "slow");
}

#[activity]
async fn double(n: u32) -> Result<u32, Failure> {
    Ok(n * 2)
}

#[workflow]
async fn doubles(ctx: Ctx) -> Result<u32, Failure> {
    let n = ctx.next_signal(GO).await?;
    ctx.call(double, n).await
}

pub(crate) async fn history_tells_what_happened(backend: &Backend) {
    let app = backend.serve((doubles, double)).await;
    let run = app.start(doubles, ()).await.unwrap();
    run.signal(GO, 4).await.unwrap();
    assert_eq!(run.result().await, Ok(8));
    let told: Vec<&str> = run.history().await.unwrap().iter().map(|event| word(&event.kind)).collect();
    assert_eq!(told, ["started", "signalled", "operation started", "operation ended", "closed"]);
    app.shutdown().await;
}

pub(crate) async fn transcript_is_the_same_by_handle_and_by_workflow_id(backend: &Backend) {
    let app = backend.serve((doubles, double)).await;
    let run = app.start(doubles, ()).id("a").await.unwrap();
    run.signal(GO, 4).await.unwrap();
    run.result().await.unwrap();
    let transcript = app.runs().transcript("a").await.unwrap();
    assert_eq!((transcript.workflow.as_str(), transcript.turns.is_empty()), ("doubles", false));
    assert_eq!(transcript, run.transcript().await.unwrap());
    app.shutdown().await;
}

/// Of several processes each sees all, and itself as the one that answers.
pub(crate) async fn process_that_serves_is_listed(backend: &Backend) {
    let app = backend.serve((doubles, double)).await;
    if app.capabilities().has(Feature::Nodes) {
        let nodes = app.nodes().await.unwrap();
        let [node] = &nodes[..] else { panic!("one process serves: {nodes:?}") };
        assert!(node.answers && !node.name.is_empty() && !node.build.is_empty(), "{node:?}");
        assert_eq!(node.queues, ["default"]);
        assert_eq!(node.shards.is_some(), node.lease.is_some());
    }
    app.shutdown().await;
}

/// A backend refuses the calls of a feature if and only if it does not list the feature.
pub(crate) async fn capabilities_say_which_calls_are_refused(backend: &Backend) {
    let app = backend.serve((doubles, double)).await;
    let run = app.start(doubles, ()).id("a").await.unwrap();
    run.signal(GO, 4).await.unwrap();
    run.result().await.unwrap();
    let runs = app.runs();
    let answers = [
        (Feature::ResultOrStuck, run.result_or_stuck().await.map(drop)),
        (Feature::StuckRuns, runs.stuck_runs().await.map(drop)),
        (Feature::StuckRuns, runs.count(&Filter::stuck()).await.map(drop)),
        (Feature::Inspection, run.inspect().await.map(drop)),
        (Feature::Quarantine, run.release().await),
        (Feature::Verification, runs.verify(|_| {}).await.map(drop)),
        (Feature::Archive, runs.export(&Filter::all(), Vec::new()).await.map(drop)),
        (Feature::Backup, runs.back_up(backend.folder.path().join("copy.db")).await),
        (Feature::Deletion, run.delete().await),
        (Feature::Nodes, app.nodes().await.map(drop)),
    ];
    for (feature, answer) in answers {
        let lacks = |error: &Error| matches!(error, Error::Client(ClientError::Unsupported { feature: lacks, .. }) if *lacks == feature);
        let is_refused = answer.as_ref().is_err_and(lacks);
        assert_eq!(app.capabilities().has(feature), !is_refused, "{feature}: {answer:?}");
    }
    app.shutdown().await;
}

fn word(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Started { .. } => "started",
        EventKind::Signalled { .. } => "signalled",
        EventKind::OperationStarted { .. } => "operation started",
        EventKind::OperationEnded { .. } => "operation ended",
        EventKind::Closed { .. } => "closed",
        _ => "another event",
    }
}

#[workflow]
async fn fails(_ctx: Ctx) -> Result<(), Failure> {
    Err(Failure::application("no luck").typed("Luck"))
}

pub(crate) async fn result_of_a_failed_run_is_its_failure(backend: &Backend) {
    let app = backend.serve(fails).await;
    let Err(Error::Run { status, failure, .. }) = app.start(fails, ()).await.unwrap().result().await else {
        panic!("it fails")
    };
    assert_eq!((status, failure.message.as_str()), (Status::Failed, "no luck"));
    assert_eq!(failure.type_name.as_ref().map(|name| name.as_str()), Some("Luck"));
    app.shutdown().await;
}
