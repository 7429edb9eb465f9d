//! Choices of a policy, as trace events: which unit went next, which of several equals was taken.

use dacapo_core::TurnDone;
use dacapo_worker::RunName;

/// Traces the choices of a turn that was played. Replayed turns choose nothing.
pub(crate) fn trace(run: &RunName, done: &TurnDone) {
    let (Some(choices), Some(turn)) = (&done.choices, done.number) else { return };
    if !tracing::enabled!(target: "dacapo_engine::picks", tracing::Level::TRACE) {
        return;
    }
    for choice in choices.log().iter() {
        tracing::trace!(
            target: "dacapo_engine::picks",
            workflow_id = %run.workflow_id, run_id = %run.run_id, turn, step = choice.step, chosen = %choice.chosen,
            "picked"
        );
    }
}
