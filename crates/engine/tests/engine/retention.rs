//! How long closed runs are kept, at exact times, and deleting.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dacapo_core::Ctx;
use dacapo_engine::{EngineError, NewStart, Options, RunId};
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Done, MemoryStore, Refused, RunFilter, Store, Write};
use dacapo_testkit::{Front, Fronted, Stage};

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
            ctx.signal("go").await?;
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

fn all(stage: &Stage) -> u64 {
    stage.store().count(&RunFilter::default()).unwrap()
}

fn is_there(stage: &Stage, id: &'static str) -> bool {
    stage.engine().describe(&RunId::of(id)).is_ok()
}

fn records(stage: &Stage, run: dacapo_store::RunNo) -> usize {
    let mut records = 0;
    let count = &mut |_: u64, _: &[u8]| {
        records += 1;
        std::ops::ControlFlow::Continue(())
    };
    stage.store().turns(run, 0, count).unwrap();
    records
}

#[test]
fn closed_runs_are_deleted_when_their_time_is_over_and_open_ones_never() {
    over_both(|store| {
        let stage = Stage::over(store, kept_for(secs(3_600)));
        stage.start("waits", "open", "").unwrap();
        stage.start("waits", "late", "").unwrap();
        stage.start("short", "a", "").unwrap();
        stage.settle();
        stage.advance(secs(1_800));
        signal(&stage, "late", "go", "");
        stage.advance(secs(1_799));
        assert_eq!(all(&stage), 3, "nobody's time is over");
        stage.advance(secs(61));
        assert_eq!((is_there(&stage, "a"), is_there(&stage, "late"), is_there(&stage, "open")), (false, true, true));
        stage.advance(secs(1_800));
        assert_eq!((is_there(&stage, "late"), is_there(&stage, "open")), (false, true));
        stage.advance(secs(100 * 86_400));
        signal(&stage, "open", "go", "");
        stage.settle();
        assert_eq!(stage.wait(stage.engine().result(&RunId::of("open"))).unwrap(), completed("waited"));
    });
}

#[test]
fn by_default_runs_are_kept_for_ever() {
    let stage = Stage::new(serve());
    stage.start("short", "a", "").unwrap();
    stage.advance(secs(50 * 365 * 86_400));
    assert!(is_there(&stage, "a"));
}

/// What a long run leaves goes in steps, and the next process goes on with it.
#[test]
fn what_a_deleted_run_leaves_goes_in_steps_over_restarts() {
    over_both(|store| {
        let stage = Stage::over(store, serve());
        stage.start("long", "a", "").unwrap();
        stage.start("waits", "b", "").unwrap();
        assert_eq!(stage.result("a"), completed("long"));
        let run = describe(&stage, "a").run;
        assert_eq!(records(&stage, run), 1_201);
        // Only the deletion itself, and none of the steps that follow.
        stage.wait(stage.engine().delete(&RunId::of("a"))).unwrap();
        assert!(!is_there(&stage, "a"));
        let stage = stage.restart();
        stage.settle();
        stage.advance(secs(1));
        assert_eq!((records(&stage, run), stage.store().has_remains().unwrap()), (0, false));
        assert!(status(&stage, "b").is_open());
    });
}

#[test]
fn what_is_open_or_unknown_cannot_be_deleted() {
    over_both(|store| {
        let stage = Stage::over(store, serve());
        stage.start("waits", "a", "").unwrap();
        let refused = stage.wait(stage.engine().delete(&RunId::of("a"))).unwrap_err();
        assert_eq!(refused, EngineError::Refused(Refused::Open));
        assert!(matches!(stage.wait(stage.engine().delete(&RunId::of("b"))), Err(EngineError::NotFound { .. })));
        signal(&stage, "a", "go", "");
        assert_eq!(stage.result("a"), completed("waited"));
        stage.wait(stage.engine().delete(&RunId::of("a"))).unwrap();
        assert!(matches!(stage.wait(stage.engine().result(&RunId::of("a"))), Err(EngineError::NotFound { .. })));
        stage.start("short", "a", "").unwrap();
        assert_eq!(stage.result("a"), completed("short"), "its id is free again");
    });
}

/// One run was deleted by a commit and swept up by another, so that many that closed at once stayed for long: fifty a second
/// went, beside thousands that closed. (Each write passes two moments.)
#[test]
fn many_runs_that_are_too_old_go_with_few_writes() {
    over_both(|store| {
        let stage = Stage::over(store, kept_for(secs(3_600)));
        for number in 0..1_000 {
            let new = NewStart {
                workflow: "short".into(),
                workflow_id: format!("run-{number}").into(),
                ..NewStart::default()
            };
            stage.wait(stage.engine().start(new)).unwrap();
        }
        stage.settle();
        let before = stage.moments();
        // One look at what has become too old.
        stage.advance(secs(3_661));
        assert_eq!((all(&stage), stage.store().has_remains().unwrap()), (0, false));
        assert!(stage.moments() - before <= 2 * 20, "{} moments", stage.moments() - before);
    });
}

/// Every deletion began a sweep of its own.
#[test]
fn runs_that_are_deleted_by_hand_are_swept_up_together() {
    over_both(|store| {
        let stage = Stage::over(store, serve());
        let ids: Vec<String> = (0..50).map(|number| format!("run-{number}")).collect();
        for id in &ids {
            let new = NewStart { workflow: "short".into(), workflow_id: id.clone().into(), ..NewStart::default() };
            stage.wait(stage.engine().start(new)).unwrap();
        }
        stage.settle();
        let before = stage.moments();
        let engine = stage.engine().clone();
        let runs: Vec<RunId> = ids.iter().map(|id| RunId::of(id.clone())).collect();
        for run in &runs {
            stage.wait(engine.delete(run)).unwrap();
        }
        stage.advance(secs(1));
        assert!(!stage.store().has_remains().unwrap());
        let writes = (stage.moments() - before) / 2;
        assert!((51..60).contains(&writes), "fifty deletions and {} steps", writes - 50);
    });
}

/// Answers the first step of a sweep when it is told to.
#[derive(Default)]
struct Slow(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

impl Front for Slow {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        let mut held = self.0.lock().unwrap();
        match write {
            Write::Sweep { .. } if held.is_empty() => {
                let (told, answer) = std::sync::mpsc::channel();
                store.submit(write, Box::new(move |written| told.send(written).unwrap()));
                held.push(Box::new(move || done(answer.recv().unwrap())));
            }
            write => store.submit(write, done),
        }
    }
}

#[test]
fn what_is_deleted_while_a_step_is_under_way_is_swept_up_too() {
    let store = Fronted::new(Arc::new(MemoryStore::new()), Slow::default());
    let stage = Stage::over(store.clone(), serve());
    for id in ["a", "b"] {
        stage.start("short", id, "").unwrap();
    }
    stage.settle();
    for id in ["a", "b"] {
        stage.wait(stage.engine().delete(&RunId::of(id))).unwrap();
        stage.settle();
    }
    assert!(stage.store().has_remains().unwrap(), "the step that is under way has not seen the second");
    let answer = store.0.lock().unwrap().pop().unwrap();
    // Others are not held.
    store.0.lock().unwrap().push(Box::new(|| {}));
    answer();
    stage.advance(secs(1));
    assert!(!stage.store().has_remains().unwrap());
}
