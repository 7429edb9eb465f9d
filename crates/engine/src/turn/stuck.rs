//! Stuck runs: a run that cannot be played stays open, with the reason, and is played again with growing pauses.

use std::sync::Arc;
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::Timestamp;
use dacapo_store::{RunNo, RunRow, StoreError, Stuck, Write};

use crate::activity::blocked::{mark_waiting, unserved_queue};
use crate::activity::local;
use crate::crash_guard::count::{delayed_reason, quarantine_reason};
use crate::crash_guard::hooks::{Ended, ended};
use crate::host::WorkKind;
use crate::lifecycle::halt::halt;
use crate::lifecycle::shutdown;
use crate::nodes::other_builds;
use crate::read::outcome::closed_run;
use crate::report::log;
use crate::report::stuck_reason::StuckReason;
use crate::run::cached_run::{CachedRun, PlayState, Playable};
use crate::run::deliver::{poke, store_results, with_run};
use crate::run::info::RunInfo;
use crate::run::message::{Message, Request};
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::turn::effects::close_other;
use crate::turn::rest::rest;
use crate::writes::submit;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

fn pause(failed_plays: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failed_plays.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}

/// Marks a run as stuck that cannot be played, for this reason. Called on a thread that may block.
pub(crate) fn set_stuck(shared: &Arc<Shared>, cached: &Arc<CachedRun>, reason: StuckReason) {
    if other_builds::may_play(shared, cached.no, reason.cause) {
        return wait_for_other_build(shared, cached, &reason);
    }
    let now = shared.now();
    cached.worker().unwrap_or_else(|| shared.workers.default()).meters().stuck.increment(1);
    let mut state = cached.lock();
    state.failed_plays += 1;
    let attempts = state.failed_plays;
    drop(state);
    let retry = pause(attempts);
    let set_aside = set_aside(shared, cached, now.after(retry), &reason.text);
    shared.arm_in(retry, Due::Retry(cached.no));
    let stuck = reason.into_stuck(now, attempts, now.after(retry));
    write_stuck(shared, cached, stuck, set_aside, "it cannot go on and is stuck: ");
    shutdown::check(shared);
}

/// Marks a run as stuck that is delayed because its process died while its code was played. It is played again by
/// itself.
pub(crate) fn set_delayed(shared: &Arc<Shared>, cached: &Arc<CachedRun>, row: &RunRow, until: Timestamp) {
    let now = shared.now();
    let reason = delayed_reason(row, until);
    let set_aside = set_aside(shared, cached, until, &reason.text);
    // The run counts as stuck, so that the mark is cleared when it is played again.
    let mut state = cached.lock();
    state.failed_plays = state.failed_plays.max(1);
    drop(state);
    shared.arm_in(until.since(now), Due::Retry(cached.no));
    let stuck = reason.into_stuck(now, 1, until);
    write_stuck(shared, cached, stuck, set_aside, "");
    shutdown::check(shared);
}

/// Plays a run again later that this build cannot play and another that is still served can. It is not marked as stuck: its
/// code has not failed, a deploy is under way.
fn wait_for_other_build(shared: &Arc<Shared>, cached: &Arc<CachedRun>, reason: &StuckReason) {
    let mut state = cached.lock();
    state.failed_plays += 1;
    let retry = pause(state.failed_plays);
    drop(state);
    let SetAside { requests, .. } = set_aside(shared, cached, shared.now().after(retry), &reason.text);
    shared.arm_in(retry, Due::Retry(cached.no));
    let told = Error::Stuck(format!(
        "a deploy is under way, and a node of another build has recorded the run: {}",
        reason.text
    ));
    requests.into_iter().for_each(|request| request.refuse(told.clone()));
    shutdown::check(shared);
}

/// A run that is not played until an alarm or an operator has it played again.
struct SetAside {
    /// The requests of its callers.
    requests: Vec<Request>,
    /// Whether this process finds the run stuck for the first time since the run went on.
    is_first_here: bool,
}

/// Stops playing a run until then. Its messages are kept.
fn set_aside(shared: &Arc<Shared>, cached: &Arc<CachedRun>, until: Timestamp, reason: &str) -> SetAside {
    let meters = cached.worker().unwrap_or_else(|| shared.workers.default()).meters().clone();
    let mut state = cached.lock();
    state.play_state = PlayState::Stuck;
    state.stuck_reason = Some(reason.into());
    let is_first_here = state.stuck.is_none();
    state.stuck.get_or_insert_with(|| meters.stuck_runs.one_more());
    let playable = state.playable.take();
    state.stuck_until = until;
    let requests = state.take_requests();
    drop(state);
    if let Some(playable) = playable {
        shared.drop_later(playable);
    }
    local::give_up_all(shared, cached.no, "the run is stuck");
    // In this order: an attempt that ends meanwhile may still deliver.
    cached.lock().drop_local_results();
    store_waiting_results(shared, cached);
    ended(shared, Ended::Play(cached));
    SetAside { requests, is_first_here }
}

/// Stores the results in the inbox of a run that is not played soon: a result must not wait in memory.
pub(crate) fn store_waiting_results(shared: &Arc<Shared>, cached: &CachedRun) {
    // Until the results are stored, they are in no inbox and in no row: a shutdown must not end before.
    shared.shutdown.begin_write();
    let results = cached.lock().take_results();
    store_results(shared, cached.no, results);
    shared.end_write();
}

/// Leaves a run at rest that waits because another run is on probation.
pub(crate) fn wait_for_probation(shared: &Arc<Shared>, cached: &CachedRun) {
    store_waiting_results(shared, cached);
    shutdown::check(shared);
}

/// Stops playing a quarantined run until it is released, and answers its callers with the reason.
pub(crate) fn set_quarantined(shared: &Arc<Shared>, cached: &Arc<CachedRun>, row: &RunRow) {
    let reason = quarantine_reason(row).text;
    let SetAside { requests, is_first_here } = set_aside(shared, cached, Timestamp(u64::MAX), &reason);
    if let Some(info) = RunInfo::of(row).ok().filter(|_| is_first_here) {
        log::warn_of_run(&info.name, &reason);
    }
    shared.waiters.run_stuck(cached.no, &row.first_run_id, &reason);
    requests.into_iter().for_each(|request| request.refuse(Error::Stuck(reason.clone())));
    // The run may have been released since its row was read.
    let row = shared.store().run(cached.no);
    if row.is_ok_and(|row| row.is_some_and(|row| !shared.options.crash_limits.quarantines(row.crash_count))) {
        release(shared, cached.no);
    }
    shutdown::check(shared);
}

/// Plays a run again that was released.
pub(crate) fn release(shared: &Arc<Shared>, run: RunNo) {
    with_run(shared, run, |state| {
        state.unstick();
        state.stuck_until = Timestamp::default();
    });
    poke(shared, run);
}

/// Makes a run wait while the code of a play that was given up on still runs. Another play would most likely be stuck
/// as well, and cost one thread more each time: the run waits until the first has returned.
pub(crate) fn wait_for_stuck_play(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    let mut state = cached.lock();
    state.play_state = PlayState::Stuck;
    let requests = state.take_requests();
    let retry = pause(state.failed_plays);
    state.stuck_until = shared.now().after(retry);
    drop(state);
    for request in requests {
        request.refuse(Error::Stuck("its last turn did not return, and its code still runs".to_owned()));
    }
    store_waiting_results(shared, cached);
    ended(shared, Ended::Play(cached));
    shared.arm_in(retry, Due::Retry(cached.no));
    shutdown::check(shared);
}

/// Stores why a run is stuck, and then answers its callers: they find it stuck when they look.
fn write_stuck(shared: &Arc<Shared>, cached: &Arc<CachedRun>, mut stuck: Stuck, set_aside: SetAside, what: &str) {
    let SetAside { requests, is_first_here } = set_aside;
    let run = cached.no;
    let told = Error::Stuck(stuck.reason.clone());
    let refuse = move || requests.into_iter().for_each(|request| request.refuse(told.clone()));
    let row = match shared.store().run(run) {
        Ok(Some(row)) => row,
        Ok(None) => return refuse(),
        Err(error) => {
            tracing::error!(%run, %error, "the run cannot be read");
            return refuse();
        }
    };
    if let Some(before) = &row.stuck {
        stuck.since = before.since;
    }
    let reason = StuckReason::new(stuck.cause, stuck.subject.clone(), stuck.reason.clone());
    // Each process logs it once: a run that is played again every minute is not logged every minute.
    if (is_first_here || row.stuck.as_ref().is_none_or(|before| !reason.is_that_of(before)))
        && let Ok(info) = RunInfo::of(&row)
    {
        shared.stuck_log.report(&info.name, what, &reason, shared.now());
    }
    submit(shared, Write::SetStuck { run, epoch: row.epoch, stuck: Some(stuck) }, move |shared, result| {
        match result {
            // The run has closed, or is gone.
            Err(StoreError::Refused(_)) => shared.later(WorkKind::Read, Some(run), move |shared| {
                if let Ok(Some(row)) = shared.store().run(run)
                    && !row.status.is_open()
                {
                    close_other(shared, &closed_run(&row));
                }
                refuse();
            }),
            Ok(_) | Err(_) => {
                shared.waiters.run_stuck(run, &row.first_run_id, &reason.text);
                shared.tell_watchers(run);
                refuse();
            }
        }
    });
}

/// Clears the mark of a stuck run that can be played after all, though no message came for it.
pub(crate) fn unstick(shared: &Arc<Shared>, cached: Arc<CachedRun>, playable: Box<Playable>) {
    let (epoch, queue) = (playable.info.epoch, unserved_queue(shared, &playable.open));
    let write = Write::SetStuck { run: cached.no, epoch, stuck: None };
    submit(shared, write, move |shared, result| match result {
        Ok(_) => {
            cached.lock().unstick();
            rest(shared, &cached, Some(playable));
            mark_waiting(shared, cached.no, epoch, queue.as_ref());
        }
        Err(StoreError::Refused(_)) => {
            shared.drop_later(playable);
            let run = cached.no;
            shared.later(WorkKind::Read, Some(run), move |shared| {
                if let Ok(Some(row)) = shared.store().run(run)
                    && !row.status.is_open()
                {
                    close_other(shared, &closed_run(&row));
                }
            });
        }
        Err(error) => {
            shared.drop_later(playable);
            let taken = cached.lock().take_uncommitted();
            retry_later(shared, &cached, taken, &error);
        }
    });
}

/// Puts back the messages of a turn, because the store cannot be written now. Nothing was lost, and the turn is played
/// again later.
pub(crate) fn retry_later(shared: &Arc<Shared>, cached: &Arc<CachedRun>, messages: Vec<Message>, error: &StoreError) {
    if let StoreError::Unavailable(_) | StoreError::Corrupt(_) = error {
        return halt(shared, error.clone().into());
    }
    log::engine_error(&format_args!(
        "the store cannot be written, and the turn of {} is played again: {error}",
        cached.no
    ));
    ended(shared, Ended::Play(cached));
    let mut state = cached.lock();
    state.put_back(messages);
    state.play_state = PlayState::Stuck;
    state.stuck_reason = Some(format!("the store cannot be written now: {error}").into());
    state.failed_plays += 1;
    let retry = pause(state.failed_plays);
    drop(state);
    shared.arm_in(retry, Due::Retry(cached.no));
    shutdown::check(shared);
}
