//! Registered activities: a name, and code that may have side effects.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use dacapo_core::{Failure, Name, Payload};

use crate::ActivityCtx;

/// The future of an async activity.
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
    /// Async code: a task of the runtime runs it.
    Async(Arc<dyn Fn(ActivityCtx, Vec<Payload>) -> ActivityFuture + Send + Sync>),
    /// Blocking code: a thread of its own runs it.
    Blocking(Arc<dyn Fn(ActivityCtx, Vec<Payload>) -> Result<Payload, Failure> + Send + Sync>),
}

impl Activity {
    /// Creates an async activity.
    pub fn new<F, P>(name: impl Into<Name>, body: F) -> Self
    where
        F: Fn(ActivityCtx, Vec<Payload>) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let body = ActivityCode::Async(Arc::new(move |ctx, input| Box::pin(body(ctx, input))));
        Self { name: name.into(), body }
    }

    /// Creates an activity that blocks its thread.
    pub fn blocking<F>(name: impl Into<Name>, body: F) -> Self
    where
        F: Fn(ActivityCtx, Vec<Payload>) -> Result<Payload, Failure> + Send + Sync + 'static,
    {
        Self { name: name.into(), body: ActivityCode::Blocking(Arc::new(body)) }
    }

    /// Returns the activity's type, by which workflows call it.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the activity's code.
    pub fn code(&self) -> &ActivityCode {
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
