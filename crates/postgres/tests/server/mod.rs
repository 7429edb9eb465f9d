//! The server that the tests use, and a schema of its own for each test.

use std::sync::atomic::{AtomicU64, Ordering};

use dacapo_postgres::PostgresStore;

/// Names the server. `cargo xtask postgres` sets it.
const URL: &str = "DACAPO_POSTGRES_URL";

/// A schema that no other test uses.
pub(crate) struct Schema {
    url: String,
}

impl Schema {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let server = std::env::var(URL).unwrap_or_else(|_| {
            panic!("these tests need a PostgreSQL server, and {URL} names none: run `cargo xtask postgres`, which starts one")
        });
        let name = format!("t_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mark = if server.contains('?') { '&' } else { '?' };
        Self { url: format!("{server}{mark}schema={name}") }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn store(&self) -> PostgresStore {
        PostgresStore::open(&self.url).expect("the store opens")
    }
}
