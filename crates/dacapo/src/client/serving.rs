//! What serves in this process: shared by the app and by all handles, which keep it alive.

use std::sync::Arc;

use dacapo_engine::{Engine, Threads};
use dacapo_worker::Effective;

pub(crate) struct Serving {
    pub(crate) engine: Engine,
    /// None if the caller drives the engine, as the test kit does.
    pub(crate) host: Option<Arc<Threads>>,
    /// None if the caller set the engine up.
    pub(crate) settings: Option<Effective>,
}

impl Serving {
    pub(crate) fn stop(&self) {
        if let Some(host) = &self.host {
            self.engine.stop();
            host.stop();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}
