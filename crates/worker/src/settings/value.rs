//! Values in their written form: `200`, `1_000`, `1.5s`, `250ms`, `2MiB`.

use super::error::SettingError;
use super::setting::{Raw, SIZES, Setting, SettingUnit, TIMES};

/// How a value is parsed, by its setting's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A number in the form of the setting's unit.
    Plain,
    /// A plain number of milliseconds, because the name ends in `_ms`.
    Millis,
}

/// Parses a value, and checks that it is allowed. `by` is the name under which it was given.
pub(super) fn parse(setting: &'static Setting, by: &str, text: &str, reading: Reading) -> Result<Raw, SettingError> {
    match setting.unit {
        SettingUnit::Path => within(setting, by, Raw::Path(Some(text.into()))),
        _ => parse_number(setting, by, text, reading).map(Raw::Number),
    }
}

fn parse_number(setting: &'static Setting, by: &str, text: &str, reading: Reading) -> Result<u64, SettingError> {
    let raw = match (setting.unit, reading) {
        (SettingUnit::Count, _) => whole(text),
        (SettingUnit::Bytes, _) => whole(text).or_else(|| scaled(text, &SIZES)),
        (SettingUnit::Time, Reading::Plain) => time(text).or_else(|| whole(text).filter(|number| *number == 0)),
        (SettingUnit::Time, Reading::Millis) => whole(text).map(|millis| millis.saturating_mul(1_000_000)),
        (SettingUnit::Path, _) => None,
    };
    let (by, value) = (by.to_owned(), text.to_owned());
    match (raw, setting.unit, reading) {
        (Some(raw), _, _) => number_within(setting, &by, raw),
        (None, SettingUnit::Count, _) => Err(SettingError::NotACount { by, value, allowed: setting.allowed() }),
        (None, SettingUnit::Bytes, _) => Err(SettingError::NotBytes { by, value, allowed: setting.allowed() }),
        (None, SettingUnit::Time, Reading::Plain) => {
            Err(SettingError::NotATime { by, value, allowed: setting.allowed() })
        }
        (None, SettingUnit::Time, Reading::Millis) => {
            Err(SettingError::NotMillis { by, value, allowed: setting.allowed() })
        }
        (None, SettingUnit::Path, _) => Err(SettingError::NotAPath { by }),
    }
}

/// Returns the value, if it is allowed.
pub(super) fn within(setting: &'static Setting, by: &str, raw: Raw) -> Result<Raw, SettingError> {
    match &raw {
        Raw::Number(number) => number_within(setting, by, *number).map(Raw::Number),
        Raw::Path(Some(path)) if path.as_os_str().is_empty() => Err(SettingError::NotAPath { by: by.to_owned() }),
        Raw::Path(_) => Ok(raw),
    }
}

fn number_within(setting: &'static Setting, by: &str, raw: u64) -> Result<u64, SettingError> {
    let meant = raw == 0 && setting.zero.is_some();
    if meant || (setting.least..=setting.most).contains(&raw) {
        return Ok(raw);
    }
    let (value, allowed) = (setting.written(raw), setting.allowed());
    Err(SettingError::OutOfRange { by: by.to_owned(), value, allowed })
}

fn whole(text: &str) -> Option<u64> {
    let inner = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(|c: char| c.is_ascii_digit());
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    (inner && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Parses a time: `90s`, `1.5s`, or several parts from large to small as in `1h 30m`.
fn time(text: &str) -> Option<u64> {
    let (mut sum, mut rest, mut before) = (0_u64, text, u64::MAX);
    loop {
        let unit = rest.find(char::is_alphabetic)?;
        let end = rest[unit..].find(|c: char| !c.is_alphabetic()).map_or(rest.len(), |end| unit + end);
        let (_, size) = TIMES.iter().find(|(name, _)| *name == &rest[unit..end]).filter(|(_, size)| *size < before)?;
        sum = sum.saturating_add(scaled(&rest[..end], &TIMES)?);
        (rest, before) = (rest[end..].trim_start(), *size);
        if rest.is_empty() {
            return Some(sum);
        }
    }
}

/// Parses `1.5s`, by a table of units. More decimals than the unit has are refused, not rounded.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(char::is_alphabetic)?;
    let (number, unit) = text.split_at(end);
    let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
    let (units, decimals) = match number.trim_end().split_once('.') {
        Some((units, decimals)) => (units, decimals),
        None => (number.trim_end(), "0"),
    };
    let all_digits = !decimals.is_empty() && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let scale = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let part = u128::from(*size).checked_mul(decimals.parse().ok().filter(|_| all_digits)?)?;
    let rest = part.is_multiple_of(scale).then_some(part / scale)?;
    let raw = u128::from(whole(units)?) * u128::from(*size) + rest;
    Some(u64::try_from(raw).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit_and_never_rounded() {
        let read = time;
        assert_eq!(read("1.5s"), Some(1_500_000_000));
        assert_eq!(read("250 ms"), Some(250_000_000));
        assert_eq!(read("1h"), Some(3_600_000_000_000));
        assert_eq!(read("0.000000001s"), Some(1));
        assert_eq!(read("1h 30m"), Some(5_400_000_000_000));
        assert_eq!(read("1d0.5s"), Some(86_400_500_000_000));
        let unreadable = [
            "0.0000000001s",
            "1.s",
            ".5s",
            "s",
            "-1s",
            "+1s",
            "1 s s",
            "1week",
            "1e3s",
            "",
            "_1s",
            "1.+5s",
            "٣s",
            "30m 1h",
            "1m 1m",
            "1h 30",
        ];
        assert_eq!(unreadable.map(read), [None; 16]);
        assert_eq!(read("99999999999999999999d"), Some(u64::MAX), "too much is too much, not unreadable");
    }

    #[test]
    fn written_setting_values_are_read_back() {
        for raw in [
            1,
            999,
            1_000,
            1_500,
            1_500_000,
            5_400_000_000_001,
            2_000_000_000,
            60_000_000_000,
            90_000_000_000,
            86_400_000_000_000,
        ] {
            assert_eq!(time(&SettingUnit::Time.written(raw)), Some(raw));
        }
        for raw in [1, 1023, 1024, 1500, 2 << 20, 5 << 30] {
            let text = SettingUnit::Bytes.written(raw);
            assert_eq!(whole(&text).or_else(|| scaled(&text, &SIZES)), Some(raw), "{text}");
        }
        assert_eq!(SettingUnit::Time.written(90_000_000_000), "1m 30s");
        assert_eq!(SettingUnit::Time.written(3_600_000_000_000), "1h");
        assert_eq!(SettingUnit::Bytes.written(2 << 20), "2MiB");
    }

    #[test]
    fn counts_are_digits_and_underscores_between_them() {
        assert_eq!(["1_000", "007", "0"].map(whole), [Some(1_000), Some(7), Some(0)]);
        assert_eq!(["_1", "1_", "", "1.5", "-1", "+1", " 1", "1k"].map(whole), [None; 8]);
    }
}
