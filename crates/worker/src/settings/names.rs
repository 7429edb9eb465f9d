//! Names of settings and queues, in the spellings of code, documents and environments.

use super::setting::{Setting, SettingUnit};
use super::table::all_settings;
use super::value::Reading;

/// The prefix of all Dacapo variables.
pub(super) const PREFIX: &str = "DACAPO_";

/// Variables of this repository's own tests and tools, which are not settings.
pub(super) const TOOLS: &[&str] = &[
    "DACAPO_KILLS",
    "DACAPO_KILL_SEED",
    "DACAPO_POSTGRES_URL",
    "DACAPO_PROGRAMS",
    "DACAPO_SOAK_SECONDS",
    "DACAPO_WRITE_GOLDEN",
];

/// Finds the setting of a name in any spelling: `force_exit_timeout`, `FORCE_EXIT_TIMEOUT`, `forceExitTimeout`, and for
/// times also with `_ms` or `Ms` at the end, which makes the value a plain number of milliseconds.
pub(super) fn find(name: &str) -> Option<(&'static Setting, Reading)> {
    let name = snake(name);
    let exact = |name: &str| all_settings().find(|setting| setting.name == name);
    let millis = || name.strip_suffix("_ms").and_then(exact).filter(|setting| setting.unit == SettingUnit::Time);
    exact(&name).map(|setting| (setting, Reading::Plain)).or_else(|| Some((millis()?, Reading::Millis)))
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
    fn a_name_is_known_in_every_spelling() {
        let name = |text| find(text).map(|(setting, reading)| (setting.name, reading));
        let plain = Some(("force_exit_timeout", Reading::Plain));
        assert_eq!(["force_exit_timeout", "forceExitTimeout", "FORCE_EXIT_TIMEOUT"].map(name), [plain; 3]);
        let millis = Some(("force_exit_timeout", Reading::Millis));
        assert_eq!(["force_exit_timeout_ms", "forceExitTimeoutMs", "FORCE_EXIT_TIMEOUT_MS"].map(name), [millis; 3]);
        assert_eq!(["cache_size_ms", "force_exit", ""].map(name), [None; 3]);
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
