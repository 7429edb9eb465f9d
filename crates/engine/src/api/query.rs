//! Queries, and inspection of what a run's units wait for.

use dacapo_client::Error;
use dacapo_core::{Headers, Inspection, Name, Payload, Query};
use tokio::sync::oneshot;

use crate::api::{check_message, row};
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::names::check_name;
use crate::read::RunId;
use crate::run::deliver::ask;
use crate::run::message::{AnswerSender, Request};

impl Engine {
    /// Queries a run. The query sees all that was acknowledged before.
    pub async fn query(&self, of: &RunId, name: Name, input: Vec<Payload>, headers: Headers) -> Result<Payload, Error> {
        check_name("query name", &name)?;
        check_message(&self.shared, "a query", &input, &headers)?;
        let query = Query { id: Name::from_static("query"), name, input, headers };
        self.ask(of, |answer| Request::Query(query, answer)).await
    }

    /// Reports what every unit of a run waits for, and where. May play the run again from the beginning.
    pub async fn inspect(&self, of: &RunId) -> Result<Inspection, Error> {
        self.ask(of, Request::Inspect).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        of: &RunId,
        request: impl FnOnce(AnswerSender<T>) -> Request + Send + 'static,
    ) -> Result<T, Error> {
        let of = of.clone();
        let (answer, answered) = oneshot::channel();
        let request = request(answer);
        self.blocking(WorkKind::Read, move |shared| {
            ask(shared, row(shared, &of)?.no, request);
            Ok(())
        })
        .await?;
        answered.await.unwrap_or(Err(Error::ShutDown))
    }
}
