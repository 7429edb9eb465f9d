//! Waiting for a run that cannot go on.

use dacapo::prelude::*;
use dacapo::{ClientError, Dacapo, Error};

const GO: Signal<()> = Signal::new("go");

#[activity]
async fn forgotten() -> Result<(), Failure> {
    Ok(())
}

#[workflow]
async fn panics(ctx: Ctx) -> Result<(), Failure> {
    ctx.next_signal(GO).await?;
    panic!("not today")
}

#[workflow]
async fn waits_for_ever(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(forgotten, ()).await
}

#[workflow]
async fn is_well(_ctx: Ctx) -> Result<u8, Failure> {
    Ok(7)
}

fn reason<T>(ended: dacapo::Result<T>) -> String {
    match ended {
        Err(Error::Client(ClientError::Stuck(reason))) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it cannot have ended"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn caller_that_waits_can_ask_to_be_told_when_the_run_gets_stuck() {
    let app = Dacapo::open("memory:").await.unwrap().serve((panics, waits_for_ever, is_well)).await.unwrap();
    let run = app.start(panics, ()).await.unwrap();
    let (waits, of_wait) = (run.clone(), run.clone());
    let patient = tokio::spawn(async move { waits.result().await });
    let impatient = tokio::spawn(async move { of_wait.result_or_stuck().await });
    run.signal(GO, ()).await.unwrap();
    assert!(reason(impatient.await.unwrap()).contains("not today"));
    assert!(reason(run.result_or_stuck().await).contains("not today"), "it is stuck already");
    assert!(!patient.is_finished());
    run.terminate("").await.unwrap();
    assert!(matches!(patient.await.unwrap(), Err(Error::Run { .. })));
    assert!(matches!(run.result_or_stuck().await, Err(Error::Run { .. })));
    let run = app.start(waits_for_ever, ()).await.unwrap();
    assert!(reason(run.result_or_stuck().await).contains("\"forgotten\" is not served here"));
    assert_eq!(app.start(is_well, ()).await.unwrap().result_or_stuck().await.unwrap(), 7);
}
