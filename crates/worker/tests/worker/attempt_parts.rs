//! What an attempt starts ends with it.

use std::future::pending;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use dacapo_core::{Failure, Payload};
use dacapo_worker::{Activity, ActivityCtx, ActivityInfo, Attempt, AttemptHandle, Attempts, Interrupt};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::deadline::{Deadline, in_time, wait_until};

/// Tells when it is dropped.
struct Guard(Option<oneshot::Sender<()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

fn guard() -> (Guard, oneshot::Receiver<()>) {
    let (sender, dropped) = oneshot::channel();
    (Guard(Some(sender)), dropped)
}

fn ctx() -> ActivityCtx {
    ActivityCtx::new(ActivityInfo { attempt: 1, ..ActivityInfo::default() }, Arc::new(|_| {}), usize::MAX)
}

fn nothing() -> Result<Payload, Failure> {
    Ok(Payload::default())
}

type Told = oneshot::Receiver<Result<Payload, Failure>>;

fn start(attempts: &Attempts, activity: &Activity) -> (AttemptHandle, Told) {
    let (done, told) = oneshot::channel();
    let attempt = Attempt::new(activity, ctx(), Vec::new(), move |result| drop(done.send(result)));
    let handle = attempt.handle();
    attempts.start(attempt);
    (handle, told)
}

/// Hears of the end of all parts of an attempt.
fn end_of(handle: &AttemptHandle) -> oneshot::Receiver<()> {
    let (sender, ended) = oneshot::channel();
    handle.on_end(move || sender.send(()).unwrap_or_default());
    ended
}

/// An activity that starts a task, which starts one more; both wait for ever. Then it goes on as it is told.
fn with_tasks<P>(then: impl Fn(ActivityCtx) -> P + Send + Sync + 'static) -> (Activity, [oneshot::Receiver<()>; 2])
where
    P: Future<Output = Result<Payload, Failure>> + Send + 'static,
{
    let ((outer, outer_dropped), (inner, inner_dropped)) = (guard(), guard());
    let guards = Mutex::new(Some((outer, inner)));
    let activity = Activity::new("with tasks", move |ctx: ActivityCtx, _| {
        let (outer, inner) = guards.lock().unwrap().take().unwrap();
        let (started, has_started) = oneshot::channel();
        let below = ctx.clone();
        ctx.spawn(async move {
            let _outer = outer;
            below.spawn(async move {
                let _inner = inner;
                let _ = started.send(());
                pending::<()>().await;
            });
            pending::<()>().await;
        });
        let then = then(ctx);
        async move {
            has_started.await.unwrap();
            then.await
        }
    });
    (activity, [outer_dropped, inner_dropped])
}

async fn are_dropped(dropped: [oneshot::Receiver<()>; 2]) {
    for dropped in dropped {
        dropped.await.unwrap();
    }
}

/// S3-15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_end_when_the_activity_returns() {
    let attempts = Attempts::new(Handle::current());
    let (activity, dropped) = with_tasks(|_| async { nothing() });
    let (handle, told) = start(&attempts, &activity);
    assert_eq!(told.await.unwrap(), nothing());
    are_dropped(dropped).await;
    end_of(&handle).await.unwrap();
    assert_eq!((handle.has_ended(), attempts.running()), (true, 0));
}

/// S3-15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_end_when_the_activity_fails_or_panics() {
    let attempts = Attempts::new(Handle::current());
    let (failing, failing_dropped) = with_tasks(|_| async { Err(Failure::application("no")) });
    let (panicking, panicking_dropped) = with_tasks(|_| async { panic!("at the disco") });
    let (_, told) = start(&attempts, &failing);
    assert_eq!(told.await.unwrap(), Err(Failure::application("no")));
    are_dropped(failing_dropped).await;
    let (_, told) = start(&attempts, &panicking);
    assert_eq!(told.await.unwrap().unwrap_err().message, "the activity panicked: at the disco");
    are_dropped(panicking_dropped).await;
}

/// S3-15: an attempt that is given up on ends at its await, and its tasks with it. Its result is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_end_when_the_attempt_is_given_up_on() {
    let attempts = Attempts::new(Handle::current());
    let (reached, has_reached) = oneshot::channel();
    let reached = Mutex::new(Some(reached));
    let (activity, dropped) = with_tasks(move |_| {
        let reached = reached.lock().unwrap().take().unwrap();
        async move {
            reached.send(()).unwrap();
            pending().await
        }
    });
    let (handle, told) = start(&attempts, &activity);
    has_reached.await.unwrap();
    let place = "attempt 1, a task of the runtime, 2 tasks that it started run";
    assert_eq!(
        (handle.place().as_str(), Interrupt::place(&handle).as_str()),
        (place, place),
        "reports of zombies say so"
    );
    handle.give_up("too slow");
    are_dropped(dropped).await;
    end_of(&handle).await.unwrap();
    told.await.unwrap_err();
    assert_eq!(handle.place(), "attempt 1, its code has ended");
}

/// S3-15: a thread that blocks cannot be stopped, but what it started can; and when it returns, the attempt has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_blocking_activity_end_when_it_is_given_up_on() {
    let attempts = Attempts::new(Handle::current());
    let ((task, task_dropped), (blocks, has_blocked), (release, released)) =
        (guard(), oneshot::channel(), mpsc::channel::<()>());
    let parts = Mutex::new(Some((task, blocks, released)));
    let activity = Activity::blocking("blocks", move |ctx, _| {
        let (task, blocks, released) = parts.lock().unwrap().take().unwrap();
        ctx.spawn(async move {
            let _task = task;
            pending::<()>().await;
        });
        blocks.send(()).unwrap();
        released.recv().unwrap();
        nothing()
    });
    let (handle, told) = start(&attempts, &activity);
    has_blocked.await.unwrap();
    handle.give_up("too slow");
    task_dropped.await.unwrap();
    told.await.unwrap_err();
    let place = handle.place();
    assert!(place.starts_with("attempt 1, on thread tokio-r"), "{place}");
    assert_eq!((handle.has_ended(), attempts.running()), (false, 1));
    release.send(()).unwrap();
    end_of(&handle).await.unwrap();
    assert_eq!(attempts.running(), 0);
}

/// S3-15: a task that neither returns nor awaits does not hold up the result, but the attempt has not ended before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_task_that_blocks_keeps_the_attempt_from_ending_and_not_its_result() {
    let attempts = Attempts::new(Handle::current());
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(Some(released));
    let activity = Activity::new("leaves a task", move |ctx: ActivityCtx, _| {
        let released = released.lock().unwrap().take().unwrap();
        let (blocks, has_blocked) = oneshot::channel();
        // Code that blocks a thread of the runtime without saying so also delays what waits behind it.
        ctx.spawn(async move {
            tokio::task::block_in_place(|| {
                blocks.send(()).unwrap();
                released.recv().unwrap();
            });
        });
        async move {
            has_blocked.await.unwrap();
            nothing()
        }
    });
    let (handle, told) = start(&attempts, &activity);
    assert_eq!(told.await.unwrap(), nothing());
    assert_eq!(handle.place(), "attempt 1, its code has ended, one task that it started runs");
    assert!(!handle.has_ended());
    release.send(()).unwrap();
    end_of(&handle).await.unwrap();
}

/// S3-15
#[tokio::test]
async fn a_task_that_is_started_after_the_end_never_runs() {
    let attempts = Attempts::new(Handle::current());
    let (handle, told) = start(&attempts, &Activity::new("short", |_, _| async { nothing() }));
    told.await.unwrap().unwrap();
    let (late, dropped) = guard();
    let task = handle.ctx().spawn(async move {
        let _late = late;
        panic!("it ran");
    });
    dropped.await.unwrap();
    assert!(task.await.unwrap_err().is_cancelled());
    assert!(handle.has_ended());
}

/// S3-15: a handle gives back what the task came to, and without an attempt a ctx ends its tasks itself.
#[tokio::test]
async fn tasks_give_results_and_end_with_a_detached_ctx() {
    let ctx = ActivityCtx::detached();
    assert_eq!(ctx.spawn(async { 7 }).await.unwrap(), 7);
    let (task, dropped) = guard();
    ctx.spawn(async move {
        let _task = task;
        pending::<()>().await;
    });
    drop(ctx);
    dropped.await.unwrap();
}

/// S3-15: what is started while the program goes down is dropped at once, and waits for nothing.
#[test]
fn a_task_of_a_runtime_that_is_gone_never_runs() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle = runtime.handle().clone();
    let _entered = handle.enter();
    drop(runtime);
    let ctx = ActivityCtx::detached();
    let (task, mut dropped) = guard();
    let task = ctx.spawn(async move {
        let _task = task;
        pending::<()>().await;
    });
    dropped.try_recv().unwrap();
    assert!(task.is_finished());
}

/// S3-12, S3-16: cancelling all attempts reaches the code and the tasks of each; they end as they like.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_all_reaches_every_attempt_and_its_tasks() {
    let attempts = Attempts::new(Handle::current());
    let careful = Activity::new("careful", |ctx: ActivityCtx, _| async move {
        let below = ctx.clone();
        let task = ctx.spawn(async move { below.cancelled().await });
        let (own, of_task) = (ctx.cancelled().await, task.await.unwrap());
        assert_eq!(own, of_task);
        Ok(Payload::from(own.reason))
    });
    let parked = Activity::blocking("parked", |ctx, _| {
        wait_until("the cancellation", || ctx.cancellation().is_some());
        nothing()
    });
    let started: Vec<_> = (0..20).map(|_| start(&attempts, &careful)).collect();
    let (blocking, blocking_told) = start(&attempts, &parked);
    started.iter().map(|(handle, _)| handle).chain([&blocking]).for_each(|handle| handle.cancel("shutting down"));
    for (_, told) in started {
        assert_eq!(told.await.unwrap().unwrap(), Payload::from("shutting down"));
    }
    assert_eq!(blocking_told.await.unwrap(), nothing());
}

/// S3-12: one activity that fails leaves the others running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_attempt_leaves_the_others_alone() {
    let attempts = Attempts::new(Handle::current());
    let waits = Activity::new("waits", |ctx: ActivityCtx, _| async move {
        ctx.cancelled().await;
        nothing()
    });
    let (other, told) = start(&attempts, &waits);
    let (_, failed) = start(&attempts, &Activity::new("panics", |_, _| async { panic!("at once") }));
    failed.await.unwrap().unwrap_err();
    assert_eq!((other.has_ended(), other.ctx().cancellation()), (false, None));
    other.cancel("enough");
    assert_eq!(told.await.unwrap(), nothing());
}

/// S3-13: each attempt is a task of its own that ends with it: after a thousand, no task is left.
#[tokio::test]
async fn a_thousand_attempts_leave_no_task_behind() {
    let attempts = Attempts::new(Handle::current());
    let before = Handle::current().metrics().num_alive_tasks();
    let activity = Activity::new("short", |ctx: ActivityCtx, _| async move {
        ctx.spawn(pending::<()>());
        nothing()
    });
    let started: Vec<_> = (0..1_000).map(|_| start(&attempts, &activity)).collect();
    assert_eq!((attempts.running(), Handle::current().metrics().num_alive_tasks() - before), (1_000, 1_000));
    for (handle, told) in started {
        told.await.unwrap().unwrap();
        end_of(&handle).await.unwrap();
    }
    // The runtime counts a task that has ended until it was put away.
    let deadline = Deadline::of("the end of all tasks");
    while Handle::current().metrics().num_alive_tasks() > before {
        deadline.check();
        tokio::task::yield_now().await;
    }
    assert_eq!((attempts.running(), Handle::current().metrics().num_alive_tasks()), (0, before));
}

/// S3-21, C-23: a thread that is parked is woken by every interrupt, and sees for itself that it is no longer wanted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_wakes_a_parked_thread() {
    let attempts = Attempts::new(Handle::current());
    let (parks, mut has_parked) = tokio::sync::mpsc::unbounded_channel();
    let stubborn = Activity::blocking("stubborn", move |ctx, _| {
        let mut woken_after_cancel = 0;
        while woken_after_cancel < 3 {
            parks.send(woken_after_cancel).unwrap();
            std::thread::park();
            woken_after_cancel += u32::from(ctx.cancellation().is_some());
        }
        nothing()
    });
    let (handle, mut told) = start(&attempts, &stubborn);
    handle.cancel("enough");
    // A thread that is about to park is woken all the same, so that no interrupt is lost.
    let result = in_time("the third wake-up", async {
        loop {
            tokio::select! {
                result = &mut told => break result,
                Some(_) = has_parked.recv() => handle.interrupt(),
            }
        }
    })
    .await;
    assert_eq!(result.unwrap(), nothing(), "what it came to still counts");
    end_of(&handle).await.unwrap();
}
