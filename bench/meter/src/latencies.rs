//! How long each of many things took.

use std::time::Duration;

/// How long each of many things took, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// Notes one.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1e3);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The one in the middle.
    pub fn p50(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The one that 99 of 100 do not exceed.
    pub fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    /// One that nothing disturbed: only a tenth were faster.
    pub fn quiet(&self) -> f64 {
        self.quantile(0.1)
    }

    /// The average.
    pub fn mean(&self) -> f64 {
        self.seconds() * 1e3 / self.0.len().max(1) as f64
    }

    /// All together, in seconds.
    pub fn seconds(&self) -> f64 {
        self.0.iter().sum::<f64>() / 1e3
    }

    /// The first tenth and the last, in order of arrival.
    pub fn tenths(&self) -> (Self, Self) {
        let tenth = self.0.len() / 10;
        (Self(self.0[..tenth].to_vec()), Self(self.0[self.0.len() - tenth..].to_vec()))
    }

    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (share * (sorted.len().max(1) - 1) as f64).round() as usize;
        sorted.get(at).copied().unwrap_or(0.0)
    }
}

impl Extend<Duration> for Latencies {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        times.into_iter().for_each(|time| self.push(time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_sorted_values_and_the_tenths_those_of_the_order() {
        let mut times = Latencies::default();
        times.extend((1..=100).rev().map(Duration::from_millis));
        assert_eq!((times.p50(), times.p99(), times.mean()), (51.0, 99.0, 50.5));
        let (first, last) = times.tenths();
        assert_eq!((first.mean(), last.mean()), (95.5, 5.5));
    }
}
