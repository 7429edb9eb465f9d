//! The worker of Temporal's own SDK, with the settings it comes with.

use std::time::Duration;

use anyhow::Result;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::workflows::join_all;
use temporalio_sdk::{ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult};

use crate::arguments::Arguments;
use crate::serve_until_input_ends;
use crate::work::Work;

/// The timeout of each activity, as in the other worker.
const START_TO_CLOSE: Duration = Duration::from_secs(60);

pub struct Activities;

#[activities]
impl Activities {
    #[activity(name = "echo")]
    pub async fn echo(_ctx: ActivityContext, payload: String) -> Result<String, ActivityError> {
        Ok(payload)
    }
}

#[workflow]
#[derive(Default)]
pub struct Chain;

#[workflow_methods]
impl Chain {
    #[run(name = "chain")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, work: Work) -> WorkflowResult<String> {
        let mut last = String::new();
        for _ in 0..work.activities {
            let options = ActivityOptions::start_to_close_timeout(START_TO_CLOSE);
            last = ctx.execute_activity(Activities::echo, work.payload.clone(), options).await?;
        }
        Ok(last)
    }
}

#[workflow]
#[derive(Default)]
pub struct Fan;

#[workflow_methods]
impl Fan {
    #[run(name = "fan")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, work: Work) -> WorkflowResult<String> {
        let call = |_| {
            let options = ActivityOptions::start_to_close_timeout(START_TO_CLOSE);
            ctx.execute_activity(Activities::echo, work.payload.clone(), options)
        };
        let all = join_all((0..work.activities).map(call)).await;
        let mut last = String::new();
        for result in all {
            last = result?;
        }
        Ok(last)
    }
}

pub async fn connect(arguments: &Arguments) -> Result<Client> {
    let target = format!("http://{}", arguments.get("--address")?);
    let options = ConnectionOptions::new(target.parse::<temporalio_client::Url>()?).build();
    let connection = Connection::connect(options).await?;
    Ok(Client::new(connection, ClientOptions::new(arguments.get("--namespace")?).build())?)
}

pub async fn serve(arguments: &Arguments) -> Result<()> {
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let options = WorkerOptions::new(arguments.get("--queue")?)
        .register_workflow::<Chain>()?
        .register_workflow::<Fan>()?
        .register_activities(Activities)
        .build();
    let mut worker = Worker::new(&runtime, connect(arguments).await?, options)?;
    let shut_down = worker.shutdown_handle();
    let ending = tokio::spawn(async move {
        let ended = serve_until_input_ends().await;
        shut_down();
        ended
    });
    // Its future cannot change threads: it runs on the main one.
    worker.run().await?;
    ending.await?
}
