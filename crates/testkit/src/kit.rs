//! The test kit for workflows: a whole engine in the test's own thread, on virtual time, with fakes for activities.

mod processes;
mod report;
mod requests;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use dacapo::{
    ActivityFn, ActivityType, App, Catalog, Converter, Description, Error, Failure, Handle, Interceptor, Register,
    StartCall, Timestamp, WorkflowFn, WorkflowType,
};
use dacapo_client::StartRun;
use dacapo_core::{Name, Transcript};
use dacapo_engine::{Cache, RunDescription, RunId};
use dacapo_store::Store;
use serde::de::DeserializeOwned;

use crate::crash::Moment;
use crate::fake::{Fake, FakeCtx};
use crate::kit::processes::{Processes, by_run_id};
use crate::ledger::{AttemptCounts, assert_recorded_once};
use crate::render::render_turns;

/// A test of workflows. Nothing here waits: when no work is left, time moves to the next moment at which work is due.
///
/// ```
/// use dacapo::prelude::*;
/// use dacapo_testkit::Kit;
///
/// #[activity]
/// async fn email(to: String, text: String) -> Result<(), Failure> {
///     unimplemented!("tests send no email")
/// }
///
/// #[workflow]
/// async fn trial(ctx: Ctx, user: String) -> Result<String, Failure> {
///     ctx.call(email, (user.clone(), "welcome".into())).await?;
///     ctx.sleep(days(30)).await?;
///     ctx.call(email, (user, "it is over".into())).await?;
///     Ok("lapsed".into())
/// }
///
/// let mut kit = Kit::new();
/// let emails = kit.fake(email, |_| Ok(()));
/// assert_eq!(kit.run(trial, "ada".into()), Ok("lapsed".into()));
/// assert_eq!(emails.calls()[1], ("ada".into(), "it is over".into()));
/// ```
///
/// Activities are faked ([`Kit::fake`], [`Kit::fake_with`]) or real ([`Kit::serve`]). Fakes take virtual time. A real
/// activity runs in real time, on an async runtime of the kit, while virtual time stands still until it ends; several go
/// on one after the other.
pub struct Kit {
    catalog: Catalog,
    processes: Processes,
    next_id: u64,
    last_key: u64,
}

/// A run in a kit.
pub struct KitRun<O> {
    workflow_id: String,
    output: PhantomData<fn() -> O>,
}

impl<O> KitRun<O> {
    /// Returns the workflow id.
    pub fn workflow_id(&self) -> &str {
        &self.workflow_id
    }
}

impl Default for Kit {
    fn default() -> Self {
        Self::new()
    }
}

impl Kit {
    /// Creates a kit that serves nothing yet.
    pub fn new() -> Self {
        Self { catalog: Catalog::default(), processes: Processes::new(), next_id: 0, last_key: 0 }
    }

    /// Sets which runs stay in memory between turns. The behaviour of runs never depends on it.
    ///
    /// ```
    /// # use dacapo_testkit::{Cache, Kit};
    /// let kit = Kit::new().cache(Cache::AtMost(0)); // Every turn is played after a replay.
    /// ```
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.processes.options.cache = cache;
        self
    }

    /// Uses a store that each process opens with `opens`, instead of one in memory. Stores are no public interface yet.
    #[doc(hidden)]
    #[must_use]
    pub fn over(mut self, opens: impl Fn() -> Arc<dyn Store> + 'static) -> Self {
        self.processes.opens = Some(Arc::new(opens));
        self
    }

    /// Lets the process die at this moment, and another go on: see [`Kit::sweep`]. A second call sets when that one
    /// dies.
    #[must_use]
    pub fn crash_at(mut self, moment: u64) -> Self {
        self.processes.dies_at.push_back(moment);
        self
    }

    /// Allows runs to get stuck and to be tried again, as in a program. Without this a test fails as soon as a run
    /// cannot be played, with the reason: a panic, nondeterminism, an activity or a task queue that is not served.
    #[must_use]
    pub fn runs_may_get_stuck(mut self) -> Self {
        self.processes.runs_may_get_stuck = true;
        self
    }

    /// Encodes and decodes values with this converter, as [`dacapo::Dacapo::converter`] does. Set it before anything is served or
    /// faked.
    #[must_use]
    #[track_caller]
    pub fn converter(mut self, converter: impl Into<Converter>) -> Self {
        assert_nothing_is_served(&self, "the converter");
        self.catalog.layers.converter = converter.into();
        self.processes.layers = self.catalog.layers.clone();
        self
    }

    /// Puts an interceptor around calls, workflows and activities, fakes included, as [`dacapo::Dacapo::intercept`] does. Set it
    /// before anything is served or faked.
    #[must_use]
    #[track_caller]
    pub fn intercept(mut self, interceptor: impl Interceptor) -> Self {
        assert_nothing_is_served(&self, "interceptors");
        self.catalog.layers.intercept(interceptor);
        self.processes.layers = self.catalog.layers.clone();
        self
    }

    /// Sets how long the kit waits, in real time, for an attempt of a real activity: 30 seconds by default. An attempt
    /// that takes longer fails the test.
    #[must_use]
    pub fn real_time_limit(mut self, limit: Duration) -> Self {
        self.processes.real_time_limit = limit;
        self
    }

    /// Serves this task queue too, besides `default`. A run or an activity in a queue that is not served fails the test.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn render(scene: String) -> Result<u64, Failure> { unimplemented!("tests have no GPU") }
    /// #[workflow]
    /// async fn film(ctx: Ctx, scene: String) -> Result<u64, Failure> {
    ///     ctx.call(render, scene).queue("gpu").await
    /// }
    ///
    /// let mut kit = Kit::new();
    /// kit.queue("gpu");
    /// kit.fake(render, |_| Ok(24));
    /// assert_eq!(kit.run(film, "sunset".into()), Ok(24));
    /// ```
    #[track_caller]
    pub fn queue(&mut self, queue: impl Into<Name>) {
        let queue = queue.into();
        assert!(
            !self.processes.have_begun(),
            "queue {queue:?} is named too late: name all queues before the first run"
        );
        self.processes.options.queue(queue);
    }

    /// Serves real workflows and activities. Workflows that the test runs need not be served; children and activities
    /// must be served or faked.
    #[track_caller]
    pub fn serve<P>(&mut self, items: impl Register<P>) {
        assert!(!self.processes.have_begun(), "serve and fake everything before the first run");
        if let Err(error) = items.register(&mut self.catalog) {
            panic!("{error}");
        }
        self.processes.register(&self.catalog);
    }

    /// Replaces an activity by a closure that answers at once. A later fake of the same activity takes its place, even
    /// while runs are open; a fake also takes the place of a served activity.
    #[track_caller]
    pub fn fake<F, P, R>(&mut self, activity: F, answer: R) -> Fake<F::Activity>
    where
        F: ActivityFn<P>,
        R: Fn(<F::Activity as ActivityType>::Input) -> Result<<F::Activity as ActivityType>::Output, Failure>
            + Send
            + Sync
            + 'static,
    {
        let _ = activity;
        let (fake, answer) =
            Fake::new(&self.catalog.layers.converter, move |_, input| std::future::ready(answer(input)));
        self.processes.set_fake(&self.catalog, F::Activity::NAME, answer);
        fake
    }

    /// Replaces an activity by a closure that gets the ctx of each attempt and may take virtual time: for heartbeats,
    /// timeouts, retries and cancellation. [`FakeCtx::sleep`] and [`FakeCtx::hang`] take time.
    ///
    /// ```
    /// use dacapo::prelude::*;
    /// use dacapo_testkit::Kit;
    ///
    /// #[activity]
    /// async fn import(_files: u64) -> Result<u64, Failure> {
    ///     unimplemented!("tests import nothing")
    /// }
    ///
    /// #[workflow]
    /// async fn nightly(ctx: Ctx, files: u64) -> Result<u64, Failure> {
    ///     ctx.call(import, files).heartbeat_timeout(mins(1)).await
    /// }
    ///
    /// let mut kit = Kit::new();
    /// let imports = kit.fake_with(import, |ctx, files| async move {
    ///     for done in ctx.details::<u64>()?.unwrap_or(0)..files {
    ///         ctx.sleep(secs(30)).await;
    ///         ctx.heartbeat(&(done + 1))?;
    ///         if ctx.info().attempt == 1 && done == 2 {
    ///             ctx.hang::<()>().await; // The heartbeat timeout ends this attempt.
    ///         }
    ///     }
    ///     Ok(files)
    /// });
    /// assert_eq!(kit.run(nightly, 5), Ok(5));
    /// assert_eq!(imports.count(), 2);
    /// ```
    #[track_caller]
    pub fn fake_with<F, P, R, T>(&mut self, activity: F, answer: R) -> Fake<F::Activity>
    where
        F: ActivityFn<P>,
        R: Fn(FakeCtx, <F::Activity as ActivityType>::Input) -> T + Send + Sync + 'static,
        T: Future<Output = Result<<F::Activity as ActivityType>::Output, Failure>> + Send + 'static,
    {
        let _ = activity;
        let (fake, answer) = Fake::new(&self.catalog.layers.converter, answer);
        self.processes.set_fake(&self.catalog, F::Activity::NAME, answer);
        fake
    }

    /// Runs a workflow to its end, however long that takes, and returns its result.
    #[track_caller]
    pub fn run<F, P>(
        &mut self,
        workflow: F,
        input: <F::Workflow as WorkflowType>::Input,
    ) -> Result<<F::Workflow as WorkflowType>::Output, Failure>
    where
        F: WorkflowFn<P>,
    {
        let started = self.start(workflow, input);
        self.result(&started)
    }

    /// Starts a workflow and plays its first turn.
    #[track_caller]
    pub fn start<F, P>(
        &mut self,
        workflow: F,
        input: <F::Workflow as WorkflowType>::Input,
    ) -> KitRun<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        serve_workflow::<F::Workflow>(self);
        let name = F::Workflow::NAME;
        let workflow_id = next_workflow_id(self);
        let input =
            F::Workflow::encode(input, &self.catalog.layers.converter).unwrap_or_else(|failure| panic!("{failure}"));
        let id = workflow_id.clone();
        let started = self.processes.insist(move |app| {
            let new = StartRun {
                workflow: name.into(),
                workflow_id: id.clone().into(),
                input: input.clone(),
                // A start that is sent again after a crash is the same start.
                request_id: Some(id.clone().into()),
                ..StartRun::default()
            };
            let start = app.client().start(new);
            async move { start.await.map_err(Error::from) }
        });
        started.unwrap_or_else(|error| panic!("{error}"));
        self.settle();
        KitRun { workflow_id, output: PhantomData }
    }

    /// Starts a workflow with options of a start, such as its id, a memo or a timeout, and plays its first turn. `set` gets the
    /// start and may be called again if the process dies.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// #[workflow]
    /// async fn greet(ctx: Ctx, name: String) -> Result<String, Failure> {
    ///     let info = ctx.info();
    ///     Ok(format!("{}: hello {name}", info.start.workflow_id))
    /// }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start_with(greet, "ada".into(), |start| start.id("greeting-1").run_timeout(mins(5)));
    /// assert_eq!(kit.result(&run), Ok("greeting-1: hello ada".into()));
    /// ```
    #[track_caller]
    pub fn start_with<F, P>(
        &mut self,
        workflow: F,
        input: <F::Workflow as WorkflowType>::Input,
        set: impl Fn(StartCall<<F::Workflow as WorkflowType>::Output>) -> StartCall<<F::Workflow as WorkflowType>::Output>,
    ) -> KitRun<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P> + Clone,
        <F::Workflow as WorkflowType>::Input: Clone,
        <F::Workflow as WorkflowType>::Output: 'static,
    {
        serve_workflow::<F::Workflow>(self);
        let id = next_workflow_id(self);
        let started = self.processes.insist(|app| {
            let start = app.start(workflow.clone(), input.clone()).id(id.clone()).request_id(id.clone());
            set(start).into_future()
        });
        let workflow_id = started.unwrap_or_else(|error| panic!("{error}")).workflow_id().to_owned();
        self.settle();
        KitRun { workflow_id, output: PhantomData }
    }

    /// Lets time pass until the run is closed, and returns its result. A run that does not end fails the test, with a
    /// few lines on what it waits for.
    #[track_caller]
    pub fn result<O: DeserializeOwned + 'static>(&mut self, run: &KitRun<O>) -> Result<O, Failure> {
        loop {
            let handle = self.handle(run);
            let result = self.processes.play_until_ready(handle.result());
            if result.is_none() && self.processes.sim().died().is_none() {
                self.processes.refuse_stuck();
            }
            match result {
                Some(Ok(result)) => return Ok(result),
                Some(Err(Error::Run { failure, .. })) => return Err(*failure),
                _ if self.processes.revive() => {}
                Some(Err(error)) => panic!("{error}"),
                None => panic!("{}", report::not_ended(self.processes.sim(), &RunId::of(run.workflow_id.clone()))),
            }
        }
    }

    /// Returns whether the run is closed.
    pub fn is_closed<O>(&mut self, run: &KitRun<O>) -> bool {
        let handle = self.handle(run);
        self.wait(handle.describe()).is_ok_and(|described| !described.status.is_open())
    }

    /// Stops this process, whatever it is doing, and goes on with another.
    pub fn restart(&mut self) {
        self.processes.restart();
    }

    /// Lets this much time pass.
    #[track_caller]
    pub fn advance(&mut self, time: Duration) {
        let until = self.now().after(time);
        self.processes.advance_to(until);
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.processes.time.now()
    }

    /// Describes all runs in full: how each stands, what its units wait for, and its turns. For a test that fails and
    /// whose message says too little.
    pub fn report(&mut self) -> String {
        let runs = self.processes.histories();
        let of =
            |run: &RunDescription| RunId { workflow_id: run.workflow_id.clone(), run_id: Some(run.run_id.clone()) };
        let sim = self.processes.sim();
        let reports: Vec<String> = runs.iter().map(|(run, _)| report::everything(sim, &of(run))).collect();
        reports.join("\n")
    }

    /// Renders the turns of a run, a line each: what woke it and what it decided.
    pub fn turns<O>(&mut self, run: &KitRun<O>) -> String {
        render_turns(&self.history(run))
    }

    /// Returns the app, for calls that the kit has no short form of. Await its futures with [`Kit::wait`].
    pub fn app(&mut self) -> App {
        self.processes.app()
    }

    /// Waits for a future, while no virtual time passes. A future that cannot complete then fails the test.
    #[track_caller]
    pub fn wait<T>(&mut self, future: impl IntoFuture<Output = T>) -> T {
        let sim = self.processes.sim();
        sim.try_wait(future.into_future()).unwrap_or_else(|| panic!("{}", report::no_answer(sim)))
    }

    /// Returns all turns of the run, or of the last of its chain.
    pub fn history<O>(&mut self, run: &KitRun<O>) -> Transcript {
        let handle = self.handle(run);
        self.wait(handle.transcript()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the description and the history of every run, newest first: those of a chain and of children included.
    pub fn histories(&mut self) -> Vec<(Description, Transcript)> {
        self.processes.histories().into_iter().map(|(run, transcript)| (run.into(), transcript)).collect()
    }

    /// Returns how many attempts there were, in all processes so far.
    pub fn attempts(&mut self) -> AttemptCounts {
        self.processes.sim().attempts()
    }

    /// Returns the moments at which processes died.
    pub fn deaths(&self) -> &[Moment] {
        &self.processes.deaths
    }

    /// Panics unless every result is recorded once, the histories still contain all turns that dead processes left, and
    /// only attempts that were lost in a crash were made again.
    #[track_caller]
    pub fn assert_results_are_recorded_once(&mut self) {
        let histories = by_run_id(self.processes.histories());
        histories.values().for_each(assert_recorded_once);
        for (run_id, left) in self.processes.left.iter().flatten() {
            let kept = histories.get(run_id).is_some_and(|history| history.turns.starts_with(&left.turns));
            assert!(kept, "run {run_id} is not as it was left:\n{}", left.to_text());
        }
        let AttemptCounts { made, known, lost } = self.attempts();
        assert_eq!(made, known + lost, "{made} attempts were made, {known} are known, {lost} were lost in crashes");
    }

    /// Returns a handle on a run, for calls that the kit has no short form of. Await them with [`Kit::wait`].
    pub fn handle<O>(&mut self, run: &KitRun<O>) -> Handle<O> {
        let app = self.app();
        app.handle_of(run.workflow_id.clone())
    }

    /// Does all work that is due without time passing.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        self.processes.settle();
    }
}

/// Returns the number of moments at which the process that runs could have died so far.
pub(crate) fn moments(kit: &mut Kit) -> u64 {
    kit.processes.sim().moments()
}

#[track_caller]
fn assert_nothing_is_served(kit: &Kit, what: &str) {
    let served = &kit.catalog.registry;
    let is_empty = served.workflows().next().is_none() && served.activities().next().is_none();
    assert!(is_empty && kit.processes.fakes.is_empty(), "set {what} before anything is served or faked");
}

/// Serves a workflow that a test starts, unless it is served already.
#[track_caller]
fn serve_workflow<W: WorkflowType>(kit: &mut Kit) {
    let name = W::NAME;
    if kit.catalog.registry.find_workflow(name).is_none() {
        assert!(
            !kit.processes.have_begun(),
            "workflow {name:?} is not served: write `kit.serve({name})` before the first run"
        );
        kit.catalog.workflow(W::definition()).expect("its name is free");
        kit.processes.register(&kit.catalog);
    }
}

fn next_workflow_id(kit: &mut Kit) -> String {
    kit.next_id += 1;
    format!("test-{}", kit.next_id)
}
