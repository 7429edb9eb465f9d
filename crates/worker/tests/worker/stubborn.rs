//! Real code that does not stop, and real code that does. Their threads are real, the time is not.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use dacapo_core::{
    Activation, ActivationError, Completion, Ctx, Failure, Job, Payload, Run, RunOptions, Start, Timestamp, Turn,
    Workflow,
};
use dacapo_worker::{
    Activity, ActivityCtx, ActivityInfo, Attempt, AttemptHandle, Attempts, Entity, Interrupt, RunName, StuckTurn,
    TerminationId, ZombieLimit, ZombieSettings, Zombies,
};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::deadline::{Deadline, in_time, wait_until};
use crate::log::logged;

const BEGIN: Timestamp = Timestamp::from_millis(1_000_000);

fn after(seconds: u64) -> Timestamp {
    BEGIN.after(Duration::from_secs(seconds))
}

fn nothing() -> Result<Payload, Failure> {
    Ok(Payload::default())
}

/// The zombies of a queue, and who looks after them.
#[derive(Clone)]
struct Owner(Arc<Mutex<Zombies>>);

impl Owner {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Zombies::new(ZombieSettings::default()))))
    }

    fn request(&self, entity: Entity, code: Arc<dyn Interrupt>) -> TerminationId {
        let (id, effects) = self.0.lock().unwrap().request(entity, code, "too slow", BEGIN);
        assert_eq!(effects.perform(), ZombieLimit::Kept);
        id
    }

    fn finished(&self, id: TerminationId, now: Timestamp) {
        let effects = self.0.lock().unwrap().finished(id, now);
        assert_eq!(effects.perform(), ZombieLimit::Kept);
    }

    /// Terminates an attempt. What comes back tells of its end.
    fn terminate(&self, handle: &AttemptHandle) -> oneshot::Receiver<()> {
        let id = self.request(Entity::activity(handle.ctx().info()), Arc::new(handle.clone()));
        let (ended, has_ended) = oneshot::channel();
        let owner = self.clone();
        handle.on_end(move || {
            owner.finished(id, after(60));
            ended.send(()).unwrap();
        });
        has_ended
    }

    /// How many zombies there are so many seconds after the request.
    fn count_at(&self, seconds: u64) -> usize {
        let effects = self.0.lock().unwrap().tick(after(seconds));
        assert_eq!(effects.perform(), ZombieLimit::Kept);
        self.0.lock().unwrap().count()
    }
}

fn start(activity: &Activity) -> (AttemptHandle, oneshot::Receiver<Result<Payload, Failure>>) {
    let info = ActivityInfo { activity: activity.name().clone(), attempt: 1, ..ActivityInfo::default() };
    let (done, told) = oneshot::channel();
    let ctx = ActivityCtx::new(info, Arc::new(|_| {}), usize::MAX);
    let attempt = Attempt::new(activity, ctx, Vec::new(), move |result| drop(done.send(result)));
    let handle = attempt.handle();
    Attempts::new(Handle::current()).start(attempt);
    (handle, told)
}

/// Stays a zombie from 10 s on, until it is let go.
async fn check_it_is_a_zombie_until(handle: &AttemptHandle, let_go: impl FnOnce()) {
    let owner = Owner::new();
    let mut ended = owner.terminate(handle);
    assert_eq!((owner.count_at(9), owner.count_at(10), owner.count_at(50)), (0, 1, 1));
    assert!(ended.try_recv().is_err() && !handle.has_ended());
    let_go();
    ended.await.unwrap();
    assert_eq!((owner.count_at(61), handle.has_ended()), (0, true));
}

/// S3-22, S3-23, C-23: it waits where no thread can wake it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_blocks_on_something_else_is_a_zombie() {
    let ((waits, has_waited), (release, released)) = (oneshot::channel(), mpsc::channel::<()>());
    let parts = Mutex::new(Some((waits, released)));
    let (handle, _) = start(&Activity::blocking("blocks", move |_, _| {
        let (waits, released) = parts.lock().unwrap().take().unwrap();
        waits.send(()).unwrap();
        released.recv().unwrap();
        nothing()
    }));
    has_waited.await.unwrap();
    check_it_is_a_zombie_until(&handle, || release.send(()).unwrap()).await;
}

/// S3-22, S3-23: it sees that it is cancelled and does not care.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_ignores_its_cancellation_is_a_zombie() {
    let ((sees, has_seen), enough) = (oneshot::channel(), Arc::new(AtomicBool::new(false)));
    let (sees, stop) = (Mutex::new(Some(sees)), enough.clone());
    let (handle, _) = start(&Activity::blocking("deaf", move |ctx, _| {
        sees.lock().unwrap().take().unwrap().send(()).unwrap();
        wait_until("the end of the test", || ctx.cancellation().is_some() && stop.load(Ordering::Relaxed));
        nothing()
    }));
    has_seen.await.unwrap();
    check_it_is_a_zombie_until(&handle, || enough.store(true, Ordering::Relaxed)).await;
}

/// S3-22, S3-23: async code that never awaits cannot be dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_spins_between_awaits_is_a_zombie() {
    let ((spins, has_spun), enough) = (oneshot::channel(), Arc::new(AtomicBool::new(false)));
    let (spins, stop) = (Mutex::new(Some(spins)), enough.clone());
    let (handle, _) = start(&Activity::new("spins", move |_, _| {
        let (spins, stop) = (spins.lock().unwrap().take(), stop.clone());
        async move {
            tokio::task::block_in_place(|| {
                spins.unwrap().send(()).unwrap();
                wait_until("the end of the test", || stop.load(Ordering::Relaxed));
            });
            pending().await
        }
    }));
    has_spun.await.unwrap();
    check_it_is_a_zombie_until(&handle, || enough.store(true, Ordering::Relaxed)).await;
}

/// S3-23: code that would stop but does not get to run. Once the machine comes round to it, it counts no more.
#[test]
fn task_that_is_not_polled_is_a_zombie_until_its_runtime_goes_on() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let handle = runtime.block_on(async {
        let (waits, has_waited) = oneshot::channel();
        let waits = Mutex::new(Some(waits));
        let (handle, _) = start(&Activity::new("willing", move |_, _| {
            let waits = waits.lock().unwrap().take().unwrap();
            async move {
                waits.send(()).unwrap();
                pending().await
            }
        }));
        has_waited.await.unwrap();
        handle
    });
    // No thread drives the runtime now.
    let owner = Owner::new();
    let ended = owner.terminate(&handle);
    assert_eq!((owner.count_at(9), owner.count_at(10)), (0, 1));
    runtime.block_on(ended).unwrap();
    assert_eq!(owner.count_at(61), 0);
}

/// S3-19, S3-21, S3-26: code that awaits is dropped at once, its clean-up runs once, and nothing is logged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_awaits_stops_at_the_request() {
    struct CleanUp(Arc<Mutex<u32>>);
    impl Drop for CleanUp {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let cleaned = Arc::<Mutex<u32>>::default();
    let (waits, has_waited) = oneshot::channel();
    let parts = Mutex::new(Some((CleanUp(cleaned.clone()), waits)));
    let (handle, _) = start(&Activity::new("willing", move |_, _| {
        let (clean_up, waits) = parts.lock().unwrap().take().unwrap();
        async move {
            let _clean_up = clean_up;
            waits.send(()).unwrap();
            pending().await
        }
    }));
    has_waited.await.unwrap();
    let owner = Owner::new();
    owner.terminate(&handle).await.unwrap();
    assert_eq!(*cleaned.lock().unwrap(), 1);
    let said = logged(|| assert_eq!(owner.count_at(3_600), 0));
    assert_eq!(said, "");
    assert_eq!(handle.ctx().cancellation().unwrap().reason, "too slow");
}

/// S3-21, S3-25, S3-31: slow but willing code that is parked stops when a retry wakes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_parks_stops_at_a_retry() {
    let (parks, mut has_parked) = tokio::sync::mpsc::unbounded_channel();
    let (handle, mut told) = start(&Activity::blocking("slow", move |ctx, _| {
        let mut wishes = 0;
        while wishes < 3 {
            parks.send(wishes).unwrap();
            std::thread::park();
            wishes += u32::from(ctx.cancellation().is_some());
        }
        nothing()
    }));
    has_parked.recv().await.unwrap();
    let owner = Owner::new();
    let ended = owner.terminate(&handle);
    let mut retries = [1, 2, 4, 8].into_iter();
    let result = in_time("the third wake-up", async {
        loop {
            tokio::select! {
                result = &mut told => break result,
                // It is about to park again, so the next retry is seen.
                Some(_) = has_parked.recv() => assert_eq!(owner.count_at(retries.next().unwrap()), 0),
            }
        }
    })
    .await;
    assert_eq!(result.unwrap(), nothing(), "what it came to counts");
    ended.await.unwrap();
}

fn play(workflow: Workflow) -> (StuckTurn, std::thread::JoinHandle<ActivationError>) {
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(workflow, options).unwrap();
    let watch = run.watch();
    let played = std::thread::spawn(move || {
        let start = Start { workflow: "stuck".into(), queue: "q".into(), seed: 7, attempt: 1, ..Start::default() };
        let turn = Turn::new(Timestamp::default(), vec![Job::Start(Box::new(start))]);
        match run.activate(Activation::Turn(turn)) {
            Completion::Failed(error) => *error,
            other => panic!("{other:?}"),
        }
    });
    wait_until("the first call of the turn", || watch.site().is_some());
    (StuckTurn::new(watch), played)
}

fn turn_entity() -> Entity {
    Entity::turn(&RunName { workflow: "stuck".into(), workflow_id: "w".into(), run_id: "r".into(), queue: "q".into() })
}

/// S3-21, S3-25, C-23: a turn that calls its ctx fails at its next call, for the reason that was given.
#[test]
fn a_turn_that_calls_its_ctx_stops_at_the_request() {
    let (turn, played) = play(Workflow::new("stuck", |ctx: Ctx, _| async move {
        let deadline = Deadline::of("the request to stop");
        loop {
            ctx.now();
            deadline.check();
        }
    }));
    let owner = Owner::new();
    let id = owner.request(turn_entity(), Arc::new(turn));
    let error = played.join().unwrap();
    owner.finished(id, after(1));
    assert!(matches!(&error, ActivationError::Interrupted { reason, .. } if reason == "too slow"), "{error:?}");
    assert_eq!(owner.count_at(3_600), 0);
}

/// S3-22, S3-24, C-23: a turn that blocks is a zombie until it returns, and the report says where it was last seen.
#[test]
fn a_turn_that_blocks_is_a_zombie() {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let (turn, played) = play(Workflow::new("stuck", move |ctx: Ctx, _| {
        let released = released.clone();
        async move {
            ctx.now();
            released.lock().unwrap().recv().unwrap();
            ctx.now();
            nothing()
        }
    }));
    let owner = Owner::new();
    let id = owner.request(turn_entity(), Arc::new(turn));
    assert_eq!(owner.count_at(9), 0);
    let said = logged(|| assert_eq!(owner.count_at(10), 1));
    assert!(said.starts_with(
        "ERROR kind=turn id=\"w/r\" type_name=\"stuck\" queue=\"q\" zombies=1 place=\"turn 0, the root unit, "
    ));
    assert!(said.contains("last call at crates/worker/tests/worker/stubborn.rs:"), "{said}");
    release.send(()).unwrap();
    assert!(matches!(played.join().unwrap(), ActivationError::Interrupted { .. }));
    owner.finished(id, after(60));
    assert_eq!(owner.count_at(61), 0);
}
