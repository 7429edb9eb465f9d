//! Code that kills its process, on PostgreSQL: each process keeps notes of what it runs in a local folder.

#[path = "kill/hazard.rs"]
mod hazard;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dacapo::prelude::*;
use dacapo::{EventKind, Filter};
use dacapo_examples::errand::{ADD, GO, QUEUE, errand, expected, given, part, shaky, step};
use dacapo_test_postgres::new_schema_url;

use hazard::{Hazard, text};

/// Short leases, so that the tests need not wait long.
const PACE: &str = "&lease=1s&renewal=200ms&slow_poll=500ms";

/// A node that comes back under its name has its runs at once.
fn node(url: &str, name: &str) -> String {
    format!("{url}{PACE}&node={name}")
}

fn assert_quarantined(way: &'static str, words: &[&str]) {
    hazard::assert_quarantined(&Hazard::on(Some(node(&new_schema_url(), "hazard")), way), words);
}

#[test]
fn an_activity_that_kills_its_node_is_quarantined_after_three_deaths() {
    assert_quarantined("activity", &["activity \"explode\"", "quarantined: it is not tried until it is released"]);
}

#[test]
fn a_turn_that_kills_its_node_is_quarantined_after_three_deaths() {
    assert_quarantined("turn", &["workflow \"deadly\""]);
    assert_quarantined("first-turn", &["workflow \"deadly\""]);
}

#[test]
fn local_work_that_kills_its_node_is_quarantined_after_three_deaths() {
    assert_quarantined("local-activity", &["workflow \"deadly\""]);
}

#[test]
fn a_query_that_kills_its_node_is_quarantined_after_three_deaths() {
    assert_quarantined("query", &["it is not asked: ", "workflow \"deadly\""]);
}

/// The run is taken over by the node that lives, and kills that as well: each death is counted once, by the node that died, when it
/// comes back. Until then the other may have played it once more.
#[test]
fn a_turn_that_kills_one_node_after_the_other_is_quarantined_and_all_healthy_work_is_done() {
    let url = new_schema_url();
    let live = |name: &str| {
        let hazard = Hazard::on(Some(node(&url, name)), "turn");
        thread::spawn(move || hazard.outlive())
    };
    let lives = ["a", "b"].map(live).map(|lives| lives.join().unwrap());
    let deaths: usize = lives.iter().map(|(_, deaths)| deaths).sum();
    assert!((3..=4).contains(&deaths), "{deaths} deaths");
    for (survivor, _) in lives {
        let said = text(&survivor.stdout);
        assert!(said.contains("all that is healthy is done"), "{said}{}", text(&survivor.stderr));
        assert!(said.contains("stuck: [\"deadly\"]"), "{said}");
    }
}

/// A process that serves errands, and quarantines whatever it was running at its first death.
struct Serving(Child);

impl Serving {
    fn begin(url: &str, state_dir: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_node"));
        command.arg(node(url, "errands")).env("DACAPO_STATE_DIR", state_dir).env("DACAPO_CRASH_QUARANTINE_AFTER", "1");
        Self(command.stdout(Stdio::null()).spawn().expect("a node starts"))
    }

    fn kill(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a run has these many results of operations, and is at rest.
async fn has_results(app: &App, id: &str, wanted: usize) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let history = app.handle(errand, id).history().await;
        let results = history.map_or(0, |history| {
            history.iter().filter(|event| matches!(event.kind, EventKind::OperationEnded { .. })).count()
        });
        if results == wanted {
            return;
        }
        assert!(Instant::now() < end, "{id} does not go on");
        // sleep: another process plays it.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_are_at_rest_in_the_memory_of_a_node_that_is_killed_are_not_quarantined() {
    let (url, folder) = (new_schema_url(), tempfile::tempdir().unwrap());
    let app = Dacapo::open(&node(&url, "driver")).await.unwrap().queue("driver");
    let app = app.serve((errand, part, step, shaky, given)).await.unwrap();
    let mut serving = Serving::begin(&url, folder.path());
    // Their numbers say that they do nothing but their three steps.
    let errands: Vec<(u64, String)> = (0..8).map(|number| (8 * number, format!("errand-{number}"))).collect();
    for (number, id) in &errands {
        app.start(errand, *number).id(id.clone()).queue(QUEUE).await.unwrap();
    }
    for (_, id) in &errands {
        has_results(&app, id, 3).await;
    }
    serving.kill();
    let _again = Serving::begin(&url, folder.path());
    for (number, id) in &errands {
        let run = app.handle(errand, id.clone());
        run.signal(ADD, 5).await.unwrap();
        run.signal(GO, ()).await.unwrap();
        assert_eq!(run.result().await.unwrap(), expected(*number, 5));
    }
    assert_eq!(app.runs().count(&Filter::stuck()).await.unwrap(), 0);
    app.shutdown().await;
}
