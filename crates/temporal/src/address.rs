//! The URL that says where a cluster is: `temporal://host:port/namespace?queue=orders`.

use std::time::Duration;

use dacapo_core::Name;
use thiserror::Error;

/// The start-to-close timeout of activities that have no timeout of their own: the server demands one.
pub const DEFAULT_START_TO_CLOSE: Duration = Duration::from_secs(600);

const EXAMPLES: &str = "Write `temporal://localhost:7233/default?queue=orders`, or `temporal:` for the address in TEMPORAL_ADDRESS or \
                        temporal.toml; known parameters are queue, profile, config, tls and start_to_close";

/// Where a cluster is, and how a program joins it. What the URL leaves open comes from the environment (`TEMPORAL_ADDRESS`,
/// `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS_*`) and from the profile in `temporal.toml`, as for Temporal's own tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host and port.
    pub host: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The task queue that is served, and to which starts go that name none.
    pub queue: Option<Name>,
    /// The profile of `temporal.toml`.
    pub profile: Option<String>,
    /// The file that is read instead of `temporal.toml` in its usual place.
    pub config: Option<String>,
    /// Whether the connection is encrypted; if neither this nor the environment says so, it is where there is an API key or a
    /// certificate.
    pub tls: Option<bool>,
    /// The start-to-close timeout of activities that have no timeout which bounds an attempt.
    pub start_to_close: Duration,
}

/// A URL that names no cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{url:?} cannot be opened: {problem}. {EXAMPLES}")]
pub struct BadAddress {
    /// The URL.
    pub url: String,
    /// Why it cannot be used.
    pub problem: String,
}

impl Address {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`BadAddress`], which says what is wrong and shows URLs that work.
    pub fn parse(url: &str) -> Result<Self, BadAddress> {
        let bad = |problem: String| BadAddress { url: url.to_owned(), problem };
        let rest = url.strip_prefix("temporal:").ok_or_else(|| bad("it does not begin with `temporal:`".to_owned()))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut address = Self {
            host: None,
            namespace: None,
            queue: None,
            profile: None,
            config: None,
            tls: None,
            start_to_close: DEFAULT_START_TO_CLOSE,
        };
        if !place.is_empty() {
            let place = place.strip_prefix("//").ok_or_else(|| bad("the host follows `//`".to_owned()))?;
            address.place(place).map_err(&bad)?;
        }
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            address.parameter(name, value).map_err(&bad)?;
        }
        Ok(address)
    }

    fn place(&mut self, place: &str) -> Result<(), String> {
        let (host, namespace) = place.split_once('/').unwrap_or((place, ""));
        if host.contains('@') {
            return Err("it has a user or a password: an API key belongs into TEMPORAL_API_KEY".to_owned());
        }
        if let Some((_, port)) = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'))
            && !port.parse::<u16>().is_ok_and(|port| port > 0)
        {
            return Err(format!("invalid port {port:?}: expected 1 to 65535"));
        }
        if namespace.contains('/') {
            return Err(format!("namespace {namespace:?} has a slash in it"));
        }
        self.host = (!host.is_empty()).then(|| host.to_owned());
        self.namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        Ok(())
    }

    fn parameter(&mut self, name: &str, value: &str) -> Result<(), String> {
        let needs_value = || format!("parameter {name:?} has no value");
        match (name, value) {
            ("queue" | "profile" | "config" | "tls" | "start_to_close", "") => return Err(needs_value()),
            ("queue", queue) => self.queue = Some(Name::from(queue.to_owned())),
            ("profile", profile) => self.profile = Some(profile.to_owned()),
            ("config", path) => self.config = Some(path.to_owned()),
            ("tls", "true") => self.tls = Some(true),
            ("tls", "false") => self.tls = Some(false),
            ("tls", other) => return Err(format!("invalid tls {other:?}: expected true or false")),
            ("start_to_close", text) => {
                self.start_to_close = duration(text).ok_or_else(|| {
                    format!("invalid start_to_close {text:?}: expected a time such as 30s, 10m or 2h")
                })?;
            }
            (other, _) => return Err(format!("it has an unknown parameter {other:?}")),
        }
        Ok(())
    }
}

/// A positive number and a unit.
fn duration(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let millis = number.parse::<u64>().ok()?.checked_mul(millis)?;
    (millis > 0).then(|| Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_names_host_namespace_and_parameters() {
        let address = Address::parse(
            "temporal://cluster:7233/shop?queue=orders&profile=prod&config=/etc/temporal.toml&tls=true&start_to_close=90s",
        );
        let expected = Address {
            host: Some("cluster:7233".into()),
            namespace: Some("shop".into()),
            queue: Some("orders".into()),
            profile: Some("prod".into()),
            config: Some("/etc/temporal.toml".into()),
            tls: Some(true),
            start_to_close: Duration::from_secs(90),
        };
        assert_eq!(address, Ok(expected));
        let open = Address::parse("temporal:").unwrap();
        assert_eq!((open.host, open.namespace, open.start_to_close), (None, None, DEFAULT_START_TO_CLOSE));
        assert_eq!(Address::parse("temporal://[fe80::1]:7233").unwrap().host.as_deref(), Some("[fe80::1]:7233"));
    }

    #[test]
    fn url_that_names_no_cluster_is_refused_with_what_is_wrong() {
        let problem = |url: &str| Address::parse(url).unwrap_err().problem;
        assert_eq!(problem("temporal:localhost"), "the host follows `//`");
        assert_eq!(problem("temporal://cluster:72333/x"), "invalid port \"72333\": expected 1 to 65535");
        assert_eq!(problem("temporal://localhost:0"), "invalid port \"0\": expected 1 to 65535");
        assert_eq!(problem("temporal://a/b/c"), "namespace \"b/c\" has a slash in it");
        assert_eq!(problem("temporal://a?queue"), "parameter \"queue\" has no value");
        assert_eq!(problem("temporal://a?tls=yes"), "invalid tls \"yes\": expected true or false");
        assert_eq!(problem("temporal://a?api_key=x"), "it has an unknown parameter \"api_key\"");
        assert_eq!(
            problem("temporal://key@a"),
            "it has a user or a password: an API key belongs into TEMPORAL_API_KEY"
        );
        for text in ["0s", "10", "m", "-1s", "1.5s", "99999999999999999999d"] {
            assert!(problem(&format!("temporal://a?start_to_close={text}")).contains("a time such as"), "{text}");
        }
        let whole = Address::parse("temporal://a?queue").unwrap_err().to_string();
        assert!(whole.contains("default?queue=orders"), "{whole}");
    }
}
