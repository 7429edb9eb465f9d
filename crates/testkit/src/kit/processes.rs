//! The processes of a test: one at a time, each over the store that the one before left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use dacapo::{App, Catalog, Error, Layers, Registry, Timestamp};
use dacapo_core::{Name, Transcript};
use dacapo_engine::{Options, Reader, RunDescription, RunId};
use dacapo_store::{Filter, MemoryStore, Store};

use super::report;
use crate::crash::Moment;
use crate::fake::{FakeCode, Fakes};
use crate::real_time::RealTime;
use crate::simulation::{BEGIN, Opens, Simulation};
use crate::virtual_host::World;
use crate::virtual_time::VirtualTime;

/// How long a kit waits for real code, unless the test says otherwise.
const REAL_TIME_LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Processes {
    pub(super) options: Options,
    pub(super) layers: Layers,
    pub(super) opens: Option<Opens>,
    pub(super) time: Arc<VirtualTime>,
    pub(super) fakes: Fakes,
    pub(super) real_time_limit: Duration,
    pub(super) runs_may_get_stuck: bool,
    /// The moments at which the next processes die.
    pub(super) dies_at: VecDeque<u64>,
    pub(super) deaths: Vec<Moment>,
    /// The histories that each dead process left in the store, by run id.
    pub(super) left: Vec<BTreeMap<Name, Transcript>>,
    sim: Option<Simulation>,
}

impl Processes {
    pub(super) fn new() -> Self {
        let time = VirtualTime::starting_at(BEGIN);
        Self {
            options: Options { build: "test".into(), double_play: true, ..Options::default() },
            layers: Layers::default(),
            opens: None,
            fakes: Fakes::on(time.clone()),
            time,
            real_time_limit: REAL_TIME_LIMIT,
            runs_may_get_stuck: false,
            dies_at: VecDeque::new(),
            deaths: Vec::new(),
            left: Vec::new(),
            sim: None,
        }
    }

    /// Returns whether the first process was started: from then on, nothing more can be served.
    pub(super) fn have_begun(&self) -> bool {
        self.sim.is_some()
    }

    /// Sets the answer of a fake. The first fake of an activity is registered, so it comes before the first run.
    #[track_caller]
    pub(super) fn set_fake(&mut self, catalog: &Catalog, activity: &'static str, answer: FakeCode) {
        if self.fakes.set(activity, answer) {
            assert!(
                !self.have_begun(),
                "activity {activity:?} is faked too late: fake it before the first run; a fake can be replaced later"
            );
            self.register(catalog);
        }
    }

    /// Registers everything that is served, with fakes in the place of what they replace.
    pub(super) fn register(&mut self, catalog: &Catalog) {
        let mut registry = Registry::new();
        let served = &catalog.registry;
        for workflow in served.workflows().filter_map(|name| served.find_workflow(name)) {
            registry.workflow(workflow.clone()).expect("names are unique in a catalog");
        }
        let fakes = self.fakes.activities(&catalog.layers);
        let is_faked = |name: &Name| fakes.iter().any(|fake| fake.name() == name);
        let real = served.activities().filter(|name| !is_faked(name)).filter_map(|name| served.find_activity(name));
        for activity in real.chain(&fakes) {
            registry.activity(activity.clone()).expect("a fake takes the place of a real activity");
        }
        self.options.registry = registry;
        self.options.pins = catalog.pins.clone().into_iter().collect();
    }

    /// Returns the process that runs. The first call starts the first one.
    pub(super) fn sim(&mut self) -> &Simulation {
        if self.sim.is_none() {
            let in_memory = || -> Opens {
                let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
                Arc::new(move || store.clone())
            };
            let opens = self.opens.clone().unwrap_or_else(in_memory);
            let world = World::new(self.time.clone(), self.fakes.clone(), Some(RealTime::new(self.real_time_limit)));
            self.sim = Some(Simulation::opening(opens, self.options.clone(), world, self.dies_at.pop_front()));
        }
        self.sim.as_ref().expect("it was just made")
    }

    pub(super) fn app(&mut self) -> App {
        let layers = self.layers.clone();
        App::over_engine(self.sim().engine().clone(), &layers)
    }

    /// Stops the process, whatever it is doing, and starts another.
    pub(super) fn restart(&mut self) {
        self.sim();
        self.start_next(None);
    }

    fn start_next(&mut self, dies_at: Option<u64>) {
        let options = self.options.clone();
        self.sim = self.sim.take().map(|sim| sim.followed_by(options, dies_at));
    }

    /// Starts another process if this one is dead. Returns whether it was.
    pub(super) fn revive(&mut self) -> bool {
        let Some(moment) = self.sim().died() else { return false };
        self.deaths.push(moment);
        let left = by_run_id(self.histories());
        self.left.push(left);
        let dies_at = self.dies_at.pop_front();
        self.start_next(dies_at);
        true
    }

    /// Does all work that is due without time passing.
    #[track_caller]
    pub(super) fn settle(&mut self) {
        self.sim().settle();
        while self.revive() {
            self.sim().settle();
        }
        self.refuse_stuck();
    }

    /// Lets time pass until a future is ready, and returns its value. Returns none if no work is left that could
    /// complete it, or a run is stuck, or the process has died.
    pub(super) fn play_until_ready<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let runs_may_get_stuck = self.runs_may_get_stuck;
        self.sim().play_until_ready(future, |sim| match runs_may_get_stuck {
            true => sim.is_hopeless(),
            false => sim.most_stuck().is_some(),
        })
    }

    /// Lets time pass until this moment.
    #[track_caller]
    pub(super) fn advance_to(&mut self, until: Timestamp) {
        loop {
            let now = self.sim().now();
            self.sim().advance(until.since(now));
            if !self.revive() {
                return self.refuse_stuck();
            }
        }
    }

    /// Panics if a run is stuck, unless the test allows it: a run that cannot be played is a mistake of the code under
    /// test.
    #[track_caller]
    pub(super) fn refuse_stuck(&mut self) {
        if self.runs_may_get_stuck {
            return;
        }
        let Some(stuck) = self.sim().most_stuck() else { return };
        let run = RunId { workflow_id: stuck.workflow_id.clone(), run_id: Some(stuck.run_id.clone()) };
        let engine = self.sim().engine().clone();
        let described = dacapo_sync::allow_blocking(|| engine.describe(&run));
        let described = described.unwrap_or_else(|error| panic!("{error}"));
        panic!("{}", report::stuck(&described, &self.options.queues));
    }

    /// Sends a request until it is answered: if the process dies meanwhile, the next one gets the request again.
    #[track_caller]
    pub(super) fn insist<T, P: Future<Output = Result<T, Error>>>(
        &mut self,
        ask: impl Fn(&App) -> P,
    ) -> Result<T, Error> {
        loop {
            let app = self.app();
            let answer = self.play_until_ready(ask(&app));
            match answer {
                Some(Ok(answer)) => return Ok(answer),
                // The error of a dead process only means that it is dead.
                _ if self.revive() => {}
                Some(Err(error)) => return Err(error),
                None => panic!("{}", report::no_answer(self.sim())),
            }
        }
    }

    /// Returns the histories of all runs, newest first.
    pub(super) fn histories(&mut self) -> Vec<(RunDescription, Transcript)> {
        let reader = Reader::new(self.sim().shared_store());
        dacapo_sync::allow_blocking(|| {
            let runs = reader.list(&Filter::default(), None, usize::MAX >> 1).unwrap_or_else(|error| panic!("{error}"));
            let with_history = |run: RunDescription| {
                let id = RunId { workflow_id: run.workflow_id.clone(), run_id: Some(run.run_id.clone()) };
                let history = reader.history(&id).unwrap_or_else(|error| panic!("{error}"));
                (run, history)
            };
            runs.into_iter().map(with_history).collect()
        })
    }
}

pub(super) fn by_run_id(histories: Vec<(RunDescription, Transcript)>) -> BTreeMap<Name, Transcript> {
    histories.into_iter().map(|(run, history)| (run.run_id, history)).collect()
}
