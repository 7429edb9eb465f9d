//! Going on as a new run.

use std::panic::Location;

use dacapo_core::{ContinueAsNew, Failure, Name, Payload};
use serde_json::Value;

use super::recorded::{accepted, encoded};
use crate::interceptor::OutboundKind;
use crate::{Ctx, WorkflowFn, WorkflowType};

impl<S> Ctx<S> {
    /// Ends this run and goes on as a new one of this workflow, the same or another. Return the failure this gives, with
    /// `Err`.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// #[workflow]
    /// async fn count(ctx: Ctx, n: u64) -> Result<(), Failure> {
    ///     ctx.sleep(days(1)).await?;
    ///     Err(ctx.continue_as_new(count, n + 1))
    /// }
    /// ```
    #[track_caller]
    pub fn continue_as_new<F, P>(&self, workflow: F, input: <F::Workflow as WorkflowType>::Input) -> Failure
    where
        F: WorkflowFn<P>,
    {
        self.continue_as_new_with(workflow, input, |_| {})
    }

    /// [`Ctx::continue_as_new`] with options.
    #[track_caller]
    pub fn continue_as_new_with<F, P>(
        &self,
        workflow: F,
        input: <F::Workflow as WorkflowType>::Input,
        options: impl FnOnce(&mut ContinueAsNew),
    ) -> Failure
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        let input = accepted(self, F::Workflow::encode(input, self.converter()), Location::caller());
        self.continue_payloads(Name::from_static(F::Workflow::NAME), input, options)
    }

    /// [`Ctx::continue_as_new`] for a workflow that is only known by its name.
    #[track_caller]
    pub fn continue_as_new_raw(&self, workflow: impl Into<Name>, input: Value) -> Failure {
        self.continue_payloads(workflow.into(), vec![encoded(self, &input, Location::caller())], |_| {})
    }

    #[track_caller]
    fn continue_payloads(
        &self,
        workflow: Name,
        input: Vec<Payload>,
        options: impl FnOnce(&mut ContinueAsNew),
    ) -> Failure {
        let headers = self.outbound_headers(OutboundKind::ContinueAsNew, &workflow);
        let mut next = ContinueAsNew { workflow, input, headers, ..ContinueAsNew::default() };
        options(&mut next);
        self.raw.continue_as_new(next)
    }
}
