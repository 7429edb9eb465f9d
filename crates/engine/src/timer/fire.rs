//! What happens when its time has come.

use std::sync::Arc;

use dacapo_core::{Failure, FailureKind, TimeoutKind, Timestamp};
use dacapo_store::{RunNo, Status, StoreError, TimerKind, TimerRow, Write, Written};

use crate::inner::Inner;
use crate::run::cached_run::{Arrival, Stage};
use crate::timer::wheel::Due;

/// When something is tried again for which the store had no room.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

impl Inner {
    /// Does all that is due.
    pub(crate) fn tick(self: &Arc<Self>) {
        if self.trouble().is_some() {
            return;
        }
        let now = self.host.now();
        loop {
            if self.timers().is_low(now) {
                self.refill();
            }
            let fired = self.timers().fire(now);
            if fired.stored.is_empty() && fired.own.is_empty() {
                break;
            }
            fired.stored.into_iter().for_each(|row| self.timer_due(row));
            fired.own.into_iter().for_each(|due| self.own_due(due));
        }
        self.dispatch();
        let next = self.timers().next();
        if let Some(next) = next {
            self.host.wake_at(next);
        }
    }

    /// Reads the earliest timers of the store.
    pub(crate) fn refill(self: &Arc<Self>) {
        // Under the lock, so that a timer which is stored meanwhile is either read here or added later.
        let mut timers = self.timers();
        let mut asked = timers.to_read();
        loop {
            match self.store.due(Timestamp(u64::MAX), asked) {
                // All of one moment, and there may be more of it: nothing could be said of that moment.
                Ok(rows)
                    if rows.len() >= asked && rows.first().map(|row| row.due) == rows.last().map(|row| row.due) =>
                {
                    asked *= 2;
                }
                Ok(rows) => return timers.fill(rows, asked),
                Err(error) => {
                    drop(timers);
                    return self.halt(error.into());
                }
            }
        }
    }

    fn timer_due(self: &Arc<Self>, row: TimerRow) {
        let run = row.run;
        match row.kind {
            TimerKind::Sleep(seq) => self.deliver(run, Arrival::Timer { seq, due: row.due }),
            TimerKind::Start | TimerKind::Retry => {
                self.end_timer(row);
                self.poke(run);
            }
            TimerKind::RunTimeout => self.time_out(row, "the run took longer than its run timeout"),
            TimerKind::ExecutionTimeout => self.time_out(row, "it took longer than its execution timeout"),
            TimerKind::ScheduleToStart(seq) => self.task_due(row, seq, TimeoutKind::ScheduleToStart),
            TimerKind::ScheduleToClose(seq) => self.task_due(row, seq, TimeoutKind::ScheduleToClose),
            other => tracing::error!(%run, ?other, "a timer of a kind that this engine does not know"),
        }
    }

    fn own_due(self: &Arc<Self>, due: Due) {
        match due {
            Due::Task { run, seq, attempt } => self.desk().make_ready(run, seq, attempt),
            Due::Attempt { run, seq, attempt, kind } => self.attempt_timed_out(run, seq, attempt, kind),
            Due::Again(row) => self.timer_due(row),
            Due::Report { run, seq, attempt } => self.report_due(run, seq, attempt),
            Due::Begin(run) => self.poke(run),
            Due::Retry(run) => self.retry(run),
            Due::Acquit(run) => self.acquit(run),
            Due::EndTrial { run, seq, attempt } => self.desk().end_trial(run, seq, attempt),
            Due::AskToStop(queue) => self.ask_to_stop(&queue),
            Due::CutOff(queue) => self.cut_off(&queue),
            Due::StopWaiting => self.drained(),
            Due::Zombies(queue) => self.look_at_zombies(&queue),
            Due::Expire => self.expire(),
            Due::Sweep => self.sweep(),
            Due::Flush(run) => {
                let held = self.runs().get(run);
                if let Some(live) = held {
                    let mut state = live.lock();
                    state.flush = state.body.as_ref().is_none_or(|body| !body.held.is_empty());
                    self.wake(&live, &mut state);
                }
            }
            Due::Local { run, seq, attempt } => self.local_due(run, seq, attempt),
            Due::LocalTimeout { run, seq, attempt, kind } => self.local_timed_out(run, seq, attempt, kind),
        }
    }

    fn task_due(self: &Arc<Self>, row: TimerRow, seq: dacapo_core::Seq, kind: TimeoutKind) {
        if self.task_timed_out(row.run, seq, kind) {
            return;
        }
        match self.task_elsewhere_timed_out(row.run, seq, kind) {
            Ok(true) => {}
            // Its outcome is on its way to the run, which ends the timer; or the run is closed, and this does.
            Ok(false) => self.end_timer(row),
            Err(error) => self.halt(error.into()),
        }
    }

    fn retry(self: &Arc<Self>, run: RunNo) {
        let parked = self.runs().get(run).is_some_and(|live| live.lock().stage == Stage::Parked);
        if parked {
            self.poke(run);
        }
    }

    /// A run has used up its time.
    fn time_out(self: &Arc<Self>, row: TimerRow, words: &'static str) {
        let kind = FailureKind::Timeout(TimeoutKind::ScheduleToClose);
        let failure = Box::new(Failure::new(kind, words));
        let write = Write::Close { run: row.run, status: Status::TimedOut, at: self.host.now(), failure };
        self.later(move |this| {
            this.submit(write, move |this, result| match result {
                Ok(Written::Turn(written)) => {
                    this.end_timer(row);
                    this.effects(&written);
                }
                Ok(other) => unreachable!("a close was answered with {other:?}"),
                // It ended before.
                Err(StoreError::Refused(_)) => this.end_timer(row),
                Err(error) => {
                    tracing::warn!(run = %row.run, %error, "a run that has used up its time cannot be ended yet");
                    this.own_timer(this.host.now().after(AGAIN), Due::Again(row));
                }
            });
        });
    }

    /// A timer that no turn takes is over.
    pub(crate) fn end_timer(self: &Arc<Self>, row: TimerRow) {
        let write = Write::Forget { run: row.run, tasks: Vec::new(), timers: vec![(row.due, row.kind)] };
        self.later(move |this| {
            this.submit(write, move |this, result| {
                if result.is_ok() {
                    this.timers().remove(&row);
                }
            });
        });
    }
}
