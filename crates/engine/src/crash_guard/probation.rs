//! Probation: of all runs whose process died while their code was played, one is played at a time, those with the lowest
//! crash count first. Those that merely ran beside the one that killed it clear themselves.
//!
//! ```text
//!            it is loaded                    its crash count is reset: a turn is committed
//!   Waits ──────────────────▶ Probation ──┬─────────────────────────────────────────────▶ free
//!     ▲                                   │
//!     └───────────────────────────────────┘ it is idle, stuck or gone: the next one is played
//! ```
//!
//! A run that is delayed takes no part until its delay is over.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_core::Timestamp;
use dacapo_store::RunNo;
use dacapo_sync::{Mutex, ranks};

use crate::timer::wheel::AlarmNo;

/// Runs on probation.
pub(crate) struct Probation(Mutex<State>);

#[derive(Default)]
struct State {
    /// The runs that wait, by their crash counts.
    waiting: BTreeSet<(u32, RunNo)>,
    /// The run that is played now, or next, and its crash count once it is known.
    current: Option<(RunNo, u32)>,
    /// The alarm that ends its probation at the latest.
    alarm: Option<AlarmNo>,
    /// Until when runs are delayed, each with the crash count for which it is.
    delayed: BTreeMap<RunNo, (u32, Timestamp)>,
    /// Starts whose first turn may kill the process: it was played when the last process died and no store knows of the
    /// run, or the run that has the id has a crash count.
    starts: BTreeSet<u64>,
    /// Runs that were giving an answer when the process died, and whether they have given one, or gone on, since. They
    /// are cleared a while after that. A turn alone does not show that the answer is harmless.
    answering: BTreeMap<RunNo, bool>,
}

/// Whether a run may be played now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It has no crash count.
    Free,
    /// It is on probation. `needs_alarm` says whether the alarm that ends it has to be armed.
    Probation { needs_alarm: bool },
    /// It waits: another run is on probation.
    Waits,
    /// It is not played before this time.
    Delayed(Timestamp),
}

impl Probation {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::PROBATION, State::default()))
    }

    /// Sets what the crash guard found when the store was opened.
    pub(crate) fn expect(
        &self,
        runs: BTreeSet<(u32, RunNo)>,
        delayed: BTreeMap<RunNo, (u32, Timestamp)>,
        starts: BTreeSet<u64>,
        answering: BTreeSet<RunNo>,
    ) {
        let mut state = self.0.lock();
        (state.waiting, state.delayed, state.starts) = (runs, delayed, starts);
        state.answering = answering.into_iter().map(|run| (run, false)).collect();
        state.current = state.next();
    }

    /// The run that is played now, or next.
    pub(crate) fn current(&self) -> Option<RunNo> {
        self.0.lock().current.map(|(run, _)| run)
    }

    /// The crash count of this run, if it is on probation now.
    pub(crate) fn count_of(&self, run: RunNo) -> Option<u32> {
        self.0.lock().current.filter(|(current, count)| *current == run && *count > 0).map(|(_, count)| count)
    }

    /// Whether the first turn of this start may kill the process.
    pub(crate) fn start_has_crashed(&self, start: u64) -> bool {
        self.0.lock().starts.contains(&start)
    }

    /// Forgets such a start when it has become a run, which has the crash count from now on.
    pub(crate) fn start_is_stored(&self, start: u64) {
        self.0.lock().starts.remove(&start);
    }

    /// Delays a run because of this crash count until this time, unless it is delayed for that count, or was.
    pub(crate) fn delay(&self, run: RunNo, crash_count: u32, until: Timestamp) {
        let mut state = self.0.lock();
        let delayed = state.delayed.entry(run).or_insert((crash_count, until));
        if delayed.0 != crash_count {
            *delayed = (crash_count, until);
        }
    }

    /// Decides whether a run with this crash count may be played now.
    pub(crate) fn admit(&self, run: RunNo, crash_count: u32, now: Timestamp) -> Admission {
        let mut state = self.0.lock();
        match state.delayed.get(&run) {
            Some((_, until)) if crash_count > 0 && *until > now => return Admission::Delayed(*until),
            Some(_) if crash_count == 0 => drop(state.delayed.remove(&run)),
            _ => {}
        }
        match state.current {
            Some((current, _)) if current == run => {}
            _ if crash_count == 0 => return Admission::Free,
            Some(_) => {
                state.waiting.insert((crash_count, run));
                return Admission::Waits;
            }
            None => {}
        }
        state.current = Some((run, crash_count));
        Admission::Probation { needs_alarm: state.alarm.is_none() }
    }

    /// Sets the alarm that ends the probation of this run.
    pub(crate) fn set_alarm(&self, run: RunNo, alarm: AlarmNo) {
        let mut state = self.0.lock();
        if state.current.is_some_and(|(current, _)| current == run) {
            state.alarm = Some(alarm);
        }
    }

    /// Ends the probation of a run. Returns the run that is next, and the alarm that is not needed; none if the run was
    /// not on probation.
    pub(crate) fn end(&self, run: RunNo) -> Option<(Option<RunNo>, Option<AlarmNo>)> {
        let mut state = self.0.lock();
        state.current.take_if(|(current, _)| *current == run)?;
        state.current = state.next();
        Some((state.current.map(|(run, _)| run), state.alarm.take()))
    }

    /// Forgets runs that another node plays from now on. Returns as [`Probation::end`] does if one of them was on probation.
    pub(crate) fn forget(&self, is_lost: impl Fn(RunNo) -> bool) -> Option<(Option<RunNo>, Option<AlarmNo>)> {
        let mut state = self.0.lock();
        state.waiting.retain(|(_, run)| !is_lost(*run));
        state.delayed.retain(|run, _| !is_lost(*run));
        let lost = state.current.map(|(run, _)| run).filter(|run| is_lost(*run))?;
        drop(state);
        self.end(lost)
    }

    /// Whether a run was giving an answer when the process died, and has not been cleared.
    pub(crate) fn is_answering(&self, run: RunNo) -> bool {
        self.0.lock().answering.contains_key(&run)
    }

    /// Notes that a run has given an answer or gone on. Returns whether it was giving an answer when the process died,
    /// and this is the first since.
    pub(crate) fn has_answered(&self, run: RunNo) -> bool {
        self.0.lock().answering.get_mut(&run).is_some_and(|seen| !std::mem::replace(seen, true))
    }

    /// Clears a run. Returns whether it was giving an answer when the process died.
    pub(crate) fn clear_answering(&self, run: RunNo) -> bool {
        self.0.lock().answering.remove(&run).is_some()
    }

    /// Ends the delay of a run that was released.
    pub(crate) fn release(&self, run: RunNo) {
        self.0.lock().delayed.remove(&run);
    }
}

impl State {
    fn next(&mut self) -> Option<(RunNo, u32)> {
        self.waiting.pop_first().map(|(_, run)| (run, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RunNo = RunNo(1);
    const B: RunNo = RunNo(2);

    #[test]
    fn one_run_is_on_probation_at_a_time_and_the_next_follows_it() {
        let probation = Probation::new();
        let now = Timestamp::default();
        assert_eq!(probation.admit(A, 1, now), Admission::Probation { needs_alarm: true });
        assert_eq!(probation.admit(B, 1, now), Admission::Waits);
        assert_eq!(probation.admit(RunNo(3), 0, now), Admission::Free);
        assert_eq!(probation.end(A), Some((Some(B), None)));
        assert_eq!(probation.end(A), None);
        assert_eq!(probation.admit(B, 1, now), Admission::Probation { needs_alarm: true });
    }

    #[test]
    fn a_delayed_run_takes_no_place_until_its_delay_is_over() {
        let probation = Probation::new();
        probation.expect(BTreeSet::new(), BTreeMap::from([(A, (3, Timestamp(10)))]), BTreeSet::new(), BTreeSet::new());
        assert_eq!(probation.admit(A, 3, Timestamp(9)), Admission::Delayed(Timestamp(10)));
        assert_eq!(probation.admit(B, 1, Timestamp(9)), Admission::Probation { needs_alarm: true });
        assert_eq!(probation.admit(A, 3, Timestamp(10)), Admission::Waits);
    }

    /// Where several nodes share a store, another one may count a death of a run that is played here.
    #[test]
    fn a_run_is_delayed_once_for_each_crash_count() {
        let probation = Probation::new();
        for (count, now, until) in [(3, 0, 10), (4, 20, 40)] {
            probation.delay(A, count, Timestamp(until));
            assert_eq!(probation.admit(A, count, Timestamp(now)), Admission::Delayed(Timestamp(until)));
            probation.delay(A, count, Timestamp(until + 10));
            let admission = probation.admit(A, count, Timestamp(until));
            assert!(matches!(admission, Admission::Probation { .. }), "{admission:?}");
            probation.end(A);
        }
    }

    #[test]
    fn runs_that_another_node_plays_keep_no_others_waiting() {
        let (probation, now) = (Probation::new(), Timestamp::default());
        for run in [A, B, RunNo(3)] {
            probation.admit(run, 1, now);
        }
        assert_eq!(probation.forget(|run| run == B), None, "it only waited");
        assert_eq!(probation.forget(|run| run == A), Some((Some(RunNo(3)), None)));
        assert_eq!(probation.current(), Some(RunNo(3)));
    }
}
