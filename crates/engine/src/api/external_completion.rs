//! Attempts that somebody outside completes: their code has ended and left them, and whoever has the token says how they end.
//!
//! Such an attempt takes no place and survives restarts without being made again; in all else it is an attempt like any
//! other: its timeouts count from its beginning, and its failures are judged by the retry policy.

use std::sync::Arc;

use dacapo_core::{Cancelled, Failure, Payload, RetryState, Seq, Timestamp};
use dacapo_store::{RunNo, RunRow, StoreError, Write};
use dacapo_worker::CompletionToken;
use tokio::sync::oneshot;

use crate::activity::attempt::{Judged, attempt_write, judge};
use crate::activity::task_queue::Task;
use crate::inner::Inner;
use crate::{Engine, EngineError, RunId};

impl Engine {
    /// Gives the attempt of a completion token its result. It is durable when this answers. A result completes the activity;
    /// a failure is judged by the retry policy, like that of an attempt that ran here.
    pub async fn complete(&self, token: &str, result: Result<Payload, Failure>) -> Result<(), EngineError> {
        let token: CompletionToken = token.parse()?;
        if let Ok(payload) = &result {
            self.inner.check_size("the result of an activity", payload)?;
        }
        let (row, task) = self.task_of(&token)?;
        let failure = match result {
            Ok(result) => return self.end_activity(&row, &task, Ok(result), RetryState::Unspecified).await,
            Err(failure) => failure,
        };
        match judge(&task, &failure, self.inner.host.now()) {
            Judged::Over(why) => self.end_activity(&row, &task, Err(failure), why).await,
            Judged::Again(at) => {
                let (tell, told) = oneshot::channel();
                self.inner.attempt_failed_outside(row.no, &task, failure, at, tell);
                match told.await {
                    Ok(Err(StoreError::Refused(_))) => Err(self.no_such_activity(&row, &token.activity_id)),
                    Ok(written) => Ok(written?),
                    Err(_) => Err(EngineError::ShutDown),
                }
            }
        }
    }

    /// Reports the progress of the attempt of a completion token, which keeps its heartbeat timeout away. Says why the
    /// attempt is no longer wanted, if it is not.
    pub async fn heartbeat(&self, token: &str, details: Payload) -> Result<Option<Cancelled>, EngineError> {
        let token: CompletionToken = token.parse()?;
        self.inner.check_size("what an attempt reports", &details)?;
        let (row, task) = self.task_of(&token)?;
        self.inner.heartbeat(row.no, task.command.seq, token.attempt, details);
        Ok(task.cancelled.map(|reason| Cancelled { reason }))
    }

    /// The task whose attempt a token names, if that is still the last one.
    fn task_of(&self, token: &CompletionToken) -> Result<(RunRow, Task), EngineError> {
        let CompletionToken { workflow_id, run_id, activity_id, attempt } = token;
        let row = self.open_row(&RunId { workflow_id: workflow_id.clone(), run_id: Some(run_id.clone()) })?;
        let task = self.inner.desk().find(row.no, activity_id).cloned();
        let task = task.ok_or_else(|| self.no_such_activity(&row, activity_id))?;
        if task.attempt != *attempt {
            let (workflow_id, activity_id) = (workflow_id.clone(), activity_id.clone());
            return Err(EngineError::OldToken { workflow_id, activity_id, attempt: *attempt, current: task.attempt });
        }
        Ok((row, task))
    }
}

impl Inner {
    /// The code of an attempt has ended, and somebody outside says how the attempt ends. It gives up its place when that is
    /// noted: a process that shuts down waits for the note, so that the next one does not make the attempt again.
    pub(crate) fn attempt_left(self: &Arc<Self>, run: RunNo, seq: Seq, attempt: u32) {
        let now = self.host.now();
        let mut desk = self.desk();
        let Some((task, mut attempting)) = desk.attempting(run, seq, attempt) else { return };
        (attempting.leaves, attempting.grip) = (true, None);
        task.set_attempting(attempting);
        // Its code has ended, so it has not killed the process.
        task.strikes = 0;
        drop(desk);
        self.later(move |this| {
            // Its time may be over, or nobody may want it any more.
            let Some(write) = this.desk().attempting(run, seq, attempt).map(|(task, _)| attempt_write(task, now))
            else {
                return;
            };
            this.submit(Write::Attempt(Box::new(write)), move |this, result| {
                match result {
                    // It is over, or its run is.
                    Err(StoreError::Refused(_)) => drop(this.desk().remove(run, seq)),
                    // A note that could not be written costs another attempt, and that only after a restart.
                    Ok(_) | Err(_) => this.desk().leave(run, seq, attempt),
                }
                this.dispatch();
                this.drained();
            });
        });
    }

    /// Somebody outside says that an attempt failed, and it is worth another.
    fn attempt_failed_outside(
        self: &Arc<Self>,
        run: RunNo,
        task: &Task,
        failure: Failure,
        at: Timestamp,
        tell: oneshot::Sender<Result<(), StoreError>>,
    ) {
        let seq = task.command.seq;
        let mut desk = self.desk();
        let Some((task, attempting)) = desk.attempting(run, seq, task.attempt) else {
            // It is about to be tried again as it is.
            return drop(tell.send(Ok(())));
        };
        task.failure = Some(failure);
        desk.wait(run, seq, at);
        let write = desk.get(run, seq).map(|task| attempt_write(task, at));
        drop(desk);
        self.cancel_alarms(&attempting.alarms);
        if let Some(grip) = attempting.grip {
            self.give_up(&grip, "somebody outside said that it failed");
        }
        self.try_again(run, seq, at, write, move |result| drop(tell.send(result)));
        self.dispatch();
    }
}
