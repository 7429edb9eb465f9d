//! Durations as people write them: in reports, errors and the values of settings. Text transcripts have plain seconds.

use std::fmt;
use std::time::Duration;

/// Prints a duration in the units that it has: `14d`, `1h 30m`, `2.5s`, `250ms`.
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0.as_secs();
        if whole == 0 {
            // As the standard library does: `250ms`, `1.5µs`.
            return if self.0.is_zero() { f.write_str("0s") } else { write!(f, "{:?}", self.0) };
        }
        let mut space = "";
        for (count, unit) in [(whole / 86_400, 'd'), (whole / 3_600 % 24, 'h'), (whole / 60 % 60, 'm')] {
            if count > 0 {
                write!(f, "{space}{count}{unit}")?;
                space = " ";
            }
        }
        let rest = Duration::new(whole % 60, self.0.subsec_nanos());
        match (rest.as_secs(), rest.subsec_nanos()) {
            (0, 0) => Ok(()),
            (seconds, 0) => write!(f, "{space}{seconds}s"),
            (seconds, nanos) => write!(f, "{space}{seconds}.{}s", format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_printed_in_the_units_that_it_has() {
        let shown = |millis| DurationText(Duration::from_millis(millis)).to_string();
        assert_eq!(shown(14 * 86_400_000), "14d");
        assert_eq!(shown(90 * 60_000), "1h 30m");
        assert_eq!(shown(90_000), "1m 30s");
        assert_eq!(shown(86_400_000 + 500), "1d 0.5s");
        assert_eq!(shown(2_500), "2.5s");
        assert_eq!(shown(250), "250ms");
        assert_eq!(shown(0), "0s");
        assert_eq!(DurationText(Duration::from_secs(u64::MAX)).to_string(), "213503982334601d 7h 15s");
    }
}
