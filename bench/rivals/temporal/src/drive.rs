//! The caller: starts the workflows of a workload and waits for their results.

use std::sync::Arc;

use anyhow::{Result, bail};
use dacapo_bench_meter::{Line, Rounds, Shape, Size, System, Turnaround, process_cpu_seconds};
use temporalio_client::{Client, WorkflowGetResultOptions, WorkflowStartOptions};

use crate::arguments::Arguments;
use crate::sdk::{Chain, Fan, connect};
use crate::work::Work;

/// The chains that a worker runs before anything is measured.
const WARM_UP: u32 = 20;

/// How much longer than on a store W1 and W2 are repeated: a server in memory has slow seconds, and in 5 s W2 would run once.
const LONGER: u32 = 3;

/// The workflows of a queue that one of the workers serves.
struct Queue {
    client: Client,
    name: String,
}

impl System for Queue {
    fn name(&self) -> &'static str {
        "temporal"
    }

    async fn run(&self, shape: Shape, id: String, payload: String) -> Result<String> {
        // Queues of one namespace share its ids.
        let options = WorkflowStartOptions::new(&self.name, format!("{}-{id}", self.name)).build();
        let work = |activities| Work { activities, payload };
        Ok(match shape {
            Shape::Chain(activities) => {
                let run = self.client.start_workflow(Chain::run, work(activities), options).await?;
                run.get_result(WorkflowGetResultOptions::default()).await?
            }
            Shape::Fan(activities) => {
                let run = self.client.start_workflow(Fan::run, work(activities), options).await?;
                run.get_result(WorkflowGetResultOptions::default()).await?
            }
        })
    }

    async fn start_sleeper(&self, _id: String, _payload: String) -> Result<()> {
        bail!("sleepers are not measured on Temporal")
    }
}

/// Runs one workload on a queue that is served, and prints its line.
pub async fn run(workload: &str, arguments: &Arguments) -> Result<()> {
    let size = if arguments.quick { Size::QUICK } else { Size::FULL };
    let queue = Queue { client: connect(arguments).await?, name: arguments.get("--queue")?.to_owned() };
    let queue = Arc::new(queue);
    let cpu =
        || Ok::<_, anyhow::Error>([arguments.pid("--worker")?, arguments.pid("--server")?].map(process_cpu_seconds));
    Rounds::warm_up(queue.clone(), WARM_UP).await?;
    let [worker, server] = cpu()?;
    let mut line = measure(queue, workload, &size).await?;
    let [worker_after, server_after] = cpu()?;
    line.system = arguments.get("--system")?.to_owned();
    line.figure("worker_cpu_seconds", worker_after? - worker?)
        .figure("server_cpu_seconds", server_after? - server?)
        .print();
    Ok(())
}

async fn measure(queue: Arc<Queue>, workload: &str, size: &Size) -> Result<Line> {
    let (name, shape, wide) = match workload {
        "w1" => ("w1", Shape::Chain(size.chains.1), size.chains.0),
        "w2" => ("w2", Shape::Fan(size.fans.1), size.fans.0),
        "w4" => {
            let mut turnaround = Turnaround::default();
            for _ in 0..size.turnarounds {
                turnaround.run(&*queue).await?;
            }
            return Ok(turnaround.line(""));
        }
        other => bail!("unknown workload `{other}`: expected w1, w2 or w4"),
    };
    let mut rounds = Rounds::new(queue, name, shape, wide);
    rounds.play_for(size.time * LONGER).await?;
    Ok(rounds.line())
}
