//! A handle on a run.

mod looking;

use std::fmt;
use std::marker::PhantomData;

use dacapo_client::{Client, CompleteActivity, QueryRun, ResolvePromise, RunRef, RunResult};
use dacapo_core::{Failure, Name, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::link::Link;
use crate::client::{Error, IntoName, Result, SignalCall, UpdateCall, UpdateHandle};
use crate::{Promise, Query, Signal, Update};

/// A handle on a run whose result is an `O`: sends it messages, asks it, waits for its result.
///
/// A handle from [`App::start`](crate::Connection::start) names the very run that was started. When that run continues as
/// new, it is closed: [`result`](Self::result) follows it to the last run of the chain, and every other call is still about
/// the run that the handle names. [`latest`](Self::latest) gives a handle on whichever run of the workflow id is open, as
/// [`App::handle`](crate::Connection::handle) does.
///
/// It keeps the connection by which it was made: an app serves as long as a handle of it is left.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// # const CANCEL: Signal<String> = Signal::new("cancel");
/// # async fn example(app: App) -> dacapo::Result<()> {
/// let run = app.handle(checkout, "order-42"); // Or the handle that `app.start` gave.
/// run.signal(CANCEL, "too bright".into()).await?;
/// println!("{} is {}", run.workflow_id(), run.describe().await?.status);
/// println!("{}", run.result().await?);
/// # Ok(()) }
/// ```
pub struct Handle<O> {
    link: Link,
    run: RunRef,
    is_new: bool,
    output: PhantomData<fn() -> O>,
}

impl<O> Clone for Handle<O> {
    fn clone(&self) -> Self {
        Self { is_new: self.is_new, ..Self::new(self.link.clone(), self.run.clone()) }
    }
}

impl<O> fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.run).finish()
    }
}

impl<O> Handle<O> {
    pub(crate) fn new(link: Link, run: RunRef) -> Self {
        Self { link, run, is_new: false, output: PhantomData }
    }

    pub(crate) fn started(link: Link, run: RunRef, is_new: bool) -> Self {
        Self { is_new, ..Self::new(link, run) }
    }

    fn client(&self) -> &dyn Client {
        &**self.link.client()
    }

    /// Returns whether the start that returned this handle started the run, and did not find it started before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the workflow id: the program's name for the run.
    pub fn workflow_id(&self) -> &str {
        &self.run.workflow_id
    }

    /// Returns the run id, if this is a handle on one certain run of the workflow id.
    pub fn run_id(&self) -> Option<&str> {
        self.run.run_id.as_deref()
    }

    /// Returns a handle on the open run of this workflow id, or on the last if none is open: on the run that this one has
    /// continued as, for example. Each call through it finds the run anew.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// const ADD: Signal<u64> = Signal::new("add");
    ///
    /// /// Takes one number in each run.
    /// #[workflow]
    /// async fn sum(ctx: Ctx, total: u64) -> Result<u64, Failure> {
    ///     match ctx.next_signal(ADD).await? {
    ///         0 => Ok(total),
    ///         n => Err(ctx.continue_as_new(sum, total + n)),
    ///     }
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> dacapo::Result<()> {
    /// # let app = Dacapo::open("memory:").await?.serve(sum).await?;
    /// let first = app.start(sum, 0).await?;
    /// let sum = first.latest();
    /// for n in [1, 2, 0] {
    ///     sum.signal(ADD, n).await?; // By `first` only one number can be sent: then that run is closed.
    /// }
    /// assert_eq!(first.result().await?, 3);
    /// # app.shutdown().await;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn latest(&self) -> Self {
        Self::new(self.link.clone(), RunRef::latest(self.run.workflow_id.clone()))
    }

    /// Returns a handle on one certain run of the workflow id, by its run id.
    #[must_use]
    pub fn with_run_id(mut self, run_id: impl IntoName) -> Self {
        self.run = RunRef::exact(self.run.workflow_id, run_id.into_name());
        self
    }

    /// Waits until the run is closed, and returns its result. A run that continues as new is followed to the last of its chain.
    ///
    /// A run that ended in any other way is an [`Error::Run`]. A run that is stuck is open, and keeps this waiting until it goes
    /// on and ends: see [`result_or_stuck`](Self::result_or_stuck).
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// use dacapo::Error;
    ///
    /// match run.result().await {
    ///     Ok(receipt) => println!("{receipt}"),
    ///     Err(Error::Run { status: Status::Cancelled, .. }) => println!("it was cancelled"),
    ///     Err(Error::Run { status, failure, .. }) => println!("{status}: {failure}"),
    ///     Err(error) => return Err(error), // The call failed. The run may be open.
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn result(&self) -> Result<O>
    where
        O: DeserializeOwned,
    {
        self.decoded(self.client().result(self.run.clone()).await?)
    }

    /// Waits as [`result`](Self::result) does, and also ends when the run is stuck, or is already.
    ///
    /// That is [`ClientError::Stuck`](crate::ClientError::Stuck), which says why. The run stays open.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// use dacapo::{ClientError, Error};
    ///
    /// match run.result_or_stuck().await {
    ///     Err(Error::Client(ClientError::Stuck(report))) => eprintln!("it waits for a deploy: {report}"),
    ///     other => println!("{}", other?),
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn result_or_stuck(&self) -> Result<O>
    where
        O: DeserializeOwned,
    {
        self.decoded(self.client().result_or_stuck(self.run.clone()).await?)
    }

    fn decoded(&self, RunResult { status, result, .. }: RunResult) -> Result<O>
    where
        O: DeserializeOwned,
    {
        match result {
            Ok(result) => (self.link.converter().decode(&result))
                .map_err(|failure| Error::value_of(format_args!("result of run {:?}", self.workflow_id()), failure)),
            Err(failure) => {
                Err(Error::Run { workflow_id: self.run.workflow_id.clone(), status, failure: Box::new(failure) })
            }
        }
    }

    /// Sends a signal: set options, then await it. The signal is durable when it answers.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// const CANCEL: Signal<String> = Signal::new("cancel");
    ///
    /// // Sent again with the same request id, it is the same signal.
    /// run.signal(CANCEL, "too bright".into()).request_id("cancel-42").await?;
    /// # Ok(()) }
    /// ```
    pub fn signal<T: Serialize>(&self, signal: Signal<T>, value: T) -> SignalCall {
        SignalCall::new(self.link.clone(), self.run.clone(), signal.name().into(), self.link.converter().encode(&value))
    }

    /// Sends a signal by its name, with JSON. See [`signal`](Self::signal).
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// use dacapo::json::json;
    ///
    /// run.signal_raw("cancel", json!("too bright")).request_id("cancel-42").await?;
    /// # Ok(()) }
    /// ```
    pub fn signal_raw(&self, name: impl IntoName, value: Value) -> SignalCall {
        SignalCall::new(self.link.clone(), self.run.clone(), name.into_name(), self.link.converter().encode(&value))
    }

    /// Asks the run a question. The answer takes into account all that was acknowledged before.
    ///
    /// A closed run can be asked as well; it is played again for that.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// use dacapo::Query;
    ///
    /// const STAGE: Query<(), String> = Query::new("stage");
    ///
    /// println!("{}", run.query(STAGE, ()).await?);
    /// # Ok(()) }
    /// ```
    pub async fn query<I: Serialize, A: DeserializeOwned>(&self, query: Query<I, A>, input: I) -> Result<A> {
        let answer = self.ask(query.name().into(), self.link.converter().encode(&input)).await?;
        (self.link.converter().decode(&answer))
            .map_err(|failure| Error::value_of(format_args!("answer to query {:?}", query.name()), failure))
    }

    /// Asks the run a question by its name, with JSON. See [`query`](Self::query).
    pub async fn query_raw(&self, name: impl IntoName, input: Value) -> Result<Value> {
        let answer = self.ask(name.into_name(), self.link.converter().encode(&input)).await?;
        self.link.converter().decode(&answer).map_err(Error::value)
    }

    async fn ask(&self, name: Name, input: std::result::Result<Payload, Failure>) -> Result<Payload> {
        let input = vec![input.map_err(Error::value)?];
        let query = QueryRun { name, input, ..QueryRun::default() };
        Ok(self.client().query(self.run.clone(), query).await?)
    }

    /// Sends an update: await it for the answer, or first wait until it is [accepted](UpdateCall::accepted).
    ///
    /// A validator that says no is [`ClientError::UpdateRejected`](crate::ClientError::UpdateRejected), a handler that fails
    /// [`Error::Update`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// use dacapo::{ClientError, Error};
    ///
    /// const ADD: Update<u64, u64> = Update::new("add");
    ///
    /// match run.update(ADD, 1_250).request_id("add-7").await {
    ///     Ok(total) => println!("{total} cents"),
    ///     Err(Error::Client(ClientError::UpdateRejected(why))) => println!("not added: {why}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn update<I: Serialize, A>(&self, update: Update<I, A>, input: I) -> UpdateCall<A> {
        UpdateCall::new(self.link.clone(), self.run.clone(), update.name().into(), self.link.converter().encode(&input))
    }

    /// Sends an update by its name, with JSON. See [`update`](Self::update).
    pub fn update_raw(&self, name: impl IntoName, input: Value) -> UpdateCall<Value> {
        UpdateCall::new(self.link.clone(), self.run.clone(), name.into_name(), self.link.converter().encode(&input))
    }

    /// Returns a handle on an update that was sent before, by its request id: for a program that was restarted while it waited.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// const ADD: Update<u64, u64> = Update::new("add");
    ///
    /// let total = run.update_handle(ADD, "add-7").answer().await?;
    /// # Ok(()) }
    /// ```
    pub fn update_handle<I, A>(&self, update: Update<I, A>, request_id: impl IntoName) -> UpdateHandle<A> {
        let _ = update;
        UpdateHandle::new(self.link.clone(), self.run.clone(), request_id.into_name())
    }

    /// Resolves a promise of the run with a value. The first resolution holds.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// const APPROVAL: Promise<bool> = Promise::new("approval");
    ///
    /// run.resolve(APPROVAL, true).await?;
    /// # Ok(()) }
    /// ```
    pub async fn resolve<T: Serialize>(&self, promise: Promise<T>, value: T) -> Result<()> {
        let value = self.link.converter().encode(&value).map_err(Error::value)?;
        self.settle_promise(promise.name().into(), Ok(value)).await
    }

    /// Rejects a promise of the run: its code gets this failure. The first resolution holds.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// const APPROVAL: Promise<bool> = Promise::new("approval");
    ///
    /// run.reject(APPROVAL, Failure::application("the manager has left")).await?;
    /// # Ok(()) }
    /// ```
    pub async fn reject<T>(&self, promise: Promise<T>, failure: impl Into<Failure>) -> Result<()> {
        self.settle_promise(promise.name().into(), Err(failure.into())).await
    }

    /// Resolves a promise of the run by its name or its id, with JSON. See [`resolve`](Self::resolve).
    pub async fn resolve_raw(&self, promise: impl IntoName, value: Value) -> Result<()> {
        let value = self.link.converter().encode(&value).map_err(Error::value)?;
        self.settle_promise(promise.into_name(), Ok(value)).await
    }

    /// Rejects a promise of the run by its name or its id. See [`reject`](Self::reject).
    pub async fn reject_raw(&self, promise: impl IntoName, failure: impl Into<Failure>) -> Result<()> {
        self.settle_promise(promise.into_name(), Err(failure.into())).await
    }

    async fn settle_promise(&self, promise: Name, result: std::result::Result<Payload, Failure>) -> Result<()> {
        Ok(self.client().resolve_promise(self.run.clone(), ResolvePromise { promise, result }).await?)
    }

    async fn end_activity(&self, activity_id: Name, result: std::result::Result<Payload, Failure>) -> Result<()> {
        let completion = CompleteActivity { activity_id, result };
        Ok(self.client().complete_activity(self.run.clone(), completion).await?)
    }

    /// Completes a pending activity with a result, by the id that [`describe`](Self::describe) shows and
    /// [`ActivityInfo`](crate::ActivityInfo) holds. An attempt that runs is given up; the first result holds.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// for activity in run.describe().await?.pending {
    ///     println!("{} has failed: {:?}", activity.activity, activity.last_failure);
    ///     run.complete_activity(&activity.id, "charged by hand").await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn complete_activity<T: Serialize + ?Sized>(&self, activity_id: impl IntoName, result: &T) -> Result<()> {
        let result = self.link.converter().encode(result).map_err(Error::value)?;
        self.end_activity(activity_id.into_name(), Ok(result)).await
    }

    /// Fails a pending activity for good, by its id. See [`complete_activity`](Self::complete_activity).
    pub async fn fail_activity(&self, activity_id: impl IntoName, failure: impl Into<Failure>) -> Result<()> {
        self.end_activity(activity_id.into_name(), Err(failure.into())).await
    }

    /// Releases the run from quarantine: it is played again, and its quarantined activities are tried again.
    ///
    /// Code that killed its process too often is quarantined, which [`describe`](Self::describe) shows. The release is durable when
    /// this answers.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// let run = app.handle_raw("order-42");
    /// if run.describe().await?.pending.iter().any(|activity| activity.state == dacapo::ActivityState::Quarantined) {
    ///     run.release().await?; // The corrected program is deployed.
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn release(&self) -> Result<()> {
        Ok(self.client().release(self.run.clone()).await?)
    }

    /// Asks the run to cancel: its waits fail, and its code may clean up before it ends.
    ///
    /// Returns when the request is stored. See [`terminate`](Self::terminate) for a run that does not react.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// run.cancel("the customer has changed their mind").await?;
    /// let ended = tokio::time::timeout(mins(1), run.result()).await;
    /// if ended.is_err() {
    ///     run.terminate("it does not end").await?; // No code of it runs any more: nothing is cleaned up.
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn cancel(&self, reason: &str) -> Result<()> {
        Ok(self.client().cancel(self.run.clone(), reason.to_owned()).await?)
    }

    /// Terminates the run at once, without asking its code. See [`cancel`](Self::cancel) for an example.
    pub async fn terminate(&self, reason: &str) -> Result<()> {
        Ok(self.client().terminate(self.run.clone(), reason.to_owned()).await?)
    }

    /// Deletes the run, which must be closed: it cannot be found any more, and its history is gone for good.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// run.terminate("its customer asked to be forgotten").await?;
    /// run.delete().await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self) -> Result<()> {
        Ok(self.client().delete(self.run.clone()).await?)
    }

    /// Starts the run again from an earlier turn, as a new run: turns before it are kept, what came later is played anew.
    ///
    /// An open run is terminated. Signals it was sent since, and results of what the kept turns began, come to the new run
    /// again; what later turns began is begun anew, under other idempotency keys. Updates that later turns took are undone, although their senders
    /// were answered: send them again under new request ids. Reports of stuck runs name the turn.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// let again = run.reset(3, "turn 3 charged the wrong card").await?;
    /// println!("{}", again.result().await?);
    /// # Ok(()) }
    /// ```
    pub async fn reset(&self, turn: u64, reason: &str) -> Result<Self> {
        let started = self.client().reset(self.run.clone(), turn, reason.to_owned()).await?;
        Ok(Self::new(self.link.clone(), started.run))
    }
}
