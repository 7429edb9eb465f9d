//! The runs in memory, and which of them leave it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dacapo_store::RunNo;
use dacapo_worker::{Level, meter};

use crate::Cache;
use crate::run::cached_run::{Live, LiveState, Stage};

/// How many of the oldest are looked at when one must go; those that are busy stay.
const LOOKED_AT: usize = 16;

pub(crate) struct Runs {
    map: HashMap<RunNo, (Arc<Live>, u64)>,
    by_age: BTreeMap<u64, RunNo>,
    next_stamp: u64,
    /// The highest number that anybody here had to do with.
    newest: RunNo,
    cache: Cache,
    dice: u64,
    /// How many there are, for whoever measures.
    shown: Level,
}

impl Runs {
    pub(crate) fn new(cache: Cache) -> Self {
        let dice = if let Cache::Random(seed) = cache { seed } else { 0 };
        Self {
            map: HashMap::new(),
            by_age: BTreeMap::new(),
            next_stamp: 0,
            newest: RunNo::default(),
            cache,
            dice,
            shown: meter::RUNS_IN_MEMORY.level(&[]),
        }
    }

    /// The run, which counts as used now.
    pub(crate) fn get_or_create(&mut self, no: RunNo) -> Arc<Live> {
        self.newest = self.newest.max(no);
        let stamp = self.stamp(no);
        let entry = self.map.entry(no).or_insert_with(|| (Live::new(no, LiveState::default()), stamp));
        self.by_age.remove(&std::mem::replace(&mut entry.1, stamp));
        self.by_age.insert(stamp, no);
        let live = entry.0.clone();
        self.shown.set(self.map.len());
        live
    }

    /// Whether nobody here can have had to do with this run before.
    pub(crate) fn is_new(&self, no: RunNo) -> bool {
        no > self.newest
    }

    fn stamp(&mut self, no: RunNo) -> u64 {
        self.next_stamp += 1;
        self.by_age.insert(self.next_stamp, no);
        self.next_stamp
    }

    pub(crate) fn get(&self, no: RunNo) -> Option<Arc<Live>> {
        self.map.get(&no).map(|(live, _)| live.clone())
    }

    pub(crate) fn remove(&mut self, no: RunNo) -> Option<Arc<Live>> {
        self.newest = self.newest.max(no);
        let (live, stamp) = self.map.remove(&no)?;
        self.by_age.remove(&stamp);
        self.shown.set(self.map.len());
        Some(live)
    }

    /// Whether a run that is at rest stays in memory.
    pub(crate) fn keeps(&mut self) -> bool {
        match self.cache {
            Cache::AtMost(most) => most > 0,
            Cache::Random(_) => {
                // A linear congruential generator: any sequence will do, as long as the seed gives it.
                self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                self.dice >> 63 == 0
            }
        }
    }

    /// Takes the run that was used least recently out of memory, if there are too many.
    pub(crate) fn make_room(&mut self) -> Option<Arc<Live>> {
        let Cache::AtMost(most) = self.cache else { return None };
        if self.map.len() <= most {
            return None;
        }
        let oldest: Vec<RunNo> = self.by_age.values().take(LOOKED_AT).copied().collect();
        let at_rest = |live: &Arc<Live>| {
            let mut state = live.lock();
            let at_rest = state.stage == Stage::Idle && !state.has_work() && may_leave(&state);
            state.gone |= at_rest;
            at_rest
        };
        for no in oldest {
            if self.map.get(&no).is_some_and(|(live, _)| at_rest(live)) {
                return self.remove(no);
            }
            // It has to stay, and must not stand before others that could go.
            self.get_or_create(no);
        }
        None
    }

    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.map.values().map(|(live, _)| live.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }
}

/// One that is on trial is waited for by the next.
pub(crate) fn may_leave(state: &LiveState) -> bool {
    holds_nothing(state) && state.on_trial.is_none()
}

pub(crate) fn holds_nothing(state: &LiveState) -> bool {
    state.uncommitted.is_empty() && state.body.as_ref().is_none_or(|body| body.held.is_empty())
}
