//! Jobs: what happened to a run since its last turn.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::options::{Priority, Retry};
use crate::time::{text_duration, text_duration_option};
use crate::{AttributeValue, Failure, Headers, Name, Operation, Outcome, Payload, Seq, Timestamp};

/// One event that wakes a run. Backends bring jobs in a canonical order: start, patches, seed, signals and updates, all
/// others, results of local work. Queries and evictions are activations of their own, never jobs.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Job {
    /// The run begins. Always the first job of the first turn.
    #[n(0)]
    Start(#[n(0)] Box<Start>),
    /// A later part of the history holds this patch's marker.
    #[n(1)]
    Patch {
        /// The patch.
        #[n(0)]
        id: Name,
    },
    /// The seed changed, as it does after a reset.
    #[n(2)]
    Seed {
        /// The new seed.
        #[n(0)]
        seed: u64,
    },
    /// A signal was sent to the run.
    #[n(3)]
    Signal(#[n(0)] Box<Signal>),
    /// An update was sent to the run.
    #[n(4)]
    Update(#[n(0)] Box<Update>),
    /// The run was asked to cancel.
    #[n(5)]
    Cancel {
        /// The reason.
        #[n(0)]
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// An operation was resolved.
    #[n(6)]
    Resolve {
        /// The operation's sequence number.
        #[n(0)]
        seq: Seq,
        /// The resolution.
        #[n(1)]
        resolution: Resolution,
        /// The failed attempts before it, for people. Play ignores it.
        #[n(2)]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retried: Option<Box<Retried>>,
    },
}

/// The failed attempts of an activity that has a result now.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct Retried {
    /// The number of attempts in all.
    #[n(0)]
    pub attempts: u32,
    /// How the last attempt before the final one failed, if the backend kept it.
    #[n(1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
}

impl Job {
    /// Creates the resolution of an operation.
    pub const fn resolve(seq: Seq, resolution: Resolution) -> Self {
        Self::Resolve { seq, resolution, retried: None }
    }
}

/// The resolution of an operation: its result, its start, or a pause before its next attempt.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Resolution {
    /// The timer fired.
    #[n(0)]
    Timer,
    /// The outcome of the activity, on a queue or local.
    #[n(1)]
    Activity(#[n(0)] Outcome),
    /// The local activity needs a pause before its next attempt: the run sleeps, then schedules it again.
    #[n(2)]
    Backoff {
        /// The attempt to make after the pause.
        #[n(0)]
        attempt: u32,
        /// The length of the pause.
        #[n(1)]
        #[serde(with = "text_duration")]
        pause: Duration,
        /// The time at which the first attempt was scheduled.
        #[n(2)]
        first_scheduled: Option<Timestamp>,
    },
    /// The outcome of the closure.
    #[n(3)]
    SideEffect(#[n(0)] Outcome),
    /// The child started, with this run id, or could not start. After a failure no result follows.
    #[n(4)]
    ChildStarted(#[n(0)] StartOutcome),
    /// The outcome of the child.
    #[n(5)]
    Child(#[n(0)] Outcome),
    /// The signal reached the other workflow, or could not be delivered.
    #[n(6)]
    SignalExternal {
        /// The reason if it was not delivered.
        #[n(0)]
        failure: Option<Box<Failure>>,
    },
    /// The request to cancel reached the other workflow, or could not be delivered.
    #[n(7)]
    CancelExternal {
        /// The reason if it was not delivered.
        #[n(0)]
        failure: Option<Box<Failure>>,
    },
    /// The other service started the operation, under this token, or could not start it. After a failure no result
    /// follows.
    #[n(8)]
    NexusStarted(#[n(0)] StartOutcome),
    /// The outcome of the other service's operation.
    #[n(9)]
    Nexus(#[n(0)] Outcome),
    /// The outcome with which the promise was resolved.
    #[n(10)]
    Promise(#[n(0)] Outcome),
}

/// The first of an operation's two resolutions: it started, under this id, or could not start.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartOutcome {
    /// The operation started, under this run id or token.
    #[n(0)]
    As(#[n(0)] Name),
    /// The operation could not be started, or was cancelled before.
    #[n(1)]
    Failed(#[n(0)] Box<Failure>),
}

impl Resolution {
    /// Returns whether this can resolve an operation of this kind.
    pub const fn fits(&self, operation: Operation) -> bool {
        match self {
            Self::Timer => matches!(operation, Operation::Timer),
            Self::Activity(_) => matches!(operation, Operation::Activity | Operation::LocalActivity),
            Self::Backoff { .. } => matches!(operation, Operation::LocalActivity),
            Self::SideEffect(_) => matches!(operation, Operation::SideEffect),
            Self::ChildStarted(_) | Self::Child(_) => matches!(operation, Operation::Child),
            Self::SignalExternal { .. } => matches!(operation, Operation::SignalExternal),
            Self::CancelExternal { .. } => matches!(operation, Operation::CancelExternal),
            Self::NexusStarted(_) | Self::Nexus(_) => matches!(operation, Operation::Nexus),
            Self::Promise(_) => matches!(operation, Operation::Promise),
        }
    }

    /// Returns the word for it in scripts and reports.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Activity(_) => "activity",
            Self::Backoff { .. } => "backoff of a local activity",
            Self::SideEffect(_) => "side effect",
            Self::ChildStarted(_) => "child start",
            Self::Child(_) => "child",
            Self::SignalExternal { .. } => "signal external",
            Self::CancelExternal { .. } => "cancel external",
            Self::NexusStarted(_) => "nexus start",
            Self::Nexus(_) => "nexus",
            Self::Promise(_) => "promise",
        }
    }
}

/// A signal that was sent to the run.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Signal {
    /// The signal's name.
    #[n(0)]
    pub name: Name,
    /// The arguments.
    #[n(1)]
    pub input: Vec<Payload>,
    /// The sender.
    #[n(2)]
    #[serde(skip_serializing_if = "str::is_empty")]
    pub identity: Name,
    /// Metadata sent with the arguments.
    #[n(3)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
}

/// An update that was sent to the run.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Update {
    /// The update's id, by which it is answered.
    #[n(0)]
    pub id: Name,
    /// The update's name.
    #[n(1)]
    pub name: Name,
    /// The arguments.
    #[n(2)]
    pub input: Vec<Payload>,
    /// Metadata sent with the arguments.
    #[n(3)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// The sender.
    #[n(4)]
    #[serde(skip_serializing_if = "str::is_empty")]
    pub identity: Name,
    /// Whether the update is already accepted, as it is on replay: then no validator runs.
    #[n(5)]
    pub accepted: bool,
}

/// Another run: a parent, or the root of a tree of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelatedRun {
    /// The run's namespace.
    #[n(0)]
    pub namespace: Name,
    /// The run's workflow id.
    #[n(1)]
    pub workflow_id: Name,
    /// The run id.
    #[n(2)]
    pub run_id: Name,
}

/// The data with which a run starts.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// The workflow's type.
    #[n(0)]
    pub workflow: Name,
    /// The workflow id.
    #[n(1)]
    pub workflow_id: Name,
    /// The run id.
    #[n(2)]
    pub run_id: Name,
    /// The arguments.
    #[n(3)]
    pub input: Vec<Payload>,
    /// The seed of ids and random numbers.
    #[n(4)]
    pub seed: u64,
    /// The task queue the run is served on.
    #[n(5)]
    pub queue: Name,
    /// The time at which the run was started.
    #[n(6)]
    pub started: Timestamp,
    /// The number of this attempt of the workflow, from 1.
    #[n(7)]
    pub attempt: u32,
    /// Metadata sent with the arguments.
    #[n(8)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// Notes for people.
    #[n(9)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub memo: BTreeMap<Name, Payload>,
    /// The attributes by which the run can be found.
    #[n(10)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub search_attributes: BTreeMap<Name, AttributeValue>,
    /// The caller that started the run.
    #[n(11)]
    #[serde(skip_serializing_if = "str::is_empty")]
    pub identity: Name,
    /// The runs it comes from, if it comes from another run.
    #[n(12)]
    pub lineage: Option<Box<Lineage>>,
    /// The timeouts, retries and schedule of the run, if they were set.
    #[n(13)]
    pub terms: Option<Box<Terms>>,
}

/// The runs that a run comes from.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lineage {
    /// The run that started it as a child.
    #[n(0)]
    pub parent: Option<RelatedRun>,
    /// The root of the tree of runs it belongs to.
    #[n(1)]
    pub root: Option<RelatedRun>,
    /// The run that this one continues.
    #[n(2)]
    pub continued_from: Option<Name>,
    /// The reason why it continues another run.
    #[n(3)]
    pub continued_because: Option<Continued>,
    /// The failure of the run before it.
    #[n(4)]
    pub last_failure: Option<Box<Failure>>,
    /// The result of the completed run before it.
    #[n(5)]
    pub last_result: Vec<Payload>,
    /// The first run of the chain.
    #[n(6)]
    #[serde(skip_serializing_if = "str::is_empty")]
    pub first_run_id: Name,
    /// The run id this run had before it was reset.
    #[n(7)]
    #[serde(skip_serializing_if = "str::is_empty")]
    pub original_run_id: Name,
}

/// The terms under which a run was started.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// The timeout from the start of the first run to the end of the last.
    #[n(0)]
    #[serde(with = "text_duration_option")]
    pub execution_timeout: Option<Duration>,
    /// The timeout from the start of this run to its end.
    #[n(1)]
    #[serde(with = "text_duration_option")]
    pub run_timeout: Option<Duration>,
    /// The timeout of one turn.
    #[n(2)]
    #[serde(with = "text_duration_option")]
    pub task_timeout: Option<Duration>,
    /// The time by which all its runs must have ended.
    #[n(3)]
    pub expires: Option<Timestamp>,
    /// The retry policy after a failure.
    #[n(4)]
    pub retry: Option<Retry>,
    /// The schedule, as a cron line.
    #[n(5)]
    pub cron: Option<Name>,
    /// The time from the run before it to this one, by the cron line.
    #[n(6)]
    #[serde(with = "text_duration_option")]
    pub cron_interval: Option<Duration>,
    /// The priority of its tasks.
    #[n(7)]
    pub priority: Priority,
}

/// The reason why a run continues another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Continued {
    /// The workflow continued as new.
    #[n(0)]
    Workflow,
    /// The workflow is run again after a failure.
    #[n(1)]
    Retry,
    /// The workflow is due again by its cron line.
    #[n(2)]
    Cron,
}

/// The short form for people.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(start) => write!(f, "start {}", start.workflow),
            Self::Patch { id } => write!(f, "patch {id}"),
            Self::Seed { seed } => write!(f, "seed {seed}"),
            Self::Signal(signal) => write!(f, "signal {}", signal.name),
            Self::Update(update) => write!(f, "update {} {}", update.name, update.id),
            Self::Cancel { reason } => write!(f, "cancel {reason}"),
            Self::Resolve { seq, resolution, .. } => write!(f, "resolve {seq} {}", resolution.word()),
        }
    }
}
