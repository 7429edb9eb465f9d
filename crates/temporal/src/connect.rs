//! Connecting to a cluster.

use std::time::Duration;

use dacapo_client::{Error, Result};
use dacapo_core::Name;
use temporalio_client::envconfig::{DataSource, LoadClientConfigProfileOptions};
use temporalio_client::errors::ClientConnectError;
use temporalio_client::{ClientOptions, Connection, ConnectionOptions, TlsOptions, Url};
use tokio::runtime::Handle;
use tonic::Code;

use crate::address::Address;

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The queue of programs that name none.
const DEFAULT_QUEUE: Name = Name::from_static("default");

/// A connection to a namespace of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) connection: Connection,
    pub(crate) namespace: String,
    pub(crate) queue: Name,
    pub(crate) start_to_close: Duration,
    pub(crate) runtime: Handle,
    address: String,
}

impl Cluster {
    /// Connects to the cluster of this address.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for settings that cannot be used, [`Error::Unavailable`] if the cluster does not answer.
    pub async fn connect(address: Address) -> Result<Self> {
        let profile = LoadClientConfigProfileOptions::builder()
            .maybe_config_source(address.config.clone().map(DataSource::Path))
            .maybe_config_file_profile(address.profile.clone())
            .build();
        let invalid =
            |problem: String| Error::InvalidArgument(format!("the connection to Temporal cannot be set up: {problem}"));
        let (mut connection, client) =
            ClientOptions::load_from_config(profile).map_err(|error| invalid(error.to_string()))?;
        let is_encrypted = address.tls.unwrap_or(connection.tls_options.is_some());
        connection.tls_options = match (is_encrypted, connection.tls_options.take()) {
            (true, tls) => Some(tls.unwrap_or_else(TlsOptions::default)),
            (false, _) => None,
        };
        let scheme = if is_encrypted { "https" } else { "http" };
        if let Some(host) = &address.host {
            let target = format!("{scheme}://{}", with_port(host));
            connection.target = target.parse::<Url>().map_err(|error| invalid(format!("host {host:?}: {error}")))?;
        }
        // The scheme alone decides whether the connection is encrypted.
        let address_of_environment = connection.target.to_string();
        (connection.target.set_scheme(scheme))
            .map_err(|()| invalid(format!("address {address_of_environment:?} is not one of http or https")))?;
        connection.identity = identity();
        connection.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
        Self::over(connection, client.namespace, address).await
    }

    async fn over(connection: ConnectionOptions, namespace: String, address: Address) -> Result<Self> {
        let target = connection.target.to_string();
        let namespace = address.namespace.unwrap_or(namespace);
        let unreachable = |problem: String| {
            Error::Unavailable(format!(
                "the Temporal cluster at {target} cannot be reached: {problem}. Check the address, and that the server runs \
                 (`temporal server start-dev` starts one)"
            ))
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, Connection::connect(connection)).await;
        let connected = connected.map_err(|_| unreachable(format!("no answer within {CONNECT_TIMEOUT:?}")))?;
        let connection = connected.map_err(|error| match &error {
            ClientConnectError::SystemInfoCallError(status) if is_refusal(status.code()) => Error::Refused(format!(
                "the Temporal cluster at {target} does not accept this program: {}. Check the API key (TEMPORAL_API_KEY, or `api_key` of \
                 the profile) and the certificate (TEMPORAL_TLS_*)",
                status.message()
            )),
            error => unreachable(explained(error)),
        })?;
        let queue = address.queue.unwrap_or(DEFAULT_QUEUE);
        let (start_to_close, runtime) = (address.start_to_close, Handle::current());
        Ok(Self { connection, namespace, queue, start_to_close, runtime, address: target })
    }

    /// Returns the same connection with another queue for starts that name none.
    #[must_use]
    pub fn with_queue(self, queue: Name) -> Self {
        Self { queue, ..self }
    }

    /// Returns the task queue of the address.
    pub fn queue(&self) -> &Name {
        &self.queue
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns where the cluster is.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, namespace, queue, .. } = self;
        f.debug_struct("Cluster").field("address", address).field("namespace", namespace).field("queue", queue).finish()
    }
}

fn is_refusal(code: Code) -> bool {
    matches!(code, Code::Unauthenticated | Code::PermissionDenied)
}

/// A host without a port has the port of Temporal.
fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    if has_port { host.to_owned() } else { format!("{host}:7233") }
}

/// The name by which the server knows this process.
fn identity() -> String {
    format!("{}@{}", std::process::id(), hostname())
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown-host".to_owned() } else { name.to_owned() }
}

/// An error and its causes, each said once.
fn explained(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_without_a_port_gets_that_of_temporal() {
        assert_eq!(with_port("cluster"), "cluster:7233");
        assert_eq!(with_port("cluster:1"), "cluster:1");
        assert_eq!(with_port("[fe80::1]"), "[fe80::1]:7233");
        assert_eq!(with_port("[fe80::1]:5"), "[fe80::1]:5");
    }
}
