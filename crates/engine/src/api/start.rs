//! Starting runs. A start and its first turn commit together; if that turn cannot be played, the start commits alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{
    ActivationError, AttributeValue, Headers, IdReuse, Job, Lineage, Name, Payload, Retry, Run, SEMANTICS, Start,
    Terms, Timestamp, Turn, from_stored,
};
use dacapo_store::{
    CrashCount, Doing, IdConflict, NewRun, Notice, Refused, RunNo, RunRow, StartedRun, StoreError, StuckCause,
    TimerRow, TurnOf, TurnWritten, Write, Written,
};
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{Deadlock, HandOver, RunName, StuckPlay};
use tokio::sync::oneshot;

use crate::api::{check_headers, check_size};
use crate::engine::Engine;
use crate::host::{Work, WorkKind};
use crate::lifecycle::shutdown::write_before_shutdown;
use crate::names::check_name;
use crate::nodes::hand_over::drop_run;
use crate::report::stuck_reason::StuckReason;
use crate::run::cached_run::{CachedRun, PlayState, Playable};
use crate::run::info::RunInfo;
use crate::run::message::AnswerSender;
use crate::run::new_run::{new_run, seed_of, start_no};
use crate::run::open_operations::{OpenOperations, kept};
use crate::run::started::StartedAs;
use crate::shared::Shared;
use crate::timer::set_timers;
use crate::turn::commit::{Committing, committed, committed_beside};
use crate::turn::effects::{apply_in_other_runs, begin_started};
use crate::turn::foreign_wake::reporter;
use crate::turn::make::{Made, Making, begin_play, make};
use crate::turn::plan::Plan;
use crate::turn::rest::rest;
use crate::turn::stuck::set_stuck;
use crate::turn::validate::check_retry;
use crate::writes::{submit, submit_turn};

/// A run to be started.
#[derive(Clone, Debug, Default)]
pub struct NewStart {
    /// The workflow's type.
    pub workflow: Name,
    /// The workflow id, which the caller chooses.
    pub workflow_id: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// The queue; the first that the engine serves by default.
    pub queue: Option<Name>,
    /// Whether its workflow id may have been used before.
    pub reuse: IdReuse,
    /// The rule for a workflow id that is in use now.
    pub conflict: IdConflict,
    /// The caller's key for this request: the same key again is the same start.
    pub request: Option<Name>,
    /// The timeout from the start of the first run to the end of the last.
    pub execution_timeout: Option<Duration>,
    /// The timeout from the start of one run to its end.
    pub run_timeout: Option<Duration>,
    /// The delay before the run begins.
    pub delay: Option<Duration>,
    /// The retry policy for a workflow that fails; by default it is not run again.
    pub retry: Option<Retry>,
    /// The memo: notes for people.
    pub memo: BTreeMap<Name, Payload>,
    /// Search attributes.
    pub search_attributes: BTreeMap<Name, AttributeValue>,
    /// The headers, which travel beside the arguments.
    pub headers: Headers,
    /// The pins that the run keeps for life; by default those that the engine is set up with for this workflow.
    pub pins: Option<dacapo_core::Pins>,
}

impl Engine {
    /// Starts a run. The start is durable when the future completes.
    pub fn start(&self, new: NewStart) -> impl Future<Output = Result<StartedAs, Error>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        match self.prepare(new) {
            Ok((new, start)) => {
                let (this, queue) = (self.shared.clone(), start.queue.clone());
                let work = Work::new(WorkKind::Start, None, Some(queue), move || start_run(&this, new, start, answer));
                self.shared.host.perform(work);
            }
            Err(error) => drop(answer.send(Err(error))),
        }
        async move { answered.await.unwrap_or(Err(Error::ShutDown)) }
    }

    fn prepare(&self, new: NewStart) -> Result<(NewRun, Start), Error> {
        let shared = &self.shared;
        shared.check()?;
        if shared.shutdown.has_begun() {
            return Err(Error::ShutDown);
        }
        self.check_start(&new)?;
        let queue = match new.queue {
            Some(queue) => queue,
            None => shared.workers.default().queue().clone(),
        };
        check_name("queue name", &queue)?;
        if shared.workers.serve(&queue) && shared.options.registry.find_workflow(&new.workflow).is_none() {
            return Err(Error::UnknownWorkflow { workflow: new.workflow, known: shared.options.known_workflows() });
        }
        let now = shared.now();
        let started = new.delay.map_or(now, |delay| now.after(delay));
        let terms = Terms {
            execution_timeout: new.execution_timeout,
            run_timeout: new.run_timeout,
            expires: new.execution_timeout.map(|timeout| started.after(timeout)),
            retry: new.retry,
            ..Terms::default()
        };
        let run_id = shared.host.run_id();
        let start = Start {
            seed: seed_of(&run_id),
            workflow: new.workflow,
            workflow_id: new.workflow_id,
            lineage: Some(Box::new(Lineage { first_run_id: run_id.clone(), ..Lineage::default() })),
            run_id,
            input: new.input,
            queue,
            started,
            attempt: 1,
            headers: new.headers,
            memo: new.memo,
            search_attributes: new.search_attributes,
            identity: Name::default(),
            terms: (terms != Terms::default()).then(|| Box::new(terms)),
        };
        let pins = new.pins.unwrap_or_else(|| shared.pins_of(&start.workflow));
        shared.options.capabilities.check_pins(&pins)?;
        if pins.semantics == 0 || pins.semantics > SEMANTICS {
            let found = pins.semantics;
            return Err(Error::InvalidArgument(
                ActivationError::UnknownSemantics { found, known: SEMANTICS }.to_string(),
            ));
        }
        let mut run = new_run(start.clone(), &pins, now);
        (run.reuse, run.conflict, run.request) = (new.reuse, new.conflict, new.request);
        Ok((run, start))
    }

    /// Checks the arguments of a start.
    fn check_start(&self, new: &NewStart) -> Result<(), Error> {
        check_name("workflow type", &new.workflow)?;
        check_name("workflow id", &new.workflow_id)?;
        if let Some(request) = &new.request {
            check_name("request id", request)?;
        }
        for (what, timeout) in [("execution", new.execution_timeout), ("run", new.run_timeout)] {
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                return Err(Error::InvalidArgument(format!(
                    "{what} timeout is zero, which ends the run before it begins: set a longer one, or none"
                )));
            }
        }
        if let Some(problem) = check_retry(new.retry.as_ref()) {
            return Err(Error::InvalidArgument(problem));
        }
        new.memo.keys().try_for_each(|name| check_name("name of a memo entry", name))?;
        new.search_attributes.keys().try_for_each(|name| check_name("name of a search attribute", name))?;
        let named = new.input.iter().map(|payload| ("the input", payload));
        let named = named.chain(new.memo.values().map(|payload| ("a memo", payload)));
        for (what, payload) in named {
            check_size(&self.shared, what, payload)?;
        }
        check_headers(&self.shared, "the header section", &new.headers)?;
        for (name, value) in &new.search_attributes {
            value.check(name).map_err(|bad| Error::InvalidArgument(bad.to_string()))?;
        }
        Ok(())
    }
}

/// The caller that waits for a start. The first turn answers it, or the deadlock watch that gives up on that turn.
type StartAnswer = Arc<Mutex<Option<AnswerSender<StartedAs>>>>;

fn start_run(shared: &Arc<Shared>, new: NewRun, start: Start, answer: AnswerSender<StartedAs>) {
    if let Err(error) = shared.check() {
        return drop(answer.send(Err(error)));
    }
    let now = shared.now();
    if start.started > now || !shared.workers.serve(&start.queue) {
        return start_alone(shared, new, Alone::Later, answer);
    }
    if shared.probation.start_has_crashed(start_no(&new.workflow_id)) {
        return start_alone(shared, new, Alone::WithCrashCount, answer);
    }
    let answer = Arc::new(Mutex::new(ranks::START_ANSWER, Some(answer)));
    let turn = first_turn(shared, &new, &start, now, &answer);
    let Some(answer) = answer.lock().take() else { return };
    match turn {
        Ok((playable, plan)) => start_with_turn(shared, new, playable, plan, answer),
        // The run is started all the same: it is open, and stuck with this reason.
        Err(reason) => start_alone(shared, new, Alone::Stuck(reason, StuckPlay::default()), answer),
    }
}

fn first_turn(
    shared: &Arc<Shared>,
    new: &NewRun,
    start: &Start,
    now: Timestamp,
    answer: &StartAnswer,
) -> Result<(Box<Playable>, Plan), StuckReason> {
    let internal = |text: &str| StuckReason::of_text(StuckCause::Internal, text);
    let workflow = shared.options.registry.find_workflow(&start.workflow).ok_or_else(|| {
        StuckReason::new(StuckCause::MissingWorkflow, start.workflow.as_str(), "the workflow is not registered")
    })?;
    let info = Arc::new(info_of(new).map_err(|text| internal(&text))?);
    let options = shared.options.for_run(&info.pins, Some(reporter(shared, &info.name)));
    let mut run = Run::new(workflow.clone(), options).map_err(|error| StuckReason::from(&error))?;
    let jobs = vec![Job::Start(Box::new(start.clone()))];
    let turn = Turn { now, jobs, history: Default::default(), replaying: false, recorded: None };
    // Timers and terms are those of the start, so they must be known before the turn is planned.
    let mut open = OpenOperations { start: kept(start), ..OpenOperations::default() };
    let code = Doing::Start(start_no(&new.workflow_id));
    let play = begin_play(shared, &info, &mut run, Some(code), hand_over(shared, new, answer));
    let making =
        Making { no: RunNo::default(), info: &info, open: &mut open, messages: &[], unstored_snapshot: &mut None };
    match make(shared, play, making, turn) {
        Made::Planned(plan, _) => Ok((Box::new(Playable::new(info, run, open, 0)), *plan)),
        Made::Void(_) => Err(internal("the first turn left nothing to record")),
        Made::Stuck(reason) => Err(reason),
        // The deadlock watch has answered the caller.
        Made::TakenOver => Err(internal("the first turn did not return in time")),
    }
}

fn info_of(new: &NewRun) -> Result<RunInfo, String> {
    let name = RunName {
        run_id: new.run_id.clone(),
        workflow_id: new.workflow_id.clone(),
        workflow: new.workflow.clone(),
        queue: new.queue.clone(),
    };
    Ok(RunInfo {
        name: Arc::new(name),
        first_run_id: new.run_id.clone(),
        parent: None,
        pins: from_stored(&new.pins).map_err(|error| error.to_string())?,
        epoch: Default::default(),
    })
}

/// Makes the callback for a first turn that does not return in time: it starts the run without that turn.
fn hand_over(shared: &Arc<Shared>, new: &NewRun, answer: &StartAnswer) -> HandOver {
    let (shared, new, answer) = (Arc::downgrade(shared), new.clone(), answer.clone());
    Box::new(move |deadlock: Deadlock, stuck_play| {
        let answer = answer.lock().take();
        if let (Some(shared), Some(answer)) = (shared.upgrade(), answer) {
            let why = Alone::Stuck(deadlock.into(), stuck_play);
            shared.later(WorkKind::Write, None, move |shared| start_alone(shared, new, why, answer));
        }
    })
}

fn start_with_turn(
    shared: &Arc<Shared>,
    new: NewRun,
    playable: Box<Playable>,
    plan: Plan,
    answer: AnswerSender<StartedAs>,
) {
    let Plan { mut write, effects } = plan;
    let committing = Committing::new(&write, effects, 0).with_timers(&new.timers);
    let (workflow_id, run_id) = (new.workflow_id.clone(), new.run_id.clone());
    let fallback = new.clone();
    write.run = TurnOf::New(Box::new(new));
    let workflow = playable.info.name.workflow.clone();
    submit_turn(shared, &workflow, write, move |shared, result| match result {
        Ok(Written::Turn(written)) => {
            let started = StartedAs { workflow_id, run_id, run: written.run, fresh: true };
            begin(shared, playable, committing, *written, move || drop(answer.send(Ok(started))));
        }
        Ok(other) => unreachable!("a turn was answered with {other:?}"),
        // The same start was made before, or the caller wants the run that exists: the store says which run that is.
        // Or this node owns no shard in which the run could start: another node plays it.
        Err(StoreError::Refused(Refused::InUse { conflict: IdConflict::UseExisting, .. } | Refused::NotOwner)) => {
            shared.drop_later(playable);
            shared.later(WorkKind::Write, None, move |shared| start_alone(shared, fallback, Alone::Later, answer));
        }
        Err(error) => {
            shared.drop_later(playable);
            let _ = answer.send(Err(error.into()));
        }
    });
}

/// Puts a run into memory that has its number now; other threads may have found it in the store already. `tell` answers
/// the caller when the effects of the first turn are applied.
fn begin(
    shared: &Arc<Shared>,
    playable: Box<Playable>,
    committing: Committing,
    written: TurnWritten,
    tell: impl FnOnce() + Send + 'static,
) {
    let (cached, is_ours, is_new) = claim(shared, written.run);
    cached.is_played_by(shared.workers.of(&playable.info.name.queue));
    // In this order: a thread that gives the run's shard away later finds the entry.
    if !shared.owns(written.run) {
        drop_run(shared, &cached);
        return shared.later(WorkKind::Read, Some(written.run), move |shared| {
            let run = written.run;
            committed_beside(shared, run, playable, committing, written);
            shared.notify_owner(run, Notice::Stored(run));
            tell();
        });
    }
    match (is_ours, is_new) {
        (true, true) => {
            committed(shared, &cached, playable, committing, written);
            tell();
        }
        (false, _) => shared.later(WorkKind::Read, Some(written.run), move |shared| {
            committed_beside(shared, written.run, playable, committing, written);
            tell();
        }),
        // Other threads may have ended the run, or have played it on and evicted it: then this copy is outdated.
        (true, false) => shared.later(WorkKind::Read, Some(written.run), move |shared| {
            let is_open = committing.effects.closed.is_none();
            let is_same = |row: RunRow| row.turns == 1 && row.status.is_open() == is_open;
            match shared.store().run(written.run).is_ok_and(|row| row.is_some_and(is_same)) {
                true => committed(shared, &cached, playable, committing, written),
                false => {
                    committed_beside(shared, written.run, playable, committing, written);
                    rest(shared, &cached, None);
                }
            }
            tell();
        }),
    }
}

/// Claims the entry of a run. Returns it, whether no other thread has it, and whether no other thread can have had it.
fn claim(shared: &Shared, run: RunNo) -> (Arc<CachedRun>, bool, bool) {
    shared.runs.claim(run, |state| {
        let is_ours = state.play_state == PlayState::Idle && state.playable.is_none();
        if is_ours {
            state.play_state = PlayState::Busy;
            state.has_all = true;
        }
        is_ours
    })
}

/// The reason why a run is started without its first turn.
enum Alone {
    /// The first turn is played later, or by a worker of another process.
    Later,
    /// The first turn may kill the process: it was played when the last process died, before any store knew of the run.
    /// Now the run is stored first, with its crash count, and then played like any other; or it is stored already.
    WithCrashCount,
    /// The first turn could not be played: the reason, and whether its code still runs.
    Stuck(StuckReason, StuckPlay),
}

/// Starts a run without its first turn.
fn start_alone(shared: &Arc<Shared>, new: NewRun, why: Alone, answer: AnswerSender<StartedAs>) {
    let workflow_id = new.workflow_id.clone();
    submit(shared, Write::Start(Box::new(new)), move |shared, result| match result {
        Ok(Written::Started { run: started, effects }) => {
            apply_in_other_runs(shared, *effects);
            let StartedRun { run, run_id, fresh, .. } = started.clone();
            let _ = answer.send(Ok(StartedAs { workflow_id: workflow_id.clone(), run_id, run, fresh }));
            if fresh {
                begin_alone(shared, started, why, &workflow_id);
            }
        }
        Ok(other) => unreachable!("a start was answered with {other:?}"),
        Err(error) => drop(answer.send(Err(error.into()))),
    });
}

fn begin_alone(shared: &Arc<Shared>, started: StartedRun, why: Alone, workflow_id: &str) {
    let run = started.run;
    match why {
        Alone::Later => begin_started(shared, &started),
        Alone::WithCrashCount => {
            shared.probation.start_is_stored(start_no(workflow_id));
            let count = Write::CrashCounts(vec![CrashCount::Run { run, crash_count: 1, stuck: None }]);
            write_before_shutdown(shared, move |_| Some(count), move |shared, _| begin_started(shared, &started));
        }
        Alone::Stuck(..) if !shared.owns(run) => begin_started(shared, &started),
        Alone::Stuck(reason, stuck_play) => shared.later(WorkKind::Write, Some(run), move |shared| {
            let (cached, is_ours, _) = claim(shared, run);
            let row = |(due, kind): &(_, _)| TimerRow { due: *due, run, kind: *kind };
            set_timers(shared, &started.timers.iter().map(row).collect::<Vec<_>>(), &[]);
            if is_ours {
                cached.lock().stuck_play = stuck_play;
                set_stuck(shared, &cached, reason);
            }
        }),
    }
}
