//! The test kit for workflows: a whole engine in the test's own thread, on virtual time, with fakes for activities.

mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use dacapo::{
    ActivityFn, ActivityType, App, Catalog, Error, Failure, Handle, Register, Timestamp, WorkflowFn, WorkflowType,
};
use dacapo_client::StartRun;
use dacapo_core::{Name, Transcript};
use dacapo_engine::{Cache, Description, Options, Reader, RunId};
use dacapo_store::{Filter, MemoryStore, Store};
use serde::de::DeserializeOwned;

use crate::crash::Moment;
use crate::fake::Fake;
use crate::ledger::{Attempts, assert_recorded_once};
use crate::render::render_turns;
use crate::simulation::{Opens, Simulation};

/// A test of workflows. Nothing here waits: when no work is left, time moves to the next moment at which work is due.
///
/// ```
/// use dacapo::prelude::*;
/// use dacapo_testkit::Kit;
///
/// #[activity]
/// async fn email(to: String, text: String) -> Result<(), Failure> {
///     unimplemented!("tests send no mail")
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
/// let mail = kit.fake(email, |_| Ok(()));
/// assert_eq!(kit.run(trial, "ada".into()), Ok("lapsed".into()));
/// assert_eq!(mail.calls()[1], ("ada".into(), "it is over".into()));
/// ```
pub struct Kit {
    catalog: Catalog,
    options: Options,
    opens: Option<Opens>,
    sim: Option<Simulation>,
    /// The moments at which the next processes die.
    doom: VecDeque<u64>,
    deaths: Vec<Moment>,
    /// The histories that each dead process left in the store, by run id.
    left: Vec<BTreeMap<Name, Transcript>>,
    next_id: u64,
    next_key: u64,
    runs_may_get_stuck: bool,
}

/// A run in a kit.
pub struct Started<O> {
    workflow_id: String,
    output: PhantomData<fn() -> O>,
}

impl<O> Started<O> {
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
        Self {
            catalog: Catalog::default(),
            options: Options { build: "test".into(), double_play: true, ..Options::default() },
            opens: None,
            sim: None,
            doom: VecDeque::new(),
            deaths: Vec::new(),
            left: Vec::new(),
            next_id: 0,
            next_key: 0,
            runs_may_get_stuck: false,
        }
    }

    /// Sets which runs stay in memory between turns. The behaviour of runs never depends on it.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.options.cache = cache;
        self
    }

    /// Uses a store that each process opens with `opens`, instead of one in memory.
    #[must_use]
    pub fn over(mut self, opens: impl Fn() -> Arc<dyn Store> + 'static) -> Self {
        self.opens = Some(Arc::new(opens));
        self
    }

    /// Lets the process die at this moment, and another go on: see [`Kit::sweep`]. A second call sets when that one
    /// dies.
    #[must_use]
    pub fn crash_at(mut self, moment: u64) -> Self {
        self.doom.push_back(moment);
        self
    }

    /// Allows runs to get stuck and to be tried again, as in a program. Without this a test fails as soon as a run
    /// cannot be played, with the reason: a panic, nondeterminism, an activity that is not served.
    #[must_use]
    pub fn runs_may_get_stuck(mut self) -> Self {
        self.runs_may_get_stuck = true;
        self
    }

    /// Serves real workflows and activities. Workflows that the test runs need not be served; children and activities
    /// must be served or faked.
    #[track_caller]
    pub fn serve<P>(&mut self, items: impl Register<P>) {
        assert!(self.sim.is_none(), "serve and fake everything before the first run");
        if let Err(error) = items.register(&mut self.catalog) {
            panic!("{error}");
        }
    }

    /// Replaces an activity by a closure.
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
        let (fake, activity) = Fake::new(answer);
        self.serve(activity);
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
    ) -> Started<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        let name = F::Workflow::NAME;
        if self.catalog.registry.find_workflow(name).is_none() {
            assert!(self.sim.is_none(), "workflow {name:?} is not served: serve it before the first run");
            self.catalog.workflow(F::Workflow::definition()).expect("its name is free");
        }
        self.next_id += 1;
        let workflow_id = format!("test-{}", self.next_id);
        let input = F::Workflow::encode(input).unwrap_or_else(|failure| panic!("{failure}"));
        let id = workflow_id.clone();
        self.insist(move |app| {
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
        })
        .unwrap_or_else(|error| panic!("{error}"));
        self.settle();
        Started { workflow_id, output: PhantomData }
    }

    /// Lets time pass until the run is closed, and returns its result.
    #[track_caller]
    pub fn result<O: DeserializeOwned + 'static>(&mut self, run: &Started<O>) -> Result<O, Failure> {
        loop {
            self.play_out();
            if self.sim().died().is_none() {
                self.refuse_stuck();
            }
            let handle = self.handle(run);
            match self.sim().try_wait(handle.result()) {
                Some(Ok(result)) => return Ok(result),
                Some(Err(Error::Run { failure, .. })) => return Err(*failure),
                _ if self.revive() => {}
                Some(Err(error)) => panic!("{error}"),
                None => {
                    let described = self.sim().wait(handle.describe());
                    let waits = self.sim().try_wait(handle.inspect());
                    panic!("run {} does not end.\n{described:#?}\n{waits:#?}", run.workflow_id);
                }
            }
        }
    }

    /// Returns whether the run is closed.
    pub fn is_closed<O>(&mut self, run: &Started<O>) -> bool {
        let handle = self.handle(run);
        self.sim().wait(handle.describe()).is_ok_and(|described| !described.status.is_open())
    }

    /// Stops this process, whatever it is doing, and goes on with another.
    pub fn restart(&mut self) {
        let options = self.options.clone();
        self.sim();
        self.sim = self.sim.take().map(|sim| sim.followed_by(options, None));
    }

    /// Lets this much time pass.
    pub fn advance(&mut self, time: Duration) {
        let until = self.now().after(time);
        loop {
            let now = self.now();
            self.sim().advance(until.since(now));
            if !self.revive() {
                return self.refuse_stuck();
            }
        }
    }

    /// Returns the current time.
    pub fn now(&mut self) -> Timestamp {
        self.sim().now()
    }

    /// Renders the turns of a run, a line each: what woke it and what it decided.
    pub fn turns<O>(&mut self, run: &Started<O>) -> String {
        let handle = self.handle(run);
        let history = self.sim().wait(handle.transcript()).unwrap_or_else(|error| panic!("{error}"));
        render_turns(&history)
    }

    /// Returns the app, for calls that the kit has no short form of. Await its futures with [`Kit::wait`].
    pub fn app(&mut self) -> App {
        App::over_engine(self.sim().engine().clone())
    }

    /// Waits for a future, while no time passes.
    #[track_caller]
    pub fn wait<T>(&mut self, future: impl IntoFuture<Output = T>) -> T {
        self.sim().wait(future.into_future())
    }

    /// Returns all turns of the run, or of the last of its chain.
    pub fn history<O>(&mut self, run: &Started<O>) -> Transcript {
        let handle = self.handle(run);
        self.sim().wait(handle.transcript()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the histories of all runs, newest first, those of a chain and of children included.
    pub fn histories(&mut self) -> Vec<(Description, Transcript)> {
        let store = self.sim().shared_store();
        dacapo_sync::allow_blocking(|| histories(&Reader::new(store)))
    }

    /// Returns how many attempts there were, in all processes so far.
    pub fn attempts(&mut self) -> Attempts {
        self.sim().attempts()
    }

    /// Returns the moments at which processes died.
    pub fn deaths(&self) -> &[Moment] {
        &self.deaths
    }

    pub(crate) fn moments(&mut self) -> u64 {
        self.sim().moments()
    }

    /// Panics unless every result is recorded once, the histories still contain all turns that dead processes left, and
    /// only attempts that were lost in a crash were made again.
    #[track_caller]
    pub fn assert_books_balance(&mut self) {
        let histories = by_run_id(self.histories());
        histories.values().for_each(assert_recorded_once);
        for (run_id, left) in self.left.iter().flatten() {
            let kept = histories.get(run_id).is_some_and(|history| history.turns.starts_with(&left.turns));
            assert!(kept, "run {run_id} is not as it was left:\n{}", left.to_text());
        }
        let Attempts { made, known, lost } = self.attempts();
        assert_eq!(made, known + lost, "{made} attempts were made, {known} are known, {lost} were lost in crashes");
    }

    fn handle<O>(&mut self, run: &Started<O>) -> Handle<O> {
        let app = self.app();
        app.handle_of(run.workflow_id.clone())
    }

    /// Sends a request until it is answered: if the process dies meanwhile, the next one gets the request again.
    fn insist<T, P: Future<Output = Result<T, Error>>>(&mut self, ask: impl Fn(&App) -> P) -> Result<T, Error> {
        loop {
            let app = self.app();
            let mut asked = std::pin::pin!(ask(&app));
            let mut answer = self.sim().try_wait(asked.as_mut());
            if answer.is_none() && self.sim().died().is_none() {
                // The answer takes time.
                self.play_out();
                answer = self.sim().try_wait(asked.as_mut());
            }
            match answer {
                Some(Ok(answer)) => return Ok(answer),
                // The error of a dead process only means that it is dead.
                _ if self.revive() => {}
                Some(Err(error)) => return Err(error),
                None => panic!("nothing is left to do, and what is waited for has not come"),
            }
        }
    }

    /// Does all work that is due without time passing.
    pub(crate) fn settle(&mut self) {
        self.sim().settle();
        while self.revive() {
            self.sim().settle();
        }
        self.refuse_stuck();
    }

    /// Panics if a run is stuck, unless the test allows it: a run that cannot be played is a mistake of the code under
    /// test.
    fn refuse_stuck(&mut self) {
        if self.runs_may_get_stuck {
            return;
        }
        if let Some(stuck) = self.sim().most_stuck() {
            panic!("a run is stuck: {}", stuck.reason);
        }
    }

    /// Lets time pass until no work is left.
    fn play_out(&mut self) {
        let may_park = self.runs_may_get_stuck;
        match may_park {
            true => self.sim().play_out(),
            false => self.sim().play_out_until(|sim| sim.most_stuck().is_some()),
        }
    }

    /// Starts another process if this one is dead. Returns whether it was.
    fn revive(&mut self) -> bool {
        let Some(moment) = self.sim().died() else { return false };
        self.deaths.push(moment);
        let left = by_run_id(self.histories());
        self.left.push(left);
        let dies_at = self.doom.pop_front();
        let options = self.options.clone();
        self.sim = self.sim.take().map(|sim| sim.followed_by(options, dies_at));
        true
    }

    fn sim(&mut self) -> &Simulation {
        if self.sim.is_none() {
            let pins: BTreeMap<_, _> = self.catalog.pins.clone();
            self.options.registry = self.catalog.registry.clone();
            self.options.pins = pins.into_iter().collect();
            let in_memory = || -> Opens {
                let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
                Arc::new(move || store.clone())
            };
            let opens = self.opens.clone().unwrap_or_else(in_memory);
            self.sim = Some(Simulation::opening(opens, self.options.clone(), self.doom.pop_front()));
        }
        self.sim.as_ref().expect("it was just made")
    }
}

fn histories(reader: &Reader) -> Vec<(Description, Transcript)> {
    let runs = reader.list(&Filter::default(), None, usize::MAX >> 1).unwrap_or_else(|error| panic!("{error}"));
    let of = |run: &Description| RunId { workflow_id: run.workflow_id.clone(), run_id: Some(run.run_id.clone()) };
    let history = |run: Description| (reader.history(&of(&run)).unwrap_or_else(|error| panic!("{error}")), run);
    runs.into_iter().map(history).map(|(history, run)| (run, history)).collect()
}

fn by_run_id(histories: Vec<(Description, Transcript)>) -> BTreeMap<Name, Transcript> {
    histories.into_iter().map(|(run, history)| (run.run_id, history)).collect()
}
