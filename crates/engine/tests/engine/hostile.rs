//! Hostile review.
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dacapo_core::{Ctx, Failure, Name, Payload, Retry, Timestamp};
use dacapo_engine::{Cache, Engine, Host, NewStart, RunId, Work};
use dacapo_store::{
    Done, Mail, MailRow, MemoryStore, RunFilter, RunNo, RunRow, Runs, Status, StoreError, TaskRow, Tasks, TimerRow,
    Timers, Turns, Write, Writes,
};
use dacapo_testkit::Stage;
use dacapo_worker::{Attempt, AttemptCode};

use crate::kit::{Serve, World, describe, options, payload, resolve, rows, secs, signal, signal_of, text};

const N: usize = 9_999;
#[test]
fn very_many_timers_of_one_moment_all_fire() {
    let serve = options().workflow("w", |ctx: Ctx, _| async move {
        let sleeps: Vec<_> = (0..N).map(|_| ctx.sleep(secs(5))).collect();
        futures_all(sleeps).await?;
        Ok(payload("done"))
    });
    let mut serve = serve;
    serve.double_play = false;
    let stage = Stage::new(serve);
    stage.start("w", "a", "").unwrap();
    stage.settle();
    let stage = stage.restart();
    // advance() would spin for ever: tick by hand
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        if rx.recv_timeout(Duration::from_secs(40)).is_err() {
            eprintln!("R1: HANGS/SPINS, timers never fire");
            std::process::exit(7);
        }
    });
    stage.advance(secs(60));
    tx.send(()).unwrap();
    assert_eq!(describe(&stage, "a").status, Status::Completed);
}

async fn futures_all(list: Vec<dacapo_core::Timer>) -> Result<(), Failure> {
    for one in list {
        one.await?;
    }
    Ok(())
}

#[test]
fn a_cancelled_activity_of_another_queue_is_not_tried_by_the_next_process() {
    let world = World::default();
    let w = world.clone();
    let make = move |both: bool| {
        let w = w.clone();
        let mut o = options()
            .workflow("w", |ctx: Ctx, _| async move {
                let a = ctx.activity("work", "x").queue("other");
                ctx.signal("go").await?;
                drop(a);
                Ok(payload("done"))
            })
            .activity("work", move |_, input| {
                w.note(text(&input));
                Ok(payload(""))
            });
        if both {
            o.queues.insert("other".into());
        }
        o
    };
    let stage = Stage::new(make(false));
    stage.start("w", "a", "").unwrap();
    stage.settle();
    signal(&stage, "a", "go", "");
    stage.play_out();
    assert_eq!(describe(&stage, "a").status, Status::Completed);
    eprintln!("R4a rows left of the closed run (tasks,timers,mail): {:?}", rows(&stage, "a"));
    let stage = stage.redeploy(make(true));
    stage.play_out();
    assert_eq!(world.count(), 0, "the activity of a closed run was tried: {:?}", world.notes());
}

#[test]
fn a_result_that_crosses_a_cancel_leaves_no_task() {
    let host = Arc::new(H {
        now: Mutex::new(Timestamp::from_millis(1_000_000)),
        work: Mutex::default(),
        ids: Mutex::default(),
    });
    let world = World::default();
    let w = world.clone();
    let make = || {
        let w = w.clone();
        options()
            .workflow("w", |ctx: Ctx, _| async move {
                let a = ctx.activity("work", "x");
                ctx.signal("go").await?;
                drop(a);
                ctx.signal("end").await?;
                Ok(payload("done"))
            })
            .activity("work", move |_, _| {
                w.note("x");
                Ok(payload(""))
            })
    };
    let store: Arc<MemoryStore> = Arc::new(MemoryStore::new());
    let mut o = make();
    o.completions_per_turn = 1;
    let engine = Engine::open(store.clone(), host.clone(), o).unwrap();
    let new = NewStart {
        workflow: "w".into(),
        workflow_id: "a".into(),
        input: vec![Payload::default()],
        ..NewStart::default()
    };
    drop(engine.start(new));
    host.step();
    assert_eq!(host.work.lock().unwrap().len(), 1, "the attempt");
    let e = engine.clone();
    let mut sig = Box::pin(async move { e.signal(&RunId::of("a"), signal_of("go", ""), None).await });
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = std::future::Future::poll(sig.as_mut(), &mut cx);
    host.work.lock().unwrap().rotate_left(1);
    while host.step() {}
    let run = engine.describe(&RunId::of("a")).unwrap();
    eprintln!("R4b: pending {:?}, rows {:?}", run.pending.len(), store.tasks_of(run.run).unwrap().len());
    let mut history = engine.reader().history(&RunId::of("a")).unwrap().to_text();
    history.truncate(1500);
    engine.stop();
    let engine = Engine::open(store.clone(), host.clone(), make()).unwrap();
    for _ in 0..5 {
        engine.tick();
        while host.step() {}
    }
    assert_eq!(
        world.count(),
        1,
        "a cancelled activity is tried again by the next process, rows: {}",
        store.tasks_of(run.run).unwrap().len()
    );
}

#[test]
fn a_promise_that_was_resolved_is_known_to_the_run_after_a_reset() {
    let serve = options().workflow("w", |ctx: Ctx, _| async move {
        let p = ctx.promise("paid");
        ctx.signal("first").await?;
        let paid = p.await?;
        ctx.signal("go").await?;
        Ok(paid)
    });
    let stage = Stage::new(serve);
    stage.start("w", "a", "").unwrap();
    stage.settle();
    signal(&stage, "a", "first", "");
    stage.settle();
    resolve(&stage, "a", "paid", Ok(payload("42"))).unwrap();
    stage.settle();
    stage.wait(stage.engine().reset(&RunId::of("a"), 2, "again")).unwrap();
    stage.settle();
    signal(&stage, "a", "go", "");
    stage.play_out();
    assert_eq!(describe(&stage, "a").status, Status::Completed, "the resolution was acknowledged and is lost");
}

#[test]
fn parked_runs_do_not_keep_others_in_memory() {
    let mut serve = options()
        .workflow("bad", |_: Ctx, _| async move {
            if true {
                panic!("bad deploy")
            }
            Ok(payload(""))
        })
        .workflow("good", |ctx: Ctx, _| async move {
            ctx.signal("go").await?;
            Ok(payload(""))
        })
        .cache(Cache::AtMost(10));
    serve.double_play = false;
    let stage = Stage::new(serve);
    for n in 0..20 {
        let id: &'static str = format!("bad-{n}").leak();
        stage.start("bad", id, "").unwrap();
    }
    stage.settle();
    for n in 0..500 {
        let id: &'static str = format!("good-{n}").leak();
        stage.start("good", id, "").unwrap();
        stage.settle();
    }
    eprintln!("R10 in memory: {} (cache 10, 20 parked)", stage.engine().runs_in_memory());
    assert!(stage.engine().runs_in_memory() < 50);
}

// ---- own store and host
#[derive(Default)]
struct Hook {
    store: MemoryStore,
    /// Holds back the answers of posts with this in their key.
    hold: Mutex<Option<&'static str>>,
    held: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    busy_attempts: Mutex<bool>,
    full_turns: Mutex<bool>,
}
impl Writes for Hook {
    fn submit(&self, write: Write, done: Done) {
        if let (Write::Post { mail, .. }, Some(key)) = (&write, *self.hold.lock().unwrap())
            && mail.key.contains(key)
        {
            let answer = Arc::new(Mutex::new(None));
            let a = answer.clone();
            self.store.submit(write, Box::new(move |result| *a.lock().unwrap() = Some(result)));
            self.held.lock().unwrap().push(Box::new(move || done(answer.lock().unwrap().take().unwrap())));
            return;
        }
        if matches!(write, Write::Attempt(_)) && *self.busy_attempts.lock().unwrap() {
            return done(Err(StoreError::Busy("a backup holds the lock".into())));
        }
        if matches!(write, Write::Turn(_)) && *self.full_turns.lock().unwrap() {
            return done(Err(StoreError::Full("x".into())));
        }
        self.store.submit(write, done);
    }
}
impl Runs for Hook {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>, StoreError> {
        self.store.run(no)
    }
    fn find(&self, w: &str, r: Option<&str>) -> Result<Option<RunRow>, StoreError> {
        self.store.find(w, r)
    }
    fn list(&self, f: &RunFilter, b: Option<RunNo>, l: usize) -> Result<Vec<RunRow>, StoreError> {
        self.store.list(f, b, l)
    }
    fn count(&self, f: &RunFilter) -> Result<u64, StoreError> {
        self.store.count(f)
    }
}
impl Turns for Hook {
    fn turns(
        &self,
        run: RunNo,
        from: u64,
        show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.turns(run, from, show)
    }
}
impl Mail for Hook {
    fn unseen(&self, run: RunNo) -> Result<Vec<MailRow>, StoreError> {
        self.store.unseen(run)
    }
    fn mail(&self, run: RunNo, key: &str) -> Result<Option<MailRow>, StoreError> {
        self.store.mail(run, key)
    }
    fn with_unseen_mail(&self, limit: usize) -> Result<Vec<RunNo>, StoreError> {
        self.store.with_unseen_mail(limit)
    }
}
impl Tasks for Hook {
    fn tasks(&self, q: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.store.tasks(q, above, limit)
    }
    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>, StoreError> {
        self.store.tasks_of(run)
    }
}
impl Timers for Hook {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, StoreError> {
        self.store.due(until, limit)
    }
    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store.next_due()
    }
}

#[test]
fn mail_whose_answer_is_late_is_taken_once() {
    let store = Arc::new(Hook::default());
    let serve = options().workflow("w", |ctx: Ctx, _| async move {
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(text(&ctx.signal("go").await?.input[0]));
        }
        Ok(payload(seen.join(",")))
    });
    let stage = Stage::over(store.clone(), serve);
    stage.start("w", "a", "").unwrap();
    stage.settle();
    let engine = stage.engine().clone();
    stage.engine().evict_idle();
    *store.hold.lock().unwrap() = Some("late");
    // "one" is committed, its callback is held back
    let e = engine.clone();
    let one =
        stage.try_wait(async move { e.signal(&RunId::of("a"), signal_of("go", "one"), Some("late".into())).await });
    assert!(one.is_none(), "not yet acknowledged");
    *store.hold.lock().unwrap() = None;
    // "two" wakes the run, which is loaded with both
    signal(&stage, "a", "go", "two");
    stage.settle();
    // the run leaves memory and comes back
    stage.engine().evict_idle();
    signal(&stage, "a", "go", "three");
    stage.settle();
    let held = std::mem::take(&mut *store.held.lock().unwrap());
    held.into_iter().for_each(|done| done());
    stage.settle();
    if describe(&stage, "a").status == Status::Open {
        signal(&stage, "a", "go", "four");
    }
    let (_, result) = stage.result("a");
    assert_eq!(text(&result.unwrap()), "one,two,three,four", "a signal was taken twice");
}

#[test]
fn a_retry_that_could_not_be_noted_because_the_file_was_busy_comes_all_the_same() {
    let store = Arc::new(Hook::default());
    let world = World::default();
    let w = world.clone();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move { ctx.activity("work", "x").retry(Retry::exponential()).await })
        .activity("work", move |_, _| {
            w.note("t");
            if w.count() == 1 { Err(Failure::application("once")) } else { Ok(payload("ok")) }
        });
    let stage = Stage::over(store.clone(), serve);
    *store.busy_attempts.lock().unwrap() = true;
    stage.start("w", "a", "").unwrap();
    stage.settle();
    *store.busy_attempts.lock().unwrap() = false;
    stage.advance(secs(100_000));
    assert_eq!(describe(&stage, "a").status, Status::Completed, "pending: {:?}", describe(&stage, "a").pending);
}

#[test]
fn endless_pauses_are_only_long() {
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.activity("work", "x").retry(Retry::exponential().initial(Duration::MAX).longest(Duration::MAX)).await
        })
        .activity("work", move |_, _| Err(Failure::application("once")));
    let stage = Stage::new(serve);
    stage.start("w", "a", "").unwrap();
    stage.settle();
}

struct H {
    now: Mutex<Timestamp>,
    work: Mutex<VecDeque<Work>>,
    ids: Mutex<u64>,
}
impl H {
    fn step(&self) -> bool {
        let w = self.work.lock().unwrap().pop_front();
        match w {
            Some(w) => {
                w();
                true
            }
            None => false,
        }
    }
}
impl Host for H {
    fn watch(&self, _: dacapo_core::Watch, _: dacapo_worker::GiveUp) -> Option<dacapo_worker::WatchedTurn> {
        None
    }

    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }
    fn play(&self, work: Work) {
        self.work.lock().unwrap().push_back(work);
    }
    fn attempt(&self, attempt: Attempt) {
        let (code, grip) = attempt.into_parts();
        if let AttemptCode::Blocking(call) = code {
            self.work.lock().unwrap().push_back(Box::new(move || grip.finish(call())));
        }
    }
    fn wake_at(&self, _: Timestamp) {}
    fn run_id(&self) -> Name {
        let mut i = self.ids.lock().unwrap();
        *i += 1;
        format!("r{i}").into()
    }
}

#[test]
fn a_child_is_begun_though_the_clock_steps_back() {
    let host = Arc::new(H {
        now: Mutex::new(Timestamp::from_millis(1_000_000)),
        work: Mutex::default(),
        ids: Mutex::default(),
    });
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.signal("go").await?;
            ctx.child("c", "").await
        })
        .workflow("c", |_: Ctx, _| async move { Ok(payload("child")) });
    let engine = Engine::open(Arc::new(MemoryStore::new()), host.clone(), serve).unwrap();
    let new = NewStart {
        workflow: "w".into(),
        workflow_id: "a".into(),
        input: vec![Payload::default()],
        ..NewStart::default()
    };
    drop(engine.start(new));
    while host.step() {
        engine.tick();
    }
    let e = engine.clone();
    let mut sig = Box::pin(async move { e.signal(&RunId::of("a"), signal_of("go", ""), None).await });
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = std::future::Future::poll(sig.as_mut(), &mut cx);
    host.step(); // post
    host.step(); // the parent's turn, which starts the child
    // the parent's last `now` is later than the clock from here on
    *host.now.lock().unwrap() = Timestamp::from_millis(1_000_000 - 1000);
    while host.step() {}
    for _ in 0..100 {
        let n = host.now().after(secs(10));
        *host.now.lock().unwrap() = n;
        engine.tick();
        while host.step() {
            engine.tick();
        }
    }
    let d = engine.describe(&RunId::of("a")).unwrap();
    assert_eq!(d.status, Status::Completed, "1,000 s later the child has not begun");
}

use crate::kit::{update, update_of};
use dacapo_engine::WaitFor;

#[test]
fn an_update_beside_a_continue_as_new_reaches_the_next_run() {
    for late_first in [false, true] {
        let serve = options().workflow("w", |ctx: Ctx, input| async move {
            let list = Arc::new(Mutex::new(vec![text(&input).to_owned()]));
            let l = list.clone();
            ctx.on_update(
                "put",
                |_| Ok(()),
                move |i| {
                    let l = l.clone();
                    async move {
                        l.lock().unwrap().push(text(&i.input[0]).to_owned());
                        Ok(i.input[0].clone())
                    }
                },
            );
            ctx.signal("go").await?;
            let all = list.lock().unwrap().join(",");
            if all.len() > 20 || text(&input).contains('!') {
                return Ok(payload(all));
            }
            Err(ctx.continue_as_new(dacapo_core::ContinueAsNew {
                workflow: "w".into(),
                input: vec![payload(format!("{all}!"))],
                ..Default::default()
            }))
        });
        let stage = Stage::new(serve);
        stage.start("w", "a", "0").unwrap();
        stage.settle();
        let first = describe(&stage, "a").run_id;
        let (e1, e2) = (stage.engine().clone(), stage.engine().clone());
        let to = RunId::of("a");
        let to2 = to.clone();
        let mut s = Box::pin(async move { e1.signal(&to, signal_of("go", ""), None).await });
        let mut u = Box::pin(async move { e2.update(&to2, update_of("u1", "put", "U"), WaitFor::Completed).await });
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        if late_first {
            let _ = std::future::Future::poll(u.as_mut(), &mut cx);
        }
        let _ = std::future::Future::poll(s.as_mut(), &mut cx);
        let _ = std::future::Future::poll(u.as_mut(), &mut cx);
        let answer = stage.wait(u);
        stage.settle();
        eprintln!(
            "{}",
            stage
                .engine()
                .reader()
                .history(&RunId { workflow_id: "a".into(), run_id: Some(first) })
                .unwrap()
                .to_text()
                .lines()
                .filter(|l| l.contains("turn")
                    || l.contains("command")
                    || l.contains("job")
                    || l.contains("pdate")
                    || l.contains("ontinue"))
                .take(40)
                .collect::<Vec<_>>()
                .join("\n")
        );
        signal(&stage, "a", "go", "");
        let (_, result) = stage.result("a");
        eprintln!("R15 update first {late_first}: answer {answer:?}, list {:?}", result.map(|p| text(&p)));
    }
}

#[test]
fn a_rejected_update_does_not_make_the_engine_forget_what_a_held_turn_took() {
    let store = Arc::new(Hook::default());
    let gate = crate::kit::Gate::default();
    let g = gate.clone();
    let mut serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.on_update(
                "put",
                |_| Err(Failure::application("never")),
                move |i| async move { Ok(i.input[0].clone()) },
            );
            ctx.sleep(secs(1)).await?;
            ctx.local_activity("loc", "x").await
        })
        .waiting("loc", move |_, _| g.pass());
    serve.double_play = false;
    let stage = Stage::over(store.clone(), serve);
    stage.start("w", "a", "").unwrap();
    stage.settle();
    // the timer fires, and the turn that asks for local work is held back for 100 ms
    stage.advance(Duration::from_millis(1000));
    eprintln!("R16 turns {}", describe(&stage, "a").turns);
    eprintln!("R16 {:?}", update(&stage, "a", "u", "put", "x", WaitFor::Completed).map_err(|e| e.to_string()));
    *store.full_turns.lock().unwrap() = true;
    stage.advance(Duration::from_millis(200));
    *store.full_turns.lock().unwrap() = false;
    gate.open(Ok(payload("local")));
    stage.advance(secs(10_000));
    assert_eq!(describe(&stage, "a").status, Status::Completed, "turns {}", describe(&stage, "a").turns);
}

#[test]
fn children_of_a_run_that_went_on_as_another_are_released_at_the_end_of_the_chain() {
    let serve = options()
        .workflow("p", |ctx: Ctx, input| async move {
            if text(&input) == "1" {
                ctx.child("c", "").with(|c| c.workflow_id = "kid".into()).detach();
                ctx.sleep(secs(1)).await?;
                return Err(ctx.continue_as_new(dacapo_core::ContinueAsNew {
                    workflow: "p".into(),
                    input: vec![payload("2")],
                    ..Default::default()
                }));
            }
            Ok(payload("done"))
        })
        .workflow("c", |ctx: Ctx, _| async move {
            ctx.signal("never").await?;
            Ok(payload(""))
        });
    let stage = Stage::new(serve);
    stage.start("p", "a", "1").unwrap();
    stage.play_out();
    eprintln!("R27 parent {:?}, child {:?}", describe(&stage, "a").status, describe(&stage, "kid").status);
    assert_eq!(
        describe(&stage, "kid").status,
        Status::Terminated,
        "its parent is closed, and its policy is to end with it"
    );
}

#[test]
fn an_activity_that_nobody_serves_is_not_forgotten_with_the_next_turn() {
    let serve = options().workflow("w", |ctx: Ctx, _| async move {
        let a = ctx.activity("missing", "");
        ctx.signal("go").await?;
        a.await
    });
    let stage = Stage::new(serve);
    stage.start("w", "a", "").unwrap();
    stage.settle();
    assert!(describe(&stage, "a").stuck.is_some());
    signal(&stage, "a", "go", "");
    stage.settle();
    assert!(describe(&stage, "a").stuck.is_some(), "it still cannot go on, and no longer says so");
}

#[test]
fn no_activity_begins_after_its_run_was_terminated() {
    let store = Arc::new(Late::default());
    let world = World::default();
    let w = world.clone();
    let serve = options()
        .workflow("w", |ctx: Ctx, _| async move {
            ctx.signal("go").await?;
            ctx.activity("work", "").await
        })
        .activity("work", move |_, _| {
            w.note("tried");
            Ok(payload(""))
        });
    let stage = Stage::over(store.clone(), serve);
    stage.start("w", "a", "").unwrap();
    stage.settle();
    *store.hold.lock().unwrap() = true;
    signal(&stage, "a", "go", "");
    stage.settle();
    *store.hold.lock().unwrap() = false;
    stage.wait(stage.engine().terminate(&RunId::of("a"), "stop")).unwrap();
    stage.settle();
    eprintln!("R19 acknowledged: terminated; attempts so far {}", world.count());
    let held = std::mem::take(&mut *store.held.lock().unwrap());
    held.into_iter().for_each(|d| d());
    stage.play_out();
    eprintln!("R19 runs in memory {}", stage.engine().runs_in_memory());
    assert_eq!(world.count(), 0, "an activity of a run whose end was acknowledged");
}
#[derive(Default)]
struct Late {
    store: MemoryStore,
    hold: Mutex<bool>,
    held: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}
impl Writes for Late {
    fn submit(&self, write: Write, done: Done) {
        if matches!(write, Write::Turn(_)) && *self.hold.lock().unwrap() {
            let answer = Arc::new(Mutex::new(None));
            let a = answer.clone();
            self.store.submit(write, Box::new(move |result| *a.lock().unwrap() = Some(result)));
            self.held.lock().unwrap().push(Box::new(move || done(answer.lock().unwrap().take().unwrap())));
            return;
        }
        self.store.submit(write, done);
    }
}
impl Runs for Late {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>, StoreError> {
        self.store.run(no)
    }
    fn find(&self, w: &str, r: Option<&str>) -> Result<Option<RunRow>, StoreError> {
        self.store.find(w, r)
    }
    fn list(&self, f: &RunFilter, b: Option<RunNo>, l: usize) -> Result<Vec<RunRow>, StoreError> {
        self.store.list(f, b, l)
    }
    fn count(&self, f: &RunFilter) -> Result<u64, StoreError> {
        self.store.count(f)
    }
}
impl Turns for Late {
    fn turns(
        &self,
        run: RunNo,
        from: u64,
        show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.turns(run, from, show)
    }
}
impl Mail for Late {
    fn unseen(&self, run: RunNo) -> Result<Vec<MailRow>, StoreError> {
        self.store.unseen(run)
    }
    fn mail(&self, run: RunNo, key: &str) -> Result<Option<MailRow>, StoreError> {
        self.store.mail(run, key)
    }
    fn with_unseen_mail(&self, limit: usize) -> Result<Vec<RunNo>, StoreError> {
        self.store.with_unseen_mail(limit)
    }
}
impl Tasks for Late {
    fn tasks(&self, q: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.store.tasks(q, above, limit)
    }
    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>, StoreError> {
        self.store.tasks_of(run)
    }
}
impl Timers for Late {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, StoreError> {
        self.store.due(until, limit)
    }
    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store.next_due()
    }
}
