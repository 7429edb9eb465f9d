//! Time as the core knows it: numbers that an activation brings.

use std::fmt;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A moment, in nanoseconds since the start of 1970 (UTC). The core has no clock; moments only ever come from outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Encode, Decode, Serialize, Deserialize)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Timestamp(#[n(0)] pub u64);

impl Timestamp {
    /// The moment this many milliseconds after the start of 1970.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Whole milliseconds since the start of 1970.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The later moment `duration` after this one, or the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this moment is, or zero.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Seconds since 1970, with as many decimals as it takes.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Seconds(Duration::from_nanos(self.0)))
    }
}

/// A duration as people write it: `2s`, `0.25s`.
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

/// The duration that [`Seconds`] wrote, to the nanosecond.
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (seconds, decimals) = number.split_once('.').unwrap_or((number, ""));
    if decimals.len() > 9 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{decimals:0<9}").parse().ok()?;
    Some(Duration::new(seconds.parse().ok()?, nanos))
}

/// Durations in text transcripts.
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

/// Durations that may be absent, in text transcripts.
pub(crate) mod text_duration_option {
    use super::{Duration, text_duration};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Wrapped(#[serde(with = "text_duration")] Duration);

    pub(crate) fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(Wrapped).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(deserializer)?.map(|wrapped| wrapped.0))
    }
}
