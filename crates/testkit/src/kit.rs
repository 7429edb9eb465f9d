//! The kit for tests of workflows: a whole engine in the test's own thread, on virtual time, with fakes for activities.

mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use dacapo::{
    ActivityFn, ActivityType, App, Catalog, Error, Failure, Handle, Register, Timestamp, WorkflowFn, WorkflowType,
};
use dacapo_core::{Name, Transcript};
use dacapo_engine::{Cache, Description, Options, Reader, RunId};
use dacapo_store::{MemoryStore, RunFilter, Store};
use serde::de::DeserializeOwned;

use crate::crash::Moment;
use crate::fake::Fake;
use crate::ledger::{Attempts, assert_recorded_once};
use crate::render::render_turns;
use crate::simulation::{Opens, Simulation};

/// A test of workflows. Nothing here waits: when there is nothing else to do, time is moved to whatever is due next.
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
    /// When each process dies that is yet to begin.
    doom: VecDeque<u64>,
    deaths: Vec<Moment>,
    /// What each dead process left in the store, by run id.
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
    /// Its workflow id.
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
    /// A kit that serves nothing yet.
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

    /// Which runs stay in memory between turns. What they do never depends on it.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.options.cache = cache;
        self
    }

    /// Keeps runs in a store that each process opens with this, instead of one in memory.
    #[must_use]
    pub fn over(mut self, opens: impl Fn() -> Arc<dyn Store> + 'static) -> Self {
        self.opens = Some(Arc::new(opens));
        self
    }

    /// The process dies at this moment, and another goes on: see [`Kit::sweep`]. Called again, that one dies as well.
    #[must_use]
    pub fn crash_at(mut self, moment: u64) -> Self {
        self.doom.push_back(moment);
        self
    }

    /// Runs may get stuck and tried again, as they are in a program. Without this a test fails as soon as a run cannot be
    /// played, with the reason: a panic, nondeterminism, an activity that nobody serves.
    #[must_use]
    pub fn runs_may_get_stuck(mut self) -> Self {
        self.runs_may_get_stuck = true;
        self
    }

    /// Serves the real thing. Workflows that are run need not be named; children and activities must be served or faked.
    #[track_caller]
    pub fn serve<P>(&mut self, items: impl Register<P>) {
        assert!(self.sim.is_none(), "serve and fake everything before the first run");
        if let Err(error) = items.register(&mut self.catalog) {
            panic!("{error}");
        }
    }

    /// Lets a closure stand in for an activity.
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

    /// Runs a workflow to its end, however long that takes, and gives what it came to.
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
            let new = dacapo_engine::NewStart {
                workflow: name.into(),
                workflow_id: id.clone().into(),
                input: input.clone(),
                // Sent again after a crash, it is the same start.
                request: Some(id.clone().into()),
                ..Default::default()
            };
            let start = app.engine().start(new);
            async move { start.await.map_err(Error::from) }
        })
        .unwrap_or_else(|error| panic!("{error}"));
        self.settle();
        Started { workflow_id, output: PhantomData }
    }

    /// Lets time pass until the run is closed, and gives what it came to.
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

    /// Whether the run is closed.
    pub fn is_closed<O>(&mut self, run: &Started<O>) -> bool {
        let handle = self.handle(run);
        self.sim().wait(handle.describe()).is_ok_and(|described| !described.status.is_open())
    }

    /// Stops this process, wherever it is, and goes on with another.
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

    /// What time it is.
    pub fn now(&mut self) -> Timestamp {
        self.sim().now()
    }

    /// The turns of a run: what each was woken by and what it decided, a line each.
    pub fn turns<O>(&mut self, run: &Started<O>) -> String {
        let handle = self.handle(run);
        let history = self.sim().wait(handle.history()).unwrap_or_else(|error| panic!("{error}"));
        render_turns(&history)
    }

    /// The app, for all that the kit has no short form of. Await what it gives with [`Kit::wait`].
    pub fn app(&mut self) -> App {
        App::over_engine(self.sim().engine().clone())
    }

    /// Waits for something, while no time passes.
    #[track_caller]
    pub fn wait<T>(&mut self, future: impl Future<Output = T>) -> T {
        self.sim().wait(future)
    }

    /// All turns of the run, or of the last of its chain.
    pub fn history<O>(&mut self, run: &Started<O>) -> Transcript {
        let handle = self.handle(run);
        self.sim().wait(handle.history()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The histories of all runs, newest first: those of a chain and those of children among them.
    pub fn histories(&mut self) -> Vec<(Description, Transcript)> {
        let store = self.sim().shared_store();
        dacapo_sync::allow_blocking(|| histories(&Reader::new(store)))
    }

    /// How many attempts there were, in all processes so far.
    pub fn attempts(&mut self) -> Attempts {
        self.sim().attempts()
    }

    /// At which moments processes died.
    pub fn deaths(&self) -> &[Moment] {
        &self.deaths
    }

    pub(crate) fn moments(&mut self) -> u64 {
        self.sim().moments()
    }

    /// Panics unless every result is recorded once, all that dead processes left is there as they left it, and no attempt
    /// was made again but those that were lost in a crash.
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

    /// Asks until it is answered: a process that dies meanwhile is followed by another, which is asked again.
    fn insist<T, P: Future<Output = Result<T, Error>>>(&mut self, ask: impl Fn(&App) -> P) -> Result<T, Error> {
        loop {
            let app = self.app();
            let mut asked = std::pin::pin!(ask(&app));
            let mut answer = self.sim().try_wait(asked.as_mut());
            if answer.is_none() && self.sim().died().is_none() {
                // It takes time.
                self.play_out();
                answer = self.sim().try_wait(asked.as_mut());
            }
            match answer {
                Some(Ok(answer)) => return Ok(answer),
                // What a dead process says is that it is dead.
                _ if self.revive() => {}
                Some(Err(error)) => return Err(error),
                None => panic!("nothing is left to do, and what is waited for has not come"),
            }
        }
    }

    /// Does what can be done without time passing.
    pub(crate) fn settle(&mut self) {
        self.sim().settle();
        while self.revive() {
            self.sim().settle();
        }
        self.refuse_stuck();
    }

    /// A run that cannot be played is a mistake of the code under test, unless the test says otherwise.
    fn refuse_stuck(&mut self) {
        if self.runs_may_get_stuck {
            return;
        }
        if let Some(stuck) = self.sim().most_stuck() {
            panic!("a run is stuck: {}", stuck.reason);
        }
    }

    /// Lets time pass until nothing is left to do.
    fn play_out(&mut self) {
        let may_park = self.runs_may_get_stuck;
        match may_park {
            true => self.sim().play_out(),
            false => self.sim().play_out_until(|sim| sim.most_stuck().is_some()),
        }
    }

    /// If the process is dead, starts another.
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
    let runs = reader.list(&RunFilter::default(), None, usize::MAX >> 1).unwrap_or_else(|error| panic!("{error}"));
    let of = |run: &Description| RunId { workflow_id: run.workflow_id.clone(), run_id: Some(run.run_id.clone()) };
    let history = |run: Description| (reader.history(&of(&run)).unwrap_or_else(|error| panic!("{error}")), run);
    runs.into_iter().map(history).map(|(history, run)| (run, history)).collect()
}

fn by_run_id(histories: Vec<(Description, Transcript)>) -> BTreeMap<Name, Transcript> {
    histories.into_iter().map(|(run, history)| (run.run_id, history)).collect()
}
