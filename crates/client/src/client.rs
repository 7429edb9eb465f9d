//! The trait that every backend implements.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use dacapo_core::{Failure, Inspection, Payload};

use crate::{
    Capabilities, CompleteActivity, Count, Cursor, Description, Feature, Filter, GroupBy, HistoryPage, Node, Page,
    PollUpdate, Problem, QueryRun, RawHistory, ResolvePromise, Result, RunRef, RunResult, SendSignal, SendUpdate,
    StartRun, Started, StuckRuns, UpdateState,
};

/// The answer of a backend. It owns everything it needs, so a caller may await it anywhere.
pub type ClientFuture<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// Receives how many runs a long call has processed so far.
pub type Progress = Box<dyn FnMut(u64) + Send>;

/// The calls that every backend offers.
///
/// A call that changes something is durable when its answer is `Ok`. A backend may begin a call when the verb is called, or
/// when its answer is first polled: the embedded engine begins [`Client::start`] at once, and every other call when it is
/// polled. An answer that is dropped before it is ready leaves open whether the change was made; one that was never polled
/// may have started a run.
///
/// A call that a backend cannot serve answers
/// [`Error::Unsupported`](crate::Error::Unsupported) with the name of the feature: methods with a default body are such features.
///
/// ```
/// use std::sync::Arc;
/// use dacapo_client::{Client, Error, Filter};
///
/// async fn cancel_all(client: Arc<dyn Client>, workflow: String) -> Result<u64, Error> {
///     let filter = Filter { workflow: Some(workflow.into()), ..Filter::open() };
///     let (mut cursor, mut cancelled) = (None, 0);
///     loop {
///         let page = client.list(filter.clone(), cursor, 100).await?;
///         for run in &page.runs {
///             client.cancel(run.reference(), "the release is stopped".into()).await?;
///             cancelled += 1;
///         }
///         cursor = page.next;
///         if cursor.is_none() {
///             return Ok(cancelled);
///         }
///     }
/// }
/// ```
pub trait Client: Send + Sync {
    /// Returns the name of the backend and the features it has.
    fn capabilities(&self) -> &Capabilities;

    /// Starts a run.
    fn start(&self, start: StartRun) -> ClientFuture<Started>;

    /// Sends a signal to an open run.
    fn signal(&self, run: RunRef, signal: SendSignal) -> ClientFuture<()>;

    /// Asks a run a question. The answer includes everything that was acknowledged before the call.
    fn query(&self, run: RunRef, query: QueryRun) -> ClientFuture<Payload>;

    /// Sends an update to an open run and waits until it is accepted or completed. A backend that cannot wait until it is
    /// completed answers [`UpdateState::Accepted`] after a while: the caller goes on with [`Client::update_result`].
    fn update(&self, run: RunRef, update: SendUpdate) -> ClientFuture<UpdateState>;

    /// Waits until an update that was sent before is accepted or completed, by its id alone. May answer
    /// [`UpdateState::Accepted`] early, as [`Client::update`] does.
    fn update_result(&self, run: RunRef, update: PollUpdate) -> ClientFuture<UpdateState>;

    /// Asks an open run to cancel itself.
    fn cancel(&self, run: RunRef, reason: String) -> ClientFuture<()>;

    /// Ends an open run at once, without asking its code.
    fn terminate(&self, run: RunRef, reason: String) -> ClientFuture<()>;

    /// Starts the run again from an earlier turn, as a new run.
    fn reset(&self, run: RunRef, turn: u64, reason: String) -> ClientFuture<Started>;

    /// Waits until the run, and every run it continues as, is closed, and returns its result.
    fn result(&self, run: RunRef) -> ClientFuture<RunResult>;

    /// Like [`Client::result`], but also answers when the run is stuck, with [`Error::Stuck`](crate::Error::Stuck).
    fn result_or_stuck(&self, run: RunRef) -> ClientFuture<RunResult> {
        let _ = run;
        self.unsupported(Feature::ResultOrStuck)
    }

    /// Describes a run: status, pending activities, why it is stuck.
    fn describe(&self, run: RunRef) -> ClientFuture<Description>;

    /// Returns the snapshot that a run published last. A backend that keeps no snapshots asks the code of the run for it.
    fn published(&self, run: RunRef) -> ClientFuture<Option<Payload>> {
        let described = self.describe(run);
        Box::pin(async move { Ok(described.await?.published) })
    }

    /// Lists runs, newest first unless the filter's search has another order, at most `limit` of them, after the page that
    /// returned this cursor.
    fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> ClientFuture<Page>;

    /// Counts runs: all of them, however long that takes.
    fn count(&self, filter: Filter) -> ClientFuture<u64>;

    /// Counts runs, up to [`MAX_COUNT`](crate::MAX_COUNT) in each group. Groups without runs are left out.
    fn counts(&self, filter: Filter, by: Option<GroupBy>) -> ClientFuture<Vec<Count>>;

    /// Returns what has happened in a run, in order, in terms that all backends share: about `limit` events after the page
    /// that returned this cursor. The events of one turn are never split.
    fn history(&self, run: RunRef, after: Option<Cursor>, limit: usize) -> ClientFuture<HistoryPage>;

    /// Returns the history of a run in the backend's own format.
    fn raw_history(&self, run: RunRef) -> ClientFuture<RawHistory>;

    /// Completes the activity attempt that this token names.
    fn complete(&self, token: String, result: Result<Payload, Failure>) -> ClientFuture<()>;

    /// Reports progress of the activity attempt that this token names. Returns why the attempt is cancelled, if it is.
    fn heartbeat(&self, token: String, details: Payload) -> ClientFuture<Option<String>>;

    /// Completes a pending activity by its id.
    fn complete_activity(&self, run: RunRef, completion: CompleteActivity) -> ClientFuture<()>;

    /// Resolves or rejects a promise of a run.
    fn resolve_promise(&self, run: RunRef, resolution: ResolvePromise) -> ClientFuture<()> {
        let _ = (run, resolution);
        self.unsupported(Feature::Promises)
    }

    /// Returns what each unit of the run's code waits for, and where in the code.
    fn inspect(&self, run: RunRef) -> ClientFuture<Inspection> {
        let _ = run;
        self.unsupported(Feature::Inspection)
    }

    /// Releases a quarantined run and its quarantined activities.
    fn release(&self, run: RunRef) -> ClientFuture<()> {
        let _ = run;
        self.unsupported(Feature::Quarantine)
    }

    /// Deletes a closed run and its history.
    fn delete(&self, run: RunRef) -> ClientFuture<()> {
        let _ = run;
        self.unsupported(Feature::Deletion)
    }

    /// Groups stuck runs by their cause, the largest group first.
    fn stuck_runs(&self) -> ClientFuture<Vec<StuckRuns>> {
        self.unsupported(Feature::StuckRuns)
    }

    /// Lists the processes that serve the backend.
    fn nodes(&self) -> ClientFuture<Vec<Node>> {
        self.unsupported(Feature::Nodes)
    }

    /// Checks all stored data and returns what is wrong with it.
    fn verify(&self, progress: Progress) -> ClientFuture<Vec<Problem>> {
        let _ = progress;
        self.unsupported(Feature::Verification)
    }

    /// Copies all data, as of one moment, into a new file on the machine of the backend.
    fn back_up(&self, to: PathBuf) -> ClientFuture<()> {
        let _ = to;
        self.unsupported(Feature::Backup)
    }
}

impl dyn Client {
    /// Returns an error if the backend lacks this feature.
    pub fn require(&self, feature: Feature) -> Result<()> {
        self.capabilities().require(feature)
    }
}

/// Refuses a feature, for default methods.
trait Refuse {
    fn unsupported<T: Send + 'static>(&self, feature: Feature) -> ClientFuture<T>;
}

impl<C: Client + ?Sized> Refuse for C {
    fn unsupported<T: Send + 'static>(&self, feature: Feature) -> ClientFuture<T> {
        Box::pin(std::future::ready(Err(self.capabilities().lacks(feature))))
    }
}
