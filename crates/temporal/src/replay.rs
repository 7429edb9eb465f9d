//! Replaying histories without a server: whether the code at hand decides what was recorded. Temporal's core compares commands with
//! the history in its own way: their order, and the names and ids of activities and children.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dacapo_client::{Description, Error, Progress, Result, RunRef, Unplayable};
use dacapo_core::{Name, Transcript};
use dacapo_worker::{QueueValues, Registry, Worker};
use temporalio_common::worker::WorkerTaskTypes;
use temporalio_sdk_core::replay::{HistoryForReplay, ReplayWorkerInput};
use temporalio_sdk_core::{PollError, Worker as Core, WorkerConfig, WorkerVersioningStrategy, init_replay_worker};
use tokio::sync::oneshot;

use crate::address::DEFAULT_START_TO_CLOSE;
use crate::client::ClusterClient;
use crate::connect::Cluster;
use crate::history_json::history_from_json;
use crate::host::ClusterHost;
use crate::player::recorder::TranscriptRecorder;
use crate::player::reply::Reply;
use crate::player::{PlayerOptions, QueuePlayer, eviction};
use crate::proto::activation::remove_from_cache::EvictionReason;
use crate::proto::activation::{RemoveFromCache, WorkflowActivation};
use crate::proto::completion::{WorkflowActivationCompletion, workflow_activation_completion::Status};
use crate::proto::enums::EventType;
use crate::proto::history::{
    History, HistoryEvent, WorkflowExecutionStartedEventAttributes, history_event::Attributes,
};

/// The queue of a replay: no server knows of it.
const QUEUE: Name = Name::from_static("replay");
/// How long core may take to the next activation: it works on what it has in memory.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long core may take to end.
const LAST_CALLS: Duration = Duration::from_secs(5);
/// How many open runs are asked for at a time.
const PAGE: usize = 100;

/// Replays a history in the JSON of Temporal's tools: what `temporal workflow show --output json` prints.
///
/// It runs on a thread of its own, so it may be called with and without an async runtime.
///
/// # Errors
/// [`Error::InvalidArgument`] for a text that is no history, [`Error::Stuck`] with a report if the code cannot play it.
pub fn replay_json(registry: &Registry, json: &str) -> Result<()> {
    transcript_of(registry, json).map(drop)
}

/// Replays a history as [`replay_json`] does, and returns our own transcript of the run.
///
/// # Errors
/// As for [`replay_json`].
pub fn transcript_of(registry: &Registry, json: &str) -> Result<Transcript> {
    let history = history_from_json(json).map_err(|error| {
        Error::InvalidArgument(format!(
            "this is no history of a Temporal cluster: {error}. Pass what `temporal workflow show --output json` prints"
        ))
    })?;
    let registry = registry.clone();
    let replayed = thread::scope(|scope| {
        scope
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| Error::Refused(format!("no runtime can be started: {error}")))?;
                let replayer = Replayer::new(registry, true)?;
                let unplayable = runtime.block_on(replayer.replay(history))?;
                match (unplayable, replayer.recorder.take()) {
                    (Some(run), _) => Err(Error::Stuck(run.to_string())),
                    (None, transcript) => transcript.ok_or_else(nothing_to_play),
                }
            })
            .join()
    });
    replayed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn nothing_to_play() -> Error {
    let why = "this history has no workflow task that could be replayed. Export it when a worker has played the run's first task";
    Error::InvalidArgument(why.to_owned())
}

/// The open runs of some queues of a cluster.
pub struct OpenRuns {
    /// The cluster.
    pub cluster: Cluster,
    /// The code that plays them.
    pub registry: Registry,
    /// The queues.
    pub queues: Vec<Name>,
    /// Whether reports leave payloads out.
    pub redact: bool,
}

impl OpenRuns {
    /// Plays all of them again, without changing anything, and returns those that the code cannot play.
    ///
    /// # Errors
    /// The cluster refuses the calls or does not answer.
    pub async fn unplayable(self, mut progress: Progress) -> Result<Vec<Unplayable>> {
        let client = ClusterClient::new(&self.cluster);
        let replayer = Replayer::new(self.registry, self.redact)?;
        let (mut found, mut played) = (Vec::new(), 0);
        for queue in &self.queues {
            let mut after = None;
            loop {
                let page = client.open_runs(queue, after, PAGE).await?;
                for run in page.runs {
                    match client.fetch(&RunRef::exact(run.workflow_id.clone(), run.run_id.clone())).await {
                        Ok(history) => found.extend(finding(run, replayer.replay(history).await)?),
                        // The list is a moment old: the run was deleted since.
                        Err(Error::NotFound { .. }) => continue,
                        Err(error) => return Err(error),
                    }
                    played += 1;
                }
                progress(played);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// Returns what a check of a run has found. A history that cannot be replayed is a finding, so that other runs are checked all the same.
fn finding(run: Description, replayed: Result<Option<Unplayable>>) -> Result<Option<Unplayable>> {
    match replayed {
        Err(Error::InvalidArgument(why)) => Ok(Some(Unplayable::new(run.workflow_id, run.run_id, run.workflow, why))),
        replayed => replayed,
    }
}

/// Plays histories, one after the other.
struct Replayer {
    player: Arc<QueuePlayer>,
    host: Arc<ClusterHost>,
    recorder: Arc<TranscriptRecorder>,
}

impl Replayer {
    fn new(registry: Registry, redact: bool) -> Result<Self> {
        let system = |error: std::io::Error| Error::Refused(format!("a thread cannot be started: {error}"));
        let host = ClusterHost::new(1, [(QUEUE, 1)]).map_err(system)?;
        let recorder = Arc::new(TranscriptRecorder::new());
        let options = PlayerOptions {
            namespace: String::new(),
            registry: registry.clone(),
            pins: BTreeMap::new(),
            start_to_close: DEFAULT_START_TO_CLOSE,
            double_play: false,
            redact,
            recorder: Some(recorder.clone()),
        };
        let values = QueueValues::default();
        let worker = Arc::new(Worker::new(QUEUE, values, registry.activities()));
        let player = Arc::new(QueuePlayer::new(Arc::new(options), worker, host.clone()));
        Ok(Self { player, host, recorder })
    }

    /// Replays a history. Returns a report if the code cannot play it.
    async fn replay(&self, history: History) -> Result<Option<Unplayable>> {
        let begun = checked(&history)
            .map_err(|problem| {
                Error::InvalidArgument(format!(
                    "this history cannot be replayed: {problem}. Export the whole history, by `temporal workflow show --output json`"
                ))
            })?;
        if !history.events.iter().any(|event| event.event_type() == EventType::WorkflowTaskStarted) {
            // Nothing was decided yet. Core would wait for more events.
            return Ok(None);
        }
        let workflow_id = begun.workflow_id.clone();
        let run_id = begun.original_execution_run_id.clone().into();
        let workflow = begun.workflow_type.clone().unwrap_or_default().name.into();
        let report = |reason| Unplayable::new(workflow_id.clone().into(), run_id, workflow, reason);
        let feed = futures::stream::iter([HistoryForReplay::new(history, workflow_id.clone())]);
        let core = init_replay_worker(ReplayWorkerInput::new(config()?, feed))
            .map_err(|error| Error::Refused(format!("a replay cannot be started: {error}")))?;
        let outcome = self.play(&core).await;
        if outcome.is_err() {
            core.initiate_shutdown();
        }
        let ended = tokio::time::timeout(LAST_CALLS, core.finalize_shutdown());
        if ended.await.is_err() {
            tracing::warn!(target: "dacapo", %workflow_id, "the replay of a history does not end");
        }
        Ok(outcome?.map(report))
    }

    /// Plays all activations of a history. Returns why they cannot be played.
    async fn play(&self, core: &Core) -> Result<Option<String>> {
        let (mut refused, mut outcome) = (None, None);
        loop {
            let polled = tokio::time::timeout(PATIENCE, core.poll_workflow_activation()).await;
            let activation = match polled {
                Ok(Ok(activation)) => activation,
                Ok(Err(PollError::ShutDown)) => return Ok(outcome.flatten()),
                Ok(Err(error)) => return Err(Error::Refused(format!("the replay was broken off: {error}"))),
                Err(_) => {
                    return Err(Error::InvalidArgument(format!(
                        "this history cannot be replayed: Temporal's core has not gone on for {PATIENCE:?}. Events are missing, or were changed"
                    )));
                }
            };
            if let Some(evicted) = eviction(&activation) {
                // The first eviction says how the history was played.
                outcome.get_or_insert(outcome_of(evicted, refused.take()));
            }
            let completion = self.complete(activation).await?;
            if let Some(Status::Failed(failed)) = &completion.status {
                refused = failed.failure.as_ref().map(|failure| failure.message.clone());
            }
            core.complete_workflow_activation(completion)
                .await
                .map_err(|error| Error::Refused(format!("the replay was broken off: {error}")))?;
        }
    }

    /// Plays an activation on a turn thread.
    async fn complete(&self, activation: WorkflowActivation) -> Result<WorkflowActivationCompletion> {
        let (tell, told) = oneshot::channel();
        let reply = Reply::new(&activation.run_id, move |completion| {
            let _ = tell.send(completion);
        });
        let player = self.player.clone();
        self.host.pool.submit(Some(&QUEUE), move || player.play(activation, &reply, &|_| {}));
        told.await.map_err(|_| Error::ShutDown)
    }
}

impl Drop for Replayer {
    fn drop(&mut self) {
        self.host.pool.close();
    }
}

/// Checks all that Temporal's core takes for granted in a history. Returns the start of the run.
///
/// # Errors
/// The event in which something is missing.
fn checked(history: &History) -> Result<&WorkflowExecutionStartedEventAttributes, String> {
    let first = history.events.first().and_then(|event| event.attributes.as_ref());
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(begun)) = first else {
        return Err("its first event is not the start of a run".to_owned());
    };
    let fields = [
        ("workflowType", begun.workflow_type.as_ref().is_some_and(|workflow| !workflow.name.is_empty())),
        ("taskQueue", begun.task_queue.is_some()),
        ("originalExecutionRunId", !begun.original_execution_run_id.is_empty()),
    ];
    if let Some((missing, _)) = fields.iter().find(|(_, is_there)| !is_there) {
        return Err(format!("event 1 has no {missing}"));
    }
    for (at, event) in history.events.iter().enumerate() {
        let next = history.events.get(at + 1);
        check_event(at, event, next).map_err(|problem| format!("event {}{problem}", at + 1))?;
    }
    Ok(begun)
}

fn check_event(at: usize, event: &HistoryEvent, next: Option<&HistoryEvent>) -> Result<(), String> {
    use EventType::{
        WorkflowExecutionTerminated, WorkflowExecutionTimedOut, WorkflowTaskCompleted, WorkflowTaskFailed,
        WorkflowTaskStarted, WorkflowTaskTimedOut,
    };
    if usize::try_from(event.event_id) != Ok(at + 1) {
        return Err(format!(" is numbered {}: events are missing or out of order", event.event_id));
    }
    let Some(attributes) = &event.attributes else { return Err(" has no attributes".to_owned()) };
    let is_type_of_first = event.event_type() == EventType::WorkflowExecutionStarted;
    if is_type_of_first != (at == 0) {
        return Err(format!(" has the type {:?}", event.event_type()));
    }
    if let Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(update) = attributes
        && update.accepted_request.as_ref().is_none_or(|request| request.input.is_none() || request.meta.is_none())
    {
        return Err(" accepts an update without its request".to_owned());
    }
    let ends = [
        WorkflowTaskCompleted,
        WorkflowTaskFailed,
        WorkflowTaskTimedOut,
        WorkflowExecutionTerminated,
        WorkflowExecutionTimedOut,
    ];
    match next {
        Some(next) if event.event_type() == WorkflowTaskStarted && !ends.contains(&next.event_type()) => {
            Err(format!(" begins a workflow task, and the next event is {:?} and not its end", next.event_type()))
        }
        _ => Ok(()),
    }
}

/// Why a run left the replay. None if its history was played to the end.
fn outcome_of(evicted: &RemoveFromCache, refused: Option<String>) -> Option<String> {
    match evicted.reason() {
        EvictionReason::LangRequested => None,
        EvictionReason::LangFail => Some(refused.unwrap_or_else(|| evicted.message.clone())),
        EvictionReason::Nondeterminism => Some(format!(
            "{}\nThe code decides something else than the server recorded. Guard the new path with `ctx.patched`, or go on with the \
             code that recorded it.",
            evicted.message
        )),
        _ => Some(evicted.message.clone()),
    }
}

fn config() -> Result<WorkerConfig> {
    WorkerConfig::builder()
        .namespace("replay")
        .task_queue(QUEUE.to_string())
        .task_types(WorkerTaskTypes::workflow_only())
        .versioning_strategy(WorkerVersioningStrategy::None { build_id: "replay".to_owned() })
        .build()
        .map_err(|error| Error::Refused(format!("a replay cannot be set up: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A run that waits after its first task.
    fn events() -> Vec<Value> {
        let started = json!({
            "workflowType": { "name": "order" }, "taskQueue": { "name": "default" }, "originalExecutionRunId": "run",
            "workflowId": "order-1", "workflowTaskTimeout": "10s"
        });
        let event = |id: u32, kind: &str, attributes: &str, value: Value| json!({ "eventId": id.to_string(), "eventTime": "2026-01-01T00:00:00Z", "eventType": kind, attributes: value });
        vec![
            event(1, "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED", "workflowExecutionStartedEventAttributes", started),
            event(2, "EVENT_TYPE_WORKFLOW_TASK_SCHEDULED", "workflowTaskScheduledEventAttributes", json!({})),
            event(
                3,
                "EVENT_TYPE_WORKFLOW_TASK_STARTED",
                "workflowTaskStartedEventAttributes",
                json!({ "scheduledEventId": "2" }),
            ),
            event(
                4,
                "EVENT_TYPE_WORKFLOW_TASK_COMPLETED",
                "workflowTaskCompletedEventAttributes",
                json!({ "scheduledEventId": "2", "startedEventId": "3" }),
            ),
        ]
    }

    fn replayed(change: impl FnOnce(&mut Vec<Value>)) -> Result<()> {
        let mut events = events();
        change(&mut events);
        replay_json(&Registry::default(), &json!({ "events": events }).to_string())
    }

    #[test]
    fn history_of_which_something_is_missing_is_refused_with_the_event() {
        let problem = |change: fn(&mut Vec<Value>)| replayed(change).unwrap_err().to_string();
        for field in ["workflowType", "taskQueue", "originalExecutionRunId"] {
            let refused = replayed(|events| {
                events[0]["workflowExecutionStartedEventAttributes"].as_object_mut().unwrap().remove(field);
            });
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(&format!("event 1 has no {field}")), "{refused}");
        }
        let missing = problem(|events| drop(events.remove(1)));
        assert!(missing.contains("event 2 is numbered 3"), "{missing}");
        let bare =
            problem(|events| drop(events[1].as_object_mut().unwrap().remove("workflowTaskScheduledEventAttributes")));
        assert!(bare.contains("event 2 has no attributes"), "{bare}");
        let unended = problem(|events| {
            events[3] =
                json!({ "eventId": "4", "eventType": "EVENT_TYPE_TIMER_FIRED", "timerFiredEventAttributes": {} })
        });
        assert!(unended.contains("event 3 begins a workflow task, and the next event is TimerFired"), "{unended}");
        let update = problem(|events| {
            events.push(json!({
                "eventId": "5", "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
                "workflowExecutionUpdateAcceptedEventAttributes": { "protocolInstanceId": "7" }
            }))
        });
        assert!(update.contains("event 5 accepts an update without its request"), "{update}");
        let no_start = problem(|events| drop(events.drain(..1)));
        assert!(no_start.contains("its first event is not the start of a run"), "{no_start}");
        let no_task = problem(|events| events.truncate(2));
        assert!(no_task.contains("no workflow task that could be replayed"), "{no_task}");
    }

    #[test]
    fn open_run_whose_history_cannot_be_replayed_is_a_finding_and_not_the_end_of_the_check() {
        let run = || Description::new("order-1".into(), "run".into());
        let broken = finding(run(), Err(Error::InvalidArgument("event 2 is missing".to_owned()))).unwrap().unwrap();
        assert_eq!((broken.workflow_id.as_str(), broken.reason.as_str()), ("order-1", "event 2 is missing"));
        assert_eq!(finding(run(), Ok(None)).unwrap(), None);
        assert!(finding(run(), Err(Error::ShutDown)).is_err());
    }

    #[test]
    fn history_of_a_workflow_that_is_not_registered_cannot_be_played() {
        let stuck = replayed(|_| {}).unwrap_err();
        assert!(matches!(&stuck, Error::Stuck(why) if why.contains("no workflow \"order\" is registered")), "{stuck}");
    }
}
