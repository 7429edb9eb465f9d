//! Runs that do not stay in memory are played again, with the same results.

use dacapo::prelude::*;

use crate::{Namespace, wait, within};

const ADD: Signal<u64> = Signal::new("add");
const SUM: dacapo::Query<(), u64> = dacapo::Query::new("sum");

#[activity]
async fn double(n: u64) -> Result<u64, Failure> {
    Ok(n * 2)
}

/// Doubles ten numbers, by activities and side effects in turns.
#[workflow]
async fn doubles(ctx: Ctx) -> Result<u64, Failure> {
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

async fn with_cache_of(size: usize) {
    let namespace = Namespace::new();
    let app = namespace.open().await.settings(|app| app.cache_size(size)).serve((doubles, double)).await.unwrap();
    let mut runs = Vec::new();
    for id in 0..3 {
        runs.push(app.start(doubles, ()).id(format!("run-{id}")).await.unwrap());
    }
    for n in 1..=10 {
        for run in &runs {
            run.signal(ADD, n).await.unwrap();
        }
    }
    for run in &runs {
        assert_eq!(within("it ends", run.result()).await, Ok(110));
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
async fn run_that_is_evicted_all_the_time_ends_with_its_result() {
    let namespace = Namespace::new();
    let app = namespace.serve((doubles, double)).await;
    let run = app.start(doubles, ()).await.unwrap();
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
        run.signal(ADD, n).await.unwrap();
    }
    assert_eq!(within("it ends", run.result()).await, Ok(110));
    storm.abort();
    assert!(storm.await.unwrap_err().is_cancelled());
    app.shutdown().await;
}
