//! What became of updates, as their mail keeps it.

use dacapo_core::{Failure, Job, Name, Outcome, Rejected};
use dacapo_store::{MailNo, TaskNo};

use crate::EngineError;
use crate::run::cached_run::Arrival;
use crate::run::waiters::UpdateStage;
use crate::turn::plan::encode;

/// What became of an update, as its mail keeps it.
#[derive(Clone, Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
pub(crate) enum Answered {
    #[n(0)]
    Completed(#[n(0)] Outcome),
    #[n(1)]
    Rejected(#[n(0)] Failure),
}

impl Answered {
    /// What whoever waits for it is told.
    pub(crate) fn stage(self) -> Result<UpdateStage, EngineError> {
        match self {
            Self::Completed(outcome) => Ok(UpdateStage::Completed(outcome.into())),
            Self::Rejected(failure) => Err(EngineError::UpdateRejected(Box::new(failure))),
        }
    }
}

pub(crate) fn update_key(update: &Name) -> Name {
    format!("update:{update}").into()
}

/// Mail that a void turn took: nothing of it is recorded, and it is over.
pub(crate) fn settle(arrivals: &[Arrival], rejected: &[Rejected]) -> Vec<(MailNo, Name, Option<Vec<u8>>)> {
    let answer = |job: &Job| match job {
        Job::Update(update) => rejected
            .iter()
            .find(|rejected| rejected.update == update.id)
            .map(|rejected| (update_key(&update.id), encode(Answered::Rejected(rejected.failure.clone())))),
        _ => None,
    };
    let mail = arrivals.iter().filter_map(|arrival| match arrival {
        Arrival::Mail { no, job } => Some((*no, answer(job))),
        _ => None,
    });
    mail.map(|(no, answer)| match answer {
        Some((key, outcome)) => (no, key, Some(outcome)),
        None => (no, Name::default(), None),
    })
    .collect()
}

/// Tasks whose results nobody waits for: they are over.
pub(crate) fn late_tasks(arrivals: &[Arrival]) -> Vec<TaskNo> {
    let task = |arrival: &Arrival| match arrival {
        Arrival::Result { task, .. } => Some(*task),
        _ => None,
    };
    arrivals.iter().filter_map(task).collect()
}
