//! Setting a kit up: what it serves and fakes, and how its processes are.

use std::sync::Arc;
use std::time::Duration;

use dacapo::{ActivityFn, ActivityType, Catalog, Converter, Failure, Interceptor, Register};
use dacapo_core::Name;
use dacapo_engine::Cache;
use dacapo_store::Store;

use super::Kit;
use super::processes::Processes;
use crate::fake::{Fake, FakeCtx};

impl Kit {
    /// Creates a kit that serves nothing yet.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new();
    /// kit.fake(charge, |_| Ok(()));
    /// assert_eq!(kit.run(pay, 500), Ok(500));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new().crash_at(3);
    /// let charges = kit.fake(charge, |_| Ok(()));
    /// assert_eq!(kit.run(pay, 500), Ok(500)); // By the next process.
    /// println!("the first one died {}; charged {} times", kit.deaths()[0], charges.count());
    /// ```
    #[must_use]
    pub fn crash_at(mut self, moment: u64) -> Self {
        self.processes.dies_at.push_back(moment);
        self
    }

    /// Allows runs to get stuck and to be tried again, as in a program. Without this a test fails as soon as a run
    /// cannot be played, with the reason: a panic, nondeterminism, an activity or a task queue that is not served.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn broken(ctx: Ctx) -> Result<(), Failure> { panic!("not today") }
    /// let mut kit = Kit::new().runs_may_get_stuck();
    /// let run = kit.start(broken, ());
    /// let handle = kit.handle(&run);
    /// let described = kit.wait(handle.describe()).unwrap();
    /// assert!(described.stuck.unwrap().reason.contains("not today"));
    /// ```
    #[must_use]
    pub fn runs_may_get_stuck(mut self) -> Self {
        self.processes.runs_may_get_stuck = true;
        self
    }

    /// Encodes and decodes values with this converter, as [`dacapo::Dacapo::converter`] does. Set it before anything is served or
    /// faked.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    /// use dacapo::Converter;
    ///
    /// let mut kit = Kit::new().converter(Converter::default()); // The one of your app.
    /// kit.fake(charge, |_| Ok(()));
    /// assert_eq!(kit.run(pay, 500), Ok(500));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    /// use dacapo::Interceptor;
    ///
    /// /// The interceptor of your app.
    /// struct Audit;
    ///
    /// impl Interceptor for Audit {}
    ///
    /// let mut kit = Kit::new().intercept(Audit);
    /// kit.fake(charge, |_| Ok(()));
    /// assert_eq!(kit.run(pay, 500), Ok(500));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// let kit = Kit::new().real_time_limit(mins(2)); // Its activities are served, and slow.
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// #[activity]
    /// async fn double(n: u64) -> Result<u64, Failure> {
    ///     Ok(2 * n)
    /// }
    ///
    /// #[workflow]
    /// async fn twice(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ///     let n = ctx.call(double, n).await?;
    ///     ctx.call(double, n).await
    /// }
    ///
    /// let mut kit = Kit::new();
    /// kit.serve(double);
    /// assert_eq!(kit.run(twice, 10), Ok(40));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new();
    /// let charges = kit.fake(charge, |cents| match cents {
    ///     0 => Err(Failure::application("nothing to charge").non_retryable()),
    ///     _ => Ok(()),
    /// });
    /// assert_eq!(kit.run(pay, 500), Ok(500));
    /// assert!(kit.run(pay, 0).is_err());
    /// assert_eq!(charges.calls(), [500, 0]);
    /// ```
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
}

#[track_caller]
fn assert_nothing_is_served(kit: &Kit, what: &str) {
    let served = &kit.catalog.registry;
    let is_empty = served.workflows().next().is_none() && served.activities().next().is_none();
    assert!(is_empty && kit.processes.fakes.is_empty(), "set {what} before anything is served or faked");
}
