//! The names by which others know this program: meters with their labels, and settings.

use dacapo_testkit::assert_golden;
use dacapo_worker::{METERS_NUMBER, SETTINGS_NUMBER, all_meters, all_settings, setting_aliases};

use crate::MANIFEST;

#[test]
fn meters_and_their_labels_are_what_their_number_says() {
    let mut lines: Vec<String> =
        all_meters().map(|meter| format!("{} {} {}\n", meter.name, meter.kind, meter.labels.join(" "))).collect();
    lines.sort();
    assert_golden(MANIFEST, "meters", METERS_NUMBER.into(), "txt", &lines.concat());
}

#[test]
fn settings_are_what_their_number_says() {
    let mut lines: Vec<String> = all_settings()
        .map(|setting| {
            let name = setting.name;
            format!("{name} DACAPO_{} {:?} {}\n", name.to_uppercase(), setting.scope, setting.unit)
        })
        .collect();
    lines.extend(setting_aliases().map(|alias| {
        let variable = alias.variable.map_or_else(|| alias.setting.to_uppercase(), str::to_owned);
        format!(
            "{} or DACAPO_{variable} is {} in {}\n",
            alias.code,
            alias.setting,
            if alias.is_millis { "milliseconds" } else { "time" }
        )
    }));
    lines.sort();
    assert_golden(MANIFEST, "settings", SETTINGS_NUMBER.into(), "txt", &lines.concat());
}
