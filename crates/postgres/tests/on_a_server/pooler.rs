//! A real pooler between the store and the server: statements and notifications belong to a session, so it is refused.

use dacapo_postgres::PostgresStore;
use dacapo_store::StoreError;
use dacapo_test_postgres::Pooler;

use crate::schema::Schema;

/// A pooler in session mode is refused too: it is not told apart from one that gives each transaction another session.
#[test]
fn a_pooler_is_refused_by_name_however_it_is_set_up() {
    let schema = Schema::new();
    let refuses = "(db error: FATAL: unsupported startup parameter";
    let leaves_out = "(it leaves out the settings with which a session begins)";
    for (setting, reason) in [
        ("pool_mode = transaction", refuses),
        ("pool_mode = transaction\nignore_startup_parameters = options", leaves_out),
        ("pool_mode = session", refuses),
        ("pool_mode = session\nignore_startup_parameters = options", leaves_out),
    ] {
        let pooler = Pooler::start(env!("CARGO_TARGET_TMPDIR").as_ref(), &schema.address(), &[setting]);
        let pooler = pooler.expect("PgBouncer starts");
        let url = schema.through(&pooler.address());
        for opened in [PostgresStore::open(&url), PostgresStore::open_read_only(&url)] {
            let error = match opened.err().expect("a pooler is refused") {
                StoreError::Unsupported(error) => error,
                other => panic!("with {setting} a pooler was refused with {other:?}"),
            };
            let (address, schema) = (pooler.address(), schema.name());
            let begins = format!("{address}/postgres, schema {schema}: this is a connection pooler {reason}");
            let ends = "): give Dacapo a direct connection to PostgreSQL, because its statements and notifications belong to a session";
            assert!(error.starts_with(&begins) && error.ends_with(ends), "with {setting}: {error}");
        }
    }
    let error = PostgresStore::open_read_only(schema.url()).err().expect("nothing was made through a pooler");
    assert!(matches!(error, StoreError::Foreign(_)), "{error}");
    PostgresStore::open(schema.url()).expect("the server itself is accepted");
}
