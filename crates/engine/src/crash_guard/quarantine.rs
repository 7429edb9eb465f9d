//! Quarantine: code that kills its process (an abort, a stack overflow, no memory left) must not do so for ever.
//!
//! What is under way is noted beside the store, without a commit ([`dacapo_store::Running`]): attempts of activities, and code
//! of runs, which is turns, answers and local work. The next process finds what its predecessor was doing when it died, and
//! gives each of those tasks and runs a strike, before it does anything else. Most of them merely ran beside the one that did
//! it: of all tasks that have strikes one is tried at a time (`Desk`), of all runs one is played at a time (`Trials`); an
//! attempt that ends in any way clears its task, and a committed turn its run. What has [`MOST_STRIKES`] is not tried or
//! played any more, and says so, until somebody releases it.

use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};

use dacapo_store::{Doing, RunNo, RunRow, Slot, Store, StoreError, Strikes, Stuck, Write};
use dacapo_worker::Grip;

use crate::activity::task_queue::Task;
use crate::api::start::start_no;
use crate::inner::Inner;
use crate::report::log as loud;
use crate::{Engine, EngineError, RunId};

/// What was under way at so many deaths of its process is tried or played no more.
pub(crate) const MOST_STRIKES: u32 = 3;

pub(crate) fn words_on_quarantine(task: &Task) -> String {
    format!(
        "activity {:?} ({}) is quarantined: the process died {} times while it was tried, so it is not tried any more. See how \
         the process died, mend the activity, and release the run (`Handle::release`); or complete the activity from outside, \
         or terminate the run",
        task.command.activity, task.command.id, task.strikes
    )
}

/// Whether a run is not played any more.
pub(crate) const fn is_quarantined(row: &RunRow) -> bool {
    row.strikes >= MOST_STRIKES
}

pub(crate) fn words_on_run(row: &RunRow) -> String {
    let or_else = if row.status.is_open() { "; or reset it, or terminate it" } else { "" };
    format!(
        "the run of workflow {:?} is quarantined: the process died {} times while its code was played (a turn, an answer or \
         local work), so it is not played any more. See how the process died, mend the workflow, and release the run \
         (`Handle::release`){or_else}",
        row.workflow, row.strikes
    )
}

impl Engine {
    /// Has a quarantined run played again, and its quarantined activities tried again, as if they had never killed a process.
    /// It is durable when this answers.
    pub async fn release(&self, of: &RunId) -> Result<(), EngineError> {
        let row = self.row(of)?;
        let was_held = is_quarantined(&row);
        if !was_held {
            self.open_row(of)?;
        }
        let tasks = self.inner.desk().quarantined_of(row.no);
        if !was_held && tasks.is_empty() {
            let words = format!("nothing of the run of workflow id {:?} is quarantined", row.workflow_id);
            return Err(EngineError::BadInput(words));
        }
        // All of it is durable before any of it begins.
        let strikes = if was_held { 0 } else { row.strikes };
        let mut released: Vec<_> = tasks.into_iter().map(|task| Strikes::Task { task, strikes: 0 }).collect();
        released.push(Strikes::Run { run: row.no, strikes, stuck: None });
        self.inner.write(Write::Strike(released)).await?;
        self.inner.desk().release(row.no);
        if was_held && row.status.is_open() {
            self.inner.let_go(row.no);
        }
        self.inner.mark_held(row.no);
        self.inner.dispatch();
        Ok(())
    }
}

/// Something that is noted as under way, until this is dropped.
pub(crate) struct Noted {
    store: Arc<dyn Store>,
    slot: Slot,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.store.ended(self.slot);
    }
}

impl Inner {
    /// Notes that this is under way.
    pub(crate) fn note(&self, doing: Doing) -> Option<Noted> {
        let slot = self.store.began(doing)?;
        Some(Noted { store: self.store.clone(), slot })
    }

    /// Notes that an attempt is under way, until nothing of its code runs.
    pub(crate) fn note_running(&self, doing: Doing, grip: &Grip) {
        if let Some(noted) = self.note(doing) {
            grip.on_end(move || drop(noted));
        }
    }

    /// Holds it against whatever was under way when the process before this one died. That is durable when this returns, and
    /// nothing was tried or played yet; only then is the note forgotten, so that a process which dies meanwhile leaves it to
    /// the next. False if the store does not answer any more.
    pub(crate) fn strike(self: &Arc<Self>) -> Result<bool, StoreError> {
        let left: BTreeSet<Doing> = self.store.left().into_iter().collect();
        let (mut strikes, mut quarantined, mut starts) = (Vec::new(), Vec::new(), BTreeSet::new());
        let (mut runs, mut answering) = (BTreeSet::new(), BTreeSet::new());
        for doing in left {
            match doing {
                Doing::Attempt(task) => {
                    let row = self.store.task(task)?;
                    strikes.extend(row.map(|row| Strikes::Task { task, strikes: row.strikes + 1 }));
                }
                Doing::Run(run) => _ = runs.insert(run),
                Doing::Answer(run) => _ = (runs.insert(run), answering.insert(run)),
                Doing::Start(start) => _ = starts.insert(start),
                _ => {}
            }
        }
        for run in runs {
            let Some(mut row) = self.store.run(run)? else { continue };
            row.strikes += 1;
            strikes.push(self.strike_run(&row));
            quarantined.extend(Some(row).filter(is_quarantined));
        }
        if !strikes.is_empty() && !self.write_now(Write::Strike(strikes))? {
            return Ok(false);
        }
        self.store.forget_left();
        for row in quarantined.iter().filter(|row| row.status.is_open()) {
            loud::about_run(&row.workflow_id, &row.run_id, &words_on_run(row));
        }
        let mut suspects: BTreeSet<_> = self.store.struck()?.into_iter().collect();
        for (_, run) in &suspects {
            // Whoever starts it again, with the same request, must not have its first turn played beside it.
            starts.extend(self.store.run(*run)?.map(|row| start_no(&row.workflow_id)));
        }
        suspects.retain(|(strikes, _)| *strikes < MOST_STRIKES);
        self.trials().expect(suspects, starts, answering);
        Ok(true)
    }

    fn strike_run(&self, row: &RunRow) -> Strikes {
        let now = self.host.now();
        let stuck = match is_quarantined(row) {
            true => Some(Stuck { reason: words_on_run(row), since: now, attempts: 1, retry: now }),
            false => row.stuck.clone(),
        };
        Strikes::Run { run: row.no, strikes: row.strikes, stuck }
    }

    /// Writes this, and waits for it. False if the store does not answer.
    fn write_now(self: &Arc<Self>, write: Write) -> Result<bool, StoreError> {
        let (tell, told) = mpsc::channel();
        self.submit(write, move |_, result| drop(tell.send(result)));
        told.recv().map_or(Ok(false), |answer| answer.map(|_| true))
    }

    /// An activity is not tried any more. The run says so; it is said loud once.
    pub(crate) fn say_quarantined(self: &Arc<Self>, run: RunNo, task: &Task) -> Result<(), StoreError> {
        if self.store.run(run)?.is_some_and(|row| row.stuck.is_none()) {
            let reason = words_on_quarantine(task);
            loud::about_run(&task.about.workflow_id, &task.about.run_id, &reason);
            self.mark_waiting(run, task, reason);
        }
        Ok(())
    }
}
