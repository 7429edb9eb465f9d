//! The server that the tests use, and a schema of its own for each test.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::NoTls;

/// Names the server. `cargo xtask postgres` sets it.
const URL: &str = "DACAPO_POSTGRES_URL";

/// A schema that no other test uses.
#[derive(Clone)]
pub(crate) struct Schema {
    server: String,
    name: String,
    url: String,
}

/// A transaction that is open.
pub(crate) struct Held {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Held {
    /// Commits what was done, and ends the transaction.
    pub(crate) fn commit(self) {
        self.runtime.block_on(self.client.batch_execute("COMMIT")).expect("the server is there");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.runtime.block_on(self.client.batch_execute("ROLLBACK")).expect("the server is there");
    }
}

impl Schema {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let server = std::env::var(URL).unwrap_or_else(|_| {
            panic!("these tests need a PostgreSQL server, and {URL} names none: run `cargo xtask postgres`, which starts one")
        });
        let name = format!("t_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mark = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{mark}schema={name}");
        Self { server, name, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL with more parameters.
    pub(crate) fn with(&self, parameters: &str) -> String {
        format!("{}{parameters}", self.url)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL with another host and port.
    pub(crate) fn through(&self, address: &str) -> String {
        self.url.replacen(&self.address(), address, 1)
    }

    /// Returns the host and port of the server.
    pub(crate) fn address(&self) -> String {
        let after = self.server.split_once('@').expect("the URL has a user").1;
        after[..after.find('/').expect("the URL has a database")].to_owned()
    }

    /// Runs statements in the schema, as an operator would.
    pub(crate) fn execute(&self, sql: &str) {
        self.execute_raw(&format!("SET search_path = {}; {sql}", self.name));
    }

    /// Runs statements in a transaction that lasts until what this returns is dropped.
    pub(crate) fn hold(&self, sql: &str) -> Held {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.expect("the server is there");
            tokio::spawn(connection);
            let sql = format!("SET search_path = {}; BEGIN; {sql}", self.name);
            client.batch_execute(&sql).await.expect("the statements are right");
            client
        });
        Held { runtime, client }
    }

    /// Has each of these changes of a row wait before it is made, until the gate is opened. The condition is one on `OLD` or `NEW`. A gate
    /// of a schema is made once, after the tables.
    pub(crate) fn add_gate(&self, change: &str, condition: &str) {
        self.execute(&format!(
            "CREATE TABLE gate AS SELECT 1 AS one; \
             CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM one FROM gate FOR SHARE; IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$; \
             CREATE TRIGGER gate BEFORE {change} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION wait_at_gate()"
        ));
    }

    /// Shuts the gate until what this returns is dropped.
    pub(crate) fn shut_gate(&self) -> Held {
        self.hold("SELECT one FROM gate FOR UPDATE")
    }

    /// Returns the URL with more parameters, for a node whose statements [`Self::is_waiting`] looks at.
    pub(crate) fn named(&self, node: &str, parameters: &str) -> String {
        format!("{}&application_name={}_{node}{parameters}", self.url, self.name)
    }

    /// Returns whether a statement of a node waits for a lock.
    pub(crate) fn is_waiting(&self, node: &str) -> bool {
        let of = format!("application_name = '{}_{node}' AND wait_event_type = 'Lock'", self.name);
        self.number(&format!("SELECT count(*) FROM pg_stat_activity WHERE {of}")) > 0
    }

    /// Returns whether the server has connections of a node.
    pub(crate) fn is_connected(&self, node: &str) -> bool {
        let of = format!("application_name = '{}_{node}'", self.name);
        self.number(&format!("SELECT count(*) FROM pg_stat_activity WHERE {of}")) > 0
    }

    /// Has the server end the connection of a node that waits for a lock.
    pub(crate) fn end_waiting(&self, node: &str) {
        let of = format!("application_name = '{}_{node}' AND wait_event_type = 'Lock'", self.name);
        self.execute(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {of}"));
    }

    /// Returns the number that a statement in the schema returns.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.expect("the server is there");
            let connection = tokio::spawn(connection);
            client.batch_execute(&format!("SET search_path = {}", self.name)).await.expect("the schema is there");
            let number = client.query_one(sql, &[]).await.expect("the statement returns one row").get(0);
            drop(client);
            connection.await.expect("it ends").expect("it ends well");
            number
        })
    }

    /// Runs statements with the name of the schema in the place of `{schema}`.
    pub(crate) fn execute_raw(&self, sql: &str) {
        let sql = sql.replace("{schema}", &self.name);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.expect("the server is there");
            let connection = tokio::spawn(connection);
            client.batch_execute(&sql).await.expect("the statements are right");
            drop(client);
            connection.await.expect("it ends").expect("it ends well");
        });
    }
}
