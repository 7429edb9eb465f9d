//! Activities as a worker knows them: a name, and the code that touches the world.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use dacapo_core::{Failure, Name, Payload};

use crate::ActivityCtx;

/// What an async activity is while it runs.
pub type ActivityFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// A registered activity.
#[derive(Clone)]
pub struct Activity {
    name: Name,
    body: ActivityCode,
}

/// The code of an activity.
#[derive(Clone)]
pub enum ActivityCode {
    /// It awaits: a task of the runtime runs it.
    Async(Arc<dyn Fn(ActivityCtx, Vec<Payload>) -> ActivityFuture + Send + Sync>),
    /// It blocks: a thread of its own runs it.
    Blocking(Arc<dyn Fn(ActivityCtx, Vec<Payload>) -> Result<Payload, Failure> + Send + Sync>),
}

impl Activity {
    /// An activity that awaits.
    pub fn new<F, P>(name: impl Into<Name>, body: F) -> Self
    where
        F: Fn(ActivityCtx, Vec<Payload>) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let body = ActivityCode::Async(Arc::new(move |ctx, input| Box::pin(body(ctx, input))));
        Self { name: name.into(), body }
    }

    /// An activity that blocks its thread.
    pub fn blocking<F>(name: impl Into<Name>, body: F) -> Self
    where
        F: Fn(ActivityCtx, Vec<Payload>) -> Result<Payload, Failure> + Send + Sync + 'static,
    {
        Self { name: name.into(), body: ActivityCode::Blocking(Arc::new(body)) }
    }

    /// Its type, by which workflows call it.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its code.
    pub fn body(&self) -> &ActivityCode {
        &self.body
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.body {
            ActivityCode::Async(_) => "activity",
            ActivityCode::Blocking(_) => "blocking activity",
        };
        write!(f, "{kind} {}", self.name)
    }
}
