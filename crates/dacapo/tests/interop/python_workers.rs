//! The workflows and activities of a Python worker.

use dacapo::json::{Value, json};
use dacapo::prelude::*;
use dacapo::{Error, EventKind, Query, decode, encode};

use super::{Order, PYTHON, Receipt, lamp, order, play};

#[workflow]
async fn priced(ctx: Ctx, order: Order) -> Result<Receipt, Failure> {
    let receipt = ctx.call_raw("price", [json!(order), json!(2.5)]).queue(PYTHON).await?;
    let nothing = ctx.call_raw("give_back", [Value::Null]).queue(PYTHON).await?;
    assert_eq!(nothing, Value::Null);
    serde_json::from_value(receipt).or_fail()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dacapo_workflow_calls_a_python_activity_with_structured_values() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(priced).await;
        let run = app.start(priced, lamp()).await.unwrap();
        assert_eq!(run.result().await, Ok(Receipt { order: lamp(), total: 5.0 }));
        app.shutdown().await;
    })
    .await;
}

#[workflow]
async fn refused(ctx: Ctx, order: Order) -> Result<Value, Failure> {
    ctx.call_raw("refuse", [json!(order)]).queue(PYTHON).retry(Retry::unlimited()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failure_of_a_python_activity_arrives_with_type_and_details_and_is_not_retried() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(refused).await;
        let run = app.start(refused, lamp()).await.unwrap();
        let Err(Error::Run { status: Status::Failed, failure, .. }) = run.result().await else {
            panic!("the run is expected to fail");
        };
        assert!(matches!(&failure.kind, FailureKind::Activity(failed) if failed.activity == "refuse"), "{failure:?}");
        let cause = failure.cause().expect("an activity fails for a reason");
        assert_eq!((&cause.kind, cause.message.as_str()), (&FailureKind::Application, "the shelf is empty"));
        assert_eq!((cause.type_name.as_deref(), cause.non_retryable), (Some("OutOfStock"), true));
        let [first, second] = &cause.details[..] else { panic!("{:?}", cause.details) };
        assert_eq!((decode::<Order>(first), decode::<u32>(second)), (Ok(lamp()), Ok(7)));
        let attempts = run.history().await.unwrap().into_iter().find_map(|event| match event.kind {
            EventKind::OperationEnded { attempts, .. } => Some(attempts),
            _ => None,
        });
        assert_eq!(attempts, Some(1));
        app.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failure_of_a_python_activity_arrives_with_its_text_where_that_is_encoded() {
    play(async |namespace| {
        let mut worker = namespace.start_python("worker.py", &["encode-failures"]);
        worker.prints("ready").await;
        let app = namespace.serve(refused).await;
        let Err(Error::Run { failure, .. }) = app.start(refused, lamp()).await.unwrap().result().await else {
            panic!("the run is expected to fail");
        };
        assert_eq!(failure.cause().map(|cause| cause.message.as_str()), Some("the shelf is empty"));
        app.shutdown().await;
    })
    .await;
}

#[activity]
async fn charge(order: Order, each: f64) -> Result<Receipt, Failure> {
    let total = each * f64::from(i32::try_from(order.amount).or_fail()?);
    Ok(Receipt { order, total })
}

#[activity]
async fn forget(order: Option<Order>) -> Result<(), Failure> {
    order.map_or(Ok(()), |order| Err(format!("{} was not nothing", order.item).into()))
}

#[activity]
async fn decline(order: Order) -> Result<(), Failure> {
    let mut failure = Failure::application("the card is blocked").typed("Declined").non_retryable();
    failure.details = vec![encode(&order)?];
    Err(failure)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_workflow_calls_a_dacapo_activity_with_structured_values() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(charge).await;
        let run = app.start_raw("Buy", [json!(lamp())]).queue(PYTHON).await.unwrap();
        assert_eq!(run.result().await, Ok(json!({ "order": lamp(), "total": 5.0 })));
        app.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_workflow_sees_the_type_of_a_failed_dacapo_activity() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve((forget, decline)).await;
        let run = app.start_raw("BuyInVain", [json!(lamp())]).queue(PYTHON).await.unwrap();
        let expected = json!({
            "failure": {
                "class": "ActivityError",
                "message": "Activity task failed",
                "cause": {
                    "class": "ApplicationError",
                    "type": "Declined",
                    "message": "the card is blocked",
                    "details": [lamp()],
                    "non_retryable": true,
                },
            },
            "nothing": null,
        });
        assert_eq!(run.result().await, Ok(expected));
        app.shutdown().await;
    })
    .await;
}

const ADD: Signal<Order> = Signal::new("add");
const END: Signal<()> = Signal::new("end");
const COUNT: Query<(), u32> = Query::new("count");
const FIND: Query<String, Option<Order>> = Query::new("find");
const PUT: Update<Order, u32> = Update::new("put");
const DROP_LAST: Update<(), ()> = Update::new("drop_last");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dacapo_client_signals_queries_and_updates_a_python_workflow() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let client = namespace.connect().await;
        let run = client.start_raw("Tally", [json!(0.5)]).queue(PYTHON).await.unwrap();
        run.signal(ADD, lamp()).await.unwrap();
        assert_eq!(run.query(COUNT, ()).await, Ok(1));
        assert_eq!(run.query(FIND, "lamp".into()).await, Ok(Some(lamp())));
        assert_eq!(run.query(FIND, "sofa".into()).await, Ok(None));
        assert_eq!(run.update(PUT, order("sofa", 1, &[])).request_id("sofa").await, Ok(2));
        assert_eq!(run.update(PUT, order("piano", 1, &[])).request_id("piano").await, Ok(3));
        assert_eq!(run.update(DROP_LAST, ()).request_id("drop").await, Ok(()));
        let Err(Error::Update(rejected)) = run.update(PUT, order("chair", 0, &[])).await else {
            panic!("the update is expected to fail");
        };
        assert_eq!((rejected.type_name.as_deref(), rejected.message.as_str()), (Some("Empty"), "nothing to put"));
        run.signal(END, ()).await.unwrap();
        let receipt = |order: Order, total: f64| json!({ "order": order, "total": total });
        assert_eq!(run.result().await, Ok(json!([receipt(lamp(), 1.0), receipt(order("sofa", 1, &[]), 0.5)])));
        let described = run.describe().await.unwrap();
        assert_eq!((described.workflow.as_str(), described.queue.as_str()), ("Tally", PYTHON));
        assert_eq!(described.status, Status::Completed);
        let history = run.history().await.unwrap();
        let told: Vec<String> = history.iter().map(|event| told(&event.kind)).collect();
        let expected = [
            "started Tally",
            "signal add",
            "update put sofa",
            "answer sofa",
            "update put piano",
            "answer piano",
            "update drop_last drop",
            "answer drop",
            "signal end",
            "Activity price",
            "ended after 1",
            "Activity price",
            "ended after 1",
            "completed",
        ];
        assert_eq!(told, expected, "{history}");
    })
    .await;
}

fn told(event: &EventKind) -> String {
    match event {
        EventKind::Started { workflow, .. } => format!("started {workflow}"),
        EventKind::Signalled { signal, .. } => format!("signal {signal}"),
        EventKind::UpdateReceived { id, update, .. } => format!("update {update} {id}"),
        EventKind::UpdateCompleted { id, result: Ok(_) } => format!("answer {id}"),
        EventKind::OperationStarted(start) => format!("{:?} {}", start.operation, start.name),
        EventKind::OperationEnded { result: Ok(_), attempts, .. } => format!("ended after {attempts}"),
        EventKind::Closed { status, result: Some(Ok(_)), .. } => status.to_string(),
        other => format!("unexpected {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dacapo_client_cancels_a_python_workflow() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let client = namespace.connect().await;
        let run = client.start_raw("Tally", [json!(0.5)]).queue(PYTHON).await.unwrap();
        assert_eq!(run.query(COUNT, ()).await, Ok(0));
        run.cancel("the shop closes").await.unwrap();
        let ended = run.result().await.unwrap_err();
        assert!(matches!(&ended, Error::Run { status: Status::Cancelled, .. }), "{ended}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dacapo_client_sees_the_type_and_details_of_a_failed_python_workflow() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let client = namespace.connect().await;
        let run = client.start_raw("Fail", [json!(lamp())]).queue(PYTHON).await.unwrap();
        let Err(Error::Run { status: Status::Failed, failure, .. }) = run.result().await else {
            panic!("the run is expected to fail");
        };
        assert_eq!((failure.type_name.as_deref(), failure.message.as_str()), (Some("Closed"), "the shop is closed"));
        assert_eq!(failure.details.iter().map(decode::<Order>).collect::<Vec<_>>(), [Ok(lamp())]);
        assert!(failure.non_retryable);
    })
    .await;
}
