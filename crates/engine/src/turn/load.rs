//! Loading: a run that is not in memory is played again from the beginning, against its record.

use std::sync::Arc;

use dacapo_core::{Job, StoredError, Timestamp, from_stored};
use dacapo_store::{Doing, MessageNo, MessageRow, Records, RunRow, StoreError, StoredRun, StuckCause};
use dacapo_worker::{Deadlock, HandOver, StuckPlay};

use crate::crash_guard::hooks::admit;
use crate::crash_guard::probation::Admission;
use crate::host::WorkKind;
use crate::nodes::hand_over::store_taken;
use crate::report::stuck_reason::StuckReason;
use crate::run::cached_run::{Before, CachedRun, PlayState, Playable};
use crate::run::open_operations::OpenOperations;
use crate::shared::Shared;
use crate::timer::read_timers;
use crate::turn::foreign_wake::reporter;
use crate::turn::make::begin_play;
use crate::turn::replay::{Replayed, new_instance, replay};
use crate::turn::stuck::set_stuck;

/// The result of loading a run.
pub(crate) enum Loaded {
    /// It can go on.
    Ready(Box<Playable>),
    /// It is closed, and can only answer requests.
    Closed(Box<RunRow>),
    /// Its start time has not come.
    NotYet(Timestamp),
    /// Another node plays it.
    Moved,
    /// Its queue is not served here.
    Elsewhere(Box<RunRow>),
    /// There is no such run.
    Missing,
    /// It cannot be played: the reason, and what to do.
    Stuck(StuckReason),
    /// Its process died too often while it was played.
    Quarantined(Box<RunRow>),
    /// Its process died while it was played, and it is not played before this time.
    Delayed(Box<RunRow>, Timestamp),
    /// Its process died while it was played, and another run is on probation. It is at rest.
    Waits,
    /// It was taken from this thread, because a turn did not return in time.
    TakenOver,
}

/// Loads a run and its messages.
pub(crate) fn load(shared: &Arc<Shared>, cached: &Arc<CachedRun>, play: u64) -> Result<Loaded, StoreError> {
    let before = cached.lock().begin_to_reread();
    let Some(StoredRun { row, along }) = shared.store().load(cached.no)? else { return Ok(Loaded::Missing) };
    if !row.status.is_open() {
        return Ok(Loaded::Closed(Box::new(row)));
    }
    if !shared.owns(cached.no) {
        return Ok(Loaded::Moved);
    }
    if !shared.workers.serve(&row.queue) {
        return Ok(Loaded::Elsewhere(Box::new(row)));
    }
    if row.turns == 0 && !cached.lock().has_timers {
        // Another node may have begun it, and its notice may be lost.
        read_timers(shared, cached.no)?;
    }
    if row.turns == 0 && row.started > shared.now() {
        return Ok(Loaded::NotYet(row.started));
    }
    if shared.options.crash_limits.quarantines(row.crash_count) {
        return Ok(Loaded::Quarantined(Box::new(row)));
    }
    match admit(shared, cached, row.crash_count) {
        Admission::Free | Admission::Probation { .. } => {}
        Admission::Waits => return Ok(Loaded::Waits),
        Admission::Delayed(until) => return Ok(Loaded::Delayed(Box::new(row), until)),
    }
    let (records, unseen) = along.map_or((None, None), |along| (Some(along.records), along.unseen));
    // Messages are read after all turns that may have taken them, or a turn would take one again: those that were read
    // along with the row are of use if no turns are read later.
    let unseen = unseen.filter(|_| records.as_ref().is_none_or(|records| records.next().is_none()));
    let playable = match replay_run(shared, cached, play, &row, records)? {
        Ok(playable) => playable,
        Err(NotPlayed::Stuck(reason)) => return Ok(Loaded::Stuck(reason)),
        Err(NotPlayed::TakenOver) => return Ok(Loaded::TakenOver),
    };
    // Read without the lock: messages that come meanwhile are told apart by their numbers. A notice may have come of some since the
    // first read: read now, they share the next turn.
    let (before, rows) = match unseen {
        Some(rows) if !cached.lock().is_outdated(&before) => (before, rows),
        _ => read_unseen(shared, cached)?,
    };
    match decoded(rows) {
        Ok(stored) => cached.lock().reread(&before, stored),
        Err(reason) => return Ok(Loaded::Stuck(reason)),
    }
    Ok(Loaded::Ready(playable))
}

/// Reads the messages of a run that no turn has taken, and returns also what was in memory before.
fn read_unseen(shared: &Shared, cached: &CachedRun) -> Result<(Before, Vec<MessageRow>), StoreError> {
    let before = cached.lock().begin_to_reread();
    Ok((before, shared.store().unseen(cached.no)?))
}

/// Reads the messages of a run in memory again, because another node has stored some. A message that cannot be read is
/// reported when the run is loaded.
pub(crate) fn read_messages_again(shared: &Shared, cached: &CachedRun) -> Result<(), StoreError> {
    let (before, rows) = read_unseen(shared, cached)?;
    match decoded(rows) {
        Ok(stored) => cached.lock().reread(&before, stored),
        Err(_) => cached.lock().has_reread(&before),
    }
    Ok(())
}

/// Decodes messages. The error says which cannot be read.
fn decoded(rows: Vec<MessageRow>) -> Result<Vec<(MessageNo, Job)>, StuckReason> {
    let decode = |row: MessageRow| match from_stored(&row.job) {
        Ok(job) => Ok((row.no, job)),
        Err(error) => {
            let text = format!("its message {:?} cannot be read: {error}", row.key);
            let cause = match error {
                StoredError::UnknownFormat { .. } => StuckCause::OtherBuild,
                _ => StuckCause::StoreDamaged,
            };
            Err(StuckReason::of_text(cause, text))
        }
    };
    rows.into_iter().map(decode).collect()
}

/// The reason why a recorded run could not be played.
pub(crate) enum NotPlayed {
    Stuck(StuckReason),
    TakenOver,
}

/// Plays all recorded turns of a run again. `first` are the records that have been read.
pub(crate) fn replay_run(
    shared: &Arc<Shared>,
    cached: &Arc<CachedRun>,
    play_no: u64,
    row: &RunRow,
    first: Option<Records>,
) -> Result<Result<Box<Playable>, NotPlayed>, StoreError> {
    let (info, mut run) = match new_instance(&shared.options, row, |name| Some(reporter(shared, name))) {
        Ok(instance) => instance,
        Err(reason) => return Ok(Err(NotPlayed::Stuck(reason))),
    };
    let has_turns = row.turns > 0;
    if has_turns {
        shared.workers.of(&row.queue).meters().replays.increment(1);
    }
    let mut open = OpenOperations::default();
    // One note and one watch for all turns: each turn has its own time limit.
    let code = has_turns.then_some(Doing::Turn { run: cached.no, turn: row.turns });
    let mut play = begin_play(shared, &info, &mut run, code, hand_over(shared, cached, play_no));
    let replayed = replay(shared.store(), row, first, &mut play, &mut open)?;
    drop(play);
    Ok(match replayed {
        Replayed::Ready(published) => {
            let mut playable = Box::new(Playable::new(info, run, open, play_no));
            // The row of a run that a reset began has no snapshot, although the turns it keeps published one.
            playable.unstored_snapshot = published.filter(|_| row.published.is_none()).map(Box::new);
            Ok(playable)
        }
        Replayed::Stuck(reason) => Err(NotPlayed::Stuck(reason)),
        Replayed::TakenOver => Err(NotPlayed::TakenOver),
    })
}

/// Makes the callback for a turn of this play that does not return in time: all messages that it took are put back, the
/// run is stuck with the reason, and another thread plays it.
pub(crate) fn hand_over(shared: &Arc<Shared>, cached: &Arc<CachedRun>, play: u64) -> HandOver {
    let (shared, cached) = (Arc::downgrade(shared), cached.clone());
    Box::new(move |deadlock: Deadlock, stuck_play: StuckPlay| {
        let Some(shared) = shared.upgrade() else { return };
        let mut state = cached.lock();
        if state.play != play {
            return;
        }
        if state.is_gone {
            drop(state);
            return store_taken(&shared, &cached);
        }
        state.play += 1;
        state.stuck_play = stuck_play;
        state.put_back_all();
        state.play_state = PlayState::Busy;
        drop(state);
        shared.later(WorkKind::Write, Some(cached.no), move |shared| set_stuck(shared, &cached, deadlock.into()));
    })
}
