//! A program with one subscriber for all its threads, as most have: in a process of its own, because there is one for all.

use std::sync::Mutex;
use std::time::Duration;

use dacapo_core::{Ctx, Payload, Signal, Workflow};
use dacapo_engine::{Options, RunId};
use dacapo_store::Status;
use dacapo_testkit::Simulation;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Log;

struct LogMessage;

impl Visit for LogMessage {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            SAID.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Log {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.enabled(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "story"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut LogMessage);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn options(code: fn(&str)) -> Options {
    let mut options = Options::default();
    let workflow = Workflow::new("says", move |ctx: Ctx, _| async move {
        code("begun");
        ctx.sleep(Duration::from_secs(1)).await?;
        code("slept");
        ctx.next_signal("go").await?;
        code("gone on");
        Ok(Payload::empty())
    });
    options.registry.workflow(workflow).unwrap();
    options
}

/// `tracing` asks once for each line of code whether a subscriber listens to it. A line that is first reached while a run is
/// played again, as most are after a restart, must not be taken for one that no subscriber ever listens to.
#[test]
fn a_line_that_is_first_reached_on_replay_is_heard_later() {
    tracing::subscriber::set_global_default(Log).unwrap();
    let sim = Simulation::new(options(|_| {}));
    sim.start("says", "a", "").unwrap();
    sim.advance(Duration::from_secs(1));
    let sim = sim.redeploy(options(|word| tracing::info!(target: "story", "{word}")));
    assert_eq!(sim.engine().runs_in_memory(), 0);
    let go = Signal { name: "go".into(), ..Signal::default() };
    sim.wait(sim.engine().signal(&RunId::of("a"), go, None)).unwrap();
    assert_eq!(sim.result("a").0, Status::Completed);
    assert_eq!(*SAID.lock().unwrap(), ["gone on"]);
}
