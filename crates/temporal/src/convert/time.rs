//! Durations and moments.

use std::time::Duration;

use dacapo_core::Timestamp;
use prost_wkt_types as wkt;

/// The longest duration that Temporal's messages can hold, about 10,000 years.
const MAX_SECONDS: i64 = 315_576_000_000;

pub(crate) fn duration_to_proto(duration: Duration) -> wkt::Duration {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(MAX_SECONDS).min(MAX_SECONDS);
    wkt::Duration { seconds, nanos: duration.subsec_nanos().cast_signed() }
}

/// A duration that is negative is zero here.
pub(crate) fn duration_from_proto(duration: wkt::Duration) -> Duration {
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(duration.seconds), u32::try_from(duration.nanos)) else {
        return Duration::ZERO;
    };
    Duration::new(seconds, nanos)
}

pub(crate) fn time_to_proto(time: Timestamp) -> wkt::Timestamp {
    let since = Duration::from_nanos(time.0);
    wkt::Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: since.subsec_nanos().cast_signed(),
    }
}

/// A moment before 1970 is the start of 1970 here.
pub(crate) fn time_from_proto(time: wkt::Timestamp) -> Timestamp {
    let since = duration_from_proto(wkt::Duration { seconds: time.seconds, nanos: time.nanos });
    Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_moments_come_back() {
        for nanos in [0, 1, 999_999_999, 1_000_000_001, 86_400_000_000_000] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(duration_from_proto(duration_to_proto(duration)), duration);
            assert_eq!(time_from_proto(time_to_proto(Timestamp(nanos))), Timestamp(nanos));
        }
    }

    #[test]
    fn durations_out_of_range_become_the_nearest_one() {
        assert_eq!(duration_to_proto(Duration::MAX).seconds, MAX_SECONDS);
        assert_eq!(duration_from_proto(wkt::Duration { seconds: -1, nanos: 0 }), Duration::ZERO);
        assert_eq!(time_from_proto(wkt::Timestamp { seconds: -5, nanos: 0 }), Timestamp(0));
    }
}
