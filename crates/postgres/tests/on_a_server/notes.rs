//! The notes of what a process runs, and what a node says where it keeps none.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use dacapo_postgres::PostgresStore;
use dacapo_store::{Doing, RunNo, RunningNotes, Writes};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::kit::{PACE, node};
use crate::schema::Schema;

/// The messages that are logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_node_that_keeps_no_notes_says_once_that_nothing_is_quarantined() {
    let schema = Schema::new();
    // With but one subscriber, `tracing` asks whichever thread first comes to a line of code whether a subscriber listens.
    let _another = Dispatch::new(Log::default());
    let log = Log::default();
    let a = tracing::subscriber::with_default(log.clone(), || node(&schema.with(PACE)));
    assert!(!a.store.keeps_notes());
    let said = log
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|line| line.contains("code that kills its process is not quarantined here"))
        .count();
    assert_eq!(said, 1, "{log:?}", log = log.0);
}

#[test]
fn notes_are_kept_in_the_folder_of_the_process_for_this_store_alone() {
    let (schema, folder) = (Schema::new(), tempfile::tempdir().unwrap());
    let open = |schema: &Schema| PostgresStore::open(&schema.with(PACE)).unwrap();
    let running = Doing::Turn { run: RunNo(7), turn: 3 };
    let store = open(&schema);
    store.keep_in(folder.path()).unwrap();
    assert!(store.keeps_notes());
    store.began(Doing::Answer(RunNo(8))).map(|slot| store.ended(slot)).unwrap();
    store.began(running).unwrap();
    let busy = open(&schema).keep_in(folder.path()).unwrap_err().to_string();
    assert!(busy.contains("is used by another process"), "{busy}");
    // As when a process dies: nothing is closed.
    drop(store);

    let other = Schema::new();
    let refused = open(&other).keep_in(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("has notes of a process that served another store"), "{refused}");
    let store = open(&schema);
    store.keep_in(folder.path()).unwrap();
    assert_eq!(store.left(), [running]);
    store.forget_left();
    assert_eq!(store.left(), []);
    store.close().unwrap();
    open(&other).keep_in(folder.path()).expect("a store that is closed leaves nothing");
}
