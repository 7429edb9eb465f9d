//! How many runs are open: the gauge has what the store has.

use std::sync::Arc;

use dacapo_core::{ContinueAsNew, Ctx, Failure, Name};
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Filter, ReadRuns};
use dacapo_testkit::{RENEWAL, SimulatedNodes, Simulation};

use crate::kit::{Serve, completed, options, payload, secs, signal, text};
use crate::nodes::{new, result, send, start};
use crate::recorder::Recorder;

/// A run that waits until it is told to end or to continue as another, and one that starts such a run as its child.
fn serving() -> Options {
    options()
        .workflow("waits", |ctx: Ctx, input| async move {
            match text(&ctx.next_signal("s").await?.input[0]).as_str() {
                "again" => {
                    let next = ContinueAsNew { workflow: "waits".into(), input: vec![input], ..Default::default() };
                    Err(ctx.continue_as_new(next))
                }
                "fail" => Err(Failure::application("as told")),
                "child" => ctx.child("waits", "").workflow_id("child").await,
                told => Ok(payload(told)),
            }
        })
        .workflow("other", |ctx: Ctx, _| async move { Ok(ctx.next_signal("s").await?.input[0].clone()) })
}

/// The numbers of open runs by the gauge, those that are not 0.
fn open(recorder: &Recorder) -> String {
    recorder.show(&["dacapo_runs_open"]).replace("dacapo_runs_open{workflow=", "").replace("} ", " ").replace('\n', " ")
}

#[test]
fn gauge_of_open_runs_rises_with_each_start_and_falls_with_each_end() {
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(serving()));
    assert_eq!(open(&recorder), "");
    for (workflow, id) in [("waits", "a"), ("waits", "b"), ("other", "c")] {
        sim.start(workflow, id, "").unwrap();
    }
    assert_eq!(open(&recorder), "other 1 waits 2 ");
    signal(&sim, "a", "s", "again");
    sim.settle();
    assert_eq!(open(&recorder), "other 1 waits 2 ", "one closes as another starts");
    signal(&sim, "a", "s", "child");
    sim.settle();
    assert_eq!(open(&recorder), "other 1 waits 3 ", "with a child");
    sim.wait(sim.engine().terminate(&RunId::of("a"), "enough")).unwrap();
    assert_eq!(open(&recorder), "other 1 waits 1 ", "the child ends with it");
    signal(&sim, "b", "s", "fail");
    signal(&sim, "c", "s", "done");
    sim.settle();
    assert_eq!(open(&recorder), "");
    sim.wait(sim.engine().delete(&RunId::of("c"))).unwrap();
    assert_eq!(open(&recorder), "", "what is closed was counted before it was deleted");
}

#[test]
fn run_that_is_refused_or_known_already_is_not_counted() {
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(serving()));
    let asked = || NewStart { request: Some("r".into()), ..new("waits", "a") };
    for _ in 0..2 {
        sim.wait(sim.engine().start(asked())).unwrap();
    }
    sim.start("other", "a", "").unwrap_err();
    assert_eq!(open(&recorder), "waits 1 ");
}

#[test]
fn reset_of_an_open_run_leaves_one_and_of_a_closed_run_opens_one() {
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(serving()));
    sim.start("waits", "a", "").unwrap();
    sim.settle();
    let reset = |turn| sim.wait(sim.engine().reset(&RunId::of("a"), turn, "try that again")).unwrap();
    reset(1);
    sim.settle();
    assert_eq!(open(&recorder), "waits 1 ");
    signal(&sim, "a", "s", "done");
    assert_eq!(sim.result("a"), completed("done"));
    assert_eq!(open(&recorder), "");
    reset(1);
    assert_eq!(open(&recorder), "waits 1 ", "before it is played");
    assert_eq!(sim.result("a"), completed("done"), "the signal came again");
    assert_eq!(open(&recorder), "");
}

/// More runs than are read at once, in a file.
#[test]
fn open_runs_of_a_file_are_counted_when_the_next_process_opens_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("runs.db").to_str().unwrap()).unwrap();
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::over(Arc::new(store), serving()));
    for number in 0..1_100 {
        let start = NewStart { workflow_id: Name::from(format!("w{number}")), ..new("waits", "") };
        drop(sim.engine().start(start));
    }
    sim.start("other", "c", "").unwrap();
    sim.settle();
    assert_eq!(open(&recorder), "other 1 waits 1100 ");
    let next = Recorder::default();
    let sim = next.during(|| sim.restart());
    signal(&sim, "w7", "s", "done");
    sim.start("other", "d", "").unwrap();
    sim.settle();
    assert_eq!(open(&next), "other 2 waits 1099 ");
    assert_eq!(open(&recorder), "", "an engine that is gone has nothing");
}

#[test]
fn runs_of_a_workflow_that_is_not_registered_are_not_counted() {
    let sim = Simulation::new(serving());
    sim.start("waits", "a", "").unwrap();
    sim.start("other", "b", "").unwrap();
    let recorder = Recorder::default();
    let only =
        options().workflow("other", |ctx: Ctx, _| async move { Ok(ctx.next_signal("s").await?.input[0].clone()) });
    let sim = recorder.during(|| sim.redeploy(only));
    sim.settle();
    assert_eq!(open(&recorder), "other 1 ");
}

/// The nodes a and b, with a recorder each.
struct Two {
    nodes: SimulatedNodes,
    recorders: [Recorder; 2],
}

impl Two {
    fn new() -> Self {
        let mut nodes = SimulatedNodes::new();
        let recorders = [Recorder::default(), Recorder::default()];
        recorders[0].during(|| nodes.start("a", serving()));
        recorders[1].during(|| nodes.start("b", serving()));
        nodes.advance(RENEWAL * 2);
        Self { nodes, recorders }
    }

    /// The gauges of both nodes.
    fn open(&self) -> [String; 2] {
        [open(&self.recorders[0]), open(&self.recorders[1])]
    }

    /// The number of open runs in the store.
    fn stored(&self) -> u64 {
        self.nodes.store("a").count(&Filter::open(), u64::MAX).unwrap()
    }
}

#[test]
fn each_node_counts_the_runs_of_its_shards_and_takes_them_over() {
    let mut two = Two::new();
    for id in ["x", "y", "z"] {
        start(&mut two.nodes, "waits", id);
    }
    assert_eq!((two.open(), two.stored()), (["waits 3 ".to_owned(), String::new()], 3));
    send(&mut two.nodes, "b", "x", "s", "done");
    assert_eq!(result(&mut two.nodes, "b", "x"), completed("done"));
    assert_eq!(two.open(), ["waits 2 ".to_owned(), String::new()]);
    two.nodes.stop("a");
    two.nodes.advance(RENEWAL * 2);
    assert_eq!(two.open(), [String::new(), "waits 2 ".to_owned()]);
    let again = Recorder::default();
    again.during(|| two.nodes.start("a", serving()));
    two.nodes.advance(RENEWAL * 4);
    let sum = |shown: &[String]| {
        shown.iter().filter_map(|shown| shown.split(' ').nth(1)).map(|n| n.parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(sum(&[open(&again), open(&two.recorders[1])]), two.stored());
}

/// The other node ends it, which the owner does not count, and finds out within a minute.
#[test]
fn run_that_another_node_ends_is_counted_out_at_the_next_count() {
    let mut two = Two::new();
    start(&mut two.nodes, "waits", "x");
    let engine = two.nodes.engine("b").clone();
    two.nodes.wait(async move { engine.terminate(&RunId::of("x"), "enough").await }).unwrap();
    two.nodes.settle();
    two.nodes.advance(secs(120));
    assert_eq!((two.open(), two.stored()), ([String::new(), String::new()], 0));
}

/// The page is read after the commit, and the callback comes later still.
#[test]
fn commit_that_is_called_back_after_runs_were_counted_again_is_counted_once() {
    let mut two = Two::new();
    start(&mut two.nodes, "waits", "x");
    two.nodes.hold_answers("a", true);
    let engine = two.nodes.engine("a").clone();
    let held = engine.start(new("waits", "y"));
    two.nodes.settle();
    two.nodes.advance(secs(120));
    assert_eq!(two.stored(), 2);
    assert_eq!(two.open()[0], "waits 1 ", "the count waits for the callback");
    two.nodes.hold_answers("a", false);
    two.nodes.wait(held).unwrap();
    two.nodes.settle();
    assert_eq!(two.open()[0], "waits 2 ");
    two.nodes.advance(secs(120));
    assert_eq!(two.open()[0], "waits 2 ");
}
