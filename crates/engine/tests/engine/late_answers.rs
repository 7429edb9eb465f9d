//! What a hostile reader tried with time: answers of the store that come late or not at all, work of the host that
//! overtakes other work, and a clock that steps back.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{ContinueAsNew, Ctx, Failure, Headers, Name, Order, Pins, Retry, Timestamp, Watch};
use dacapo_engine::{Engine, Host, NewStart, Options, RunId, Steady, UpdateStage, WaitFor, Work, WorkKind};
use dacapo_store::{Done, MemoryStore, ReadTasks, Status, Store, StoreError, Write};
use dacapo_testkit::{CACHES, LayeredStore, Simulation, StoreLayer};
use dacapo_worker::{Attempt, AttemptCode, GiveUp, WatchedTurn};

use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, options, payload, query, rows, secs, signal, signal_of, status,
    text, update, update_of,
};

/// A store that does some writes at once and answers them when the test says so, or refuses them.
#[derive(Default)]
struct Moody {
    mood: Mutex<Mood>,
    unanswered: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

#[derive(Clone, Copy, Default)]
enum Mood {
    #[default]
    Fair,
    AnswersSendsLate,
    AnswersTurnsLate,
    IsLockedForAttempts,
    IsFullForTurns,
    IsFullForSettlements,
    IsFullForSends,
}

impl Moody {
    fn new() -> Arc<LayeredStore<Self>> {
        LayeredStore::new(Arc::new(MemoryStore::new()), Self::default())
    }

    fn is(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Gives every answer that is late.
    fn answer(&self) {
        let unanswered = std::mem::take(&mut *self.unanswered.lock().unwrap());
        assert!(!unanswered.is_empty(), "no answer is late");
        unanswered.into_iter().for_each(|answer| answer());
    }
}

impl StoreLayer for Moody {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        let mood = *self.mood.lock().unwrap();
        match (mood, &write) {
            (Mood::AnswersSendsLate, Write::Send { .. }) | (Mood::AnswersTurnsLate, Write::Turn(_)) => {
                let written = Arc::new(Mutex::new(None));
                let result = written.clone();
                store.submit(write, Box::new(move |written| *result.lock().unwrap() = Some(written)));
                let answer = move || done(written.lock().unwrap().take().expect("it is written"));
                self.unanswered.lock().unwrap().push(Box::new(answer));
            }
            (Mood::IsLockedForAttempts, Write::Attempt(_)) => done(Err(StoreError::Locked("a backup runs".into()))),
            (Mood::IsFullForTurns, Write::Turn(_))
            | (Mood::IsFullForSettlements, Write::Settle { .. })
            | (Mood::IsFullForSends, Write::Send { .. }) => {
                done(Err(StoreError::Full("no space".into())));
            }
            _ => store.submit(write, done),
        }
    }
}

/// A host that does one piece of work when the test says so, and whose clock the test sets.
struct Stepwise {
    now: Mutex<Timestamp>,
    work: Mutex<VecDeque<Work>>,
    ids: Mutex<u64>,
}

impl Stepwise {
    fn new() -> Arc<Self> {
        let now = Mutex::new(Timestamp::from_millis(1_000_000));
        Arc::new(Self { now, work: Mutex::default(), ids: Mutex::default() })
    }

    /// Does one piece of work. False if there is none.
    fn step(&self) -> bool {
        let work = self.work.lock().unwrap().pop_front();
        work.map(Work::perform).is_some()
    }

    fn waiting(&self) -> usize {
        self.work.lock().unwrap().len()
    }

    /// What came first is done last.
    fn overtake(&self) {
        self.work.lock().unwrap().rotate_left(1);
    }

    fn set(&self, now: Timestamp) {
        *self.now.lock().unwrap() = now;
    }

    /// What a call comes to, once all is done that is left to do now; none if it still waits.
    fn wait<T>(&self, engine: &Engine, call: impl Future<Output = T>) -> Option<T> {
        let mut call = pin!(call);
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(result) = call.as_mut().poll(&mut cx) {
            return Some(result);
        }
        self.settle(engine);
        match call.as_mut().poll(&mut cx) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    /// Does all that is left to do now.
    fn settle(&self, engine: &Engine) {
        engine.tick();
        while self.step() {
            engine.tick();
        }
    }
}

impl Host for Stepwise {
    fn watch(&self, _: Watch, _: Duration, _: GiveUp) -> Option<WatchedTurn> {
        None
    }
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }
    fn end_process(&self, _: &str) {}
    fn steady_now(&self) -> Steady {
        Steady(self.now())
    }

    fn perform(&self, work: Work) {
        self.work.lock().unwrap().push_back(work);
    }
    fn attempt(&self, attempt: Attempt) {
        let (code, handle) = attempt.into_parts();
        let AttemptCode::Blocking(call) = code else { panic!("this host has blocking activities only") };
        self.perform(Work::new(WorkKind::Attempt, None, None, move || handle.finish(call())));
    }
    fn wake_at(&self, _: Steady) {}
    fn run_id(&self) -> Name {
        let mut ids = self.ids.lock().unwrap();
        *ids += 1;
        format!("run-{ids}").into()
    }
}

fn new() -> NewStart {
    NewStart { workflow: "w".into(), workflow_id: "a".into(), ..NewStart::default() }
}

/// The run was loaded with the message, and the late answer delivered it once more.
#[test]
fn message_whose_commit_is_answered_late_is_taken_once() {
    let store = Moody::new();
    let sim = Simulation::over(
        store.clone(),
        options().workflow("w", |ctx: Ctx, _| async move {
            let mut seen = Vec::new();
            for _ in 0..4 {
                seen.push(text(&ctx.next_signal("go").await?.input[0]));
            }
            Ok(payload(seen.join(",")))
        }),
    );
    sim.start("w", "a", "").unwrap();
    sim.settle();
    sim.engine().evict_idle();

    store.is(Mood::AnswersSendsLate);
    let to = RunId::of("a");
    assert!(sim.try_wait(sim.engine().signal(&to, signal_of("go", "one"), None)).is_none());
    store.is(Mood::Fair);
    // This wakes the run, which is loaded with both signals, and leaves again.
    signal(&sim, "a", "go", "two");
    sim.settle();
    sim.engine().evict_idle();
    signal(&sim, "a", "go", "three");
    sim.settle();

    store.answer();
    sim.settle();
    assert_eq!(status(&sim, "a"), Status::Open, "three signals came");
    signal(&sim, "a", "go", "four");
    assert_eq!(sim.result("a"), completed("one,two,three,four"));
}

/// The note of the failed try was refused, and with it the next try was gone.
#[test]
fn a_retry_that_could_not_be_noted_because_the_file_was_busy_comes_all_the_same() {
    let store = Moody::new();
    let world = World::default();
    let tries = world.clone();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move { ctx.activity("work", "x").retry(Retry::exponential()).await })
        .activity("work", move |_, _| {
            tries.note("try");
            if tries.count() == 1 { Err(Failure::application("once more")) } else { Ok(payload("worked")) }
        });
    let sim = Simulation::over(store.clone(), serve);
    store.is(Mood::IsLockedForAttempts);
    sim.start("w", "a", "").unwrap();
    sim.settle();
    assert_eq!(world.count(), 1);
    store.is(Mood::Fair);
    assert_eq!(sim.result("a"), completed("worked"));
    assert_eq!(world.count(), 2);
}

/// The answer of the last turn came after the end of the run, and its activity was tried.
#[test]
fn no_activity_begins_after_its_run_was_terminated() {
    let store = Moody::new();
    let world = World::default();
    let tries = world.clone();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.next_signal("go").await?;
            ctx.activity("work", "").await
        })
        .activity("work", move |_, _| {
            tries.note("try");
            Ok(payload(""))
        });
    let sim = Simulation::over(store.clone(), serve);
    sim.start("w", "a", "").unwrap();
    sim.settle();
    store.is(Mood::AnswersTurnsLate);
    signal(&sim, "a", "go", "");
    sim.settle();
    store.is(Mood::Fair);
    sim.wait(sim.engine().terminate(&RunId::of("a"), "stop")).unwrap();
    sim.settle();

    store.answer();
    sim.play_out();
    assert_eq!((status(&sim, "a"), rows(&sim, "a")), (Status::Terminated, NO_ROWS));
    assert_eq!(world.count(), 0, "an activity of a run that is over was tried");
    assert_eq!(sim.engine().runs_in_memory(), 0);
}

/// A turn that waits for local work is deferred; the void turn of the rejected update cleared what it had taken, and when
/// the store refused it there was nothing left to play it again with.
#[test]
fn rejected_update_does_not_lose_the_messages_of_a_deferred_turn() {
    let store = Moody::new();
    let gate = Gate::default();
    let waits = gate.clone();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.on_update("put", |_| Err(Failure::application("never")), |_| async { Ok(payload("")) });
            ctx.sleep(secs(1)).await?;
            ctx.local_activity("local", "x").await
        })
        .waiting("local", move |_, _| waits.pass());
    let sim = Simulation::over(store.clone(), Options { double_play: false, ..serve });
    sim.start("w", "a", "").unwrap();
    sim.settle();
    sim.advance(secs(1));
    assert_eq!(describe(&sim, "a").turns, 1, "the second turn is deferred");
    let answer = update(&sim, "a", "u", "put", "x", WaitFor::Completed);
    assert!(matches!(&answer, Err(Error::UpdateRejected(_))), "{answer:?}");
    store.is(Mood::IsFullForTurns);
    sim.advance(secs(1));
    store.is(Mood::Fair);
    gate.open(Ok(payload("local")));
    sim.advance(secs(10_000));
    assert_eq!(sim.result("a"), completed("local"));
}

/// The settlement of the rejected update failed: the update was put back, and what the deferred turn had taken was not.
#[test]
fn refused_settlement_does_not_lose_the_messages_of_a_deferred_turn() {
    let store = Moody::new();
    let gate = Gate::default();
    let waits = gate.clone();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.on_update("put", |_| Err(Failure::application("never")), |_| async { Ok(payload("")) });
            ctx.sleep(secs(1)).await?;
            ctx.local_activity("local", "x").await
        })
        .waiting("local", move |_, _| waits.pass());
    let sim = Simulation::over(store.clone(), Options { double_play: false, ..serve });
    sim.start("w", "a", "").unwrap();
    sim.settle();
    sim.advance(secs(1));
    assert_eq!(describe(&sim, "a").turns, 1, "the second turn is deferred");
    store.is(Mood::IsFullForSettlements);
    let to = RunId::of("a");
    let mut answer = pin!(sim.engine().update(&to, update_of("u", "put", "x"), WaitFor::Completed));
    assert_eq!(sim.try_wait(answer.as_mut()), None, "its rejection cannot be stored");
    store.is(Mood::Fair);
    gate.open(Ok(payload("local")));
    sim.advance(secs(10_000));
    assert_eq!(sim.result("a"), completed("local"));
}

/// Its turn was committed and not answered yet when the run was terminated.
#[test]
fn no_local_work_begins_after_its_run_was_terminated() {
    let (store, world) = (Moody::new(), World::default());
    let tries = world.clone();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.next_signal("go").await?;
            // With a timer the turn is not one of local work alone, which would be deferred.
            let timer = ctx.sleep(secs(1_000));
            let result = ctx.local_activity("work", "").await;
            drop(timer);
            result
        })
        .activity("work", move |_, _| {
            tries.note("try");
            Ok(payload(""))
        });
    let sim = Simulation::over(store.clone(), Options { double_play: false, ..serve });
    sim.start("w", "a", "").unwrap();
    sim.settle();
    store.is(Mood::AnswersTurnsLate);
    signal(&sim, "a", "go", "");
    sim.settle();
    store.is(Mood::Fair);
    sim.wait(sim.engine().terminate(&RunId::of("a"), "stop")).unwrap();
    sim.settle();
    store.answer();
    sim.play_out();
    assert_eq!(status(&sim, "a"), Status::Terminated);
    assert_eq!(sim.engine().runs_in_memory(), 0);
    assert_eq!(world.count(), 0, "local work of a run that is over was tried");
}

/// The result was on its way when the activity was cancelled: no unit waited for it, and its task was not removed.
#[test]
fn a_result_that_crosses_a_cancel_leaves_no_task() {
    let host = Stepwise::new();
    let world = World::default();
    let serving = || {
        let world = world.clone();
        let serve = options()
            .workflow("w", |ctx: Ctx, _| async move {
                let work = ctx.activity("work", "x");
                ctx.next_signal("go").await?;
                drop(work);
                ctx.next_signal("end").await?;
                Ok(payload("done"))
            })
            .activity("work", move |_, _| {
                world.note("try");
                Ok(payload(""))
            });
        Options { completions_per_turn: 1, ..serve }
    };
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::open(store.clone(), host.clone(), serving()).unwrap();
    host.settle(&engine);
    drop(engine.start(new()));
    host.step();
    assert_eq!(host.waiting(), 1, "the attempt");
    let to = RunId::of("a");
    let mut sent = pin!(engine.signal(&to, signal_of("go", ""), None));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(sent.as_mut().poll(&mut cx).is_pending());
    host.overtake();
    while host.step() {}
    assert!(matches!(sent.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    let run = engine.describe(&to).unwrap();
    assert_eq!((run.status, run.pending.len(), world.count()), (Status::Open, 0, 1));
    assert_eq!(store.tasks_of(run.run).unwrap(), []);

    engine.stop();
    let engine = Engine::open(store, host.clone(), serving()).unwrap();
    host.settle(&engine);
    assert_eq!(world.count(), 1, "the next process tries what was cancelled");
}

/// The child's start was stamped with its parent's time, which was yet to come by the clock that had stepped back.
#[test]
fn a_child_is_begun_though_the_clock_steps_back() {
    let host = Stepwise::new();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.next_signal("go").await?;
            ctx.child("child", "").await
        })
        .workflow("child", |_: Ctx, _| async move { Ok(payload("grown")) });
    let engine = Engine::open(Arc::new(MemoryStore::new()), host.clone(), serve).unwrap();
    drop(engine.start(new()));
    host.settle(&engine);
    let to = RunId::of("a");
    let mut sent = pin!(engine.signal(&to, signal_of("go", ""), None));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(sent.as_mut().poll(&mut cx).is_pending());
    assert!(host.step(), "the signal is sent");
    assert!(host.step(), "the parent's turn starts the child");
    host.set(Timestamp::from_millis(1_000_000 - 1000));
    while host.step() {}
    for _ in 0..100 {
        host.set(host.now().after(secs(10)));
        host.settle(&engine);
    }
    assert!(matches!(sent.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    let result = host.wait(&engine, engine.result(&to)).expect("1,000 s later the child has begun");
    assert_eq!(result.unwrap(), completed("grown"));
}

/// The run was played for the question while the moment of its next try came and went, and the try was forgotten.
#[test]
fn query_of_a_stuck_run_leaves_its_next_try_scheduled() {
    let host = Stepwise::new();
    let is_fixed = Arc::new(AtomicBool::new(false));
    let slow: Arc<Mutex<Option<Engine>>> = Arc::default();
    let (clock, fixed, lasts) = (host.clone(), is_fixed.clone(), slow.clone());
    let serve = options().workflow("w", move |ctx: Ctx, _| {
        let (clock, fixed) = (clock.clone(), fixed.clone());
        if let Some(engine) = lasts.lock().unwrap().take() {
            clock.set(clock.now().after(secs(10)));
            engine.tick();
        }
        async move {
            ctx.on_query("how", |_| Ok("well".into()));
            ctx.next_signal("go").await?;
            assert!(fixed.load(Ordering::Relaxed), "not yet");
            Ok("corrected".into())
        }
    });
    let engine = Engine::open(Arc::new(MemoryStore::new()), host.clone(), serve).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let to = RunId::of("a");
    let mut started = pin!(engine.start(new()));
    assert!(started.as_mut().poll(&mut cx).is_pending());
    host.settle(&engine);
    let mut sent = pin!(engine.signal(&to, signal_of("go", ""), None));
    assert!(sent.as_mut().poll(&mut cx).is_pending());
    host.settle(&engine);
    assert!(engine.describe(&to).unwrap().stuck.is_some());

    // The code is fixed, and its play for the question lasts beyond the moment of the next try.
    is_fixed.store(true, Ordering::Relaxed);
    *slow.lock().unwrap() = Some(engine.clone());
    let mut asked = pin!(engine.query(&to, "how".into(), Vec::new(), Headers::new()));
    assert!(asked.as_mut().poll(&mut cx).is_pending());
    host.settle(&engine);
    assert!(slow.lock().unwrap().is_none(), "it was played for the question");
    assert!(asked.as_mut().poll(&mut cx).is_ready());
    let result = host.wait(&engine, engine.result(&to)).expect("the run is played again");
    assert_eq!(result.unwrap(), completed("corrected"));
}

/// Another run's signal found the run in the store before its start was answered; it was loaded, played on and put away.
/// The copy that the start had kept was of the past, and was asked and played as if it were the run.
#[test]
fn start_that_is_answered_late_does_not_bring_back_an_older_state_of_the_run() {
    for cache in CACHES {
        let store = Moody::new();
        let world = World::default();
        let noted = world.clone();
        let serve = options()
            .workflow("counts", |ctx: Ctx, _| async move {
                let seen = ctx.state(0);
                let asked = seen.clone();
                ctx.on_query("seen", move |_| Ok(payload(asked.read(i32::to_string))));
                let work = ctx.activity("work", "");
                for _ in 0..2 {
                    ctx.next_signal("go").await?;
                    seen.update(|seen| *seen += 1);
                }
                work.await
            })
            .activity("work", move |_, _| {
                noted.note("worked");
                Ok("done".into())
            });
        let sim = Simulation::over(store.clone(), serve.cache(cache));
        store.is(Mood::AnswersTurnsLate);
        let new = NewStart { workflow: "counts".into(), workflow_id: "a".into(), ..NewStart::default() };
        assert!(sim.try_wait(sim.engine().start(new)).is_none());
        store.is(Mood::Fair);
        signal(&sim, "a", "go", "");
        sim.settle();
        sim.engine().evict_idle();
        store.answer();
        sim.settle();
        assert_eq!(query(&sim, "a", "seen").as_deref(), Ok("1"), "{cache:?}");
        assert_eq!(describe(&sim, "a").stuck, None, "{cache:?}");
        signal(&sim, "a", "go", "");
        sim.settle();
        assert_eq!((sim.result("a"), world.count()), (completed("done"), 1), "{cache:?}");
        assert_eq!(describe(&sim, "a").closed, Some(sim.now()), "{cache:?}: without a pause");
    }
}

/// A caller terminates a run whose start is not answered yet. Its tasks came to the task queue with the answer, and were tried.
#[test]
fn activities_of_a_run_terminated_before_its_start_was_answered_are_not_tried() {
    for cache in CACHES {
        let store = Moody::new();
        let world = World::default();
        let noted = world.clone();
        let serve = options().workflow("calls", |ctx: Ctx, _| async move { ctx.activity("work", "").await }).activity(
            "work",
            move |_, input| {
                noted.note("worked");
                Ok(input)
            },
        );
        let sim = Simulation::over(store.clone(), serve.cache(cache));
        store.is(Mood::AnswersTurnsLate);
        let new = NewStart { workflow: "calls".into(), workflow_id: "a".into(), ..NewStart::default() };
        assert!(sim.try_wait(sim.engine().start(new)).is_none());
        store.is(Mood::Fair);
        sim.wait(sim.engine().terminate(&RunId::of("a"), "enough")).unwrap();
        store.answer();
        sim.settle();
        assert_eq!((status(&sim, "a"), world.count()), (Status::Terminated, 0), "{cache:?}");
        assert_eq!(describe(&sim, "a").pending.len(), 0, "{cache:?}");
    }
}

/// Continues as new with every `go`, so often; the root goes first, so that an update that comes with a `go` is handed on.
fn relay(times: u32) -> Options {
    let mut options = options().workflow("relay", move |ctx: Ctx, input| async move {
        ctx.on_update("put", |_| Ok(()), |update| async move { Ok(update.input[0].clone()) });
        ctx.next_signal("go").await?;
        match text(&input).parse::<u32>().unwrap_or(0) {
            run if run == times => Ok("ended".into()),
            run => {
                let input = vec![payload((run + 1).to_string())];
                Err(ctx.continue_as_new(ContinueAsNew { input, ..ContinueAsNew::default() }))
            }
        }
    });
    options.pins.push(("relay".into(), Pins { order: Order::RootFirst, ..Pins::default() }));
    options
}

/// The next run of the chain answers the update before the commit that handed it on is heard of: its sender is told.
#[test]
fn update_handed_on_and_answered_before_the_commit_is_heard_of_is_answered() {
    for cache in CACHES {
        let store = Moody::new();
        let sim = Simulation::over(store.clone(), relay(1).cache(cache));
        sim.start("relay", "a", "").unwrap();
        sim.settle();
        let (engine, to) = (sim.engine().clone(), RunId::of("a"));
        let mut go = pin!(engine.signal(&to, signal_of("go", ""), None));
        let mut put = pin!(engine.update(&to, update_of("u", "put", "1"), WaitFor::Completed));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(go.as_mut().poll(&mut cx).is_pending() && put.as_mut().poll(&mut cx).is_pending());
        store.is(Mood::AnswersTurnsLate);
        sim.settle();
        store.is(Mood::Fair);
        // A message that comes now finds the next run in the store, and wakes it.
        signal(&sim, "a", "hello", "");
        sim.settle();
        assert_eq!(describe(&sim, "a").turns, 1, "{cache:?}: it has answered");
        store.answer();
        let answer = sim.try_wait(put);
        assert_eq!(answer, Some(Ok(UpdateStage::Completed(Ok(payload("1"))))), "{cache:?}");
    }
}

/// An update goes from the first run to the second and on to the third before either commit is heard of. Its sender waited at
/// the second run, which was closed by then, for ever; or was told that the run continued as new.
#[test]
fn update_handed_on_twice_before_either_commit_is_heard_of_is_answered_by_the_third_run() {
    for cache in CACHES {
        let store = Moody::new();
        let sim = Simulation::over(store.clone(), relay(2).cache(cache));
        sim.start("relay", "a", "").unwrap();
        sim.settle();
        let (engine, to) = (sim.engine().clone(), RunId::of("a"));
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(engine.signal(&to, signal_of("go", "1"), None));
        let mut second = pin!(engine.signal(&to, signal_of("go", "2"), None));
        let mut put = pin!(engine.update(&to, update_of("u", "put", "1"), WaitFor::Completed));
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        assert!(put.as_mut().poll(&mut cx).is_pending());
        store.is(Mood::AnswersTurnsLate);
        sim.settle();
        // Both were taken by the first run and go on with the second, which a message wakes.
        assert!(put.as_mut().poll(&mut cx).is_pending());
        signal(&sim, "a", "hello", "");
        sim.settle();
        let chain: Vec<_> = sim.store().list(&Default::default(), None, 9).unwrap();
        let statuses: Vec<Status> = chain.iter().map(|run| run.status).collect();
        assert_eq!(statuses, [Status::Open, Status::ContinuedAsNew, Status::ContinuedAsNew], "{cache:?}");
        store.is(Mood::Fair);
        store.answer();
        let answer = sim.try_wait(put);
        assert_eq!(answer, Some(Ok(UpdateStage::Completed(Ok(payload("1"))))), "{cache:?}");
    }
}

#[test]
fn query_of_a_run_that_is_deleted_meanwhile_is_refused() {
    let sim = Simulation::new(options().workflow("short", |ctx: Ctx, input| async move {
        ctx.on_query("seen", |_| Ok("yes".into()));
        Ok(input)
    }));
    sim.start("short", "a", "1").unwrap();
    assert_eq!(sim.result("a"), completed("1"));
    let run = sim.store().find("a", None).unwrap().unwrap().no;
    let of = RunId::of("a");
    let mut asked = pin!(sim.engine().query(&of, "seen".into(), Vec::new(), Headers::new()));
    // It has found the run, which is queued.
    assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(sim.step(), "the run is looked up");
    sim.store().submit(Write::Delete { run }, Box::new(|deleted| assert!(deleted.is_ok())));
    assert_eq!(sim.wait(asked).map(|_| ()), Err(Error::Stuck("it was deleted".to_owned())));
}

/// Its result waited in memory until the run could be played, though there was room in the store long before.
#[test]
fn result_for_a_stuck_run_that_could_not_be_stored_is_stored_when_there_is_room() {
    let (store, world, gate) = (Moody::new(), World::default(), Gate::default());
    let (tries, waits) = (world.clone(), gate.clone());
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            let work = ctx.activity("work", "");
            ctx.next_signal("go").await?;
            drop(work);
            panic!("it is stuck")
        })
        .waiting("work", move |_, _| {
            tries.note("try");
            waits.pass()
        });
    let sim = Simulation::over(store.clone(), serve);
    sim.start("w", "a", "").unwrap();
    signal(&sim, "a", "go", "");
    sim.settle();
    assert!(describe(&sim, "a").stuck.is_some());
    store.is(Mood::IsFullForSends);
    gate.open(Ok(payload("done")));
    sim.settle();
    let unseen = |sim: &Simulation| sim.store().unseen(describe(sim, "a").run).unwrap().len();
    assert_eq!(unseen(&sim), 1, "the signal");
    store.is(Mood::Fair);
    sim.advance(secs(5));
    assert_eq!(unseen(&sim), 2, "the signal and the result");
    let sim = sim.restart();
    sim.settle();
    assert_eq!(world.count(), 1, "what was done is not done again");
}
