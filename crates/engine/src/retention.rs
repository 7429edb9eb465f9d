//! How long closed runs are kept. Those whose time is over are deleted, and what they leave goes in small steps beside all
//! other work: a step is followed by a pause at least as long as it took, so that whoever commits never waits for much.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_store::{Refused, RunNo, StoreError, Write, Written};

use crate::inner::Inner;
use crate::timers::Due;
use crate::{Engine, EngineError, RunId};

/// The most rows that one step removes.
const STEP: usize = 500;
/// The most runs that are looked up at a time.
const PAGE: usize = 100;
/// The longest time between two looks at what has become too old.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

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
                    this.own_timer(this.host.now(), Due::Sweep);
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
            self.own_timer(now, Due::Sweep);
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
            let expired = Timestamp(now.0.saturating_sub(u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX)));
            match this.store.closed_before(expired, PAGE) {
                Ok(runs) if runs.is_empty() => this.expire_later(retention),
                Ok(runs) => this.delete_all(runs.into()),
                Err(error) => {
                    tracing::warn!(%error, "runs that are too old cannot be looked up");
                    this.expire_later(retention);
                }
            }
        });
    }

    fn expire_later(self: &Arc<Self>, retention: Duration) {
        let pause = (retention / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        self.own_timer(self.host.now().after(pause), Due::Expire);
    }

    /// Deletes these runs one after the other, sweeps up after them, and looks for more.
    fn delete_all(self: &Arc<Self>, mut runs: std::collections::VecDeque<RunNo>) {
        let Some(run) = runs.pop_front() else {
            self.own_timer(self.host.now(), Due::Sweep);
            self.own_timer(self.host.now(), Due::Expire);
            return;
        };
        self.submit(Write::Delete { run }, move |this, result| match result {
            Ok(_) | Err(StoreError::Refused(Refused::NoSuchRun | Refused::Open)) => {
                this.forget(run);
                this.later(move |this| this.delete_all(runs));
            }
            Err(error) => {
                tracing::warn!(%run, %error, "a run that is too old cannot be deleted yet");
                this.own_timer(this.host.now().after(LONGEST_PAUSE), Due::Expire);
            }
        });
    }

    /// Removes a little of what deleted runs left.
    pub(crate) fn sweep(self: &Arc<Self>) {
        self.later(|this| {
            let began = this.host.now();
            this.submit(Write::Sweep { most: STEP }, move |this, result| {
                let now = this.host.now();
                match result {
                    Ok(Written::Swept { more: true }) => {
                        this.own_timer(now.after(now.since(began)), Due::Sweep);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "what deleted runs left cannot be removed yet");
                        this.own_timer(now.after(LONGEST_PAUSE), Due::Sweep);
                    }
                }
            });
        });
    }
}
