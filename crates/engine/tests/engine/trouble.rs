//! Trouble with the store: writes that fail, and answers that never come. Nothing that was acknowledged is lost.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dacapo_core::{Ctx, Failure, Name, Payload, Timestamp};
use dacapo_engine::{EngineError, NewStart, Options, RunId};
use dacapo_store::{
    Done, Mail, MailRow, MemoryStore, RunFilter, RunNo, RunRow, Runs, Status, StoreError, TaskRow, Tasks, TimerRow,
    Timers, Turns, Write, Writes,
};
use dacapo_testkit::{CACHES, Stage};

use crate::kit::{
    NO_ROWS, Serve, World, completed, describe, options, payload, rows, secs, signal, signal_of, since_start, status,
    text,
};
use crate::recorder::Recorder;

/// A store that refuses some writes, or does them and says that nobody knows.
struct Fragile {
    store: MemoryStore,
    writes: AtomicU64,
    trouble: Mutex<Trouble>,
    /// What the store shows of records, instead of what it holds.
    garbled: Mutex<Option<Vec<u8>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    None,
    /// There is no room.
    Full,
    /// This write, counted from the beginning, is done, and its outcome unknown.
    UnknownAfter(u64),
    /// This write is not done, and its outcome unknown.
    UnknownBefore(u64),
}

impl Fragile {
    fn new(trouble: Trouble) -> Arc<Self> {
        let (writes, garbled) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { store: MemoryStore::new(), writes, trouble: Mutex::new(trouble), garbled })
    }

    fn is(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap() = trouble;
    }
}

impl Writes for Fragile {
    fn submit(&self, write: Write, done: Done) {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let unknown = || Err(StoreError::Unavailable("the disk is gone".into()));
        let trouble = *self.trouble.lock().unwrap();
        match trouble {
            Trouble::Full => done(Err(StoreError::Full("no space".into()))),
            Trouble::UnknownBefore(at) if number >= at => done(unknown()),
            Trouble::UnknownAfter(at) if number == at => {
                self.store.submit(write, Box::new(move |_| done(unknown())));
            }
            Trouble::UnknownAfter(at) if number > at => done(unknown()),
            _ => self.store.submit(write, done),
        }
    }
}

impl Runs for Fragile {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>, StoreError> {
        self.store.run(no)
    }
    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>, StoreError> {
        self.store.find(workflow_id, run_id)
    }
    fn list(&self, filter: &RunFilter, before: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        self.store.list(filter, before, limit)
    }
    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        self.store.count(filter)
    }
}

impl Turns for Fragile {
    fn turns(
        &self,
        run: RunNo,
        from: u64,
        show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let garbled = self.garbled.lock().unwrap().clone();
        self.store.turns(run, from, &mut |number, bytes| show(number, garbled.as_deref().unwrap_or(bytes)))
    }
}

impl Mail for Fragile {
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

impl Tasks for Fragile {
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.store.tasks(queues, above, limit)
    }
    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>, StoreError> {
        self.store.tasks_of(run)
    }
}

impl Timers for Fragile {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, StoreError> {
        self.store.due(until, limit)
    }
    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store.next_due()
    }
}

async fn all_sorts(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let first = ctx.activity("work", "1").await?;
    let closure = ctx.run("draw", || async { Ok("2".into()) }).await?;
    ctx.sleep(secs(10)).await?;
    let signal = ctx.signal("go").await?;
    let child = ctx.child("child", "4").workflow_id("child").await?;
    Ok(payload(format!("{first} {closure} {} {child}", signal.input[0])))
}

fn serving(world: &World) -> Options {
    let world = world.clone();
    options().workflow("all sorts", all_sorts).workflow("child", |_: Ctx, input| async { Ok(input) }).activity(
        "work",
        move |ctx, input| {
            world.note(text(&input));
            if ctx.info().attempt == 1 { Err(Failure::application("once more")) } else { Ok(input) }
        },
    )
}

fn new() -> NewStart {
    let request = Some("once".into());
    NewStart { workflow: "all sorts".into(), workflow_id: "a".into(), request, ..NewStart::default() }
}

fn begin(stage: &Stage) {
    stage.wait(stage.engine().start(new())).expect("a store without trouble takes it");
}

#[test]
fn a_full_store_stops_nothing_for_good_and_everything_goes_on_when_there_is_room() {
    for cache in CACHES {
        let world = World::default();
        let store = Fragile::new(Trouble::None);
        let stage = Stage::over(store.clone(), serving(&world).cache(cache));
        begin(&stage);
        stage.settle();
        store.is(Trouble::Full);
        stage.advance(secs(5));
        let refused = stage.wait(stage.engine().signal(&RunId::of("a"), signal_of("go", "3"), None)).unwrap_err();
        assert_eq!(refused, EngineError::Store(StoreError::Full("no space".into())));
        stage.advance(secs(120));
        assert_eq!((status(&stage, "a"), describe(&stage, "a").turns), (Status::Open, 1), "{cache:?}");
        store.is(Trouble::None);
        signal(&stage, "a", "go", "3");
        assert_eq!(stage.result("a"), completed("1 2 3 4"), "{cache:?}");
        assert_eq!(world.count(), 2, "{cache:?}: what was done is not done again");
        assert_eq!((rows(&stage, "a"), stage.store().next_due().unwrap()), (NO_ROWS, None), "{cache:?}");
    }
}

#[test]
fn a_run_that_used_up_its_time_while_the_store_was_full_ends_when_there_is_room() {
    for cache in CACHES {
        let store = Fragile::new(Trouble::None);
        let waits =
            |ctx: Ctx, _| async move { ctx.signal("never").await.map(|_| Payload::empty()).map_err(Failure::from) };
        let stage = Stage::over(store.clone(), options().workflow("waits", waits).cache(cache));
        let run_timeout = Some(secs(10));
        let new = NewStart { workflow: "waits".into(), workflow_id: "a".into(), run_timeout, ..NewStart::default() };
        stage.wait(stage.engine().start(new)).unwrap();
        store.is(Trouble::Full);
        stage.advance(secs(15));
        assert_eq!(status(&stage, "a"), Status::Open);
        store.is(Trouble::None);
        assert_eq!(stage.result("a").0, Status::TimedOut, "{cache:?}");
        assert!(since_start(describe(&stage, "a").closed.unwrap()) <= secs(80));
    }
}

/// Whatever became of a write whose outcome is unknown, the next process goes on from what the store holds.
#[test]
fn after_a_commit_whose_outcome_is_unknown_the_next_process_goes_on() {
    for unknown in [Trouble::UnknownAfter, Trouble::UnknownBefore] {
        for at in 0..40 {
            let store = Fragile::new(unknown(at));
            let world = World::default();
            let stage = Stage::over(store.clone(), serving(&world));
            let started = stage.wait(stage.engine().start(new()));
            stage.advance(secs(30));
            let go = || signal_of("go", "3");
            let sent = stage.wait(stage.engine().signal(&RunId::of("a"), go(), Some("r-1".into())));
            stage.play_out();
            let troubled = started.is_err() || sent.is_err() || stage.start("child", "probe", "").is_err();
            store.is(Trouble::None);
            let stage = stage.restart();
            begin(&stage);
            stage.settle();
            if status(&stage, "a") == Status::Open {
                stage.wait(stage.engine().signal(&RunId::of("a"), go(), Some("r-1".into()))).unwrap();
            }
            assert_eq!(stage.result("a"), completed("1 2 3 4"), "write {at}");
            assert_eq!((rows(&stage, "a"), stage.store().next_due().unwrap()), (NO_ROWS, None), "write {at}");
            if !troubled {
                break;
            }
        }
    }
}

/// The process lives on and can do nothing: whoever measures must see that.
#[test]
fn an_engine_that_stopped_because_of_its_store_is_measured_as_stopped() {
    let (store, recorder) = (Fragile::new(Trouble::UnknownBefore(1)), Recorder::default());
    let stage = recorder.during(|| Stage::over(store.clone(), serving(&World::default())));
    stage.wait(stage.engine().start(new())).unwrap();
    assert_eq!(recorder.show(&["dacapo_stopped"]), "");
    stage.advance(secs(30));
    assert_eq!(recorder.show(&["dacapo_stopped"]), "dacapo_stopped 1\n");
    store.is(Trouble::None);
    let stage = recorder.during(|| stage.restart());
    stage.settle();
    assert_eq!(recorder.show(&["dacapo_stopped"]), "");
}

/// S4-13
#[test]
fn a_history_of_another_format_parks_its_run_with_a_clear_reason() {
    let store = Fragile::new(Trouble::None);
    let stage = Stage::over(store.clone(), serving(&World::default()));
    begin(&stage);
    stage.advance(secs(20));
    // A record of format version 99, whole and with its checksum.
    *store.garbled.lock().unwrap() = Some(vec![99, 96, 191, 112, 250, 230, 237, 248, 242]);
    let stage = stage.restart();
    signal(&stage, "a", "go", "3");
    stage.settle();
    let said = "turn 0: the transcript has format version 99, and this build reads 1: read it with a newer build";
    assert_eq!(crate::kit::stuck(&stage, "a").0, said);
    *store.garbled.lock().unwrap() = None;
    assert_eq!(stage.result("a"), completed("1 2 3 4"));
}

#[test]
fn an_engine_that_was_stopped_does_nothing_more_and_says_so() {
    let world = World::default();
    let stage = Stage::over(Fragile::new(Trouble::None), serving(&world));
    begin(&stage);
    stage.engine().stop();
    let before = stage.moments();
    let target = RunId::of("a");
    assert_eq!(stage.wait(stage.engine().start(new())), Err(EngineError::ShutDown));
    assert_eq!(stage.wait(stage.engine().signal(&target, signal_of("go", "3"), None)), Err(EngineError::ShutDown));
    assert_eq!(stage.wait(stage.engine().result(&target)), Err(EngineError::ShutDown));
    assert_eq!(stage.wait(stage.engine().inspect(&target)), Err(EngineError::ShutDown));
    stage.play_out();
    assert_eq!(stage.moments(), before);
    let stage = stage.restart();
    signal(&stage, "a", "go", "3");
    assert_eq!(stage.result("a"), completed("1 2 3 4"));
}
