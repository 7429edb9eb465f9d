//! The kit within a test that has an async runtime of its own.

use dacapo::prelude::*;
use dacapo_testkit::Kit;

#[activity]
async fn greet(name: String) -> Result<String, Failure> {
    Ok(format!("not faked: {name}"))
}

#[workflow]
async fn greeting(ctx: Ctx, name: String) -> Result<String, Failure> {
    ctx.sleep(days(1)).await?;
    ctx.call(greet, name).await
}

/// The kit does everything on the test's thread and may block it.
#[tokio::test]
async fn kit_plays_and_describes_a_run_on_a_thread_of_an_async_runtime() {
    let mut kit = Kit::new();
    let greeted = kit.fake(greet, |name| Ok(format!("hello {name}")));
    let started = kit.start(greeting, "ada".into());
    assert!(!kit.is_closed(&started));
    assert_eq!(kit.result(&started), Ok("hello ada".into()));
    assert!(kit.is_closed(&started));
    assert_eq!(greeted.count(), 1);
    assert_eq!(kit.histories().len(), 1);
    kit.restart();
    assert!(kit.turns(&started).contains("greet"));
}
