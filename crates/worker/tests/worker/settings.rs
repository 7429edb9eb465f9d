//! Settings: who has the say, what is refused, and what is said about it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use dacapo_worker::{
    AppSettings, Effective, QueueSettings, QueueValues, SettingError, SettingOrigin, SettingUnit, ZombieSettings,
    all_settings, queue_variable,
};
use expect_test::expect;

fn queue(name: &'static str) -> AppSettings {
    AppSettings::new().queue(QueueSettings::new(name))
}

fn errors(settings: &AppSettings) -> Vec<SettingError> {
    settings.effective().unwrap_err().0
}

fn said(settings: &AppSettings) -> String {
    settings.effective().unwrap_err().to_string()
}

fn origin(effective: &Effective, name: &str) -> SettingOrigin {
    effective.rows.iter().find(|row| row.name == name).unwrap().origin.clone()
}

/// S3-49, S3-50, S3-51, S3-52, S3-53: the values of settings that are not given, as the dump shows them.
#[test]
fn the_defaults_are_those_of_the_table() {
    let effective = queue("orders").effective().unwrap();
    let expected = expect![[r#"
        scope           setting                              value   unit   from
        application     force_exit_timeout                   1m      time   default
        application     cache_size                           10000   count  default
        application     payload_limit                        2MiB    bytes  default
        application     message_limit                        200000  count  default
        application     completions_per_turn                 256     count  default
        application     retention                            0       time   default
        application     turn_threads                         0       count  default
        application     crash_delay_after                    3       count  default
        application     crash_delay                          1s      time   default
        application     crash_delay_limit                    10m     time   default
        application     crash_quarantine_after               20      count  default
        application     state_dir                                    path   default
        queue "orders"  max_concurrent_workflows             200     count  default
        queue "orders"  max_concurrent_activities            200     count  default
        queue "orders"  workflow_deadlock_timeout            2s      time   default
        queue "orders"  max_heartbeat_throttle_interval      1m      time   default
        queue "orders"  default_heartbeat_throttle_interval  30s     time   default
        queue "orders"  shutdown_grace_period                10s     time   default
        queue "orders"  shutdown_force_timeout               5s      time   default
        queue "orders"  max_zombie_count                     10      count  default
        queue "orders"  zombie_retry_interval                1s      time   default
        queue "orders"  zombie_retry_max_delay               1m      time   default
        queue "orders"  zombie_grace_period                  10s     time   default
        queue "orders"  zombie_give_up_after                 1h      time   default
        queue "orders"  zombie_shutdown_timeout              30s     time   default
    "#]];
    expected.assert_eq(&effective.to_string());
    assert_eq!(effective.queues["orders"], QueueValues::default());
    let s = Duration::from_secs;
    let zombies = ZombieSettings {
        max_count: 10,
        retry_interval: s(1),
        retry_max_delay: s(60),
        grace_period: s(10),
        give_up_after: s(3_600),
        shutdown_timeout: s(30),
    };
    assert_eq!(ZombieSettings::default(), zombies);
}

/// S3-40: two queues, two values; code goes before the variable of the queue, that before the variable for all queues, and that before the default,
/// in whatever order they were brought.
#[test]
fn code_goes_before_the_environment_and_that_before_the_default() {
    let variables = [
        ("DACAPO_MAX_ZOMBIE_COUNT", "3"),
        ("DACAPO_QUEUE_ORDERS_EU_MAX_ZOMBIE_COUNT", "4"),
        ("DACAPO_QUEUE_ORDERS_EU_MAX_CONCURRENT_ACTIVITIES", "1_000"),
        ("DACAPO_FORCE_EXIT_TIMEOUT", " 20s "),
        ("DACAPO_CACHE_SIZE", "7"),
        ("PATH", "/bin"),
        ("DACAPO_KILLS", "200"),
    ];
    let orders = || QueueSettings::new("orders-eu").max_concurrent_activities(5);
    let code_first = AppSettings::new().cache_size(0).queue(orders()).queue(QueueSettings::new("email"));
    let code_last = AppSettings::new().environment(variables).queue(orders()).queue(QueueSettings::new("email"));
    let effective = code_first.environment(variables).effective().unwrap();
    assert_eq!(effective, code_last.cache_size(0).effective().unwrap());

    let (orders, email) = (&effective.queues["orders-eu"], &effective.queues["email"]);
    assert_eq!((orders.max_zombie_count, email.max_zombie_count), (4, 3));
    assert_eq!((orders.max_concurrent_activities, email.max_concurrent_activities), (5, 200));
    assert_eq!((effective.app.cache_size, effective.app.force_exit_timeout), (0, Duration::from_secs(20)));
    assert_eq!(origin(&effective, "cache_size"), SettingOrigin::Code);
    assert_eq!(
        origin(&effective, "force_exit_timeout"),
        SettingOrigin::Environment("DACAPO_FORCE_EXIT_TIMEOUT".into())
    );
    assert_eq!(origin(&effective, "message_limit"), SettingOrigin::Default);
    let lines = effective.to_string();
    assert!(lines.contains("4       count  environment (DACAPO_QUEUE_ORDERS_EU_MAX_ZOMBIE_COUNT)\n"), "{lines}");
}

/// Every setting of the table can be made in the environment, in text, and by its documented name.
#[test]
fn every_setting_is_made_by_its_name() {
    for setting in all_settings() {
        let value = match setting.unit {
            SettingUnit::Path => "/var/lib/any".to_owned(),
            _ => setting.written((setting.default * 2).max(setting.least)),
        };
        let variable = format!("DACAPO_{}", setting.name.to_uppercase());
        let effective = queue("q").environment([(variable.clone(), value.clone())]).effective().unwrap();
        let row = effective.rows.iter().find(|row| row.name == setting.name).unwrap();
        assert_eq!((&row.value, &row.origin), (&value, &SettingOrigin::Environment(variable)));
        assert_eq!(
            effective.rows.iter().filter(|row| row.origin != SettingOrigin::Default).count(),
            1,
            "and nothing else is"
        );
    }
}

#[test]
fn folder_is_a_setting_of_code_and_of_the_environment_and_has_to_have_a_name() {
    let folder = |settings: AppSettings| settings.effective().map(|effective| effective.app.state_dir);
    assert_eq!(folder(AppSettings::new()), Ok(None));
    let given = Ok(Some(PathBuf::from("/var/lib/shop")));
    assert_eq!(folder(AppSettings::new().state_dir("/var/lib/shop")), given);
    assert_eq!(folder(AppSettings::new().set("state_dir", "/var/lib/shop")), given);
    let environment = AppSettings::new().environment([("DACAPO_STATE_DIR", "/srv/other")]);
    assert_eq!(folder(environment.clone()), Ok(Some("/srv/other".into())));
    assert_eq!(folder(environment.state_dir("/var/lib/shop")), given, "code goes before the environment");
    for nameless in [AppSettings::new().state_dir(""), AppSettings::new().environment([("DACAPO_STATE_DIR", " ")])] {
        let refused = folder(nameless).unwrap_err().to_string();
        assert!(refused.contains("name a folder, or leave the setting out [setting-no-folder]"), "{refused}");
    }
}

/// S3-55, C-22: both documented names are one setting, and two values for it are an error.
#[test]
fn both_names_of_the_force_exit_timeout_are_one_setting() {
    let timeout = |settings: AppSettings| settings.effective().unwrap().app.force_exit_timeout;
    assert_eq!(timeout(AppSettings::new().set("forceExitTimeout", "1.5s")), Duration::from_millis(1_500));
    assert_eq!(timeout(AppSettings::new().set("forceExitTimeoutMs", "1500")), Duration::from_millis(1_500));
    let agreed = AppSettings::new().set("forceExitTimeout", "2s").set("forceExitTimeoutMs", "2000");
    assert_eq!(timeout(agreed), Duration::from_secs(2));
    let again =
        AppSettings::new().force_exit_timeout(Duration::from_secs(9)).force_exit_timeout(Duration::from_secs(3));
    assert_eq!(timeout(again), Duration::from_secs(3), "a setter that is called again means it");

    let split = AppSettings::new().set("forceExitTimeout", "1m").set("forceExitTimeoutMs", "2000");
    let expected = expect![[
        "forceExitTimeout = 1m and forceExitTimeoutMs = 2s are one setting, force_exit_timeout, with two values: keep one [setting-conflict]"
    ]];
    expected.assert_eq(&said(&split));
    let split = AppSettings::new()
        .environment([("DACAPO_FORCE_EXIT_TIMEOUT", "1m"), ("DACAPO_FORCE_EXIT_TIMEOUT_MS", "2000")])
        .force_exit_timeout(Duration::from_secs(1));
    let expected = expect![[
        "DACAPO_FORCE_EXIT_TIMEOUT = 1m and DACAPO_FORCE_EXIT_TIMEOUT_MS = 2s are one setting, force_exit_timeout, with two values: keep one [setting-conflict]"
    ]];
    expected.assert_eq(&said(&split));
}

/// Another spelling than that of the table is refused with the name that is meant.
#[test]
fn setting_in_another_spelling_is_refused_with_its_name() {
    let expected = expect![[
        "unknown setting cacheSize (did you mean cache_size?): docs/settings.md lists all settings [setting-unknown]"
    ]];
    expected.assert_eq(&said(&AppSettings::new().set("cacheSize", "1")));
    let expected = expect![[
        "unknown setting DACAPO_CRASH_DELAY_MS (did you mean DACAPO_CRASH_DELAY?): docs/settings.md lists all settings [setting-unknown]"
    ]];
    expected.assert_eq(&said(&AppSettings::new().environment([("DACAPO_CRASH_DELAY_MS", "1")])));
}

#[test]
fn variables_of_the_command_and_of_deploy_gates_are_no_settings() {
    let variables = ["DACAPO_URL", "DACAPO_CHECK_URL", "DACAPO_CHECK_REPORTS"].map(|name| (name, "sqlite:orders.db"));
    queue("orders").environment(variables).effective().unwrap();
}

/// Names of queues that an environment cannot hold.
#[test]
fn a_queue_s_variable_has_letters_digits_and_underscores_only() {
    assert_eq!(queue_variable("orders-eu.v2"), "DACAPO_QUEUE_ORDERS_EU_V2_");
    assert_eq!(queue_variable("größe"), "DACAPO_QUEUE_GR__E_");
    let variables = [(format!("{}MAX_ZOMBIE_COUNT", queue_variable("größe")), "2")];
    assert_eq!(queue("größe").environment(variables).effective().unwrap().queues["größe"].max_zombie_count, 2);
}

/// Where two queues share a variable, or one queue's name runs into a setting's, the settings do not guess.
#[test]
fn a_variable_that_two_queues_could_mean_is_refused() {
    let twins = || queue("orders-eu").queue(QueueSettings::new("orders_EU"));
    let expected = expect![[
        r#"DACAPO_QUEUE_ORDERS_EU_MAX_ZOMBIE_COUNT could be meant for queue "orders-eu" or queue "orders_EU": set it in code, or give the queues names that differ in letters and digits [setting-queue-ambiguous]"#
    ]];
    expected.assert_eq(&said(&twins().environment([("DACAPO_QUEUE_ORDERS_EU_MAX_ZOMBIE_COUNT", "2")])));
    twins().environment([("DACAPO_MAX_ZOMBIE_COUNT", "2")]).effective().unwrap();

    // A queue whose name begins with another's is no problem as long as only one reading is a setting.
    let nested = queue("a").queue(QueueSettings::new("a_b")).environment([("DACAPO_QUEUE_A_B_MAX_ZOMBIE_COUNT", "2")]);
    let effective = nested.effective().unwrap();
    assert_eq!((effective.queues["a"].max_zombie_count, effective.queues["a_b"].max_zombie_count), (10, 2));
}

/// All that is wrong is said at once, the environment in the order of its names.
#[test]
fn all_errors_are_said_at_once() {
    let settings = AppSettings::new()
        .queue(QueueSettings::new("orders").max_concurrent_workflows(0).zombie_give_up_after(Duration::from_secs(5)))
        .environment([
            ("DACAPO_MAX_ZOMBIES_COUNT", "3"),
            ("DACAPO_COLOUR", "red"),
            ("DACAPO_QUEUE_ORDER_MAX_ZOMBIE_COUNT", "3"),
            ("DACAPO_QUEUE_ORDERS_MAX_ZOMBY_COUNT", "3"),
            ("DACAPO_QUEUE_ORDERS_CACHE_SIZE", "3"),
        ]);
    let expected = expect![[r#"
        unknown setting DACAPO_COLOUR: docs/settings.md lists all settings [setting-unknown]
        unknown setting DACAPO_MAX_ZOMBIES_COUNT (did you mean DACAPO_MAX_ZOMBIE_COUNT?): docs/settings.md lists all settings [setting-unknown]
        DACAPO_QUEUE_ORDERS_CACHE_SIZE is set for queue "orders", but there is one for the whole application: set it there [setting-not-of-a-queue]
        unknown setting DACAPO_QUEUE_ORDERS_MAX_ZOMBY_COUNT (did you mean DACAPO_QUEUE_ORDERS_MAX_ZOMBIE_COUNT?): docs/settings.md lists all settings [setting-unknown]
        DACAPO_QUEUE_ORDER_MAX_ZOMBIE_COUNT is for a queue that is not served here (did you mean orders?); serve the queue or unset the variable [setting-queue-unknown]
        max_concurrent_workflows of queue "orders" = 0 is out of range: allowed are 1 to 1000000 [setting-out-of-range]
        queue "orders": zombie_grace_period = 10s must not be more than zombie_give_up_after = 5s: lower the first or raise the second [setting-disorder]"#]];
    expected.assert_eq(&said(&settings));
}

/// T-14: each error has a code and a text of its own, and names the setting, the value and what is allowed.
#[test]
fn no_two_errors_share_a_code_or_a_text() {
    let environment = |name: &str, value: &str| queue("q").environment([(name, value)]);
    let twins = queue("a-b").queue(QueueSettings::new("a_b"));
    let mut all: Vec<SettingError> = [
        environment("DACAPO_MAX_ZOMBIE", "1"),
        environment("DACAPO_QUEUE_P_MAX_ZOMBIE_COUNT", "1"),
        twins.environment([("DACAPO_QUEUE_A_B_MAX_ZOMBIE_COUNT", "1")]),
        queue(""),
        queue("q").queue(QueueSettings::new("q")),
        environment("DACAPO_QUEUE_Q_MESSAGE_LIMIT", "1"),
        AppSettings::new().set("max_zombie_count", "1"),
        environment("DACAPO_MAX_ZOMBIE_COUNT", "ten"),
        environment("DACAPO_ZOMBIE_GRACE_PERIOD", "10"),
        environment("DACAPO_FORCE_EXIT_TIMEOUT_MS", "10s"),
        environment("DACAPO_PAYLOAD_LIMIT", "2MB"),
        environment("DACAPO_PAYLOAD_LIMIT", "2GiB"),
        environment("DACAPO_FORCE_EXIT_TIMEOUT", "30s").environment([("DACAPO_FORCE_EXIT_TIMEOUT_MS", "20000")]),
        environment("DACAPO_ZOMBIE_RETRY_MAX_DELAY", "200ms"),
    ]
    .iter()
    .flat_map(errors)
    .collect();
    all.push(SettingError::NotText { by: "DACAPO_MESSAGE_LIMIT".into(), value: "\u{fffd}".into() });
    assert_eq!(all.len(), 15, "one of each");
    let codes: BTreeSet<&str> = all.iter().map(SettingError::code).collect();
    let texts: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!((codes.len(), texts.len()), (15, 15));
    let lines: Vec<String> =
        all.iter().filter(|error| error.to_string().contains("allowed")).map(ToString::to_string).collect();
    let expected = expect![[r#"
        invalid value DACAPO_MAX_ZOMBIE_COUNT = "ten": write a whole number such as 200; allowed are 1 to 1000000, or 0: never
        invalid value DACAPO_ZOMBIE_GRACE_PERIOD = "10": write a number with its unit (ns, us, ms, s, m, h, d) such as 1.5s; allowed are 1ms to 365d, or 0: it counts at once
        invalid value DACAPO_FORCE_EXIT_TIMEOUT_MS = "10s": write a whole number of milliseconds without a unit; allowed are 1ms to 365d
        invalid value DACAPO_PAYLOAD_LIMIT = "2MB": write a number of bytes, or one with its unit (KiB, MiB, GiB); allowed are 1 to 1GiB
        DACAPO_PAYLOAD_LIMIT = 2GiB is out of range: allowed are 1 to 1GiB"#]];
    expected.assert_eq(&lines.join("\n"));
}

/// T-14
#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let value = std::ffi::OsString::from_vec(vec![b'1', 0xff]);
    let settings = AppSettings::new().environment([("DACAPO_MESSAGE_LIMIT", value)]);
    assert_eq!(errors(&settings)[0].code(), "setting-no-text");
}

/// A 0 that means something is allowed, and one that does not is not.
#[test]
fn zero_is_allowed_where_it_means_something() {
    let queue_with = |name: &str| AppSettings::new().queue(QueueSettings::new("q").set(name, "0")).effective();
    let zero = |name: &str| queue_with(name).map(|effective| effective.queues["q"].clone());
    assert_eq!(zero("max_zombie_count").unwrap().zombies().max_count, 0);
    assert_eq!(zero("workflow_deadlock_timeout").unwrap().workflow_deadlock_timeout, Duration::ZERO);
    assert_eq!(zero("zombie_retry_interval").unwrap_err().0[0].code(), "setting-out-of-range");
    assert_eq!(zero("max_concurrent_activities").unwrap_err().0[0].code(), "setting-out-of-range");
}

/// C-22: a process that would be ended by force while its work may still go on is a mistake, and not a setting.
#[test]
fn a_forced_end_must_leave_time_for_a_shutdown() {
    let with = |force_exit, grace, force| {
        let [force_exit, grace, force] = [force_exit, grace, force].map(Duration::from_secs);
        let queue = QueueSettings::new("orders").shutdown_grace_period(grace).shutdown_force_timeout(force);
        AppSettings::new().force_exit_timeout(force_exit).queue(queue).effective()
    };
    assert!(with(15, 10, 5).is_ok());
    assert_eq!(
        with(14, 10, 5).unwrap_err().to_string(),
        "queue \"orders\": shutdown_grace_period + shutdown_force_timeout = 15s must not be more than force_exit_timeout = 14s: lower \
         the first or raise the second [setting-disorder]"
    );
}
