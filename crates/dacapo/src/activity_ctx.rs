//! The ctx of an activity: facts about the attempt, its heartbeats and its cancellation.

use std::fmt;
use std::sync::Arc;

use dacapo_core::{Cancelled, Failure, Payload};
use dacapo_worker::ActivityInfo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use crate::Converter;

/// An activity's access to its attempt. Cheap to clone, and usable from any thread or task of the activity.
///
/// An activity that wants one takes it as its first parameter.
///
/// ```
/// use dacapo::prelude::*;
///
/// #[activity]
/// async fn import(ctx: ActivityCtx, files: Vec<String>) -> Result<usize, Failure> {
///     // A repeated attempt goes on where the one before stopped.
///     let done = ctx.details::<usize>()?.unwrap_or(0);
///     for (place, file) in files.iter().enumerate().skip(done) {
///         println!("importing {file}");
///         ctx.heartbeat(&(place + 1))?;
///     }
///     Ok(files.len())
/// }
/// ```
#[derive(Clone)]
pub struct ActivityCtx {
    raw: dacapo_worker::ActivityCtx,
    converter: Converter,
    /// Looks at each report before it leaves, and may change it.
    report: Option<ReportHook>,
}

pub(crate) type ReportHook = Arc<dyn Fn(&ActivityInfo, &mut Payload) + Send + Sync>;

impl ActivityCtx {
    pub(crate) fn new(raw: dacapo_worker::ActivityCtx, converter: Converter, report: Option<ReportHook>) -> Self {
        Self { raw, converter, report }
    }

    /// Returns the ctx of the worker: payloads instead of types.
    pub fn into_raw(self) -> dacapo_worker::ActivityCtx {
        self.raw
    }

    /// Creates a ctx that belongs to no attempt, for calling an activity in a unit test: a first attempt of a nameless
    /// activity, whose heartbeats are dropped.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity]
    /// # async fn greet(ctx: ActivityCtx, name: String) -> Result<String, Failure> { Ok(format!("hello {name}")) }
    /// assert_eq!(greet(ActivityCtx::detached(), "ada".into()).wait(), Ok("hello ada".into()));
    /// ```
    pub fn detached() -> Self {
        dacapo_worker::ActivityCtx::detached().into()
    }

    /// Returns facts about the attempt: its number, its run, its deadline.
    pub fn info(&self) -> &ActivityInfo {
        self.raw.info()
    }

    /// Reports that the attempt is alive, and its progress. The next attempt gets the last report as its
    /// [details](Self::details).
    ///
    /// Fails when the attempt is cancelled, so that a loop of `ctx.heartbeat(&done)?` ends then; the report counts all the
    /// same. A report of more than `payload_limit` bytes fails and does not count.
    ///
    /// A report always resets the heartbeat timeout and costs no write by itself: the worker stores the first one at once
    /// and then at most one in each interval, the latest. The interval is 80 % of the call's `heartbeat_timeout`, at most
    /// `max_heartbeat_throttle_interval` (1 minute); without a heartbeat timeout it is
    /// `default_heartbeat_throttle_interval` (30 seconds). So report as often as you like.
    ///
    /// After a failure or a timeout the next attempt gets the very last report. After a crash of the process it gets
    /// the last one that was stored, which is older by up to one interval: work that was reported since is done again.
    pub fn heartbeat<T: Serialize + ?Sized>(&self, details: &T) -> Result<(), Failure> {
        self.heartbeat_payload(self.converter.encode(details)?)
    }

    /// Returns the last report of an earlier attempt, if there is one. See [`heartbeat`](Self::heartbeat) for what a crash
    /// leaves of it.
    pub fn details<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.info().details.as_ref().map(|details| self.converter.decode(details)).transpose()
    }

    /// Encodes a value with the app's converter, as results and reports of progress are.
    pub fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Payload, Failure> {
        self.converter.encode(value)
    }

    /// Decodes a payload with the app's converter, such as a header of the call.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// #[activity]
    /// async fn charge(ctx: ActivityCtx, order: String) -> Result<String, Failure> {
    ///     let tenant: Option<String> = ctx.info().headers.get("tenant").map(|tenant| ctx.decode(tenant)).transpose()?;
    ///     Ok(format!("{order} is charged to {}", tenant.unwrap_or_default()))
    /// }
    /// ```
    pub fn decode<T: DeserializeOwned>(&self, payload: &Payload) -> Result<T, Failure> {
        self.converter.decode(payload)
    }

    /// Reports progress as [`heartbeat`](Self::heartbeat) does, with a payload that is encoded already.
    pub fn heartbeat_payload(&self, details: impl Into<Payload>) -> Result<(), Failure> {
        let mut details = details.into();
        if let Some(report) = &self.report {
            report(self.info(), &mut details);
        }
        self.raw.heartbeat_payload(details)
    }

    /// Returns a key that is the same for every attempt of this activity and differs from all others. Services that
    /// support idempotency keys then do repeated attempts once.
    ///
    /// A run that was reset is another run, with other keys: where a reset must not pay twice, use a key of your
    /// business, such as the order's number.
    pub fn idempotency_key(&self) -> String {
        self.raw.idempotency_key()
    }

    /// Returns why the attempt is cancelled, or none if it is not.
    pub fn cancellation(&self) -> Option<Cancelled> {
        self.raw.cancellation()
    }

    /// Waits until the attempt is cancelled.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn transfer() -> Result<u64, Failure> { Ok(1) }
    /// # async fn clean_up() {}
    /// #[activity]
    /// async fn download(ctx: ActivityCtx) -> Result<u64, Failure> {
    ///     tokio::select! {
    ///         bytes = transfer() => bytes,
    ///         cancelled = ctx.cancelled() => {
    ///             clean_up().await;
    ///             Err(cancelled.into())
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) -> Cancelled {
        self.raw.cancelled().await
    }

    /// Returns a token for this attempt. A program that has it can complete the attempt, let it fail, or report its
    /// progress, with the calls of the client that take a token, even while the attempt's code runs. A later attempt
    /// has another token.
    pub fn completion_token(&self) -> String {
        self.raw.completion_token()
    }

    /// Leaves this attempt to an external completion, by its [token](Self::completion_token): return this failure as
    /// the error. The attempt gives up its place and is not made again when the process is restarted.
    ///
    /// The attempt's timeouts count from its beginning: set one, because the external completion may never come.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # fn send(_: String) {}
    /// #[activity]
    /// async fn ask(ctx: ActivityCtx, question: String) -> Result<bool, Failure> {
    ///     send(format!("{question} Answer with token {}", ctx.completion_token()));
    ///     Err(ctx.complete_later())
    /// }
    /// ```
    pub fn complete_later(&self) -> Failure {
        self.raw.complete_later()
    }

    /// Starts a task of the attempt on its runtime. The task ends with the attempt, however that ends: at its next
    /// await it is dropped. Await the handle for work that must be done.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.raw.spawn(future)
    }

    /// Cancels the attempt, as a worker does: for unit tests of activities that react to it. The first reason stays.
    pub fn cancel(&self, reason: impl Into<String>) {
        self.raw.cancel(reason);
    }
}

/// Adds types to the ctx of a worker.
impl From<dacapo_worker::ActivityCtx> for ActivityCtx {
    fn from(raw: dacapo_worker::ActivityCtx) -> Self {
        Self::new(raw, Converter::json(), None)
    }
}

impl fmt::Debug for ActivityCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ActivityCtx").field(self.info()).finish()
    }
}
