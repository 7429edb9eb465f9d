//! Serving the queues of a program on a cluster.
//!
//! ```text
//!   for each queue:  core ── activations ──▶ turn threads: QueuePlayer::play ──▶ completions ──▶ core
//!                     └──── activity tasks ──▶ Activities ──▶ results ─────────────────────▶ core
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dacapo_client::{Error, PendingActivity, Progress, Result, Unplayable};
use dacapo_core::{Name, Pins, Transcript};
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{AppValues, Attempts, Health, QueueValues, Registry, StoppingCode, TurnHost, Worker};
use futures::future::join_all;
use temporalio_common::worker::WorkerTaskTypes;
use temporalio_sdk_core::{
    CoreRuntime, PollError, RuntimeOptions, WorkerConfig, WorkerVersioningStrategy, init_worker,
};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

use crate::activities::Activities;
use crate::connect::Cluster;
use crate::core_worker::CoreWorker;
use crate::host::ClusterHost;
use crate::player::reply::Reply;
use crate::player::{PlayerOptions, QueuePlayer, eviction};
use crate::replay::{OpenRuns, transcript_of};

/// How long a shutdown waits for the server after the last attempt has ended or was left behind.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// The workflows and activities that a program serves, and its settings.
pub struct ServeOptions {
    /// The workflows and activities.
    pub registry: Registry,
    /// The settings of new runs, by workflow.
    pub pins: BTreeMap<Name, Pins>,
    /// The queues and their settings.
    pub queues: BTreeMap<Name, QueueValues>,
    /// The settings of the program.
    pub app: AppValues,
    /// The name of this build.
    pub build: Name,
    /// Whether every turn is played twice and compared.
    pub double_play: bool,
    /// Whether reports leave payloads out.
    pub redact: bool,
    /// The number of threads that play turns.
    pub turn_threads: usize,
}

/// The report of a shutdown.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The time that it took.
    pub took: Duration,
    /// The number of attempts that were asked to stop because the grace period was over.
    pub asked_to_stop: usize,
    /// Activities whose attempts did not end. The server tries them again.
    pub cut_off: Vec<PendingActivity>,
    /// Code that was asked to stop before the shutdown and still runs.
    pub left: Vec<StoppingCode>,
    /// The error of the cluster for which the program had to end, if there is one.
    pub error: Option<Error>,
}

/// A program that serves queues on a cluster.
pub struct ClusterWorkers {
    cluster: Cluster,
    options: ServeOptions,
    queues: Vec<ServedQueue>,
    host: Arc<ClusterHost>,
    runtime: Handle,
    loops: Mutex<Option<JoinSet<()>>>,
    zombie_watch: AbortHandle,
    end_watch: AbortHandle,
}

struct ServedQueue {
    worker: Arc<Worker>,
    core: Arc<CoreWorker>,
    player: Arc<QueuePlayer>,
    activities: Arc<Activities>,
}

impl ClusterWorkers {
    /// Begins to serve, on the current tokio runtime.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the cluster does not know the namespace or does not answer; [`Error::Refused`] if a thread or a
    /// worker cannot be started.
    pub async fn start(cluster: &Cluster, options: ServeOptions) -> Result<Self> {
        let runtime = Handle::current();
        let lanes = options.queues.iter().map(|(queue, values)| (queue.clone(), values.max_concurrent_workflows));
        let system = |error: std::io::Error| Error::Refused(format!("a thread cannot be started: {error}"));
        let host = ClusterHost::new(options.turn_threads, lanes).map_err(system)?;
        let player_options = Arc::new(PlayerOptions {
            namespace: cluster.namespace.clone(),
            registry: options.registry.clone(),
            pins: options.pins.clone(),
            start_to_close: cluster.start_to_close,
            double_play: options.double_play,
            redact: options.redact,
            recorder: None,
        });
        let mut queues: Vec<ServedQueue> = Vec::new();
        for (queue, values) in &options.queues {
            let activities = options.registry.activities();
            let worker = Arc::new(Worker::new(queue.clone(), values.clone(), activities));
            let core = match core_worker(cluster, queue, values, &options, &runtime).await {
                Ok(core) => Arc::new(core),
                Err(error) => {
                    end_unserved(&queues).await;
                    host.pool.close();
                    return Err(error);
                }
            };
            let turn_host: Arc<dyn TurnHost> = host.clone();
            let player = Arc::new(QueuePlayer::new(player_options.clone(), worker.clone(), turn_host));
            let activities = Arc::new(Activities {
                registry: options.registry.clone(),
                worker: worker.clone(),
                host: host.clone(),
                core: core.clone(),
                player: player.clone(),
                attempts: Attempts::new(runtime.clone()),
                payload_limit: options.app.payload_limit,
                running: Activities::running(),
                stops: AtomicBool::new(false),
            });
            queues.push(ServedQueue { worker, core, player, activities });
        }
        let mut loops = JoinSet::new();
        for queue in &queues {
            loops.spawn(play_workflows(queue.player.clone(), queue.activities.clone()));
            loops.spawn(run_activities(queue.core.clone(), queue.activities.clone()));
        }
        let (watching, workers) = (host.clone(), workers(&queues));
        let zombie_watch = runtime.spawn(async move { watching.watch_zombies(&workers).await }).abort_handle();
        let (watching, cores) = (host.clone(), queues.iter().map(|queue| queue.core.clone()).collect());
        let end_watch = runtime.spawn(async move { stop_polling(&watching, cores).await }).abort_handle();
        let loops = Mutex::new(ranks::TEMPORAL_SHUTDOWN, Some(loops));
        Ok(Self { cluster: cluster.clone(), options, queues, host, runtime, loops, zombie_watch, end_watch })
    }

    /// Returns the health of each queue.
    pub fn health(&self) -> Vec<(Name, Health)> {
        let is_shut_down = self.loops.lock().is_none();
        let ended = self.host.end_reason().or_else(|| is_shut_down.then(|| "it shuts down".to_owned()));
        let health = |queue: &ServedQueue| Health { ended: ended.clone(), ..queue.worker.health() };
        self.queues.iter().map(|queue| (queue.worker.queue().clone(), health(queue))).collect()
    }

    /// Returns how many threads play turns, and how many of them were abandoned.
    pub fn turn_threads(&self) -> (usize, usize) {
        self.host.pool.threads()
    }

    /// Returns how many runs are in memory.
    pub fn runs_in_memory(&self) -> usize {
        self.queues.iter().map(|queue| queue.player.runs_in_memory()).sum()
    }

    /// Takes runs at rest out of memory, but not those with a local activity or a side effect: their workflow task would be lost.
    pub fn evict_idle(&self) {
        for queue in &self.queues {
            queue.player.idle_runs().iter().for_each(|run_id| queue.core.evict(run_id));
        }
    }

    /// Plays the open runs of the served queues again, without changing anything, and returns those that cannot be played.
    ///
    /// # Errors
    /// The cluster refuses the calls or does not answer.
    pub async fn check_open_runs(&self, progress: Progress) -> Result<Vec<Unplayable>> {
        let ServeOptions { registry, redact, .. } = &self.options;
        let queues = self.queues.iter().map(|queue| queue.worker.queue().clone()).collect();
        let runs = OpenRuns { cluster: self.cluster.clone(), registry: registry.clone(), queues, redact: *redact };
        runs.unplayable(progress).await
    }

    /// Replays a history in the JSON of Temporal's tools with the workflows that are served, and returns our own transcript of the run.
    ///
    /// # Errors
    /// The text is no history, or the code cannot play it.
    pub fn transcript(&self, json: &str) -> Result<Transcript> {
        transcript_of(&self.options.registry, json)
    }

    /// Logs what a shutdown will wait for.
    pub fn log_what_ends(&self) {
        let attempts: usize = self.queues.iter().map(|queue| queue.activities.count()).sum();
        tracing::info!(target: "dacapo", attempts, "shutting down: attempts that run may end within the grace period");
    }

    /// Waits until the program has to end for a reason of its own, and returns the reason.
    pub async fn ends_by_itself(&self) -> String {
        self.host.ends().await
    }

    /// Shuts down: begins nothing new, lets attempts end for as long as the grace period, asks the rest to stop and waits for that as
    /// long as the force timeout.
    pub async fn shut_down(&self) -> Report {
        let values = |value: fn(&QueueValues) -> Duration| {
            self.queues.iter().map(|queue| value(queue.worker.values())).max().unwrap_or_default()
        };
        let since = self.host.steady_now();
        let (grace, force) =
            (values(|values| values.shutdown_grace_period), values(|values| values.shutdown_force_timeout));
        let (began, mut report) = (Instant::now(), self.end(grace, force).await);
        self.host.wait_for_zombies(&workers(&self.queues), since).await;
        self.stop_watching();
        report.left = self.queues.iter().flat_map(|queue| queue.worker.health().entities).collect();
        report.took = began.elapsed();
        report.error = self.host.error();
        report
    }

    /// Stops at once: attempts that run are left behind, and the server tries them again.
    pub async fn stop(&self) {
        self.end(Duration::ZERO, Duration::ZERO).await;
        self.stop_watching();
    }

    fn stop_watching(&self) {
        self.zombie_watch.abort();
        self.end_watch.abort();
    }

    async fn end(&self, grace: Duration, force: Duration) -> Report {
        let mut report = Report::default();
        let loops = self.loops.lock().take();
        let Some(mut loops) = loops else { return report };
        self.queues.iter().for_each(|queue| queue.core.worker().initiate_shutdown());
        if tokio::time::timeout(grace, drain(&mut loops)).await.is_err() {
            report.asked_to_stop = self.queues.iter().map(|queue| queue.activities.ask_to_stop()).sum();
            if tokio::time::timeout(force, drain(&mut loops)).await.is_err() {
                report.cut_off = self.queues.iter().flat_map(|queue| queue.activities.cut_off()).collect();
                let _ = tokio::time::timeout(LAST_CALLS, drain(&mut loops)).await;
            }
        }
        let ended = join_all(self.queues.iter().map(|queue| queue.core.worker().shutdown()));
        let _ = tokio::time::timeout(LAST_CALLS, ended).await;
        self.host.pool.close();
        report
    }
}

impl Drop for ClusterWorkers {
    fn drop(&mut self) {
        let Some(loops) = self.loops.lock().take() else { return };
        // Nothing can be waited for here: the loops end by themselves once core has told the server.
        self.queues.iter().for_each(|queue| {
            let _runtime = self.runtime.enter();
            queue.core.worker().initiate_shutdown();
            queue.activities.cut_off();
        });
        let host = self.host.clone();
        let mut loops = loops;
        self.runtime.spawn(async move {
            let _ = tokio::time::timeout(LAST_CALLS, drain(&mut loops)).await;
            host.pool.close();
        });
        self.stop_watching();
    }
}

/// Ends the workers of queues that nothing has been polled for: the server is told, and others may serve these queues.
async fn end_unserved(queues: &[ServedQueue]) {
    let ended = join_all(queues.iter().map(|queue| queue.core.worker().shutdown()));
    let _ = tokio::time::timeout(LAST_CALLS, ended).await;
}

/// Waits until there is a reason why the program has to end, and takes no more tasks then. Attempts that run may end by themselves.
async fn stop_polling(host: &ClusterHost, cores: Vec<Arc<CoreWorker>>) {
    host.ends().await;
    cores.iter().for_each(|core| core.worker().initiate_shutdown());
}

fn workers(queues: &[ServedQueue]) -> Vec<Arc<Worker>> {
    queues.iter().map(|queue| queue.worker.clone()).collect()
}

async fn drain(loops: &mut JoinSet<()>) {
    while loops.join_next().await.is_some() {}
}

/// Plays activations on turn threads until core has shut down.
async fn play_workflows(player: Arc<QueuePlayer>, activities: Arc<Activities>) {
    let (core, host) = (activities.core.clone(), activities.host.clone());
    let mut is_broken = false;
    loop {
        let activation = match core.worker().poll_workflow_activation().await {
            Ok(activation) => activation,
            // Core shuts down after an error, and is polled until it has.
            Err(error @ PollError::TonicError(_)) if !is_broken => {
                is_broken = true;
                broken_off(&host, "workflow tasks", &error);
                continue;
            }
            Err(_) => return,
        };
        let (outlet, evictor, player, activities) = (core.clone(), core.clone(), player.clone(), activities.clone());
        let reply = Reply::new(&activation.run_id, move |completion| outlet.complete_activation(completion));
        let queue = player.queue().clone();
        host.pool.submit(Some(&queue), move || {
            if eviction(&activation).is_some() {
                activities.run_left(&activation.run_id);
            }
            player.play(activation, &reply, &|run_id| evictor.evict(run_id));
        });
    }
}

/// The cluster refuses to hand out tasks for good: the namespace is gone, or the credentials are not accepted any more.
fn broken_off(host: &ClusterHost, tasks: &str, error: &PollError) {
    let why = format!(
        "the Temporal cluster hands out no {tasks} any more: {error}. This program takes no more work: check the namespace and the \
         credentials, and start it again"
    );
    tracing::error!(target: "dacapo", "{why}");
    host.end(why.clone(), Some(Error::Unavailable(why)));
}

/// Runs attempts until core has shut down.
async fn run_activities(core: Arc<CoreWorker>, activities: Arc<Activities>) {
    let mut is_broken = false;
    loop {
        match core.worker().poll_activity_task().await {
            Ok(task) => activities.take(task),
            Err(error @ PollError::TonicError(_)) if !is_broken => {
                is_broken = true;
                broken_off(&activities.host, "activity tasks", &error);
            }
            Err(_) => return,
        }
    }
}

async fn core_worker(
    cluster: &Cluster,
    queue: &Name,
    values: &QueueValues,
    options: &ServeOptions,
    runtime: &Handle,
) -> Result<CoreWorker> {
    let refused =
        |problem: String| Error::Refused(format!("a worker for queue {queue:?} cannot be started: {problem}"));
    let core_runtime = RuntimeOptions::builder()
        .heartbeat_interval(None)
        .build()
        .map_err(&refused)
        .and_then(|options| CoreRuntime::new_assume_tokio(options).map_err(|error| refused(error.to_string())))?;
    let config = worker_config(cluster, queue, values, options).map_err(&refused)?;
    let worker =
        init_worker(&core_runtime, config, cluster.connection.clone()).map_err(|error| refused(error.to_string()))?;
    worker.validate().await.map_err(|error| {
        Error::Unavailable(format!(
            "namespace {:?} of the Temporal cluster at {} cannot be served: {error}. Create it with `temporal operator namespace \
             create`, or name another one",
            cluster.namespace,
            cluster.address()
        ))
    })?;
    Ok(CoreWorker::new(worker, runtime.clone()))
}

fn worker_config(
    cluster: &Cluster,
    queue: &Name,
    values: &QueueValues,
    options: &ServeOptions,
) -> std::result::Result<WorkerConfig, String> {
    let enable_workflows = options.registry.workflows().next().is_some();
    let task_types = WorkerTaskTypes {
        enable_workflows,
        // Core refuses local activities where no workflow can call them.
        enable_local_activities: enable_workflows,
        enable_remote_activities: options.registry.activities().next().is_some(),
        enable_nexus: false,
    };
    WorkerConfig::builder()
        .namespace(cluster.namespace.clone())
        .task_queue(queue.to_string())
        .task_types(task_types)
        .max_cached_workflows(options.app.cache_size)
        // Core demands two where runs stay in memory.
        .max_outstanding_workflow_tasks(values.max_concurrent_workflows.max(2))
        .max_outstanding_activities(values.max_concurrent_activities)
        .max_outstanding_local_activities(values.max_concurrent_activities)
        .max_heartbeat_throttle_interval(values.max_heartbeat_throttle_interval)
        .default_heartbeat_throttle_interval(values.default_heartbeat_throttle_interval)
        .versioning_strategy(WorkerVersioningStrategy::None { build_id: options.build.to_string() })
        .build()
}
