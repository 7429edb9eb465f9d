//! Local work that waits for its next attempt when its run leaves memory: the workflow has not cancelled it, so it is not cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dacapo::prelude::*;
use dacapo::{App, FailureKind, QueueSettings};
use tokio::sync::Semaphore;

use crate::{Namespace, described, wait, within};

const GO: Signal<()> = Signal::new("go");

/// A service that does not answer until the test lets it.
#[derive(Default)]
struct Service {
    is_up: AtomicBool,
    calls: AtomicUsize,
}

#[activities]
impl Service {
    #[activity]
    async fn ask(self: Arc<Self>) -> Result<String, Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.is_up.load(Ordering::SeqCst) { Ok("here".into()) } else { Err("no answer".into()) }
    }
}

/// Its pause is one that the server's core waits itself.
#[workflow]
async fn asks(ctx: Ctx) -> Result<String, Failure> {
    ctx.call_local(Service::ask, ()).retry(Retry::exponential().first_pause(secs(30))).await
}

fn short_times(queue: QueueSettings) -> QueueSettings {
    queue.shutdown_grace_period(millis(50)).shutdown_force_timeout(millis(50))
}

/// Ends a worker while a local activity waits for its next attempt. Another worker ends the run.
async fn pause_outlives_its_worker(end: impl AsyncFnOnce(App)) {
    let (namespace, service) = (Namespace::new(), Arc::new(Service::default()));
    let opened = namespace.open().await.settings(|app| app.every_queue(short_times));
    let app = opened.serve((asks, service.clone())).await.unwrap();
    app.start(asks, ()).id("run").await.map(drop).unwrap();
    wait("it fails", async || (service.calls.load(Ordering::SeqCst) > 0).then_some(())).await;
    within("it ends", end(app)).await;
    service.is_up.store(true, Ordering::SeqCst);
    let next = namespace.serve((asks, service)).await;
    let run = next.handle(asks, "run");
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("here"));
    let markers = namespace.event_types("run").iter().filter(|event| *event == "MARKER_RECORDED").count();
    assert_eq!(markers, 1, "nothing but its result was recorded");
    next.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_activity_that_waits_at_a_shutdown_is_tried_by_the_next_worker() {
    pause_outlives_its_worker(async |app| drop(app.shutdown().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_activity_that_waits_when_its_worker_stops_is_tried_by_the_next_one() {
    pause_outlives_its_worker(async |app| app.stop().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_activity_that_waits_when_its_worker_is_dropped_is_tried_by_the_next_one() {
    pause_outlives_its_worker(async |app| drop(app)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_whose_local_activity_is_left_to_the_next_worker_is_not_stuck() {
    let (namespace, service) = (Namespace::new(), Arc::new(Service::default()));
    let opened = namespace.open().await.settings(|app| app.every_queue(short_times));
    let app = opened.serve((asks, service.clone())).await.unwrap();
    app.start(asks, ()).id("run").await.map(drop).unwrap();
    wait("it fails", async || (service.calls.load(Ordering::SeqCst) > 0).then_some(())).await;
    let client = dacapo::Dacapo::connect(&namespace.url).await.unwrap();
    app.shutdown().await;
    wait("its task is left", async || {
        namespace.event_types("run").iter().any(|event| event == "WORKFLOW_TASK_FAILED").then_some(())
    })
    .await;
    let left = client.handle(asks, "run").describe().await.unwrap();
    assert!(left.status.is_open() && left.stuck.is_none(), "{left:?}");
}

#[workflow]
async fn waits(ctx: Ctx) -> Result<(), Failure> {
    ctx.next_signal(GO).await
}

/// The server's core takes the run out of memory that was played the longest time ago, whatever it waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_activity_that_waits_when_its_run_leaves_memory_for_others_begins_anew() {
    let (namespace, service) = (Namespace::new(), Arc::new(Service::default()));
    let opened = namespace.open().await.settings(|app| app.cache_size(8));
    let app = opened.serve((asks, waits, service.clone())).await.unwrap();
    let run = app.start(asks, ()).id("run").await.unwrap();
    let calls = || service.calls.load(Ordering::SeqCst);
    wait("it fails", async || (calls() > 0).then_some(())).await;
    service.is_up.store(true, Ordering::SeqCst);
    wait("it is called again", async || {
        let others = futures::future::join_all((0..12).map(|_| app.start(waits, ()).into_future())).await;
        for other in others {
            described("it waits", &other.unwrap(), |run| run.turns > 0).await;
        }
        let is_open = run.describe().await.unwrap().status.is_open();
        (calls() > 1 || !is_open).then_some(())
    })
    .await;
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("here"));
    let types = namespace.event_types("run");
    let count = |kind: &str| types.iter().filter(|event| *event == kind).count();
    assert_eq!(count("MARKER_RECORDED"), 1, "nothing but its result was recorded");
    assert_eq!(count("WORKFLOW_TASK_FAILED"), 1, "it has left memory");
    app.stop().await;
}

static STOPPING: Semaphore = Semaphore::const_new(0);
static TIMES: AtomicUsize = AtomicUsize::new(0);
static TOLD: AtomicUsize = AtomicUsize::new(0);

/// Tells the side effect below that the worker shuts down.
#[activity]
async fn tells(ctx: ActivityCtx) -> Result<(), Failure> {
    if TOLD.fetch_add(1, Ordering::SeqCst) > 0 {
        return Ok(());
    }
    let cancelled = ctx.cancelled().await;
    // sleep: all attempts are asked to stop in the same moment, the side effect perhaps after this one.
    tokio::time::sleep(millis(100)).await;
    STOPPING.add_permits(1);
    Err(cancelled.into())
}

/// Its side effect ends as cancelled when it is told to, as one does that listens to the program's own end.
#[workflow]
async fn listens(ctx: Ctx) -> Result<usize, Failure> {
    let effect = || async {
        let times = TIMES.fetch_add(1, Ordering::SeqCst);
        if times == 0 {
            let _ = STOPPING.acquire().await;
            return Err(Failure::new(FailureKind::Cancelled, "the program ends".to_owned()));
        }
        Ok(times)
    };
    let (effect, told) = futures::future::join(ctx.side_effect("listens", effect), ctx.call_local(tells, ())).await;
    told?;
    effect
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn side_effect_that_a_shutdown_stops_is_done_by_the_next_worker() {
    let namespace = Namespace::new();
    let times = |queue: QueueSettings| queue.shutdown_grace_period(millis(50)).shutdown_force_timeout(secs(30));
    let opened = namespace.open().await.settings(|app| app.every_queue(times));
    let app = opened.serve((listens, tells)).await.unwrap();
    app.start(listens, ()).id("run").await.map(drop).unwrap();
    let have_begun = || TIMES.load(Ordering::SeqCst) > 0 && TOLD.load(Ordering::SeqCst) > 0;
    wait("they begin", async || have_begun().then_some(())).await;
    let report = within("it shuts down", app.shutdown()).await;
    assert_eq!((report.asked_to_stop, report.cut_off), (2, Vec::new()));
    let next = namespace.serve((listens, tells)).await;
    assert_eq!(within("it ends", next.handle(listens, "run").result()).await, Ok(1));
    next.shutdown().await;
}
