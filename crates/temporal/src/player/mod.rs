//! Playing the activations of a Temporal worker.
//!
//! ```text
//!   activation ──▶ jobs.rs (to our jobs) ──▶ Play::activate ──▶ cached_run.rs, commands.rs (to their commands) ──▶ reply.rs
//!                     │ queries, eviction                          │ side effects: closures.rs, side_effects.rs
//! ```
//!
//! The driver of turns is the worker's, with its deadlock watch, spans and meters. The server has matched nothing yet when a turn is
//! played again: Temporal's core compares commands with the history, in its own way, after this one has answered.

pub(crate) mod cached_run;
pub(crate) mod closures;
mod commands;
mod jobs;
pub(crate) mod promises;
mod queries;
pub(crate) mod recorder;
mod refusal;
pub(crate) mod reply;
pub(crate) mod side_effects;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dacapo_client::StuckCause;
use dacapo_core::{
    Activation, ActivationError, Completion, History, Job, Name, Pins, Query, Reporter, Run, RunOptions, Turn,
    TurnDone, Update, Violation, ViolationKind,
};
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{HandOver, Registry, RunName, RunToPlay, StuckPlay, TurnHost, Worker, replay_silencer};

use crate::convert::time_from_proto;
use crate::flags;
use crate::proto::activation::workflow_activation_job::Variant;
use crate::proto::activation::{
    InitializeWorkflow, RemoveFromCache, WorkflowActivation, remove_from_cache::EvictionReason,
};
use crate::proto::commands::WorkflowCommand;
use crate::reserved::RESOLVE_PROMISE;
use cached_run::{BridgeState, CachedRun, Outbox, Target, is_own_timer};
use closures::Closures;
use jobs::Work;
use recorder::TranscriptRecorder;
use refusal::Refusal;
pub(crate) use refusal::{cause_of, is_cut_off as is_task_cut_off};
use reply::Reply;

/// The facts that a player needs.
pub(crate) struct PlayerOptions {
    pub(crate) namespace: String,
    pub(crate) registry: Registry,
    /// The settings of new runs, by workflow.
    pub(crate) pins: BTreeMap<Name, Pins>,
    /// The start-to-close timeout of activities that have none.
    pub(crate) start_to_close: Duration,
    pub(crate) double_play: bool,
    pub(crate) redact: bool,
    /// Where turns are recorded; only replays have one.
    pub(crate) recorder: Option<Arc<TranscriptRecorder>>,
}

/// Plays the runs of one queue.
pub(crate) struct QueuePlayer {
    options: Arc<PlayerOptions>,
    worker: Arc<Worker>,
    host: Arc<dyn TurnHost>,
    runs: Mutex<PlayerState>,
    pub(crate) closures: Closures,
}

#[derive(Default)]
struct PlayerState {
    /// Runs between two activations. One that is being played is not here.
    at_rest: BTreeMap<Name, CachedRun>,
    /// Plays that did not return.
    stuck: BTreeMap<Name, StuckPlay>,
}

impl QueuePlayer {
    pub(crate) fn new(options: Arc<PlayerOptions>, worker: Arc<Worker>, host: Arc<dyn TurnHost>) -> Self {
        let runs = Mutex::new(ranks::TEMPORAL_RUNS, PlayerState::default());
        Self { options, worker, host, runs, closures: Closures::new() }
    }

    /// The queue whose runs it plays.
    pub(crate) fn queue(&self) -> &Name {
        self.worker.queue()
    }

    /// How many runs are in memory.
    pub(crate) fn runs_in_memory(&self) -> usize {
        self.runs.lock().at_rest.len()
    }

    /// The run ids of all runs in memory that can leave it: without local work.
    pub(crate) fn idle_runs(&self) -> Vec<Name> {
        self.run_ids(|cached| !cached.state.has_local_work())
    }

    /// The run ids of all runs in memory with a local activity or a side effect that is open.
    pub(crate) fn runs_with_local_work(&self) -> Vec<Name> {
        self.run_ids(|cached| cached.state.has_local_work())
    }

    fn run_ids(&self, of: impl Fn(&CachedRun) -> bool) -> Vec<Name> {
        let runs = self.runs.lock();
        runs.at_rest.iter().filter(|(_, cached)| of(cached)).map(|(run_id, _)| run_id.clone()).collect()
    }

    /// Plays an activation on this thread, and replies to it. `evict` asks the server's core to take a run out of memory.
    pub(crate) fn play(self: &Arc<Self>, mut activation: WorkflowActivation, reply: &Reply, evict: &dyn Fn(&str)) {
        let run_id = Name::from(activation.run_id.clone());
        match jobs::work(std::mem::take(&mut activation.jobs)) {
            Err(why) => reply.failed(&Refusal::new(StuckCause::Internal, why)),
            Ok(Work::Evict(reason)) => {
                self.evict(&run_id, &reason);
                reply.done(Vec::new(), Vec::new());
            }
            Ok(Work::Queries(queries)) => self.answer(&run_id, queries, reply),
            Ok(Work::Turn(jobs)) => {
                if let Err(refusal) = self.turn(&run_id, &activation, jobs, reply, evict) {
                    self.closures.remove_run(&run_id);
                    reply.failed(&refusal);
                }
            }
        }
    }

    fn evict(&self, run_id: &Name, reason: &RemoveFromCache) {
        let gone = self.runs.lock().at_rest.remove(run_id);
        self.closures.remove_run(run_id);
        if reason.reason() == EvictionReason::Nondeterminism {
            let workflow_id = gone.as_ref().map(|gone| gone.name.workflow_id.clone()).unwrap_or_default();
            tracing::error!(
                target: "dacapo", %workflow_id, %run_id, reason = reason.message,
                "the run is stuck: its code decides something else than the server recorded. It stays open and goes on under the code \
                 that recorded it, or once the new path is guarded by `ctx.patched`"
            );
        }
    }

    fn turn(
        self: &Arc<Self>,
        run_id: &Name,
        activation: &WorkflowActivation,
        mut variants: Vec<Variant>,
        reply: &Reply,
        evict: &dyn Fn(&str),
    ) -> Result<(), Refusal> {
        let at_rest = self.runs.lock().at_rest.remove(run_id);
        let init = take_init(&mut variants);
        let mut jobs = Vec::new();
        let mut cached = match (at_rest, init) {
            (Some(cached), None) => cached,
            // A start of a run that is here already begins it anew.
            (before, Some(init)) => {
                drop(before);
                self.begin(run_id, activation, *init, &mut jobs)?
            }
            (None, None) => {
                let why = format!("run {run_id} is not in memory, and this activation does not begin it");
                return Err(Refusal::new(StuckCause::Internal, why));
            }
        };
        // A replay has what was recorded, also where the workflow did not want it.
        if !activation.is_replaying && variants.iter().any(|variant| is_cut_off(&cached.state, variant)) {
            return Err(Refusal::cut_off());
        }
        let mut outbox = Outbox::default();
        let now = activation.timestamp.map(time_from_proto).unwrap_or_default();
        let queue = cached.name.queue.clone();
        let to =
            Target { namespace: &self.options.namespace, queue: &queue, start_to_close: self.options.start_to_close };
        let mut early = self.gather(&mut cached.state, now, variants, &to, &mut jobs, &mut outbox);
        while !jobs.is_empty() {
            let Some(done) = self.play_turn(run_id, &mut cached, activation, now, jobs, reply)? else { return Ok(()) };
            cached.state.turn(now, &done, &to, &mut outbox)?;
            if done.closed {
                cached.state.promises.close_all();
            }
            // A promise that the turn has opened is resolved by another one.
            let opened = std::mem::take(&mut early).into_iter();
            jobs = opened.filter_map(|update| cached.state.resolve_promise(&update, &to, &mut outbox)).collect();
        }
        for update in early {
            let resolved = cached.state.resolve_promise(&update, &to, &mut outbox);
            debug_assert!(resolved.is_none(), "nothing was played, so nothing was opened");
        }
        cached.state.refuse_undecided(&to, &mut outbox);
        let flags = if activation.is_replaying { Vec::new() } else { cached.flags.clone() };
        self.rest(run_id, cached, outbox, flags, reply, evict);
        Ok(())
    }

    /// Gathers the jobs of a turn, in canonical order, without what belongs to the bridge alone. Returns resolutions of promises that
    /// are not open yet.
    fn gather(
        &self,
        state: &mut BridgeState,
        now: dacapo_core::Timestamp,
        variants: Vec<Variant>,
        to: &Target<'_>,
        jobs: &mut Vec<Job>,
        outbox: &mut Outbox,
    ) -> Vec<Update> {
        let left_signals = jobs.iter().skip(1).count();
        let (mut early, mut messages, mut fired, mut not_open) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for variant in variants {
            if let Variant::FireTimer(timer) = &variant
                && is_own_timer(timer.seq)
            {
                fired.push(timer.seq);
                continue;
            }
            if let Variant::DoUpdate(update) = &variant {
                state.updates.insert(update.id.clone().into(), update.protocol_instance_id.clone());
            }
            match jobs::job(variant, |number| state.is_side_effect(number)) {
                Some(Job::Update(update)) if update.name == RESOLVE_PROMISE => match state.promises.may_open(&update) {
                    true => not_open.push(*update),
                    false => messages.extend(state.resolve_promise(&update, to, outbox)),
                },
                Some(job @ (Job::Patch { .. } | Job::Seed { .. })) => early.push(job),
                Some(job) => {
                    state.received(&job);
                    messages.push(job);
                }
                None => {}
            }
        }
        // After the start, and before the signals that the run before it left.
        let at = jobs.len() - left_signals;
        jobs.splice(at..at, early);
        jobs.extend(state.take_side_effects(now, messages, &fired, outbox));
        not_open
    }

    /// Creates the run that an activation begins, and its first jobs.
    fn begin(
        &self,
        run_id: &Name,
        activation: &WorkflowActivation,
        init: InitializeWorkflow,
        jobs: &mut Vec<Job>,
    ) -> Result<CachedRun, Refusal> {
        let stuck = self.runs.lock().stuck.get(run_id).is_some_and(StuckPlay::is_running);
        if stuck {
            let why =
                "a turn of this run did not return, and its code still runs: the run is played again when it has ended";
            return Err(Refusal::new(StuckCause::Deadlock, why));
        }
        let registry = &self.options.registry;
        let Some(workflow) = registry.find_workflow(&init.workflow_type) else {
            let known: Vec<&str> = registry.workflows().map(Name::as_str).collect();
            let why = format!(
                "no workflow {:?} is registered here; registered are: {}. Serve it in this program, or terminate the run",
                init.workflow_type,
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            );
            return Err(Refusal::new(StuckCause::MissingWorkflow, why));
        };
        let pins = flags::settings(
            activation.is_replaying,
            &activation.available_internal_flags,
            jobs::pinned(&init).as_ref().or_else(|| self.options.pins.get(workflow.name())),
        );
        let name = Arc::new(RunName {
            workflow: workflow.name().clone(),
            workflow_id: init.workflow_id.clone().into(),
            run_id: run_id.clone(),
            queue: self.worker.queue().clone(),
        });
        let state = BridgeState::of(&init);
        let (start, left) =
            jobs::start(init, run_id, self.worker.queue()).map_err(|why| Refusal::new(StuckCause::OtherBuild, why))?;
        jobs.push(Job::Start(Box::new(start)));
        jobs.extend(left.into_iter().map(|signal| Job::Signal(Box::new(signal))));
        let flags = flags::flags_of(&pins);
        if let Some(recorder) = &self.options.recorder {
            recorder.begin(workflow.name(), &pins);
        }
        let options = RunOptions {
            pins,
            double_play: self.options.double_play,
            redact: self.options.redact,
            reporter: Some(reporter(name.clone())),
            own_policy: None,
            silencer: replay_silencer(),
        };
        let run = Run::new(workflow.clone(), options).map_err(|error| Refusal::of(&error))?;
        if activation.is_replaying {
            self.worker.meters().replays.increment(1);
        }
        Ok(CachedRun { name, run, flags, state })
    }

    /// Plays a turn. None if the deadlock watch has taken the run and replied.
    fn play_turn(
        self: &Arc<Self>,
        run_id: &Name,
        cached: &mut CachedRun,
        activation: &WorkflowActivation,
        now: dacapo_core::Timestamp,
        jobs: Vec<Job>,
        reply: &Reply,
    ) -> Result<Option<TurnDone>, Refusal> {
        let history = History {
            length: activation.history_length.into(),
            bytes: activation.history_size_bytes,
            continue_as_new_suggested: activation.continue_as_new_suggested,
        };
        let turn = Turn { now, jobs, history, replaying: activation.is_replaying, recorded: None };
        let name = cached.name.clone();
        let hand_over = self.hand_over(run_id, reply);
        let to_play = RunToPlay { name: &name, run: &mut cached.run, note: (), hand_over };
        let recorder = self.options.recorder.as_deref();
        let recorded = recorder.map(|recorder| (recorder, turn.clone()));
        let completion = self.worker.play(&self.host, to_play).activate(Activation::Turn(turn));
        match completion {
            None => Ok(None),
            Some(Completion::Turn(done)) => {
                if let Some((recorder, turn)) = recorded {
                    recorder.record(&turn, &done);
                }
                if !activation.is_replaying {
                    log_warnings(&name, &done);
                }
                Ok(Some(done))
            }
            Some(Completion::Failed(error)) => Err(refusal(&name, &error)),
            Some(other) => unreachable!("a turn was answered with {other:?}"),
        }
    }

    /// Makes the callback for a turn that does not return in time: the task fails, and its thread is left to end by itself.
    fn hand_over(self: &Arc<Self>, run_id: &Name, reply: &Reply) -> HandOver {
        let (player, run_id, reply) = (Arc::downgrade(self), run_id.clone(), reply.clone());
        Box::new(move |deadlock, stuck| {
            if let Some(player) = player.upgrade() {
                let mut runs = player.runs.lock();
                runs.stuck.retain(|_, stuck| stuck.is_running());
                runs.stuck.insert(run_id, stuck);
            }
            reply.failed(&Refusal::new(StuckCause::Deadlock, deadlock.reason));
        })
    }

    /// Puts a run that was played to rest, and replies.
    fn rest(
        &self,
        run_id: &Name,
        mut cached: CachedRun,
        outbox: Outbox,
        flags: Vec<u32>,
        reply: &Reply,
        evict: &dyn Fn(&str),
    ) {
        let Outbox { commands, attempts, resolved } = outbox;
        for attempt in attempts {
            let closure = cached.run.take_closure(attempt.seq);
            self.closures.keep(run_id, attempt, closure);
        }
        resolved.into_iter().for_each(|seq| self.closures.resolved(run_id, seq));
        let leaves =
            !commands.iter().any(is_answered_at_once) && cached.state.is_to_leave(|seq| self.closures.has(run_id, seq));
        self.runs.lock().at_rest.insert(run_id.clone(), cached);
        if leaves {
            // Before the reply: then core evicts the run as soon as it has reported this task.
            evict(run_id);
        }
        reply.done(commands, flags);
    }

    fn answer(self: &Arc<Self>, run_id: &Name, queries: Vec<Query>, reply: &Reply) {
        let cached = self.runs.lock().at_rest.remove(run_id);
        let Some(mut cached) = cached else {
            let why = format!("run {run_id} is not in memory, so it cannot be queried");
            return reply.failed(&Refusal::new(StuckCause::Internal, why));
        };
        let (reserved, own): (Vec<Query>, Vec<Query>) = queries.into_iter().partition(queries::is_reserved);
        let mut commands: Vec<_> = reserved.iter().map(|query| queries::answer(&cached, query)).collect();
        if !own.is_empty() {
            let name = cached.name.clone();
            let hand_over = self.hand_over(run_id, reply);
            let to_play = RunToPlay { name: &name, run: &mut cached.run, note: (), hand_over };
            match self.worker.play(&self.host, to_play).activate(Activation::Query(own)) {
                None => return,
                Some(Completion::Query(answers)) => commands.extend(answers.into_iter().map(queries::to_proto)),
                Some(Completion::Failed(error)) => {
                    return reply.failed(&refusal(&name, &error));
                }
                Some(other) => unreachable!("queries were answered with {other:?}"),
            }
        }
        self.runs.lock().at_rest.insert(run_id.clone(), cached);
        reply.done(commands, Vec::new());
    }
}

/// Whether core answers a command by another activation of the same workflow task. A run that leaves memory before loses the task.
fn is_answered_at_once(command: &WorkflowCommand) -> bool {
    use crate::proto::commands::workflow_command::Variant as Sent;
    matches!(
        command.variant,
        Some(
            Sent::RequestCancelActivity(_)
                | Sent::RequestCancelLocalActivity(_)
                | Sent::CancelChildWorkflowExecution(_)
                | Sent::CancelSignalWorkflow(_)
                | Sent::RequestCancelNexusOperation(_)
        )
    )
}

/// The reason why an activation takes its run out of memory, if it does.
pub(crate) fn eviction(activation: &WorkflowActivation) -> Option<&RemoveFromCache> {
    activation.jobs.iter().find_map(|job| match &job.variant {
        Some(Variant::RemoveFromCache(reason)) => Some(reason),
        _ => None,
    })
}

fn is_cut_off(state: &BridgeState, variant: &Variant) -> bool {
    matches!(variant, Variant::ResolveActivity(result) if state.is_cut_off(result))
}

fn take_init(variants: &mut Vec<Variant>) -> Option<Box<InitializeWorkflow>> {
    let at = variants.iter().position(|variant| matches!(variant, Variant::InitializeWorkflow(_)))?;
    match variants.remove(at) {
        Variant::InitializeWorkflow(init) => Some(Box::new(init)),
        _ => None,
    }
}

fn refusal(run: &RunName, error: &ActivationError) -> Refusal {
    let (workflow_id, run_id, refusal) = (&run.workflow_id, &run.run_id, Refusal::of(error));
    tracing::error!(
        target: "dacapo", %workflow_id, %run_id, reason = refusal.message(), "the run is stuck: it cannot be played"
    );
    refusal
}

/// Reports wakes from outside a run the moment they happen. The next activation fails, and the run is played again.
fn reporter(run: Arc<RunName>) -> Reporter {
    Arc::new(move |violation: &Violation| {
        if violation.kind == ViolationKind::ForeignWake {
            let (workflow_id, run_id) = (&run.workflow_id, &run.run_id);
            tracing::error!(target: "dacapo", %workflow_id, %run_id, %violation, "the run was woken from outside");
        }
    })
}

fn log_warnings(run: &RunName, done: &TurnDone) {
    let (workflow_id, run_id) = (&run.workflow_id, &run.run_id);
    for warning in &done.warnings {
        tracing::warn!(target: "dacapo", %workflow_id, %run_id, "{warning}");
    }
}
