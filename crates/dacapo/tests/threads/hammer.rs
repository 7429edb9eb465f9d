//! Many runs, many senders, a cache that is too small.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dacapo::Query;
use dacapo::core::{Job, RunOptions, Transcript};
use dacapo::prelude::*;
use dacapo::{Catalog, Dacapo, Filter, Status};

const ADD: Signal<u64> = Signal::new("add");
const TOTAL: Query<(), u64> = Query::new("total");
const ADD_NOW: Update<u64, u64> = Update::new("add now");

#[activity]
async fn double(number: u64) -> Result<u64, Failure> {
    tokio::task::yield_now().await;
    Ok(number * 2)
}

#[activity]
fn halve(number: u64) -> Result<u64, Failure> {
    Ok(number / 2)
}

/// Adds up what signals and updates bring, and passes each signal through two activities.
#[workflow]
async fn adder(ctx: Ctx, signals: u64) -> Result<u64, Failure> {
    let total = ctx.cell(0);
    let (shown, updated) = (total.clone(), total.clone());
    ctx.on_query(TOTAL, move |()| Ok(shown.read(|total| *total)));
    ctx.on_update(
        ADD_NOW,
        |by| if *by > 0 { Ok(()) } else { Err(Failure::application("nothing")) },
        move |by| {
            let updated = updated.clone();
            async move {
                Ok(updated.update(|total| {
                    *total += by;
                    *total
                }))
            }
        },
    );
    for _ in 0..signals {
        let by = ctx.next_signal(ADD).await?;
        let doubled = ctx.call(double, by).await?;
        let again = ctx.call(halve, doubled).await?;
        total.update(|total| *total += again);
    }
    Ok(total.read(|total| *total))
}

/// Every turn follows the one before, every operation is resolved once, and all of it can be played again.
fn check_history(history: &Transcript) {
    let mut resolved: BTreeMap<u64, u32> = BTreeMap::new();
    for (number, turn) in history.turns.iter().enumerate() {
        assert_eq!(turn.number, number as u64);
        for job in &turn.jobs {
            if let Job::Resolve { seq, .. } = job {
                *resolved.entry(seq.0).or_default() += 1;
            }
        }
    }
    assert!(resolved.values().all(|times| *times == 1), "{resolved:?}");
    let catalog = Catalog::of((adder, double, halve)).unwrap();
    let code = catalog.registry.find_workflow(&history.workflow).unwrap();
    history.replay(code, RunOptions::default()).unwrap();
}

/// S0-37, T-23
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_that_are_hammered_from_all_sides_take_everything_once_and_in_turns() {
    const RUNS: u64 = 40;
    const SIGNALS: u64 = 10;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("hammer.db").display());
    let app = Dacapo::open(&url)
        .await
        .unwrap()
        .settings(|app| app.cache_size(7))
        .serve((adder, double, halve))
        .await
        .unwrap();
    let rejected = Arc::new(AtomicU64::new(0));
    let mut senders = tokio::task::JoinSet::new();
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let run = app.start(adder, SIGNALS).id(format!("adder-{number}")).await.unwrap();
        runs.push(run.clone());
        for by in 1..=SIGNALS {
            let (run, rejected) = (run.clone(), rejected.clone());
            senders.spawn(async move {
                // The run may be closed before an update comes: then the update fails.
                if by % 3 == 0 {
                    if run.update(ADD_NOW, 0).await.is_err() {
                        rejected.fetch_add(1, Ordering::Relaxed);
                    }
                    run.query(TOTAL, ()).await.unwrap();
                }
                run.signal(ADD, by).await.unwrap();
            });
        }
    }
    senders.join_all().await;
    let expected: u64 = (1..=SIGNALS).sum();
    for run in &runs {
        assert_eq!(run.result().await.unwrap(), expected);
        assert_eq!(run.query(TOTAL, ()).await.unwrap(), expected, "a closed run answers");
        let history = run.transcript().await.unwrap();
        check_history(&history);
    }
    assert_eq!(rejected.load(Ordering::Relaxed), RUNS * 3);
    assert_eq!(app.runs().count(&Filter::all().status(Status::Completed)).await.unwrap(), RUNS);
    assert!(app.runs_in_memory() <= 7, "{} runs are in memory", app.runs_in_memory());
    app.shutdown().await;
}
