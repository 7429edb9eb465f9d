//! Lists stuck orders with cause and remedy, for people. It works beside the process that serves.

use std::fmt::Write;

use dacapo::{Filter, Runs};

const PAGE: usize = 100;

/// One block of text for each run that cannot go on, newest first.
pub async fn report(runs: &Runs) -> dacapo::Result<String> {
    let filter = Filter::stuck();
    let mut text = String::new();
    let mut page = runs.list(&filter, PAGE).await?;
    loop {
        for run in &page.runs {
            let Some(stuck) = &run.stuck else { continue };
            let times = if stuck.attempts == 1 { "once".to_owned() } else { format!("{} times", stuck.attempts) };
            let _ = writeln!(text, "order {} is stuck after turn {}, tried {times}", run.workflow_id, run.turns);
            for line in stuck.reason.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        match page.next {
            Some(next) => page = runs.list_from(&filter, next, PAGE).await?,
            None => break,
        }
    }
    let stuck = runs.count(&filter).await?;
    let _ = writeln!(text, "{stuck} stuck");
    Ok(text)
}
