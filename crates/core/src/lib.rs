//! The pure executor of Dacapo: an activation in, a completion out.
//!
//! A backend hands a [`Run`] an [`Activation`]; the run plays it as one turn, rounds of units, one unit at a time, and
//! answers with one [`Completion`]: ordered commands, or a failed activation. Same code, same input, same transcript:
//! the same commands, or a failed activation. There is no third outcome, because nothing else here can decide: there is
//! no clock, thread, file, socket, async runtime, log or hash-map order.
//!
//! Start reading at [`Run::activate`], then [`Ctx`], which is the interface for workflow code.

#[cfg(panic = "abort")]
compile_error!("dacapo needs `panic = \"unwind\"`: a panic in workflow code must fail its activation, not the process");

mod activation;
mod attribute;
mod call_site;
mod command;
mod completion;
mod ctx;
mod duration_text;
mod error;
mod failure;
mod failure_codec;
mod failure_from;
mod identity;
mod job;
mod lock;
mod meaning;
mod name;
mod nondeterminism;
mod options;
mod panic_place;
mod payload;
mod policy;
mod redact;
mod rng;
mod run;
mod seq;
mod small_map;
mod stored;
mod time;
mod transcript;
mod unit_id;

pub use activation::{Activation, History, Query, Recorded, Turn};
pub use attribute::{AttributeValue, BadAttribute, MAX_KEYWORD, MAX_KEYWORDS};
pub use call_site::CallSite;
pub use command::{
    CallNexus, CancelExternal, CancelOperation, Command, CommandKind, CompleteUpdate, ContinueAsNew, CreatePromise,
    Operation, Outcome, PatchMarker, ScheduleActivity, ScheduleLocalActivity, ScheduleSideEffect, SetState,
    SignalExternal, StartChild, StartTimer, Target,
};
pub use completion::{Answer, Completion, Rejected, TurnDone, Warning};
pub use ctx::*;
pub use duration_text::DurationText;
pub use error::{ActivationError, JobError, RecordedTurn, Violation, ViolationKind};
pub use failure::{
    ActivityFailed, Cancelled, ChildFailed, Failure, FailureKind, NexusFailed, Origin, RetryState, TimeoutKind,
};
pub use identity::Difference;
pub use job::{Continued, Job, Lineage, RelatedRun, Resolution, Retried, Signal, Start, StartOutcome, Terms, Update};
pub use name::Name;
pub use nondeterminism::{Mismatch, Nondeterminism};
pub use options::{CancelType, IdReuse, ParentClose, Priority, Retry, Timeouts};
pub use panic_place::{keep_panic_places, panic_place};
pub use payload::{ExternalPayload, Headers, Payload, PayloadData, PayloadDigest, PayloadReference};
pub use policy::{
    Action, Choice, ChoiceLog, Deterministic, Divergence, Enabled, LogHeader, Policy, PolicyError, PolicyKind,
    PolicyOptions, PolicySpec, PolicyWarning, Random, Replay, Scheduler, TurnChoices,
};
pub use rng::Rng;
pub use run::{
    Inspection, Order, OwnPolicy, PendingOperation, Pins, ReplaySilencer, Reporter, Run, RunClosure, RunOptions,
    SEMANTICS, UnfinishedHandlers, UnitFuture, UnitView, Wait, Watch, Workflow, WorkflowCode, is_playing,
};
pub use seq::{NotAnId, OperationId, Ordinal, Seq};
pub use stored::{StoredError, from_stored, to_stored};
pub use time::{Timestamp, parse_timestamp, text_duration_option};
pub use transcript::{ReplayFailed, Transcript, TranscriptDifference, TranscriptError, TurnRecord};
pub use unit_id::{BadUnitId, NamedUnit, Seg, UnitId};
