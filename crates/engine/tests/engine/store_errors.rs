//! Errors of the store: writes that fail, and answers that never come. Nothing that was acknowledged is lost.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dacapo_client::Error;
use dacapo_core::{CommandKind, Ctx, Failure, OperationId, Payload, Seq};
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_store::{Done, MemoryStore, NewMessage, RunNo, Status, Store, StoreError, StuckCause, Write};
use dacapo_testkit::{CACHES, LayeredStore, Simulation, StoreLayer, sealed};

use crate::kit::{
    NO_ROWS, Serve, World, completed, describe, options, payload, rows, secs, signal, signal_of, since_start, status,
    stuck, text,
};
use crate::recorder::Recorder;

/// A store that refuses some writes, or does them and answers that the outcome is unknown.
struct Fragile {
    writes: AtomicU64,
    fault: Mutex<Fault>,
    /// What the store shows of records, instead of what it holds.
    garbled: Mutex<Option<Vec<u8>>>,
    /// From this turn on it shows nothing.
    cut: Mutex<Option<u64>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// There is no room.
    Full,
    /// This write, counted from the beginning, is done, and its outcome unknown.
    UnknownAfter(u64),
    /// This write is not done, and its outcome unknown.
    UnknownBefore(u64),
}

impl Fragile {
    fn new(fault: Fault) -> Arc<LayeredStore<Self>> {
        let (writes, garbled, cut) = (AtomicU64::new(0), Mutex::default(), Mutex::default());
        LayeredStore::new(Arc::new(MemoryStore::new()), Self { writes, fault: Mutex::new(fault), garbled, cut })
    }

    fn is(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }
}

impl StoreLayer for Fragile {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let unknown = || Err(StoreError::Unavailable("the disk is gone".into()));
        let fault = *self.fault.lock().unwrap();
        match fault {
            Fault::Full => done(Err(StoreError::Full("no space".into()))),
            Fault::UnknownBefore(at) if number >= at => done(unknown()),
            Fault::UnknownAfter(at) if number == at => {
                store.submit(write, Box::new(move |_| done(unknown())));
            }
            Fault::UnknownAfter(at) if number > at => done(unknown()),
            _ => store.submit(write, done),
        }
    }

    fn show<'a>(&self, number: u64, record: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let is_there = self.cut.lock().unwrap().is_none_or(|cut| number < cut);
        is_there.then(|| self.garbled.lock().unwrap().clone().map_or(Cow::Borrowed(record), Cow::Owned))
    }
}

async fn all_sorts(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let first = ctx.activity("work", "1").await?;
    let closure = ctx.side_effect("draw", || async { Ok("2".into()) }).await?;
    ctx.sleep(secs(10)).await?;
    let signal = ctx.next_signal("go").await?;
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

fn begin(sim: &Simulation) {
    sim.wait(sim.engine().start(new())).expect("a store without a fault takes it");
}

#[test]
fn a_full_store_stops_nothing_for_good_and_everything_goes_on_when_there_is_room() {
    for cache in CACHES {
        let world = World::default();
        let store = Fragile::new(Fault::None);
        let sim = Simulation::over(store.clone(), serving(&world).cache(cache));
        begin(&sim);
        sim.settle();
        store.is(Fault::Full);
        sim.advance(secs(5));
        let refused = sim.wait(sim.engine().signal(&RunId::of("a"), signal_of("go", "3"), None)).unwrap_err();
        assert_eq!(refused, Error::from(StoreError::Full("no space".into())));
        sim.advance(secs(120));
        assert_eq!((status(&sim, "a"), describe(&sim, "a").turns), (Status::Open, 1), "{cache:?}");
        store.is(Fault::None);
        signal(&sim, "a", "go", "3");
        assert_eq!(sim.result("a"), completed("1 2 3 4"), "{cache:?}");
        assert_eq!(world.count(), 2, "{cache:?}: what was done is not done again");
        assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None), "{cache:?}");
    }
}

#[test]
fn a_run_that_used_up_its_time_while_the_store_was_full_ends_when_there_is_room() {
    for cache in CACHES {
        let store = Fragile::new(Fault::None);
        let waits = |ctx: Ctx, _| async move {
            ctx.next_signal("never").await.map(|_| Payload::empty()).map_err(Failure::from)
        };
        let sim = Simulation::over(store.clone(), options().workflow("waits", waits).cache(cache));
        let run_timeout = Some(secs(10));
        let new = NewStart { workflow: "waits".into(), workflow_id: "a".into(), run_timeout, ..NewStart::default() };
        sim.wait(sim.engine().start(new)).unwrap();
        store.is(Fault::Full);
        sim.advance(secs(15));
        assert_eq!(status(&sim, "a"), Status::Open);
        store.is(Fault::None);
        assert_eq!(sim.result("a").0, Status::TimedOut, "{cache:?}");
        assert!(since_start(describe(&sim, "a").closed.unwrap()) <= secs(80));
    }
}

/// Whatever became of a write whose outcome is unknown, the next process goes on from what the store holds.
#[test]
fn after_a_commit_whose_outcome_is_unknown_the_next_process_goes_on() {
    for unknown in [Fault::UnknownAfter, Fault::UnknownBefore] {
        for at in 0..40 {
            let store = Fragile::new(unknown(at));
            let world = World::default();
            let sim = Simulation::over(store.clone(), serving(&world));
            let started = sim.wait(sim.engine().start(new()));
            sim.advance(secs(30));
            let go = || signal_of("go", "3");
            let sent = sim.wait(sim.engine().signal(&RunId::of("a"), go(), Some("r-1".into())));
            sim.play_out();
            let failed = started.is_err() || sent.is_err() || sim.start("child", "probe", "").is_err();
            store.is(Fault::None);
            let sim = sim.restart();
            begin(&sim);
            sim.settle();
            if status(&sim, "a") == Status::Open {
                sim.wait(sim.engine().signal(&RunId::of("a"), go(), Some("r-1".into()))).unwrap();
            }
            assert_eq!(sim.result("a"), completed("1 2 3 4"), "write {at}");
            assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None), "write {at}");
            if !failed {
                break;
            }
        }
    }
}

/// The process lives on and can do nothing: its metrics must show that.
#[test]
fn an_engine_that_stopped_because_of_its_store_is_measured_as_stopped() {
    let (store, recorder) = (Fragile::new(Fault::UnknownBefore(1)), Recorder::default());
    let sim = recorder.during(|| Simulation::over(store.clone(), serving(&World::default())));
    sim.wait(sim.engine().start(new())).unwrap();
    assert_eq!(recorder.show(&["dacapo_stopped"]), "");
    sim.advance(secs(30));
    assert_eq!(recorder.show(&["dacapo_stopped"]), "dacapo_stopped 1\n");
    store.is(Fault::None);
    let sim = recorder.during(|| sim.restart());
    sim.settle();
    assert_eq!(recorder.show(&["dacapo_stopped"]), "");
}

/// A shutdown after the engine had stopped reported that all was well.
#[test]
fn shutdown_of_an_engine_that_stopped_because_of_its_store_reports_the_store_s_error() {
    let store = Fragile::new(Fault::UnknownBefore(1));
    let sim = Simulation::over(store.clone(), serving(&World::default()));
    sim.wait(sim.engine().start(new())).unwrap();
    sim.advance(secs(30));
    assert!(sim.engine().is_shutting_down());
    let why = sim.wait(sim.engine().shuts_down_by_itself());
    let report = sim.wait(sim.engine().shut_down());
    let error = report.error.expect("why it stopped").to_string();
    assert_eq!(*why, *error);
}

/// What is missing at the end of a history must not look like a run that is at an earlier point.
#[test]
fn truncated_history_makes_its_run_stuck_and_answers_nothing() {
    let store = Fragile::new(Fault::None);
    let sim = Simulation::over(store.clone(), serving(&World::default()));
    begin(&sim);
    sim.advance(secs(20));
    let turns = sim.store().find("a", None).unwrap().unwrap().turns;
    *store.cut.lock().unwrap() = Some(turns - 1);
    let sim = sim.restart();
    signal(&sim, "a", "go", "3");
    sim.settle();
    let said = format!(
        "it has {turns} turns, and only {} of them are there: the store is damaged. Restore it from a backup",
        turns - 1
    );
    assert_eq!(stuck(&sim, "a").0, said);
    *store.cut.lock().unwrap() = None;
    assert_eq!(sim.result("a"), completed("1 2 3 4"));
}

/// S4-13
#[test]
fn history_of_another_format_makes_its_run_stuck_with_a_clear_reason() {
    let store = Fragile::new(Fault::None);
    let sim = Simulation::over(store.clone(), serving(&World::default()));
    begin(&sim);
    sim.advance(secs(20));
    // A record of format version 99, whole and with its checksum.
    *store.garbled.lock().unwrap() = Some(sealed(vec![99]));
    let sim = sim.restart();
    signal(&sim, "a", "go", "3");
    sim.settle();
    let said = "turn 0: the transcript has format version 99, and this build reads 1: read it with a newer build";
    assert_eq!(stuck(&sim, "a").0, said);
    assert_eq!(describe(&sim, "a").stuck.map(|stuck| stuck.cause), Some(StuckCause::OtherBuild));
    *store.garbled.lock().unwrap() = None;
    assert_eq!(sim.result("a"), completed("1 2 3 4"));
}

/// The body of the only turn of a run, without its seal, with one part of it replaced, sealed again.
fn forged(store: &dyn Store, run: RunNo, part: &[u8], instead: &[u8]) -> Vec<u8> {
    let mut turn = Vec::new();
    let mut show = |_: u64, bytes: &[u8]| {
        turn = bytes.to_vec();
        ControlFlow::Break(())
    };
    store.turns(run, 0, &mut show).unwrap();
    turn.truncate(turn.len() - 4);
    let at = turn.windows(part.len()).position(|window| window == part).expect("the turn holds it");
    turn.splice(at..at + part.len(), instead.iter().copied());
    sealed(turn)
}

/// S4-32 S4-35 S4-42 S4-46: a task is its command, so whatever is wrong with an id or a kind stands in the record of its
/// turn. Nothing of such a turn is done, nothing of it is thrown away, and the reason says what is wrong.
#[test]
fn a_recorded_task_without_a_proper_id_or_of_an_unknown_kind_is_neither_tried_nor_dropped() {
    let world = World::default();
    let noted = world.clone();
    let serve = move |queue: &'static str| {
        let noted = noted.clone();
        let mut options = options()
            .workflow("calls", |ctx: Ctx, _| async move { ctx.activity("work", "1").queue("elsewhere").await })
            .activity("work", move |_, input| {
                noted.note(text(&input));
                Ok(input)
            });
        options.queue(queue);
        options
    };
    for (done, cache) in CACHES.into_iter().enumerate() {
        let store = Fragile::new(Fault::None);
        let mut sim = Simulation::over(store.clone(), serve("default").cache(cache));
        let run = sim.start("calls", "a", "").unwrap().run;
        sim.settle();
        let transcript = sim.engine().reader().history(&RunId::of("a")).unwrap();
        let kind = &transcript.turns[0].commands[0].kind;
        let CommandKind::Activity(activity) = kind else { panic!("{kind}") };
        let (id, other) = (activity.id, OperationId::of(7, Seq(0)));
        let kind = minicbor::to_vec(kind).unwrap();
        let unknown = [&[kind[0], 0x18, 99], &kind[2..]].concat();
        let bytes = minicbor::to_vec(id).unwrap();
        let collision = format!("id: recorded {other}, new {id}");
        // The last can be read, so a worker of its queue would try it; there is none.
        let forgeries = [
            ("elsewhere", forged(&*store, run, &bytes, &[0xf6]), "turn 0: the record cannot be read"),
            ("elsewhere", forged(&*store, run, &bytes, b"\x66task-1"), "turn 0: the record cannot be read"),
            ("elsewhere", forged(&*store, run, &kind, &unknown), "unknown enum variant 99"),
            ("default", forged(&*store, run, &bytes, &minicbor::to_vec(other).unwrap()), collision.as_str()),
        ];
        for (queue, record, said) in forgeries {
            *store.garbled.lock().unwrap() = Some(record);
            sim = sim.redeploy(serve(queue).cache(cache));
            signal(&sim, "a", "go", "");
            sim.settle();
            let (reason, ..) = stuck(&sim, "a");
            assert!(reason.contains(said), "{reason}");
            assert_eq!((status(&sim, "a"), world.count()), (Status::Open, done), "{said}");
            assert_eq!(rows(&sim, "a").0, 1, "{said}: the task is still there");
        }
        *store.garbled.lock().unwrap() = None;
        let sim = sim.redeploy(serve("elsewhere").cache(cache));
        assert_eq!(sim.result("a"), completed("1"));
    }
    assert_eq!(world.count(), CACHES.len());
}

/// S4-46: a message that this build cannot read, for example of a newer build.
#[test]
fn message_of_an_unknown_kind_makes_its_run_stuck_and_is_not_dropped() {
    for (job, cause, why) in [
        (vec![1, 0x82, 0x18, 99, 0x80], StuckCause::StoreDamaged, "unknown enum variant 99"),
        (vec![2, 0x80], StuckCause::OtherBuild, "the stored value has format 2, and this build reads format 1"),
    ] {
        let sim = Simulation::new(serving(&World::default()));
        begin(&sim);
        sim.advance(secs(20));
        let run = describe(&sim, "a").run;
        let message = NewMessage { key: "from the future".into(), sent: sim.now(), job };
        sim.store().submit(Write::Send { run, message, ended: None }, Box::new(|_| {}));
        let sim = sim.restart();
        sim.settle();
        let found = describe(&sim, "a").stuck.expect("the run is stuck");
        assert!(found.reason.starts_with(r#"its message "from the future" cannot be read: "#), "{}", found.reason);
        assert!(found.cause == cause && found.reason.contains(why), "{found:?}");
        assert_eq!((status(&sim, "a"), rows(&sim, "a").2), (Status::Open, 1));
    }
}

#[test]
fn an_engine_that_was_stopped_does_nothing_more_and_says_so() {
    let world = World::default();
    let sim = Simulation::over(Fragile::new(Fault::None), serving(&world));
    begin(&sim);
    sim.engine().stop();
    let before = sim.moments();
    let target = RunId::of("a");
    assert_eq!(sim.wait(sim.engine().start(new())), Err(Error::ShutDown));
    assert_eq!(sim.wait(sim.engine().signal(&target, signal_of("go", "3"), None)), Err(Error::ShutDown));
    assert_eq!(sim.wait(sim.engine().result(&target)), Err(Error::ShutDown));
    assert_eq!(sim.wait(sim.engine().inspect(&target)), Err(Error::ShutDown));
    sim.play_out();
    assert_eq!(sim.moments(), before);
    let sim = sim.restart();
    signal(&sim, "a", "go", "3");
    assert_eq!(sim.result("a"), completed("1 2 3 4"));
}
