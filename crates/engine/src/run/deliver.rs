//! Delivering to a run: messages go into its inbox, requests behind them, and the run is woken, so that a thread plays
//! it.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::from_stored;
use dacapo_store::{NewMessage, Notice, Refused, RunNo, SentMessage, StoreError, Write, Written};

use crate::encode::encode;
use crate::host::{Work, WorkKind};
use crate::run::cached_run::{CachedRun, PlayState, RunState};
use crate::run::late::forget_late;
use crate::run::message::{Message, Request};
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::writes::submit;

/// The pause before a result that could not be stored is stored again.
const STORE_AGAIN: Duration = Duration::from_secs(5);

/// Changes the state of a run, which is put into memory if it is not there, and wakes it if there is work for it.
pub(crate) fn with_run<R>(shared: &Arc<Shared>, run: RunNo, change: impl FnOnce(&mut RunState) -> R) -> R {
    shared.runs.with(run, |cached, state| {
        let result = change(state);
        wake(shared, cached, state);
        result
    })
}

/// Puts a message into the inbox of a run.
pub(crate) fn deliver(shared: &Arc<Shared>, run: RunNo, message: Message) {
    if !shared.owns(run) {
        return deliver_elsewhere(shared, run, message);
    }
    let is_result = matches!(message, Message::Result { .. });
    let unwanted = with_run(shared, run, |state| match state.play_state {
        // The run takes nothing soon, and a result must not wait in memory.
        PlayState::Stuck if is_result => {
            // Until the result is stored, it is in no inbox and in no row: a shutdown must not end before.
            shared.shutdown.begin_write();
            Some(message)
        }
        _ => {
            state.push(message);
            None
        }
    });
    if let Some(message) = unwanted {
        shared.later(WorkKind::Write, Some(run), move |shared| {
            store_results(shared, run, vec![message]);
            shared.end_write();
        });
    }
}

/// Delivers to a run that another node plays: what happens here for it goes to the store, and its owner is notified.
fn deliver_elsewhere(shared: &Arc<Shared>, run: RunNo, message: Message) {
    match message {
        Message::Stored { .. } => shared.notify_owner(run, Notice::Stored(run)),
        Message::Result { .. } => {
            // Until the result is stored, it is in no inbox and in no row: a shutdown must not end before.
            shared.shutdown.begin_write();
            shared.later(WorkKind::Write, Some(run), move |shared| {
                store_results(shared, run, vec![message]);
                shared.end_write();
            });
        }
        // The owner has the timer too, and does the local work again.
        Message::Timer { .. } | Message::Local { .. } => {}
    }
}

/// Puts a message that was just stored into the inbox of its run.
pub(crate) fn deliver_sent(shared: &Arc<Shared>, sent: &SentMessage) {
    if sent.fresh {
        if sent.unseen > 1 && shared.owns(sent.run) {
            // Earlier messages, of which this node may have got no notice, come first.
            shared.runs.with(sent.run, |_, state| {
                if state.known() + 1 < sent.unseen {
                    state.note_stored();
                }
            });
        }
        match from_stored(&sent.job) {
            Ok(job) => deliver(shared, sent.run, Message::Stored { no: sent.no, job }),
            Err(error) => tracing::error!(run = %sent.run, %error, "a message cannot be read"),
        }
    }
}

/// Stores results of activities as messages, so that the activities need not run again.
pub(crate) fn store_results(shared: &Arc<Shared>, run: RunNo, results: Vec<Message>) {
    for result in results {
        let Message::Result { task, seq, .. } = &result else { continue };
        let message =
            NewMessage { key: format!("task:{}", seq.0).into(), sent: shared.now(), job: encode(result.job()) };
        let write = Write::Send { run, message, ended: Some(*task) };
        shared.shutdown.begin_write();
        submit(shared, write, move |shared, answer| {
            match answer {
                Ok(Written::Sent(sent)) => deliver_sent(shared, &sent),
                Err(StoreError::Refused(Refused::Closed(_))) => forget_late(shared, run, &[result]),
                // The activity is over.
                Ok(_) | Err(StoreError::Refused(_)) => {}
                Err(_) => store_again_later(shared, run, result),
            }
            shared.end_write();
        });
    }
}

/// Keeps a result that cannot be stored now in the inbox of its run, and has the run played after a pause.
fn store_again_later(shared: &Arc<Shared>, run: RunNo, result: Message) {
    shared.runs.with(run, |cached, state| {
        state.push(result);
        match state.play_state {
            // It can be played: its turn takes the result.
            PlayState::Idle if state.playable.is_some() => wake(shared, cached, state),
            PlayState::Idle => state.play_state = PlayState::Stuck,
            PlayState::Queued | PlayState::Busy | PlayState::Stuck => {}
        }
    });
    shared.arm_in(STORE_AGAIN, Due::Retry(run));
}

/// Gives a run a request, and wakes it.
pub(crate) fn ask(shared: &Arc<Shared>, run: RunNo, request: Request) {
    with_run(shared, run, |state| state.ask(request));
    // The engine may have stopped between the check and the request: then no thread will play this run.
    if let Some(error) = shared.halted.reason() {
        let requests = shared.runs.get(run).map(|cached| cached.lock().take_requests()).unwrap_or_default();
        requests.into_iter().for_each(|request| request.refuse(error.clone()));
    }
}

/// Queues a run that is idle or stuck: there may be messages for it in the store, or its pause is over.
pub(crate) fn poke(shared: &Arc<Shared>, run: RunNo) {
    poke_after(shared, run, |_| {});
}

/// Changes the state of a run, and queues it as [`poke`] does. In one step: where another node gets the run meanwhile, the thread that
/// plays it finds that out and removes it from memory.
pub(crate) fn poke_after(shared: &Arc<Shared>, run: RunNo, change: impl FnOnce(&mut RunState)) {
    if !shared.owns(run) {
        return shared.notify_owner(run, Notice::Stored(run));
    }
    shared.runs.with(run, |cached, state| {
        change(state);
        if matches!(state.play_state, PlayState::Idle | PlayState::Stuck) {
            enqueue(shared, cached, state);
        }
    });
}

/// Queues a run that is idle and has work. A stuck run is played for its callers only.
pub(crate) fn wake(shared: &Arc<Shared>, cached: &Arc<CachedRun>, state: &mut RunState) {
    let has_work = match state.play_state {
        PlayState::Idle => state.has_work(),
        PlayState::Stuck => state.is_asked(),
        PlayState::Queued | PlayState::Busy => false,
    };
    if has_work {
        enqueue(shared, cached, state);
    }
}

fn enqueue(shared: &Arc<Shared>, cached: &Arc<CachedRun>, state: &mut RunState) {
    state.play_state = PlayState::Queued;
    if let (None, Some(worker)) = (cached.worker(), shared.workers.only()) {
        cached.is_played_by(worker);
    }
    match cached.worker() {
        Some(_) => queue_turn(shared, cached.clone()),
        None => {
            let cached = cached.clone();
            shared.later(WorkKind::Read, Some(cached.no), move |shared| {
                // If the queue cannot be read now, loading the run reports why.
                let queue = shared.store().run(cached.no).ok().flatten().map(|row| row.queue);
                cached.is_played_by(queue.map_or_else(|| shared.workers.default(), |queue| shared.workers.of(&queue)));
                queue_turn(shared, cached);
            });
        }
    }
}

fn queue_turn(shared: &Arc<Shared>, cached: Arc<CachedRun>) {
    let (this, run) = (shared.clone(), cached.no);
    let queue = cached.worker().map(|worker| worker.queue().clone());
    shared.host.perform(Work::new(WorkKind::Turn, Some(run), queue, move || (this.play_run)(&this, cached)));
}
