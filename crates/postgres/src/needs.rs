//! What has to be locked and read before a group of writes can be applied.

use std::collections::BTreeSet;

use dacapo_core::{IdReuse, Name, Seq, Target};
use dacapo_store::{CrashCount, MessageNo, NewRun, RunNo, TaskNo, TurnOf, TurnWrite, Write};

/// The rows that a group reads. Rows of runs, and the ids of workflows and requests, are locked; what belongs to a run
/// changes only under the lock of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Runs by their numbers.
    pub(crate) runs: BTreeSet<RunNo>,
    /// Workflow ids whose open run is wanted.
    pub(crate) workflow_ids: BTreeSet<Name>,
    /// Workflow ids whose last run is wanted.
    pub(crate) last_runs: BTreeSet<Name>,
    /// Requests whose run is wanted.
    pub(crate) requests: BTreeSet<Name>,
    /// Run ids that may be in use.
    pub(crate) run_ids: BTreeSet<Name>,
    /// Ranges of numbers of runs, of which the highest is wanted.
    pub(crate) ranges: BTreeSet<(RunNo, RunNo)>,
    /// Runs whose parent and whose open children are wanted, because they close.
    pub(crate) closing: BTreeSet<RunNo>,
    pub(crate) tasks: BTreeSet<TaskNo>,
    /// Tasks that are ended and not read. They are locked where others are read.
    pub(crate) ended_tasks: BTreeSet<TaskNo>,
    pub(crate) ended_activities: BTreeSet<(RunNo, Seq)>,
    pub(crate) messages: BTreeSet<MessageNo>,
    /// Messages by run and key.
    pub(crate) keys: BTreeSet<(RunNo, Name)>,
    /// Messages by the workflow id of an open run, and key.
    pub(crate) keys_of_ids: BTreeSet<(Name, Name)>,
    /// Messages whose job is wanted.
    pub(crate) jobs: BTreeSet<(RunNo, Name)>,
    /// Runs whose unseen messages are counted.
    pub(crate) unseen: BTreeSet<RunNo>,
    /// Records of turns.
    pub(crate) turns: BTreeSet<(RunNo, u64)>,
    /// How many new numbers of runs and messages may be used.
    pub(crate) numbers: usize,
    /// How many rows of deleted runs are to be removed.
    pub(crate) sweep: Option<usize>,
}

impl Needs {
    /// Returns what these writes read as far as it can be told beforehand. What is missed is found when they are
    /// applied, and costs one more round trip.
    pub(crate) fn of(writes: &[Write]) -> Self {
        let mut needs = Self::default();
        writes.iter().for_each(|write| needs.add(write));
        needs
    }

    /// Adds what another attempt has found to be missing.
    pub(crate) fn extend(&mut self, missing: Self) {
        self.runs.extend(missing.runs);
        self.workflow_ids.extend(missing.workflow_ids);
        self.last_runs.extend(missing.last_runs);
        self.requests.extend(missing.requests);
        self.run_ids.extend(missing.run_ids);
        self.ranges.extend(missing.ranges);
        self.closing.extend(missing.closing);
        self.tasks.extend(missing.tasks);
        self.ended_tasks.extend(missing.ended_tasks);
        self.ended_activities.extend(missing.ended_activities);
        self.messages.extend(missing.messages);
        self.keys.extend(missing.keys);
        self.keys_of_ids.extend(missing.keys_of_ids);
        self.jobs.extend(missing.jobs);
        self.unseen.extend(missing.unseen);
        self.turns.extend(missing.turns);
        self.numbers += missing.numbers;
        self.sweep = self.sweep.or(missing.sweep);
    }

    /// Returns how many ids of workflows and requests are locked at most.
    pub(crate) fn ids(&self) -> usize {
        self.workflow_ids.len() + self.last_runs.len() + self.requests.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, write: &Write) {
        match write {
            Write::Start(new) => self.add_start(new),
            Write::Turn(turn) => self.add_turn(turn),
            Write::Send { run, message, ended } => {
                self.runs.insert(*run);
                self.keys.insert((*run, message.key.clone()));
                self.unseen.insert(*run);
                self.tasks.extend(ended);
                self.numbers += 1;
            }
            Write::Settle { run, messages, .. } => {
                self.runs.insert(*run);
                self.messages.extend(messages.iter().map(|(no, _, _)| *no));
            }
            Write::Attempt(attempt) => drop(self.tasks.insert(attempt.task)),
            Write::CrashCounts(all) => {
                for count in all {
                    match count {
                        CrashCount::Died { run, .. } | CrashCount::Run { run, .. } | CrashCount::Cleared(run) => {
                            self.runs.insert(*run);
                        }
                        CrashCount::Task { task, .. } => drop(self.tasks.insert(*task)),
                    }
                }
            }
            Write::Close { run, .. } => {
                self.runs.insert(*run);
                self.closing.insert(*run);
                self.numbers += 1;
            }
            Write::Reset(reset) => {
                self.runs.insert(reset.from);
                self.closing.insert(reset.from);
                self.add_start(&reset.new);
                self.numbers += reset.messages.len() + reset.taken.len();
            }
            Write::Expire { runs, .. } => self.runs.extend(runs),
            Write::Import(import) => {
                self.run_ids.insert(import.run.run_id.clone());
                self.requests.extend(import.belongings.request.clone());
                self.last_runs.insert(import.run.workflow_id.clone());
                self.numbers += 1 + import.belongings.messages.len();
            }
            Write::Sweep { most } => self.sweep = Some(*most),
            Write::Forget { run, .. }
            | Write::SetStuck { run, .. }
            | Write::Delete { run }
            | Write::Own { run, .. } => {
                self.runs.insert(*run);
            }
            // What a write that is new here reads is found when it is applied.
            _ => {}
        }
    }

    fn add_start(&mut self, new: &NewRun) {
        self.workflow_ids.insert(new.workflow_id.clone());
        self.requests.extend(new.request.clone());
        if matches!(new.reuse, IdReuse::RejectDuplicate | IdReuse::AllowDuplicateFailedOnly) {
            self.last_runs.insert(new.workflow_id.clone());
        }
        // The run and its start.
        self.numbers += 2;
    }

    fn add_turn(&mut self, turn: &TurnWrite) {
        let run = match &turn.run {
            TurnOf::New(new) => {
                self.add_start(new);
                None
            }
            TurnOf::Run(run) => {
                self.runs.insert(*run);
                Some(*run)
            }
        };
        self.messages.extend(&turn.taken);
        self.ended_tasks.extend(&turn.ended_tasks);
        if let Some(run) = run {
            self.ended_activities.extend(turn.ended_activities.iter().map(|seq| (run, *seq)));
        }
        for (seq, child) in &turn.children {
            self.add_start(child);
            self.numbers += 1;
            self.keys.extend(run.map(|run| (run, Name::from(format!("child-start:{}", seq.0)))));
        }
        for send in &turn.sends {
            let (Target::Workflow { workflow_id, .. } | Target::Child { workflow_id }) = &send.to;
            self.workflow_ids.insert(workflow_id.clone());
            self.keys_of_ids.insert((workflow_id.clone(), send.message.key.clone()));
            self.numbers += 2;
            if let (Some(run), Some(seq)) = (run, send.seq) {
                self.keys.insert((run, Name::from(format!("sent:{}", seq.0))));
            }
        }
        if let Some(closing) = &turn.close {
            if let Some(run) = run {
                self.unseen.insert(run);
                self.closing.insert(run);
            }
            self.numbers += usize::from(closing.to_parent.is_some()) + closing.carried.len();
            if let Some(next) = &closing.next {
                self.add_start(next);
            }
        }
    }
}
