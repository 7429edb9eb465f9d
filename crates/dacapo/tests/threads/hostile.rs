//! Hostile use on real threads: every caller is answered, no acknowledged message is lost, and no user code costs a turn
//! thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dacapo::Query;
use dacapo::prelude::*;
use dacapo::{Dacapo, Filter, Status};
use tempfile::TempDir;
use tokio::task::JoinSet;

const GO: Signal<u64> = Signal::new("go");
const HOW: Query<(), u64> = Query::new("how");
const PUT: Update<u64, u64> = Update::new("put");

/// Awaits a future, within a bound: a future that hangs is a bug.
async fn soon<F: IntoFuture>(what: &str, future: F) -> F::Output {
    let ended = tokio::time::timeout(Duration::from_secs(120), future.into_future()).await;
    ended.unwrap_or_else(|_| panic!("{what} hangs"))
}

/// A folder, and the address of a file in it.
fn a_file() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("hostile.db").display());
    (folder, url)
}

/// Gives all signals up to the first 0.
#[workflow]
async fn collect(ctx: Ctx) -> Result<Vec<u64>, Failure> {
    ctx.on_query(HOW, |()| Ok(1));
    let mut seen = Vec::new();
    loop {
        match ctx.next_signal(GO).await? {
            0 => return Ok(seen),
            number => seen.push(number),
        }
    }
}

#[workflow]
async fn nest(ctx: Ctx, deep: u64) -> Result<u64, Failure> {
    match deep.checked_sub(1) {
        None => ctx.next_signal(GO).await,
        Some(deep) => ctx.child(nest, deep).id(format!("nest-{deep}")).await,
    }
}

/// Each end of a parent ended its child within its own call, until the stack was full.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn terminate_ends_a_tree_of_a_thousand_nested_children() {
    const DEEP: u64 = 1_000;
    let app = Dacapo::open("memory:").await.unwrap().double_play(false).serve(nest).await.unwrap();
    let root = app.start(nest, DEEP).id("root").await.unwrap();
    let leaf = app.handle(nest, "nest-0");
    let stands = async {
        while leaf.describe().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon("the tree", stands).await;
    root.terminate("enough").await.unwrap();
    let falls = async {
        while app.runs().count(&Filter::all().status(Status::Terminated)).await.unwrap() <= DEEP {
            tokio::task::yield_now().await;
        }
    };
    soon("the end of the tree", falls).await;
    assert_eq!(app.runs().count(&Filter::open()).await.unwrap(), 0);
}

/// A signal that came while the run was reset went to the run that ended, and was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledged_signal_is_lost_by_resets() {
    let (_folder, url) = a_file();
    let app = Dacapo::open(&url).await.unwrap().double_play(false).serve(collect).await.unwrap();
    app.start(collect, ()).id("c").await.unwrap();
    let run = app.handle(collect, "c");
    let is_enough = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for sender in 0..8 {
        let (run, is_enough) = (run.clone(), is_enough.clone());
        senders.spawn(async move {
            let mut acknowledged = Vec::new();
            for number in sender * 1_000_000 + 1.. {
                if is_enough.load(Ordering::SeqCst) {
                    break;
                }
                if soon("a signal", run.signal(GO, number)).await.is_ok() {
                    acknowledged.push(number);
                }
            }
            acknowledged
        });
    }
    for round in 1..=10 {
        // Some signals are taken in between.
        let moves_on = async {
            while run.describe().await.unwrap().turns < 1 + 3 * round {
                tokio::task::yield_now().await;
            }
        };
        soon("three more turns", moves_on).await;
        soon("a reset", run.reset(1, "again")).await.unwrap();
    }
    is_enough.store(true, Ordering::SeqCst);
    let acknowledged: BTreeSet<u64> = senders.join_all().await.into_iter().flatten().collect();
    run.signal(GO, 0).await.unwrap();
    let seen = soon("the result", run.result()).await.unwrap();
    let distinct: BTreeSet<u64> = seen.iter().copied().collect();
    assert_eq!(acknowledged.difference(&distinct).collect::<Vec<_>>(), Vec::<&u64>::new(), "lost");
    assert_eq!(seen.len(), distinct.len(), "a signal was taken twice");
}

#[workflow]
async fn failing(_ctx: Ctx) -> Result<u64, Failure> {
    Err(Failure::application("no"))
}

/// The moment of the next run was more than a timestamp holds: the sum panicked, on a thread that plays turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn retry_pause_beyond_all_timestamps_costs_no_turn_thread() {
    let app = Dacapo::open("memory:").await.unwrap().double_play(false).settings(|app| app.turn_threads(2));
    let app = app.serve((failing, collect)).await.unwrap();
    for number in 0..4 {
        let retry = Retry::exponential().first_pause(Duration::MAX).max_pause(Duration::MAX);
        soon("a start", app.start(failing, ()).id(format!("f{number}")).retry(retry)).await.unwrap();
    }
    let run = soon("a healthy start", app.start(collect, ())).await.unwrap();
    run.signal(GO, 0).await.unwrap();
    assert_eq!(soon("a healthy run", run.result()).await.unwrap(), [0; 0]);
}

/// Collects signals and updates, and goes on as another run after every seventh signal.
#[workflow]
async fn entity(ctx: Ctx, seen: Vec<u64>) -> Result<Vec<u64>, Failure> {
    let list = ctx.cell(seen);
    let updated = list.clone();
    ctx.on_update(
        PUT,
        |_| Ok(()),
        move |number| {
            let updated = updated.clone();
            async move {
                updated.update(|list| list.push(number));
                Ok(number)
            }
        },
    );
    for _ in 0..7 {
        match ctx.next_signal(GO).await? {
            0 => return Ok(list.read(Clone::clone)),
            number => list.update(|list| list.push(number)),
        }
    }
    Err(ctx.continue_as_new(entity, list.read(Clone::clone)))
}

/// Updates beside a continue-as-new were answered and in the state of no run, or never answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_over_continue_as_new() {
    const ENTITIES: u64 = 12;
    const EACH: u64 = 60;
    let (_folder, url) = a_file();
    let app = Dacapo::open(&url)
        .await
        .unwrap()
        .double_play(false)
        .settings(|app| app.cache_size(3))
        .serve(entity)
        .await
        .unwrap();
    let mut senders = JoinSet::new();
    for number in 0..ENTITIES {
        let run = app.start(entity, vec![]).id(format!("e{number}")).await.unwrap();
        for sender in 1..=6 {
            let run = app.handle(entity, run.workflow_id());
            senders.spawn(async move {
                for value in (1..=EACH).map(|value| sender * 1_000 + value) {
                    match sender % 3 {
                        0 => assert_eq!(soon("an update", run.update(PUT, value)).await.unwrap(), value),
                        _ => soon("a signal", run.signal(GO, value)).await.unwrap(),
                    }
                }
            });
        }
    }
    senders.join_all().await;
    let expected: Vec<u64> = (1..=6).flat_map(|sender| (1..=EACH).map(move |value| sender * 1_000 + value)).collect();
    for number in 0..ENTITIES {
        let run = app.handle(entity, format!("e{number}"));
        run.signal(GO, 0).await.unwrap();
        let mut seen = soon("the result", run.result()).await.unwrap();
        seen.sort_unstable();
        assert_eq!(seen, expected, "entity {number}");
    }
}

/// Calls that came between the last check and the end were never answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_are_answered_when_the_engine_shuts_down() {
    for round in 0..100 {
        let app = Dacapo::open("memory:").await.unwrap().double_play(false).serve(collect).await.unwrap();
        let run = app.start(collect, ()).id("c").await.unwrap();
        let mut callers = JoinSet::new();
        for caller in 0..12 {
            let run = run.clone();
            callers.spawn(async move {
                match caller % 4 {
                    0 => while run.query(HOW, ()).await.is_ok() {},
                    1 => while run.signal(GO, 1).await.is_ok() {},
                    2 => while !matches!(tokio::time::timeout(millis(1), run.result()).await, Ok(Err(_))) {},
                    _ => assert!(run.result().await.is_err(), "it was never told to end"),
                }
            });
        }
        // The engine is shut down in the midst of it, each time a little later.
        let moves_on = async {
            while run.describe().await.unwrap().turns < 1 + round % 20 {
                tokio::task::yield_now().await;
            }
        };
        soon("a few turns", moves_on).await;
        soon("the shutdown", app.shutdown()).await;
        soon("a caller", callers.join_all()).await;
    }
}

#[workflow]
async fn dicey(ctx: Ctx) -> Result<u64, Failure> {
    let roll = || -> std::future::Ready<Result<u64, Failure>> { panic!("before there is a future") };
    ctx.side_effect("roll", roll).await
}

/// The closure was called on a thread that plays turns, and its panic took the thread along.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn side_effect_that_panics_before_it_returns_a_future_costs_no_turn_thread() {
    let app = Dacapo::open("memory:").await.unwrap().double_play(false).settings(|app| app.turn_threads(2));
    let app = app.serve((dicey, collect)).await.unwrap();
    for number in 0..4 {
        soon("a start", app.start(dicey, ()).id(format!("d{number}"))).await.unwrap();
    }
    let run = soon("a healthy start", app.start(collect, ())).await.unwrap();
    run.signal(GO, 0).await.unwrap();
    assert_eq!(soon("a healthy run", run.result()).await.unwrap(), [0; 0]);
}

/// The lock was on the name of the link, and two processes wrote to one file.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn second_server_that_opens_the_file_by_a_link_is_refused() {
    let (folder, url) = a_file();
    let app = Dacapo::open(&url).await.unwrap().serve(collect).await.unwrap();
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("hostile.db"), &link).unwrap();
    let by_link = format!("sqlite:{}", link.display());
    let refused = Dacapo::open(&by_link).await.err().expect("the file is served").to_string();
    assert!(refused.contains("is being served"), "{refused}");
    app.shutdown().await;
    Dacapo::open(&by_link).await.unwrap().serve(collect).await.unwrap();
}
