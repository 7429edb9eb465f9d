//! Deleting, sweeping and importing, with the process dying at every moment of it, over a store in memory and over a file.
//! `docs/crash-matrix.md` says what makes each window safe.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{Ctx, Payload, Workflow};
use dacapo_engine::{Options, RunId};
use dacapo_faults::Disk;
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Belongings, ImportWrite, MemoryStore, RunNo, RunRow, Status, Store};
use dacapo_testkit::Simulation;
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
        ctx.next_signal("go").await?;
        Ok(Payload::default())
    });
    options.registry.workflow(steps).unwrap();
    options.registry.workflow(waits).unwrap();
    options.registry.activity(Activity::blocking("step", |_, _| Ok(Payload::default()))).unwrap();
    options
}

/// A store with closed runs and an open one.
fn filled(store: Arc<dyn Store>, options: Options) -> Simulation {
    let sim = Simulation::over(store, options);
    for id in ["a", "b"] {
        sim.start("steps", id, "").unwrap();
        sim.settle();
        assert_eq!(status(&sim, id), Some(Status::Completed));
    }
    sim.start("waits", "open", "").unwrap();
    sim.settle();
    sim
}

/// Plays a story once for every moment at which its process can die, and lets another go on.
fn sweep(options: impl Fn() -> Options, story: impl Fn(&Simulation), then: impl Fn(&Simulation)) {
    for over_file in [false, true] {
        let mut deaths = 0;
        for moment in 0.. {
            let disk = Disk::new();
            let store: Arc<dyn Store> = match over_file {
                true => Arc::new(SqliteStore::open(&disk.path("store.db")).unwrap()),
                false => Arc::new(MemoryStore::new()),
            };
            let sim = filled(store, options()).dying(moment);
            story(&sim);
            let died = sim.died();
            deaths += u64::from(died.is_some());
            let sim = sim.restart();
            then(&sim);
            let problems = sim.engine().reader().verify(&mut |_| {}).unwrap();
            assert_eq!(problems, [], "moment {moment}, {died:?}");
            assert_eq!(status(&sim, "open"), Some(Status::Open), "moment {moment}, {died:?}");
            if died.is_none() {
                break;
            }
        }
        assert!(deaths >= 2, "{deaths}");
    }
}

fn status(sim: &Simulation, id: &'static str) -> Option<Status> {
    sim.engine().describe(&RunId::of(id)).ok().map(|run| run.status)
}

fn records(sim: &Simulation, run: RunNo) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let show = &mut |_: u64, record: &[u8]| {
        records.push(record.to_vec());
        ControlFlow::Continue(())
    };
    sim.store().turns(run, 0, show).unwrap();
    records
}

/// The run was gone at once or is there whole; asked again, it goes; and nothing of it stays.
#[test]
fn a_run_is_deleted_whole_wherever_it_crashes() {
    let delete = |sim: &Simulation| {
        let run = RunId::of("a");
        let answer = sim.try_wait(sim.engine().delete(&run));
        sim.advance(Duration::from_secs(1));
        answer
    };
    sweep(
        options,
        |sim| drop(delete(sim)),
        |sim| {
            let run = sim.store().find("a", None).unwrap();
            if let Some(row) = &run {
                assert_eq!(records(sim, row.no).len() as u64, row.turns, "it is there whole");
            }
            let answer = delete(sim).unwrap();
            assert_eq!(answer.is_ok(), run.is_some(), "{answer:?}");
            assert!(answer.is_ok() || matches!(answer, Err(Error::NotFound { .. })));
            assert_eq!((status(sim, "a"), status(sim, "b")), (None, Some(Status::Completed)));
            // The number of a run is not used again, so rows that were left would be found under it.
            assert!((1..10).map(RunNo).all(|no| sim.store().run(no).unwrap().is_some() || records(sim, no).is_empty()));
            assert!(!sim.store().has_remains().unwrap());
        },
    );
}

#[test]
fn runs_past_their_retention_are_deleted_wherever_the_process_crashes() {
    let old = Duration::from_secs(3_600);
    sweep(
        move || Options { retention: Some(old), ..options() },
        |sim| sim.advance(2 * old),
        |sim| {
            sim.advance(2 * old);
            assert_eq!((status(sim, "a"), status(sim, "b")), (None, None));
            assert!((1..10).map(RunNo).all(|no| sim.store().run(no).unwrap().is_some() || records(sim, no).is_empty()));
            assert!(!sim.store().has_remains().unwrap());
        },
    );
}

/// A closed run as another store kept it.
fn archived() -> (RunRow, Vec<Vec<u8>>, Belongings) {
    let sim = filled(Arc::new(MemoryStore::new()), options());
    let row = sim.store().find("a", None).unwrap().unwrap();
    let turns = records(&sim, row.no);
    let belongings = sim.store().belongings(row.no).unwrap();
    (RunRow { run_id: "from-elsewhere".into(), workflow_id: "elsewhere".into(), ..row }, turns, belongings)
}

/// An import is stored whole or not at all; a repeated import changes nothing.
#[test]
fn a_run_is_imported_whole_wherever_it_crashes() {
    let (run, turns, belongings) = archived();
    let import = |sim: &Simulation| {
        let import = ImportWrite { run: run.clone(), turns: turns.clone(), belongings: belongings.clone() };
        sim.try_wait(sim.engine().import(import))
    };
    sweep(
        options,
        |sim| drop(import(sim)),
        |sim| {
            let known = sim.store().find("elsewhere", None).unwrap().is_some();
            match import(sim).unwrap() {
                Ok(()) => assert!(!known),
                Err(Error::RunExists(_)) => assert!(known),
                Err(other) => panic!("{other}"),
            }
            let row = sim.store().find("elsewhere", None).unwrap().unwrap();
            assert_eq!((row.status, records(sim, row.no)), (Status::Completed, turns.clone()));
            assert_eq!(sim.store().belongings(row.no).unwrap().messages.len(), belongings.messages.len());
        },
    );
}
