//! A program with one open run, one closed run, and calls that go wrong.

use dacapo::Query;
use dacapo::prelude::*;
use dacapo::{CompletionToken, Dacapo, Description, Error, Filter, Handle};
use serde_json::Value;

pub(crate) const NUDGE: Signal<u64> = Signal::new("nudge");
pub(crate) const LEVEL: Query<(), u64> = Query::new("level");
pub(crate) const RAISE: Update<u64, u64> = Update::new("raise");
pub(crate) const CONSENT: Promise<bool> = Promise::new("consent");

/// Waits for consent, with a level that updates raise.
#[workflow]
pub(crate) async fn sample(ctx: Ctx, level: u64) -> Result<u64, Failure> {
    let cell = ctx.cell(level);
    let shown = cell.clone();
    ctx.on_query(LEVEL, move |()| Ok(shown.read(|level| *level)));
    let limit = |_: &u64| Ok(());
    let raised = cell.clone();
    ctx.on_update(RAISE, limit, move |by: u64| {
        let raised = raised.clone();
        async move {
            match by {
                0 => Err(Failure::application("by nothing at all")),
                by => Ok(raised.update(|level| {
                    *level += by;
                    *level
                })),
            }
        }
    });
    if level > 0 {
        ctx.promise(CONSENT).await?;
    }
    Ok(cell.read(|level| *level))
}

/// Fails for good.
#[workflow]
pub(crate) async fn dying(_ctx: Ctx) -> Result<(), Failure> {
    Err(Failure::application("it was dying"))
}

#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) app: App,
    pub(crate) open: Handle<u64>,
    pub(crate) closed: Handle<u64>,
    pub(crate) absent: Handle<Value>,
}

impl Setup {
    pub(crate) async fn new() -> Self {
        let app = Dacapo::open("memory:")
            .await
            .unwrap()
            .settings(|app| app.payload_limit(10_000))
            .serve((sample, dying))
            .await
            .unwrap();
        let open = app.start(sample, 5).id("open").request_id("asked").await.unwrap();
        let closed = app.start(sample, 0).id("closed").await.unwrap();
        assert_eq!(closed.result().await.unwrap(), 0);
        let absent = app.handle_raw("absent");
        Self { app, open, closed, absent }
    }

    /// The token of an activity that the open run does not have.
    pub(crate) async fn token(&self) -> String {
        let run_id = self.open.describe().await.unwrap().run_id;
        let workflow_id = "open".into();
        CompletionToken { workflow_id, run_id, activity_id: "x".into(), attempt: 1 }.to_string()
    }

    /// All that the store says of every run.
    pub(crate) async fn all(&self) -> Vec<(Description, dacapo::core::Transcript)> {
        let page = self.app.runs().list(&Filter::all(), 1_000).await.unwrap();
        let mut all = Vec::new();
        for run in page.runs {
            let history = self.app.runs().transcript(run.workflow_id.clone()).await.unwrap();
            all.push((run, history));
        }
        all
    }
}

/// The token of an activity of this workflow id, in a run that is not there.
pub(crate) fn token(workflow_id: &'static str) -> String {
    let (run_id, activity_id) = ("run".into(), "x".into());
    CompletionToken { workflow_id: workflow_id.into(), run_id, activity_id, attempt: 1 }.to_string()
}

/// The words of an error, wherever it is found.
pub(crate) fn words<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "it was taken".to_owned(),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn long() -> String {
    "x".repeat(1_001)
}

pub(crate) fn large() -> Value {
    Value::String("x".repeat(10_001))
}
