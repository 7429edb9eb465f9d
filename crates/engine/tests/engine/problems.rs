//! A look at everything while the store is served: what happens meanwhile is no problem.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use dacapo_core::{Command, CommandKind, Ctx, Outcome, Timestamp, TurnRecord};
use dacapo_engine::Reader;
use dacapo_store::{Done, MemoryStore, NodeNo, ReadRuns, RunRow, Status, Store, TurnOf, TurnWrite, Write};
use dacapo_testkit::{LayeredStore, Simulation, StoreLayer};

use crate::kit::{Serve, options, payload};

/// Does these writes while the first record is looked at.
struct WritesMeanwhile {
    store: Arc<MemoryStore>,
    writes: Mutex<Vec<Write>>,
}

impl StoreLayer for WritesMeanwhile {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        store.submit(write, done);
    }

    fn show<'a>(&self, _: u64, record: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        for write in self.writes.lock().unwrap().drain(..) {
            dacapo_store::Writes::submit(&*self.store, write, Box::new(|written| drop(written.unwrap())));
        }
        Some(Cow::Borrowed(record))
    }
}

/// The next turn of a run, which ends it or not.
fn turn(row: &RunRow, close: bool) -> Write {
    turn_with_result(row, close, "done")
}

/// The same, with this result in the row of the run.
fn turn_with_result(row: &RunRow, close: bool, result: &str) -> Write {
    let kind = CommandKind::Complete { result: payload("done") };
    let complete = Command { kind, unit: Default::default(), site: Default::default() };
    let record = TurnRecord {
        number: row.turns,
        now: Timestamp::default(),
        history: Default::default(),
        jobs: Vec::new(),
        commands: close.then_some(complete).into_iter().collect(),
        choices: None,
        build: "test".into(),
    };
    let closing = dacapo_store::Closing {
        status: Status::Completed,
        result: dacapo_core::to_stored(&Outcome::Completed(payload(result))),
        to_parent: None,
        next: None,
        carried: Vec::new(),
    };
    Write::Turn(Box::new(TurnWrite {
        node: NodeNo(1),
        epoch: row.epoch,
        close: close.then_some(closing),
        ..TurnWrite::new(TurnOf::Run(row.no), row.turns, Timestamp::default(), record.to_bytes())
    }))
}

/// The rows were read, and then their turns, which were more by then; or fewer, when the run was deleted.
#[test]
fn changes_during_verify_are_no_problem() {
    type Writes = fn(&RunRow) -> Vec<Write>;
    let meanwhile: [(&str, Writes); 3] = [
        ("it plays on", |row| vec![turn(row, false)]),
        ("it closes", |row| vec![turn(row, true)]),
        ("it is deleted", |row| vec![turn(row, true), Write::Delete { run: row.no }, Write::Sweep { most: 100 }]),
    ];
    for (what, writes) in meanwhile {
        let store = Arc::new(MemoryStore::new());
        let waits = options().workflow("waits", |ctx: Ctx, _| async move {
            ctx.next_signal("go").await?;
            Ok(payload("done"))
        });
        let sim = Simulation::over(store.clone(), waits);
        // Newer runs are looked at first.
        sim.start("waits", "older", "").unwrap();
        sim.start("waits", "newer", "").unwrap();
        sim.settle();
        let older = store.find("older", None).unwrap().unwrap();
        let layer = WritesMeanwhile { store: store.clone(), writes: Mutex::new(writes(&older)) };
        let reader = Reader::new(LayeredStore::new(store.clone(), layer));
        assert_eq!(reader.verify(&mut |_| {}).unwrap(), [], "{what}");
        assert_ne!(store.run(older.no).unwrap().map(|row| row.turns), Some(older.turns), "{what}");
    }
}

#[test]
fn verify_reports_a_result_that_the_last_turn_did_not_decide() {
    let store = Arc::new(MemoryStore::new());
    let waits = options().workflow("waits", |ctx: Ctx, _| async move {
        ctx.next_signal("go").await?;
        Ok(payload("done"))
    });
    let sim = Simulation::over(store.clone(), waits);
    for (workflow_id, result) in [("sound", "done"), ("damaged", "dose")] {
        sim.start("waits", workflow_id, "").unwrap();
        sim.settle();
        let row = store.find(workflow_id, None).unwrap().unwrap();
        let close = turn_with_result(&row, true, result);
        dacapo_store::Writes::submit(&*store, close, Box::new(|written| drop(written.unwrap())));
    }
    let problems = Reader::new(store).verify(&mut |_| {}).unwrap();
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let words = "it is completed, and its result is not what its last turn decided";
    assert!(matches!(&problems[..], [one] if one.contains("damaged") && one.ends_with(words)), "{problems:#?}");
}
