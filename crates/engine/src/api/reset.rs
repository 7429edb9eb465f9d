//! Reset: a run begins again from an earlier turn, as a new run that keeps the turns before it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use dacapo_core::{Failure, FailureKind, Job, Seq, Timestamp};
use dacapo_store::{
    NewMail, NewTask, Refused, ResetWrite, RunNo, RunRow, StoreError, TimerKind, TimerRow, Write, Written,
};
use tokio::sync::oneshot;

use crate::activity::attempt::Origins;
use crate::inner::Inner;
use crate::read::records::each_record;
use crate::run::cached_run::{About, Live};
use crate::run::new_run::{new_run, run_timers, seed_of};
use crate::run::open_operations::{Book, Open};
use crate::turn::plan::{activity_timers, encode};
use crate::{Engine, EngineError, RunId, StartedAs};

impl Engine {
    /// Begins a run again from an earlier turn: turns before it are kept, what came later is played anew. An open run is
    /// terminated. Signals it was sent since, and results of what the kept turns began, come to the new run again, so that
    /// nothing is done twice; activities that the kept turns began and that have no result are tried again.
    pub async fn reset(&self, of: &RunId, turn: u64, reason: &str) -> Result<StartedAs, EngineError> {
        let row = self.row(of)?;
        if turn == 0 || turn > row.turns {
            return Err(EngineError::BadInput(format!(
                "the run has turns 0 to {}: it can be reset to turn 1 up to {}, which keeps the turns before it",
                row.turns.saturating_sub(1),
                row.turns
            )));
        }
        let (answer, answered) = oneshot::channel();
        let reset = Reset { turn, reason: reason.to_owned(), answer };
        self.inner.with_live(row.no, |state| state.resets.push_back(reset));
        answered.await.unwrap_or(Err(EngineError::ShutDown))
    }
}

/// A reset that somebody asked for. The run's player carries it out, so that no turn is played meanwhile.
pub(crate) struct Reset {
    turn: u64,
    reason: String,
    answer: oneshot::Sender<Result<StartedAs, EngineError>>,
}

impl Inner {
    pub(crate) fn reset(self: &Arc<Self>, live: Arc<Live>, reset: Reset) {
        let Reset { turn, reason, answer } = reset;
        let planned = self.store.run(live.no).map_err(EngineError::from).and_then(|row| match row {
            Some(row) => Ok((self.plan_reset(&row, turn, &reason)?, row.workflow_id)),
            None => Err(Refused::NoSuchRun.into()),
        });
        let (write, workflow_id) = match planned {
            Ok(planned) => planned,
            Err(error) => {
                let _ = answer.send(Err(error));
                return self.not_reset(&live);
            }
        };
        let (run_id, timers) = (write.new.run_id.clone(), write.new.timers.clone());
        self.submit(Write::Reset(Box::new(write)), move |this, result| {
            let result = match result {
                Ok(Written::Turn(written)) => {
                    let run = written.run;
                    // What the new run has pending comes first: its mail may wake it at once.
                    this.adopt_run(run, &timers);
                    this.effects(&written);
                    // Mail that came for the old run meanwhile was given to the new one, without a word.
                    this.poke(run);
                    this.dispatch();
                    Ok(StartedAs { workflow_id, run_id, run, fresh: true })
                }
                Ok(other) => unreachable!("a reset was answered with {other:?}"),
                Err(error) => Err(error.into()),
            };
            let is_open = this.runs().get(live.no).is_some();
            if is_open {
                this.not_reset(&live);
            }
            let _ = answer.send(result);
        });
    }

    /// The run goes on as it was, parked if it was parked.
    fn not_reset(self: &Arc<Self>, live: &Arc<Live>) {
        self.rest(live, None);
        self.poke(live.no);
    }

    /// Takes over what a new run has pending from the beginning.
    fn adopt_run(self: &Arc<Self>, run: RunNo, timers: &[(Timestamp, TimerKind)]) {
        let rows: Vec<_> = timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
        self.set_timers(&rows, &[]);
        let adopted = self.store.tasks_of(run).and_then(|tasks| {
            let mut origins = Origins::default();
            tasks.iter().filter(|task| self.serves(&task.queue)).try_for_each(|task| self.adopt(task, &mut origins))
        });
        if let Err(error) = adopted {
            self.halt(error.into());
        }
    }

    fn plan_reset(&self, row: &RunRow, keep: u64, reason: &str) -> Result<ResetWrite, EngineError> {
        let now = self.host.now();
        let mut book = Book::default();
        let mut later = Vec::new();
        let mut turns = 0;
        let read = each_record(&*self.store, row.no, |record, bytes| {
            turns = record.number + 1;
            match record.number < keep {
                true => book.enter(&record, bytes),
                false => later.extend(record.jobs.into_iter().filter(|job| comes_again(&book, job))),
            }
            ControlFlow::<()>::Continue(())
        });
        read.map_err(|unreadable| unreadable.of(&row.run_id))?;
        // Mail that waits goes over with the write; a result among it is known as well.
        let waiting = self.store.unseen(row.no)?.into_iter().filter_map(|mail| minicbor::decode(&mail.job).ok());
        let waiting: Vec<Job> = waiting.filter(|job| comes_again(&book, job)).collect();
        let resolved: BTreeSet<Seq> = later.iter().chain(&waiting).filter_map(resolves).collect();
        let run_id = self.host.run_id();
        let seed = Job::Seed { seed: seed_of(&run_id) };
        let jobs = std::iter::once(("seed".to_owned(), seed))
            .chain(later.into_iter().enumerate().map(|(number, job)| (format!("again:{number}"), job)));
        let mail = jobs.map(|(key, job)| NewMail { key: key.into(), sent: now, job: encode(job) }).collect();
        let about = About::of(row).map_err(StoreError::Corrupt)?;
        let mut new = new_run((*book.start).clone(), &about.pins, now);
        new.run_id = run_id.clone();
        new.started = now;
        new.first_run_id = row.first_run_id.clone();
        new.memo = encode(&book.memo);
        new.attributes = book.attributes.iter().map(|(name, value)| (name.clone(), encode(value))).collect();
        new.timers = run_timers(&book.start).filter(|(due, _)| *due > now).collect();
        new.timers.extend(book.wakeful_since.map(|due| (due, TimerKind::Retry)));
        let (mut tasks, mut children) = (Vec::new(), Vec::new());
        for (seq, open) in &book.open {
            match open {
                // Its result is known, and comes again.
                Open::Timer { .. } | Open::Activity { .. } if resolved.contains(seq) => {}
                Open::Timer { due } => new.timers.push((*due, TimerKind::Sleep(*seq))),
                Open::Activity { command, turn, position, scheduled } => {
                    let queue = command.queue.clone().unwrap_or_else(|| row.queue.clone());
                    let (priority, position) = (command.priority.key, *position);
                    tasks.push((*turn, NewTask { seq: *seq, queue, ready: now, priority, position }));
                    new.timers.extend(activity_timers(command, *scheduled));
                }
                Open::Child { .. } => children.push(*seq),
                _ => {}
            }
        }
        let words = format!("reset to turn {keep} as run {run_id}: {reason}");
        let failure = Box::new(Failure::new(FailureKind::Reset, words));
        Ok(ResetWrite { from: row.no, turns, keep, new, at: now, tasks, mail, children, failure })
    }
}

/// What came after the point of reset, and comes again: signals, and what others told the run that they will not tell it
/// twice.
fn comes_again(book: &Book, job: &Job) -> bool {
    match job {
        Job::Signal(_) => true,
        Job::Resolve { seq, resolution } => book.expects(*seq, resolution),
        _ => false,
    }
}

fn resolves(job: &Job) -> Option<Seq> {
    match job {
        Job::Resolve { seq, .. } => Some(*seq),
        _ => None,
    }
}
