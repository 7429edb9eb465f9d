//! Settings of the crash guard, as they reach the engine and readers of a store.

use std::time::Duration;

use dacapo::prelude::*;
use dacapo::{ActivityState, AppSettings, Dacapo, Description};
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Doing, ReadRuns, ReadTasks, RunningNotes};

#[activity]
async fn hang() -> Result<(), Failure> {
    std::future::pending().await
}

#[workflow]
async fn hangs(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(hang, ()).await
}

/// A file whose process died once while the activity of run `a` ran.
async fn crashed_store(path: &str) {
    let app = Dacapo::open(&format!("sqlite:{path}")).await.unwrap().serve((hangs, hang)).await.unwrap();
    app.start(hangs, ()).id("a").await.unwrap();
    app.stop().await;
    let store = SqliteStore::open(path).unwrap();
    let run = store.find("a", None).unwrap().unwrap().no;
    let task = store.tasks_of(run).unwrap().remove(0).no;
    // A store that is dropped is a process that died.
    store.began(Doing::Attempt(task)).unwrap();
}

async fn served(store: Dacapo) -> Description {
    let app = store.serve((hangs, hang)).await.unwrap();
    let described = app.handle(hangs, "a").describe().await.unwrap();
    let read = app.runs().describe("a").await.unwrap();
    let is_quarantined = |run: &Description| run.pending[0].state == ActivityState::Quarantined;
    assert_eq!(is_quarantined(&described), is_quarantined(&read), "{read:?}");
    app.stop().await;
    described
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_settings_of_code_and_environment_reach_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crashed.db").display().to_string();
    crashed_store(&path).await;
    let open = async || Dacapo::open(&format!("sqlite:{path}")).await.unwrap();
    let (hour, two_hours) = (Duration::from_secs(3_600), Duration::from_secs(7_200));

    let code = |app: AppSettings| app.crash_quarantine_after(1);
    assert_eq!(served(open().await.settings(code)).await.pending[0].state, ActivityState::Quarantined);
    let variables = [("DACAPO_CRASH_QUARANTINE_AFTER", "1")];
    assert_eq!(served(open().await.environment(variables)).await.pending[0].state, ActivityState::Quarantined);

    let code = |app: AppSettings| app.crash_delay_after(1).crash_delay(two_hours).crash_delay_limit(hour);
    let variables =
        [("DACAPO_CRASH_DELAY_AFTER", "1"), ("DACAPO_CRASH_DELAY", "2h"), ("DACAPO_CRASH_DELAY_LIMIT", "1h")];
    let now = Timestamp::from_millis(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64);
    for store in [served(open().await.settings(code)).await, served(open().await.environment(variables)).await] {
        let pending = &store.pending[0];
        assert_eq!(pending.state, ActivityState::Waiting);
        let delay = pending.next_attempt.unwrap().since(now);
        assert!(delay >= hour && delay < two_hours, "the limit holds: {delay:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_settings_decide_what_a_reader_of_a_file_calls_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crashed.db").display().to_string();
    crashed_store(&path).await;
    // The next process counts the death; it delays the activity, so that no attempt resets the count.
    let long = Duration::from_secs(600);
    let delays = |app: AppSettings| app.crash_delay_after(1).crash_delay_limit(long).crash_delay(long);
    served(Dacapo::open(&format!("sqlite:{path}")).await.unwrap().settings(delays)).await;
    let open = async || Dacapo::open(&format!("sqlite:{path}?mode=ro")).await.unwrap();
    let state = async |store: Dacapo| store.runs().describe("a").await.unwrap().pending[0].state;

    assert_eq!(state(open().await).await, ActivityState::Pending, "20 deaths by default");
    let code = |app: AppSettings| app.crash_quarantine_after(1);
    assert_eq!(state(open().await.settings(code)).await, ActivityState::Quarantined);
    let variables = [("DACAPO_CRASH_QUARANTINE_AFTER", "1")];
    assert_eq!(state(open().await.environment(variables)).await, ActivityState::Quarantined);
}

/// The file that this test's own process, started again with settings in its environment, describes.
const FILE: &str = "CONNECT_TO_FILE";

#[tokio::test(flavor = "multi_thread")]
async fn crash_settings_of_the_environment_decide_what_a_connection_calls_quarantined() {
    if let Ok(path) = std::env::var(FILE) {
        let connection = Dacapo::connect(&format!("sqlite:{path}")).await.unwrap();
        let state = connection.handle(hangs, "a").describe().await.unwrap().pending[0].state;
        assert_eq!(state, ActivityState::Quarantined);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crashed.db").display().to_string();
    crashed_store(&path).await;
    let long = Duration::from_secs(600);
    let delays = |app: AppSettings| app.crash_delay_after(1).crash_delay_limit(long).crash_delay(long);
    served(Dacapo::open(&format!("sqlite:{path}")).await.unwrap().settings(delays)).await;
    let name = "crash_settings::crash_settings_of_the_environment_decide_what_a_connection_calls_quarantined";
    let again = |quarantine_after: &str| {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", name]).env(FILE, &path).env("DACAPO_CRASH_QUARANTINE_AFTER", quarantine_after);
        String::from_utf8(again.output().unwrap().stdout).unwrap()
    };
    let quarantined = again("1");
    assert!(quarantined.contains("1 passed"), "{quarantined}");
    let pending = again("20");
    assert!(pending.contains("1 failed") && pending.contains("Pending"), "{pending}");
}
