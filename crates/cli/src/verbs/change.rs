//! Changing runs.

use dacapo_client::{Client, ResolvePromise, SendSignal, SendUpdate, UpdateState};
use dacapo_core::{Name, Payload};
use serde_json::json;

use crate::arguments::{End, Message, Reset, Resolve, Run, Update};
use crate::backend::{explained, run_of};
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::text::payload;

fn arguments(input: &[String]) -> Vec<Payload> {
    input.iter().map(|text| payload(text)).collect()
}

/// Says that a change is done.
fn done(output: Output, text: String) -> Result<()> {
    output.print(&json!({ "done": text }), || text.clone())
}

/// A key for a request that has none, so that nothing is done twice by a call that is repeated on the way.
pub(super) fn fresh_key() -> Name {
    let time = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("cli-{}-{}", std::process::id(), time.as_nanos()).into()
}

pub(super) async fn signal(client: &dyn Client, message: Message, output: Output) -> Result<()> {
    let Message { run, name, input } = message;
    let signal = SendSignal { name: name.clone().into(), input: arguments(&input), ..SendSignal::default() };
    client.signal(run_of(&run), signal).await.map_err(explained)?;
    done(output, format!("signal {name} is sent to {}", run.id))
}

pub(super) async fn update(client: &dyn Client, update: Update, output: Output) -> Result<()> {
    let Update { message: Message { run, name, input }, request_id } = update;
    let id = request_id.map_or_else(fresh_key, Name::from);
    let update = SendUpdate { id, name: name.into(), input: arguments(&input), ..SendUpdate::default() };
    let state = client.update(run_of(&run), update).await.map_err(explained)?;
    match state {
        UpdateState::Completed(Ok(result)) => output.print(&result, || result.to_string()),
        UpdateState::Completed(Err(failure)) => Err(Failure::Other(format!("the update failed: {failure}"))),
        UpdateState::Accepted => done(output, "the update is accepted and not completed yet".to_owned()),
    }
}

pub(super) async fn resolve(client: &dyn Client, resolve: Resolve, output: Output) -> Result<()> {
    let Resolve { run, promise, value } = resolve;
    let resolution = ResolvePromise { promise: promise.clone().into(), result: Ok(payload(&value)) };
    client.resolve_promise(run_of(&run), resolution).await.map_err(explained)?;
    done(output, format!("promise {promise} of {} is resolved", run.id))
}

pub(super) async fn cancel(client: &dyn Client, end: End, output: Output) -> Result<()> {
    client.cancel(run_of(&end.run), end.reason).await.map_err(explained)?;
    done(output, format!("{} is asked to cancel", end.run.id))
}

pub(super) async fn terminate(client: &dyn Client, end: End, output: Output) -> Result<()> {
    client.terminate(run_of(&end.run), end.reason).await.map_err(explained)?;
    done(output, format!("{} is terminated", end.run.id))
}

pub(super) async fn reset(client: &dyn Client, reset: Reset, output: Output) -> Result<()> {
    let Reset { run, turn, reason } = reset;
    let started = client.reset(run_of(&run), turn, reason).await.map_err(explained)?;
    output.print(&started, || format!("{} starts again from turn {turn} as {}", run.id, started.run))
}

pub(super) async fn release(client: &dyn Client, run: &Run, output: Output) -> Result<()> {
    client.release(run_of(run)).await.map_err(explained)?;
    done(output, format!("{} is released", run.id))
}

pub(super) async fn delete(client: &dyn Client, run: &Run, output: Output) -> Result<()> {
    client.delete(run_of(run)).await.map_err(explained)?;
    done(output, format!("{} is deleted", run.id))
}
