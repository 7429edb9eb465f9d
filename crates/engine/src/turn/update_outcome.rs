//! The outcomes of updates, as their messages keep them.

use dacapo_client::Error;
use dacapo_core::{Failure, Job, Name, Outcome, Rejected};
use dacapo_store::{MessageNo, TaskNo};

use crate::encode::encode;
use crate::run::message::Message;
use crate::run::waiters::{UpdateAnswer, UpdateStage};

/// The outcome of an update, as its message keeps it.
#[derive(Clone, Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
pub(crate) enum UpdateOutcome {
    #[n(0)]
    Completed(#[n(0)] Outcome),
    #[n(1)]
    Rejected(#[n(0)] Failure),
}

impl UpdateOutcome {
    /// Converts it into the answer for the sender.
    pub(crate) fn answer(self) -> UpdateAnswer {
        match self {
            Self::Completed(outcome) => Ok(UpdateStage::Completed(outcome.into())),
            Self::Rejected(failure) => Err(Error::UpdateRejected(Box::new(failure))),
        }
    }
}

pub(crate) fn update_key(update: &Name) -> Name {
    format!("update:{update}").into()
}

/// Lists stored messages that a turn took and of which nothing is recorded, with the outcomes of rejected updates: they
/// are over.
pub(crate) fn settle(messages: &[Message], rejected: &[Rejected]) -> Vec<(MessageNo, Name, Option<Vec<u8>>)> {
    let answer = |job: &Job| match job {
        Job::Update(update) => rejected
            .iter()
            .find(|rejected| rejected.update == update.id)
            .map(|rejected| (update_key(&update.id), encode(UpdateOutcome::Rejected(rejected.failure.clone())))),
        _ => None,
    };
    let messages = messages.iter().filter_map(|message| match message {
        Message::Stored { no, job } => Some((*no, answer(job))),
        _ => None,
    });
    messages
        .map(|(no, answer)| match answer {
            Some((key, outcome)) => (no, key, Some(outcome)),
            None => (no, Name::default(), None),
        })
        .collect()
}

/// Lists tasks whose results came too late: they are over.
pub(crate) fn late_tasks(messages: &[Message]) -> Vec<TaskNo> {
    let task = |message: &Message| match message {
        Message::Result { task, .. } => Some(*task),
        _ => None,
    };
    messages.iter().filter_map(task).collect()
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Payload, from_stored};

    use super::*;

    /// A change here is a change of the stored values: `docs/compatibility.md` says what to do.
    #[test]
    fn answers_to_updates_are_stored_as_their_number_says() {
        let completed = UpdateOutcome::Completed(Outcome::Completed(Payload::json("7")));
        let rejected = UpdateOutcome::Rejected(Failure::application("no"));
        for (outcome, bytes) in [
            (completed, &b"\x01\x82\x00\x81\x82\x00\x81\x83\x41\x37\x6ajson/plain\xa0"[..]),
            (rejected, b"\x01\x82\x01\x81\x81\x85\x82\x00\x80\x62no\xf6\xf4\x80"),
        ] {
            assert_eq!(encode(&outcome), bytes, "{outcome:?}");
            assert_eq!(from_stored::<UpdateOutcome>(bytes), Ok(outcome));
        }
    }
}
