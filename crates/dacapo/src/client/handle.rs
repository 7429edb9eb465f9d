//! A hold on a run.

use std::fmt;
use std::marker::PhantomData;

use dacapo_client::{
    Client, CompleteActivity, Cursor, Description, HistoryPage, QueryRun, RawHistory, ResolvePromise, RunHistory,
    RunRef, RunResult,
};
use dacapo_core::{Failure, Inspection, Name, Payload, Transcript};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::link::Link;
use crate::client::{Error, IntoName, Result, SignalCall, UpdateCall, UpdateHandle};
use crate::{Promise, Query, Signal, Update};

/// How many events of a history are asked for at a time.
const EVENTS: usize = 10_000;
/// The format of a history of our own.
const TRANSCRIPT: &str = "dacapo-transcript";

/// A handle on a run whose result is an `O`: sends it messages, asks it, waits for its result.
///
/// A handle from [`App::start`](crate::Connection::start) names the very run that was started. When that run continues as
/// new, it is closed: [`result`](Self::result) follows it to the last run of the chain, and every other call is still about
/// the run that the handle names. [`latest`](Self::latest) gives a handle on whichever run of the workflow id is open, as
/// [`App::handle`](crate::Connection::handle) does.
///
/// It keeps the connection by which it was made: an app serves as long as a handle of it is left.
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

    /// Whether the start that gave this handle started the run, and did not find it started before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The program's name for the run.
    pub fn workflow_id(&self) -> &str {
        &self.run.workflow_id
    }

    /// The run id, if this is a handle on one certain run of the workflow id.
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

    /// Names one run of the workflow id, by its run id.
    #[must_use]
    pub fn with_run_id(mut self, run_id: impl IntoName) -> Self {
        self.run = RunRef::exact(self.run.workflow_id, run_id.into_name());
        self
    }

    /// Waits until the run is closed, and gives its result. A run that goes on as another is followed. A run that ended in
    /// any other way is an [`Error::Run`]. A run that is stuck is open, and keeps this waiting until it goes on and ends:
    /// see [`Handle::result_or_stuck`].
    pub async fn result(&self) -> Result<O>
    where
        O: DeserializeOwned,
    {
        self.decoded(self.client().result(self.run.clone()).await?)
    }

    /// The same for those who would rather know: it also ends when the run is stuck, or is already, with
    /// [`ClientError::Stuck`](crate::ClientError::Stuck), which says why. The run stays open.
    pub async fn result_or_stuck(&self) -> Result<O>
    where
        O: DeserializeOwned,
    {
        self.decoded(self.client().result_or_stuck(self.run.clone()).await?)
    }

    fn decoded(&self, RunResult { status, result }: RunResult) -> Result<O>
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
    pub fn signal<T: Serialize>(&self, signal: Signal<T>, value: T) -> SignalCall {
        SignalCall::new(self.link.clone(), self.run.clone(), signal.name().into(), self.link.converter().encode(&value))
    }

    /// Sends a signal by name and JSON.
    pub fn signal_raw(&self, name: impl IntoName, value: Value) -> SignalCall {
        SignalCall::new(self.link.clone(), self.run.clone(), name.into_name(), self.link.converter().encode(&value))
    }

    /// Asks the run a question. The answer takes into account all that was acknowledged before. A closed run can be asked
    /// as well; it is played again for that.
    pub async fn query<I: Serialize, A: DeserializeOwned>(&self, query: Query<I, A>, input: I) -> Result<A> {
        let answer = self.ask(query.name().into(), self.link.converter().encode(&input)).await?;
        (self.link.converter().decode(&answer))
            .map_err(|failure| Error::value_of(format_args!("answer to query {:?}", query.name()), failure))
    }

    /// Asks the run a question by name and JSON.
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
    pub fn update<I: Serialize, A>(&self, update: Update<I, A>, input: I) -> UpdateCall<A> {
        UpdateCall::new(self.link.clone(), self.run.clone(), update.name().into(), self.link.converter().encode(&input))
    }

    /// Sends an update by name and JSON.
    pub fn update_raw(&self, name: impl IntoName, input: Value) -> UpdateCall<Value> {
        UpdateCall::new(self.link.clone(), self.run.clone(), name.into_name(), self.link.converter().encode(&input))
    }

    /// Returns a handle on an update that was sent before, by its request id: for a program that was restarted while it waited.
    pub fn update_handle<I, A>(&self, update: Update<I, A>, request_id: impl IntoName) -> UpdateHandle<A> {
        let _ = update;
        UpdateHandle::new(self.link.clone(), self.run.clone(), request_id.into_name())
    }

    /// Keeps a promise of the run. The first resolution holds.
    pub async fn resolve<T: Serialize>(&self, promise: Promise<T>, value: T) -> Result<()> {
        let value = self.link.converter().encode(&value).map_err(Error::value)?;
        self.settle_promise(promise.name().into(), Ok(value)).await
    }

    /// Breaks a promise of the run.
    pub async fn reject<T>(&self, promise: Promise<T>, failure: impl Into<Failure>) -> Result<()> {
        self.settle_promise(promise.name().into(), Err(failure.into())).await
    }

    /// Keeps a promise of the run by its name or its id, with JSON.
    pub async fn resolve_raw(&self, promise: impl IntoName, value: Value) -> Result<()> {
        let value = self.link.converter().encode(&value).map_err(Error::value)?;
        self.settle_promise(promise.into_name(), Ok(value)).await
    }

    /// Breaks a promise of the run by its name or its id.
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

    /// Gives a pending activity its result from outside, by the id that [`Handle::describe`] shows and
    /// [`ActivityInfo`](crate::ActivityInfo) holds. An attempt that runs is given up; the first result holds.
    pub async fn complete_activity<T: Serialize>(&self, activity_id: impl IntoName, result: &T) -> Result<()> {
        let result = self.link.converter().encode(result).map_err(Error::value)?;
        self.end_activity(activity_id.into_name(), Ok(result)).await
    }

    /// Lets a pending activity fail from outside, for good.
    pub async fn fail_activity(&self, activity_id: impl IntoName, failure: impl Into<Failure>) -> Result<()> {
        self.end_activity(activity_id.into_name(), Err(failure.into())).await
    }

    /// Has the run played again, if it is quarantined, and its quarantined activities tried again: what was not played or tried
    /// any more because the process died too often meanwhile. [`Handle::describe`] shows it. Durable when this answers.
    pub async fn release(&self) -> Result<()> {
        Ok(self.client().release(self.run.clone()).await?)
    }

    /// Asks the run to cancel: its waits fail, and its code may clean up.
    pub async fn cancel(&self, reason: &str) -> Result<()> {
        Ok(self.client().cancel(self.run.clone(), reason.to_owned()).await?)
    }

    /// Ends the run at once. Its code is not asked.
    pub async fn terminate(&self, reason: &str) -> Result<()> {
        Ok(self.client().terminate(self.run.clone(), reason.to_owned()).await?)
    }

    /// Deletes the run, which must be closed: it cannot be found any more, and its history is gone for good.
    pub async fn delete(&self) -> Result<()> {
        Ok(self.client().delete(self.run.clone()).await?)
    }

    /// Begins the run again from an earlier turn, as a new run: turns before it are kept, what came later is played anew.
    /// An open run is terminated. Signals it was sent since, and results of what the kept turns began, come to the new run
    /// again; what later turns began is begun anew, under other idempotency keys.
    pub async fn reset(&self, turn: u64, reason: &str) -> Result<Self> {
        let started = self.client().reset(self.run.clone(), turn, reason.to_owned()).await?;
        Ok(Self::new(self.link.clone(), started.run))
    }

    /// How the run stands: its status, its pending activities with attempt and last failure, and why it is stuck, if it is.
    pub async fn describe(&self) -> Result<Description> {
        Ok(self.client().describe(self.run.clone()).await?)
    }

    /// What every unit of the run waits for, and where. The run may have to be played again for that.
    pub async fn inspect(&self) -> Result<Inspection> {
        Ok(self.client().inspect(self.run.clone()).await?)
    }

    /// What has happened in the run, in order, in terms that all backends share.
    pub async fn history(&self) -> Result<RunHistory> {
        let mut events = Vec::new();
        let mut after = None;
        loop {
            let page = self.client().history(self.run.clone(), after, EVENTS).await?;
            events.extend(page.events);
            after = page.next;
            if after.is_none() {
                return Ok(RunHistory(events));
            }
        }
    }

    /// Returns a page of what [`Handle::history`] returns: about `limit` events after the page that ended at this cursor.
    pub async fn history_page(&self, after: Option<Cursor>, limit: usize) -> Result<HistoryPage> {
        Ok(self.client().history(self.run.clone(), after, limit).await?)
    }

    /// All turns of the run, as a replay needs them. Backends that keep other histories have none.
    pub async fn transcript(&self) -> Result<Transcript> {
        transcript(self.client().raw_history(self.run.clone()).await?)
    }

    /// The snapshot that the run published last, without disturbing it.
    pub async fn published<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let published = self.describe().await?.published;
        published.map(|snapshot| self.link.converter().decode(&snapshot).map_err(Error::value)).transpose()
    }
}

/// Reads the transcript of a run.
pub(crate) fn transcript(raw: RawHistory) -> Result<Transcript> {
    if raw.format != TRANSCRIPT {
        return Err(Error::Value(Box::new(Failure::application(format!(
            "a transcript was asked for, and the backend has a history of format {:?}",
            raw.format
        )))));
    }
    let unreadable = |error| Failure::application(format!("the transcript cannot be read: {error}"));
    Transcript::from_text(&raw.text).map_err(|error| Error::value(unreadable(error)))
}
