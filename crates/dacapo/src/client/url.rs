//! The one line that says where a program runs.

use std::path::PathBuf;

use crate::client::{Error, Result};

/// Where to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Sqlite {
        path: String,
        read_only: bool,
    },
    /// The store reads the URL.
    #[cfg(feature = "postgres")]
    Postgres {
        url: String,
        read_only: bool,
    },
    #[cfg(feature = "temporal")]
    Temporal(dacapo_temporal::Address),
    /// A program that serves runs, and that is called.
    #[cfg(feature = "control")]
    Program(dacapo_control::Target),
}

impl Place {
    pub(crate) fn parse(url: &str) -> Result<Self> {
        #[cfg(feature = "temporal")]
        if url.starts_with("temporal:") {
            let address = dacapo_temporal::Address::parse(url);
            return address.map(Self::Temporal).map_err(|bad| Error::Url(bad.to_string()));
        }
        #[cfg(feature = "postgres")]
        if ["postgres:", "postgresql:"].iter().any(|scheme| url.starts_with(scheme)) {
            return Ok(Self::postgres(url));
        }
        #[cfg(feature = "control")]
        if ["unix:", "http:", "https:"].iter().any(|scheme| url.starts_with(scheme)) {
            return dacapo_control::Target::parse(url).map(Self::Program).map_err(|bad| Error::Url(bad.to_string()));
        }
        let shown = without_password(url);
        let bad = |problem: String| Err(Error::Url(format!("{shown:?} cannot be opened: {problem}. {KNOWN}")));
        let Some((scheme, rest)) = url.split_once(':') else { return bad("it names no kind of store".to_owned()) };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut read_only = false;
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            match setting {
                "mode=ro" => read_only = true,
                other if other.starts_with("mode=") => {
                    return bad(format!(
                        "{other:?} is no mode: `mode` has the value `ro` only, and is left out to serve"
                    ));
                }
                other => return bad(format!("it has an unknown setting {other:?}")),
            }
        }
        match scheme {
            "memory" if path.is_empty() && !read_only => Ok(Self::Memory),
            "memory" => bad("a store in memory has neither a name nor settings".to_owned()),
            "sqlite" => match path.strip_prefix("//").unwrap_or(path) {
                "" => bad("it names no file".to_owned()),
                // The name that SQLite and other libraries give to a database in memory. As a file name it would be one more
                // file, kept for ever.
                ":memory:" | ":memory" => bad("a store in memory is opened with `memory:`".to_owned()),
                path => Ok(Self::Sqlite { path: path.to_owned(), read_only }),
            },
            "temporal" => {
                bad("temporal is not part of this build: enable the feature `temporal` of the crate".to_owned())
            }
            "postgres" | "postgresql" => bad(format!(
                "{scheme} is not part of this build: enable the feature `postgres` of the crate, as in \
                 `dacapo = {{ version = \"{}\", features = [\"postgres\"] }}`",
                env!("CARGO_PKG_VERSION")
            )),
            other => bad(format!("{other:?} is no kind of store")),
        }
    }

    /// A database. The setting `mode=ro` is read here, as for a file; all others are left to the store.
    #[cfg(feature = "postgres")]
    fn postgres(url: &str) -> Self {
        let (database, query) = url.split_once('?').unwrap_or((url, ""));
        let settings = query.split('&').filter(|setting| !setting.is_empty());
        let (mode, others): (Vec<&str>, Vec<&str>) = settings.partition(|setting| *setting == "mode=ro");
        let separator = if others.is_empty() { "" } else { "?" };
        Self::Postgres { url: format!("{database}{separator}{}", others.join("&")), read_only: !mode.is_empty() }
    }
}

impl Place {
    /// Returns the name of the kind of store, as errors give it.
    pub(crate) fn backend(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite { .. } => "sqlite",
            #[cfg(feature = "postgres")]
            Self::Postgres { .. } => "postgres",
            #[cfg(feature = "temporal")]
            Self::Temporal(_) => "temporal",
            #[cfg(feature = "control")]
            Self::Program(_) => "control",
        }
    }

    /// Returns the file that a program may serve.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Sqlite { path, read_only: false } => Some(path.into()),
            _ => None,
        }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Sqlite { read_only, .. } => *read_only,
            #[cfg(feature = "postgres")]
            Self::Postgres { read_only, .. } => *read_only,
            _ => false,
        }
    }

    /// Returns this place, to be connected to: a file or a database is opened for reading only.
    pub(crate) fn connected(self, url: &str) -> Result<Self> {
        match self {
            Self::Sqlite { path, .. } => Ok(Self::Sqlite { path, read_only: true }),
            #[cfg(feature = "postgres")]
            Self::Postgres { url, .. } => Ok(Self::Postgres { url, read_only: true }),
            #[cfg(feature = "temporal")]
            Self::Temporal(address) => Ok(Self::Temporal(address)),
            #[cfg(feature = "control")]
            Self::Program(target) => Ok(Self::Program(target)),
            Self::Memory => Err(Error::Url(format!(
                "{url:?} cannot be connected to: a store in memory belongs to the process that opened it. Connect to a file, as \
                 in `sqlite:orders.db`, or open this one with `Dacapo::open`"
            ))),
        }
    }
}

/// Returns the URL as errors show it: without the password that may be in it.
fn without_password(url: &str) -> String {
    let password = || {
        let (scheme, rest) = url.split_once("://")?;
        // A password that is not encoded may hold any character.
        let (login, place) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:…@{place}"))
    };
    password().unwrap_or_else(|| url.to_owned())
}

const KNOWN: &str = "Open `memory:`, `sqlite:orders.db`, `sqlite:orders.db?mode=ro` to look at a file that another process serves, \
                     `postgres://user@localhost/orders` with the feature `postgres`, or `temporal://localhost:7233/default` with the \
                     feature `temporal`; connect to `unix:orders.db-control`, the socket of a program that serves a file";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_store_and_how_to_open_it() {
        let sqlite = |path: &str, read_only| Place::Sqlite { path: path.to_owned(), read_only };
        assert_eq!(Place::parse("memory:"), Ok(Place::Memory));
        assert_eq!(Place::parse("sqlite:orders.db"), Ok(sqlite("orders.db", false)));
        assert_eq!(Place::parse("sqlite:///var/orders.db"), Ok(sqlite("/var/orders.db", false)));
        assert_eq!(Place::parse("sqlite:/var/orders.db?mode=ro"), Ok(sqlite("/var/orders.db", true)));
    }

    #[test]
    fn url_of_an_sqlite_database_in_memory_is_refused_with_the_url_that_works() {
        for url in ["sqlite::memory:", "sqlite::memory", "sqlite://:memory:", "sqlite::memory:?mode=ro"] {
            let error = Place::parse(url).expect_err(url).to_string();
            assert!(error.contains("a store in memory is opened with `memory:`"), "{error}");
        }
        // The names of files.
        for url in ["sqlite:memory", "sqlite:./:memory:"] {
            assert!(matches!(Place::parse(url), Ok(Place::Sqlite { .. })), "{url}");
        }
    }

    #[test]
    fn url_that_names_no_store_is_refused_with_examples_of_urls_that_do() {
        for url in [
            "",
            "orders.db",
            "memory",
            "memory:x",
            "memory:?mode=ro",
            "sqlite:",
            "sqlite://",
            "sqlite:x?mode=rw",
            "sqlite:x?mode=rw0",
            "mysql:x",
            "temporal:localhost",
        ] {
            let error = Place::parse(url).expect_err(url).to_string();
            let has_example = error.contains("sqlite:orders.db") || error.contains("queue=orders");
            assert!(has_example && error.contains(&format!("{url:?}")), "{error}");
        }
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn url_of_a_database_names_the_feature_where_that_is_off_and_keeps_the_password_out() {
        for scheme in ["postgres", "postgresql"] {
            let error = Place::parse(&format!("{scheme}://ada:se@cret@localhost/x")).unwrap_err().to_string();
            assert!(error.starts_with(&format!("\"{scheme}://ada:…@localhost/x\" cannot be opened")), "{error}");
            assert!(error.contains("features = [\"postgres\"]"), "{error}");
        }
        let error = Place::parse("postgres://localhost/x").unwrap_err().to_string();
        assert!(error.contains("\"postgres://localhost/x\"") && error.contains("sqlite:orders.db"), "{error}");
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn url_of_a_database_is_left_to_the_store_except_for_its_mode() {
        let database = |url: &str, read_only| Ok(Place::Postgres { url: url.to_owned(), read_only });
        for url in ["postgres://ada@host:1/x?schema=orders&sslmode=require", "postgresql:///x", "postgres:"] {
            assert_eq!(Place::parse(url), database(url, false));
        }
        let of_schema = "postgres://host/x?schema=orders";
        for url in ["postgres://host/x?mode=ro&schema=orders", "postgres://host/x?schema=orders&mode=ro"] {
            assert_eq!(Place::parse(url), database(of_schema, true));
        }
        assert_eq!(Place::parse("postgres://host/x?mode=ro"), database("postgres://host/x", true));
        assert_eq!(Place::parse(of_schema).and_then(|place| place.connected(of_schema)), database(of_schema, true));
    }
}
