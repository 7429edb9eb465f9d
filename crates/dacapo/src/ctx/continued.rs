//! Continue-as-new.

use std::panic::Location;

use dacapo_core::{ContinueAsNew, Failure, Name, Payload};
use serde_json::Value;

use super::recorded::{accepted, encoded_all};
use crate::interceptor::OutboundKind;
use crate::{Ctx, WorkflowFn, WorkflowType};

impl<S> Ctx<S> {
    /// Ends this run and continues as a new one, with a new history, of the same workflow or of another. Return the failure
    /// that this gives, with `Err`.
    ///
    /// A workflow that lives for ever does this now and then, because a history must not grow without end. Signals that were
    /// not taken go to the new run.
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

    /// Continues as a new run, with options. See [`Ctx::continue_as_new`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// #[workflow]
    /// async fn count(ctx: Ctx, n: u64) -> Result<(), Failure> {
    ///     ctx.sleep(days(1)).await?;
    ///     Err(ctx.continue_as_new_with(count, n + 1, |next| next.queue = Some("night".into())))
    /// }
    /// ```
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

    /// Continues as a new run of a workflow by its name, with JSON. Several arguments are several values. See [`Ctx::continue_as_new`].
    #[track_caller]
    pub fn continue_as_new_raw(&self, workflow: impl Into<Name>, input: impl IntoIterator<Item = Value>) -> Failure {
        self.continue_payloads(workflow.into(), encoded_all(self, input, Location::caller()), |_| {})
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
