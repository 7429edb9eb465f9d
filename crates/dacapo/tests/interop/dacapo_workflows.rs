//! A Python client and the workflows of Dacapo.

use dacapo::json::json;
use dacapo::prelude::*;
use dacapo::{Query, encode};

use super::{Order, Receipt, lamp, play};

const ADD: Signal<Order> = Signal::new("add");
const END: Signal<()> = Signal::new("end");
const FIND: Query<String, Option<Order>> = Query::new("find");
const PUT: Update<Order, Receipt> = Update::new("put");

/// Keeps the orders that it is sent, until it is told to end.
#[workflow]
pub(crate) async fn shelf(ctx: Ctx, label: String) -> Result<Vec<Order>, Failure> {
    let orders = ctx.cell(Vec::<Order>::new());
    let asked = orders.clone();
    ctx.on_query(FIND, move |item| match item.as_str() {
        "" => Err(Failure::application(format!("{label} have a name")).typed("NoName")),
        item => Ok(asked.read(|orders| orders.iter().find(|order| order.item == item).cloned())),
    });
    let added = orders.clone();
    ctx.on_signal(ADD, move |order| {
        let added = added.clone();
        async move {
            added.update(|orders| orders.push(order));
            Ok(())
        }
    });
    let put = orders.clone();
    ctx.on_update(
        PUT,
        |order| match order.amount {
            0 => Err(Failure::application("nothing to put").typed("Empty")),
            _ => Ok(()),
        },
        move |order| {
            let put = put.clone();
            async move {
                if order.item == "piano" {
                    return Err(Failure::application("too heavy").typed("Weight"));
                }
                put.update(|orders| orders.push(order.clone()));
                Ok(Receipt { order, total: 0.5 })
            }
        },
    );
    ctx.next_signal(END).await?;
    Ok(orders.read(Clone::clone))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_client_signals_queries_and_updates_a_dacapo_workflow() {
    play(async |namespace| {
        let app = namespace.serve(shelf).await;
        let seen = namespace.ask_python("talk").await;
        let sofa = json!({ "item": "sofa", "amount": 1, "notes": [] });
        let failed = |class: &str, kind: &str, message: &str| {
            let cause = json!({
                "class": "ApplicationError", "type": kind, "message": message, "details": [], "non_retryable": false
            });
            json!({ "class": class, "cause": cause })
        };
        let expected = json!({
            "found": lamp(),
            "missing": null,
            "put": { "order": sofa, "total": 0.5 },
            "rejected": failed("WorkflowUpdateFailedError", "Empty", "nothing to put"),
            "failed": failed("WorkflowUpdateFailedError", "Weight", "too heavy"),
            "refused": { "class": "WorkflowQueryFailedError" },
            "result": [lamp(), sofa],
        });
        assert_eq!(seen, expected);
        app.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_and_update_of_a_python_client_start_a_dacapo_workflow() {
    play(async |namespace| {
        let app = namespace.serve(shelf).await;
        let seen = namespace.ask_python("talk_at_start").await;
        let expected = json!({ "put": { "order": lamp(), "total": 0.5 }, "results": [[lamp()], [lamp()]] });
        assert_eq!(seen, expected);
        app.shutdown().await;
    })
    .await;
}

#[workflow]
pub(crate) async fn fails(ctx: Ctx, order: Order) -> Result<(), Failure> {
    let _ = ctx;
    let mut failure = Failure::application("the shop is closed").typed("Closed").non_retryable();
    failure.details = vec![encode(&order)?, encode(&7)?];
    Err(failure)
}

#[activity]
async fn breaks() -> Result<(), Failure> {
    Err(Failure::application("the press is jammed").typed("Jam"))
}

#[workflow]
async fn fails_with_activity(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(breaks, ()).retry(Retry::none()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_client_sees_the_type_and_details_of_a_failed_dacapo_workflow() {
    play(async |namespace| {
        let app = namespace.serve((fails, fails_with_activity, breaks)).await;
        let seen = namespace.ask_python("fail").await;
        let expected = json!({
            "own": {
                "class": "WorkflowFailureError",
                "cause": {
                    "class": "ApplicationError",
                    "type": "Closed",
                    "message": "the shop is closed",
                    "details": [lamp(), 7],
                    "non_retryable": true,
                },
            },
            "of an activity": {
                "class": "WorkflowFailureError",
                "cause": {
                    "class": "ActivityError",
                    "message": "Activity task failed",
                    "cause": {
                        "class": "ApplicationError",
                        "type": "Jam",
                        "message": "the press is jammed",
                        "details": [],
                        "non_retryable": false,
                    },
                },
            },
        });
        assert_eq!(seen, expected);
        app.shutdown().await;
    })
    .await;
}

const NOTHING: Signal<()> = Signal::new("nothing");
const ASK_NOTHING: Query<(), ()> = Query::new("nothing");
const CHANGE_NOTHING: Update<(), ()> = Update::new("nothing");

#[workflow]
async fn nothing(ctx: Ctx) -> Result<(), Failure> {
    ctx.on_query(ASK_NOTHING, Ok);
    ctx.on_update(CHANGE_NOTHING, |()| Ok(()), async |()| Ok(()));
    ctx.next_signal(NOTHING).await
}

#[workflow]
async fn maybe(ctx: Ctx, order: Option<Order>) -> Result<Option<Order>, Failure> {
    let _ = ctx;
    Ok(order)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_client_sends_and_gets_none_as_unit_and_option() {
    play(async |namespace| {
        let app = namespace.serve((nothing, maybe)).await;
        let seen = namespace.ask_python("send_nothing").await;
        let expected =
            json!({ "query": null, "update": null, "signal": null, "result": null, "none": null, "some": lamp() });
        assert_eq!(seen, expected);
        app.shutdown().await;
    })
    .await;
}

const WAITS: Query<(), ()> = Query::new("waits");

#[workflow]
async fn waits(ctx: Ctx) -> Result<(), Failure> {
    ctx.on_query(WAITS, Ok);
    ctx.sleep(hours(1)).await.map_err(Into::into)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_client_cancels_a_dacapo_workflow() {
    play(async |namespace| {
        let app = namespace.serve(waits).await;
        let seen = namespace.ask_python("cancel").await;
        assert_eq!(seen["class"], "WorkflowFailureError");
        assert_eq!(seen["cause"]["class"], "CancelledError", "{seen}");
        let described = app.handle(waits, "waits").describe().await.unwrap();
        assert_eq!(described.status, Status::Cancelled);
        app.shutdown().await;
    })
    .await;
}
