//! Queries: answered from the state as it is, which they never change.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Run;
use super::current_turn::{ThreadWork, TurnGuard, new_token};
use super::give_up::last_words;
use super::shared::Stop;
use super::state::Life;
use crate::activation::Query;
use crate::{ActivationError, Answer, Failure, JobError, Payload};

impl Run {
    pub(super) fn answer(&mut self, queries: Vec<Query>) -> Result<Vec<Answer>, ActivationError> {
        let token = new_token();
        {
            let mut state = self.shared.lock();
            match state.life {
                Life::Evicted => return Err(ActivationError::Evicted),
                Life::New => return Err(JobError::QueryBeforeStart.into()),
                Life::Open | Life::Closed => state.token = token,
            }
        }
        let _hold = TurnGuard::new(token, ThreadWork::Query);
        let answers = queries.into_iter().map(|query| Answer { result: self.ask(&query), id: query.id }).collect();
        let mut state = self.shared.lock();
        state.token = 0;
        if state.abandoned {
            drop(state);
            self.poisoned = Some(ActivationError::Abandoned.to_string().into());
            self.take_apart();
            return Err(ActivationError::Abandoned);
        }
        Ok(answers)
    }

    fn ask(&self, query: &Query) -> Result<Payload, Failure> {
        let handler = self.shared.lock().query_handler(&query.name)?;
        let result = catch_unwind(AssertUnwindSafe(|| handler(query)));
        let failed = |message: String| Failure::application(message).typed("QueryFailed").non_retryable();
        let refused = || failed(format!("query {:?} tried to change the run; a query only reads", query.name));
        match result {
            // The handler woke a unit or dropped a future: the run has changed, and is built again before its next
            // turn.
            Ok(_) if self.shared.lock().fault.is_some() => Err(refused()),
            Ok(answer) => answer,
            Err(payload) if payload.is::<Stop>() => Err(refused()),
            Err(payload) => {
                Err(failed(format!("the handler of query {:?} panicked: {}", query.name, last_words(payload))))
            }
        }
    }
}
