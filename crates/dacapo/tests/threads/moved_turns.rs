//! Turns that do not return, of runs that another node has taken over meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use dacapo::prelude::*;
use dacapo_store::{MemoryCluster, NodeEvents, Notice, ReadMessages, ReadRuns, Shards, SharedStore, TaskNo};

use crate::waiting::wait_until;

static IS_BLOCKED: AtomicBool = AtomicBool::new(false);
static DOOR: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);

#[activity]
async fn measure() -> Result<u64, Failure> {
    Ok(7)
}

#[workflow]
async fn blocks(ctx: Ctx) -> Result<u64, Failure> {
    let measured = ctx.call(measure, ()).await?;
    if let Some(door) = DOOR.lock().unwrap().take() {
        IS_BLOCKED.store(true, Ordering::Release);
        let _ = door.recv();
    }
    Ok(measured)
}

/// Another node, which does nothing with what it gets.
struct Idle;

impl NodeEvents for Idle {
    fn gained(&self, _: Shards) {}

    fn giving(&self, _: Shards) -> Vec<TaskNo> {
        Vec::new()
    }

    fn lost(&self, _: Shards, _: bool) {}

    fn notified(&self, _: Notice) {}

    fn called(&self, _: Vec<u8>, _: Box<dyn FnOnce(Vec<u8>) + Send>) {}

    fn look(&self, _: Shards) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn result_that_a_turn_had_taken_is_stored_though_the_turn_does_not_return_and_its_run_has_moved() {
    let (open, door) = mpsc::channel();
    *DOOR.lock().unwrap() = Some(door);
    let (seconds, lease) = (Arc::new(AtomicU64::new(0)), Duration::from_secs(10));
    let clock = seconds.clone();
    let cluster = MemoryCluster::new(lease, move || Duration::from_secs(clock.load(Ordering::Acquire)));
    let (a, b) = (Arc::new(cluster.node("a")), cluster.node("b"));
    let app = Dacapo::over_store(a.clone()).serve((blocks, measure)).await.unwrap();
    app.start(blocks, ()).id("x").await.unwrap();
    wait_until("the turn with the result", async || IS_BLOCKED.load(Ordering::Acquire)).await;

    // The other node takes this one for dead, which then learns that it has lost its runs.
    seconds.fetch_add(11, Ordering::AcqRel);
    let taken_over = move || {
        b.join(&["default".into()], &"test".into(), Arc::new(Idle)).unwrap();
        a.renew();
        let run = a.find("x", None).unwrap().expect("it is there").no;
        assert!(b.owns(run) && !a.owns(run));
        (a, run)
    };
    let (a, run) = tokio::task::spawn_blocking(taken_over).await.unwrap();
    // Once the deadlock watch has given up on the turn.
    wait_until("the result in the store", async || a.message(run, "task:0").unwrap().is_some()).await;
    drop(open);
    app.stop().await;
}
