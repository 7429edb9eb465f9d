//! Commands: what workflow code decided, in the order in which it decided it.

mod operations;
mod outcomes;
mod shared;
mod target;

pub use operations::{
    CallNexus, CancelExternal, CreatePromise, ScheduleActivity, ScheduleLocalActivity, ScheduleSideEffect,
    SignalExternal, StartChild, StartTimer,
};
pub use outcomes::{CancelOperation, CompleteUpdate, ContinueAsNew, Outcome, PatchMarker, SetState};
pub use target::{Operation, Target};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{AttributeValue, CallSite, Failure, Name, Payload, Seq, UnitId};

/// One decision of workflow code, with the unit and the call site that made it. Replay matches it by its position in
/// the turn's list; unit and call site are not part of its identity.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The decision.
    #[n(0)]
    pub kind: CommandKind,
    /// The unit that decided it.
    #[n(1)]
    pub unit: UnitId,
    /// The place in the source.
    #[n(2)]
    pub site: CallSite,
}

/// The kinds of command, with their data.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandKind {
    /// Schedule an activity on a task queue.
    #[n(0)]
    Activity(#[cbor(n(0), with = "shared")] Arc<ScheduleActivity>),
    /// Run an activity in the process that plays the workflow, before the next turn.
    #[n(1)]
    LocalActivity(#[n(0)] Box<ScheduleLocalActivity>),
    /// Run a closure of the workflow itself, once.
    #[n(2)]
    SideEffect(#[n(0)] Box<ScheduleSideEffect>),
    /// Start a timer.
    #[n(3)]
    Timer(#[n(0)] Box<StartTimer>),
    /// Start a child workflow.
    #[n(4)]
    Child(#[n(0)] Box<StartChild>),
    /// Signal another workflow.
    #[n(5)]
    SignalExternal(#[n(0)] Box<SignalExternal>),
    /// Ask another workflow to cancel.
    #[n(6)]
    CancelExternal(#[n(0)] Box<CancelExternal>),
    /// Call an operation of another service.
    #[n(7)]
    Nexus(#[n(0)] Box<CallNexus>),
    /// Open a promise that a caller outside the run resolves.
    #[n(8)]
    Promise(#[n(0)] Box<CreatePromise>),
    /// Cancel an operation that one of the commands above started.
    #[n(9)]
    Cancel(#[n(0)] CancelOperation),
    /// Record that this run took a patched path.
    #[n(10)]
    Patch(#[n(0)] PatchMarker),
    /// Merge these search attributes into the run's; `None` removes one.
    #[n(11)]
    SearchAttributes(#[n(0)] BTreeMap<Name, Option<AttributeValue>>),
    /// Merge this into the run's memo; `None` removes an entry.
    #[n(12)]
    Memo(#[n(0)] BTreeMap<Name, Option<Payload>>),
    /// Set or clear a durable key.
    #[n(13)]
    State(#[n(0)] SetState),
    /// An update passed its validator.
    #[n(14)]
    AcceptUpdate {
        /// The update's id.
        #[n(0)]
        update: Name,
    },
    /// The handler of an accepted update is done.
    #[n(15)]
    CompleteUpdate(#[n(0)] Box<CompleteUpdate>),
    /// The workflow returned this. Closes the run.
    #[n(16)]
    Complete {
        /// The result.
        #[n(0)]
        result: Payload,
    },
    /// The workflow failed. Closes the run.
    #[n(17)]
    Fail {
        /// The failure.
        #[n(0)]
        failure: Box<Failure>,
    },
    /// The workflow ended as cancelled. Closes the run.
    #[n(18)]
    CancelRun {
        /// The failure.
        #[n(0)]
        failure: Box<Failure>,
    },
    /// The workflow continues as a new run. Closes this one.
    #[n(19)]
    ContinueAsNew(#[n(0)] Box<ContinueAsNew>),
}

impl CommandKind {
    /// Returns the word for it in scripts, transcripts and reports.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Activity(_) => "activity",
            Self::LocalActivity(_) => "local activity",
            Self::SideEffect(_) => "side effect",
            Self::Timer(_) => "timer",
            Self::Child(_) => "child",
            Self::SignalExternal(_) => "signal external",
            Self::CancelExternal(_) => "cancel external",
            Self::Nexus(_) => "nexus",
            Self::Promise(_) => "promise",
            Self::Cancel(_) => "cancel",
            Self::Patch(_) => "patch",
            Self::SearchAttributes(_) => "search attributes",
            Self::Memo(_) => "memo",
            Self::State(_) => "state",
            Self::AcceptUpdate { .. } => "accept update",
            Self::CompleteUpdate(_) => "complete update",
            Self::Complete { .. } => "complete",
            Self::Fail { .. } => "fail",
            Self::CancelRun { .. } => "cancelled",
            Self::ContinueAsNew(_) => "continue as new",
        }
    }

    /// Returns the seq of the operation that this command starts, if it starts one.
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Activity(c) => Some(c.seq),
            Self::LocalActivity(c) => Some(c.seq),
            Self::SideEffect(c) => Some(c.seq),
            Self::Timer(c) => Some(c.seq),
            Self::Child(c) => Some(c.seq),
            Self::SignalExternal(c) => Some(c.seq),
            Self::CancelExternal(c) => Some(c.seq),
            Self::Nexus(c) => Some(c.seq),
            Self::Promise(c) => Some(c.seq),
            Self::Cancel(_)
            | Self::Patch(_)
            | Self::SearchAttributes(_)
            | Self::Memo(_)
            | Self::State(_)
            | Self::AcceptUpdate { .. }
            | Self::CompleteUpdate(_)
            | Self::Complete { .. }
            | Self::Fail { .. }
            | Self::CancelRun { .. }
            | Self::ContinueAsNew(_) => None,
        }
    }

    /// Returns whether this closes the run.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Complete { .. } | Self::Fail { .. } | Self::CancelRun { .. } | Self::ContinueAsNew(_))
    }
}

/// The short form for people: the word and its subject.
impl fmt::Display for CommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match self {
            Self::Activity(c) => write!(f, "{word} {}", c.activity),
            Self::LocalActivity(c) => write!(f, "{word} {}", c.activity),
            Self::SideEffect(c) => write!(f, "{word} {}", c.name),
            Self::Timer(c) => write!(f, "{word} {}", crate::DurationText(c.duration)),
            Self::Child(c) => write!(f, "{word} {}", c.workflow),
            Self::SignalExternal(c) => write!(f, "{word} {} to {}", c.signal, c.target),
            Self::CancelExternal(c) => write!(f, "{word} {}", c.target),
            Self::Nexus(c) => write!(f, "{word} {}/{}", c.service, c.operation),
            Self::Promise(c) => write!(f, "{word} {}", c.name),
            Self::Cancel(c) => write!(f, "{word} {}", c.seq),
            Self::Patch(c) if c.deprecated => write!(f, "{word} {} (deprecated)", c.id),
            Self::Patch(c) => write!(f, "{word} {}", c.id),
            Self::SearchAttributes(changes) => write!(f, "{word} {}", listed(changes.keys())),
            Self::Memo(changes) => write!(f, "{word} {}", listed(changes.keys())),
            Self::State(SetState { key, value: Some(value) }) => write!(f, "{word} {key} = {value}"),
            Self::State(SetState { key, value: None }) => write!(f, "{word} {key} cleared"),
            Self::AcceptUpdate { update } => write!(f, "{word} {update}"),
            Self::CompleteUpdate(c) => write!(f, "{word} {} {}", c.update, c.outcome),
            Self::Complete { result } if result.as_text() == Some("") => f.write_str(word),
            Self::Complete { result } => write!(f, "{word} {result}"),
            Self::Fail { failure } | Self::CancelRun { failure } => write!(f, "{word} {failure}"),
            Self::ContinueAsNew(c) => write!(f, "{word} {}", c.workflow),
        }
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n Name>) -> String {
    let names: Vec<&str> = names.map(Name::as_str).collect();
    names.join(" ")
}
