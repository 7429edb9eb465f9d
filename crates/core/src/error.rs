//! Errors: why an activation failed. Never recorded, never seen by workflow code.

use std::fmt;

use thiserror::Error;

use crate::nondeterminism::Nondeterminism;
use crate::policy::PolicyError;
use crate::{CallSite, Name, Operation, Seq, UnitId};

/// The reason why an activation failed. No command of it may be committed; the run stays as it was recorded.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ActivationError {
    /// The code decided a command other than the recorded one.
    #[error("{0}")]
    Nondeterminism(Box<Nondeterminism>),
    /// The code broke a rule of the scheduler.
    #[error("{0}")]
    Violation(Violation),
    /// The code panicked.
    #[error("workflow code panicked in {}, after {}: {message}{}\nThe run stays open and is played again from the beginning; deploy code that does not panic here, or return an `Err` to fail the run.", .unit.named(), place(.site), hint(.message))]
    Panic {
        /// The panic's message.
        message: String,
        /// The unit that panicked.
        unit: UnitId,
        /// The last call of the ctx before the panic.
        site: Option<CallSite>,
    },
    /// Workflow code, or a layer above the core, refused a recorded or delivered value that this code cannot read.
    #[error("{message}\nin {}{}, at {site}", .recorded.as_ref().map(|turn| format!("{turn}, ")).unwrap_or_default(), .unit.named())]
    Refused {
        /// The value that was refused, and what to do.
        message: String,
        /// The recorded turn that was played; none if it was a new one.
        recorded: Option<Box<RecordedTurn>>,
        /// The unit that was running.
        unit: UnitId,
        /// The call that the message is about.
        site: CallSite,
    },
    /// The policy could not pick.
    #[error("the scheduler policy could not pick: {0}")]
    Policy(#[from] PolicyError),
    /// The backend sent a job that does not fit the run.
    #[error("the activation does not fit the run: {0}")]
    Job(#[from] JobError),
    /// Two instances of the run, given the same activations, decided differently.
    #[error(
        "two plays of the same activation differ: {difference}\nSomething other than the recorded activations decides: a clock, a random number, the order of a hash map, an unbiased select, or state shared between runs. Use `ctx.now()`, `ctx.random()`, a BTreeMap, `ctx.race`, or `ctx.side_effect`."
    )]
    DoublePlay {
        /// The first difference.
        difference: String,
    },
    /// The turn was interrupted from outside.
    #[error("the turn was interrupted in {}, after {}: {reason}", .unit.named(), place(.site))]
    Interrupted {
        /// The reason.
        reason: String,
        /// The unit that ran.
        unit: UnitId,
        /// The last call of the ctx before the interruption.
        site: Option<CallSite>,
    },
    /// The turn was abandoned while it ran; its commands are void.
    #[error("the turn was abandoned while it ran; its thread returned too late and its commands are void")]
    Abandoned,
    /// An earlier activation of this instance failed.
    #[error("this instance of the run failed before: {0}\nEvict it and play the run again from its transcript.")]
    Poisoned(String),
    /// The run is closed.
    #[error("the run is closed: it takes queries and an eviction, no further turn")]
    Closed,
    /// The run was evicted.
    #[error("the run was evicted: build it again from its transcript")]
    Evicted,
    /// The run is pinned to a semantics version that this build does not know.
    #[error(
        "the run was started under semantics version {found}, and this build knows {known}: run it with a newer build"
    )]
    UnknownSemantics {
        /// The version that the run is pinned to.
        found: u32,
        /// The newest version this build knows.
        known: u32,
    },
}

/// A recorded turn, and the build that recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTurn {
    /// The turn's number.
    pub turn: u64,
    /// The build that recorded it.
    pub build: Name,
}

impl fmt::Display for RecordedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "turn {}", self.turn)?;
        match self.build.as_str() {
            "" => Ok(()),
            build => write!(f, ", recorded by build {build}"),
        }
    }
}

/// Returns a hint for a panic that comes from a call of another async runtime.
fn hint(message: &str) -> &'static str {
    match message.contains("no reactor running") || message.contains("Tokio 1.x runtime") {
        true => {
            "\nWorkflow code is played outside any async runtime, on purpose: use `ctx.sleep` for time, `ctx.launch` or `ctx.parallel` for concurrency, and an activity for I/O."
        }
        false => "",
    }
}

fn place(site: &Option<CallSite>) -> String {
    site.as_ref().map_or_else(|| "no call".to_owned(), |site| format!("the call at {site}"))
}

/// A broken rule of the scheduler.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("scheduler violation in {}{}: {kind}", unit.named(), site.as_ref().map(|site| format!(", at {site}")).unwrap_or_default())]
pub struct Violation {
    /// The rule that was broken.
    pub kind: ViolationKind,
    /// The unit that was running, or the root if none was.
    pub unit: UnitId,
    /// The call site, if it is known.
    pub site: Option<CallSite>,
}

/// The rules that can be broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ViolationKind {
    /// A ctx, or one of its futures, was used by code that does not hold the turn.
    #[error(
        "a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency"
    )]
    ForeignCall,
    /// A ctx was used from inside a closure that the executor runs.
    #[error(
        "a closure that the executor runs (a condition, a validator, a state update) called its ctx; such closures only compute"
    )]
    ClosureCall,
    /// A state cell was entered while it was already entered.
    #[error(
        "a state cell was entered while it was entered already; let go of one guard, or return from one closure, before the next"
    )]
    CellReentered,
    /// An option was set too late.
    #[error(
        "the option that this line sets comes too late, because {command} is sealed; set all options before the first await"
    )]
    SealedSetter {
        /// The command, as reports show it.
        command: String,
    },
    /// Something outside the run woke one of its units.
    #[error(
        "something outside the run woke this unit: a timer, channel or task of another runtime; await only what ctx gives, and move work on the world into an activity or `ctx.side_effect`"
    )]
    ForeignWake,
    /// A call that is not allowed where it is made.
    #[error("{0}")]
    Misuse(String),
}

/// A job that does not fit the run. Nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JobError {
    /// The first turn must start the run.
    #[error("the first job of the first turn must be a start")]
    NotStarted,
    /// A recorded turn came too early, too late or twice.
    #[error("turn {found} was brought from the record, and turn {expected} comes next")]
    OutOfOrder {
        /// The turn that comes next.
        expected: u64,
        /// The number of the turn that the backend sent.
        found: u64,
    },
    /// The run was started before.
    #[error("the run was started before")]
    StartedTwice,
    /// The start names another workflow than the code that plays it.
    #[error("the start names workflow {found}, and the code is that of {expected}")]
    OtherWorkflow {
        /// The name of the workflow whose code plays the run.
        expected: Name,
        /// The name in the start.
        found: Name,
    },
    /// No operation has this seq.
    #[error("no operation has seq {0}")]
    UnknownSeq(Seq),
    /// The resolution does not fit the operation's kind.
    #[error("seq {seq} is of kind {operation}, and its resolution of kind {resolution}")]
    WrongKind {
        /// The operation's sequence number.
        seq: Seq,
        /// The operation's kind.
        operation: Operation,
        /// The resolution's kind.
        resolution: &'static str,
    },
    /// The operation has a result already.
    #[error("seq {0} was resolved before")]
    ResolvedTwice(Seq),
    /// The operation's result came before its start.
    #[error("seq {0} has a result before it was started")]
    NotYetStarted(Seq),
    /// Two updates carry one id.
    #[error("update {0} was sent before")]
    UpdateTwice(Name),
    /// A query can only follow a start.
    #[error("a query needs a run that was started")]
    QueryBeforeStart,
}
