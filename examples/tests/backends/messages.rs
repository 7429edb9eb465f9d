//! Messages: signals, updates, queries, promises, children.

use dacapo::prelude::*;
use dacapo::{ClientError, Error, Query};

use crate::Backend;

const ADD: Signal<u32> = Signal::new("add");
const END: Signal<()> = Signal::new("end");
const PUT: Update<u32, u32> = Update::new("put");
const SUM: Query<(), u32> = Query::new("sum");

/// Keeps the values of all signals, in order, until a signal ends it.
#[workflow]
async fn keeper(ctx: Ctx) -> Result<Vec<u32>, Failure> {
    let kept = ctx.cell(Vec::<u32>::new());
    let sum = kept.clone();
    ctx.on_query(SUM, move |()| Ok(sum.read(|kept| kept.iter().sum())));
    let added = kept.clone();
    ctx.on_signal(ADD, move |n| {
        let added = added.clone();
        async move {
            added.update(|kept| kept.push(n));
            Ok(())
        }
    });
    let put = kept.clone();
    ctx.on_update(
        PUT,
        |n| if *n > 0 { Ok(()) } else { Err("nothing to put".into()) },
        move |n| {
            let put = put.clone();
            async move {
                put.update(|kept| kept.push(n));
                Ok(n)
            }
        },
    );
    ctx.next_signal(END).await?;
    Ok(kept.read(Clone::clone))
}

pub(crate) async fn signals_are_taken_in_order(backend: &Backend) {
    let app = backend.serve(keeper).await;
    let run = app.start(keeper, ()).await.unwrap();
    for n in 1..=50 {
        run.signal(ADD, n).await.unwrap();
    }
    run.signal(END, ()).await.unwrap();
    assert_eq!(run.result().await, Ok((1..=50).collect()));
    app.shutdown().await;
}

pub(crate) async fn signal_with_one_request_id_counts_once(backend: &Backend) {
    let app = backend.serve(keeper).await;
    let run = app.start(keeper, ()).await.unwrap();
    for _ in 0..3 {
        run.signal(ADD, 7).request_id("seven").await.unwrap();
    }
    run.signal(END, ()).await.unwrap();
    assert_eq!(run.result().await, Ok(vec![7]));
    app.shutdown().await;
}

pub(crate) async fn update_is_answered_or_rejected(backend: &Backend) {
    let app = backend.serve(keeper).await;
    let run = app.start(keeper, ()).await.unwrap();
    assert_eq!(run.update(PUT, 5).request_id("five").await, Ok(5));
    assert_eq!(run.update(PUT, 5).request_id("five").await, Ok(5), "the same update");
    let rejected = run.update(PUT, 0).await.unwrap_err();
    assert!(matches!(&rejected, Error::Client(ClientError::UpdateRejected(_))), "{rejected}");
    run.signal(END, ()).await.unwrap();
    assert_eq!(run.result().await, Ok(vec![5]));
    app.shutdown().await;
}

pub(crate) async fn query_sees_what_was_acknowledged(backend: &Backend) {
    let app = backend.serve(keeper).await;
    let run = app.start(keeper, ()).await.unwrap();
    for n in 1..=10 {
        run.signal(ADD, n).await.unwrap();
        assert_eq!(run.query(SUM, ()).await, Ok((1..=n).sum()));
    }
    run.signal(END, ()).await.unwrap();
    run.result().await.unwrap();
    assert_eq!(run.query(SUM, ()).await, Ok(55), "a closed run answers as well");
    app.shutdown().await;
}

const WORD: Promise<String> = Promise::new("word");

#[workflow]
async fn promised(ctx: Ctx) -> Result<String, Failure> {
    ctx.promise(WORD).await
}

pub(crate) async fn promise_is_resolved_by_name(backend: &Backend) {
    let app = backend.serve(promised).await;
    let run = app.start(promised, ()).await.unwrap();
    run.resolve(WORD, "kept".to_owned()).await.unwrap();
    assert_eq!(run.result().await.as_deref(), Ok("kept"));
    app.shutdown().await;
}

#[workflow]
async fn parent(ctx: Ctx) -> Result<Vec<u32>, Failure> {
    let child = ctx.child(keeper, ()).started().await?;
    for n in 1..=3 {
        child.signal(ADD, n).await?;
    }
    child.signal(END, ()).await?;
    child.await
}

pub(crate) async fn child_and_parent_talk(backend: &Backend) {
    let app = backend.serve((parent, keeper)).await;
    assert_eq!(app.start(parent, ()).await.unwrap().result().await, Ok(vec![1, 2, 3]));
    app.shutdown().await;
}
