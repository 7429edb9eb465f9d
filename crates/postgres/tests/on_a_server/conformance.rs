//! The suite that every store must pass.

use dacapo_postgres::PostgresStore;

use crate::schema::Schema;

dacapo_store::conformance_tests!(PostgresStore::open(Schema::new().url()).expect("the store opens"));
