//! The settings that bound what a worker of a cluster does at once, and how much code it leaves behind.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dacapo::prelude::*;
use dacapo::{EntityKind, QueueSettings};

use crate::{Namespace, wait, within};

/// How many do something at once, and the most that ever did.
struct AtOnce {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl AtOnce {
    const fn new() -> Self {
        Self { now: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    fn begins(&self) {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }

    fn ends(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

static ATTEMPTS: AtOnce = AtOnce::new();
static TURNS: AtOnce = AtOnce::new();

#[activity]
async fn works() -> Result<u64, Failure> {
    ATTEMPTS.begins();
    // sleep: long enough for all of them to be at it at once, if nothing bounds them.
    tokio::time::sleep(millis(300)).await;
    ATTEMPTS.ends();
    Ok(1)
}

#[workflow]
async fn employs(ctx: Ctx, local: bool) -> Result<u64, Failure> {
    let ctx = &ctx;
    let all = (0..6).map(|_| async move {
        match local {
            true => ctx.call_local(works, ()).await,
            false => ctx.call(works, ()).await,
        }
    });
    let done: Vec<Result<u64, Failure>> = futures::future::join_all(all).await;
    done.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_attempts_run_at_once_than_the_queue_allows() {
    let namespace = Namespace::new();
    let two = |queue: QueueSettings| queue.max_concurrent_activities(2);
    let opened = namespace.open().await.settings(|app| app.every_queue(two));
    let app = opened.serve((employs, works)).await.unwrap();
    for local in [false, true] {
        let run = app.start(employs, local).await.unwrap();
        assert_eq!(within("it ends", run.result()).await, Ok(6));
    }
    assert!((1..=2).contains(&ATTEMPTS.most()), "{} attempts at once", ATTEMPTS.most());
    app.shutdown().await;
}

/// Takes its time for a turn, on its thread.
#[workflow]
async fn thinks(_ctx: Ctx) -> Result<(), Failure> {
    TURNS.begins();
    // sleep: long enough for all of them to be at it at once, if nothing bounds them.
    std::thread::sleep(millis(200));
    TURNS.ends();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_turns_are_played_at_once_than_the_queue_allows() {
    let namespace = Namespace::new();
    let two = |queue: QueueSettings| queue.max_concurrent_workflows(2);
    let opened = namespace.open().await.settings(|app| app.every_queue(two).turn_threads(6));
    let app = opened.double_play(false).serve(thinks).await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(app.start(thinks, ()).await.unwrap());
    }
    for run in runs {
        assert_eq!(within("it ends", run.result()).await, Ok(()));
    }
    assert!((1..=2).contains(&TURNS.most()), "{} turns at once", TURNS.most());
    app.shutdown().await;
}

/// Whether the activity below may end, in each case.
static DOORS: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Hears nothing of timeouts and cancellations.
#[activity]
fn deaf(case: usize) -> Result<(), Failure> {
    while !DOORS[case].load(Ordering::SeqCst) {
        // sleep: it blocks its thread until the test opens the door.
        std::thread::sleep(millis(5));
    }
    Ok(())
}

#[workflow]
async fn calls_deaf(ctx: Ctx, case: usize) -> Result<(), Failure> {
    ctx.call_local(deaf, case).start_to_close(millis(50)).retry(Retry::none()).await
}

fn strict(queue: QueueSettings) -> QueueSettings {
    let queue = queue.max_zombie_count(1).zombie_grace_period(millis(100)).zombie_retry_interval(millis(50));
    queue.shutdown_grace_period(millis(50)).shutdown_force_timeout(millis(50))
}

/// Serves code that does not end when it is asked to, until the program has to end for it. Returns the report of its shutdown, before
/// or after the code has ended.
async fn zombie(case: usize, ends_first: bool, patience: std::time::Duration) -> dacapo::ShutdownReport {
    let namespace = Namespace::new();
    let settings = |queue: QueueSettings| strict(queue).zombie_shutdown_timeout(patience);
    let opened = namespace.open().await.settings(|app| app.every_queue(settings));
    let app = opened.serve((calls_deaf, deaf)).await.unwrap();
    let run = app.start(calls_deaf, case).await.unwrap();
    assert!(within("it ends", run.result()).await.is_err(), "the attempt took too long");
    let why = wait("the program has to end", async || app.health()[0].1.ended.clone()).await;
    assert!(why.contains("1 zombies") && why.contains("max_zombie_count"), "{why}");
    let shutdown = tokio::spawn(app.clone().shutdown());
    drop(app);
    if ends_first {
        // sleep: by then a shutdown that waits for nothing has ended.
        tokio::time::sleep(secs(1)).await;
        DOORS[case].store(true, Ordering::SeqCst);
    }
    let report = within("it shuts down", shutdown).await.unwrap();
    DOORS[case].store(true, Ordering::SeqCst);
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_with_too_many_zombies_ends_and_its_shutdown_waits_for_them() {
    let report = zombie(0, true, crate::LIMIT).await;
    assert!(report.left.is_empty(), "{:?}", report.left);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_names_the_zombies_that_it_has_waited_for_in_vain() {
    let report = zombie(1, false, millis(200)).await;
    let left: Vec<_> = report.left.iter().map(|code| (code.entity.kind, code.entity.type_name.as_str())).collect();
    assert_eq!(left, [(EntityKind::Activity, "deaf")]);
}
