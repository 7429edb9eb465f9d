//! The meters: counters, gauges and histograms for the recorder of the `metrics` facade that the program installs.
//!
//! Every meter is a row of one table, which `docs/operate.md` shows. A worker makes its handles once, when it is
//! created, so that a turn formats and looks up nothing; a recorder that is installed after that gets nothing. Without
//! a recorder, a handle is an empty pointer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use dacapo_core::{Failure, FailureKind, Name, Payload};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level as Importance, Metadata, Unit};

/// The number of the table of meters. It rises when a name, a kind or a label changes: dashboards depend on them.
pub const METERS_NUMBER: u32 = 3;

/// One counter, gauge or histogram.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The meter's name.
    pub name: &'static str,
    /// The meter's kind.
    pub kind: MeterKind,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// A description, in a sentence.
    pub about: &'static str,
}

/// The kind of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterKind {
    /// A number that only rises.
    Counter,
    /// A number that shows how many there are now.
    Gauge,
    /// A distribution of numbers.
    Histogram,
    /// A distribution of times in seconds.
    Seconds,
}

impl fmt::Display for MeterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Seconds => "histogram, seconds",
        })
    }
}

macro_rules! meters {
    ($($row:ident: $kind:ident $name:literal [$($label:literal)*] $about:literal;)*) => {
        $(
            #[doc = $about]
            pub const $row: Meter =
                Meter { name: $name, kind: MeterKind::$kind, labels: &[$($label),*], about: $about };
        )*

        /// The table of meters.
        const TABLE: &[Meter] = &[$($row),*];
    };
}

/// All meters, by name.
pub mod meter {
    use super::{Meter, MeterKind};

    meters! {
        TURNS: Counter "dacapo_turns_total" ["queue"] "Turns that were played for the first time, failed ones included.";
        TURN_SECONDS: Seconds "dacapo_turn_seconds" ["queue"] "How long the workflow code of a turn took when it was played for the first time.";
        TURNS_WAITING: Gauge "dacapo_turns_waiting" ["queue"] "Turns that wait for a thread.";
        TURNS_PLAYING: Gauge "dacapo_turns_playing" ["queue"] "Turns that a thread is playing, without those that were given up on.";
        ACTIVITIES_WAITING: Gauge "dacapo_activities_waiting" ["queue"] "Activities that are ready and wait until fewer attempts run than the settings allow.";
        ACTIVITIES_RUNNING: Gauge "dacapo_activities_running" ["queue"] "Activities of which an attempt is running.";
        ACTIVITIES_UNSERVED: Gauge "dacapo_activities_unserved" ["queue"] "Activities that wait because this program does not serve their type.";
        QUEUE_UNSERVED: Gauge "dacapo_queue_unserved" ["queue"] "1 for each task queue in which runs or activities wait and which this process does not serve.";
        RUNS_STARTED: Counter "dacapo_runs_started_total" ["workflow"] "Runs that this process started, children and runs that continue another included.";
        RUNS_CLOSED: Counter "dacapo_runs_closed_total" ["workflow" "status"] "Runs that closed in this process: `completed`, `failed`, `cancelled`, `terminated`, `timed_out` or `continued_as_new`.";
        RUNS_OPEN: Gauge "dacapo_runs_open" ["workflow"] "Runs that are open, counted in the background after the store was opened. Where several nodes share a store, those of the node's shards: the sum over the nodes is that of the store.";
        ATTEMPTS: Counter "dacapo_attempts_total" ["queue" "activity" "outcome"] "Attempts of activities and of side effects (`activity` is `side effect` for all of these) that are over: `completed`, `failed`, `timed_out`, `cancelled`, `left` to external completion, or `given_up` because the workflow no longer awaits it.";
        ATTEMPT_SECONDS: Seconds "dacapo_attempt_seconds" ["queue" "activity"] "How long an attempt took, until it was over or given up.";
        COMMIT_SECONDS: Seconds "dacapo_commit_seconds" [] "How long a write took from its submission until it was durable or refused.";
        COMMIT_BATCH_SIZE: Histogram "dacapo_commit_batch_size" [] "How many writes shared one transaction.";
        CACHE_HITS: Counter "dacapo_cache_hits_total" ["queue"] "Plays that found their run in memory.";
        REPLAYS: Counter "dacapo_replays_total" ["queue"] "Plays that had to load their run and to play its recorded turns again.";
        REPLAYED_TURNS: Counter "dacapo_replayed_turns_total" ["queue"] "Recorded turns that were played again.";
        RUNS_IN_MEMORY: Gauge "dacapo_runs_in_memory" [] "Runs that are in memory.";
        STUCK: Counter "dacapo_stuck_total" ["queue"] "How often a run got stuck because it could not be played.";
        STUCK_RUNS: Gauge "dacapo_stuck_runs" ["queue"] "Runs that are stuck, or are played again and have not gone on yet.";
        DEADLOCKS: Counter "dacapo_deadlocks_total" ["queue"] "Turns that did not return within the deadlock timeout.";
        TERMINATING: Gauge "dacapo_terminating" ["queue"] "Attempts and turns that were asked to stop and are still within the grace period.";
        ZOMBIES: Gauge "dacapo_zombies" ["queue"] "Attempts and turns that were asked to stop and still run after the grace period.";
        STOPPED: Gauge "dacapo_stopped" [] "1 once the engine has stopped because of its store; the process has to be started again.";
        RECONNECTS: Counter "dacapo_postgres_reconnects_total" [] "How often the connection to PostgreSQL over which a node commits was lost and made again.";
        CONFLICTS: Counter "dacapo_postgres_conflicts_total" [] "Transactions that another one was in the way of, and that were made again.";
        RECEIPTS: Counter "dacapo_postgres_receipts_total" [] "Groups of writes whose answer was lost with the connection, and that had been committed.";
        DEAD_NODES: Counter "dacapo_postgres_dead_nodes_total" [] "Other nodes that this one took for dead, because their leases were over.";
        LEASE_LEFT: Gauge "dacapo_postgres_lease_left" [] "Seconds that were left of the node's lease when it was last renewed. Near 0, the other nodes soon take this one for dead.";
    }

    pub(super) const fn all() -> &'static [Meter] {
        TABLE
    }
}

/// Returns the table of meters.
pub fn all_meters() -> impl Iterator<Item = &'static Meter> {
    meter::all().iter()
}

/// Describes all meters to the recorder.
pub fn describe_meters() {
    metrics::with_recorder(|recorder| {
        for Meter { name, kind, about, .. } in all_meters().copied() {
            match kind {
                MeterKind::Counter => recorder.describe_counter(name.into(), Some(Unit::Count), about.into()),
                MeterKind::Gauge => recorder.describe_gauge(name.into(), Some(Unit::Count), about.into()),
                MeterKind::Histogram => recorder.describe_histogram(name.into(), Some(Unit::Count), about.into()),
                MeterKind::Seconds => recorder.describe_histogram(name.into(), Some(Unit::Seconds), about.into()),
            }
        }
    });
}

const METADATA: Metadata<'static> = Metadata::new("dacapo", Importance::INFO, Some(module_path!()));

impl Meter {
    fn key(&self, values: &[&str]) -> Key {
        assert_eq!(self.labels.len(), values.len(), "every label of a meter has a value");
        let label = |(name, value): (&&'static str, &&str)| Label::new(*name, (*value).to_owned());
        Key::from_parts(self.name, self.labels.iter().zip(values).map(label).collect::<Vec<_>>())
    }

    /// Returns a handle on the meter as a counter, with these values of its labels.
    pub fn counter(&self, values: &[&str]) -> Counter {
        metrics::with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA))
    }

    /// Returns a handle on the meter as a histogram, with these values of its labels.
    pub fn histogram(&self, values: &[&str]) -> Histogram {
        metrics::with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA))
    }

    /// Returns a share of the meter as a gauge, with these values of its labels.
    pub fn level(&self, values: &[&str]) -> Level {
        Level { gauge: metrics::with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA)), at: 0 }
    }
}

/// A share of a gauge. The gauge shows the sum of its shares; a share that is dropped no longer counts.
pub struct Level {
    gauge: Gauge,
    at: usize,
}

impl Level {
    /// Sets the share to this number.
    pub fn set(&mut self, now: usize) {
        if now > self.at {
            self.gauge.increment((now - self.at) as f64);
        } else if now < self.at {
            self.gauge.decrement((self.at - now) as f64);
        }
        self.at = now;
    }

    /// Returns another share of the same gauge, which counts one.
    pub fn one_more(&self) -> Self {
        let mut one = Self { gauge: self.gauge.clone(), at: 0 };
        one.set(1);
        one
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Level").field(&self.at).finish()
    }
}

/// The meters of one queue, without the gauges that other owners set.
pub struct Meters {
    /// [`meter::TURNS`]
    pub turns: Counter,
    /// [`meter::TURN_SECONDS`]
    pub turn_seconds: Histogram,
    /// [`meter::CACHE_HITS`]
    pub cache_hits: Counter,
    /// [`meter::REPLAYS`]
    pub replays: Counter,
    /// [`meter::REPLAYED_TURNS`]
    pub replayed_turns: Counter,
    /// [`meter::STUCK`]
    pub stuck: Counter,
    /// [`meter::STUCK_RUNS`]
    pub stuck_runs: Level,
    /// [`meter::DEADLOCKS`]
    pub deadlocks: Counter,
    attempts: BTreeMap<Name, Arc<AttemptMeters>>,
    side_effects: Arc<AttemptMeters>,
}

/// The meters of the attempts of one activity in one queue.
pub struct AttemptMeters {
    completed: Counter,
    failed: Counter,
    timed_out: Counter,
    cancelled: Counter,
    given_up: Counter,
    left: Counter,
    seconds: Histogram,
}

impl Meters {
    /// Creates the meters of this queue, with those of these activities.
    pub fn new<'a>(queue: &str, activities: impl IntoIterator<Item = &'a Name>) -> Self {
        let counter = |meter: Meter| meter.counter(&[queue]);
        let attempts = |name: &Name| (name.clone(), Arc::new(AttemptMeters::new(queue, name)));
        Self {
            turns: counter(meter::TURNS),
            turn_seconds: meter::TURN_SECONDS.histogram(&[queue]),
            cache_hits: counter(meter::CACHE_HITS),
            replays: counter(meter::REPLAYS),
            replayed_turns: counter(meter::REPLAYED_TURNS),
            stuck: counter(meter::STUCK),
            stuck_runs: meter::STUCK_RUNS.level(&[queue]),
            deadlocks: counter(meter::DEADLOCKS),
            attempts: activities.into_iter().map(attempts).collect(),
            side_effects: Arc::new(AttemptMeters::new(queue, SIDE_EFFECT)),
        }
    }

    /// Returns the meters of an activity; those of side effects for a name that is not registered.
    pub fn of_activity(&self, name: &str) -> &Arc<AttemptMeters> {
        self.attempts.get(name).unwrap_or(&self.side_effects)
    }
}

/// The value of the label `activity` for all side effects: their names are free, and there may be any number of them.
const SIDE_EFFECT: &str = "side effect";

impl AttemptMeters {
    fn new(queue: &str, activity: &str) -> Self {
        let attempts = |outcome| meter::ATTEMPTS.counter(&[queue, activity, outcome]);
        Self {
            completed: attempts("completed"),
            failed: attempts("failed"),
            timed_out: attempts("timed_out"),
            cancelled: attempts("cancelled"),
            given_up: attempts("given_up"),
            left: attempts("left"),
            seconds: meter::ATTEMPT_SECONDS.histogram(&[queue, activity]),
        }
    }

    /// Counts an attempt that began at this time and is over, or is left to an external completion. `result` is none if
    /// the engine gave up on it.
    pub(crate) fn attempt_over(&self, began: Instant, result: Option<&Result<Payload, Failure>>, is_left: bool) {
        let outcome = match result.map(|result| result.as_ref().map_err(|failure| &failure.kind)) {
            Some(Err(_)) if is_left => &self.left,
            None => &self.given_up,
            Some(Ok(_)) => &self.completed,
            Some(Err(FailureKind::Timeout(_))) => &self.timed_out,
            Some(Err(FailureKind::Cancelled)) => &self.cancelled,
            Some(Err(_)) => &self.failed,
        };
        outcome.increment(1);
        self.seconds.record(began.elapsed());
    }
}
