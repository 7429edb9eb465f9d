//! What a node counts for operators.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dacapo_store::{Filter, ReadRuns};
use dacapo_test_postgres::Proxy;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::kit::{PACE, new, node, start, submit_on_a_thread, until};
use crate::schema::Schema;

/// The counters and gauges of a node, each as the number or the bits that it has.
#[derive(Default)]
pub(crate) struct Meters(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Meters {
    fn place(&self, key: &Key) -> Arc<AtomicU64> {
        self.0.lock().unwrap().entry(key.name().to_owned()).or_default().clone()
    }

    /// Returns the value of a meter, by its name behind `dacapo_postgres_`.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.lock().unwrap()[&format!("dacapo_postgres_{name}")].load(Ordering::Relaxed)
    }
}

impl Recorder for Meters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.place(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.place(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn lost_connections_receipts_dead_nodes_and_the_lease_that_is_left_are_counted() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let meters = Meters::default();
    let a = metrics::with_local_recorder(&meters, || {
        node(&proxy.url(&schema.with("&lease=60s&renewal=200ms&sslmode=disable")))
    });
    let b = node(&schema.with(PACE));
    // The commit that gives shards away is not to be lost.
    until("each has half of the shards", || a.shards() == 8 && b.shards() == 8);
    let names = ["reconnects_total", "conflicts_total", "receipts_total", "dead_nodes_total"];
    let counts = || names.map(|name| meters.get(name));
    assert_eq!(counts(), [0; 4]);
    proxy.lose_commits(true);
    let answer = submit_on_a_thread(&a.store, start(new(1)));
    until("the run is committed", || b.store.count(&Filter::default(), u64::MAX).unwrap() == 1);
    proxy.lose_commits(false);
    proxy.cut();
    answer.get().expect("the run is started");
    let [reconnects, _, receipts, _] = counts();
    assert!(reconnects >= 1 && receipts == 1, "{:?}", counts());
    drop(b);
    until("the other is taken for dead", || counts()[3] == 1);
    let left = f64::from_bits(meters.get("lease_left"));
    assert!(left > 0.0 && left < 60.0, "{left}");
}
