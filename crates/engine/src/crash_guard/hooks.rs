//! The crash guard: code that kills its process (an abort, a stack overflow, no memory left) must not do so for ever.
//!
//! Which code runs is noted beside the store, without a commit ([`dacapo_store::Running`]): attempts of activities, and code
//! of runs, which is turns, answers and local work. The next process finds what ran when its predecessor died, and counts
//! that death for each of those tasks and runs, before it does anything else (`count.rs`). What has a crash count runs one at
//! a time (`Probation`, `TaskQueue`); what has a higher one is delayed ([`CrashLimits`]); what has too high a one is
//! quarantined until it is released.
//!
//! The rest of the engine knows three hooks: [`note`] before code runs ([`note_attempt`] for attempts), [`admit`] before a run is
//! played, and [`ended`] when code of it has come to an end. [`count_after_turn`] says what a turn writes of a run's count.
//!
//! [`CrashLimits`]: crate::CrashLimits

use std::sync::Arc;
use std::time::Duration;

use dacapo_store::{CrashCount, Doing, RunNo, Slot, Write};
use dacapo_worker::AttemptHandle;

use crate::crash_guard::probation::Admission;
use crate::lifecycle::shutdown::write_before_shutdown;
use crate::run::cached_run::{CachedRun, Stage};
use crate::run::deliver::poke;
use crate::shared::Shared;
use crate::timer::wheel::Due;

/// Code that has run for so long did not kill the process, and need not keep others waiting. Notes of what runs go by the
/// same time.
pub(crate) const CLEARED_AFTER: Duration = Duration::from_secs(60);

/// A note that code runs, until this is dropped.
pub(crate) struct Note {
    shared: Arc<Shared>,
    slot: Slot,
}

impl Drop for Note {
    fn drop(&mut self) {
        self.shared.notes().ended(self.slot);
    }
}

/// Notes that this code runs.
pub(crate) fn note(shared: &Arc<Shared>, code: Doing) -> Option<Note> {
    let slot = shared.notes().began(code)?;
    Some(Note { shared: shared.clone(), slot })
}

/// Notes that an attempt runs, until nothing of its code does.
pub(crate) fn note_attempt(shared: &Arc<Shared>, code: Doing, handle: &AttemptHandle) {
    if let Some(note) = note(shared, code) {
        handle.on_end(move || drop(note));
    }
}

/// Whether a run with this crash count can be played now. If not, it is at rest from here on: one that waits for another is
/// played when its turn has come.
pub(crate) fn admit(shared: &Shared, cached: &CachedRun, crash_count: u32) -> Admission {
    // Under the lock of the run: whoever pokes it finds it at rest.
    let mut state = cached.lock();
    let admission = shared.probation.admit(cached.no, crash_count, shared.now());
    match admission {
        Admission::Free => {}
        Admission::Probation { needs_alarm } => {
            state.is_pinned = true;
            if needs_alarm {
                shared.probation.set_alarm(cached.no, shared.arm_in(CLEARED_AFTER, Due::ClearRun(cached.no)));
            }
        }
        Admission::Waits => state.stage = Stage::Stuck,
        Admission::Delayed(_) => {}
    }
    admission
}

/// What has come to an end without killing the process.
#[derive(Clone, Copy)]
pub(crate) enum Ended<'a> {
    /// A thread is done with a run.
    Play(&'a CachedRun),
    /// A turn was committed, which left this crash count.
    Turn(&'a CachedRun, u32),
    /// A run has given an answer.
    Answer(RunNo),
    /// An attempt of local work has failed and is made again later.
    LocalAttempt(RunNo),
}

/// Code of a run has ended: it may leave probation, and the next run on probation may be played.
pub(crate) fn ended(shared: &Arc<Shared>, what: Ended<'_>) {
    match what {
        Ended::Play(cached) | Ended::Turn(cached, 0) => end_play(shared, cached.no, Some(cached)),
        // If the count is kept for an answer, no caller may ever ask for one again, and the run must not be played from the
        // beginning for every turn until then.
        Ended::Turn(CachedRun { no, .. }, _) => clear_later(shared, *no),
        Ended::Answer(run) => clear_later(shared, run),
        Ended::LocalAttempt(run) => local_attempt_ended(shared, run),
    }
}

/// A thread is done with a run, or its crash count is reset: the next run on probation is played.
fn end_play(shared: &Arc<Shared>, run: RunNo, cached: Option<&CachedRun>) {
    if let Some(cached) = cached {
        cached.lock().is_pinned = false;
    }
    let Some((next, alarm)) = shared.probation.end(run) else { return };
    shared.timers.disarm(alarm.as_slice());
    if let Some(next) = next {
        poke(shared, next);
    }
}

/// The crash count that a turn of this run leaves: local work that runs, or the next answer, may still kill the process.
pub(crate) fn count_after_turn(shared: &Shared, run: RunNo) -> u32 {
    let may_kill = || shared.local.is_running(run) || shared.probation.is_answering(run);
    shared.probation.count_of(run).filter(|_| may_kill()).unwrap_or(0)
}

/// A run has given an answer, or gone on. It may have another to give that killed the process: it is cleared if the process
/// lives on for a while.
fn clear_later(shared: &Shared, run: RunNo) {
    if shared.probation.has_answered(run) {
        shared.arm_in(CLEARED_AFTER, Due::ClearRun(run));
    }
}

/// An attempt of local work has failed and is made again later: it has not killed the process.
fn local_attempt_ended(shared: &Arc<Shared>, run: RunNo) {
    let Some(cached) = shared.runs.get(run) else { return };
    // A thread that plays it sees to it.
    let is_idle = cached.lock().stage == Stage::Idle;
    if is_idle && shared.probation.count_of(run).is_some() && !shared.local.is_running(run) {
        clear(shared, run);
    }
}

/// Resets the crash count of a run on probation, though no turn of it does.
pub(crate) fn clear(shared: &Arc<Shared>, run: RunNo) {
    let was_answering = shared.probation.clear_answering(run);
    let is_on_probation = shared.probation.current() == Some(run);
    if !was_answering && !is_on_probation {
        return;
    }
    if is_on_probation {
        // It may have left memory: then another thread closed it.
        end_play(shared, run, shared.runs.get(run).as_deref());
    }
    let write = move |shared: &Arc<Shared>| {
        let row = shared.store().run(run).ok().flatten();
        row.filter(|row| !shared.options.crash_limits.quarantines(row.crash_count))?;
        Some(Write::CrashCounts(vec![CrashCount::Cleared(run)]))
    };
    write_before_shutdown(shared, write, |_, _| {});
}
