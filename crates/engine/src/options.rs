//! The options of an engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use dacapo_client::{Capabilities, Feature};
use dacapo_core::{Name, OwnPolicy, Pins, Reporter, RunOptions};
use dacapo_worker::{QueueValues, Registry, replay_silencer};

use crate::crash_guard::limits::CrashLimits;

/// The options of an engine.
#[derive(Clone)]
pub struct Options {
    /// The workflows and activities that it can play.
    pub registry: Registry,
    /// The pins that new runs of a workflow keep for life; the default pins where a workflow is not named.
    pub pins: Vec<(Name, Pins)>,
    /// The queues it serves, each with its settings.
    pub queues: BTreeMap<Name, QueueValues>,
    /// The queue of starts that name none. If it is not served, the first one in alphabetical order takes its place.
    pub default_queue: Name,
    /// Which runs stay in memory between turns.
    pub cache: Cache,
    /// Whether every turn is played twice and compared. On in debug and test builds.
    pub double_play: bool,
    /// Whether reports of stuck runs leave payloads out.
    pub redact: bool,
    /// The maximum number of results that one turn takes.
    pub completions_per_turn: usize,
    /// The maximum number of bytes of one payload.
    pub payload_limit: usize,
    /// The maximum number of messages that wait for one run.
    pub message_limit: usize,
    /// The time for which closed runs are kept; for ever by default.
    pub retention: Option<Duration>,
    /// The name of this build, kept with every turn it plays.
    pub build: Name,
    /// The policy of runs that are pinned to one of the user's own.
    pub own_policy: Option<OwnPolicy>,
    /// The limits for code that kills its process.
    pub crash_limits: CrashLimits,
    /// The local folder for notes of what runs, if the store has no place of its own for them.
    pub state_dir: Option<PathBuf>,
    /// The name of the backend and its features, as its clients report them. An engine takes away what its store
    /// lacks: backup, and quarantine where the store keeps no notes of what runs.
    pub capabilities: Capabilities,
}

/// Which runs stay in memory between turns. What a run does never depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// At most so many runs; with 0 every turn is played from the beginning.
    AtMost(usize),
    /// Each run is dropped after a turn with even odds, by this seed: for tests.
    Random(u64),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            registry: Registry::new(),
            pins: Vec::new(),
            queues: BTreeMap::from([(Name::from_static(DEFAULT_QUEUE), QueueValues::default())]),
            default_queue: Name::from_static(DEFAULT_QUEUE),
            cache: Cache::AtMost(10_000),
            double_play: cfg!(debug_assertions),
            redact: false,
            completions_per_turn: 256,
            payload_limit: 2 << 20,
            message_limit: 200_000,
            retention: None,
            build: Name::default(),
            own_policy: None,
            crash_limits: CrashLimits::default(),
            state_dir: None,
            capabilities: Capabilities::new("memory", features()),
        }
    }
}

impl Options {
    /// Serves a queue from now on, and returns its settings.
    pub fn queue(&mut self, queue: impl Into<Name>) -> &mut QueueValues {
        self.queues.entry(queue.into()).or_default()
    }

    /// The options with which a run with these pins is played.
    pub(crate) fn for_run(&self, pins: &Pins, reporter: Option<Reporter>) -> RunOptions {
        RunOptions {
            pins: pins.clone(),
            double_play: self.double_play,
            redact: self.redact,
            reporter,
            own_policy: self.own_policy.clone(),
            silencer: replay_silencer(),
        }
    }

    pub(crate) fn served_queues(&self) -> String {
        let names: Vec<&str> = self.queues.keys().map(Name::as_str).collect();
        names.join(", ")
    }

    pub(crate) fn known_workflows(&self) -> String {
        let names: Vec<&str> = self.registry.workflows().map(Name::as_str).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

/// The features of an engine. It calls no other services, and reads no cron lines.
pub fn features() -> impl Iterator<Item = Feature> {
    Feature::ALL.into_iter().filter(|feature| !matches!(feature, Feature::Nexus | Feature::Cron))
}

/// The task queue that is used where none is named.
pub const DEFAULT_QUEUE: &str = "default";
