//! Parking: a run that cannot be played stays open, says why, and is tried again with growing pauses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_store::{NewMail, RunNo, RunRow, StoreError, Stuck, Write, Written};

use crate::EngineError;
use crate::crash_guard::quarantine::{is_quarantined, words_on_run};
use crate::inner::Inner;
use crate::report::deduplication::cause_of;
use crate::report::log as loud;
use crate::run::cached_run::{Arrival, Ask, Body, Live, Stage};
use crate::timer::wheel::Due;
use crate::turn::load::Loaded;
use crate::turn::plan::encode;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Inner {
    /// Parks a run for this reason.
    pub(crate) fn park(self: &Arc<Self>, live: Arc<Live>, reason: String) {
        let now = self.host.now();
        let meters = self.worker_of(&live).unwrap_or_else(|| self.first_worker()).meters().clone();
        meters.parked.increment(1);
        let mut state = live.lock();
        state.strikes += 1;
        let attempts = state.strikes;
        drop(state);
        let retry = now.after(pause(attempts));
        let asks = self.set_aside(&live, retry);
        self.own_timer(retry, Due::Retry(live.no));
        let told = EngineError::Stuck(reason.clone());
        let (this, run, why) = (self.clone(), live.no, reason.clone());
        self.write_stuck(&live, Stuck { reason, since: now, attempts, retry }, move || {
            this.waits().stuck(run, &why);
            asks.into_iter().for_each(|(_, ask)| ask.refuse(told.clone()));
        });
        self.drained();
    }

    /// Puts a run aside until then, and gives those who asked it something. What came for it is kept.
    fn set_aside(self: &Arc<Self>, live: &Arc<Live>, until: Timestamp) -> VecDeque<(u64, Ask)> {
        let meters = self.worker_of(live).unwrap_or_else(|| self.first_worker()).meters().clone();
        let mut state = live.lock();
        state.stage = Stage::Parked;
        state.stuck.get_or_insert_with(|| meters.stuck_runs.one_more());
        state.body = None;
        state.parked_until = until;
        let asks = std::mem::take(&mut state.asks);
        // What local work came to is nobody's: the run is played again, and so is that work.
        state.inbox.retain(|arrival| !matches!(arrival, Arrival::Local { .. }));
        let results: Vec<Arrival> =
            state.inbox.iter().filter(|arrival| matches!(arrival, Arrival::Result { .. })).cloned().collect();
        state.inbox.retain(|arrival| !matches!(arrival, Arrival::Result { .. }));
        state.came = state.taken + state.inbox.len() as u64;
        drop(state);
        self.give_up_locals(live.no, "the run is parked");
        self.keep_results(live, results);
        self.end_trial(live);
        asks
    }

    /// A run that is quarantined is not played before somebody releases it, and whoever asks it something is told why.
    pub(crate) fn hold(self: &Arc<Self>, live: &Arc<Live>, row: &RunRow) {
        let reason = words_on_run(row);
        let asks = self.set_aside(live, Timestamp(u64::MAX));
        self.waits().stuck(live.no, &reason);
        asks.into_iter().for_each(|(_, ask)| ask.refuse(EngineError::Stuck(reason.clone())));
        // Somebody may have released it between the look and now.
        if self.store.run(live.no).is_ok_and(|row| row.is_some_and(|row| !is_quarantined(&row))) {
            self.let_go(live.no);
        }
        self.drained();
    }

    /// A run that was quarantined is played again.
    pub(crate) fn let_go(self: &Arc<Self>, run: RunNo) {
        self.with_live(run, |state| {
            state.unstick();
            state.parked_until = Timestamp::default();
        });
        self.poke(run);
    }

    /// The code of the player that was given up on runs on. Another play would most likely be stuck as well, and cost one
    /// thread more each time: the run waits until the first has returned.
    pub(crate) fn wait_for_lost_player(self: &Arc<Self>, live: &Arc<Live>) {
        let mut state = live.lock();
        state.stage = Stage::Parked;
        let asks = std::mem::take(&mut state.asks);
        let retry = self.host.now().after(pause(state.strikes));
        state.parked_until = retry;
        drop(state);
        for (_, ask) in asks {
            ask.refuse(EngineError::Stuck("its last turn did not return, and its code still runs".to_owned()));
        }
        self.end_trial(live);
        self.own_timer(retry, Due::Retry(live.no));
        self.drained();
    }

    /// Questions do not make a parked run try more often: it answers from what is recorded, unless more has come.
    pub(crate) fn answer_parked(self: &Arc<Self>, live: &Arc<Live>) {
        let player = live.lock().player;
        let loaded = self.load(live, player);
        let reason = match loaded {
            Ok(Loaded::Closed(row)) => return self.answer_closed(live, player, &row),
            Ok(Loaded::Ready(mut body)) => {
                self.answer(live, &mut body);
                let row = self.store.run(live.no).ok().flatten();
                row.and_then(|row| row.stuck).map_or_else(String::new, |stuck| stuck.reason)
            }
            Ok(Loaded::Stuck(reason)) => reason,
            Ok(Loaded::Quarantined(row)) => return self.hold(live, &row),
            Ok(Loaded::Waits) => return self.drained(),
            Ok(Loaded::Lost) => return,
            Ok(Loaded::NotYet(_) | Loaded::Elsewhere | Loaded::Missing) => String::new(),
            Err(error) => error.to_string(),
        };
        self.end_trial(live);
        let mut state = live.lock();
        state.stage = Stage::Parked;
        let asks = std::mem::take(&mut state.asks);
        drop(state);
        for (_, ask) in asks {
            ask.refuse(EngineError::Stuck(reason.clone()));
        }
        // The moment to try it again may have passed meanwhile, and with it the alarm.
        let until = live.lock().parked_until;
        self.own_timer(until, Due::Retry(live.no));
        self.drained();
    }

    /// Writes why a run is parked, and then tells those who asked it something: whoever is told finds it so.
    fn write_stuck(self: &Arc<Self>, live: &Arc<Live>, mut stuck: Stuck, tell: impl FnOnce() + Send + 'static) {
        let run = live.no;
        let row = match self.store.run(run) {
            Ok(Some(row)) => row,
            Ok(None) => return tell(),
            Err(error) => {
                tracing::error!(%run, %error, "the run cannot be read");
                return tell();
            }
        };
        if let Some(before) = &row.stuck {
            stuck.since = before.since;
        }
        let reason = &stuck.reason;
        // Said once: a run that is tried again every minute need not say every minute what everybody knows.
        if row.stuck.as_ref().is_none_or(|before| cause_of(&before.reason) != cause_of(reason)) {
            self.tell_stuck(&row.workflow_id, &row.run_id, "it cannot go on and is parked: ", reason);
        }
        self.submit(Write::Park { run, epoch: row.epoch, stuck: Some(stuck) }, move |this, result| {
            if let Err(StoreError::Refused(_)) = result {
                this.closed_elsewhere(run);
            }
            tell();
        });
    }

    /// Results of activities that the store does not know are kept as mail, so that they need not be made again.
    pub(crate) fn keep_results(self: &Arc<Self>, live: &Arc<Live>, results: Vec<Arrival>) {
        for result in results {
            let Arrival::Result { task, seq, .. } = &result else { continue };
            let mail =
                NewMail { key: format!("task:{}", seq.0).into(), sent: self.host.now(), job: encode(result.job()) };
            let (run, ended) = (live.no, Some(*task));
            self.submit(Write::Post { run, mail, ended }, move |this, answer| match answer {
                Ok(Written::Posted(posted)) => this.deliver_posted(&posted),
                // It is over, or its run is.
                Ok(_) | Err(StoreError::Refused(_)) => {}
                Err(_) => this.with_live(run, |state| state.push(result)),
            });
        }
    }

    /// The run can be played after all, though nothing came for it.
    pub(crate) fn unpark(self: &Arc<Self>, live: Arc<Live>, body: Box<Body>) {
        let write = Write::Park { run: live.no, epoch: body.about.epoch, stuck: None };
        self.submit(write, move |this, result| match result {
            Ok(_) => {
                live.lock().unstick();
                this.rest(&live, Some(body));
                this.mark_held(live.no);
            }
            Err(StoreError::Refused(_)) => this.closed_elsewhere(live.no),
            Err(error) => {
                drop(body);
                this.retry_later(live, Vec::new(), &error);
            }
        });
    }

    /// The store is in trouble: nothing was lost, and it is tried again when there may be none.
    pub(crate) fn retry_later(self: &Arc<Self>, live: Arc<Live>, arrivals: Vec<Arrival>, error: &StoreError) {
        if let StoreError::Unavailable(_) | StoreError::Corrupt(_) = error {
            return self.halt(error.clone().into());
        }
        loud::about_engine(&format_args!(
            "the store cannot be written, and the turn of {} is played again: {error}",
            live.no
        ));
        self.end_trial(&live);
        let mut state = live.lock();
        state.put_back(arrivals);
        state.stage = Stage::Parked;
        state.strikes += 1;
        let retry = self.host.now().after(pause(state.strikes));
        drop(state);
        self.own_timer(retry, Due::Retry(live.no));
        self.drained();
    }
}

fn pause(attempts: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}
