//! Activities: retries, failures, external completion.

use std::time::Duration;

use dacapo::prelude::*;
use dacapo::{ActivityState, Error};

use crate::Backend;

#[activity]
async fn third_time(ctx: ActivityCtx) -> Result<u32, Failure> {
    match ctx.info().attempt {
        3 => Ok(3),
        attempt => Err(format!("attempt {attempt} failed").into()),
    }
}

#[workflow]
async fn patient(ctx: Ctx) -> Result<u32, Failure> {
    ctx.call(third_time, ()).retry(Retry::exponential().first_pause(millis(1))).await
}

pub(crate) async fn activity_is_retried_until_it_succeeds(backend: &Backend) {
    let app = backend.serve((patient, third_time)).await;
    assert_eq!(app.start(patient, ()).await.unwrap().result().await, Ok(3));
    app.shutdown().await;
}

#[activity]
async fn never() -> Result<(), Failure> {
    Err("not today".into())
}

#[workflow]
async fn hopeful(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(never, ()).retry(Retry::exponential().first_pause(millis(1)).attempts(2)).await
}

pub(crate) async fn activity_fails_after_its_last_attempt(backend: &Backend) {
    let app = backend.serve((hopeful, never)).await;
    let Err(Error::Run { status, failure, .. }) = app.start(hopeful, ()).await.unwrap().result().await else {
        panic!("it fails")
    };
    assert_eq!((status, failure.root_cause().message.as_str()), (Status::Failed, "not today"));
    app.shutdown().await;
}

#[activity]
async fn asks_a_person(ctx: ActivityCtx) -> Result<String, Failure> {
    Err(ctx.complete_later())
}

#[workflow]
async fn waits_for_a_person(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(asks_a_person, ()).start_to_close(hours(1)).await
}

pub(crate) async fn activity_is_completed_by_its_token(backend: &Backend) {
    let app = backend.serve((waits_for_a_person, asks_a_person)).await;
    let run = app.start(waits_for_a_person, ()).await.unwrap();
    let pending = until(&run, |description| {
        description.pending.first().filter(|activity| activity.state == ActivityState::External).cloned()
    });
    let activity = pending.await;
    run.complete_activity(activity.id, &"approved").await.unwrap();
    assert_eq!(run.result().await.as_deref(), Ok("approved"));
    app.shutdown().await;
}

/// Waits until a run can be described so.
async fn until<O, T>(run: &Handle<O>, wanted: impl Fn(&Description) -> Option<T>) -> T {
    loop {
        match wanted(&run.describe().await.unwrap()) {
            Some(found) => return found,
            // sleep: no call waits for a state of a pending activity; the case as a whole is bounded
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[workflow]
async fn stubborn(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(never, ()).retry(Retry::unlimited().first_pause(hours(1)).max_pause(hours(1))).await
}

pub(crate) async fn attempts_and_failures_are_described(backend: &Backend) {
    let app = backend.serve((stubborn, never)).await;
    let run = app.start(stubborn, ()).await.unwrap();
    let failed = |description: &Description| {
        description.pending.first().filter(|activity| activity.last_failure.is_some()).cloned()
    };
    let pending = until(&run, failed).await;
    assert_eq!((pending.activity.as_str(), pending.attempt, pending.attempts), ("never", 2, 0));
    assert_eq!(pending.last_failure.unwrap().message, "not today");
    run.terminate("seen").await.unwrap();
    app.shutdown().await;
}

#[workflow]
async fn local(ctx: Ctx) -> Result<u32, Failure> {
    let drawn: u32 = ctx.side_effect("draw", || async { Ok(4) }).await?;
    Ok(drawn + ctx.call_local(third_time, ()).retry(Retry::exponential().first_pause(millis(1))).await?)
}

pub(crate) async fn local_activity_runs_in_the_workflow_process(backend: &Backend) {
    let app = backend.serve((local, third_time)).await;
    assert_eq!(app.start(local, ()).await.unwrap().result().await, Ok(7));
    app.shutdown().await;
}
