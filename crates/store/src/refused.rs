//! Refused writes.

use dacapo_core::Name;

use crate::{Epoch, IdConflict, Status};

/// Why a write was refused. It changed nothing, and the other writes of its group are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Another node has taken the run, or another write has committed this turn.
    #[error("the run is at turn {turns} under {epoch}: this write comes from a node that has lost it")]
    Fenced {
        /// The number of the run's next turn.
        turns: u64,
        /// The fence.
        epoch: Epoch,
    },
    /// Another node owns the run.
    #[error("another node owns the run now")]
    NotOwner,
    /// The run has messages that the turn, which would close the run, has not seen.
    #[error("the run has messages that this last turn has not seen: play it again with them")]
    UnseenMessages,
    /// The run has moved on since the write was planned.
    #[error("the run has moved on meanwhile: plan it again")]
    MovedOn,
    /// The turn takes a message that another turn has taken.
    #[error("the turn takes a message that was taken before: play it again without it")]
    MessageTaken,
    /// The run is closed.
    #[error("the run is {0} and accepts nothing more: {how}", how = .0.what_to_do())]
    Closed(Status),
    /// There is no such run.
    #[error("there is no such run: check the id, and whether the run was deleted")]
    NoSuchRun,
    /// The run is open, and only a closed run allows this.
    #[error("the run is open, and only a closed run allows this: wait for its end, cancel it or terminate it first")]
    Open,
    /// A run with this run id exists.
    #[error("run {0} exists already: delete it first if it is to be replaced")]
    Exists(Name),
    /// The run has no such turn to reset to.
    #[error("the run cannot begin again at turn {turn}: {how}", how = choice(*.turns))]
    NoSuchTurn {
        /// The number of the turn that was to be the next.
        turn: u64,
        /// The number of turns recorded.
        turns: u64,
    },
    /// The task no longer exists.
    #[error("there is no such task any more: it is over, or its run is")]
    NoSuchTask,
    /// The workflow id is in use.
    #[error("workflow id {workflow_id:?} is in use by run {run_id}: {how}", how = advice(.conflict))]
    InUse {
        /// The workflow id.
        workflow_id: Name,
        /// The run that uses it.
        run_id: Name,
        /// The caller's policy for this case.
        conflict: IdConflict,
    },
    /// The workflow id was used before, and the caller's policy does not allow it again.
    #[error(
        "workflow id {workflow_id:?} was used by run {run_id}, which is {status}, and the start allows no second use: choose another id, or another `id_reuse`"
    )]
    Used {
        /// The workflow id.
        workflow_id: Name,
        /// The run that used it last.
        run_id: Name,
        /// The status that this run closed with.
        status: Status,
    },
    /// The request id was used before, with another workflow or input.
    #[error("request id {0:?} was used before, for another workflow or with another input: use a new request id")]
    OtherRequest(Name),
}

fn advice(conflict: &IdConflict) -> &'static str {
    match conflict {
        IdConflict::Fail => {
            "wait for it to close, or say what is meant: the run that is open (`id_conflict(IdConflict::UseExisting)`), or the same \
             request as before (`request_id(key)`)"
        }
        IdConflict::UseExisting | IdConflict::TerminateExisting => {
            "another start took it at the same moment: start again"
        }
    }
}

fn choice(turns: u64) -> String {
    match turns {
        0 => "it has played none yet, so start another run instead".to_owned(),
        turns => format!("it has played {turns}, so choose a number from 1 to {turns}"),
    }
}
