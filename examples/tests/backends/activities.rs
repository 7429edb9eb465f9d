//! Activities: retries, failures, external completion.

use std::sync::Arc;

use dacapo::Error;
use dacapo::prelude::*;
use tokio::sync::mpsc::{Receiver, Sender, channel};

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

/// Activities that tell the test what they do.
struct Clerk {
    tokens: Sender<String>,
}

#[activities]
impl Clerk {
    /// Leaves its completion to the holder of its token.
    #[activity]
    async fn ask(self: Arc<Self>, ctx: ActivityCtx) -> Result<String, Failure> {
        self.tell(&ctx);
        Err(ctx.complete_later())
    }

    /// Fails, and in its second attempt waits to be cancelled.
    #[activity]
    async fn stumble(self: Arc<Self>, ctx: ActivityCtx) -> Result<String, Failure> {
        if ctx.info().attempt == 1 {
            return Err("not today".into());
        }
        self.tell(&ctx);
        Err(ctx.cancelled().await.into())
    }
}

impl Clerk {
    fn new() -> (Arc<Self>, Receiver<String>) {
        let (tokens, receiver) = channel(1);
        (Arc::new(Self { tokens }), receiver)
    }

    fn tell(&self, ctx: &ActivityCtx) {
        self.tokens.try_send(ctx.completion_token().to_string()).expect("the test waits for it");
    }
}

#[workflow]
async fn waits_for_a_person(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(Clerk::ask, ()).start_to_close(hours(1)).await
}

pub(crate) async fn activity_is_completed_by_its_token(backend: &Backend) {
    let (clerk, mut tokens) = Clerk::new();
    let app = backend.serve((waits_for_a_person, clerk)).await;
    let run = app.start(waits_for_a_person, ()).await.unwrap();
    let token = tokens.recv().await.unwrap();
    app.complete(&token, "approved").await.unwrap();
    assert_eq!(run.result().await.as_deref(), Ok("approved"));
    app.shutdown().await;
}

#[workflow]
async fn stubborn(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(Clerk::stumble, ()).retry(Retry::unlimited().first_pause(millis(1))).await
}

pub(crate) async fn attempts_and_failures_are_described(backend: &Backend) {
    let (clerk, mut tokens) = Clerk::new();
    let app = backend.serve((stubborn, clerk)).await;
    let run = app.start(stubborn, ()).await.unwrap();
    tokens.recv().await.unwrap();
    let pending = run.describe().await.unwrap().pending.remove(0);
    assert_eq!((pending.activity.as_str(), pending.attempt, pending.attempts), ("Clerk::stumble", 2, 0));
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
