//! Three nodes on one PostgreSQL server, under load, while nodes are killed and stopped, connections are cut, and the server
//! itself is killed. In the end every start, signal and update that was answered is accounted for once.
//!
//! `DACAPO_SOAK_SECONDS` says for how long, a minute and a half by default, and `DACAPO_SOAK_RUNS` how many errands have to be done by
//! then.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dacapo::prelude::*;
use dacapo::{ClientError, EventKind, Filter, PendingActivity, Status};
use dacapo_examples::errand::{ADD, Extra, GO, HELP, PUT, QUEUE, errand, expected, given, part, shaky, step};
use dacapo_test_postgres::{Proxy, Server, schema_url};
use tempfile::TempDir;

/// How many errands are under way at a time.
const AT_A_TIME: u64 = 300;
const NODES: usize = 3;
/// Short leases, so that much happens in little time.
const PACE: &str = "&lease=3s&renewal=700ms&slow_poll=2s";

/// A node, and the proxy that it reaches the server through.
struct Node {
    proxy: Proxy,
    url: String,
    /// Where its processes note what they run.
    state_dir: TempDir,
    process: Child,
}

impl Node {
    fn begin(server: &Server, url: &str) -> Self {
        let proxy = Proxy::to(&format!("127.0.0.1:{}", server.port()));
        let (url, state_dir) = (proxy.url(url), tempfile::tempdir().expect("a folder is made"));
        let process = spawn(&url, state_dir.path());
        Self { proxy, url, state_dir, process }
    }

    fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        self.process = spawn(&self.url, self.state_dir.path());
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.process.id().to_string()]).status().expect("`kill` is there");
        assert!(sent.success(), "{name}: {sent}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(url: &str, state_dir: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_node"));
    command
        .arg(url)
        .env("DACAPO_STATE_DIR", state_dir)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a node starts")
}

/// Tries until it is answered: a node may be gone before it has answered, and the same request again is the same request.
async fn insist<T, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = dacapo::Result<T>>,
{
    let end = Instant::now() + Duration::from_secs(300);
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < end, "{what} is not answered: {error}"),
        }
        // sleep: a node is being taken over.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// One errand from its start to its end.
async fn run_errand(app: &App, number: u64) {
    let id = format!("errand-{number}");
    let handle = || app.handle(errand, id.clone());
    insist("a start", async || app.start(errand, number).id(id.clone()).queue(QUEUE).request_id(id.clone()).await)
        .await;
    insist("a signal", async || handle().signal(ADD, number % 5).request_id("add").await).await;
    let sum = insist("an update", async || handle().update(PUT, 100).request_id("put").await).await;
    assert!(sum == 100 || sum == 100 + number % 5, "{id}: the sum is {sum}");
    match Extra::of(number) {
        Extra::Terminated => return terminate(app, &id).await,
        Extra::Given => give(app, &id, number + 4).await,
        _ => {}
    }
    insist("a signal", async || handle().signal(GO, ()).request_id("go").await).await;
    let result = insist("a result", async || Ok(handle().result().await)).await;
    match result {
        Ok(result) => assert_eq!(result, expected(number, 100 + number % 5), "{id}"),
        Err(error) => panic!("{id}: {error}"),
    }
}

/// Completes the activity of an errand that is completed from outside.
async fn give(app: &App, id: &str, value: u64) {
    let is_given = |activity: &PendingActivity| activity.activity == "given";
    let has_asked = AtomicBool::new(false);
    insist("a completion", async || {
        let pending = app.runs().describe(id).await?.pending.into_iter().find(is_given);
        match pending {
            Some(activity) => {
                has_asked.store(true, Ordering::Relaxed);
                app.handle(errand, id).complete_activity(&activity.id, &value).await
            }
            // The answer to an earlier completion was lost.
            None if has_asked.load(Ordering::Relaxed) => Ok(()),
            None => Err(ClientError::Unavailable("the activity is not scheduled yet".to_owned()).into()),
        }
    })
    .await;
}

async fn terminate(app: &App, id: &str) {
    insist("a termination", async || {
        let terminated = app.handle(errand, id).terminate("enough").await;
        match app.runs().describe(id).await?.status {
            // The answer to an earlier one was lost.
            Status::Terminated => Ok(()),
            _ => terminated,
        }
    })
    .await;
}

/// Reads the history of every errand: each of its operations has ended once.
async fn check_histories(app: &App, errands: u64) {
    let next = AtomicU64::new(0);
    let read = async || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= errands {
                return;
            }
            let history =
                insist("a history", async || app.handle(errand, format!("errand-{number}")).history().await).await;
            let mut ended = BTreeSet::new();
            for event in &*history {
                if let EventKind::OperationEnded { seq, .. } = &event.kind {
                    assert!(
                        ended.insert(*seq),
                        "errand-{number} has two results of one operation:\n{}",
                        history.to_text()
                    );
                }
            }
        }
    };
    futures::future::join_all((0..16).map(|_| read())).await;
}

/// Describes the errands that are open.
async fn open_errands(app: &App) -> String {
    let open = app.runs().list(&Filter::open(), 5).await.expect("runs are listed");
    let mut text = String::new();
    for run in open.runs {
        text += &format!("\n{run:#?}\n");
        text += &match app.handle(errand, run.workflow_id).history().await {
            Ok(history) => history.to_text(),
            Err(error) => error.to_string(),
        };
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_of_nodes_that_are_killed_stopped_and_cut_off_is_done_once() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (seconds, wanted) = (number("DACAPO_SOAK_SECONDS", 90), number("DACAPO_SOAK_RUNS", 1));
    let mut server = Server::start(env!("CARGO_TARGET_TMPDIR").as_ref(), &[]).expect("PostgreSQL starts");
    let url = format!("{}{PACE}", schema_url(&server.url()));
    let app = Dacapo::open(&url).await.expect("the store opens").queue("driver").queue(HELP);
    let app = app.serve((errand, part, step, shaky, given)).await.expect("the driver joins");
    let mut nodes: Vec<Node> = (0..NODES).map(|_| Node::begin(&server, &url)).collect();

    let (next, done, ends) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let workers: Vec<_> = (0..AT_A_TIME)
        .map(|_| {
            let (app, next, done, ends) = (app.clone(), next.clone(), done.clone(), ends.clone());
            tokio::spawn(async move {
                while !ends.load(Ordering::Relaxed) {
                    run_errand(&app, next.fetch_add(1, Ordering::Relaxed)).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();

    let (began, time) = (Instant::now(), Duration::from_secs(seconds));
    let (mut kills, mut stops, mut cuts, mut crashes, mut dice) = (0, 0, 0, 0, 0x5eed_u64);
    while began.elapsed() < time {
        // sleep: there is load for a while before the next blow.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!workers.iter().any(tokio::task::JoinHandle::is_finished), "a worker has failed");
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let node = &mut nodes[(dice >> 33) as usize % NODES];
        match kills + stops + cuts + crashes {
            blow if blow % 7 == 3 => {
                node.signal("-STOP");
                // sleep: past the lease, so that the others take it for dead.
                tokio::time::sleep(Duration::from_secs(5)).await;
                node.signal("-CONT");
                stops += 1;
            }
            blow if blow % 7 == 5 => {
                node.proxy.cut();
                cuts += 1;
            }
            blow if blow % 14 == 8 => {
                server.kill().expect("the server can be killed");
                server.restart().expect("the server comes back");
                crashes += 1;
            }
            _ => {
                node.kill();
                kills += 1;
            }
        }
        println!(
            "{:>4} s: {} errands; {kills} kills, {stops} stops, {cuts} cuts, {crashes} crashes of the server",
            began.elapsed().as_secs(),
            done.load(Ordering::Relaxed)
        );
    }
    ends.store(true, Ordering::Relaxed);
    let all = futures::future::join_all(workers);
    match tokio::time::timeout(Duration::from_secs(120), all).await {
        Ok(ended) => ended.into_iter().for_each(|worker| worker.expect("no errand failed")),
        Err(_) => panic!("errands do not end: {}", open_errands(&app).await),
    }
    let begun = next.load(Ordering::Relaxed);
    let terminated = (0..begun).filter(|number| Extra::of(*number) == Extra::Terminated).count() as u64;
    let runs = app.runs();
    let ended = |status| Filter::default().workflow("errand").status(status);
    assert_eq!(done.load(Ordering::Relaxed), begun);
    assert_eq!(runs.count(&ended(Status::Completed)).await.expect("runs are counted"), begun - terminated);
    assert_eq!(runs.count(&ended(Status::Terminated)).await.expect("runs are counted"), terminated);
    assert_eq!(runs.count(&Filter::stuck()).await.expect("runs are counted"), 0);
    assert_eq!(runs.count(&Filter::open()).await.expect("runs are counted"), 0);
    assert_eq!(runs.verify(|_| {}).await.expect("the store is read"), []);
    check_histories(&app, begun).await;
    println!("{begun} errands, all accounted for");
    assert!(begun >= wanted, "only {begun} errands were done in {seconds} s, {wanted} were wanted");
    app.shutdown().await;
}
