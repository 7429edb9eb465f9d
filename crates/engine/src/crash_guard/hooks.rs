//! The crash guard: code that kills its process (an abort, a stack overflow, no memory left) must not do so for ever.
//!
//! The engine notes beside the store which code runs, without a commit ([`dacapo_store::Running`]): attempts of
//! activities, and code of runs, which is turns, answers and local work. The next process reads these notes and counts
//! the death of its predecessor for each of those tasks and runs, before it does anything else (`count.rs`); where several nodes
//! share the store, before it owns any shard. Tasks and
//! runs with a crash count run one at a time (`Probation`, `TaskQueue`); those with a higher count are delayed
//! ([`CrashLimits`]); those with too high a count are quarantined until an operator releases them.
//!
//! The rest of the engine knows three hooks: [`note`] before code runs ([`note_attempt`] for attempts), [`admit`]
//! before a run is played, and [`ended`] when code of it has ended. [`count_after_turn`] computes the count that a turn
//! of a run writes.
//!
//! [`CrashLimits`]: crate::CrashLimits

use std::sync::Arc;
use std::time::Duration;

use dacapo_store::{CrashCount, Doing, NoteSlot, RunNo, Write};
use dacapo_worker::AttemptHandle;

use crate::crash_guard::probation::Admission;
use crate::lifecycle::shutdown::write_before_shutdown;
use crate::run::cached_run::{CachedRun, PlayState};
use crate::run::deliver::poke;
use crate::shared::Shared;
use crate::timer::wheel::{AlarmNo, Due};

/// The time after which code that still runs counts as not killing the process, and keeps no others waiting. Notes of
/// what runs use the same time.
pub(crate) const CLEARED_AFTER: Duration = Duration::from_secs(60);

/// A note that code runs, until this is dropped.
pub(crate) struct Note {
    shared: Arc<Shared>,
    slot: NoteSlot,
}

impl Drop for Note {
    fn drop(&mut self) {
        self.shared.notes().ended(self.slot);
    }
}

/// Notes that this code runs, until the note is dropped.
pub(crate) fn note(shared: &Arc<Shared>, code: Doing) -> Option<Note> {
    let slot = shared.notes().began(code)?;
    Some(Note { shared: shared.clone(), slot })
}

/// Notes that an attempt runs, until all of its code has ended.
pub(crate) fn note_attempt(shared: &Arc<Shared>, code: Doing, handle: &AttemptHandle) {
    if let Some(note) = note(shared, code) {
        handle.on_end(move || drop(note));
    }
}

/// Decides whether a run with this crash count can be played now. A run that waits for another is at rest from here on,
/// and is played when it is next.
pub(crate) fn admit(shared: &Shared, cached: &CachedRun, crash_count: u32) -> Admission {
    // Under the lock of the run, so that a thread that pokes the run finds it at rest.
    let mut state = cached.lock();
    // Where one process serves the store, the delays began when it opened the store.
    if let Some(until) =
        shared.nodes().and_then(|_| shared.options.crash_limits.delayed_until(crash_count, shared.now()))
    {
        shared.probation.delay(cached.no, crash_count, until);
    }
    let admission = shared.probation.admit(cached.no, crash_count, shared.now());
    match admission {
        Admission::Free => {}
        Admission::Probation { needs_alarm } => {
            state.is_pinned = true;
            if needs_alarm {
                shared.probation.set_alarm(cached.no, shared.arm_in(CLEARED_AFTER, Due::ClearRun(cached.no)));
            }
        }
        Admission::Waits => state.play_state = PlayState::Stuck,
        Admission::Delayed(_) => {}
    }
    admission
}

/// Code that has ended without killing the process.
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

/// Handles the end of a run's code: the run may leave probation, and the next run on probation may be played.
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

/// Ends the probation of a run when a thread is done with it or its crash count is reset, and has the next run played.
fn end_play(shared: &Arc<Shared>, run: RunNo, cached: Option<&CachedRun>) {
    if let Some(cached) = cached {
        cached.lock().is_pinned = false;
    }
    go_on(shared, shared.probation.end(run));
}

/// Forgets runs that another node plays from now on, and has the next run on probation played if one of them was.
pub(crate) fn forget_lost(shared: &Arc<Shared>, is_lost: impl Fn(RunNo) -> bool) {
    go_on(shared, shared.probation.forget(is_lost));
}

/// Has the next run on probation played, after one has ended its own.
fn go_on(shared: &Arc<Shared>, ended: Option<(Option<RunNo>, Option<AlarmNo>)>) {
    let Some((mut next, alarm)) = ended else { return };
    shared.timers.disarm(alarm.as_slice());
    // A run that waits may have been lost meanwhile.
    while let Some(lost) = next.filter(|run| !shared.owns(*run)) {
        next = shared.probation.end(lost).and_then(|(next, _)| next);
    }
    if let Some(next) = next {
        poke(shared, next);
    }
}

/// Computes the crash count that a turn of this run writes: local work that runs, or the next answer, may still kill
/// the process.
pub(crate) fn count_after_turn(shared: &Shared, run: RunNo) -> u32 {
    let may_kill = || shared.local.is_running(run) || shared.probation.is_answering(run);
    shared.probation.count_of(run).filter(|_| may_kill()).unwrap_or(0)
}

/// Arms the alarm that clears a run, after the run has given an answer or gone on. The run may have another answer to
/// give that killed the process, so it is cleared only if the process lives on for a while.
fn clear_later(shared: &Shared, run: RunNo) {
    if shared.probation.has_answered(run) {
        shared.arm_in(CLEARED_AFTER, Due::ClearRun(run));
    }
}

/// Resets the crash count of a run whose attempt of local work failed and is made again later: it has not killed the
/// process.
fn local_attempt_ended(shared: &Arc<Shared>, run: RunNo) {
    let Some(cached) = shared.runs.get(run) else { return };
    // Otherwise the thread that plays the run does this.
    let is_idle = cached.lock().play_state == PlayState::Idle;
    if is_idle && shared.probation.count_of(run).is_some() && !shared.local.is_running(run) {
        clear(shared, run);
    }
}

/// Resets the crash count of a run on probation without a turn.
pub(crate) fn clear(shared: &Arc<Shared>, run: RunNo) {
    let was_answering = shared.probation.clear_answering(run);
    let is_on_probation = shared.probation.current() == Some(run);
    if !was_answering && !is_on_probation {
        return;
    }
    if is_on_probation {
        // The run may have left memory: then another thread closed it.
        end_play(shared, run, shared.runs.get(run).as_deref());
    }
    let write = move |shared: &Arc<Shared>| {
        let row = shared.store().run(run).ok().flatten();
        row.filter(|row| !shared.options.crash_limits.quarantines(row.crash_count))?;
        Some(Write::CrashCounts(vec![CrashCount::Cleared(run)]))
    };
    write_before_shutdown(shared, write, |_, _| {});
}
