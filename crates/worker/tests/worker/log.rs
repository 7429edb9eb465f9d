//! What is logged, as lines.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line(Vec<String>);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push(format!("{field}={value:?}"));
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
        let mut line = Line(Vec::new());
        event.record(&mut line);
        // The message comes first, and reads better last.
        let (message, fields): (Vec<_>, Vec<_>) = line.0.into_iter().partition(|text| text.starts_with("message="));
        let text = [fields, message].concat().join(" ");
        writeln!(self.0.lock().unwrap(), "{} {text}", event.metadata().level()).unwrap();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What this logs on this thread.
pub(crate) fn logged(act: impl FnOnce()) -> String {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), act);
    log.0.lock().unwrap().clone()
}
