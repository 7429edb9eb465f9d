//! A program can be moved about: everything a task holds on to is `Send`.

use dacapo::prelude::*;
use dacapo::{Dacapo, Handle};

#[activity]
async fn add_one(number: u64) -> Result<u64, Failure> {
    Ok(number + 1)
}

#[workflow]
async fn count(ctx: Ctx, to: u64) -> Result<u64, Failure> {
    let mut number = 0;
    while number < to {
        number = ctx.call(add_one, number).await?;
    }
    Ok(number)
}

#[tokio::test(flavor = "multi_thread")]
async fn program_can_be_a_spawned_task() {
    let program = tokio::spawn(async {
        let app = Dacapo::open("memory:").await?.serve((count, add_one)).await?;
        let of_task = app.clone();
        let run: Handle<u64> = tokio::spawn(async move { of_task.start(count, 5).await }).await.unwrap()?;
        run.result().await
    });
    assert_eq!(program.await.unwrap().unwrap(), 5);
}

#[test]
fn app_handle_and_ctx_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<App>();
    shared::<Handle<u64>>();
    shared::<Ctx>();
    shared::<dacapo::Error>();
    shared::<Dacapo>();
}
