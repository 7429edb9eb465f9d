//! The run cache: the runs in memory, and which of them leave it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use dacapo_store::RunNo;
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{Level, meter};

use crate::options::Cache;
use crate::run::cached_run::{CachedRun, Playable, RunState};
use crate::run::message::{Request, ResetRequest};

/// The number of least recently used runs that are considered when one must leave; busy runs stay.
const LOOKED_AT: usize = 16;

/// The runs in memory.
pub(crate) struct RunCache(Mutex<CacheState>);

struct CacheState {
    map: HashMap<RunNo, (Arc<CachedRun>, u64)>,
    by_age: BTreeMap<u64, RunNo>,
    next_stamp: u64,
    /// The highest number of a run that was found in the store, and not claimed when it was committed. Groups that are
    /// committed one after the other are claimed in any order, and must not look as if they had been found.
    newest_found: RunNo,
    cache: Cache,
    dice: u64,
    /// The meter of runs in memory.
    shown: Level,
}

/// The parts of a run that was removed from memory while it was used.
pub(crate) struct Removed {
    pub(crate) run: Arc<CachedRun>,
    /// Its code, to be dropped on a thread that runs user code.
    pub(crate) playable: Option<Box<Playable>>,
    /// Requests, to be asked again of the closed run.
    pub(crate) requests: Vec<Request>,
    /// Resets, to be carried out on the closed run.
    pub(crate) resets: VecDeque<ResetRequest>,
}

impl RunCache {
    pub(crate) fn new(cache: Cache) -> Self {
        let dice = if let Cache::Random(seed) = cache { seed } else { 0 };
        let runs = CacheState {
            map: HashMap::new(),
            by_age: BTreeMap::new(),
            next_stamp: 0,
            newest_found: RunNo::default(),
            cache,
            dice,
            shown: meter::RUNS_IN_MEMORY.level(&[]),
        };
        Self(Mutex::new(ranks::RUN_CACHE, runs))
    }

    /// The run, if it is in memory.
    pub(crate) fn get(&self, no: RunNo) -> Option<Arc<CachedRun>> {
        self.0.lock().map.get(&no).map(|(run, _)| run.clone())
    }

    /// Changes the state of a run. Makes an entry if there is none. The run counts as used now.
    pub(crate) fn with<R>(&self, no: RunNo, change: impl FnOnce(&Arc<CachedRun>, &mut RunState) -> R) -> R {
        loop {
            let run = self.0.lock().get_or_create(no);
            let mut state = run.lock();
            // The run may have left between the two locks.
            if !state.is_gone {
                return change(&run, &mut state);
            }
        }
    }

    /// Claims a run that is being committed for the first time. Returns its entry, whether no other thread has it, and
    /// whether no other thread can have had it.
    pub(crate) fn claim(&self, no: RunNo, claim: impl FnOnce(&mut RunState) -> bool) -> (Arc<CachedRun>, bool, bool) {
        let mut runs = self.0.lock();
        let is_new = no > runs.newest_found && !runs.map.contains_key(&no);
        let run = runs.enter(no);
        // Still under the lock: no thread finds the entry before it is claimed.
        let is_ours = claim(&mut run.lock());
        (run, is_ours, is_new)
    }

    /// Removes a run from memory, whatever it is doing. The thread that plays it finds out when it commits.
    pub(crate) fn remove(&self, no: RunNo) -> Option<Removed> {
        self.0.lock().take_out(no)
    }

    /// Removes this entry of a run from memory, whatever it is doing. An entry that was made since stays.
    pub(crate) fn remove_entry(&self, entry: &Arc<CachedRun>) -> Option<Removed> {
        let mut runs = self.0.lock();
        let is_current = runs.map.get(&entry.no).is_some_and(|(current, _)| Arc::ptr_eq(current, entry));
        if is_current { runs.take_out(entry.no) } else { None }
    }

    /// Removes a run from memory if it holds nothing and has no work. Returns its code, to be dropped on a thread that
    /// runs user code.
    pub(crate) fn leave(&self, run: &CachedRun) -> Option<Box<Playable>> {
        let mut runs = self.0.lock();
        let mut state = run.lock();
        if state.is_gone || !state.may_leave() {
            return None;
        }
        state.is_gone = true;
        runs.remove(run.no);
        // The run may have been played meanwhile, and be playable again.
        state.playable.take()
    }

    /// Removes the run from memory that was used least recently, if there are too many.
    pub(crate) fn make_room(&self) -> Option<Arc<CachedRun>> {
        self.0.lock().make_room()
    }

    /// Whether a run that is idle stays in memory.
    pub(crate) fn keeps(&self) -> bool {
        self.0.lock().keeps()
    }

    /// All runs in memory.
    pub(crate) fn all(&self) -> Vec<Arc<CachedRun>> {
        self.0.lock().map.values().map(|(run, _)| run.clone()).collect()
    }

    /// The number of runs in memory.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().map.len()
    }
}

impl CacheState {
    /// Removes a run from the map and marks it as gone under one lock, so that no message is delivered in between.
    fn take_out(&mut self, no: RunNo) -> Option<Removed> {
        let run = self.remove(no)?;
        let mut state = run.lock();
        state.is_gone = true;
        state.stuck = None;
        let (playable, requests) = (state.playable.take(), state.take_requests());
        let resets = std::mem::take(&mut state.resets);
        drop(state);
        Some(Removed { run, playable, requests, resets })
    }

    /// The entry of a run, which counts as used now.
    fn get_or_create(&mut self, no: RunNo) -> Arc<CachedRun> {
        if !self.map.contains_key(&no) {
            self.newest_found = self.newest_found.max(no);
        }
        self.enter(no)
    }

    fn enter(&mut self, no: RunNo) -> Arc<CachedRun> {
        self.next_stamp += 1;
        let stamp = self.next_stamp;
        let entry = self.map.entry(no).or_insert_with(|| (CachedRun::new(no), stamp));
        self.by_age.remove(&std::mem::replace(&mut entry.1, stamp));
        self.by_age.insert(stamp, no);
        let run = entry.0.clone();
        self.shown.set(self.map.len());
        run
    }

    fn remove(&mut self, no: RunNo) -> Option<Arc<CachedRun>> {
        let Some((run, stamp)) = self.map.remove(&no) else {
            self.newest_found = self.newest_found.max(no);
            return None;
        };
        self.by_age.remove(&stamp);
        self.shown.set(self.map.len());
        Some(run)
    }

    fn keeps(&mut self) -> bool {
        match self.cache {
            Cache::AtMost(most) => most > 0,
            Cache::Random(_) => {
                // A linear congruential generator: any sequence will do, as long as the seed gives it.
                self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                self.dice >> 63 == 0
            }
        }
    }

    fn make_room(&mut self) -> Option<Arc<CachedRun>> {
        let Cache::AtMost(most) = self.cache else { return None };
        if self.map.len() <= most {
            return None;
        }
        let oldest: Vec<RunNo> = self.by_age.values().take(LOOKED_AT).copied().collect();
        let leaves = |run: &Arc<CachedRun>| {
            let mut state = run.lock();
            let leaves = state.may_leave();
            state.is_gone |= leaves;
            leaves
        };
        for no in oldest {
            if self.map.get(&no).is_some_and(|(run, _)| leaves(run)) {
                return self.remove(no);
            }
            // The run has to stay. It counts as used now, so that it does not stand before others that could leave.
            self.get_or_create(no);
        }
        None
    }
}
