//! Deleting, sweeping and importing, with the process dying at every moment of it, over a store in memory and over a file.
//! `docs/crash-matrix.md` says what makes each window safe.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Ctx, Payload, Workflow};
use dacapo_engine::{EngineError, Options, RunId};
use dacapo_faults::Disk;
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Belongings, ImportWrite, MemoryStore, Refused, RunNo, RunRow, Status, Store};
use dacapo_testkit::Stage;
use dacapo_worker::Activity;

const STEPS: u64 = 5;

fn options() -> Options {
    let mut options = Options::default();
    let steps = Workflow::new("steps", |ctx: Ctx, _: Vec<Payload>| async move {
        for _ in 0..STEPS {
            ctx.activity("step", "").await?;
        }
        Ok(Payload::default())
    });
    let waits = Workflow::new("waits", |ctx: Ctx, _: Vec<Payload>| async move {
        ctx.signal("go").await?;
        Ok(Payload::default())
    });
    options.registry.workflow(steps).unwrap();
    options.registry.workflow(waits).unwrap();
    options.registry.activity(Activity::blocking("step", |_, _| Ok(Payload::default()))).unwrap();
    options
}

/// A store with closed runs and an open one.
fn filled(store: Arc<dyn Store>, options: Options) -> Stage {
    let stage = Stage::over(store, options);
    for id in ["a", "b"] {
        stage.start("steps", id, "").unwrap();
        stage.settle();
        assert_eq!(status(&stage, id), Some(Status::Completed));
    }
    stage.start("waits", "open", "").unwrap();
    stage.settle();
    stage
}

/// Plays a story once for every moment at which its process can die, and lets another go on.
fn sweep(options: impl Fn() -> Options, story: impl Fn(&Stage), then: impl Fn(&Stage)) {
    for over_file in [false, true] {
        let mut deaths = 0;
        for moment in 0.. {
            let disk = Disk::new();
            let store: Arc<dyn Store> = match over_file {
                true => Arc::new(SqliteStore::open(&disk.path("store.db")).unwrap()),
                false => Arc::new(MemoryStore::new()),
            };
            let stage = filled(store, options()).doomed(moment);
            story(&stage);
            let died = stage.died();
            deaths += u64::from(died.is_some());
            let stage = stage.restart();
            then(&stage);
            let flaws = stage.engine().reader().verify(&mut |_| {}).unwrap();
            assert_eq!(flaws, [], "moment {moment}, {died:?}");
            assert_eq!(status(&stage, "open"), Some(Status::Open), "moment {moment}, {died:?}");
            if died.is_none() {
                break;
            }
        }
        assert!(deaths >= 2, "{deaths}");
    }
}

fn status(stage: &Stage, id: &'static str) -> Option<Status> {
    stage.engine().describe(&RunId::of(id)).ok().map(|run| run.status)
}

fn records(stage: &Stage, run: RunNo) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let show = &mut |_: u64, record: &[u8]| {
        records.push(record.to_vec());
        ControlFlow::Continue(())
    };
    stage.store().turns(run, 0, show).unwrap();
    records
}

/// The run was gone at once or is there whole; asked again, it goes; and nothing of it stays.
#[test]
fn a_run_is_deleted_whole_wherever_it_crashes() {
    let delete = |stage: &Stage| {
        let run = RunId::of("a");
        let answer = stage.try_wait(stage.engine().delete(&run));
        stage.advance(Duration::from_secs(1));
        answer
    };
    sweep(
        options,
        |stage| drop(delete(stage)),
        |stage| {
            let run = stage.store().find("a", None).unwrap();
            if let Some(row) = &run {
                assert_eq!(records(stage, row.no).len() as u64, row.turns, "it is there whole");
            }
            let answer = delete(stage).unwrap();
            assert_eq!(answer.is_ok(), run.is_some(), "{answer:?}");
            assert!(answer.is_ok() || matches!(answer, Err(EngineError::NotFound { .. })));
            assert_eq!((status(stage, "a"), status(stage, "b")), (None, Some(Status::Completed)));
            // Nobody reuses the number of a run, so what it left would be found under it.
            assert!(
                (1..10).map(RunNo).all(|no| stage.store().run(no).unwrap().is_some() || records(stage, no).is_empty())
            );
            assert!(!stage.store().has_remains().unwrap());
        },
    );
}

#[test]
fn runs_that_are_too_old_go_wherever_it_crashes() {
    let old = Duration::from_secs(3_600);
    sweep(
        move || Options { retention: Some(old), ..options() },
        |stage| stage.advance(2 * old),
        |stage| {
            stage.advance(2 * old);
            assert_eq!((status(stage, "a"), status(stage, "b")), (None, None));
            assert!(
                (1..10).map(RunNo).all(|no| stage.store().run(no).unwrap().is_some() || records(stage, no).is_empty())
            );
            assert!(!stage.store().has_remains().unwrap());
        },
    );
}

/// A closed run as another store kept it.
fn archived() -> (RunRow, Vec<Vec<u8>>, Belongings) {
    let stage = filled(Arc::new(MemoryStore::new()), options());
    let row = stage.store().find("a", None).unwrap().unwrap();
    let turns = records(&stage, row.no);
    let belongings = stage.store().belongings(row.no).unwrap();
    (RunRow { run_id: "from-elsewhere".into(), workflow_id: "elsewhere".into(), ..row }, turns, belongings)
}

/// It is there whole or not at all; brought again, it is there once.
#[test]
fn a_run_is_imported_whole_wherever_it_crashes() {
    let (run, turns, belongings) = archived();
    let import = |stage: &Stage| {
        let import = ImportWrite { run: run.clone(), turns: turns.clone(), belongings: belongings.clone() };
        stage.try_wait(stage.engine().import(import))
    };
    sweep(
        options,
        |stage| drop(import(stage)),
        |stage| {
            let known = stage.store().find("elsewhere", None).unwrap().is_some();
            match import(stage).unwrap() {
                Ok(()) => assert!(!known),
                Err(EngineError::Refused(Refused::Exists(_))) => assert!(known),
                Err(other) => panic!("{other}"),
            }
            let row = stage.store().find("elsewhere", None).unwrap().unwrap();
            assert_eq!((row.status, records(stage, row.no)), (Status::Completed, turns.clone()));
            assert_eq!(stage.store().belongings(row.no).unwrap().mail.len(), belongings.mail.len());
        },
    );
}
