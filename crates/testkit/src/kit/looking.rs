//! Looking at what the runs of a kit have done.

use dacapo::Description;
use dacapo_core::Transcript;
use dacapo_engine::{RunDescription, RunId};

use super::processes::by_run_id;
use super::{Kit, KitRun, report};
use crate::crash::Moment;
use crate::ledger::{AttemptCounts, assert_recorded_once};
use crate::render::render_turns;

impl Kit {
    /// Returns whether the run is closed.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn trial(ctx: Ctx, days: u32) -> Result<String, Failure> { ctx.sleep(secs(86_400) * days).await?; Ok("lapsed".into()) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(trial, 30);
    /// assert!(!kit.is_closed(&run));
    /// kit.advance(days(30));
    /// assert!(kit.is_closed(&run));
    /// ```
    pub fn is_closed<O>(&mut self, run: &KitRun<O>) -> bool {
        let handle = self.handle(run);
        self.wait(handle.describe()).is_ok_and(|described| !described.status.is_open())
    }

    /// Describes all runs in full: how each stands, what its units wait for, and its turns. For a test that fails and
    /// whose message says too little.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # #[workflow] async fn request(ctx: Ctx, what: String) -> Result<String, Failure> { Ok(format!("{what}, approved by {}", ctx.next_signal(APPROVE).await?)) }
    ///
    /// let mut kit = Kit::new();
    /// kit.start(request, "a chair".into());
    /// println!("{}", kit.report()); // The run waits for the signal `approve`, and since when.
    /// ```
    pub fn report(&mut self) -> String {
        let runs = self.processes.histories();
        let of =
            |run: &RunDescription| RunId { workflow_id: run.workflow_id.clone(), run_id: Some(run.run_id.clone()) };
        let sim = self.processes.sim();
        let reports: Vec<String> = runs.iter().map(|(run, _)| report::everything(sim, &of(run))).collect();
        reports.join("\n")
    }

    /// Renders the turns of a run, a line each: what woke it and what it decided.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new();
    /// kit.fake(charge, |_| Ok(()));
    /// let run = kit.start(pay, 500);
    /// kit.result(&run).unwrap();
    /// assert_eq!(kit.turns(&run).lines().next(), Some("turn 0  start pay -> [] activity charge"));
    /// ```
    pub fn turns<O>(&mut self, run: &KitRun<O>) -> String {
        render_turns(&self.history(run))
    }

    /// Returns all turns of the run, or of the last of its chain.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new();
    /// kit.fake(charge, |_| Ok(()));
    /// let run = kit.start(pay, 500);
    /// kit.result(&run).unwrap();
    /// assert_eq!(kit.history(&run).turns.len(), 2); // The start, and the result of the activity.
    /// ```
    pub fn history<O>(&mut self, run: &KitRun<O>) -> Transcript {
        let handle = self.handle(run);
        self.wait(handle.transcript()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the description and the history of every run, newest first: those of a chain and of children included.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new();
    /// kit.fake(charge, |_| Ok(()));
    /// kit.run(pay, 500).unwrap();
    /// for (run, history) in kit.histories() {
    ///     println!("{}: {} turns", run.workflow_id, history.turns.len());
    /// }
    /// ```
    pub fn histories(&mut self) -> Vec<(Description, Transcript)> {
        self.processes.histories().into_iter().map(|(run, transcript)| (run.into(), transcript)).collect()
    }

    /// Returns how many attempts there were, in all processes so far.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new();
    /// kit.fake(charge, |_| Ok(()));
    /// kit.run(pay, 500).unwrap();
    /// assert_eq!(kit.attempts().made, 1);
    /// ```
    pub fn attempts(&mut self) -> AttemptCounts {
        self.processes.sim().attempts()
    }

    /// Returns the moments at which processes died.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    /// use dacapo_testkit::Moment;
    ///
    /// let mut kit = Kit::new().crash_at(0);
    /// kit.fake(charge, |_| Ok(()));
    /// kit.run(pay, 500).unwrap();
    /// assert_eq!(kit.deaths(), [Moment::BeforeCommit]);
    /// ```
    pub fn deaths(&self) -> &[Moment] {
        &self.processes.deaths
    }

    /// Panics unless every result is recorded once, the histories still contain all turns that dead processes left, and
    /// only attempts that were lost in a crash were made again.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new().crash_at(3);
    /// kit.fake(charge, |_| Ok(()));
    /// kit.run(pay, 500).unwrap();
    /// kit.assert_results_are_recorded_once();
    /// ```
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
}
