//! The example programs.

use std::time::Duration;

use dacapo::prelude::*;
use dacapo::{ClientError, Error};
use dacapo_examples::approval::{self, DECIDE, Decision, Request, WAITS_FOR};
use dacapo_examples::counter::{self, ADD, STOP, TAKEN_BY_ONE_RUN};
use dacapo_examples::entity::Account;
use dacapo_examples::fan_out::{self, Work};
use dacapo_examples::saga::{self, Trip};

use crate::Backend;

pub(crate) async fn fan_out_counts_every_part(backend: &Backend) {
    let app = backend.serve((fan_out::count_all, fan_out::count)).await;
    let small = app.start(fan_out::count_all, Work { parts: 3, at_once: 1 }).await.unwrap().result().await.unwrap();
    let wide = app.start(fan_out::count_all, Work { parts: 3, at_once: 3 }).await.unwrap().result().await.unwrap();
    assert_eq!(small, wide);
    app.shutdown().await;
}

pub(crate) async fn saga_gives_everything_back(backend: &Backend) {
    let app = backend.serve((saga::trip, saga::book, saga::give_back)).await;
    let trip = |city: &str| Trip { traveller: "ada".into(), city: city.into() };
    let booked = app.start(saga::trip, trip("Roma")).await.unwrap().result().await.unwrap();
    assert_eq!(booked.len(), 3);
    let failed = app.start(saga::trip, trip("Venezia")).await.unwrap().result().await.unwrap_err();
    assert!(failed.to_string().contains("there are no cars in Venezia"), "{failed}");
    app.shutdown().await;
}

pub(crate) async fn entity_lives_on_as_new_runs(backend: &Backend) {
    let app = backend.serve(Account::run).await;
    app.start(Account::run, Account::default()).id("ada").await.unwrap();
    // By its id alone: the handle of a start names the first run, and the account lives on as others.
    let account = app.handle(Account::run, "ada");
    for _ in 0..30 {
        account.signal(Account::DEPOSIT, 10).await.unwrap();
    }
    assert_eq!(account.query(Account::BALANCE, ()).await, Ok(300));
    assert_eq!(account.update(Account::WITHDRAW, 100).await, Ok(200));
    let refused = account.update(Account::WITHDRAW, 1_000).await.unwrap_err();
    assert!(matches!(&refused, Error::Client(ClientError::UpdateRejected(_))), "{refused}");
    account.signal(Account::CLOSE, ()).await.unwrap();
    assert_eq!(account.result().await, Ok(200));
    app.shutdown().await;
}

pub(crate) async fn counter_continues_as_new(backend: &Backend) {
    let app = backend.serve(counter::counter).await;
    let first = app.start(counter::counter, 0).id("c").await.unwrap();
    let signals = u64::from(TAKEN_BY_ONE_RUN) * 2 + 3;
    for _ in 0..signals {
        app.handle(counter::counter, "c").signal(ADD, 1).await.unwrap();
    }
    app.handle(counter::counter, "c").signal(STOP, ()).await.unwrap();
    assert_eq!(first.result().await, Ok(signals), "the first run's handle follows the chain");
    assert_eq!(app.runs().count(&Filter::all().workflow_id("c")).await.unwrap(), 3);
    app.shutdown().await;
}

pub(crate) async fn handle_of_a_start_finds_the_run_that_it_continued_as(backend: &Backend) {
    let app = backend.serve(counter::counter).await;
    let first = app.start(counter::counter, 0).id("c").await.unwrap();
    let latest = first.latest();
    let mut closed = None;
    for _ in 0..=TAKEN_BY_ONE_RUN {
        latest.signal(ADD, 1).await.unwrap();
    }
    // The first run continues as new in a turn of its own.
    while closed.is_none() {
        closed = first.describe().await.unwrap().closed;
        tokio::task::yield_now().await;
    }
    let refused = first.signal(ADD, 1).await.unwrap_err();
    let status = Status::ContinuedAsNew;
    assert_eq!(refused, Error::Client(ClientError::Closed { workflow_id: "c".into(), status }));
    assert!(refused.to_string().contains("`handle.latest()`"), "{refused}");
    assert_eq!((latest.run_id(), latest.workflow_id()), (None, "c"));
    assert_eq!(latest.describe().await.unwrap().first_run_id, first.run_id().unwrap());
    latest.signal(STOP, ()).await.unwrap();
    let total = u64::from(TAKEN_BY_ONE_RUN) + 1;
    assert_eq!((first.result().await, latest.result().await), (Ok(total), Ok(total)));
    app.shutdown().await;
}

pub(crate) async fn approval_is_decided(backend: &Backend) {
    let app = backend.serve((approval::approval, approval::send_email)).await;
    let request = Request {
        what: "a chair".into(),
        manager: "ada".into(),
        director: "grace".into(),
        patience: Duration::from_secs(3_600),
    };
    let run = app.start(approval::approval, request).await.unwrap();
    let decision = Decision { by: "ada".into(), approved: true };
    run.update(DECIDE, decision.clone()).await.unwrap();
    assert_eq!(run.result().await, Ok(decision));
    assert!(run.query(WAITS_FOR, ()).await.is_ok());
    app.shutdown().await;
}
