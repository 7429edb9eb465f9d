//! Where a control API is.

use std::fmt;
use std::path::PathBuf;

use dacapo_client::{Error, Result};

/// The place of a control API.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A Unix socket.
    Unix(PathBuf),
    /// A server that speaks HTTP: on the loopback, or behind a tunnel.
    Http {
        /// The host and the port.
        authority: String,
        /// The token that is sent along.
        token: Option<String>,
    },
}

impl Target {
    /// Parses `unix:orders.db-control` or `http://127.0.0.1:7070`. A token stands before the host: `http://TOKEN@127.0.0.1:7070`.
    ///
    /// # Errors
    /// The text is none of these.
    pub fn parse(url: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Err(Error::InvalidArgument(format!(
                "invalid address of a control API: {why}: write unix:PATH or http://TOKEN@HOST:PORT"
            )))
        };
        if let Some(path) = url.strip_prefix("unix:") {
            return if path.is_empty() { wrong("the path is missing") } else { Ok(Self::Unix(path.into())) };
        }
        let Some(rest) = url.strip_prefix("http://") else {
            let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
            if scheme == "https" {
                return wrong("this client speaks no TLS, so connect through a tunnel or on the same machine");
            }
            return wrong(&format!("{scheme:?} is no known scheme"));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (token, host) = match rest.rsplit_once('@') {
            Some((token, host)) => (Some(token.to_owned()), host),
            None => (None, rest),
        };
        if host.is_empty() || host.contains(['/', '?', '#']) {
            return wrong(&format!("{host:?} is no host"));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let authority = if has_port { host.to_owned() } else { format!("{host}:80") };
        Ok(Self::Http { authority, token })
    }
}

/// The address, without the token.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Http { authority, .. } => write!(f, "http://{authority}"),
        }
    }
}

/// The address, without the token.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing listens at it: addresses are parsed alone.
    const PORT: u16 = 7_070;

    #[test]
    fn addresses_are_sockets_and_hosts_with_tokens() {
        assert_eq!(Target::parse("unix:/run/a.sock"), Ok(Target::Unix("/run/a.sock".into())));
        let http = |authority: &str, token: Option<&str>| {
            Ok(Target::Http { authority: authority.to_owned(), token: token.map(str::to_owned) })
        };
        assert_eq!(Target::parse(&format!("http://localhost:{PORT}/")), http(&format!("localhost:{PORT}"), None));
        assert_eq!(
            Target::parse(&format!("http://se@cret@[::1]:{PORT}")),
            http(&format!("[::1]:{PORT}"), Some("se@cret"))
        );
        assert_eq!(Target::parse("http://host"), http("host:80", None));
        let shown = Target::parse("http://secret@host:1").unwrap();
        assert_eq!((shown.to_string(), format!("{shown:?}")), ("http://host:1".into(), "Target(http://host:1)".into()));
    }

    #[test]
    fn address_that_is_none_is_refused_with_the_forms_that_are() {
        for (text, why) in [
            ("unix:", "the path is missing"),
            ("ftp://x", "\"ftp\" is no known scheme"),
            ("https://token@host:1", "this client speaks no TLS"),
            ("http://", "is no host"),
            ("http://a/b", "is no host"),
        ] {
            let error = Target::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("unix:PATH or http://TOKEN@HOST:PORT"), "{error}");
        }
    }
}
