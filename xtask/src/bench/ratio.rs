//! A ratio of paired measurements, with its 95 % interval.

use std::fmt;

/// The geometric mean of the ratios new / old, and the interval that Student's t distribution gives for their logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Ratio {
    /// Of pairs (old, new). A single pair has no interval: it could be anything.
    pub(super) fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let logs: Vec<f64> = pairs.map(|(old, new)| (new / old).ln()).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let t = match logs.len() {
            0 | 1 => return Self { mean: mean.exp(), low: 0.0, high: f64::INFINITY },
            count => T.get(count - 2).copied().unwrap_or(1.96),
        };
        let half = t * (variance / n).sqrt();
        Self { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.mean, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_that_of_the_t_distribution_on_logarithms() {
        // Logarithms -0.1, 0, 0.1: mean 0, deviation 0.1, half width 4.303 · 0.1 / √3 = 0.2484.
        let ratio = Ratio::of([(1.0, (-0.1f64).exp()), (2.0, 2.0), (1.0, 0.1f64.exp())].into_iter());
        assert_eq!(ratio.to_string(), format!("1.000 ({:.3} to {:.3})", (-0.2484f64).exp(), 0.2484f64.exp()));
    }

    #[test]
    fn single_pair_has_no_interval() {
        assert_eq!(Ratio::of([(1.0, 2.0)].into_iter()).to_string(), "2.000 (0.000 to inf)");
    }
}
