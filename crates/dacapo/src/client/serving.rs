//! What serves in this process: shared by the app and by all handles, which keep it alive.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use dacapo_client::{RawHistory, Unplayable};
use dacapo_core::{Name, Transcript};
use dacapo_engine::{Engine, ShutdownReport, Threads, blocking};
use dacapo_worker::{Effective, Health};

use crate::client::Result;
use crate::client::transcript::transcript;

/// An answer that is awaited.
pub(crate) type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Receives how many runs were played so far.
pub(crate) type Played = Box<dyn FnMut(u64) + Send>;

/// A backend as far as it runs in this process. It stops when it is dropped.
pub(crate) trait Serving: Send + Sync {
    /// The effective settings; none if the caller set the backend up.
    fn settings(&self) -> Option<&Effective>;

    /// The health of each queue.
    fn health(&self) -> Vec<(Name, Health)>;

    /// How many threads play turns, and how many of them were abandoned.
    fn turn_threads(&self) -> (usize, usize);

    /// How many runs are in memory.
    fn runs_in_memory(&self) -> usize;

    /// Takes runs at rest out of memory.
    fn evict_idle(&self);

    /// Plays open runs again without changing anything, and returns those that cannot be played.
    fn check_open_runs(&self, progress: Played) -> Waiting<'_, Result<Vec<Unplayable>>>;

    /// Makes our own transcript of a run from a history of another format, by replay.
    fn transcript(&self, history: RawHistory) -> Waiting<'_, Result<Transcript>>;

    /// Shuts down gracefully.
    fn shut_down(&self) -> Waiting<'_, ShutdownReport>;

    /// Stops at once.
    fn stop(&self) -> Waiting<'static, ()>;

    /// Waits until it has to shut down for a reason of its own, and returns the reason.
    fn ends_by_itself(&self) -> Waiting<'_, String>;

    /// Logs what a shutdown will wait for.
    fn log_what_ends(&self);

    /// The embedded engine, for what belongs to a store of its own.
    fn engine(&self) -> Option<&Engine>;
}

/// The embedded engine and its threads.
pub(crate) struct EngineServing {
    pub(crate) engine: Engine,
    /// None if the caller drives the engine, as the test kit does.
    pub(crate) host: Option<Arc<Threads>>,
    /// None if the caller set the engine up.
    pub(crate) settings: Option<Effective>,
    /// The socket for other programs.
    #[cfg(feature = "control")]
    pub(crate) control: Option<dacapo_control::ControlSocket>,
}

impl EngineServing {
    fn close_socket(&self) {
        #[cfg(feature = "control")]
        if let Some(control) = &self.control {
            control.close();
        }
    }
}

impl Serving for EngineServing {
    fn settings(&self) -> Option<&Effective> {
        self.settings.as_ref()
    }

    fn health(&self) -> Vec<(Name, Health)> {
        self.engine.health()
    }

    fn turn_threads(&self) -> (usize, usize) {
        self.host.as_ref().map_or((0, 0), |host| host.turn_threads())
    }

    fn runs_in_memory(&self) -> usize {
        self.engine.runs_in_memory()
    }

    fn evict_idle(&self) {
        self.engine.evict_idle();
    }

    fn check_open_runs(&self, mut progress: Played) -> Waiting<'_, Result<Vec<Unplayable>>> {
        let engine = self.engine.clone();
        Box::pin(async move { Ok(blocking(move || engine.check_open_runs(&mut progress)).await??) })
    }

    fn transcript(&self, history: RawHistory) -> Waiting<'_, Result<Transcript>> {
        Box::pin(async move { transcript(history) })
    }

    fn shut_down(&self) -> Waiting<'_, ShutdownReport> {
        Box::pin(self.engine.shut_down())
    }

    fn stop(&self) -> Waiting<'static, ()> {
        let (engine, host) = (self.engine.clone(), self.host.clone());
        self.close_socket();
        Box::pin(async move {
            // The last commit may be on its way to the disk.
            let _ = blocking(move || stop(&engine, host.as_deref())).await;
        })
    }

    fn ends_by_itself(&self) -> Waiting<'_, String> {
        Box::pin(async { self.engine.shuts_down_by_itself().await.to_string() })
    }

    fn log_what_ends(&self) {
        self.engine.log_what_ends();
    }

    fn engine(&self) -> Option<&Engine> {
        Some(&self.engine)
    }
}

fn stop(engine: &Engine, host: Option<&Threads>) {
    if let Some(host) = host {
        engine.stop();
        host.stop();
    }
}

impl Drop for EngineServing {
    fn drop(&mut self) {
        self.close_socket();
        stop(&self.engine, self.host.as_deref());
    }
}
