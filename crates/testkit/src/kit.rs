//! The test kit for workflows: a whole engine in the test's own thread, on virtual time, with fakes for activities.

mod looking;
mod processes;
mod report;
mod requests;
mod setup;

use std::marker::PhantomData;
use std::time::Duration;

use dacapo::{App, Catalog, Error, Failure, Handle, StartCall, Timestamp, WorkflowFn, WorkflowType};
use dacapo_client::StartRun;
use dacapo_engine::RunId;
use serde::de::DeserializeOwned;

use crate::kit::processes::Processes;

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
    /// Runs a workflow to its end, however long that takes, and returns its result.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn trial(ctx: Ctx, days: u32) -> Result<String, Failure> { ctx.sleep(secs(86_400) * days).await?; Ok("lapsed".into()) }
    ///
    /// let mut kit = Kit::new();
    /// assert_eq!(kit.run(trial, 30), Ok("lapsed".into())); // At once: time is virtual.
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn trial(ctx: Ctx, days: u32) -> Result<String, Failure> { ctx.sleep(secs(86_400) * days).await?; Ok("lapsed".into()) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(trial, 30);
    /// kit.advance(days(29));
    /// assert!(!kit.is_closed(&run));
    /// assert_eq!(kit.result(&run), Ok("lapsed".into()));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn trial(ctx: Ctx, days: u32) -> Result<String, Failure> { ctx.sleep(secs(86_400) * days).await?; Ok("lapsed".into()) }
    ///
    /// let mut kit = Kit::new();
    /// let (short, long) = (kit.start(trial, 7), kit.start(trial, 30));
    /// assert_eq!(kit.result(&short), Ok("lapsed".into()));
    /// assert!(!kit.is_closed(&long));
    /// ```
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

    /// Stops this process, whatever it is doing, and goes on with another.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn trial(ctx: Ctx, days: u32) -> Result<String, Failure> { ctx.sleep(secs(86_400) * days).await?; Ok("lapsed".into()) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(trial, 30);
    /// kit.restart();
    /// assert_eq!(kit.result(&run), Ok("lapsed".into())); // By the second process.
    /// ```
    pub fn restart(&mut self) {
        self.processes.restart();
    }

    /// Lets this much time pass.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn trial(ctx: Ctx, days: u32) -> Result<String, Failure> { ctx.sleep(secs(86_400) * days).await?; Ok("lapsed".into()) }
    ///
    /// let mut kit = Kit::new();
    /// let began = kit.now();
    /// let run = kit.start(trial, 30);
    /// kit.advance(days(30));
    /// assert!(kit.is_closed(&run) && kit.now().since(began) == days(30));
    /// ```
    #[track_caller]
    pub fn advance(&mut self, time: Duration) {
        let until = self.now().after(time);
        self.processes.advance_to(until);
    }

    /// Returns the current time.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[workflow] async fn trial(ctx: Ctx, days: u32) -> Result<String, Failure> { ctx.sleep(secs(86_400) * days).await?; Ok("lapsed".into()) }
    ///
    /// let mut kit = Kit::new();
    /// let began = kit.now();
    /// kit.run(trial, 30).unwrap();
    /// assert_eq!(kit.now().since(began), days(30));
    /// ```
    pub fn now(&self) -> Timestamp {
        self.processes.time.now()
    }

    /// Waits for a future, while no virtual time passes. A future that cannot complete then fails the test.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # #[workflow] async fn request(ctx: Ctx, what: String) -> Result<String, Failure> { Ok(format!("{what}, approved by {}", ctx.next_signal(APPROVE).await?)) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(request, "a chair".into());
    /// let handle = kit.handle(&run);
    /// let described = kit.wait(handle.describe()).unwrap();
    /// assert_eq!(described.workflow, "request");
    /// ```
    #[track_caller]
    pub fn wait<T>(&mut self, future: impl IntoFuture<Output = T>) -> T {
        let sim = self.processes.sim();
        sim.try_wait(future.into_future()).unwrap_or_else(|| panic!("{}", report::no_answer(sim)))
    }

    /// Returns the app, for calls that the kit has no short form of. Await its futures with [`Kit::wait`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # #[workflow] async fn request(ctx: Ctx, what: String) -> Result<String, Failure> { Ok(format!("{what}, approved by {}", ctx.next_signal(APPROVE).await?)) }
    ///
    /// let mut kit = Kit::new();
    /// kit.start(request, "a chair".into());
    /// let open = kit.app().runs();
    /// assert_eq!(kit.wait(async { open.count(&Filter::open()).await }).unwrap(), 1);
    /// ```
    pub fn app(&mut self) -> App {
        self.processes.app()
    }

    /// Returns a handle on a run, for calls that the kit has no short form of. Await them with [`Kit::wait`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # #[workflow] async fn request(ctx: Ctx, what: String) -> Result<String, Failure> { Ok(format!("{what}, approved by {}", ctx.next_signal(APPROVE).await?)) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(request, "a chair".into());
    /// let handle = kit.handle(&run);
    /// kit.wait(handle.signal(APPROVE, "mona".into())).unwrap();
    /// assert_eq!(kit.result(&run), Ok("a chair, approved by mona".into()));
    /// ```
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
