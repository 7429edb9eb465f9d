//! What is offered, to whom, and how.

use std::sync::Arc;

use dacapo_client::Client;

use crate::Access;

type Render = Arc<dyn Fn() -> String + Send + Sync>;
type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A control API over a client.
///
/// ```no_run
/// # use std::sync::Arc;
/// use dacapo_control::{Access, Control, Role, Token};
///
/// # async fn serve(client: Arc<dyn dacapo_client::Client>, token: String) -> Result<(), Box<dyn std::error::Error>> {
/// let access = Access::Tokens(vec![Token::new(Role::Operate, token)?]);
/// let router = Control::new(client, access).host("dacapo.example").router();
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7070").await?;
/// axum::serve(listener, router).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Control {
    pub(super) client: Arc<dyn Client>,
    pub(super) access: Access,
    pub(super) hosts: Vec<String>,
    pub(super) metrics: Option<Render>,
    pub(super) ready: Ready,
}

/// The names by which a machine calls itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Control {
    /// Offers a client to those whom the access allows.
    pub fn new(client: Arc<dyn Client>, access: Access) -> Self {
        let hosts = LOOPBACK.map(str::to_owned).to_vec();
        Self { client, access, hosts, metrics: None, ready: Arc::new(|| Ok(())) }
    }

    /// Allows requests to this name of the server, without a port: a proxy's, say. Those of the loopback are allowed; a request to any other
    /// name is refused, since a page of another site could have been resolved to this address.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into().to_lowercase());
        self
    }

    /// Answers `/metrics` with this text: that of the recorder which the program installed.
    #[must_use]
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.metrics = Some(Arc::new(render));
        self
    }

    /// Answers `/readyz` by this check: the error is why the program cannot work now.
    #[must_use]
    pub fn ready(mut self, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.ready = Arc::new(check);
        self
    }
}
