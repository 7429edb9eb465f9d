//! Logging, once and not again on replay.

use std::fmt::Display;

use tracing::dispatcher;

use crate::Ctx;

impl<S> Ctx<S> {
    /// Logs a line when the code gets here for the first time, and not when it is replayed.
    ///
    /// The second play of a turn that is played twice is silent, too. A turn
    /// that failed and is played again logs again. Nothing is recorded, so lines may come and go with every deploy.
    ///
    /// It is an event of `tracing` at level info with target `workflow`, in the span of its turn; where the program set up
    /// no subscriber, the line goes to the standard error stream. Events of the code's own are as silent on replay.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn greet(ctx: Ctx, name: String) -> Result<(), Failure> {
    /// ctx.log(format_args!("{name} has come"));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn log(&self, line: impl Display) {
        let Some(unit) = self.raw.first_time() else { return };
        if dispatcher::has_been_set() {
            tracing::info!(target: "workflow", %unit, "{line}");
        } else if let Some(info) = self.raw.info() {
            eprintln!("{} {unit}: {line}", info.start.workflow_id);
        }
    }
}
