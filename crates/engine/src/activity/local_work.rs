//! Local work that runs in this process: local activities and side effects. It is in no row of the store.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use dacapo_core::{Name, Seq};
use dacapo_store::RunNo;
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::AttemptHandle;

use crate::host::Steady;
use crate::timer::wheel::AlarmNo;

type Key = (RunNo, Seq);

/// The local work of all runs.
pub(crate) struct LocalWork(Mutex<BTreeMap<Key, LocalAttempt>>);

struct LocalAttempt {
    attempt: u32,
    /// None between two attempts.
    handle: Option<AttemptHandle>,
    /// The alarms of its timeouts. A replay counts attempts from 1 again, so an old alarm must not find a new attempt.
    alarms: Vec<AlarmNo>,
    /// When all attempts together must have ended. Kept from the first attempt to the last, so that a step of the clock
    /// moves nothing.
    over: Option<Steady>,
}

/// The result of cancelling local work.
pub(crate) enum CancelledLocal {
    /// The attempt is asked to stop, and the workflow waits for its outcome.
    Ask(AttemptHandle),
    /// The attempt is given up: the workflow does not wait for its outcome.
    GiveUp(AttemptHandle),
    Nothing,
}

impl LocalWork {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::LOCAL_WORK, BTreeMap::new()))
    }

    /// Notes an attempt that begins. Returns the alarms of the attempt before it, which are not needed any more.
    pub(crate) fn begin(
        &self,
        (run, seq, attempt): (RunNo, Seq, u32),
        handle: AttemptHandle,
        over: Option<Steady>,
    ) -> Vec<AlarmNo> {
        let running = LocalAttempt { attempt, handle: Some(handle), alarms: Vec::new(), over };
        self.0.lock().insert((run, seq), running).map(|before| before.alarms).unwrap_or_default()
    }

    /// Notes the alarms of an attempt that has begun. Returns those that are not needed: all, if it has ended
    /// meanwhile.
    pub(crate) fn set_alarms(&self, run: RunNo, seq: Seq, attempt: u32, alarms: Vec<AlarmNo>) -> Vec<AlarmNo> {
        match self.0.lock().get_mut(&(run, seq)).filter(|running| running.attempt == attempt) {
            Some(running) => std::mem::replace(&mut running.alarms, alarms),
            None => alarms,
        }
    }

    /// Whether the work is known here, in an attempt or between two.
    pub(crate) fn is_known(&self, run: RunNo, seq: Seq) -> bool {
        self.0.lock().contains_key(&(run, seq))
    }

    /// Whether this attempt is the current one, which runs or comes next.
    pub(crate) fn is_current(&self, run: RunNo, seq: Seq, attempt: u32) -> bool {
        self.0.lock().get(&(run, seq)).is_some_and(|running| running.attempt == attempt)
    }

    /// Takes the alarms of work whose attempt has ended.
    pub(crate) fn take_alarms(&self, run: RunNo, seq: Seq) -> Vec<AlarmNo> {
        self.0.lock().get_mut(&(run, seq)).map(|running| std::mem::take(&mut running.alarms)).unwrap_or_default()
    }

    /// Takes the handle of an attempt that has timed out.
    pub(crate) fn take_timed_out(&self, run: RunNo, seq: Seq, attempt: u32) -> Option<AttemptHandle> {
        let mut all = self.0.lock();
        all.get_mut(&(run, seq)).filter(|running| running.attempt == attempt)?.handle.take()
    }

    /// Notes an attempt that cannot begin, so that it ends like any other.
    pub(crate) fn expect(&self, (run, seq, attempt): (RunNo, Seq, u32), over: Option<Steady>) {
        self.0.lock().insert((run, seq), LocalAttempt { attempt, handle: None, alarms: Vec::new(), over });
    }

    /// Ends this attempt; another follows after a pause. Returns the next attempt's number, none if the work was given
    /// up.
    pub(crate) fn wait_for_next(&self, run: RunNo, seq: Seq, attempt: u32) -> Option<u32> {
        let mut all = self.0.lock();
        let running = all.get_mut(&(run, seq)).filter(|running| running.attempt == attempt)?;
        (running.attempt, running.handle) = (attempt + 1, None);
        Some(running.attempt)
    }

    /// When all attempts of work that is known here must have ended.
    pub(crate) fn over(&self, run: RunNo, seq: Seq) -> Option<Steady> {
        self.0.lock().get(&(run, seq)).and_then(|running| running.over)
    }

    /// Removes the work, of which this attempt was the last.
    pub(crate) fn end(&self, run: RunNo, seq: Seq, attempt: u32) {
        let mut all = self.0.lock();
        if all.get(&(run, seq)).is_some_and(|running| running.attempt == attempt) {
            all.remove(&(run, seq));
        }
    }

    /// Cancels work that the workflow no longer wants, and removes it unless the workflow waits for its outcome.
    pub(crate) fn cancel(&self, run: RunNo, seq: Seq, waits: bool) -> CancelledLocal {
        let mut all = self.0.lock();
        let handle = match waits {
            true => all.get(&(run, seq)).and_then(|running| running.handle.clone()),
            false => all.remove(&(run, seq)).and_then(|running| running.handle),
        };
        match handle {
            Some(handle) if waits => CancelledLocal::Ask(handle),
            Some(handle) => CancelledLocal::GiveUp(handle),
            None => CancelledLocal::Nothing,
        }
    }

    /// Removes all work of a run, and returns the handles of its attempts.
    pub(crate) fn take_run(&self, run: RunNo) -> Vec<AttemptHandle> {
        let mut all = self.0.lock();
        let keys: Vec<Key> = all.range(of_run(run)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| all.remove(key)?.handle).collect()
    }

    /// Removes the work that runs for a queue, and returns the handles of its attempts.
    pub(crate) fn take_queue(&self, queue: &Name) -> Vec<AttemptHandle> {
        let mut all = self.0.lock();
        let is_of_queue =
            |running: &LocalAttempt| running.handle.as_ref().is_some_and(|handle| handle.ctx().info().queue == *queue);
        let keys: Vec<Key> = all.iter().filter(|(_, running)| is_of_queue(running)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| all.remove(key)?.handle).collect()
    }

    /// Removes all work, and returns the handles of its attempts.
    pub(crate) fn take_all(&self) -> Vec<AttemptHandle> {
        std::mem::take(&mut *self.0.lock()).into_values().filter_map(|running| running.handle).collect()
    }

    /// The handles of all attempts that run.
    pub(crate) fn handles(&self) -> Vec<AttemptHandle> {
        self.0.lock().values().filter_map(|running| running.handle.clone()).collect()
    }

    /// Whether no attempt runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.lock().values().all(|running| running.handle.is_none())
    }

    /// Whether an attempt of this run runs and is not given up.
    pub(crate) fn is_running(&self, run: RunNo) -> bool {
        let is_wanted = |handle: &AttemptHandle| !handle.is_given_up();
        self.0.lock().range(of_run(run)).any(|(_, running)| running.handle.as_ref().is_some_and(is_wanted))
    }
}

fn of_run(run: RunNo) -> RangeInclusive<Key> {
    (run, Seq(0))..=(run, Seq(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunNo = RunNo(1);
    const SEQ: Seq = Seq(0);

    /// An attempt that failed while its run was closed used to be made again, for ever.
    #[test]
    fn another_attempt_follows_only_if_the_work_is_still_wanted() {
        let local = LocalWork::new();
        local.expect((RUN, SEQ, 1), None);
        assert_eq!(local.wait_for_next(RUN, SEQ, 1), Some(2));
        assert_eq!(local.wait_for_next(RUN, SEQ, 1), None, "that attempt is over");
        local.take_run(RUN);
        assert_eq!(local.wait_for_next(RUN, SEQ, 2), None);
        assert!(!local.is_known(RUN, SEQ));
    }
}
