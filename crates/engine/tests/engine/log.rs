//! What is logged while a story is played on this thread: every span when it begins, every event with the span it is in.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    text: String,
    spans: BTreeMap<u64, &'static str>,
    entered: Vec<u64>,
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.0, " {value:?}").unwrap(),
            name => write!(self.0, " {name}={value:?}").unwrap(),
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let (mut line, name) = (Line::default(), span.metadata().name());
        span.record(&mut line);
        let mut state = self.0.lock().unwrap();
        let id = state.spans.len() as u64 + 1;
        state.spans.insert(id, name);
        writeln!(state.text, "{name}{}", line.0).unwrap();
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let mut state = self.0.lock().unwrap();
        let span = state.entered.last().and_then(|id| state.spans.get(id)).copied().unwrap_or("nowhere");
        writeln!(state.text, "  in {span}:{}", line.0).unwrap();
    }

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
}

/// With but one subscriber, `tracing` asks whichever thread first comes to a line of code whether a subscriber listens to it;
/// that may be another test's, which has none.
static ANOTHER: LazyLock<tracing::Dispatch> = LazyLock::new(|| tracing::Dispatch::new(Log::default()));

/// What this logs on this thread.
pub(crate) fn logged(act: impl FnOnce()) -> String {
    LazyLock::force(&ANOTHER);
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), act);
    let state = log.0.lock().unwrap();
    assert_eq!(state.entered, [0; 0], "every span was left again");
    state.text.clone()
}
