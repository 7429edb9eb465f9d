//! Activities whose results come from outside.

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure, Name};
use dacapo_engine::{Options, RunId};
use dacapo_store::Status;
use dacapo_testkit::Simulation;

use crate::kit::{
    Gate, NO_ROWS, Serve, completed, describe, failed, options, over_every_cache_and_restart, payload, rows,
};

/// One activity that waits for ever.
fn waiting() -> Options {
    options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("work", input).await })
        .waiting("work", |_, _| Gate::default().pass())
}

fn complete(sim: &Simulation, id: &Name, result: Result<&str, &str>) -> Result<(), Error> {
    let result = result.map(payload).map_err(Failure::application);
    sim.wait(sim.engine().complete_activity(&RunId::of("a"), id.clone(), result))
}

/// S4-47
#[test]
fn an_activity_is_completed_from_outside_once() {
    over_every_cache_and_restart(waiting, |sim| {
        sim.start("one", "a", "").unwrap();
        sim.settle();
        let id = describe(&sim, "a").pending[0].id.clone();
        let unknown = complete(&sim, &"another".into(), Ok("x"));
        assert!(matches!(unknown, Err(Error::ActivityNotFound { .. })), "{unknown:?}");
        complete(&sim, &id, Ok("from outside")).unwrap();
        // It is durable when it is answered, and the engine does not try the activity again.
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("from outside"));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        let again = complete(&sim, &id, Ok("again"));
        assert_eq!(again, Err(Error::Closed { workflow_id: "a".into(), status: Status::Completed }));
        (sim, vec!["a"])
    });
}

/// S4-47
#[test]
fn an_activity_fails_from_outside_for_good() {
    over_every_cache_and_restart(waiting, |sim| {
        sim.start("one", "a", "").unwrap();
        sim.settle();
        let id = describe(&sim, "a").pending[0].id.clone();
        complete(&sim, &id, Err("called off")).unwrap();
        let twice = complete(&sim, &id, Ok("too late"));
        assert!(twice.is_err(), "the first result holds");
        sim.play_out();
        assert_eq!(failed(&sim, "a"), (Status::Failed, "activity work failed: called off".to_owned()));
        (sim, vec!["a"])
    });
}
