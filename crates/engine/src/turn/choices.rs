//! What a policy picked, as trace events: which unit went next, which of several equals was taken.

use dacapo_core::TurnDone;

use crate::run::cached_run::About;

/// Traces the picks of a turn that was played. Replayed turns pick nothing.
pub(crate) fn trace(about: &About, done: &TurnDone) {
    let (Some(choices), Some(turn)) = (&done.choices, done.number) else { return };
    if !tracing::enabled!(target: "dacapo_engine::picks", tracing::Level::TRACE) {
        return;
    }
    for choice in choices.log().iter() {
        tracing::trace!(
            target: "dacapo_engine::picks",
            workflow_id = %about.workflow_id, run_id = %about.run_id, turn, step = choice.step, chosen = %choice.chosen,
            "picked"
        );
    }
}
