//! Activities whose results come from outside.

use dacapo_core::{Ctx, Failure, Name};
use dacapo_engine::{EngineError, Options, RunId};
use dacapo_store::Status;
use dacapo_testkit::Stage;

use crate::kit::{
    Gate, NO_ROWS, Serve, completed, describe, failed, options, over_every_cache_and_restart, payload, rows,
};

/// One activity that waits for ever.
fn waiting() -> Options {
    options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("work", input).await })
        .waiting("work", |_, _| Gate::default().pass())
}

fn complete(stage: &Stage, id: &Name, result: Result<&str, &str>) -> Result<(), EngineError> {
    let result = result.map(payload).map_err(Failure::application);
    stage.wait(stage.engine().complete_activity(&RunId::of("a"), id.clone(), result))
}

/// S4-47
#[test]
fn an_activity_is_completed_from_outside_once() {
    over_every_cache_and_restart(waiting, |stage| {
        stage.start("one", "a", "").unwrap();
        stage.settle();
        let id = describe(&stage, "a").pending[0].id.clone();
        let unknown = complete(&stage, &"another".into(), Ok("x"));
        assert!(matches!(unknown, Err(EngineError::NoSuchActivity { .. })), "{unknown:?}");
        complete(&stage, &id, Ok("from outside")).unwrap();
        // It is durable when it is answered, and nobody tries the activity again.
        let stage = stage.restart();
        assert_eq!(stage.result("a"), completed("from outside"));
        assert_eq!(rows(&stage, "a"), NO_ROWS);
        let again = complete(&stage, &id, Ok("again"));
        assert_eq!(again, Err(EngineError::Closed { workflow_id: "a".into(), status: Status::Completed }));
        (stage, vec!["a"])
    });
}

/// S4-47
#[test]
fn an_activity_fails_from_outside_for_good() {
    over_every_cache_and_restart(waiting, |stage| {
        stage.start("one", "a", "").unwrap();
        stage.settle();
        let id = describe(&stage, "a").pending[0].id.clone();
        complete(&stage, &id, Err("called off")).unwrap();
        let twice = complete(&stage, &id, Ok("too late"));
        assert!(twice.is_err(), "the first result holds");
        stage.play_out();
        assert_eq!(failed(&stage, "a"), (Status::Failed, "activity work failed: called off".to_owned()));
        (stage, vec!["a"])
    });
}
