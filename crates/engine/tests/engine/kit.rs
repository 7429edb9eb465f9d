//! What the tests of this suite share: options from workflows and activities, and a play over every cache.

use std::sync::{Arc, Mutex};

use dacapo_core::{Ctx, Failure, Payload, Workflow};
use dacapo_engine::{Cache, Options};
use dacapo_store::Status;
use dacapo_testkit::{CACHES, Stage};
use dacapo_worker::{Activity, ActivityCtx};

/// Options that serve nothing yet.
pub(crate) fn options() -> Options {
    Options { build: "test".into(), ..Options::default() }
}

/// Adds things to serve.
pub(crate) trait Serve {
    fn workflow<F, P>(self, name: &'static str, code: F) -> Self
    where
        F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static;
    fn activity<F>(self, name: &'static str, code: F) -> Self
    where
        F: Fn(ActivityCtx, Payload) -> Result<Payload, Failure> + Send + Sync + 'static;
    fn cache(self, cache: Cache) -> Self;
}

impl Serve for Options {
    fn workflow<F, P>(mut self, name: &'static str, code: F) -> Self
    where
        F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let workflow = Workflow::new(name, move |ctx, input: Vec<Payload>| {
            code(ctx, input.into_iter().next().unwrap_or_default())
        });
        self.registry.workflow(workflow).unwrap();
        self
    }

    fn activity<F>(mut self, name: &'static str, code: F) -> Self
    where
        F: Fn(ActivityCtx, Payload) -> Result<Payload, Failure> + Send + Sync + 'static,
    {
        let activity =
            Activity::blocking(name, move |ctx, input| code(ctx, input.into_iter().next().unwrap_or_default()));
        self.registry.activity(activity).unwrap();
        self
    }

    fn cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }
}

/// Notes that activities leave in the world.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Vec<String>>>);

impl World {
    pub(crate) fn note(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

pub(crate) fn text(payload: &Payload) -> String {
    payload.as_text().unwrap_or_default().to_owned()
}

pub(crate) fn completed(text: &str) -> (Status, Result<Payload, Failure>) {
    (Status::Completed, Ok(Payload::from(text.to_owned())))
}

/// Plays a story over every cache, and checks that all of them leave the same histories, byte for byte. The story gives
/// the workflow ids whose histories are compared.
#[track_caller]
pub(crate) fn over_every_cache(options: impl Fn() -> Options, story: impl Fn(&Stage) -> Vec<&'static str>) {
    let mut first: Option<Vec<String>> = None;
    for cache in CACHES {
        let stage = Stage::new(options().cache(cache));
        let ids = story(&stage);
        let histories: Vec<String> = ids.into_iter().map(|id| stage.history(id)).collect();
        match &first {
            None => first = Some(histories),
            Some(first) => assert_eq!(*first, histories, "{cache:?} and {:?} differ", CACHES[0]),
        }
    }
}
