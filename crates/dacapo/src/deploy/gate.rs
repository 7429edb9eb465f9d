//! The test that `deploy_gate!` defines.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::DeployReport;
use crate::{Dacapo, Register};

/// Where the runs are.
const URL: &str = "DACAPO_CHECK_URL";
/// A folder for reports, if they are wanted as files.
const REPORTS: &str = "DACAPO_CHECK_REPORTS";

/// Replays open runs, writes the reports that the environment asks for, and panics with the report if a run could not go on.
pub fn gate<P, R: Register<P>>(name: &str, queues: &[&'static str], items: impl FnOnce() -> R) {
    let url = std::env::var(URL).unwrap_or_else(|_| {
        panic!("name the backend whose open runs are replayed: `cargo dacapo check --url sqlite:orders.db`, or the variable {URL}")
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime can be started: {error}"));
    let report = runtime.block_on(report(name, &url, queues, items()));
    let report = report.unwrap_or_else(|error| panic!("{name}: the open runs of {url} cannot be replayed: {error}"));
    if let Some(folder) = std::env::var_os(REPORTS) {
        write(Path::new(&folder), &report)
            .unwrap_or_else(|error| panic!("{name}: the report cannot be written: {error}"));
    }
    assert!(report.is_safe(), "{report}");
    eprintln!("{report}");
}

async fn report<P>(
    name: &str,
    url: &str,
    queues: &[&'static str],
    items: impl Register<P>,
) -> crate::Result<DeployReport> {
    let mut dacapo = Dacapo::open(&read_only(url)).await?;
    for queue in queues {
        dacapo = dacapo.queue(*queue);
    }
    let played = Arc::new(AtomicU64::new(0));
    let (counted, shown) = (played.clone(), std::io::stderr().is_terminal());
    let progress = move |runs| {
        counted.store(runs, Ordering::Relaxed);
        if shown {
            eprint!("\r{runs} runs replayed");
            std::io::stderr().flush().ok();
        }
    };
    let found = dacapo.check_open_runs(items, progress).await?;
    if shown {
        eprintln!();
    }
    Ok(DeployReport::of(name, found).played(played.load(Ordering::Relaxed)))
}

/// A file or a database that is served by another process is opened beside it.
fn read_only(url: &str) -> String {
    let is_store = ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| url.starts_with(scheme));
    match (is_store && !url.contains("mode=ro"), url.contains('?')) {
        (false, _) => url.to_owned(),
        (true, true) => format!("{url}&mode=ro"),
        (true, false) => format!("{url}?mode=ro"),
    }
}

fn write(folder: &Path, report: &DeployReport) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let file = |extension: &str| folder.join(format!("{}.{extension}", report.name));
    std::fs::write(file("txt"), report.to_string())?;
    std::fs::write(file("json"), report.to_json())?;
    std::fs::write(file("xml"), report.to_junit())
}
