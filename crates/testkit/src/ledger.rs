//! The attempts made, and what the store knew of them when a process died: this gives the count of lost attempts.
//!
//! An attempt that ran and whose outcome, a result or a stored failure, is not stored will be made again. There may be
//! no other repetition, so at the end of a test: attempts made = attempts known + attempts lost.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_core::{CommandKind, Job, Name, Seq, Transcript};
use dacapo_engine::{ActivityState, Reader, RunId};
use dacapo_store::Store;
use dacapo_worker::ActivityInfo;
use parking_lot::{Mutex, MutexGuard};

/// The attempts of a test. The ledger outlives processes.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<BTreeMap<Key, Entry>>);

/// The key of an activity: workflow id, run id, its id within the run.
type Key = (Name, Name, Name);

#[derive(Debug, Default)]
struct Entry {
    /// How often the activity's code was run.
    made: u64,
    /// The attempts by their numbers. AttemptCounts of one number are one attempt that had to be made again.
    numbers: BTreeSet<u32>,
    /// How many attempts were lost with the processes that made them.
    lost: u64,
}

/// The numbers of attempts in a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// How often the code of an activity was run.
    pub made: u64,
    /// The number of attempts by their numbers: what it would have been if no process had died.
    pub known: u64,
    /// The number of attempts that had run when a process died and of which the store knew nothing then.
    pub lost: u64,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.0.lock()
    }

    /// Counts an attempt whose code is about to run.
    pub(crate) fn made(&self, info: &ActivityInfo) {
        let key = (info.workflow_id.clone(), info.run_id.clone(), info.activity_id.clone());
        let mut entries = self.lock();
        let entry = entries.entry(key).or_default();
        entry.made += 1;
        entry.numbers.insert(info.attempt);
    }

    /// Counts attempts as lost that ran in the process that died and that its store does not know.
    pub(crate) fn count_lost(&self, store: &std::sync::Arc<dyn Store>) {
        let reader = Reader::new(store.clone());
        for ((workflow_id, run_id, id), entry) in self.lock().iter_mut() {
            let run = RunId { workflow_id: workflow_id.clone(), run_id: Some(run_id.clone()) };
            let known = match (reader.history(&run), reader.describe(&run)) {
                (Ok(history), Ok(described)) => {
                    let pending = described.pending.iter().find(|pending| pending.id == *id);
                    match pending {
                        // An attempt that is completed externally is not made again.
                        Some(pending) if pending.state == ActivityState::External => Some(u64::from(pending.attempt)),
                        Some(pending) => Some(u64::from(pending.attempt - 1)),
                        // An activity that has its result, or was cancelled, is not tried again.
                        None => (!is_open_local_work(&history, id)).then_some(entry.made - entry.lost),
                    }
                }
                _ => None,
            };
            entry.lost = entry.made - known.unwrap_or(0);
        }
    }

    pub(crate) fn attempts(&self) -> AttemptCounts {
        self.lock().values().fold(AttemptCounts::default(), |sum, entry| AttemptCounts {
            made: sum.made + entry.made,
            known: sum.known + entry.numbers.len() as u64,
            lost: sum.lost + entry.lost,
        })
    }
}

/// Returns whether local work has no result yet. It is in no row of the store: only the history has its result. Work
/// that no turn has committed yet is open as well.
fn is_open_local_work(history: &Transcript, id: &Name) -> bool {
    let mut seq = None;
    for turn in &history.turns {
        for command in &turn.commands {
            match &command.kind {
                CommandKind::Activity(command) if command.id.to_string() == *id.as_str() => return false,
                CommandKind::LocalActivity(command) if command.id.to_string() == *id.as_str() => {
                    seq = Some(command.seq)
                }
                CommandKind::SideEffect(command) if command.id.to_string() == *id.as_str() => seq = Some(command.seq),
                _ => {}
            }
        }
    }
    seq.is_none_or(|seq| !resolved(history).contains(&seq))
}

/// Returns the operations that have a result in a history, once for each time it was recorded.
fn resolved(history: &Transcript) -> Vec<Seq> {
    let jobs = history.turns.iter().flat_map(|turn| &turn.jobs);
    let seqs = jobs.filter_map(|job| match job {
        Job::Resolve { seq, resolution, .. } if !matches!(resolution, dacapo_core::Resolution::ChildStarted(_)) => {
            Some(*seq)
        }
        _ => None,
    });
    seqs.collect()
}

/// Panics if a history holds two results of one operation.
#[track_caller]
pub(crate) fn assert_recorded_once(history: &Transcript) {
    let seqs = resolved(history);
    let once: BTreeSet<Seq> = seqs.iter().copied().collect();
    assert_eq!(once.len(), seqs.len(), "an operation has two results in the history:\n{}", history.to_text());
}
