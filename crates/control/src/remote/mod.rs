//! The client's side: a [`Client`](dacapo_client::Client) that makes its calls over HTTP.

mod request;
mod target;

use std::sync::Arc;

use dacapo_client::{
    CallClient, Caller, Capabilities, Client, ClientCall, ClientFuture, ClientReply, Error, Progress, Result,
};

pub use target::Target;

/// Calls a control API.
///
/// ```no_run
/// use dacapo_control::{RemoteClient, Target};
///
/// # async fn example() -> dacapo_client::Result<()> {
/// let client = RemoteClient::connect(Target::parse("unix:orders.db-control")?).await?;
/// println!("{} runs", client.count(Default::default()).await?);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RemoteClient {
    target: Arc<Target>,
    capabilities: Capabilities,
}

impl RemoteClient {
    /// Asks the server what it can do.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the token, or is none of Dacapo's.
    pub async fn connect(target: Target) -> Result<Arc<dyn Client>> {
        let answer = request::get(&target, "/api/v1/capabilities").await?;
        let capabilities = serde_json::from_slice(&answer).map_err(|error| {
            Error::Unavailable(format!("{target} answers, but not as a control API: {error}. Check the address"))
        })?;
        Ok(Arc::new(CallClient(Self { target: Arc::new(target), capabilities })))
    }
}

impl Caller for RemoteClient {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn call(&self, call: ClientCall, _: Progress) -> ClientFuture<ClientReply> {
        let target = self.target.clone();
        Box::pin(async move {
            let verb = call.verb();
            let body = serde_json::to_vec(&call).map_err(|error| {
                Error::InvalidArgument(format!("the call `{verb}` cannot be written as JSON: {error}"))
            })?;
            let answer = request::send_json(&target, "/api/v1/call", body).await?;
            serde_json::from_slice(&answer).map_err(|error| {
                Error::Unavailable(format!("the answer of {target} to `{verb}` cannot be read: {error}"))
            })
        })
    }

    fn mismatch(&self, verb: &str) -> Error {
        Error::Unavailable(format!("{} answered `{verb}` with the reply of another call", self.target))
    }
}
