//! A recorder of the `metrics` facade that prints what it knows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};

#[derive(Default)]
pub(crate) struct Recorder {
    meters: Mutex<BTreeMap<String, Meter>>,
    described: Mutex<BTreeMap<String, (Option<Unit>, String)>>,
}

#[derive(Clone)]
enum Meter {
    Counter(Arc<AtomicU64>),
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<Numbers>),
}

#[derive(Default)]
struct Numbers(Mutex<Vec<f64>>);

impl HistogramFn for Numbers {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

impl Recorder {
    /// Handles that are made in here are made on this recorder.
    pub(crate) fn during<R>(&self, act: impl FnOnce() -> R) -> R {
        metrics::with_local_recorder(self, act)
    }

    /// All names that handles were made for.
    pub(crate) fn names(&self) -> Vec<String> {
        let meters = self.meters.lock().unwrap();
        let mut names: Vec<String> = meters.keys().map(|key| key.split('{').next().unwrap().to_owned()).collect();
        names.dedup();
        names
    }

    /// What each meter was described as.
    pub(crate) fn described(&self) -> BTreeMap<String, (Option<Unit>, String)> {
        self.described.lock().unwrap().clone()
    }

    /// Counters and gauges that are not 0, and how much each histogram took, one line each; only these, if any are named.
    pub(crate) fn show(&self, only: &[&str]) -> String {
        let mut shown = String::new();
        for (key, meter) in &*self.meters.lock().unwrap() {
            let wanted = only.is_empty() || only.contains(&key.split('{').next().unwrap());
            let value = match meter {
                Meter::Counter(count) => count.load(Ordering::Relaxed).to_string(),
                Meter::Gauge(bits) => f64::from_bits(bits.load(Ordering::Relaxed)).to_string(),
                Meter::Histogram(numbers) => match numbers.0.lock().unwrap().len() {
                    0 => continue,
                    count => format!("took {count}"),
                },
            };
            if wanted && value != "0" {
                writeln!(shown, "{key} {value}").unwrap();
            }
        }
        shown
    }

    fn register(&self, key: &Key, new: Meter) -> Meter {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let key =
            if labels.is_empty() { key.name().to_owned() } else { format!("{}{{{}}}", key.name(), labels.join(",")) };
        self.meters.lock().unwrap().entry(key).or_insert(new).clone()
    }

    fn describe(&self, name: KeyName, unit: Option<Unit>, about: SharedString) {
        self.described.lock().unwrap().insert(name.as_str().to_owned(), (unit, about.to_string()));
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, about: SharedString) {
        self.describe(name, unit, about);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, about: SharedString) {
        self.describe(name, unit, about);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, about: SharedString) {
        self.describe(name, unit, about);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.register(key, Meter::Counter(Arc::default())) {
            Meter::Counter(count) => Counter::from_arc(count),
            _ => panic!("{key} is no counter"),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.register(key, Meter::Gauge(Arc::default())) {
            Meter::Gauge(bits) => Gauge::from_arc(bits),
            _ => panic!("{key} is no gauge"),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.register(key, Meter::Histogram(Arc::default())) {
            Meter::Histogram(numbers) => Histogram::from_arc(numbers),
            _ => panic!("{key} is no histogram"),
        }
    }
}
