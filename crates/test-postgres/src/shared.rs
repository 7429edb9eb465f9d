//! The database that tests share.

use std::hash::{BuildHasher as _, RandomState};

/// The variable with the URL of the database that tests share.
pub const SHARED_DATABASE: &str = "DACAPO_POSTGRES_URL";

/// Returns the URL of the database that tests share.
///
/// # Panics
/// There is none; the text says what to do.
pub fn shared_url() -> String {
    std::env::var(SHARED_DATABASE).unwrap_or_else(|_| {
        panic!("{SHARED_DATABASE} names no PostgreSQL database: run the tests by `cargo xtask postgres`, which starts a server")
    })
}

/// Returns the URL of a schema of the shared database that no other test uses.
///
/// # Panics
/// There is no shared database; the text says what to do.
pub fn new_schema_url() -> String {
    schema_url(&shared_url())
}

/// Returns the URL of a database with a schema that is not there yet.
pub fn schema_url(database: &str) -> String {
    let separator = if database.contains('?') { '&' } else { '?' };
    // The standard library seeds these keys randomly.
    format!("{database}{separator}schema=t_{:016x}", RandomState::new().hash_one(std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_of_each_url_is_another_one() {
        let (first, second) = (schema_url("postgres://host/db"), schema_url("postgres://host/db?sslmode=require"));
        assert!(first.starts_with("postgres://host/db?schema=t_"), "{first}");
        assert!(second.starts_with("postgres://host/db?sslmode=require&schema=t_"), "{second}");
        assert_ne!(first.rsplit('_').next(), second.rsplit('_').next());
    }
}
