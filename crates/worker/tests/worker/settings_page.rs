//! `docs/settings.md` is written from the table of settings, by `UPDATE_EXPECT=1 cargo test -p dacapo-worker`.

use std::fmt::Write;

use dacapo_worker::{
    AppSettings, EffectiveRow, QueueSettings, Setting, SettingAlias, SettingScope, all_settings, setting_aliases,
};
use expect_test::expect_file;

const HEAD: &str = "# Settings

Every setting of a worker, with its default and its unit. This page is written from the table in the code and checked by
the test `the_page_of_settings_is_the_table`.

A setting can be made in code, in the environment, or left alone; code goes before the environment, and that before the
default. In code every setting is a setter: `Dacapo::settings(|app| app.cache_size(0))`, and of queues
`app.every_queue(|queue| queue.max_zombie_count(0))`, or `Dacapo::queue(QueueSettings::new(…).max_zombie_count(0))` for one. Where
names and values come as text, from a file or a command line, `set` takes both. In the environment a setting is called `DACAPO_` and its name in capitals. A setting of a queue
holds for all queues then; for one queue it is `DACAPO_QUEUE_`, the queue's name, `_` and the setting, and goes before the
one for all. A queue's name is written in capitals there, with `_` for all but letters and digits: `orders-eu` becomes
`ORDERS_EU`. Where two queues of a program come out the same, a variable for either is refused: set them in code.

A time is a number with its unit: `ns`, `us`, `ms`, `s`, `m`, `h` or `d`, as in `1.5s`, or several from large to small, as in
`1h 30m`. A size is a number of bytes, or one with `KiB`, `MiB` or `GiB`. An unknown name, a value that is not allowed, and two names of
one setting with two values are errors, and the program does not start.

`Dacapo::effective` says what holds; printed, it is a table with one line for each setting: whose it is, its name, its
value, its unit, and where it came from (`default`, `environment` with the variable, `code`).
";

const FOOT: &str = "
`zombie_retry_interval` must not be more than `zombie_retry_max_delay`, nor `zombie_grace_period` more than
`zombie_give_up_after`, nor `shutdown_grace_period` and `shutdown_force_timeout` together more than `force_exit_timeout`.
";

fn section(page: &mut String, title: &str, scope: SettingScope) {
    let effective = AppSettings::new().queue(QueueSettings::new("any")).effective().unwrap();
    let row_of = |setting: &Setting| -> EffectiveRow {
        let is_it = |row: &&EffectiveRow| row.name == setting.name;
        effective.rows.iter().find(is_it).unwrap().clone()
    };
    writeln!(page, "\n## {title}\n\n| setting | default | unit | allowed | what it is |\n|---|---|---|---|---|")
        .unwrap();
    for setting in all_settings().filter(|setting| setting.scope == scope) {
        let value = Some(row_of(setting).value).filter(|value| !value.is_empty()).unwrap_or("none".to_owned());
        let (name, unit, allowed, about) = (setting.name, setting.unit, setting.allowed(), setting.about);
        writeln!(page, "| `{name}` | {value} | {unit} | {allowed} | {about} |").unwrap();
    }
}

fn aliases(page: &mut String) {
    writeln!(page, "\n## Second names\n\n| setting | in `set` | in the environment | value |\n|---|---|---|---|")
        .unwrap();
    for SettingAlias { setting, code, variable, is_millis } in setting_aliases() {
        let variable = variable.map_or_else(|| setting.to_uppercase(), str::to_owned);
        let value = if *is_millis { "a whole number of milliseconds" } else { "a time" };
        writeln!(page, "| `{setting}` | `{code}` | `DACAPO_{variable}` | {value} |").unwrap();
    }
}

/// S3-49, S3-50, S3-51, S3-52, S3-53: the defaults, as documented.
#[test]
fn the_page_of_settings_is_the_table() {
    let mut page = HEAD.to_owned();
    section(&mut page, "Of the application", SettingScope::Application);
    section(&mut page, "Of each queue", SettingScope::Queue);
    page.push_str(FOOT);
    aliases(&mut page);
    expect_file!["../../../../docs/settings.md"].assert_eq(&page);
}
