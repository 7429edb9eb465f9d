//! The README's `journey`, killed again and again in one step: it goes on by itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dacapo::prelude::*;
use dacapo::{Catalog, Status};
use dacapo_core::Payload;
use dacapo_engine::{Options, RunId};
use dacapo_examples::journey::journey;
use dacapo_store::{Doing, Done, MemoryStore, NoteSlot, RunningNotes, Store, Write};
use dacapo_testkit::{LayeredStore, Simulation, StoreLayer};
use dacapo_worker::Activity;

/// Notes of what runs, as a file keeps them: they outlive the process.
#[derive(Default)]
struct Notes {
    running: Mutex<Vec<Option<Doing>>>,
    left: Mutex<Vec<Doing>>,
}

impl Notes {
    /// The process is killed: what ran is left to the next one.
    fn kill(&self) {
        *self.left.lock().unwrap() = std::mem::take(&mut *self.running.lock().unwrap()).into_iter().flatten().collect();
    }
}

impl StoreLayer for Notes {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        store.submit(write, done);
    }

    fn running<'a>(&'a self, _: &'a dyn Store) -> &'a dyn RunningNotes {
        self
    }
}

impl RunningNotes for Notes {
    fn began(&self, doing: Doing) -> Option<NoteSlot> {
        let mut running = self.running.lock().unwrap();
        running.push(Some(doing));
        Some(NoteSlot(running.len() - 1))
    }

    fn ended(&self, slot: NoteSlot) {
        if let Some(ended) = self.running.lock().unwrap().get_mut(slot.0) {
            *ended = None;
        }
    }

    fn left(&self) -> Vec<Doing> {
        self.left.lock().unwrap().clone()
    }

    fn forget_left(&self) {
        self.left.lock().unwrap().clear();
    }
}

/// The journey with steps that take as long as the test wants: they end while `may_end`.
fn serving(may_end: &Arc<Mutex<bool>>) -> Options {
    let mut catalog = Catalog::default();
    journey.register(&mut catalog).unwrap();
    for (name, result) in
        [("find_train", "\"EC 115\""), ("hold_seat", "4900"), ("pay", "\"paid\""), ("collect_ticket", "\"ticket\"")]
    {
        let may_end = may_end.clone();
        let step = Activity::new(name, move |_, _| {
            let may_end = may_end.clone();
            std::future::poll_fn(move |_| match *may_end.lock().unwrap() {
                true => std::task::Poll::Ready(Ok(Payload::json(result))),
                false => std::task::Poll::Pending,
            })
        });
        catalog.activity(step).unwrap();
    }
    Options { registry: catalog.registry, ..Options::default() }
}

#[test]
fn journey_killed_six_times_in_a_row_in_its_first_step_continues_within_ten_seconds() {
    let may_end = Arc::<Mutex<bool>>::default();
    let store = LayeredStore::new(Arc::new(MemoryStore::new()), Notes::default());
    let mut sim = Simulation::over(store.clone(), serving(&may_end));
    sim.start("journey", "to-zurich", r#"["Lisboa","Madrid","Zürich"]"#).unwrap();
    sim.settle();
    for deaths in 1..=6 {
        assert_eq!(store.running.lock().unwrap().iter().flatten().count(), 1, "the first step runs");
        store.kill();
        sim = sim.restart();
        sim.settle();
        if deaths < 6 {
            // The process is killed again as soon as the step is tried again.
            sim.advance(Duration::from_secs(8));
        }
    }
    let opened = sim.now();
    *may_end.lock().unwrap() = true;
    let of = RunId::of("to-zurich");
    let stuck = sim.engine().describe(&of).unwrap().stuck.expect("it says that it is delayed");
    assert!(stuck.reason.contains("died 6 times"), "{}", stuck.reason);
    sim.advance(Duration::from_secs(10));
    let ended = sim.engine().describe(&of).unwrap();
    assert_eq!(ended.status, Status::Completed);
    assert!(ended.closed.unwrap().since(opened) <= Duration::from_secs(10));
}
