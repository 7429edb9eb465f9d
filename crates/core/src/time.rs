//! Time as the core knows it: numbers that come with an activation.

use std::fmt;
use std::ops::RangeInclusive;
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

/// Parses a date as in RFC 3339, in UTC or with another offset: `2026-02-28T09:30:00.25Z`, `2026-02-28T10:30:00+01:00`; or the start of a day
/// in UTC: `2026-02-28`. None if the text is another one, or the moment one that the type cannot hold.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (day, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00:00Z"));
    let [year, month, date] = numbers(day, '-', [4, 2, 2])?;
    let days = (1..=12).contains(&month).then(|| days_before(year, month))?;
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let (clock, decimals) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let offset = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign, ..] => {
            let [hours, minutes] = numbers(&zone[1..], ':', [2, 2])?;
            let minutes = (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        [] => return None,
    };
    let of_month = days_before(year + month / 12, month % 12 + 1) - days;
    if !(1..=of_month).contains(&date) || hour > 23 || minute > 59 || second > 59 || !is_number(decimals, 1..=9) {
        return None;
    }
    let seconds = (days + date - 1) * 86_400 + hour * 3_600 + (minute - offset) * 60 + second;
    let nanos: u64 = format!("{decimals:0<9}").parse().ok()?;
    Some(Timestamp(u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

fn is_number(text: &str, digits: RangeInclusive<usize>) -> bool {
    digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads numbers of so many digits with this character between them.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let parts: Vec<&str> = text.split(between).collect();
    let parts: [&str; N] = parts.try_into().ok()?;
    let is_right = parts.iter().zip(digits).all(|(part, digits)| is_number(part, digits..=digits));
    is_right.then(|| parts.map(|part| part.parse().unwrap_or_default()))
}

/// Returns the days from the start of 1970 to the first of this month: what [`date`] counts, the other way.
fn days_before(year: i64, month: i64) -> i64 {
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * from_march + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
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

    #[test]
    fn dates_that_are_shown_are_parsed_and_so_are_other_offsets() {
        for nanos in [0, 951_782_399_250_000_000, 951_782_400_000_000_000, 1_772_285_400_000_000_001, u64::MAX] {
            assert_eq!(parse_timestamp(&Timestamp(nanos).to_string()), Some(Timestamp(nanos)));
        }
        let noon = parse_timestamp("2026-02-28T12:00:00Z");
        assert_eq!(parse_timestamp("2026-02-28t13:30:00.0+01:30"), noon);
        assert_eq!(parse_timestamp("2026-02-28 07:00:00-05:00"), noon);
        assert_eq!(parse_timestamp("2026-02-28"), parse_timestamp("2026-02-28T00:00:00Z"));
        assert_eq!(parse_timestamp("2025-12-31T23:59:59Z").map(|last| last.0 / 1_000_000_000), Some(1_767_225_599));
    }

    #[test]
    fn text_that_is_no_moment_is_not_parsed() {
        let bad = [
            "",
            "T",
            "2026",
            "2026-2-28",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-04-31",
            "2026-02-28T24:00:00Z",
            "2026-02-28T12:00:00",
            "2026-02-28T12:60:00Z",
            "2026-02-28T12:00:60Z",
            "2026-02-28T12:00:00.Z",
            "2026-02-28T12:00:00.1234567890Z",
            "2026-02-28T12:00:00+24:00",
            "2026-02-28T12:00:00+1:00",
            "2026-02-28T12:00Z",
            "1969-12-31T23:59:59Z",
            "2026-02-28T12:00:00Zx",
            "2554-07-21T23:34:34Z",
            "9999-01-01",
            "2026-02-28T+1:00:00Z",
        ];
        for text in bad {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
