//! Starting a run again from an earlier turn. A turn here is a workflow task: the server resets to nothing else.

use dacapo_client::{Error, Result, RunRef, Started};
use uuid::Uuid;

use super::history::whole;
use super::info::info_of;
use super::refusals::refused_for;
use super::rpc::{Rpc, execution, send};
use crate::proto::history::{History, history_event::Attributes};
use crate::proto::service::ResetWorkflowExecutionRequest;

pub(super) async fn reset(rpc: &Rpc, run: &RunRef, turn: u64, reason: String) -> Result<Started> {
    let info = info_of(rpc, run).await?;
    let exact = RunRef::exact(run.workflow_id.clone(), info.execution.unwrap_or_default().run_id);
    let history = whole(rpc, &exact).await?;
    let request = ResetWorkflowExecutionRequest {
        namespace: rpc.namespace(),
        workflow_execution: Some(execution(&exact)),
        reason,
        workflow_task_finish_event_id: finish_of(&history, turn)?,
        request_id: Uuid::now_v7().to_string(),
        identity: rpc.identity(),
        ..ResetWorkflowExecutionRequest::default()
    };
    match send!(rpc, reset_workflow_execution, request).await {
        Ok(answer) => Ok(Started::new(RunRef::exact(exact.workflow_id, answer.run_id), true)),
        Err(status) => Err(refused_for(status, rpc, &exact).await),
    }
}

/// Returns the event at which a turn was completed: what comes before it is kept.
fn finish_of(history: &History, turn: u64) -> Result<i64> {
    let completed = |attributes: &Option<Attributes>| {
        matches!(attributes, Some(Attributes::WorkflowTaskCompletedEventAttributes(_)))
    };
    let ends: Vec<i64> =
        history.events.iter().filter(|event| completed(&event.attributes)).map(|event| event.event_id).collect();
    let found = usize::try_from(turn).ok().and_then(|turn| ends.get(turn)).copied();
    found.ok_or_else(|| {
        Error::InvalidArgument(match ends.len() {
            0 => format!("turn {turn} cannot be reset to: the run has not completed a workflow task"),
            count => format!(
                "turn {turn} cannot be reset to: on a Temporal cluster a turn is a completed workflow task, and the run has {count} of \
                 them; the nearest is turn {}",
                count - 1
            ),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::history::{HistoryEvent, WorkflowTaskCompletedEventAttributes};

    fn completed(event_id: i64) -> HistoryEvent {
        let attributes = WorkflowTaskCompletedEventAttributes::default();
        HistoryEvent {
            event_id,
            attributes: Some(Attributes::WorkflowTaskCompletedEventAttributes(attributes)),
            ..HistoryEvent::default()
        }
    }

    #[test]
    fn turn_is_reset_to_at_the_end_of_its_workflow_task_and_others_are_refused_with_the_nearest() {
        let history = History { events: vec![HistoryEvent::default(), completed(4), completed(9)] };
        assert_eq!((finish_of(&history, 0), finish_of(&history, 1)), (Ok(4), Ok(9)));
        let refused = finish_of(&history, 7).unwrap_err().to_string();
        assert!(
            refused.starts_with("turn 7 cannot be reset to") && refused.ends_with("the nearest is turn 1"),
            "{refused}"
        );
        assert!(finish_of(&History::default(), 0).is_err());
    }
}
