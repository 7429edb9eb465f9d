//! Queries that this backend answers itself, and the form of answers.

use std::fmt::Write as _;

use dacapo_core::{Answer, Failure, Inspection, Payload, Query};

use super::cached_run::CachedRun;
use crate::convert::{failure_to_proto, payload_to_proto};
use crate::proto::commands::workflow_command::Variant;
use crate::proto::commands::{self, WorkflowCommand};
use crate::reserved::{INSPECT, PUBLISHED, STACK_TRACE};

pub(super) fn is_reserved(query: &Query) -> bool {
    [PUBLISHED, INSPECT, STACK_TRACE].contains(&query.name.as_str())
}

/// Answers a reserved query.
pub(super) fn answer(cached: &CachedRun, query: &Query) -> WorkflowCommand {
    let result = match query.name.as_str() {
        PUBLISHED => json(&cached.state.published),
        INSPECT => json(&cached.run.inspect()),
        _ => Ok(Payload::json(serde_json::Value::from(stack_trace(&cached.run.inspect())).to_string())),
    };
    to_proto(Answer { id: query.id.clone(), result })
}

fn json<T: serde::Serialize>(value: &T) -> Result<Payload, Failure> {
    serde_json::to_string(value).map(Payload::json).map_err(|error| Failure::application(error.to_string()))
}

pub(super) fn to_proto(answer: Answer) -> WorkflowCommand {
    use commands::query_result::Variant as Result;
    let variant = match answer.result {
        Ok(payload) => Result::Succeeded(commands::QuerySuccess { response: Some(payload_to_proto(&payload)) }),
        Err(failure) => Result::Failed(failure_to_proto(&failure)),
    };
    let result = commands::QueryResult { query_id: answer.id.to_string(), variant: Some(variant) };
    Variant::RespondToQuery(result).into()
}

/// Returns the waits of each unit and their places in the code, as `temporal workflow stack` prints it.
fn stack_trace(run: &Inspection) -> String {
    let mut text = String::new();
    for unit in &run.units {
        let _ = writeln!(text, "{}, since turn {}", unit.id.named(), unit.since);
        for wait in &unit.waits {
            let _ = writeln!(text, "    waits for {}, since turn {}\n        at {}", wait.what, wait.since, wait.site);
        }
    }
    if text.is_empty() { "no unit is left: the workflow has returned".to_owned() } else { text }
}
