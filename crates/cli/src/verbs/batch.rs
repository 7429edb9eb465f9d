//! One verb for all runs that a search finds.

use std::io::{IsTerminal as _, Write as _};

use dacapo_client::{Client, Error};
use serde::Serialize;

use super::look::filter_of;
use crate::arguments::{Batch, BatchVerb};
use crate::backend::explained;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// The runs that are listed at a time.
const PAGE: usize = 200;
/// How many ids are shown of those that would be changed.
const SHOWN: usize = 10;

/// The outcome of a batch.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Runs that the search found.
    found: u64,
    /// Runs that were changed.
    done: u64,
    /// Runs whose state does not allow it any more, with the reason.
    skipped: Vec<(String, String)>,
}

/// Changes as many runs as there are when it comes to them. It keeps nothing: after a kill, the same command goes on, because what is done
/// already is found no more or is skipped.
pub(super) async fn batch(client: &dyn Client, batch: Batch, output: Output) -> Result<()> {
    if batch.search.trim().is_empty() {
        return Err(Failure::Usage(
            "say which runs: a search that finds all of them is WorkflowId STARTS_WITH ''".to_owned(),
        ));
    }
    let filter = filter_of(&batch.search)?;
    let (mut report, mut after, mut ids) = (Report::default(), None, Vec::new());
    loop {
        let page = client.list(filter.clone(), after, PAGE).await?;
        for run in &page.runs {
            report.found += 1;
            if ids.len() < SHOWN {
                ids.push(run.workflow_id.to_string());
            }
            if !batch.yes {
                continue;
            }
            let of = run.reference();
            let changed = match batch.verb {
                BatchVerb::Cancel => client.cancel(of, batch.reason.clone()).await,
                BatchVerb::Terminate => client.terminate(of, batch.reason.clone()).await,
                BatchVerb::Release => client.release(of).await,
                BatchVerb::Delete => client.delete(of).await,
            };
            match changed {
                Ok(()) => report.done += 1,
                Err(error @ (Error::Closed { .. } | Error::RunOpen | Error::NotFound { .. })) => {
                    report.skipped.push((run.workflow_id.to_string(), error.to_string()));
                }
                Err(error) => return Err(explained(error)),
            }
            progress(&report);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    progress_ends(&report);
    output.print(&report, || text(&report, &batch, &ids))
}

fn text(report: &Report, batch: &Batch, ids: &[String]) -> String {
    let verb = format!("{:?}", batch.verb).to_lowercase();
    if !batch.yes {
        let more = if report.found as usize > ids.len() { ", …" } else { "" };
        return format!("would {verb} {}: {}{more}\nadd --yes to do it", runs(report.found), ids.join(", "));
    }
    let mut text = format!("{verb}: {} of {}", report.done, runs(report.found));
    for (id, why) in report.skipped.iter().take(SHOWN) {
        text += &format!("\n  skipped {id}: {why}");
    }
    if report.skipped.len() > SHOWN {
        text += &format!("\n  and {} more", report.skipped.len() - SHOWN);
    }
    text
}

fn runs(number: u64) -> String {
    if number == 1 { "1 run".to_owned() } else { format!("{number} runs") }
}

fn progress(report: &Report) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{} done, {} skipped", report.done, report.skipped.len());
        std::io::stderr().flush().ok();
    }
}

fn progress_ends(report: &Report) {
    if report.done > 0 && std::io::stderr().is_terminal() {
        eprintln!();
    }
}
