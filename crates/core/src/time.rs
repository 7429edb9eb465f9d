//! Time as the core knows it: numbers that come with an activation.

use std::fmt;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A moment, in nanoseconds since the start of 1970 (UTC). The core has no clock: all moments come with activations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Encode, Decode, Serialize, Deserialize)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Timestamp(#[n(0)] pub u64);

impl Timestamp {
    /// Returns the moment this many milliseconds after the start of 1970.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Returns the whole milliseconds since the start of 1970.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the moment `duration` after this one, or the last moment that the type can hold.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Returns how long after `earlier` this moment is, or zero.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A date as in RFC 3339, in UTC, with as many decimals as it takes: `2026-02-28T09:30:00.25Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = Duration::from_nanos(self.0);
        let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if since.subsec_nanos() > 0 {
            let decimals = format!("{:09}", since.subsec_nanos());
            write!(f, ".{}", decimals.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Returns the year, month and day that many days after the start of 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from the first of March of the year 0, so that a leap day is the last of its year; 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, months have 31, 30, 31, 30, 31 days, and that again.
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// A duration as text transcripts have it: `2s`, `0.25s`.
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        if nanos == 0 {
            return write!(f, "{seconds}s");
        }
        let decimals = format!("{nanos:09}");
        write!(f, "{seconds}.{}s", decimals.trim_end_matches('0'))
    }
}

/// Parses the duration that [`Seconds`] wrote, to the nanosecond.
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (seconds, decimals) = number.split_once('.').unwrap_or((number, ""));
    if decimals.len() > 9 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{decimals:0<9}").parse().ok()?;
    Some(Duration::new(seconds.parse().ok()?, nanos))
}

/// Serializes durations as text transcripts do.
pub(crate) mod text_duration {
    use super::{Duration, Seconds, parse_seconds};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Seconds(*duration))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_seconds(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no duration: write it as \"2.5s\"")))
    }
}

/// Serializes durations that may be absent as text transcripts do, for `#[serde(with = "text_duration_option")]`: `"2s"`, `"0.25s"`.
pub mod text_duration_option {
    use super::{Duration, text_duration};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Wrapped(#[serde(with = "text_duration")] Duration);

    /// Writes the seconds with their unit.
    ///
    /// # Errors
    /// What the serializer says.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(Wrapped).serialize(serializer)
    }

    /// Reads what [`serialize`] wrote, to the nanosecond.
    ///
    /// # Errors
    /// If it is no duration.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(deserializer)?.map(|wrapped| wrapped.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_as_dates() {
        let shown = |seconds: u64, nanos: u64| Timestamp(seconds * 1_000_000_000 + nanos).to_string();
        assert_eq!(shown(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(shown(951_782_399, 250_000_000), "2000-02-28T23:59:59.25Z");
        assert_eq!(shown(951_782_400, 0), "2000-02-29T00:00:00Z");
        assert_eq!(shown(1_772_285_400, 1), "2026-02-28T13:30:00.000000001Z");
        assert_eq!(shown(4_107_542_400, 0), "2100-03-01T00:00:00Z", "no leap year");
        assert_eq!(Timestamp(u64::MAX).to_string(), "2554-07-21T23:34:33.709551615Z");
    }
}
