//! The ctx of an attempt: facts about it, progress reports, and its cancellation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_core::{Cancelled, Failure, Headers, Name, Payload, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::CompletionToken;
use crate::attempt_parts::AttemptParts;

/// The function that takes the progress that an attempt reports.
pub type Heartbeats = Arc<dyn Fn(Payload) + Send + Sync>;

/// Facts about an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityInfo {
    /// The activity's type.
    pub activity: Name,
    /// The activity's id within the run, the same for every attempt.
    pub activity_id: Name,
    /// The type of the workflow that asked for it.
    pub workflow: Name,
    /// The workflow id of the run that asked for it.
    pub workflow_id: Name,
    /// The run id.
    pub run_id: Name,
    /// The queue that the task came through.
    pub queue: Name,
    /// The attempt's number, from 1. An attempt that a crash of the process cut off is made again under the same number and
    /// uses up none of the attempts of the retry policy; on a Temporal cluster it has failed like any other.
    pub attempt: u32,
    /// When the activity was scheduled.
    pub scheduled: Timestamp,
    /// When this attempt began.
    pub started: Timestamp,
    /// When the engine gives up on this attempt, if it has a timeout.
    pub deadline: Option<Timestamp>,
    /// The progress that the last attempt reported.
    pub details: Option<Payload>,
    /// The headers that came beside the arguments.
    pub headers: Headers,
}

/// The ctx of an attempt. Cheap to clone, and usable from anywhere the activity's code goes.
#[derive(Clone)]
pub struct ActivityCtx(Arc<Inner>);

struct Inner {
    info: ActivityInfo,
    heartbeats: Heartbeats,
    /// The most bytes of a report.
    details_limit: usize,
    /// The token of the attempt, where the backend has tokens of its own.
    token: Option<String>,
    cancelled: watch::Sender<Option<Cancelled>>,
    parts: Arc<AttemptParts>,
    /// Whether the code asked for an external completion.
    later: AtomicBool,
}

/// The type of the failure that [`ActivityCtx::complete_later`] returns.
const LATER: &str = "CompleteLater";

impl ActivityCtx {
    /// Creates the ctx of an attempt that begins now and may report so many bytes at a time.
    #[doc(hidden)]
    pub fn new(info: ActivityInfo, heartbeats: Heartbeats, details_limit: usize) -> Self {
        Self::with_token(info, heartbeats, details_limit, None)
    }

    /// Creates a ctx like [`ActivityCtx::new`], of an attempt with a token that the backend made.
    #[doc(hidden)]
    pub fn with_token(info: ActivityInfo, heartbeats: Heartbeats, details_limit: usize, token: Option<String>) -> Self {
        Self(Arc::new(Inner {
            info,
            heartbeats,
            details_limit,
            token,
            cancelled: watch::Sender::new(None),
            parts: Arc::default(),
            later: AtomicBool::new(false),
        }))
    }

    /// Creates a ctx that belongs to no attempt, for calling an activity in a unit test: a first attempt of a nameless
    /// activity, whose progress is dropped.
    pub fn detached() -> Self {
        Self::new(ActivityInfo { attempt: 1, ..ActivityInfo::default() }, Arc::new(|_| {}), usize::MAX)
    }

    /// Returns facts about the attempt.
    pub fn info(&self) -> &ActivityInfo {
        &self.0.info
    }

    /// Returns a key that is the same for every attempt of this activity and differs from all others. Services that
    /// support idempotency keys then do repeated attempts once. A run that was reset is another run, with other keys:
    /// where a reset must not pay twice, use a key of your business, such as the order's number.
    pub fn idempotency_key(&self) -> String {
        let ActivityInfo { workflow_id, run_id, activity_id, .. } = &self.0.info;
        format!("{workflow_id}/{run_id}/{activity_id}")
    }

    /// Returns a token for this attempt. A program that has it can complete the attempt, let it fail, or report its
    /// progress, with the calls of the client that take a token, even while the attempt's code runs. A later attempt
    /// has another token.
    pub fn completion_token(&self) -> String {
        if let Some(token) = &self.0.token {
            return token.clone();
        }
        let ActivityInfo { workflow_id, run_id, activity_id, attempt, .. } = self.0.info.clone();
        CompletionToken { workflow_id, run_id, activity_id, attempt }.to_string()
    }

    /// Leaves this attempt to an external completion, by its [token](Self::completion_token): return this failure as
    /// the error, `return Err(ctx.complete_later())`. The attempt gives up its place and is not made again when the
    /// process is restarted. Its timeouts count from its beginning: set one, because the external completion may never
    /// come.
    pub fn complete_later(&self) -> Failure {
        self.0.later.store(true, Ordering::Relaxed);
        Failure::application("an external caller completes this activity by its token").typed(LATER).non_retryable()
    }

    /// Returns whether an attempt with this result is left to an external completion.
    pub fn is_left_to_others(&self, result: &Result<Payload, Failure>) -> bool {
        let says_so = |failure: &Failure| failure.type_name.as_ref().is_some_and(|name| *name == LATER);
        self.0.later.load(Ordering::Relaxed) && result.as_ref().is_err_and(|failure| failure.chain().any(says_so))
    }

    /// Reports that the attempt is alive, and its progress. The next attempt gets the last report; after a crash of the
    /// process, the last one that was stored (`default_heartbeat_throttle_interval` and
    /// `max_heartbeat_throttle_interval` set how often reports are stored).
    ///
    /// # Errors
    /// The cancellation of the attempt, as a failure; the report counts all the same. A failure of type `PayloadTooLarge` for a
    /// report that is larger than `payload_limit`, which does not count.
    pub fn heartbeat_payload(&self, details: impl Into<Payload>) -> Result<(), Failure> {
        let (details, limit) = (details.into(), self.0.details_limit);
        let size = details.inline_size();
        if size > limit {
            let message = format!(
                "the report of progress is {size} bytes long, at most {limit} are allowed: store it elsewhere and report a reference"
            );
            return Err(Failure::application(message).typed("PayloadTooLarge").non_retryable());
        }
        (self.0.heartbeats)(details);
        self.cancellation().map_or(Ok(()), |cancelled| Err(cancelled.into()))
    }

    /// Returns why the attempt is cancelled. None: it is not.
    pub fn cancellation(&self) -> Option<Cancelled> {
        self.0.cancelled.borrow().clone()
    }

    /// Waits until the attempt is cancelled.
    pub async fn cancelled(&self) -> Cancelled {
        let mut cancelled = self.0.cancelled.subscribe();
        let reason = cancelled.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        // The sender is in this ctx, so the wait cannot end without a reason.
        reason.unwrap_or(Cancelled { reason: String::new() })
    }

    /// Starts a task of the attempt on its runtime. The task ends with the attempt, however that ends: at its next
    /// await it is dropped. Await the handle for work that must be done; this ctx tells the task whether the attempt is
    /// cancelled.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.parts.spawn(future)
    }

    pub(crate) fn parts(&self) -> &Arc<AttemptParts> {
        &self.0.parts
    }

    /// Cancels the attempt. The first reason stays.
    pub fn cancel(&self, reason: impl Into<String>) {
        self.0.cancelled.send_if_modified(|cancelled| match cancelled {
            Some(_) => false,
            None => {
                *cancelled = Some(Cancelled { reason: reason.into() });
                true
            }
        });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A ctx that belongs to no attempt has no code to end with.
        self.parts.close();
    }
}

impl fmt::Debug for ActivityCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ActivityCtx").field(&self.0.info).finish()
    }
}
