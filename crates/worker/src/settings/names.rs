//! Names of settings and queues: in code, in the environment, and the few second names.

use super::setting::Setting;
use super::table::all_settings;
use super::value::Reading;

/// The prefix of all Dacapo variables.
pub(super) const PREFIX: &str = "DACAPO_";

/// Variables of the command `dacapo` and of deploy gates, and of this repository's own tests and tools, which are not settings.
pub(super) const TOOLS: &[&str] = &[
    "DACAPO_CHECK_REPORTS",
    "DACAPO_CHECK_URL",
    "DACAPO_KILLS",
    "DACAPO_KILL_SEED",
    "DACAPO_POSTGRES_URL",
    "DACAPO_PROGRAMS",
    "DACAPO_SOAK_RUNS",
    "DACAPO_SOAK_SECONDS",
    "DACAPO_URL",
    "DACAPO_WRITE_GOLDEN",
];

/// A second name of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingAlias {
    /// The setting's name.
    pub setting: &'static str,
    /// The second name in code.
    pub code: &'static str,
    /// The second name in the environment, after `DACAPO_`. None if it is the first name in capitals.
    pub variable: Option<&'static str>,
    /// Whether the value is a plain number of milliseconds.
    pub is_millis: bool,
}

/// All second names.
const ALIASES: [SettingAlias; 2] = [
    SettingAlias { setting: "force_exit_timeout", code: "forceExitTimeout", variable: None, is_millis: false },
    SettingAlias {
        setting: "force_exit_timeout",
        code: "forceExitTimeoutMs",
        variable: Some("FORCE_EXIT_TIMEOUT_MS"),
        is_millis: true,
    },
];

/// Returns the second names of settings.
pub fn setting_aliases() -> impl Iterator<Item = &'static SettingAlias> {
    ALIASES.iter()
}

/// Finds the setting of a name in code: its own, or an alias.
pub(super) fn in_code(name: &str) -> Option<(&'static Setting, Reading)> {
    let own = all_settings().find(|setting| setting.name == name).map(|setting| (setting, Reading::Plain));
    own.or_else(|| ALIASES.iter().find(|alias| alias.code == name)?.found())
}

/// Finds the setting of a variable, without what stands before the setting's name.
pub(super) fn in_environment(name: &str) -> Option<(&'static Setting, Reading)> {
    let own = all_settings().find(|setting| setting.name.to_ascii_uppercase() == name);
    own.map(|setting| (setting, Reading::Plain))
        .or_else(|| ALIASES.iter().find(|alias| alias.variable == Some(name))?.found())
}

impl SettingAlias {
    fn found(&self) -> Option<(&'static Setting, Reading)> {
        let reading = if self.is_millis { Reading::Millis } else { Reading::Plain };
        Some((all_settings().find(|setting| setting.name == self.setting)?, reading))
    }
}

/// Returns the name of `known` that was probably meant.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = snake(name);
    let far = (name.chars().count() / 3).max(2);
    let apart = known.map(|known| (distance(&name, &snake(known)), known));
    apart.filter(|(distance, _)| *distance <= far).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Returns the prefix of the variables of a queue: its name with letters in capitals, digits, and `_` for all else. Two
/// queues can have the same prefix; then a variable for either is refused.
pub fn queue_variable(queue: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{PREFIX}QUEUE_{}_", queue.chars().map(allowed).collect::<String>())
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut after_small = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_small {
            snake.push('_');
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        snake.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    snake
}

/// Returns how many letters must be added, removed or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (before, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = before + 1;
        for (at, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_has_one_name_in_code_one_in_the_environment_and_its_aliases() {
        let code = |text| in_code(text).map(|(setting, reading)| (setting.name, reading));
        let variable = |text| in_environment(text).map(|(setting, reading)| (setting.name, reading));
        let (plain, millis) = (Some(("cache_size", Reading::Plain)), Some(("force_exit_timeout", Reading::Millis)));
        assert_eq!((code("cache_size"), variable("CACHE_SIZE")), (plain, plain));
        assert_eq!(["CACHE_SIZE", "cacheSize", "cache-size", "force_exit_timeout_ms"].map(code), [None; 4]);
        assert_eq!(["cache_size", "cacheSize", "Cache_Size", "CRASH_DELAY_MS", ""].map(variable), [None; 5]);
        assert_eq!(code("forceExitTimeout"), Some(("force_exit_timeout", Reading::Plain)));
        assert_eq!((code("forceExitTimeoutMs"), variable("FORCE_EXIT_TIMEOUT_MS")), (millis, millis));
        assert!(ALIASES.iter().all(|alias| alias.found().is_some()), "aliases are of settings that exist");
    }

    #[test]
    fn spelling_distance_counts_changed_letters() {
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("kitten", "sitting")), (3, 0, 3));
    }

    #[test]
    fn the_nearest_name_is_near() {
        let names = || all_settings().map(|setting| setting.name);
        assert_eq!(nearest("max_zombies_count", names()), Some("max_zombie_count"));
        assert_eq!(nearest("maxConcurentWorkflows", names()), Some("max_concurrent_workflows"));
        assert_eq!(nearest("colour", names()), None);
    }
}
