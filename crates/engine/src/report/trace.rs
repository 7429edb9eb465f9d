//! What turns tell `tracing`: a span around each that is played for the first time, and silence while one is played again.
//!
//! Workflow code is ordinary code and may log like any other. It runs again on replay, and twice where turns are played
//! twice; nobody listens then, so each thing it says is heard once. A turn that failed and is played anew is a new turn.

use std::sync::{Arc, LazyLock};

use dacapo_core::{Activation, Aside, Completion, Run};
use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, info_span};

use crate::run::cached_run::{About, Body};

/// Plays an activation of a run.
pub(crate) fn play(about: &About, run: &mut Run, activation: Activation) -> Completion {
    let About { workflow, workflow_id, run_id, queue, .. } = about;
    // None has a parent: a turn belongs to its run, and not to whoever happens to have this thread.
    let span = match &activation {
        Activation::Turn(_) if is_replay(&activation) => {
            let _quiet = quiet();
            return run.activate(activation);
        }
        Activation::Turn(_) => info_span!(
            target: "dacapo", parent: None, "turn", %workflow, %workflow_id, %run_id, %queue, turn = run.watch().turn()
        ),
        Activation::Query(queries) => info_span!(
            target: "dacapo", parent: None, "query", %workflow, %workflow_id, %run_id, %queue,
            query = queries.first().map(|query| query.name.as_str()).unwrap_or_default()
        ),
        Activation::Evict => tracing::Span::none(),
    };
    span.in_scope(|| run.activate(activation))
}

/// Whether this was played before.
pub(crate) fn is_replay(activation: &Activation) -> bool {
    matches!(activation, Activation::Turn(turn) if turn.replaying || turn.recorded.is_some())
}

/// For the core, which knows of no log: the second play of a turn is silent.
pub(crate) fn aside() -> Option<Aside> {
    Some(Arc::new(|| Box::new(quiet())))
}

/// Nobody listens to this thread until what this gives is dropped.
fn quiet() -> Option<DefaultGuard> {
    // Where nobody listens at all it must stay so: a dispatcher of ours would look like somebody who does.
    dispatcher::has_been_set().then(|| dispatcher::set_default(&NOBODY))
}

/// Who listens to what was heard before. `Dispatch::none` will not do: `tracing` asks once for each line of code whether
/// anybody listens to it, and where there is but one subscriber it asks the one that this thread has now. A line that is
/// first reached on replay would never be heard. This one is known to `tracing`, so that it asks all there are.
static NOBODY: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Nobody));

struct Nobody;

impl Subscriber for Nobody {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::OFF)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Drop for Body {
    fn drop(&mut self) {
        // A run that leaves memory is no news either, and its destructors may be talkative.
        if let Some(_quiet) = quiet() {
            self.run.activate(Activation::Evict);
        }
    }
}
