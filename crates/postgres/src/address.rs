//! The address of a store: a URL of PostgreSQL's own form, with a few parameters of Dacapo.

use std::str::FromStr;
use std::time::Duration;

use dacapo_core::DurationText;
use dacapo_store::StoreError;
use tokio_postgres::Config;

/// The schema of a store, unless the URL names another.
const SCHEMA: &str = "dacapo";

/// The settings of every session. A plan is made once for a statement and never depends on its values, because the
/// arrays of one group say nothing about those of the next.
///
/// A pooler that shares sessions between clients refuses the last of them, and names it in its error, or leaves all of them out.
const SESSION: &str = "-c plan_cache_mode=force_generic_plan -c jit=off -c client_min_messages=warning \
     -c default_transaction_isolation=read\\ committed -c statement_timeout=0 -c dacapo.direct=on";

/// How often a silent connection is asked for a sign of life before it counts as lost.
const PROBES: u32 = 3;

/// A store's server, database and schema.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) schema: String,
    pub(crate) encryption: Encryption,
    /// The file with the certificates of authorities that are trusted besides the system's.
    pub(crate) authorities: Option<String>,
    /// The name of this process among those that share the store. By default it has a new one each time.
    pub(crate) node: Option<String>,
    pub(crate) pace: Pace,
}

/// How often a node says that it is there, and looks for what notices may have missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The time after which the others take a silent node for dead.
    pub(crate) lease: Duration,
    pub(crate) renewal: Duration,
    pub(crate) slow_poll: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { lease: Duration::from_secs(10), renewal: Duration::from_secs(3), slow_poll: Duration::from_secs(5) }
    }
}

/// How a connection is encrypted, in the words of PostgreSQL's own clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// `disable`
    None,
    /// `prefer`: encrypted if the server can.
    Preferred,
    /// `require`: encrypted, whatever the server's certificate says.
    Required,
    /// `verify-full`: encrypted, by a server whose certificate is checked.
    Verified,
}

impl Address {
    /// Reads a URL such as `postgres://app@db.example/app?schema=orders`.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut schema = SCHEMA.to_owned();
        let mut encryption = None;
        let (mut authorities, mut node, mut pace) = (None, None, Pace::default());
        let mut others = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("schema", value)) => schema = checked_schema(value)?,
                Some(("sslmode", value)) => encryption = Some(Encryption::parse(value)?),
                Some(("sslrootcert", value)) => authorities = Some(value.to_owned()),
                Some(("node", value)) => node = Some(checked_node(value)?),
                Some((name @ "lease", value)) => pace.lease = time(name, value)?,
                Some((name @ "renewal", value)) => pace.renewal = time(name, value)?,
                Some((name @ "slow_poll", value)) => pace.slow_poll = time(name, value)?,
                Some(("options", _)) => {
                    return Err(wrong(
                        "`options` is used by Dacapo itself: set defaults of the role or the database instead",
                    ));
                }
                _ => others.push(parameter),
            }
        }
        let rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
        let mut config = Config::from_str(&rest).map_err(|error| wrong(&reason(&error)))?;
        let default = if authorities.is_some() { Encryption::Verified } else { Encryption::Preferred };
        let encryption = encryption.unwrap_or(default);
        config.ssl_mode(encryption.mode());
        config.options(format!("-c search_path={schema} {SESSION}"));
        if config.get_application_name().is_none() {
            config.application_name("dacapo");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        let is_given = |name: &str| others.iter().any(|other| other.split('=').next() == Some(name));
        // A server whose machine is gone says nothing: a node notices that before its lease is over.
        let probe = (pace.lease / 3 / PROBES).max(Duration::from_secs(1));
        if !is_given("keepalives_idle") {
            config.keepalives_idle((pace.lease / 3).max(Duration::from_secs(1)));
        }
        if !is_given("keepalives_interval") {
            config.keepalives_interval(probe);
        }
        if !is_given("keepalives_retries") {
            config.keepalives_retries(PROBES);
        }
        if !is_given("tcp_user_timeout") {
            config.tcp_user_timeout(pace.lease);
        }
        if pace.renewal * 2 > pace.lease {
            let (renewal, lease) = (DurationText(pace.renewal), DurationText(pace.lease));
            return Err(wrong(&format!(
                "`renewal` is {renewal} and `lease` {lease}: a lease must last for two renewals at least, or a node is taken for \
                 dead that is not"
            )));
        }
        Ok(Self { config, schema, encryption, authorities, node, pace })
    }

    /// Returns the server and the database as an operator knows them, without a password.
    pub(crate) fn shown(&self) -> String {
        use tokio_postgres::config::Host;
        let host = self.config.get_hosts().first().map_or_else(String::new, |host| match host {
            Host::Tcp(host) => host.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres");
        format!("{host}:{port}/{database}, schema {}", self.schema)
    }
}

impl Encryption {
    fn parse(word: &str) -> Result<Self, StoreError> {
        Ok(match word {
            "disable" => Self::None,
            "prefer" | "allow" => Self::Preferred,
            "require" => Self::Required,
            "verify-ca" | "verify-full" => Self::Verified,
            other => {
                return Err(wrong(&format!(
                    "`sslmode` is {other:?}: it is one of disable, prefer, require, verify-full"
                )));
            }
        })
    }

    fn mode(self) -> tokio_postgres::config::SslMode {
        use tokio_postgres::config::SslMode;
        match self {
            Self::None => SslMode::Disable,
            Self::Preferred => SslMode::Prefer,
            Self::Required | Self::Verified => SslMode::Require,
        }
    }
}

/// Checks that a schema's name can be written into statements and settings as it is.
fn checked_schema(name: &str) -> Result<String, StoreError> {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_');
    let goes_on = letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if begins && goes_on && name.len() <= 63 && !name.starts_with("pg_") {
        return Ok(name.to_owned());
    }
    Err(wrong(&format!(
        "`schema` is {name:?}: it takes at most 63 of the letters a to z, digits and underscores, no digit first, and not pg_ first"
    )))
}

fn checked_node(name: &str) -> Result<String, StoreError> {
    if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
        return Err(wrong(&format!("`node` is {name:?}: it takes 1 to 200 bytes without control characters")));
    }
    Ok(name.to_owned())
}

/// Reads a time such as `10s` or `500ms`.
fn time(name: &str, value: &str) -> Result<Duration, StoreError> {
    let millis = value.strip_suffix("ms").map(|digits| (digits, 1));
    let seconds = || value.strip_suffix('s').map(|digits| (digits, 1_000));
    let read = millis.or_else(seconds).and_then(|(digits, unit)| digits.parse::<u64>().ok()?.checked_mul(unit));
    match read.filter(|millis| (50..=3_600_000).contains(millis)) {
        Some(millis) => Ok(Duration::from_millis(millis)),
        None => Err(wrong(&format!("`{name}` is {value:?}: give a time from 50ms to 3600s, such as `10s`"))),
    }
}

fn wrong(what: &str) -> StoreError {
    StoreError::Unsupported(format!("the URL of the store is wrong: {what}"))
}

/// Returns an error with its causes, without what is said twice.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        Address::parse(url).err().expect("the URL is wrong").to_string()
    }

    #[test]
    fn parameters_of_dacapo_are_taken_and_the_others_go_to_the_client() {
        let address = Address::parse(
            "postgres://app:secret@db.example:5433/shop?schema=orders&connect_timeout=3&sslmode=disable",
        );
        let address = address.unwrap();
        assert_eq!(address.shown(), "db.example:5433/shop, schema orders");
        assert_eq!(address.encryption, Encryption::None);
        assert_eq!(address.config.get_connect_timeout().unwrap().as_secs(), 3);
        let options = address.config.get_options().unwrap();
        assert!(options.starts_with("-c search_path=orders "), "{options}");
    }

    #[test]
    fn a_server_that_is_gone_is_noticed_within_the_lease_unless_the_url_says_otherwise() {
        let config = Address::parse("postgres://db/shop?lease=9s").unwrap().config;
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(3));
        assert_eq!(config.get_keepalives_interval(), Some(Duration::from_secs(1)));
        assert_eq!(config.get_keepalives_retries(), Some(3));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(9)));
        let given = Address::parse("postgres://db/shop?keepalives_idle=60&tcp_user_timeout=5").unwrap().config;
        assert_eq!(given.get_keepalives_idle(), Duration::from_secs(60));
        assert_eq!(given.get_tcp_user_timeout(), Some(&Duration::from_secs(5)));
    }

    #[test]
    fn a_server_is_verified_when_the_authority_is_named() {
        let verified = Address::parse("postgres://db/shop?sslrootcert=/etc/ca.pem").unwrap();
        assert_eq!(verified.encryption, Encryption::Verified);
        assert_eq!(Address::parse("postgres://db/shop").unwrap().encryption, Encryption::Preferred);
    }

    #[test]
    fn a_wrong_url_says_what_is_wrong() {
        assert!(error("postgres://db/shop?schema=Orders").contains("`schema` is \"Orders\""));
        assert!(error("postgres://db/shop?schema=pg_x").contains("not pg_ first"));
        assert!(error("postgres://db/shop?sslmode=maybe").contains("one of disable, prefer"));
        assert!(error("postgres://db/shop?options=-c%20x").contains("used by Dacapo itself"));
        assert!(error("postgres://db/shop?lease=3").contains("`lease` is \"3\": give a time"));
        assert!(
            error("postgres://db/shop?lease=3s&renewal=2s")
                .contains("`renewal` is 2s and `lease` 3s: a lease must last for two renewals")
        );
        assert!(error("postgres://db/shop?node=").contains("`node` is \"\""));
        assert!(error("postgres://db:port/shop").contains("the URL of the store is wrong"));
    }
}
