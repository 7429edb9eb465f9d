//! The replay check: it finds idle runs that a deploy would make stuck.

use std::sync::{Arc, Mutex};

use dacapo::prelude::*;
use dacapo::{Dacapo, Filter, Unplayable};

use crate::waiting::wait_until;

const GO: Signal<u32> = Signal::new("go");

#[activity]
async fn note(text: String) -> Result<String, Failure> {
    Ok(text)
}

mod v2 {
    use super::*;

    #[workflow]
    pub async fn visit(ctx: Ctx, name: String) -> Result<u32, Failure> {
        ctx.call(note, name).await?;
        ctx.next_signal(GO).await
    }
}

/// A step is new and has no patch, and the code of one workflow blocks.
mod v3 {
    use super::*;

    #[workflow]
    pub async fn visit(ctx: Ctx, name: String) -> Result<u32, Failure> {
        if name == "blocked" {
            loop {
                std::thread::park();
            }
        }
        ctx.call(note, name.clone()).await?;
        if name.starts_with("odd") {
            ctx.sleep(secs(1)).await?;
        }
        ctx.next_signal(GO).await
    }
}

fn told(found: &[Unplayable]) -> Vec<(&str, &str)> {
    let mut told: Vec<_> =
        found.iter().map(|run| (run.workflow_id.as_str(), run.reason.split('\n').next().unwrap())).collect();
    told.sort_unstable();
    told.iter_mut().for_each(|(_, reason)| *reason = reason.split(" did not").next().unwrap());
    told
}

/// After a bad deploy runs at rest were not listed as stuck until something woke them.
#[tokio::test(flavor = "multi_thread")]
async fn replay_check_finds_idle_runs_that_a_deploy_would_make_stuck() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("visits.db").display());
    let app = Dacapo::open(&url).await.unwrap().serve((v2::visit, note)).await.unwrap();
    for name in ["even-1", "odd-1", "blocked", "even-2", "odd-2"] {
        let run = app.start(v2::visit, name.into()).id(name).await.unwrap();
        wait_until("the second turn", async || run.describe().await.unwrap().turns >= 2).await;
    }
    assert_eq!(app.check_open_runs(|_| ()).await.unwrap(), []);

    let differs = "nondeterminism: a command was not recorded";
    let bad = [("blocked", "deadlock: turn 0"), ("odd-1", differs), ("odd-2", differs)];
    let played = Arc::new(Mutex::new(0));
    let (of_check, reading) = (played.clone(), Dacapo::open(&format!("{url}?mode=ro")).await.unwrap());
    let quick = reading.settings(|app| app.every_queue(|queue| queue.workflow_deadlock_timeout(millis(100))));
    let before = quick.check_open_runs((v3::visit, note), move |number| *of_check.lock().unwrap() = number).await;
    assert_eq!(told(&before.unwrap()), bad, "before the deploy, beside the process that serves");
    assert_eq!(*played.lock().unwrap(), 5);
    let other = Dacapo::open(&format!("{url}?mode=ro")).await.unwrap().queue("other");
    assert_eq!(other.check_open_runs((v3::visit, note), |_| ()).await.unwrap(), [], "others serve that queue");
    let without = Dacapo::open(&format!("{url}?mode=ro")).await.unwrap();
    let without = without.check_open_runs(note, |_| ()).await.unwrap();
    assert_eq!(without.len(), 5);
    assert!(without[0].to_string().contains("no workflow \"visit\" is registered here"), "{}", without[0]);
    app.shutdown().await;

    let quick = Dacapo::open(&url)
        .await
        .unwrap()
        .settings(|app| app.every_queue(|queue| queue.workflow_deadlock_timeout(millis(100))));
    let app = quick.serve((v3::visit, note)).await.unwrap();
    assert_eq!(app.runs().count(&Filter::stuck()).await.unwrap(), 0, "nothing has woken them");
    assert_eq!(told(&app.check_open_runs(|_| ()).await.unwrap()), bad);
    assert_eq!(app.runs().count(&Filter::stuck()).await.unwrap(), 0, "nothing is changed");
    app.stop().await;
}
