//! The replay silencer: workflow code's log lines are suppressed on replay, because the first play has logged them.
//!
//! Workflow code is ordinary code and may log like any other. It runs again on replay, and twice where turns are played
//! twice; no subscriber gets its lines then, so that each line is logged once. A turn that failed and is played again
//! is a new turn, and is logged.

use std::sync::{Arc, LazyLock};

use dacapo_core::ReplaySilencer;
use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Silences `tracing` on this thread until the guard is dropped. None where no subscriber is installed, because the
/// silencer's own would look like one of the program's.
pub fn silence() -> Option<DefaultGuard> {
    dispatcher::has_been_set().then(|| dispatcher::set_default(&SILENT))
}

/// Returns the silencer for the core, which does no logging itself: the second play of a turn is silent.
pub fn replay_silencer() -> Option<ReplaySilencer> {
    Some(Arc::new(|| Box::new(silence())))
}

/// The subscriber of silent threads. `Dispatch::none` would not work: `tracing` asks once for each call site whether a
/// subscriber is interested in it, and where there is only one it asks the one that this thread has now. A line that is
/// first reached on replay would never be logged. This subscriber is known to `tracing`, so `tracing` asks all that
/// exist.
static SILENT: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Silent));

struct Silent;

impl Subscriber for Silent {
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
