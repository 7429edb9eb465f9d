//! Why a test fails, in a few lines: what a run waits for, where, since when, and what to do.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use dacapo_core::{DurationText, Inspection, Name, Timestamp, Wait};
use dacapo_engine::{ActivityState, RunDescription, RunId};
use dacapo_store::{Filter, Status, StuckCause};
use dacapo_sync::allow_blocking;
use dacapo_worker::QueueValues;

use crate::render::render_turns;
use crate::simulation::Simulation;

/// The most waits, or runs, that a message shows.
const MOST_SHOWN: usize = 3;

/// The line that says where to find the rest.
const MORE: &str = "Print `kit.report()` for everything that is known.";

/// Says why a run is stuck. `queues` are those that the kit serves.
pub(super) fn stuck(run: &RunDescription, queues: &BTreeMap<Name, QueueValues>) -> String {
    let is_unserved = |queue: &&Name| !queues.contains_key(queue.as_str());
    let of_activities = run.pending.iter().map(|activity| (&activity.queue, Some(&activity.activity)));
    let unserved = std::iter::once((&run.queue, None)).chain(of_activities).find(|(queue, _)| is_unserved(queue));
    let who = name(run);
    match (unserved, &run.stuck) {
        (Some((queue, activity)), _) => {
            let waits = match activity {
                Some(activity) => format!("its activity {activity:?} waits in"),
                None => "it waits in".to_owned(),
            };
            let served: Vec<&str> = queues.keys().map(Name::as_str).collect();
            format!(
                "{who} cannot go on: {waits} task queue {queue:?}, which this kit does not serve. It serves: {}.\n\
                 Write `kit.queue({queue:?})` before the first run.",
                served.join(", ")
            )
        }
        (None, Some(stuck)) if stuck.cause == StuckCause::UnservedActivity => {
            let unserved = run.pending.iter().find(|activity| activity.state == ActivityState::Unserved);
            let name = unserved.map_or("…", |activity| activity.activity.as_str());
            format!(
                "{who} is stuck: this kit neither fakes nor serves its activity {name:?}.\n\
                 Write `kit.fake({name}, …)` or `kit.serve({name})` before the first run."
            )
        }
        (None, Some(stuck)) => format!("{who} is stuck: {}", stuck.reason),
        (None, None) => format!("{who} is stuck"),
    }
}

/// Says why a run does not end.
pub(super) fn not_ended(sim: &Simulation, run: &RunId) -> String {
    let described = match allow_blocking(|| sim.engine().describe(run)) {
        Ok(described) => described,
        Err(error) => return error.to_string(),
    };
    let after = span(sim.now().since(described.started));
    let why = match sim.next_wake() {
        None => "no work and no timer is left",
        Some(_) => "it was woken thousands of times, and still waits for the next time",
    };
    let mut text = format!("{} does not end: {why}, {after} after its start.\n", name(&described));
    for line in waits(sim, &described) {
        text += &format!("  {line}\n");
    }
    text + MORE
}

/// Says that a request is not answered, and what the open runs wait for.
pub(super) fn no_answer(sim: &Simulation) -> String {
    let mut text = "no work is left that could answer this request, and no time passes while it waits: \
                    let time pass with `kit.advance` or `kit.result` first.\n"
        .to_owned();
    let open = Filter { status: Some(Status::Open), ..Filter::default() };
    let runs = allow_blocking(|| sim.engine().reader().list(&open, None, MOST_SHOWN)).unwrap_or_default();
    for run in &runs {
        let first = waits(sim, run).into_iter().next().unwrap_or_else(|| "it waits for nothing".to_owned());
        let _ = writeln!(text, "  {}: {first}", name(run));
    }
    text + MORE
}

/// Describes a run in full: its description, what each unit waits for, and its turns.
pub(super) fn everything(sim: &Simulation, run: &RunId) -> String {
    let described = allow_blocking(|| sim.engine().describe(run));
    let history = allow_blocking(|| sim.engine().reader().history(run));
    let inspected = sim.try_wait(sim.engine().inspect(run));
    let mut text = match &described {
        Ok(described) => format!("{}\n{described:#?}\n", name(described)),
        Err(error) => format!("{error}\n"),
    };
    if let Some(Ok(inspected)) = inspected {
        text += &inspected.to_string();
    }
    match history {
        Ok(history) => text + &render_turns(&history),
        Err(error) => text + &format!("{error}\n"),
    }
}

fn name(run: &RunDescription) -> String {
    format!("run {:?} of workflow {:?}", run.workflow_id.as_str(), run.workflow.as_str())
}

/// Returns a line for each thing that the run waits for, the first few of them.
fn waits(sim: &Simulation, run: &RunDescription) -> Vec<String> {
    let id = RunId { workflow_id: run.workflow_id.clone(), run_id: Some(run.run_id.clone()) };
    let inspected = match sim.try_wait(sim.engine().inspect(&id)) {
        Some(Ok(inspected)) => inspected,
        Some(Err(error)) => return vec![error.to_string()],
        None => return vec!["what it waits for is not known".to_owned()],
    };
    let history = allow_blocking(|| sim.engine().reader().history(&id));
    let turns: Vec<Timestamp> =
        history.map_or_else(|_| Vec::new(), |it| it.turns.iter().map(|turn| turn.now).collect());
    let since = |turn: u64| {
        let began = usize::try_from(turn).ok().and_then(|turn| turns.get(turn));
        began.map_or_else(|| format!("since turn {turn}"), |at| format!("since {}", ago(at.since(run.started))))
    };
    let mut lines = lines(&inspected, run, since);
    if lines.len() > MOST_SHOWN {
        let rest = lines.split_off(MOST_SHOWN).len();
        lines.push(format!("and {rest} more"));
    }
    lines
}

fn lines(inspected: &Inspection, run: &RunDescription, since: impl Fn(u64) -> String) -> Vec<String> {
    let line = |unit: &dacapo_core::UnitId, wait: &Wait| {
        let state = attempt(wait, run).unwrap_or_default();
        format!("{} waits for {} {}, at {}{state}", unit.named(), wait.what, since(wait.since), wait.site)
    };
    let idle = |unit: &dacapo_core::UnitId| {
        format!("{} waits for a channel, a lock or another future that is not of this run", unit.named())
    };
    // A unit that waits for other units goes on when those do, so it comes last.
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for unit in &inspected.units {
        if unit.waits.is_empty() {
            first.push(idle(&unit.id));
        }
        for wait in &unit.waits {
            let to = if wait.what == "other units" { &mut last } else { &mut first };
            to.push(line(&unit.id, wait));
        }
    }
    first.append(&mut last);
    first
}

/// Describes the attempt that a wait for an activity depends on.
fn attempt(wait: &Wait, run: &RunDescription) -> Option<String> {
    let is_it = |activity: &&dacapo_client::PendingActivity| {
        wait.what.ends_with(&format!("{} {}", activity.activity, activity.seq))
    };
    let activity = run.pending.iter().find(is_it)?;
    let most = if activity.attempts == 0 { String::new() } else { format!(" of {}", activity.attempts) };
    let mut text =
        format!(": attempt {}{most} in queue {:?}, {}", activity.attempt, activity.queue.as_str(), activity.state);
    if let Some(failure) = &activity.last_failure {
        let _ = write!(text, "; last failure: {failure}");
    }
    Some(text)
}

fn ago(since: Duration) -> String {
    if since.is_zero() { "the start".to_owned() } else { format!("{} after the start", span(since)) }
}

/// Writes a span of time, in whole milliseconds.
fn span(time: Duration) -> DurationText {
    DurationText(Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}
