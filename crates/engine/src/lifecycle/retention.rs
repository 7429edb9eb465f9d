//! How long closed runs are kept. Those whose time is over are deleted, and what they leave goes in small steps beside all
//! other work. A step is one write: it shares a commit with whatever else is written, so that whoever commits never waits
//! for more than one, and there is one of each kind at a time. While runs become too old faster than they are deleted, step
//! follows step; otherwise each is followed by a pause as long as it took.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_store::{RunNo, StoreError, Write, Written};

use crate::inner::Inner;
use crate::timer::wheel::Due;
use crate::{Engine, EngineError, RunId};

/// The most rows that one step removes: more than a commit adds under full load, so that sweeping keeps up.
const STEP: usize = 2_000;
/// The most runs that are deleted by one write.
const PAGE: usize = 200;
/// The longest time between two looks at what has become too old.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Sweeping {
    /// Somebody sweeps: one at a time, however many runs were deleted.
    is_on: AtomicBool,
    /// Runs were deleted since the last step began, which it may not have seen.
    is_wanted: AtomicBool,
    /// More runs are too old than one write deletes.
    is_behind: AtomicBool,
}

impl Engine {
    /// Deletes a closed run: it cannot be found from now on, and what it left goes soon. An open run is refused.
    pub async fn delete(&self, of: &RunId) -> Result<(), EngineError> {
        self.inner.check()?;
        let row = self.reader().row(of)?;
        let (tell, told) = tokio::sync::oneshot::channel();
        self.inner.later(move |this| {
            this.submit(Write::Delete { run: row.no }, move |this, result| {
                if result.is_ok() {
                    this.forget(row.no);
                    this.want_sweep();
                }
                let _ = tell.send(result.map(drop).map_err(EngineError::from));
            });
        });
        told.await.unwrap_or(Err(EngineError::ShutDown))
    }
}

impl Inner {
    /// Begins to look after runs that are too old, and goes on with what an earlier process left of those it deleted.
    pub(crate) fn begin_retention(self: &Arc<Self>) -> Result<(), StoreError> {
        let now = self.host.now();
        if self.store.has_remains()? {
            self.want_sweep();
        }
        if self.options.retention.is_some() {
            self.own_timer(now, Due::Expire);
        }
        Ok(())
    }

    /// Deletes runs that closed too long ago, as far as they are found in one look.
    pub(crate) fn expire(self: &Arc<Self>) {
        let Some(retention) = self.options.retention else { return };
        self.later(move |this| {
            let now = this.host.now();
            let before = Timestamp(now.0.saturating_sub(u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX)));
            match this.store.closed_before(before, PAGE) {
                Ok(runs) if runs.is_empty() => this.expire_later(retention),
                Ok(runs) => this.delete_all(runs, before, retention),
                Err(error) => {
                    tracing::warn!(%error, "runs that are too old cannot be looked up");
                    this.expire_later(retention);
                }
            }
        });
    }

    fn expire_later(self: &Arc<Self>, retention: Duration) {
        self.sweeping.is_behind.store(false, Ordering::Relaxed);
        let pause = (retention / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        self.own_timer(self.host.now().after(pause), Due::Expire);
    }

    /// Deletes these runs, and looks for more at once if there may be.
    fn delete_all(self: &Arc<Self>, runs: Vec<RunNo>, before: Timestamp, retention: Duration) {
        let write = Write::Expire { runs: runs.clone(), before };
        self.submit(write, move |this, result| match result {
            Ok(_) => {
                runs.iter().for_each(|run| this.forget(*run));
                this.sweeping.is_behind.store(runs.len() == PAGE, Ordering::Relaxed);
                this.want_sweep();
                if runs.len() == PAGE { this.expire() } else { this.expire_later(retention) }
            }
            Err(error) => {
                tracing::warn!(%error, "runs that are too old cannot be deleted yet");
                this.own_timer(this.host.now().after(LONGEST_PAUSE), Due::Expire);
            }
        });
    }

    /// Runs were deleted: what they left is to go.
    fn want_sweep(self: &Arc<Self>) {
        self.sweeping.is_wanted.store(true, Ordering::SeqCst);
        if !self.sweeping.is_on.swap(true, Ordering::SeqCst) {
            self.own_timer(self.host.now(), Due::Sweep);
        }
    }

    /// Removes a little of what deleted runs left.
    pub(crate) fn sweep(self: &Arc<Self>) {
        self.later(|this| {
            let began = this.host.now();
            this.sweeping.is_wanted.store(false, Ordering::SeqCst);
            this.submit(Write::Sweep { most: STEP }, move |this, result| {
                let now = this.host.now();
                match result {
                    Ok(Written::Swept { more: true }) if this.sweeping.is_behind.load(Ordering::Relaxed) => {
                        this.sweep()
                    }
                    Ok(Written::Swept { more: true }) => drop(this.own_timer(now.after(now.since(began)), Due::Sweep)),
                    Ok(_) => {
                        this.sweeping.is_on.store(false, Ordering::SeqCst);
                        // Of runs that were deleted since this step it saw nothing, and whoever deleted them saw it at work.
                        if this.sweeping.is_wanted.load(Ordering::SeqCst) {
                            this.want_sweep();
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "what deleted runs left cannot be removed yet");
                        this.own_timer(now.after(LONGEST_PAUSE), Due::Sweep);
                    }
                }
            });
        });
    }
}
