//! How long closed runs are kept, at exact times, and deleting.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::Ctx;
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Done, Filter, MemoryStore, Store, Write};
use dacapo_testkit::{LayeredStore, Simulation, StoreLayer};

use crate::kit::{Serve, completed, describe, options, payload, secs, signal, status};

/// Many turns, of which the last is a wait; or none.
fn serve() -> Options {
    options()
        .workflow("long", |ctx: Ctx, _| async move {
            for _ in 0..1_200 {
                ctx.activity("step", "").await?;
            }
            Ok(payload("long"))
        })
        .workflow("short", |_: Ctx, _| async move { Ok(payload("short")) })
        .workflow("waits", |ctx: Ctx, _| async move {
            ctx.next_signal("go").await?;
            Ok(payload("waited"))
        })
        .activity("step", |_, input| Ok(input))
}

fn kept_for(time: Duration) -> Options {
    Options { retention: Some(time), ..serve() }
}

/// Plays a story over a store in memory and over a file.
fn over_both(story: impl Fn(Arc<dyn Store>)) {
    story(Arc::new(MemoryStore::new()));
    let folder = tempfile::tempdir().unwrap();
    story(Arc::new(SqliteStore::open(folder.path().join("store.db").to_str().unwrap()).unwrap()));
}

fn all(sim: &Simulation) -> u64 {
    sim.store().count(&Filter::default(), u64::MAX).unwrap()
}

fn is_there(sim: &Simulation, id: &'static str) -> bool {
    sim.engine().describe(&RunId::of(id)).is_ok()
}

fn records(sim: &Simulation, run: dacapo_store::RunNo) -> usize {
    let mut records = 0;
    let count = &mut |_: u64, _: &[u8]| {
        records += 1;
        std::ops::ControlFlow::Continue(())
    };
    sim.store().turns(run, 0, count).unwrap();
    records
}

#[test]
fn closed_runs_are_deleted_when_their_time_is_over_and_open_ones_never() {
    over_both(|store| {
        let sim = Simulation::over(store, kept_for(secs(3_600)));
        sim.start("waits", "open", "").unwrap();
        sim.start("waits", "late", "").unwrap();
        sim.start("short", "a", "").unwrap();
        sim.settle();
        sim.advance(secs(1_800));
        signal(&sim, "late", "go", "");
        sim.advance(secs(1_799));
        assert_eq!(all(&sim), 3, "no run is past its retention");
        sim.advance(secs(61));
        assert_eq!((is_there(&sim, "a"), is_there(&sim, "late"), is_there(&sim, "open")), (false, true, true));
        sim.advance(secs(1_800));
        assert_eq!((is_there(&sim, "late"), is_there(&sim, "open")), (false, true));
        sim.advance(secs(100 * 86_400));
        signal(&sim, "open", "go", "");
        sim.settle();
        assert_eq!(sim.wait(sim.engine().result(&RunId::of("open"))).unwrap(), completed("waited"));
    });
}

#[test]
fn by_default_runs_are_kept_for_ever() {
    let sim = Simulation::new(serve());
    sim.start("short", "a", "").unwrap();
    sim.advance(secs(50 * 365 * 86_400));
    assert!(is_there(&sim, "a"));
}

/// What a long run leaves goes in steps, and the next process goes on with it.
#[test]
fn rows_of_a_deleted_run_are_removed_in_steps_over_restarts() {
    over_both(|store| {
        let sim = Simulation::over(store, serve());
        sim.start("long", "a", "").unwrap();
        sim.start("waits", "b", "").unwrap();
        assert_eq!(sim.result("a"), completed("long"));
        let run = describe(&sim, "a").run;
        assert_eq!(records(&sim, run), 1_201);
        // Only the deletion itself, and none of the steps that follow.
        sim.wait(sim.engine().delete(&RunId::of("a"))).unwrap();
        assert!(!is_there(&sim, "a"));
        let sim = sim.restart();
        sim.settle();
        sim.advance(secs(1));
        assert_eq!((records(&sim, run), sim.store().has_remains().unwrap()), (0, false));
        assert!(status(&sim, "b").is_open());
    });
}

#[test]
fn delete_of_an_open_or_unknown_run_is_refused() {
    over_both(|store| {
        let sim = Simulation::over(store, serve());
        sim.start("waits", "a", "").unwrap();
        let refused = sim.wait(sim.engine().delete(&RunId::of("a"))).unwrap_err();
        assert_eq!(refused, Error::RunOpen);
        assert!(matches!(sim.wait(sim.engine().delete(&RunId::of("b"))), Err(Error::NotFound { .. })));
        signal(&sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed("waited"));
        sim.wait(sim.engine().delete(&RunId::of("a"))).unwrap();
        assert!(matches!(sim.wait(sim.engine().result(&RunId::of("a"))), Err(Error::NotFound { .. })));
        sim.start("short", "a", "").unwrap();
        assert_eq!(sim.result("a"), completed("short"), "its id is free again");
    });
}

/// One run was deleted by a commit and swept up by another, so that many that closed at once stayed for long: fifty a second
/// went, beside thousands that closed. (Each write passes two moments.)
#[test]
fn many_runs_that_are_too_old_go_with_few_writes() {
    over_both(|store| {
        let sim = Simulation::over(store, kept_for(secs(3_600)));
        for number in 0..1_000 {
            let new = NewStart {
                workflow: "short".into(),
                workflow_id: format!("run-{number}").into(),
                ..NewStart::default()
            };
            sim.wait(sim.engine().start(new)).unwrap();
        }
        sim.settle();
        let before = sim.moments();
        // One look at what has become too old.
        sim.advance(secs(3_661));
        assert_eq!((all(&sim), sim.store().has_remains().unwrap()), (0, false));
        assert!(sim.moments() - before <= 2 * 20, "{} moments", sim.moments() - before);
    });
}

/// Every deletion began a sweep of its own.
#[test]
fn runs_that_are_deleted_by_hand_are_swept_up_together() {
    over_both(|store| {
        let sim = Simulation::over(store, serve());
        let ids: Vec<String> = (0..50).map(|number| format!("run-{number}")).collect();
        for id in &ids {
            let new = NewStart { workflow: "short".into(), workflow_id: id.clone().into(), ..NewStart::default() };
            sim.wait(sim.engine().start(new)).unwrap();
        }
        sim.settle();
        let before = sim.moments();
        let engine = sim.engine().clone();
        let runs: Vec<RunId> = ids.iter().map(|id| RunId::of(id.clone())).collect();
        for run in &runs {
            sim.wait(engine.delete(run)).unwrap();
        }
        sim.advance(secs(1));
        assert!(!sim.store().has_remains().unwrap());
        let writes = (sim.moments() - before) / 2;
        assert!((51..60).contains(&writes), "fifty deletions and {} steps", writes - 50);
    });
}

/// Answers the first step of a sweep when it is told to.
#[derive(Default)]
struct Slow(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

impl StoreLayer for Slow {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        let mut waiting = self.0.lock().unwrap();
        match write {
            Write::Sweep { .. } if waiting.is_empty() => {
                let (told, answer) = std::sync::mpsc::channel();
                store.submit(write, Box::new(move |written| told.send(written).unwrap()));
                waiting.push(Box::new(move || done(answer.recv().unwrap())));
            }
            write => store.submit(write, done),
        }
    }
}

#[test]
fn rows_of_a_run_deleted_during_a_sweep_are_removed_too() {
    let store = LayeredStore::new(Arc::new(MemoryStore::new()), Slow::default());
    let sim = Simulation::over(store.clone(), serve());
    for id in ["a", "b"] {
        sim.start("short", id, "").unwrap();
    }
    sim.settle();
    for id in ["a", "b"] {
        sim.wait(sim.engine().delete(&RunId::of(id))).unwrap();
        sim.settle();
    }
    assert!(sim.store().has_remains().unwrap(), "the step that is under way has not seen the second");
    let answer = store.0.lock().unwrap().pop().unwrap();
    // Other writes go through.
    store.0.lock().unwrap().push(Box::new(|| {}));
    answer();
    sim.advance(secs(1));
    assert!(!sim.store().has_remains().unwrap());
}
