//! Replaying histories without a server: whether the code at hand decides what was recorded. Temporal's core compares commands with
//! the history in its own way: their order, and the names and ids of activities and children.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use dacapo_client::{Error, Progress, Result, RunRef, Unplayable};
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
use crate::proto::history::{History, WorkflowExecutionStartedEventAttributes, history_event::Attributes};

/// The queue of a replay: no server knows of it.
const QUEUE: Name = Name::from_static("replay");
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
    Error::InvalidArgument("this history has no workflow task that could be replayed".to_owned())
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
                    let history = client.fetch(&RunRef::exact(run.workflow_id.clone(), run.run_id.clone())).await?;
                    found.extend(replayer.replay(history).await?);
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
        let Some(begun) = begin_of(&history) else {
            return Err(Error::InvalidArgument(
                "this history cannot be replayed: its first event is not the start of a run".to_owned(),
            ));
        };
        let workflow_id = begun.workflow_id.clone();
        let mut report = Unplayable {
            workflow_id: workflow_id.clone().into(),
            run_id: begun.original_execution_run_id.clone().into(),
            workflow: begun.workflow_type.clone().unwrap_or_default().name.into(),
            reason: String::new(),
        };
        let feed = futures::stream::iter([HistoryForReplay::new(history, workflow_id)]);
        let core = init_replay_worker(ReplayWorkerInput::new(config()?, feed))
            .map_err(|error| Error::Refused(format!("a replay cannot be started: {error}")))?;
        let outcome = self.play(&core).await?;
        core.finalize_shutdown().await;
        Ok(outcome.map(|reason| {
            report.reason = reason;
            report
        }))
    }

    /// Plays all activations of a history. Returns why they cannot be played.
    async fn play(&self, core: &Core) -> Result<Option<String>> {
        let (mut refused, mut outcome) = (None, None);
        loop {
            let activation = match core.poll_workflow_activation().await {
                Ok(activation) => activation,
                Err(PollError::ShutDown) => return Ok(outcome.flatten()),
                Err(error) => return Err(Error::Refused(format!("the replay was broken off: {error}"))),
            };
            if let Some(evicted) = eviction(&activation) {
                // The first eviction says how the history was played.
                outcome.get_or_insert(judged(evicted, refused.take()));
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

fn begin_of(history: &History) -> Option<&WorkflowExecutionStartedEventAttributes> {
    match history.events.first()?.attributes.as_ref()? {
        Attributes::WorkflowExecutionStartedEventAttributes(started) => Some(started),
        _ => None,
    }
}

/// Why a run left the replay. None if its history was played to the end.
fn judged(evicted: &RemoveFromCache, refused: Option<String>) -> Option<String> {
    match evicted.reason() {
        EvictionReason::LangRequested => None,
        EvictionReason::LangFail => Some(refused.unwrap_or_else(|| evicted.message.clone())),
        _ => Some(format!(
            "{}\nThe code decides something else than the server recorded. Guard the new path with `ctx.patched`, or go on with the \
             code that recorded it.",
            evicted.message
        )),
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
