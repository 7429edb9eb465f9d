//! The suites that every store must pass, and every store that several nodes share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dacapo_postgres::PostgresStore;
use dacapo_store::Store;
use dacapo_store::conformance::nodes::Cluster;
use dacapo_test_postgres::Proxy;

use crate::schema::Schema;

dacapo_store::conformance_tests!(PostgresStore::open(Schema::new().url()).expect("the store opens"));

const LEASE: Duration = Duration::from_secs(2);

/// Nodes of one schema, each behind a proxy of its own.
struct Nodes {
    schema: Schema,
    proxies: Mutex<BTreeMap<&'static str, Proxy>>,
}

impl Nodes {
    fn new() -> Self {
        Self { schema: Schema::new(), proxies: Mutex::default() }
    }

    fn with_proxy<R>(&self, name: &'static str, act: impl FnOnce(&Proxy) -> R) -> R {
        act(&self.proxies.lock().unwrap()[name])
    }
}

impl Cluster for Nodes {
    fn open(&self, name: &'static str) -> Arc<dyn Store> {
        let proxy = Proxy::to(&self.schema.address());
        let pace = format!("&lease=2s&renewal=300ms&slow_poll=500ms&sslmode=disable&node={name}");
        let store = PostgresStore::open(&proxy.url(&self.schema.with(&pace))).expect("the store opens");
        self.proxies.lock().unwrap().insert(name, proxy);
        Arc::new(store)
    }

    fn pass(&self) {
        thread::park_timeout(LEASE / 16);
    }

    fn pass_lease(&self) {
        thread::park_timeout(LEASE + LEASE / 4);
    }

    fn silence(&self, name: &'static str) {
        self.with_proxy(name, Proxy::shut);
    }

    fn resume(&self, name: &'static str) {
        self.with_proxy(name, Proxy::open);
    }

    fn cut_answers(&self, name: &'static str, act: &mut dyn FnMut()) {
        // No commit is answered, and the connection is cut soon after it.
        let cutting = self.with_proxy(name, |proxy| {
            proxy.lose_commits(true);
            proxy.cuts_every(Duration::from_millis(30)..Duration::from_millis(120))
        });
        while cutting.cuts() < 20 {
            act();
        }
        self.with_proxy(name, |proxy| proxy.lose_commits(false));
        cutting.stop();
    }
}

mod of_nodes {
    use super::Nodes;

    dacapo_store::conformance_tests_of_nodes!(Nodes::new());
}
