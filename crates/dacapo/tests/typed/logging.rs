//! `ctx.log`: a line for each time the code comes there for the first time.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use dacapo::core::Workflow;
use dacapo::prelude::*;
use dacapo::{WorkflowFn, WorkflowType};
use dacapo_engine::{Cache, Options, RunId};
use dacapo_testkit::Simulation;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const GO: Signal<u32> = Signal::new("go");

#[workflow]
async fn speaks(ctx: Ctx) -> Result<u32, Failure> {
    ctx.on_query(dacapo::Query::<(), u32>::new("how"), {
        let ctx = ctx.clone();
        move |()| {
            ctx.log("asked");
            Ok(7)
        }
    });
    ctx.log("begun");
    let branch = |name: &'static str| {
        let ctx = ctx.clone();
        async move {
            ctx.sleep(secs(1)).await?;
            ctx.log(format_args!("{name} slept"));
            Ok::<_, Failure>(())
        }
    };
    ctx.parallel([branch("one"), branch("the other")]).await;
    let go = ctx.next_signal(GO).await?;
    ctx.log(go);
    Ok(go)
}

/// Lines with target `workflow`.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "workflow"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0.trim_end().to_owned());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn definition<P, F: WorkflowFn<P>>(_: F) -> Workflow {
    F::Workflow::definition().workflow
}

fn story(cache: usize, double_play: bool) -> (Vec<String>, String) {
    let lines = Lines::default();
    let history = tracing::subscriber::with_default(lines.clone(), || {
        let mut options = Options { cache: Cache::AtMost(cache), double_play, ..Options::default() };
        options.registry.workflow(definition(speaks)).unwrap();
        let sim = Simulation::new(options);
        sim.start("speaks", "a", dacapo::encode(&()).unwrap()).unwrap();
        sim.advance(secs(1));
        let ask = || sim.wait(sim.engine().query(&RunId::of("a"), "how".into(), vec![], Default::default()));
        ask().unwrap();
        let go =
            dacapo::core::Signal { name: "go".into(), input: vec![dacapo::encode(&4).unwrap()], ..Default::default() };
        sim.wait(sim.engine().signal(&RunId::of("a"), go, None)).unwrap();
        assert_eq!(sim.result("a").1, dacapo::encode(&4));
        sim.history("a")
    });
    let lines = lines.0.lock().unwrap().clone();
    (lines, history)
}

/// Lines are written once and leave no trace in the history.
#[test]
fn line_is_logged_once_however_often_its_turn_is_played() {
    let (lines, history) = story(10_000, false);
    assert_eq!(
        lines,
        [
            "INFO message=begun unit=[]",
            "INFO message=one slept unit=[p0]",
            "INFO message=the other slept unit=[p1]",
            "INFO message=asked unit=[]",
            "INFO message=4 unit=[]"
        ]
    );
    for (cache, double_play) in [(0, false), (0, true), (10_000, true)] {
        assert_eq!(story(cache, double_play), (lines.clone(), history.clone()), "cache {cache}, {double_play}");
    }
    for line in ["begun", "slept", "asked"] {
        assert!(!history.contains(line), "{history}");
    }
}
