//! A connection to a backend.

use std::sync::Arc;

use dacapo_client::{Capabilities, Client, Node, RunRef};
use dacapo_core::{Cancelled, Failure, Name, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::link::Link;
use crate::client::{Error, Handle, IntoName, Result, Runs, StartCall};
use crate::{Converter, Interceptor, Layers, WorkflowFn, WorkflowType};

/// A connection to a backend: starts runs, finds them and completes activities. Cheap to clone.
///
/// An [`App`](crate::App) is a connection that also serves; [`Dacapo::connect`](crate::Dacapo::connect) opens one that
/// serves nothing.
///
/// ```
/// # use dacapo::prelude::*;
/// # async fn example() -> dacapo::Result<()> {
/// let orders = Dacapo::connect("sqlite:orders.db").await?;
/// println!("{}", orders.handle_raw("order-42").describe().await?.status);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Connection(pub(crate) Link);

impl Connection {
    /// Connects to a backend of your own: any [`Client`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example() -> dacapo::Result<()> {
    /// use std::sync::Arc;
    /// use dacapo::{Client, Connection};
    ///
    /// async fn order(backend: Arc<dyn Client>) -> dacapo::Result<()> {
    ///     let orders = Connection::over(backend);
    ///     orders.start(checkout, "two lamps".into()).id("order-42").await?;
    ///     Ok(())
    /// }
    /// # Ok(()) }
    /// ```
    pub fn over(client: Arc<dyn Client>) -> Self {
        Self(Link::over(client, &Layers::default()))
    }

    /// Encodes and decodes the values of this connection with a converter of your own instead of JSON: the one of the app
    /// that serves. Handles that were made before keep theirs.
    #[must_use]
    pub fn with_converter(&self, converter: impl Into<Converter>) -> Self {
        Self(self.0.with_layers(|layers| layers.converter = converter.into()))
    }

    /// Puts an interceptor around the calls of this connection, inside those that were added before. Handles that were made
    /// before do not pass it.
    #[must_use]
    pub fn with_interceptor(&self, interceptor: impl Interceptor) -> Self {
        Self(self.0.with_layers(|layers| layers.intercept(interceptor)))
    }

    /// Returns the name of the backend and the features it has.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// use dacapo::Feature;
    ///
    /// let offered = app.capabilities();
    /// match offered.has(Feature::Backup) {
    ///     true => app.runs().back_up("orders-backup.db").await?,
    ///     false => println!("{} has no backups", offered.backend),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn capabilities(&self) -> &Capabilities {
        self.client().capabilities()
    }

    /// Returns the untyped client behind this connection.
    pub fn client(&self) -> &Arc<dyn Client> {
        self.0.client()
    }

    /// Starts a workflow: set options, then await it for a handle on the run. The start is durable when it answers.
    ///
    /// Several arguments are a tuple.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// let run = app.start(checkout, "two lamps".into()).id("order-42").await?;
    /// println!("{}", run.result().await?);
    /// # Ok(()) }
    /// ```
    pub fn start<F, P>(
        &self,
        workflow: F,
        input: <F::Workflow as WorkflowType>::Input,
    ) -> StartCall<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        StartCall::new(
            self.0.clone(),
            Name::from_static(F::Workflow::NAME),
            F::Workflow::encode(input, self.0.converter()),
        )
    }

    /// Starts a workflow by its name, with JSON. Several arguments are several values.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// use dacapo::json::json;
    ///
    /// let run = app.start_raw("transfer", [json!({ "from": "ada", "to": "grace" }), json!(1_250)]).id("transfer-7").await?;
    /// println!("{}", run.result().await?);
    /// # Ok(()) }
    /// ```
    pub fn start_raw(&self, workflow: impl IntoName, input: impl IntoIterator<Item = Value>) -> StartCall<Value> {
        let input = input.into_iter().map(|value| self.0.converter().encode(&value)).collect();
        StartCall::new(self.0.clone(), workflow.into_name(), input)
    }

    /// Returns a handle on the open run of this workflow id, or on the last, known to be of this workflow.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// let run = app.handle(checkout, "order-42");
    /// println!("{}", run.result().await?);
    /// # Ok(()) }
    /// ```
    pub fn handle<F, P>(&self, workflow: F, workflow_id: impl IntoName) -> Handle<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        self.handle_of(workflow_id)
    }

    /// Returns a handle on the open run of this workflow id, or on the last, whatever its workflow.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// app.handle_raw("order-42").terminate("its customer does not exist").await?;
    /// # Ok(()) }
    /// ```
    pub fn handle_raw(&self, workflow_id: impl IntoName) -> Handle<Value> {
        self.handle_of(workflow_id)
    }

    /// Returns a handle on the open run of this workflow id, or on the last, whose result is an `O`.
    pub fn handle_of<O>(&self, workflow_id: impl IntoName) -> Handle<O> {
        Handle::new(self.0.clone(), RunRef::latest(workflow_id.into_name()))
    }

    /// Completes the attempt of this [token](crate::ActivityCtx::completion_token) with a result. It is durable when this
    /// answers. A token whose attempt was followed by another is refused.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App, token: String, answered_yes: bool) -> dacapo::Result<()> {
    /// // The attempt handed out its token and returned `ctx.complete_later()`.
    /// if answered_yes {
    ///     app.complete(&token, &true).await?;
    /// } else {
    ///     app.fail(&token, Failure::application("no answer within a week").non_retryable()).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn complete<T: Serialize + ?Sized>(&self, token: &str, result: &T) -> Result<()> {
        let result = self.0.converter().encode(result).map_err(Error::value)?;
        Ok(self.client().complete(token.to_owned(), Ok(result)).await?)
    }

    /// Fails the attempt of this token: its activity is tried again by its retry policy, or fails as well. See
    /// [`complete`](Self::complete) for an example.
    pub async fn fail(&self, token: &str, failure: impl Into<Failure>) -> Result<()> {
        Ok(self.client().complete(token.to_owned(), Err(failure.into())).await?)
    }

    /// Reports progress of the attempt of this token: its heartbeat timeout begins anew, and the next attempt would be given
    /// the details. Returns why the attempt is cancelled, if it is.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App, token: String) -> dacapo::Result<()> {
    /// if let Some(cancelled) = app.heartbeat(&token, &"half of it is done").await? {
    ///     app.fail(&token, cancelled).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn heartbeat<T: Serialize + ?Sized>(&self, token: &str, details: &T) -> Result<Option<Cancelled>> {
        let details = self.0.converter().encode(details).map_err(Error::value)?;
        let reason = self.client().heartbeat(token.to_owned(), details).await?;
        Ok(reason.map(|reason| Cancelled { reason }))
    }

    /// Encodes a value with the converter of this connection, as the calls of this connection do.
    pub fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Payload> {
        self.0.converter().encode(value).map_err(Error::value)
    }

    /// Decodes a payload with the converter of this connection: a memo or the progress of an activity in a
    /// [`Description`](crate::Description), or the details of a failure.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx) -> Result<(), Failure> { ctx.sleep(days(14)).await.map_err(Into::into) }
    /// # #[tokio::main]
    /// # async fn main() -> dacapo::Result<()> {
    /// let app = Dacapo::open("memory:").await?.serve(checkout).await?;
    /// let run = app.start(checkout, ()).memo("customer", "Ada Lovelace").await?;
    /// let customer: String = app.decode(&run.describe().await?.memo["customer"])?;
    /// assert_eq!(customer, "Ada Lovelace");
    /// # app.shutdown().await;
    /// # Ok(()) }
    /// ```
    pub fn decode<T: DeserializeOwned>(&self, payload: &Payload) -> Result<T> {
        self.0.converter().decode(payload).map_err(Error::value)
    }

    /// Lists the processes that serve the backend: their builds, their queues and, where several share the runs, their leases. A node
    /// whose lease is over is being replaced by the others.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// for node in app.nodes().await? {
    ///     println!("{}, build {}, serves {:?}", node.name, node.build, node.queues);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn nodes(&self) -> Result<Vec<Node>> {
        Ok(self.client().nodes().await?)
    }

    /// Returns access to the runs of the backend: to list, describe, verify and export them.
    pub fn runs(&self) -> Runs {
        Runs::new(self.0.clone())
    }
}
