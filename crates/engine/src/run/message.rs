//! Messages for a run, which become jobs of a turn, and requests, which are answered from its state.

use dacapo_client::Error;
use dacapo_core::{Inspection, Job, Name, Outcome, Payload, Query, Resolution, Retried, Seq, Timestamp};
use dacapo_store::{MessageNo, TaskNo};
use tokio::sync::oneshot;

use crate::run::started::StartedAs;

/// A message for a run, which becomes a job of its next turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// A message that the store keeps.
    Stored { no: MessageNo, job: Job },
    /// The outcome of an activity, which the store does not know yet.
    Result { task: TaskNo, seq: Seq, outcome: Outcome, retried: Option<Box<Retried>> },
    /// A timer, which the store keeps until a turn takes it.
    Timer { seq: Seq, due: Timestamp },
    /// The outcome of local work, which is kept nowhere.
    Local { seq: Seq, resolution: Resolution, retried: Option<Box<Retried>> },
}

impl Message {
    /// The place of its job in the canonical order.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Stored { job, .. } => match job {
                Job::Start(_) => 0,
                Job::Patch { .. } => 1,
                Job::Seed { .. } => 2,
                Job::Signal(_) | Job::Update(_) => 3,
                _ => 4,
            },
            Self::Result { .. } | Self::Timer { .. } => 4,
            Self::Local { .. } => 5,
        }
    }

    /// Its number, if the store keeps it.
    pub(crate) fn stored(&self) -> Option<MessageNo> {
        match self {
            Self::Stored { no, .. } => Some(*no),
            _ => None,
        }
    }

    /// The job that it becomes.
    pub(crate) fn job(&self) -> Job {
        match self {
            Self::Stored { job, .. } => job.clone(),
            Self::Result { seq, outcome, retried, .. } => {
                let (resolution, retried) = (Resolution::Activity(outcome.clone()), retried.clone());
                Job::Resolve { seq: *seq, resolution, retried }
            }
            Self::Timer { seq, .. } => Job::resolve(*seq, Resolution::Timer),
            Self::Local { seq, resolution, retried } => {
                Job::Resolve { seq: *seq, resolution: resolution.clone(), retried: retried.clone() }
            }
        }
    }
}

/// The caller that waits for an answer.
pub(crate) type AnswerSender<T> = oneshot::Sender<Result<T, Error>>;

/// A request that is answered from the state of a run.
pub(crate) enum Request {
    Query(Query, AnswerSender<Payload>),
    Inspect(AnswerSender<Inspection>),
    /// Asks for the sequence number of the open promise of this name or id.
    FindPromise(Name, AnswerSender<Seq>),
}

impl Request {
    /// Answers the caller with an error.
    pub(crate) fn refuse(self, error: Error) {
        match self {
            Self::Query(_, answer) => drop(answer.send(Err(error))),
            Self::Inspect(answer) => drop(answer.send(Err(error))),
            Self::FindPromise(_, answer) => drop(answer.send(Err(error))),
        }
    }
}

/// A reset that a caller asked for. The thread that plays the run carries it out, so that no turn is played meanwhile.
pub(crate) struct ResetRequest {
    pub(crate) turn: u64,
    pub(crate) reason: String,
    pub(crate) answer: AnswerSender<StartedAs>,
}
