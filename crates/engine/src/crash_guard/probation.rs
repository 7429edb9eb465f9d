//! Trials: of all runs whose process died while their code was played, one is played at a time, those that are least suspect
//! first. Those that merely ran beside the one that killed it clear themselves.
//!
//! ```text
//!            it is loaded                 nothing is held against it: a turn is committed
//!   Waits ──────────────────▶ Tried ──┬─────────────────────────────────────────────────▶ free
//!     ▲                               │
//!     └───────────────────────────────┘ it rests, is parked or gone: the next one is tried
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Seq, Timestamp};
use dacapo_store::{RunNo, Strikes, Write};

use crate::crash_guard::quarantine::is_quarantined;
use crate::inner::Inner;
use crate::run::cached_run::{Live, Stage};
use crate::timer::wheel::{AlarmNo, Due};

/// What has run for so long did not kill the process, and need not keep others waiting. The note of what is under way goes by
/// the same time.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Trials {
    /// Those that wait, with what is held against them.
    waiting: BTreeSet<(u32, RunNo)>,
    /// The one that is played now, or next.
    tried: Option<RunNo>,
    /// When its trial ends at the latest.
    alarm: Option<AlarmNo>,
    /// Starts whose first turn may kill the process: it was under way when the last one died and no store knows of the run,
    /// or something is held against the run that has the id.
    starts: BTreeSet<u64>,
    /// Runs that were giving an answer when the process died, and whether they have given one, or gone on, since: they are
    /// innocent a while after that. Their turns alone say nothing of it.
    answering: BTreeMap<RunNo, bool>,
}

enum Admitted {
    /// Nothing is held against it.
    Free,
    Tried,
    Waits,
}

impl Trials {
    /// Runs against which something is held and that can be played, and starts whose first turn may kill the process.
    /// Some of the runs were giving an answer when the process died.
    pub(crate) fn expect(&mut self, runs: BTreeSet<(u32, RunNo)>, starts: BTreeSet<u64>, answering: BTreeSet<RunNo>) {
        (self.waiting, self.starts) = (runs, starts);
        self.answering = answering.into_iter().map(|run| (run, false)).collect();
        self.tried = self.next();
    }

    /// The run that is played now, or next.
    pub(crate) fn tried(&self) -> Option<RunNo> {
        self.tried
    }

    /// Whether the first turn of this start may kill the process.
    pub(crate) fn suspects(&self, start: u64) -> bool {
        self.starts.contains(&start)
    }

    /// Such a start has become a run, and it is the run that is suspect.
    pub(crate) fn has_started(&mut self, start: u64) {
        self.starts.remove(&start);
    }

    fn next(&mut self) -> Option<RunNo> {
        self.waiting.pop_first().map(|(_, run)| run)
    }

    fn admit(&mut self, run: RunNo, strikes: u32) -> Admitted {
        match self.tried {
            Some(tried) if tried == run => Admitted::Tried,
            _ if strikes == 0 => Admitted::Free,
            Some(_) => {
                self.waiting.insert((strikes, run));
                Admitted::Waits
            }
            None => {
                self.tried = Some(run);
                Admitted::Tried
            }
        }
    }

    /// The trial of a run is over. Gives the run whose trial begins, and the alarm that is not needed; none if there was no
    /// trial.
    fn over(&mut self, run: RunNo) -> Option<(Option<RunNo>, Option<AlarmNo>)> {
        self.tried.take_if(|tried| *tried == run)?;
        self.tried = self.next();
        Some((self.tried, self.alarm.take()))
    }
}

impl Inner {
    /// Whether a run against which this much is held can be played now. If not, it is at rest from here on, and is played
    /// when its time has come.
    pub(crate) fn admit(self: &Arc<Self>, live: &Live, strikes: u32) -> bool {
        // Under the lock of the run: whoever calls it finds it at rest.
        let mut state = live.lock();
        let mut trials = self.trials();
        match trials.admit(live.no, strikes) {
            Admitted::Free => true,
            Admitted::Tried => {
                state.on_trial = Some(strikes);
                if trials.alarm.is_none() {
                    trials.alarm = Some(self.own_timer(self.host.now().after(LONGEST), Due::Acquit(live.no)));
                }
                true
            }
            Admitted::Waits => {
                state.stage = Stage::Parked;
                false
            }
        }
    }

    /// An attempt against whose task something is held began then: it keeps others waiting only for so long.
    pub(crate) fn limit_trial(&self, run: RunNo, seq: Seq, attempt: u32, began: Timestamp) {
        let mut desk = self.desk();
        if let Some((task, mut attempting)) = desk.attempting(run, seq, attempt) {
            attempting.alarms.push(self.own_timer(began.after(LONGEST), Due::EndTrial { run, seq, attempt }));
            task.set_attempting(attempting);
        }
    }

    /// A run is not played any more, or nothing is held against it: the next one is tried.
    pub(crate) fn end_trial(self: &Arc<Self>, live: &Live) {
        let over = self.trials().over(live.no);
        let Some((next, alarm)) = over else { return };
        live.lock().on_trial = None;
        self.cancel_alarms(alarm.as_slice());
        if let Some(next) = next {
            self.poke(next);
        }
    }

    /// What a turn of this run leaves held against it: local work that is under way, or the next answer, may still kill the
    /// process.
    pub(crate) fn held_against(&self, live: &Live) -> u32 {
        let strikes = live.lock().on_trial.unwrap_or(0);
        let may_kill = || self.locals().is_at_work(live.no) || self.trials().answering.contains_key(&live.no);
        if strikes > 0 && may_kill() { strikes } else { 0 }
    }

    /// A run has given an answer. It may have others to give, of which one killed the process: it is innocent if the process
    /// lives on for a while.
    pub(crate) fn has_answered(&self, run: RunNo) {
        self.acquit_later(run);
    }

    /// A run has committed a turn that leaves something held against it. If that is for an answer, nobody may ever ask for
    /// one again, and it must not be played from the beginning for every turn until then.
    pub(crate) fn has_gone_on(&self, run: RunNo) {
        self.acquit_later(run);
    }

    fn acquit_later(&self, run: RunNo) {
        let is_first = self.trials().answering.get_mut(&run).is_some_and(|seen| !std::mem::replace(seen, true));
        if is_first {
            self.own_timer(self.host.now().after(LONGEST), Due::Acquit(run));
        }
    }

    /// An attempt of local work has failed and is made again later: it has not killed the process.
    pub(crate) fn local_ended(self: &Arc<Self>, run: RunNo) {
        let Some(live) = self.runs().get(run) else { return };
        let state = live.lock();
        // Whoever plays it now sees to it.
        let at_rest = state.on_trial.is_some() && state.stage == Stage::Idle;
        drop(state);
        if at_rest && !self.locals().is_at_work(run) {
            self.acquit(run);
        }
    }

    /// Nothing is held against a run that is on trial any more, though no turn of it says so.
    pub(crate) fn acquit(self: &Arc<Self>, run: RunNo) {
        let was_answering = self.trials().answering.remove(&run).is_some();
        let live = self.runs().get(run).filter(|live| live.lock().on_trial.is_some());
        if !was_answering && live.is_none() {
            return;
        }
        if let Some(live) = live {
            self.end_trial(&live);
        }
        let write = move |this: &Arc<Self>| {
            this.store.run(run).ok().flatten().filter(|row| !is_quarantined(row))?;
            Some(Write::Strike(vec![Strikes::Cleared(run)]))
        };
        self.write_later(write, |_, _| {});
    }
}
