//! Many operations at once, code that does not return, and work that is under way at a shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dacapo::prelude::*;
use dacapo::{App, QueueSettings, StuckCause};
use tokio::sync::Semaphore;

use crate::{Namespace, described, wait, within};

#[activity]
async fn second_time(ctx: ActivityCtx, n: u64) -> Result<u64, Failure> {
    if ctx.info().attempt == 1 { Err("busy".into()) } else { Ok(n) }
}

/// Awaits a thousand local activities at once. Each fails once, and its pause is longer than the server's core waits itself.
#[workflow]
async fn a_thousand(ctx: Ctx) -> Result<u64, Failure> {
    let all = (0..1_000).map(|n| {
        let call = ctx.call_local(second_time, n).local_retry_threshold(millis(1));
        call.retry(Retry::exponential().first_pause(millis(200)))
    });
    let done: Vec<Result<u64, Failure>> = futures::future::join_all(all).await;
    done.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_local_activities_with_pauses_are_joined() {
    let namespace = Namespace::new();
    let app = namespace.serve((a_thousand, second_time)).await;
    let run = app.start(a_thousand, ()).id("all").await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok((0..1_000).sum()));
    let timers = namespace.event_types("all").iter().filter(|event| *event == "TIMER_STARTED").count();
    assert_eq!(timers, 1_000, "the pauses are timers of the run");
    let history = namespace.tool(&["workflow", "show", "--workflow-id", "all", "--output", "json"]);
    dacapo::temporal::replay(a_thousand, &history).unwrap();
    app.shutdown().await;
}

/// Whether the workflow below goes on, in each case.
static MAY_GO_ON: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Blocks its thread until the test lets it go on.
#[workflow]
async fn blocks(_ctx: Ctx, case: usize) -> Result<(), Failure> {
    while !MAY_GO_ON[case].load(Ordering::SeqCst) {
        std::thread::park_timeout(millis(10));
    }
    Ok(())
}

#[workflow]
async fn healthy(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.sleep(millis(1)).await?;
    Ok(n)
}

/// Starts a run that blocks its thread.
async fn blocked(namespace: &Namespace, case: usize, deadlock_timeout: std::time::Duration) -> (App, Handle<()>) {
    let timeout = |queue: QueueSettings| queue.workflow_deadlock_timeout(deadlock_timeout);
    let opened = namespace.open().await.settings(|app| app.every_queue(timeout).turn_threads(2));
    let app = opened.double_play(false).serve((blocks, healthy)).await.unwrap();
    let blocked = app.start(blocks, case).await.unwrap();
    (app, blocked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_beside_one_that_blocks_its_thread() {
    let namespace = Namespace::new();
    let (app, blocked) = blocked(&namespace, 0, 2 * crate::LIMIT).await;
    for n in 0..5 {
        assert_eq!(within("it goes on", app.start(healthy, n).await.unwrap().result()).await, Ok(n));
    }
    assert_eq!(app.turn_threads().1, 0, "its thread was not given up");
    assert!(blocked.describe().await.unwrap().status.is_open());
    MAY_GO_ON[0].store(true, Ordering::SeqCst);
    assert_eq!(within("it ends", blocked.result()).await, Ok(()));
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_blocks_its_thread_is_stuck() {
    let namespace = Namespace::new();
    let (app, blocked) = blocked(&namespace, 1, secs(3)).await;
    let stuck = described("it is stuck", &blocked, |run| run.stuck.is_some()).await.stuck.unwrap();
    assert_eq!(stuck.cause, StuckCause::Deadlock, "{}", stuck.reason);
    assert_eq!(app.turn_threads().1, 1, "one thread is lost to it");
    assert_eq!(within("it goes on", app.start(healthy, 7).await.unwrap().result()).await, Ok(7));
    blocked.terminate("it never ends").await.unwrap();
    app.stop().await;
}

/// Work that is allowed to end by the test.
struct Bench {
    times: AtomicUsize,
    begun: Semaphore,
    may_end: Semaphore,
}

#[activities]
impl Bench {
    #[activity]
    async fn work(self: Arc<Self>) -> Result<String, Failure> {
        self.begun.add_permits(1);
        let _ = self.may_end.acquire().await;
        Ok("done".into())
    }

    #[activity]
    async fn wait(self: Arc<Self>, ctx: ActivityCtx) -> Result<String, Failure> {
        self.begun.add_permits(1);
        Err(ctx.cancelled().await.into())
    }

    /// Waits as `wait`, but ends at once when it is called again.
    #[activity]
    async fn wait_once(self: Arc<Self>, ctx: ActivityCtx) -> Result<String, Failure> {
        if self.times.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(format!("done in attempt {}", ctx.info().attempt));
        }
        self.begun.add_permits(1);
        Err(ctx.cancelled().await.into())
    }
}

#[workflow]
async fn employs(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(Bench::work, ()).await
}

#[workflow]
async fn waits(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(Bench::wait, ()).retry(Retry::none()).await
}

fn bench() -> Arc<Bench> {
    Arc::new(Bench { times: AtomicUsize::new(0), begun: Semaphore::new(0), may_end: Semaphore::new(0) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_lets_an_attempt_end_within_the_grace_period() {
    let (namespace, bench) = (Namespace::new(), bench());
    let app = namespace.serve((employs, bench.clone())).await;
    app.start(employs, ()).id("run").await.unwrap();
    within("it begins", bench.begun.acquire()).await.unwrap().forget();
    let shutting_down = tokio::spawn(app.clone().shutdown());
    wait("the shutdown begins", async || app.health()[0].1.ended.clone()).await;
    drop(app);
    bench.may_end.add_permits(1);
    let report = within("it shuts down", shutting_down).await.unwrap();
    assert_eq!((report.asked_to_stop, report.cut_off), (0, Vec::new()));
    let completed = namespace.event_types("run").iter().any(|event| event == "ACTIVITY_TASK_COMPLETED");
    assert!(completed, "its result reached the server");
    let next = namespace.serve((employs, bench)).await;
    assert_eq!(within("it ends", next.handle(employs, "run").result()).await.as_deref(), Ok("done"));
    next.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_asks_an_attempt_to_stop_when_the_grace_period_is_over() {
    let (namespace, bench) = (Namespace::new(), bench());
    let times = |queue: QueueSettings| queue.shutdown_grace_period(millis(50)).shutdown_force_timeout(secs(30));
    let opened = namespace.open().await.settings(|app| app.every_queue(times));
    let app = opened.serve((waits, bench.clone())).await.unwrap();
    app.start(waits, ()).id("run").await.unwrap();
    let _begun = within("it begins", bench.begun.acquire()).await.unwrap();
    let report = within("it shuts down", app.shutdown()).await;
    assert_eq!((report.asked_to_stop, report.cut_off), (1, Vec::new()));
}

/// How often the side effect of a case below began.
static BEGUN: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Does work in its worker's process, by a side effect and by a local activity, each of one attempt.
#[workflow]
async fn works_at_home(ctx: Ctx, case: usize) -> Result<String, Failure> {
    let effect = move || async move {
        match BEGUN[case].fetch_add(1, Ordering::SeqCst) {
            0 => std::future::pending().await,
            _ => Ok("done".to_owned()),
        }
    };
    let effect = ctx.side_effect("effect", effect);
    let call = ctx.call_local(Bench::wait_once, ()).retry(Retry::none());
    let (effect, call) = futures::future::join(effect, call).await;
    Ok(format!("effect {}, call {}", effect?, call?))
}

/// Ends a worker while local work of a run is under way. Another one ends the run.
async fn local_work_outlives_its_worker(case: usize, end: impl AsyncFnOnce(App)) {
    let (namespace, bench) = (Namespace::new(), bench());
    let times = |queue: QueueSettings| queue.shutdown_grace_period(millis(50)).shutdown_force_timeout(millis(50));
    let opened = namespace.open().await.settings(|app| app.every_queue(times));
    let app = opened.serve((works_at_home, bench.clone())).await.unwrap();
    app.start(works_at_home, case).id("run").await.map(drop).unwrap();
    within("it begins", bench.begun.acquire()).await.unwrap().forget();
    wait("it begins", async || (BEGUN[case].load(Ordering::SeqCst) > 0).then_some(())).await;
    within("it ends", end(app)).await;
    let next = namespace.serve((works_at_home, bench)).await;
    let ended = within("it ends", next.handle(works_at_home, "run").result()).await;
    assert_eq!(ended.as_deref(), Ok("effect done, call done in attempt 1"));
    next.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_work_that_a_shutdown_cuts_off_is_done_by_the_next_worker() {
    local_work_outlives_its_worker(0, async |app| drop(app.shutdown().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_work_of_a_worker_that_stops_is_done_by_the_next_one() {
    local_work_outlives_its_worker(1, async |app| app.stop().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_work_of_a_worker_that_is_dropped_is_done_by_the_next_one() {
    local_work_outlives_its_worker(2, async |app| drop(app)).await;
}
