//! What operators and other programs do with runs: resets, late answers, pending activities, descriptions, deletion.

use std::fs::File;
use std::io::BufReader;

use dacapo::prelude::*;
use dacapo::{ActivityState, ClientError, Description, Error, Feature};

use crate::{Backend, described, wait};

const ADD: Signal<u64> = Signal::new("add");
const DOUBLE: Update<u64, u64> = Update::new("double");
const CITY: Attr<String> = Attr::new("city");

#[workflow]
async fn sums_two(ctx: Ctx) -> Result<u64, Failure> {
    let first = ctx.next_signal(ADD).await?;
    Ok(first + ctx.next_signal(ADD).await?)
}

pub(crate) async fn reset_begins_again_with_what_came_before_and_since(backend: &Backend) {
    let app = backend.serve(sums_two).await;
    let run = app.start(sums_two, ()).id("a").await.unwrap();
    described(&run, |run| run.turns == 1).await;
    run.signal(ADD, 3).await.unwrap();
    described(&run, |run| run.turns == 2).await;
    let again = run.reset(1, "once more").await.unwrap();
    assert_ne!(again.run_id(), run.run_id());
    assert!(matches!(run.result().await, Err(Error::Run { status: Status::Terminated, .. })));
    again.signal(ADD, 4).await.unwrap();
    assert_eq!(again.result().await, Ok(7));
    app.shutdown().await;
}

#[activity]
async fn imports(ctx: ActivityCtx, files: u64) -> Result<u64, Failure> {
    match ctx.details::<u64>()? {
        Some(done) => Ok(files - done),
        None => {
            ctx.heartbeat(&(files / 2))?;
            Err("the connection was lost".into())
        }
    }
}

#[workflow]
async fn nightly(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(imports, 10).retry(Retry::exponential().first_pause(millis(1))).heartbeat_timeout(mins(1)).await
}

pub(crate) async fn next_attempt_gets_the_progress_of_the_one_before(backend: &Backend) {
    let app = backend.serve((nightly, imports)).await;
    assert_eq!(app.start(nightly, ()).await.unwrap().result().await, Ok(5));
    app.shutdown().await;
}

#[activity]
async fn hangs(ctx: ActivityCtx) -> Result<(), Failure> {
    Err(ctx.cancelled().await.into())
}

#[workflow]
async fn gives_up(ctx: Ctx) -> Result<String, Failure> {
    let failure = ctx.call(hangs, ()).start_to_close(millis(50)).retry(Retry::none()).await.unwrap_err();
    Ok(failure.to_string())
}

pub(crate) async fn attempt_ends_at_its_timeout(backend: &Backend) {
    let app = backend.serve((gives_up, hangs)).await;
    let told = app.start(gives_up, ()).await.unwrap().result().await.unwrap();
    assert!(told.contains("timeout"), "{told}");
    app.shutdown().await;
}

#[workflow]
async fn is_looked_at(ctx: Ctx) -> Result<(), Failure> {
    ctx.set_attr(CITY, "Lisboa".into());
    ctx.set_memo("customer", "Ada Lovelace");
    ctx.publish(&7_u64);
    ctx.next_signal(ADD).await.map(drop)
}

pub(crate) async fn attributes_memo_and_snapshot_are_described(backend: &Backend) {
    let app = backend.serve(is_looked_at).await;
    let run = app.start(is_looked_at, ()).memo("order", &42).await.unwrap();
    let described = described(&run, |run| run.turns == 1).await;
    assert_eq!(described.attributes.get("city"), Some(&"Lisboa".into()));
    assert_eq!(app.decode::<String>(&described.memo["customer"]), Ok("Ada Lovelace".to_owned()));
    assert_eq!(app.decode::<u64>(&described.memo["order"]), Ok(42));
    assert_eq!(run.published::<u64>().await, Ok(Some(7)));
    run.signal(ADD, 1).await.unwrap();
    run.result().await.unwrap();
    app.shutdown().await;
}

#[workflow]
async fn doubles(ctx: Ctx) -> Result<(), Failure> {
    let inner = ctx.clone();
    ctx.on_update(
        DOUBLE,
        |_| Ok(()),
        move |n| {
            let ctx = inner.clone();
            async move { Ok(n * ctx.next_signal(ADD).await?) }
        },
    );
    ctx.sleep(hours(1)).await.map_err(Into::into)
}

pub(crate) async fn answer_to_an_update_is_asked_for_later_by_its_request_id(backend: &Backend) {
    let app = backend.serve(doubles).await;
    let run = app.start(doubles, ()).await.unwrap();
    run.update(DOUBLE, 4).request_id("double-1").accepted().await.unwrap();
    run.signal(ADD, 2).await.unwrap();
    assert_eq!(run.update_handle(DOUBLE, "double-1").answer().await, Ok(8));
    assert_eq!(run.update(DOUBLE, 4).request_id("double-1").await, Ok(8), "sent again it is the same update");
    run.terminate("seen").await.unwrap();
    app.shutdown().await;
}

#[activity]
async fn asks_a_person(ctx: ActivityCtx, question: String) -> Result<String, Failure> {
    let _ = question;
    Err(ctx.complete_later())
}

#[workflow]
async fn waits_for_a_person(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(asks_a_person, "may I?".into()).start_to_close(hours(1)).await
}

pub(crate) async fn activity_is_completed_by_its_id(backend: &Backend) {
    let app = backend.serve((waits_for_a_person, asks_a_person)).await;
    let run = app.start(waits_for_a_person, ()).await.unwrap();
    // Some backends do not tell an attempt that runs from one whose code has returned.
    let with_others = [ActivityState::External, ActivityState::Running];
    let is_asked = |run: &Description| run.pending.first().is_some_and(|pending| with_others.contains(&pending.state));
    let id = described(&run, is_asked).await.pending[0].id.to_string();
    run.complete_activity(id, "you may").await.unwrap();
    assert_eq!(run.result().await.as_deref(), Ok("you may"));
    app.shutdown().await;
}

#[workflow]
async fn tells_another(ctx: Ctx, other: String) -> Result<(), Failure> {
    ctx.signal_external(other, ADD, 20).await?;
    Ok(())
}

pub(crate) async fn run_signals_another_run(backend: &Backend) {
    let app = backend.serve((sums_two, tells_another)).await;
    let sum = app.start(sums_two, ()).id("sum").await.unwrap();
    sum.signal(ADD, 22).await.unwrap();
    app.start(tells_another, "sum".into()).await.unwrap().result().await.unwrap();
    assert_eq!(sum.result().await, Ok(42));
    app.shutdown().await;
}

pub(crate) async fn closed_run_is_deleted_where_the_backend_can(backend: &Backend) {
    let app = backend.serve(sums_two).await;
    let run = app.start(sums_two, ()).id("a").await.unwrap();
    run.terminate("over").await.unwrap();
    match (run.delete().await, app.capabilities().has(Feature::Deletion)) {
        (Ok(()), true) => {
            // Some backends delete a moment later.
            let gone = wait(async || run.describe().await.err()).await;
            assert!(matches!(gone, Error::Client(ClientError::NotFound { .. })), "{gone}");
        }
        (Err(Error::Client(ClientError::Unsupported { feature: Feature::Deletion, .. })), false) => {}
        (answer, can) => panic!("{answer:?}, and the backend can delete: {can}"),
    }
    app.shutdown().await;
}

pub(crate) async fn next_process_goes_on_where_the_store_outlives_one(backend: &Backend) {
    if backend.url == "memory:" {
        return;
    }
    let app = backend.serve(sums_two).await;
    app.start(sums_two, ()).id("a").await.unwrap().signal(ADD, 40).await.unwrap();
    app.shutdown().await;
    let app = backend.serve(sums_two).await;
    let run = app.handle(sums_two, "a");
    run.signal(ADD, 2).await.unwrap();
    assert_eq!(run.result().await, Ok(42));
    app.shutdown().await;
}

pub(crate) async fn backup_is_made_where_the_backend_can(backend: &Backend) {
    let app = backend.serve(sums_two).await;
    app.start(sums_two, ()).id("a").await.unwrap();
    let file = backend.folder.path().join("backup.db");
    match (app.runs().back_up(&file).await, app.capabilities().has(Feature::Backup)) {
        (Ok(()), true) => {
            let copy = Dacapo::connect(&format!("sqlite:{}", file.display())).await.unwrap();
            assert_eq!(copy.runs().count(&Filter::all()).await, Ok(1));
        }
        (Err(Error::Client(ClientError::Unsupported { feature: Feature::Backup, .. })), false) => {
            assert!(!file.exists());
        }
        (answer, can) => panic!("{answer:?}, and the backend can back up: {can}"),
    }
    app.shutdown().await;
}

pub(crate) async fn runs_are_exported_and_imported_where_the_backend_can(backend: &Backend) {
    let app = backend.serve(sums_two).await;
    let closed = app.start(sums_two, ()).id("closed").await.unwrap();
    closed.terminate("over").await.unwrap();
    let open = app.start(sums_two, ()).id("open").await.unwrap();
    let file = backend.folder.path().join("runs.jsonl");
    match (app.runs().export_to_file(&Filter::all(), &file).await, app.capabilities().has(Feature::Archive)) {
        (Ok(2), true) => {
            let read = || BufReader::new(File::open(&file).unwrap());
            let known = app.import(read()).await.unwrap();
            assert_eq!((known.runs, known.known.len(), known.open.len()), (0, 1, 1));
            closed.delete().await.unwrap();
            assert_eq!(app.import(read()).await.unwrap().runs, 1);
            assert!(matches!(closed.result().await, Err(Error::Run { status: Status::Terminated, .. })));
        }
        (Err(Error::Client(ClientError::Unsupported { feature: Feature::Archive, .. })), false) => {
            assert!(!file.exists());
        }
        (answer, can) => panic!("{answer:?}, and the backend can export: {can}"),
    }
    open.terminate("seen").await.unwrap();
    app.shutdown().await;
}
