//! A program that serves.

use std::sync::Arc;

use dacapo_core::Name;
use dacapo_engine::{Engine, RunId, Threads};
use serde_json::Value;

use crate::client::{Handle, IntoName, Runs, StartCall};
use crate::{WorkflowFn, WorkflowType};

/// A program that serves workflows and activities. Cheap to clone; all clones are one program, and it serves until it is
/// shut down or the last clone is gone. What was committed stays, and the next process goes on from there.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    /// None if somebody else drives the engine.
    host: Option<Arc<Threads>>,
    runs: Runs,
}

impl App {
    pub(crate) fn new(engine: Engine, host: Arc<Threads>, runs: Runs) -> Self {
        Self { inner: Arc::new(Inner { engine, host: Some(host), runs }) }
    }

    /// An app over an engine that somebody else drives, as the test kit does.
    pub fn over_engine(engine: Engine) -> Self {
        let runs = Runs::new(engine.reader().clone());
        Self { inner: Arc::new(Inner { engine, host: None, runs }) }
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Starts a workflow: set options, then await it for a handle on the run. The start is durable when it answers.
    pub fn start<F, P>(
        &self,
        workflow: F,
        input: <F::Workflow as WorkflowType>::Input,
    ) -> StartCall<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        StartCall::new(self.clone(), Name::from_static(F::Workflow::NAME), F::Workflow::encode(input))
    }

    /// Starts a workflow that is known by its name only. Several arguments are several values.
    pub fn start_raw(&self, workflow: impl IntoName, input: impl IntoIterator<Item = Value>) -> StartCall<Value> {
        StartCall::new(
            self.clone(),
            workflow.into_name(),
            input.into_iter().map(|value| crate::encode(&value)).collect(),
        )
    }

    /// A handle on the open run of this workflow id, or the last, known to be of this workflow.
    pub fn handle<F, P>(&self, workflow: F, workflow_id: impl IntoName) -> Handle<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        Handle::new(self.clone(), RunId::of(workflow_id.into_name()))
    }

    /// A handle on the open run of this workflow id, or the last, whatever its workflow.
    pub fn handle_raw(&self, workflow_id: impl IntoName) -> Handle<Value> {
        Handle::new(self.clone(), RunId::of(workflow_id.into_name()))
    }

    /// A handle on the open run of this workflow id, or the last, which is known to come to an `O`.
    pub fn handle_of<O>(&self, workflow_id: impl IntoName) -> Handle<O> {
        Handle::new(self.clone(), RunId::of(workflow_id.into_name()))
    }

    /// The runs, to look at.
    pub fn runs(&self) -> &Runs {
        &self.inner.runs
    }

    /// How many threads play turns, and how many of them were abandoned because a turn did not return.
    pub fn turn_threads(&self) -> (usize, usize) {
        self.inner.host.as_ref().map_or((0, 0), |host| host.turn_threads())
    }

    /// How many runs are in memory.
    pub fn runs_in_memory(&self) -> usize {
        self.engine().runs_in_memory()
    }

    /// Takes runs at rest out of memory. Each is loaded again when something comes for it.
    pub fn evict_idle(&self) {
        self.engine().evict_idle();
    }

    /// Stops serving. Attempts that run are given up and tried again by the next process; those who wait are told.
    pub async fn shutdown(self) {
        let inner = self.inner;
        // The last commit may be on its way to the disk.
        let _ = tokio::task::spawn_blocking(move || inner.stop()).await;
    }
}

impl Inner {
    fn stop(&self) {
        if let Some(host) = &self.host {
            self.engine.stop();
            host.stop();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}
