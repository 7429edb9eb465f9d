//! Task queues that no worker serves: what waits there says so.

use dacapo_client::{Error, StuckCause};
use dacapo_core::Ctx;
use dacapo_engine::{ActivityState, NewStart, Options, RunId};
use dacapo_testkit::Simulation;

use crate::kit::{Serve, completed, describe, options, payload, signal, stuck};
use crate::log::logged;
use crate::recorder::Recorder;

fn serving() -> Options {
    options()
        .workflow("calls", |ctx: Ctx, _| async move {
            let call = ctx.activity("work", "").queue("gpu");
            ctx.next_signal("go").await?;
            call.await
        })
        .workflow("child", |ctx: Ctx, _| async move { ctx.child("other", "").queue("elsewhere").await })
        .workflow("other", |_: Ctx, _| async move { Ok(payload("done")) })
        .activity("work", |_, _| Ok(payload("done")))
}

fn start_elsewhere(sim: &Simulation, id: &'static str) {
    let new = NewStart {
        workflow: "other".into(),
        workflow_id: id.into(),
        queue: Some("elsewhere".into()),
        ..NewStart::default()
    };
    sim.wait(sim.engine().start(new)).unwrap();
    sim.settle();
}

#[test]
fn start_for_a_queue_that_is_not_served_is_logged_once_and_says_that_it_waits() {
    let sim = Simulation::new(serving());
    let lines = logged(|| {
        start_elsewhere(&sim, "a");
        start_elsewhere(&sim, "b");
    });
    let lines: Vec<&str> = lines.lines().filter(|line| line.contains("no worker of this program serves")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("\"elsewhere\"") && lines[0].contains("served here: default"), "{}", lines[0]);
    for id in ["a", "b"] {
        let (reason, ..) = stuck(&sim, id);
        assert!(reason.contains("task queue \"elsewhere\""), "{reason}");
        let result = sim.wait(sim.engine().result_or_stuck(&RunId::of(id)));
        assert!(matches!(result, Err(Error::Stuck(_))), "{result:?}");
    }
    // A program that serves the queue goes on with them.
    let mut served = serving();
    served.queue("elsewhere");
    let sim = sim.redeploy(served);
    assert_eq!((sim.result("a"), sim.result("b")), (completed("done"), completed("done")));
    assert_eq!(describe(&sim, "a").stuck, None);
}

#[test]
fn child_for_a_queue_that_is_not_served_says_that_it_waits() {
    let sim = Simulation::new(serving());
    sim.start("child", "a", "").unwrap();
    sim.settle();
    let child = sim.store().list(&Default::default(), None, 1).unwrap().remove(0);
    assert!(child.stuck.is_some_and(|stuck| stuck.reason.contains("task queue \"elsewhere\"")));
}

#[test]
fn activity_for_a_queue_that_is_not_served_is_described_and_stays_visible_while_the_run_goes_on() {
    let sim = Simulation::new(serving());
    let lines = logged(|| {
        sim.start("calls", "a", "").unwrap();
        sim.settle();
    });
    assert_eq!(lines.lines().filter(|line| line.contains("task queue \"gpu\"")).count(), 1, "{lines}");
    for _ in 0..2 {
        let (reason, ..) = stuck(&sim, "a");
        assert!(reason.contains("task queue \"gpu\""), "{reason}");
        let pending = describe(&sim, "a").pending;
        assert_eq!((pending.len(), pending[0].queue.as_str()), (1, "gpu"));
        assert_eq!(pending[0].state, ActivityState::Pending);
        signal(&sim, "a", "go", "");
        sim.settle();
    }
    let mut served = serving();
    served.queue("gpu");
    let sim = sim.redeploy(served);
    assert_eq!(sim.result("a"), completed("done"));
}

/// A run that only waits for such an activity has no message: the next process finds it by its mark alone, and cleared it.
#[test]
fn activity_for_a_queue_that_is_not_served_stays_visible_in_the_next_process() {
    let sim = Simulation::new(serving());
    sim.start("calls", "a", "").unwrap();
    sim.settle();
    signal(&sim, "a", "go", "");
    sim.settle();
    let mut sim = sim;
    for _ in 0..2 {
        sim = sim.restart();
        sim.settle();
        let (reason, ..) = stuck(&sim, "a");
        assert!(reason.contains("task queue \"gpu\""), "{reason}");
        let groups = sim.engine().reader().stuck_groups().unwrap();
        let of = |group: &dacapo_engine::StuckGroup| {
            group.example.stuck.as_ref().map(|stuck| (stuck.cause, stuck.subject.clone()))
        };
        assert_eq!(groups.iter().map(of).collect::<Vec<_>>(), [Some((StuckCause::UnservedQueue, "gpu".into()))]);
    }
    let mut served = serving();
    served.queue("gpu");
    let sim = sim.redeploy(served);
    assert_eq!(sim.result("a"), completed("done"));
}

#[test]
fn queue_that_is_not_served_is_in_the_metrics_while_something_waits_in_it() {
    const WATCHED: [&str; 1] = ["dacapo_queue_unserved"];
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(serving()));
    assert_eq!(recorder.show(&WATCHED), "");
    recorder.during(|| start_elsewhere(&sim, "a"));
    assert_eq!(recorder.show(&WATCHED), "dacapo_queue_unserved{queue=elsewhere} 1\n");
    // A program that serves the queue does not say so.
    let mut served = serving();
    served.queue("elsewhere");
    let other = Recorder::default();
    let sim = other.during(|| sim.redeploy(served));
    assert_eq!(sim.result("a"), completed("done"));
    assert_eq!(other.show(&WATCHED), "");
}
