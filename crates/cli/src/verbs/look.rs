//! Looking at runs.

use std::time::SystemTime;

use dacapo_client::{
    Client, Cursor, Description, Filter, GroupBy, HistoryEvent, QueryRun, RunHistory, RunRef, StuckRuns,
};
use dacapo_core::{Payload, Timestamp};

use crate::arguments::{By, Count, History, List, Message, Run};
use crate::backend::run_of;
use crate::failure::{Failure, Result};
use crate::output::{Colour, Output, colour_of};
use crate::text::{columns, duration, moment, payload, short, status};
use crate::timeline;

/// The events of a page of history.
const PAGE: usize = 1_000;

pub(crate) fn filter_of(search: &str) -> Result<Filter> {
    let search = match search.trim() {
        "" => None,
        text => Some(text.parse().map_err(|error| Failure::Usage(format!("{error}")))?),
    };
    Ok(Filter { search, ..Filter::default() })
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

pub(super) async fn list(client: &dyn Client, list: List, output: Output) -> Result<()> {
    let page = client.list(filter_of(&list.search)?, list.after.map(Cursor), usize::from(list.limit)).await?;
    output.print(&page, || {
        let width = |of: fn(&Description) -> &str, title: &str| {
            page.runs.iter().map(|run| of(run).chars().count()).max().unwrap_or(0).clamp(title.len(), 40)
        };
        let (id, workflow) = (width(|run| &run.workflow_id, "WORKFLOW ID"), width(|run| &run.workflow, "WORKFLOW"));
        let title = [("WORKFLOW ID", id), ("WORKFLOW", workflow), ("STATUS", 16), ("STARTED", 19)];
        let mut text = output.coloured(Colour::Dim, &columns(&title, "TOOK")) + "\n";
        for run in &page.runs {
            let word = status(run.status, run.stuck.is_some());
            let shown = output.coloured(colour_of(run.status, run.stuck.is_some()), &word);
            let pad = " ".repeat(16_usize.saturating_sub(word.chars().count()));
            let took = run.closed.map(|closed| duration(closed.since(run.started))).unwrap_or_default();
            let first = columns(&[(&short(&run.workflow_id, 40), id), (&short(&run.workflow, 40), workflow)], "");
            text += &format!("{first}{shown}{pad}  {}  {took}", moment(run.started));
            text = text.trim_end().to_owned() + "\n";
        }
        if let Some(Cursor(next)) = &page.next {
            text += &output.coloured(Colour::Dim, &format!("more: --after {next}"));
        }
        text
    })
}

pub(super) async fn count(client: &dyn Client, count: Count, output: Output) -> Result<()> {
    let by = count.by.map(|by| match by {
        By::Status => GroupBy::Status,
        By::Workflow => GroupBy::Workflow,
    });
    let counts = client.counts(filter_of(&count.search)?, by).await?;
    output.print(&counts, || {
        let line = |count: &dacapo_client::Count| match &count.group {
            Some(group) => columns(&[(&short(group, 40), 24)], &format!("{count}\n")),
            None => format!("{count}\n"),
        };
        counts.iter().map(line).collect()
    })
}

/// Reads the whole history of a run.
async fn events(client: &dyn Client, run: &RunRef) -> Result<Vec<HistoryEvent>> {
    let (mut events, mut after) = (Vec::new(), None);
    loop {
        let page = client.history(run.clone(), after, PAGE).await?;
        events.extend(page.events);
        after = page.next;
        if after.is_none() {
            return Ok(events);
        }
    }
}

pub(super) async fn show(client: &dyn Client, run: &Run, output: Output) -> Result<()> {
    let description = client.describe(run_of(run)).await?;
    let events = events(client, &description.reference()).await?;
    output.print(&description, || described(&description, output) + "\n" + &timeline::draw(&events, now(), output))
}

fn described(run: &Description, output: Output) -> String {
    let stuck = run.stuck.is_some();
    let word = output.coloured(colour_of(run.status, stuck), &status(run.status, stuck));
    let mut rows: Vec<(&str, String)> = vec![
        ("workflow", format!("{} on queue {}", run.workflow, run.queue)),
        ("run id", run.run_id.to_string()),
        ("status", word),
        ("started", moment(run.started)),
    ];
    rows.extend(
        run.closed
            .map(|closed| ("closed", format!("{}, after {}", moment(closed), duration(closed.since(run.started))))),
    );
    rows.extend(run.parent.as_ref().map(|parent| ("parent", parent.to_string())));
    rows.extend(run.next_run_id.as_ref().map(|next| ("goes on as", next.to_string())));
    rows.push(("turns", run.turns.to_string()));
    rows.extend(run.attributes.iter().map(|(name, value)| ("attribute", format!("{name} = {value}"))));
    rows.extend(run.memo.iter().map(|(name, value)| ("memo", format!("{name}: {value}"))));
    rows.extend(run.published.as_ref().map(|published| ("published", published.to_string())));
    rows.extend(run.result.as_ref().map(|result| match result {
        Ok(result) => ("result", result.to_string()),
        Err(failure) => ("failure", failure.to_string()),
    }));
    for activity in &run.pending {
        let attempts = if activity.attempt > 1 { format!(", attempt {}", activity.attempt) } else { String::new() };
        let failed = activity.last_failure.as_ref().map(|failure| format!(", the last failed: {}", failure.message));
        let text = format!("{} ({}){attempts}{}", activity.activity, activity.state, failed.unwrap_or_default());
        rows.push(("pending", text));
    }
    if run.messages_waiting > 0 {
        rows.push(("messages", format!("{} sent and not taken yet", run.messages_waiting)));
    }
    let mut text = format!("{}\n", run.workflow_id);
    for (name, value) in rows {
        text += &columns(&[("", 0), (name, 10)], &(value + "\n"));
    }
    if let Some(stuck) = &run.stuck {
        text += &format!("\n{}\n", output.coloured(Colour::Red, &stuck.reason));
    }
    text
}

pub(super) async fn history(client: &dyn Client, asked: History, output: Output) -> Result<()> {
    let history = RunHistory(events(client, &run_of(&asked.run)).await?);
    let written = |history: &RunHistory| if asked.redact { history.to_redacted_text() } else { history.to_text() };
    let Some(other) = &asked.diff else {
        if asked.redact {
            let text = written(&history);
            return output.print(&text, || text.clone());
        }
        return output.print(&history, || written(&history));
    };
    let other = RunHistory(events(client, &RunRef::latest(other.clone())).await?);
    let difference = difference(&written(&history), &written(&other));
    output.print(&difference, || difference.clone().unwrap_or_else(|| "the histories say the same".to_owned()))
}

/// Returns the first lines that differ, with those before them. Moments and turns are not compared.
fn difference(one: &str, other: &str) -> Option<String> {
    let lines =
        |text: &str| -> Vec<String> { text.lines().filter(|line| line.starts_with(' ')).map(str::to_owned).collect() };
    let (one, other) = (lines(one), lines(other));
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    if same == one.len() && same == other.len() {
        return None;
    }
    let before = one[same.saturating_sub(3)..same].iter().map(|line| format!("  {line}\n"));
    let missing = "  (nothing more)".to_owned();
    let differ = [("-", one.get(same)), ("+", other.get(same))];
    let differ = differ.map(|(mark, line)| format!("{mark} {}\n", line.unwrap_or(&missing)));
    Some(before.chain(differ).collect())
}

pub(super) async fn stack(client: &dyn Client, run: &Run, output: Output) -> Result<()> {
    let inspection = client.inspect(run_of(run)).await?;
    output.print(&inspection, || match inspection.units.is_empty() {
        true => "the run waits for nothing: it is closed, or has not begun".to_owned(),
        false => inspection.to_string(),
    })
}

pub(super) async fn stuck(client: &dyn Client, output: Output) -> Result<()> {
    let groups = client.stuck_runs().await?;
    output.print(&groups, || match groups.is_empty() {
        true => "no run is stuck".to_owned(),
        false => groups.iter().map(|group| group_text(group, output)).collect::<Vec<_>>().join("\n"),
    })
}

fn group_text(group: &StuckRuns, output: Output) -> String {
    let Some(stuck) = &group.example.stuck else { return String::new() };
    let runs = if group.runs == 1 { "run".to_owned() } else { "runs".to_owned() };
    let subject = if stuck.subject.is_empty() { String::new() } else { format!(": {}", stuck.subject) };
    let title = format!("{} {runs}, {}{subject}", group.runs, stuck.cause);
    let has_turn = group.runs > 1 && stuck.reason.contains("`reset(");
    let of_example = if has_turn {
        "  (The turn to reset to is that of the example: `dacapo show` names it for each of the others.)\n"
    } else {
        ""
    };
    format!(
        "{}\n  such as {} of {}, since {}\n{}{of_example}\n",
        output.coloured(Colour::Red, &title),
        group.example.workflow_id,
        group.example.workflow,
        moment(stuck.since),
        stuck.reason.lines().map(|line| format!("  {line}\n")).collect::<String>()
    )
}

pub(super) async fn nodes(client: &dyn Client, output: Output) -> Result<()> {
    let nodes = client.nodes().await?;
    output.print(&nodes, || {
        let mut text = output
            .coloured(Colour::Dim, &columns(&[("NODE", 24), ("SHARDS", 6), ("LEASE", 6), ("BUILD", 24)], "QUEUES"))
            + "\n";
        for node in &nodes {
            let shards = node.shards.map_or_else(|| "all".to_owned(), |shards| shards.to_string());
            let lease = node.lease.map(duration).unwrap_or_default();
            let queues: Vec<&str> = node.queues.iter().map(|queue| &**queue).collect();
            let row = [(&*short(&node.name, 24), 24), (&shards, 6), (&lease, 6), (&short(&node.build, 24), 24)];
            text += &(columns(&row, &queues.join(", ")) + "\n");
        }
        text
    })
}

pub(super) async fn query(client: &dyn Client, message: Message, output: Output) -> Result<()> {
    let Message { run, name, input } = message;
    let input: Vec<Payload> = input.iter().map(|text| payload(text)).collect();
    let answer = client.query(run_of(&run), QueryRun { name: name.into(), input, ..QueryRun::default() }).await?;
    output.print(&answer, || answer.to_string())
}

pub(super) async fn result(client: &dyn Client, run: &Run, output: Output) -> Result<()> {
    let ended = client.result(run_of(run)).await?;
    output.print(&ended, || match &ended.result {
        Ok(result) => result.to_string(),
        Err(_) => String::new(),
    })?;
    match ended.result {
        Ok(_) => Ok(()),
        Err(failure) => Err(Failure::Other(format!("the run is {}: {failure}", ended.status))),
    }
}
