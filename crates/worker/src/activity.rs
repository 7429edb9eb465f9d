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
    body: ActivityBody,
}

/// The code of an activity.
#[derive(Clone)]
pub enum ActivityBody {
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
        let body = ActivityBody::Async(Arc::new(move |ctx, input| Box::pin(body(ctx, input))));
        Self { name: name.into(), body }
    }

    /// An activity that blocks its thread.
    pub fn blocking<F>(name: impl Into<Name>, body: F) -> Self
    where
        F: Fn(ActivityCtx, Vec<Payload>) -> Result<Payload, Failure> + Send + Sync + 'static,
    {
        Self { name: name.into(), body: ActivityBody::Blocking(Arc::new(body)) }
    }

    /// Its type, by which workflows call it.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its code.
    pub fn body(&self) -> &ActivityBody {
        &self.body
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.body {
            ActivityBody::Async(_) => "activity",
            ActivityBody::Blocking(_) => "blocking activity",
        };
        write!(f, "{kind} {}", self.name)
    }
}
