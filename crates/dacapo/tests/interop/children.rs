//! Child workflows of the other side.

use dacapo::json::{Value, json};
use dacapo::prelude::*;

use super::dacapo_workflows::{fails, shelf};
use super::{Order, PYTHON, lamp, play};

const ADD: Signal<Order> = Signal::new("add");
const END: Signal<()> = Signal::new("end");

/// Returns what a child of Python kept, and the failure of another child.
#[workflow]
async fn parent(ctx: Ctx, order: Order) -> Result<Value, Failure> {
    let tally = ctx.child_raw("Tally", [json!(0.5)]).queue(PYTHON).started().await?;
    tally.signal(ADD, order.clone()).await?;
    tally.signal(END, ()).await?;
    let failure = ctx.child_raw("Fail", [json!(order)]).queue(PYTHON).await.unwrap_err();
    let FailureKind::Child(failed) = &failure.kind else { return Err(failure) };
    let cause = failure.cause().expect("a child fails for a reason");
    Ok(json!({
        "kept": tally.await?,
        "child": failed.workflow,
        "type": cause.type_name,
        "message": cause.message,
        "details": cause.details.iter().map(|detail| ctx.decode(detail)).collect::<Result<Vec<Value>, _>>()?,
        "non_retryable": cause.non_retryable,
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dacapo_workflow_signals_a_python_child_and_sees_the_failure_of_another() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(parent).await;
        let expected = json!({
            "kept": [{ "order": lamp(), "total": 1.0 }],
            "child": "Fail",
            "type": "Closed",
            "message": "the shop is closed",
            "details": [lamp()],
            "non_retryable": true,
        });
        assert_eq!(app.start(parent, lamp()).await.unwrap().result().await, Ok(expected));
        app.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_workflow_signals_a_dacapo_child_and_sees_the_failure_of_another() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve((shelf, fails)).await;
        let run = app.start_raw("Parent", [json!(lamp())]).queue(PYTHON).await.unwrap();
        let cause = json!({
            "class": "ApplicationError",
            "type": "Closed",
            "message": "the shop is closed",
            "details": [lamp(), 7],
            "non_retryable": true,
        });
        let expected = json!({
            "kept": [lamp()],
            "failure": {
                "class": "ChildWorkflowError",
                "message": "Child Workflow execution failed",
                "cause": cause,
            },
        });
        assert_eq!(run.result().await, Ok(expected));
        app.shutdown().await;
    })
    .await;
}
