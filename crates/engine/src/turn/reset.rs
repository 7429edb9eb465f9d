//! Reset: a run begins again from an earlier turn, as a new run that keeps the turns before it. The thread that plays the run
//! plans and writes the reset, so that no turn is played meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Command, CommandKind, Failure, FailureKind, Job, Name, Seq, Timestamp, from_stored};
use dacapo_store::{
    NewMessage, NewTask, Refused, ResetWrite, RunNo, RunRow, StoreError, TimerKind, TimerRow, Write, Written,
};

use crate::activity::adopt::{Origins, adopt};
use crate::activity::cancel::give_up_ended_tasks;
use crate::activity::dispatch::dispatch;
use crate::encode::encode;
use crate::host::WorkKind;
use crate::lifecycle::halt::halt;
use crate::read::records::each_record;
use crate::run::cached_run::CachedRun;
use crate::run::deliver::poke;
use crate::run::info::RunInfo;
use crate::run::message::ResetRequest;
use crate::run::new_run::{new_run, run_timers, seed_of};
use crate::run::open_operations::{Open, OpenOperations};
use crate::run::started::StartedAs;
use crate::shared::Shared;
use crate::timer::set_timers;
use crate::turn::effects::apply_in_other_runs;
use crate::turn::plan::{activity_timers, task_priority};
use crate::turn::rest::rest;
use crate::turn::update_outcome::update_key;
use crate::writes::submit;

/// Carries out a reset.
pub(crate) fn reset(shared: &Arc<Shared>, cached: Arc<CachedRun>, request: ResetRequest) {
    let ResetRequest { turn, reason, answer } = request;
    let planned = shared.store().run(cached.no).map_err(Error::from).and_then(|row| match row {
        Some(row) => plan_reset(shared, &row, turn, &reason).map(|(write, dropped)| (write, dropped, row)),
        None => Err(Refused::NoSuchRun.into()),
    });
    let (write, dropped, row) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            let _ = answer.send(Err(error));
            return go_on(shared, &cached);
        }
    };
    let (run_id, timers) = (write.new.run_id.clone(), write.new.timers.clone());
    let RunRow { workflow_id, first_run_id: chain, .. } = row;
    submit(shared, Write::Reset(Box::new(write)), move |shared, result| match result {
        Ok(Written::Turn(written)) => shared.later(WorkKind::Read, Some(cached.no), move |shared| {
            let run = written.run;
            // The tasks and timers of the new run come first: its messages may wake it at once.
            adopt_run(shared, run, &timers);
            shared.waiters.run_reset(cached.no, run, &chain, &dropped);
            apply_in_other_runs(shared, *written);
            // Messages that came for the old run meanwhile were given to the new one.
            poke(shared, run);
            dispatch(shared);
            if shared.runs.get(cached.no).is_some() {
                go_on(shared, &cached);
            }
            let _ = answer.send(Ok(StartedAs { workflow_id, run_id, run, fresh: true }));
        }),
        Ok(other) => unreachable!("a reset was answered with {other:?}"),
        Err(error) => {
            if shared.runs.get(cached.no).is_some() {
                go_on(shared, &cached);
            }
            let _ = answer.send(Err(error.into()));
        }
    });
}

/// Lets the run go on as it was, stuck if it was stuck.
fn go_on(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    rest(shared, cached, None);
    poke(shared, cached.no);
}

/// Takes over the tasks and timers that a new run has from the beginning.
fn adopt_run(shared: &Arc<Shared>, run: RunNo, timers: &[(Timestamp, TimerKind)]) {
    // A run that begins in a queue which another node serves is that node's, with its timers.
    if shared.owns(run) {
        let rows: Vec<_> = timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
        set_timers(shared, &rows, &[]);
    }
    let adopted = shared.store().tasks_of(run).and_then(|tasks| {
        let mut origins = Origins::default();
        let served = tasks.iter().filter(|task| shared.workers.serve(&task.queue));
        served.into_iter().try_for_each(|task| adopt(shared, task, &mut origins))?;
        // Another thread may have found the new run in the store, and have ended some of its tasks.
        give_up_ended_tasks(shared, run, &tasks.iter().map(|task| task.no).collect::<Vec<_>>())
    });
    if let Err(error) = adopted {
        halt(shared, error.into());
    }
}

/// The words for a reset that would keep the turn which closed the run.
fn the_end_is_kept(keep: u64) -> String {
    let last = keep - 1;
    let advice = match last {
        0 => "it has no turn before that one, so start it again".to_owned(),
        last => format!("choose 1 to {last}"),
    };
    format!("the run cannot be reset to turn {keep}: turn {last} closed it and would be kept; {advice}")
}

/// Plans a reset. Returns its write, and the updates that came in the turns that are not kept: they end with the old
/// run.
fn plan_reset(shared: &Shared, row: &RunRow, keep: u64, reason: &str) -> Result<(ResetWrite, BTreeSet<Name>), Error> {
    let now = shared.now();
    let mut open = OpenOperations::default();
    let mut later = Vec::new();
    let mut dropped = BTreeSet::new();
    let mut turns = 0;
    let mut keeps_the_end = false;
    let mut accepted = BTreeMap::new();
    let read = each_record(shared.store(), row.no, |record, bytes| {
        turns = record.number + 1;
        let is_end = |command: &Command| command.kind.is_terminal();
        keeps_the_end |= record.number < keep && record.commands.last().is_some_and(is_end);
        match record.number < keep {
            true => {
                let updates = record.jobs.iter().filter_map(|job| Some((update_of(job)?.clone(), job.clone())));
                accepted.extend(updates.map(|(id, job)| (id, (record.number, job))));
                for id in record.commands.iter().filter_map(answers) {
                    accepted.remove(id);
                }
                open.enter(&record, bytes);
            }
            false => {
                dropped.extend(record.jobs.iter().filter_map(update_of).cloned());
                later.extend(record.jobs.into_iter().filter(|job| comes_again(&open, job)));
            }
        }
        ControlFlow::<()>::Continue(())
    });
    read.map_err(|unreadable| unreadable.of(&row.run_id))?;
    if keeps_the_end {
        return Err(Error::InvalidArgument(the_end_is_kept(keep)));
    }
    // Messages that wait go over to the new run with the write; a result among them is known as well.
    let waiting = shared.store().unseen(row.no)?.into_iter().filter_map(|message| from_stored(&message.job).ok());
    let waiting: Vec<Job> = waiting.filter(|job| comes_again(&open, job)).collect();
    let resolved: BTreeSet<Seq> = later.iter().chain(&waiting).filter_map(resolves).collect();
    let run_id = shared.host.run_id();
    let seed = Job::Seed { seed: seed_of(&run_id) };
    let jobs = std::iter::once(("seed".to_owned(), seed))
        .chain(later.into_iter().enumerate().map(|(number, job)| (format!("again:{number}"), job)));
    let messages = jobs.map(|(key, job)| NewMessage { key: key.into(), sent: now, job: encode(job) }).collect();
    let info = RunInfo::of(row).map_err(StoreError::Corrupt)?;
    let mut new = new_run((*open.start).clone(), &info.pins, now);
    new.run_id = run_id.clone();
    new.started = now;
    new.first_run_id = row.first_run_id.clone();
    new.memo = encode(&open.memo);
    new.attributes = open.attributes.clone().into_iter().collect();
    new.timers = run_timers(&open.start).filter(|(due, _)| *due > now).collect();
    new.timers.extend(open.without_row_since.map(|due| (due, TimerKind::Retry)));
    let (mut tasks, mut children) = (Vec::new(), Vec::new());
    for (seq, operation) in &open.operations {
        match operation {
            // Its result is known, and is delivered again.
            Open::Timer { .. } | Open::Activity { .. } if resolved.contains(seq) => {}
            Open::Timer { due } => new.timers.push((*due, TimerKind::Sleep(*seq))),
            Open::Activity { command, turn, position, scheduled } => {
                let queue = command.queue.clone().unwrap_or_else(|| row.queue.clone());
                let (priority, position) = (task_priority(command, &open.start), *position);
                tasks.push((*turn, NewTask { seq: *seq, queue, ready: now, priority, position, offered: false }));
                new.timers.extend(activity_timers(command, *scheduled));
            }
            Open::Child { .. } => children.push(*seq),
            _ => {}
        }
    }
    let words = format!("reset to turn {keep} as run {run_id}: {reason}");
    let failure = Box::new(Failure::new(FailureKind::Reset, words));
    let message = |id, job| NewMessage { key: update_key(&id), sent: now, job: encode(job) };
    let taken = accepted.into_iter().map(|(id, (turn, job))| (turn, message(id, job))).collect();
    Ok((ResetWrite { from: row.no, turns, keep, new, at: now, tasks, messages, taken, children, failure }, dropped))
}

/// Whether a job after the point of reset is delivered again: a signal, or a result that its sender does not send twice.
fn comes_again(open: &OpenOperations, job: &Job) -> bool {
    match job {
        Job::Signal(_) => true,
        Job::Resolve { seq, resolution, .. } => open.expects(*seq, resolution),
        _ => false,
    }
}

/// The update that a command answers.
fn answers(command: &Command) -> Option<&Name> {
    match &command.kind {
        CommandKind::CompleteUpdate(answer) => Some(&answer.update),
        _ => None,
    }
}

fn update_of(job: &Job) -> Option<&Name> {
    match job {
        Job::Update(update) => Some(&update.id),
        _ => None,
    }
}

fn resolves(job: &Job) -> Option<Seq> {
    match job {
        Job::Resolve { seq, .. } => Some(*seq),
        _ => None,
    }
}
