//! Connecting to a cluster.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use dacapo_client::{Error, Result};
use dacapo_core::{DurationText, Name};
use temporalio_client::envconfig::{ConfigError, DataSource, LoadClientConfigProfileOptions};
use temporalio_client::errors::ClientConnectError;
use temporalio_client::{Connection, ConnectionOptions, TlsOptions, Url};
use temporalio_common::envconfig::load_client_config_profile;
use tokio::runtime::Handle;
use tonic::Code;

use crate::address::Address;

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The queue of programs that name none.
const DEFAULT_QUEUE: Name = Name::from_static("default");
/// The namespace where neither the URL nor the environment names one.
const DEFAULT_NAMESPACE: &str = "default";

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
        let (mut connection, namespace) = settings(&address, None)?;
        connection.identity = identity();
        connection.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
        Self::over(connection, namespace, address).await
    }

    async fn over(connection: ConnectionOptions, namespace: String, address: Address) -> Result<Self> {
        let target = connection.target.to_string();
        let unreachable = |problem: String| {
            Error::Unavailable(format!(
                "the Temporal cluster at {target} cannot be reached: {problem}. Check the address, and that the server runs \
                 (`temporal server start-dev` starts one)"
            ))
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, Connection::connect(connection)).await;
        let connected =
            connected.map_err(|_| unreachable(format!("no answer within {}", DurationText(CONNECT_TIMEOUT))))?;
        let connection = connected.map_err(|error| match &error {
            ClientConnectError::SystemInfoCallError(status) if is_refusal(status.code()) => Error::Refused(format!(
                "the Temporal cluster at {target} does not accept this program: {}. Check the API key (TEMPORAL_API_KEY, or `api_key` of \
                 the profile) and the certificate (TEMPORAL_TLS_*)",
                status.message()
            )),
            // The text of this one is a dump of the error below it.
            ClientConnectError::TonicTransportError(error) => unreachable(explained(error)),
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

/// Returns how to connect, and the namespace: what the URL says, then the environment, then the profile. Without `variables` the
/// environment is that of the process.
fn settings(address: &Address, variables: Option<&HashMap<String, String>>) -> Result<(ConnectionOptions, String)> {
    let invalid =
        |problem: String| Error::InvalidArgument(format!("the connection to Temporal cannot be set up: {problem}"));
    if let Some(file) = address.config.as_ref().filter(|file| !Path::new(file).exists()) {
        let problem = format!("file {file:?}, which the URL names, does not exist. Correct `config`, or leave it out");
        return Err(invalid(problem));
    }
    let options = LoadClientConfigProfileOptions::builder()
        .maybe_config_source(address.config.clone().map(DataSource::Path))
        .maybe_config_file_profile(address.profile.clone())
        .build();
    let unusable = |error: ConfigError| {
        invalid(format!(
            "{}. Correct temporal.toml or the TEMPORAL_ variables, or name another file or profile by `config` and `profile` in the URL",
            error.to_string().trim_end()
        ))
    };
    let profile = load_client_config_profile(options, variables).map_err(unusable)?;
    if profile.tls.as_ref().is_some_and(|tls| tls.disable_host_verification) {
        let problem = "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION (`disable_host_verification` of the profile) is not supported: every \
                       connection verifies the server. Unset it, and name the server's authority by TEMPORAL_TLS_SERVER_CA_CERT_PATH \
                       and its name by TEMPORAL_TLS_SERVER_NAME";
        return Err(invalid(problem.to_owned()));
    }
    let namespace = address.namespace.clone().or_else(|| profile.namespace.clone());
    let mut connection = ConnectionOptions::try_from(profile).map_err(unusable)?;
    let asks_for_it = address.host.is_none() && connection.target.scheme() == "https";
    let is_encrypted = address.tls.unwrap_or(connection.tls_options.is_some() || asks_for_it);
    connection.tls_options = match (is_encrypted, connection.tls_options.take()) {
        (true, tls) => Some(tls.unwrap_or_else(TlsOptions::default)),
        (false, _) => None,
    };
    let scheme = if is_encrypted { "https" } else { "http" };
    if let Some(host) = &address.host {
        let target = format!("{scheme}://{}", with_port(host));
        connection.target = target.parse::<Url>().map_err(|error| {
            invalid(format!(
                "host {host:?}: {error}. Write a name or an address, and a port if it is not 7233, as in `cluster:7233`"
            ))
        })?;
    }
    // The connection is encrypted where both its options and the scheme say so.
    let given = connection.target.to_string();
    (connection.target.set_scheme(scheme))
        .map_err(|()| invalid(format!("address {given:?} is not one of http or https")))?;
    Ok((connection, namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())))
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

    /// The target and the namespace of a URL in an environment without a file.
    fn connection(url: &str, variables: &[(&str, &str)]) -> Result<(ConnectionOptions, String)> {
        // No file: the one of the machine's user is of no concern here.
        let no_file = [("TEMPORAL_CONFIG_FILE", "/no/such/file")];
        let all = variables.iter().chain(&no_file).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        settings(&Address::parse(url).unwrap(), Some(&all.collect()))
    }

    fn target(url: &str, variables: &[(&str, &str)]) -> (String, bool) {
        let (connection, _) = connection(url, variables).unwrap();
        (connection.target.to_string(), connection.tls_options.is_some())
    }

    #[test]
    fn variables_say_where_the_cluster_is_and_the_url_goes_before_them() {
        let variables =
            [("TEMPORAL_ADDRESS", "cluster:1"), ("TEMPORAL_NAMESPACE", "shop"), ("TEMPORAL_API_KEY", "key")];
        let (from_variables, namespace) = connection("temporal:", &variables).unwrap();
        assert_eq!((from_variables.target.as_str(), namespace.as_str()), ("https://cluster:1/", "shop"));
        assert_eq!((from_variables.api_key.as_deref(), from_variables.tls_options.is_some()), (Some("key"), true));
        let (from_url, namespace) = connection("temporal://other/orders?tls=false", &variables).unwrap();
        assert_eq!((from_url.target.as_str(), namespace.as_str()), ("http://other:7233/", "orders"));
        assert!(from_url.tls_options.is_none());
        let (open, namespace) = connection("temporal:", &[]).unwrap();
        assert_eq!((open.target.scheme(), open.target.host_str()), ("http", Some("localhost")));
        assert_eq!((open.target.port(), namespace.as_str()), (Some(7233), "default"));
    }

    #[test]
    fn address_that_asks_for_encryption_gets_it() {
        let https = [("TEMPORAL_ADDRESS", "https://cluster:1")];
        assert_eq!(target("temporal:", &https), ("https://cluster:1/".to_owned(), true));
        assert_eq!(target("temporal:?tls=false", &https), ("http://cluster:1/".to_owned(), false));
        assert_eq!(target("temporal://other", &https), ("http://other:7233/".to_owned(), false));
        let http = [("TEMPORAL_ADDRESS", "cluster:1")];
        assert_eq!(target("temporal:?tls=true", &http), ("https://cluster:1/".to_owned(), true));
        assert_eq!(target("temporal:", &[http[0], ("TEMPORAL_TLS", "true")]), ("https://cluster:1/".to_owned(), true));
        assert_eq!(
            target("temporal:", &[http[0], ("TEMPORAL_API_KEY", "key"), ("TEMPORAL_TLS", "false")]),
            ("http://cluster:1/".to_owned(), false)
        );
    }

    #[test]
    fn variables_name_certificates_and_the_server() {
        let variables = [
            ("TEMPORAL_TLS_CLIENT_CERT_DATA", "certificate"),
            ("TEMPORAL_TLS_CLIENT_KEY_DATA", "key"),
            ("TEMPORAL_TLS_SERVER_CA_CERT_DATA", "authority"),
            ("TEMPORAL_TLS_SERVER_NAME", "shop.example"),
        ];
        let tls = connection("temporal:", &variables).unwrap().0.tls_options.unwrap();
        assert_eq!(tls.server_root_ca_cert.as_deref(), Some(b"authority".as_slice()));
        assert_eq!(tls.domain.as_deref(), Some("shop.example"));
        let client = tls.client_tls_options.unwrap();
        assert_eq!(
            (client.client_cert.as_slice(), client.client_private_key.as_slice()),
            (&b"certificate"[..], &b"key"[..])
        );
        let refused = connection("temporal:", &variables[..1]).unwrap_err().to_string();
        assert!(refused.contains("must be provided together"), "{refused}");
    }

    #[test]
    fn connection_without_host_verification_is_refused_by_name() {
        let name = "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION";
        let tls = ("TEMPORAL_TLS", "true");
        let refused = connection("temporal:", &[tls, (name, "true")]).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("TEMPORAL_TLS_SERVER_NAME"), "{refused}");
        assert!(connection("temporal:", &[tls, (name, "false")]).is_ok());
    }

    #[test]
    fn profile_or_file_that_does_not_exist_is_refused() {
        let refused = connection("temporal:?config=/no/such/file", &[]).unwrap_err().to_string();
        assert!(refused.contains("\"/no/such/file\", which the URL names, does not exist"), "{refused}");
        let refused = connection("temporal:", &[("TEMPORAL_PROFILE", "prod")]).unwrap_err().to_string();
        assert!(refused.contains("'prod' not found"), "{refused}");
    }

    #[test]
    fn host_without_a_port_gets_that_of_temporal() {
        assert_eq!(with_port("cluster"), "cluster:7233");
        assert_eq!(with_port("cluster:1"), "cluster:1");
        assert_eq!(with_port("[fe80::1]"), "[fe80::1]:7233");
        assert_eq!(with_port("[fe80::1]:5"), "[fe80::1]:5");
    }
}
