//! Answering callers from the state of a run: queries, what its units wait for, open promises.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Activation, Answer, Completion, Name, Payload, Query, Seq};
use dacapo_store::{Doing, RunRow};

use crate::crash_guard::count::quarantine_reason;
use crate::crash_guard::hooks::{Ended, admit, ended};
use crate::crash_guard::probation::Admission;
use crate::lifecycle::shutdown;
use crate::nodes::hand_over::drop_run;
use crate::run::cached_run::{CachedRun, PlayState, Playable};
use crate::run::late::forget_late;
use crate::run::message::Request;
use crate::run::open_operations::Open;
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::turn::load::{Loaded, NotPlayed, hand_over, load, replay_run};
use crate::turn::make::begin_play;
use crate::turn::rest::retire;
use crate::turn::stuck::{set_delayed, set_quarantined, store_waiting_results, wait_for_probation};

const TOO_LONG: &str = "the code took too long to answer";

/// Answers the requests whose messages were all taken.
pub(crate) fn answer_due(shared: &Arc<Shared>, cached: &Arc<CachedRun>, playable: &mut Playable) {
    let requests = cached.lock().take_due_requests();
    for request in requests {
        answer(shared, cached, request, playable);
    }
}

/// Answers the requests to a closed run, and removes it from memory again.
pub(crate) fn answer_closed(shared: &Arc<Shared>, cached: &Arc<CachedRun>, play: u64, row: &RunRow) {
    let is_quarantined = shared.options.crash_limits.quarantines(row.crash_count);
    let is_asked = cached.lock().has_requests();
    if is_asked && !is_quarantined {
        match admit(shared, cached, row.crash_count) {
            Admission::Free | Admission::Probation { .. } => {}
            Admission::Waits => return wait_for_probation(shared, cached),
            Admission::Delayed(until) => return set_delayed(shared, cached, row, until),
        }
    }
    let mut state = cached.lock();
    let (requests, late) = (state.take_requests(), state.take_inbox());
    // Local work of a closed run is not made again.
    state.retries.clear();
    drop(state);
    forget_late(shared, cached.no, &late);
    if !requests.is_empty() {
        let replayed = match is_quarantined {
            true => Err(Error::Stuck(quarantine_reason(row).text)),
            false => replay_run(shared, cached, play, row, None).map_err(Error::from).and_then(|replayed| {
                replayed.map_err(|not_played| match not_played {
                    NotPlayed::Stuck(reason) => Error::Stuck(reason.text),
                    NotPlayed::TakenOver => Error::Stuck(TOO_LONG.to_owned()),
                })
            }),
        };
        match replayed {
            Ok(mut playable) => {
                requests.into_iter().for_each(|request| answer(shared, cached, request, &mut playable));
            }
            Err(error) => requests.into_iter().for_each(|request| request.refuse(error.clone())),
        }
    }
    retire(shared, cached);
}

/// Answers the requests to a stuck run from what is recorded, unless messages came before them: requests do not make a
/// stuck run play more often.
pub(crate) fn answer_stuck(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    let play = cached.lock().play;
    let reason = match load(shared, cached, play) {
        Ok(Loaded::Closed(row)) => return answer_closed(shared, cached, play, &row),
        Ok(Loaded::Ready(mut playable)) => {
            answer_due(shared, cached, &mut playable);
            if cached.lock().play != playable.play {
                // A query did not return in time, and another thread has the run.
                return;
            }
            let row = shared.store().run(cached.no).ok().flatten();
            row.and_then(|row| row.stuck).map_or_else(String::new, |stuck| stuck.reason)
        }
        Ok(Loaded::Stuck(reason)) => reason.text,
        Ok(Loaded::Quarantined(row)) => return set_quarantined(shared, cached, &row),
        Ok(Loaded::Delayed(row, until)) => return set_delayed(shared, cached, &row, until),
        Ok(Loaded::Waits) => return wait_for_probation(shared, cached),
        Ok(Loaded::TakenOver) => return,
        Ok(Loaded::Moved) => return drop_run(shared, cached),
        Ok(Loaded::NotYet(_) | Loaded::Elsewhere(_) | Loaded::Missing) => String::new(),
        Err(error) => error.to_string(),
    };
    ended(shared, Ended::Play(cached));
    let mut state = cached.lock();
    state.play_state = PlayState::Stuck;
    let (requests, until) = (state.take_requests(), state.stuck_until);
    // The row may not have the reason yet.
    let known = state.stuck_reason.as_deref().filter(|_| reason.is_empty()).map(str::to_owned);
    drop(state);
    let reason = known.unwrap_or(reason);
    store_waiting_results(shared, cached);
    for request in requests {
        request.refuse(Error::Stuck(reason.clone()));
    }
    // The moment to play it again may have passed meanwhile, and with it the alarm.
    shared.arm_in(until.since(shared.now()), Due::Retry(cached.no));
    shutdown::check(shared);
}

fn answer(shared: &Arc<Shared>, cached: &Arc<CachedRun>, request: Request, playable: &mut Playable) {
    match request {
        Request::Query(query, answer) => drop(answer.send(query_run(shared, cached, playable, query))),
        Request::Inspect(answer) => drop(answer.send(Ok(playable.run.inspect()))),
        Request::FindPromise(promise, answer) => drop(answer.send(find_promise(playable, promise))),
    }
}

fn query_run(
    shared: &Arc<Shared>,
    cached: &Arc<CachedRun>,
    playable: &mut Playable,
    query: Query,
) -> Result<Payload, Error> {
    let hand_over = hand_over(shared, cached, playable.play);
    let mut play = begin_play(shared, &playable.info, &mut playable.run, Some(Doing::Answer(cached.no)), hand_over);
    let answered = play.activate(Activation::Query(vec![query]));
    drop(play);
    ended(shared, Ended::Answer(cached.no));
    match answered {
        Some(Completion::Query(mut answers)) => match answers.pop() {
            Some(Answer { result: Ok(payload), .. }) => Ok(payload),
            Some(Answer { result: Err(failure), .. }) => Err(Error::QueryFailed(Box::new(failure))),
            None => unreachable!("one query has one answer"),
        },
        Some(Completion::Failed(error)) => Err(Error::Stuck(error.to_string())),
        Some(other) => unreachable!("a query was answered with {other:?}"),
        None => Err(Error::Stuck(TOO_LONG.to_owned())),
    }
}

fn find_promise(playable: &Playable, wanted: Name) -> Result<Seq, Error> {
    let promises = playable.open.operations.values().filter_map(|open| match open {
        Open::Promise(promise) => Some(promise),
        _ => None,
    });
    let promises: Vec<_> = promises.collect();
    let found = promises.iter().find(|promise| promise.name == wanted || promise.id.to_string() == wanted.as_str());
    found.map(|promise| promise.seq).ok_or_else(|| {
        let open: Vec<&str> = promises.iter().map(|promise| promise.name.as_str()).collect();
        Error::PromiseNotFound {
            workflow_id: playable.info.name.workflow_id.clone(),
            promise: wanted,
            open: if open.is_empty() { "none".to_owned() } else { open.join(", ") },
        }
    })
}
