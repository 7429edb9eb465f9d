//! What a node says about the notes that it does not keep.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use dacapo_store::RunningNotes;
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
    let said =
        log.0.lock().unwrap().iter().filter(|line| line.contains("keeps no notes of what a process runs")).count();
    assert_eq!(said, 1, "{log:?}", log = log.0);
}
