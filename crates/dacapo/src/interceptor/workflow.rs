//! The function of a workflow inside interceptors.

use dacapo_core::{Payload, Workflow};

use crate::interceptor::Next;
use crate::{Ctx, Layers};

/// A run of a workflow, as its first turn begins.
pub struct WorkflowCall {
    /// The ctx of the run.
    pub ctx: Ctx,
    /// The arguments.
    pub input: Vec<Payload>,
}

/// Puts the app's interceptors around a workflow.
pub(crate) fn intercepted_workflow(workflow: Workflow, layers: &Layers) -> Workflow {
    if layers.interceptors.is_empty() {
        return workflow;
    }
    let layers = layers.clone();
    workflow.wrapped(move |ctx, input, code| {
        let inner = move |call: WorkflowCall| code(call.ctx.raw().clone(), call.input);
        let chain =
            Next::chain(&layers.interceptors, |interceptor, call, next| interceptor.workflow(call, next), inner);
        chain.run(WorkflowCall { ctx: Ctx::in_layers(ctx, (), layers.clone()), input })
    })
}
