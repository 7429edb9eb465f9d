//! Runs that do not stay in memory are played again, with the same results.

use std::sync::atomic::{AtomicU64, Ordering};

use dacapo::prelude::*;

use crate::{Namespace, described, wait, within};

const ADD: Signal<u64> = Signal::new("add");
const SUM: dacapo::Query<(), u64> = dacapo::Query::new("sum");

#[activity]
async fn double(n: u64) -> Result<u64, Failure> {
    Ok(n * 2)
}

/// How often the workflow below was begun in each case: by its first play and by each replay.
static PLAYS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
const STORM: usize = 2;
const RUNS: u64 = 3;

/// Doubles ten numbers, by activities and side effects in turns.
#[workflow]
async fn doubles(ctx: Ctx, case: usize) -> Result<u64, Failure> {
    PLAYS[case].fetch_add(1, Ordering::SeqCst);
    let total = ctx.cell(0_u64);
    let sum = total.clone();
    ctx.on_query(SUM, move |()| Ok(sum.read(|total| *total)));
    for round in 0..10 {
        let n = ctx.next_signal(ADD).await?;
        let doubled = match round % 2 {
            0 => ctx.call(double, n).await?,
            _ => ctx.side_effect("double", move || async move { Ok(n * 2) }).await?,
        };
        total.update(|total| *total += doubled);
        ctx.sleep(millis(1)).await?;
    }
    Ok(total.read(|total| *total))
}

/// Serves and starts three runs.
async fn started(opened: Dacapo, case: usize) -> (App, Vec<Handle<u64>>) {
    let app = opened.double_play(false).serve((doubles, double)).await.unwrap();
    let mut runs = Vec::new();
    for id in 0..RUNS {
        runs.push(app.start(doubles, case).id(format!("run-{id}")).await.unwrap());
    }
    (app, runs)
}

async fn with_cache_of(size: usize) {
    let namespace = Namespace::new();
    let (app, runs) = started(namespace.open().await.settings(|app| app.cache_size(size)), size).await;
    for n in 1..=10 {
        for run in &runs {
            run.signal(ADD, n).await.unwrap();
        }
        if n == 5 {
            wait("they leave memory while they wait", async || (app.runs_in_memory() <= size).then_some(())).await;
            for run in &runs {
                assert!(run.describe().await.unwrap().status.is_open());
            }
        }
    }
    for run in &runs {
        assert_eq!(within("it ends", run.result()).await, Ok(110));
    }
    let plays = PLAYS[size].load(Ordering::SeqCst);
    assert!(plays > RUNS, "they were played again: {plays} plays");
    for run in &runs {
        assert_eq!(within("it answers", run.query(SUM, ())).await, Ok(110));
    }
    wait("they leave memory", async || (app.runs_in_memory() <= size).then_some(())).await;
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_runs_without_a_cache_end_with_their_results() {
    with_cache_of(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_runs_with_room_for_one_in_memory_end_with_their_results() {
    with_cache_of(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_are_evicted_all_the_time_end_with_their_results() {
    let namespace = Namespace::new();
    let (app, runs) = started(namespace.open().await, STORM).await;
    let storm = tokio::spawn({
        let app = app.clone();
        async move {
            loop {
                app.evict_idle();
                tokio::task::yield_now().await;
                // sleep: a storm of evictions that leaves the processor to others.
                tokio::time::sleep(millis(25)).await;
            }
        }
    });
    for n in 1..=10 {
        for run in &runs {
            run.signal(ADD, n).await.unwrap();
            // Each signal comes to a run that may have left memory.
            described("it goes on", run, |run| run.turns > n).await;
        }
    }
    for run in &runs {
        assert_eq!(within("it ends", run.result()).await, Ok(110));
    }
    storm.abort();
    assert!(storm.await.unwrap_err().is_cancelled());
    let plays = PLAYS[STORM].load(Ordering::SeqCst);
    assert!(plays >= 5 * RUNS, "they have left memory and were played again: {plays} plays");
    app.shutdown().await;
}

/// How far the local work of the tests below has come.
static FAILED: AtomicU64 = AtomicU64::new(0);
static SLOW: AtomicU64 = AtomicU64::new(0);

/// A side effect that takes its time, beside one that fails at first.
#[workflow]
async fn joins_slow_and_failing(ctx: Ctx) -> Result<u64, Failure> {
    let slow = ctx.side_effect("slow", || async {
        SLOW.fetch_add(1, Ordering::SeqCst);
        // sleep: it has to be under way when the other one fails, and until the server is told that the task goes on, after 8 seconds.
        tokio::time::sleep(secs(10)).await;
        Ok(40_u64)
    });
    let failing = || async {
        match FAILED.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err(Failure::application("not yet")),
            _ => Ok(2_u64),
        }
    };
    let failing = ctx.side_effect("failing", failing).retry(Retry::exponential().first_pause(millis(10)).attempts(3));
    let (slow, failing) = futures::future::join(slow, failing).await;
    Ok(slow? + failing?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn side_effect_that_fails_beside_a_slow_one_is_tried_again_and_the_slow_one_is_not() {
    let namespace = Namespace::new();
    let app = namespace.serve(joins_slow_and_failing).await;
    let run = app.start(joins_slow_and_failing, ()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(42));
    assert_eq!((SLOW.load(Ordering::SeqCst), FAILED.load(Ordering::SeqCst)), (1, 3));
    let lost = namespace.event_types("run").iter().filter(|event| *event == "WORKFLOW_TASK_TIMED_OUT").count();
    assert_eq!(lost, 0, "no workflow task was lost");
    app.shutdown().await;
}

static CALLED: AtomicU64 = AtomicU64::new(0);

/// Waits until the test lets it end.
#[activity]
async fn waits_for_the_storm() -> Result<u64, Failure> {
    CALLED.fetch_add(1, Ordering::SeqCst);
    // sleep: the evictions come meanwhile.
    tokio::time::sleep(secs(2)).await;
    Ok(7)
}

#[workflow]
async fn calls_locally(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call_local(waits_for_the_storm, ()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_with_a_local_activity_stays_in_memory() {
    let namespace = Namespace::new();
    let app = namespace.serve((calls_locally, waits_for_the_storm)).await;
    let run = app.start(calls_locally, ()).id("run").await.unwrap();
    wait("it is called", async || (CALLED.load(Ordering::SeqCst) > 0).then_some(())).await;
    app.evict_idle();
    assert_eq!(within("it ends", run.result()).await, Ok(7));
    assert_eq!(CALLED.load(Ordering::SeqCst), 1, "it was called once");
    app.shutdown().await;
}

static BEGUN: AtomicU64 = AtomicU64::new(0);
static STOPPED: AtomicU64 = AtomicU64::new(0);

/// Counts when the future that holds it is dropped.
struct CountsItsEnd;

impl Drop for CountsItsEnd {
    fn drop(&mut self) {
        STOPPED.fetch_add(1, Ordering::SeqCst);
    }
}

#[workflow]
async fn waits_for_ever(ctx: Ctx) -> Result<(), Failure> {
    let effect = || async {
        let _counted = CountsItsEnd;
        BEGUN.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    };
    ctx.side_effect("stays", effect).await
}

/// The worker learns of it when it tells the server that the task goes on, after 8 seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn side_effect_of_a_run_that_was_terminated_is_stopped() {
    let namespace = Namespace::new();
    let app = namespace.serve(waits_for_ever).await;
    let run = app.start(waits_for_ever, ()).await.unwrap();
    wait("it begins", async || (BEGUN.load(Ordering::SeqCst) > 0).then_some(())).await;
    run.terminate("not needed").await.unwrap();
    wait("it is stopped", async || (STOPPED.load(Ordering::SeqCst) > 0).then_some(())).await;
    app.shutdown().await;
}
