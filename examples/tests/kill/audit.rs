//! Checks that must hold after every kill, from outside: in the file, opened for reading, and in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dacapo::{Status, WorkflowFn, WorkflowType};
use dacapo_core::{CommandKind, Job, Resolution, RunOptions, Seq, Transcript, Workflow};
use dacapo_engine::{Reader, RunDescription, RunId};
use dacapo_examples::mill::{KINDS, at_home, expected, family, fan, fed, line, nap, stubborn};
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Filter, ReadMessages, RunNo};

use crate::mill::Mill;

/// The observations of one file.
#[derive(Default)]
pub(crate) struct Audit {
    /// The histories at the last look, by run id.
    histories: BTreeMap<String, Transcript>,
    /// By the key of the activity: how many of its attempts were lost in kills.
    lost: BTreeMap<String, u64>,
    attempts: u64,
}

impl Audit {
    pub(crate) fn attempts(&self) -> u64 {
        self.attempts
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Looks at what a killed process left. Gives the number of attempts that are lost with it.
    pub(crate) fn after_a_kill(&mut self, mill: &Mill) -> u64 {
        let before = self.lost();
        let runs = match runs_of(mill) {
            Some(runs) => runs,
            // The process was killed before it had created the file.
            None => {
                assert!(self.histories.is_empty(), "the file was readable before");
                assert_eq!(mill.log(), []);
                return 0;
            }
        };
        self.look(&runs);
        self.count_lost(mill, &runs, &results_in_messages(mill));
        let lost = self.lost() - before;
        assert!(lost <= could_be_under_way(&runs), "{lost} attempts are lost in one kill");
        lost
    }

    /// Checks that stored turns are unchanged, and that results are recorded once.
    fn look(&mut self, runs: &[(RunDescription, Transcript)]) {
        for (run, history) in runs {
            let before = self.histories.insert(run.run_id.to_string(), history.clone());
            let kept = before.map_or(Vec::new(), |before| before.turns);
            assert!(history.turns.starts_with(&kept), "a stored turn of {} has changed", run.workflow_id);
            let resolved = resolved(history);
            let once: BTreeSet<Seq> = resolved.iter().copied().collect();
            assert_eq!(once.len(), resolved.len(), "{}: an operation has two results", run.workflow_id);
        }
        let seen: BTreeSet<String> = runs.iter().map(|(run, _)| run.run_id.to_string()).collect();
        assert!(self.histories.keys().all(|run_id| seen.contains(run_id)), "a stored run is gone");
    }

    /// An attempt that ran is known to the store, or lost.
    fn count_lost(&mut self, mill: &Mill, runs: &[(RunDescription, Transcript)], in_messages: &BTreeSet<(RunNo, Seq)>) {
        let mut made: BTreeMap<String, u64> = BTreeMap::new();
        for line in mill.log() {
            *made.entry(line.key).or_default() += 1;
        }
        let mut lives = BTreeSet::new();
        for line in mill.log() {
            assert!(lives.insert(line.clone()), "{line:?} was made twice in one life of a process");
        }
        for (key, made) in made {
            let [workflow_id, run_id, id] = key.split('/').collect::<Vec<_>>()[..] else { panic!("{key}") };
            let found = runs.iter().find(|(run, _)| run.workflow_id == *workflow_id && run.run_id == *run_id);
            let (run, history) = found.unwrap_or_else(|| panic!("{key}: an attempt of a run that is not stored"));
            let lost = self.lost.entry(key.clone()).or_default();
            let pending = run.pending.iter().find(|pending| pending.id == *id);
            *lost = match (pending, seq_of(history, id)) {
                (Some(pending), _) => made - u64::from(pending.attempt - 1),
                (None, Some((seq, _))) if resolved(history).contains(&seq) => *lost,
                // Its run waits for its probation: code of it was played when the last process was killed.
                (None, Some((seq, false))) if in_messages.contains(&(run.run, seq)) => *lost,
                // Local work runs before the turn that wants it is stored.
                (None, Some((_, true))) => made,
                (None, None) if run.workflow == "at_home" => made,
                _ => panic!("{key}: an attempt ran, and no stored turn wants it"),
            };
        }
    }

    /// All is done, and rightly.
    pub(crate) fn assert_done(&mut self, mill: &Mill, pieces: usize) {
        let runs = runs_of(mill).expect("the file can be read");
        self.look(&runs);
        for n in 0..pieces {
            let (kind, n) = (KINDS[n % KINDS.len()], n as u64);
            let id = format!("{kind}-{n}");
            let of_id: Vec<&RunDescription> =
                runs.iter().map(|(run, _)| run).filter(|run| run.workflow_id == *id).collect();
            let last = of_id.first().unwrap_or_else(|| panic!("{id} was never started"));
            let result = last.result.clone().unwrap().unwrap();
            assert_eq!(
                (last.status, dacapo::decode::<u64>(&result)),
                (Status::Completed, Ok(expected(kind, n))),
                "{id}"
            );
            assert_eq!(of_id.len(), if kind == "fed" { 3 } else { 1 }, "{id}: runs of its chain");
        }
        let is_piece =
            |run: &RunDescription| (0..pieces).any(|n| run.workflow_id == *format!("{}-{n}", KINDS[n % KINDS.len()]));
        let children = runs.iter().filter(|(run, _)| !is_piece(run)).count();
        assert_eq!(children, 2 * (0..pieces).filter(|n| KINDS[n % KINDS.len()] == "family").count());
        assert!(runs.iter().all(|(run, _)| !run.status.is_open() && run.pending.is_empty()));
        for (run, history) in &runs {
            let replayed = history.replay(&workflow(&run.workflow), RunOptions::default());
            assert!(replayed.is_ok(), "{}: {:?}", run.workflow_id, replayed.err());
            let drawn = history.turns.iter().any(|turn| turn.choices.is_some());
            assert_eq!(drawn, run.workflow == "fan", "{}: choices are stored", run.workflow_id);
        }
        self.balance(mill);
    }

    /// Attempts made = attempts known + attempts lost, for every activity.
    fn balance(&mut self, mill: &Mill) {
        let mut made: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for line in mill.log() {
            made.entry(line.key).or_default().push(line.attempt);
        }
        for (key, made) in made {
            let known: BTreeSet<u32> = made.iter().copied().collect();
            let lost = self.lost.get(&key).copied().unwrap_or(0);
            assert_eq!(made.len() as u64, known.len() as u64 + lost, "{key}: attempts {made:?}, {lost} lost in kills");
            self.attempts += made.len() as u64;
        }
    }
}

/// How many attempts can have run without the store knowing: one of each activity that is pending, since the next result
/// of a run comes after the turn that the last one caused. Turns of local work alone are stored together.
fn could_be_under_way(runs: &[(RunDescription, Transcript)]) -> u64 {
    let locals = |run: &RunDescription| if run.workflow == "at_home" && run.status.is_open() { 4 } else { 0 };
    runs.iter().map(|(run, _)| run.pending.len() as u64 + locals(run)).sum()
}

/// All runs of the file, newest first, with their histories; none if there is no file yet.
fn runs_of(mill: &Mill) -> Option<Vec<(RunDescription, Transcript)>> {
    let reader = Reader::new(Arc::new(SqliteStore::open_read_only(&mill.file()).ok()?));
    let runs = reader.list(&Filter::default(), None, 1_000).unwrap();
    let with_history = |run: RunDescription| {
        let of = RunId { workflow_id: run.workflow_id, run_id: Some(run.run_id) };
        (reader.describe(&of).unwrap(), reader.history(&of).unwrap())
    };
    Some(runs.into_iter().map(with_history).collect())
}

/// Results of activities that no turn has taken yet.
fn results_in_messages(mill: &Mill) -> BTreeSet<(RunNo, Seq)> {
    let store = SqliteStore::open_read_only(&mill.file()).unwrap();
    let runs = store.with_unseen_messages(usize::MAX >> 1).unwrap();
    let messages = runs.into_iter().flat_map(|run| store.unseen(run).unwrap());
    messages
        .filter_map(|message| Some((message.run, Seq(message.key.strip_prefix("task:")?.parse().unwrap()))))
        .collect()
}

/// The number of the activity with this id, and whether it is local.
fn seq_of(history: &Transcript, id: &str) -> Option<(Seq, bool)> {
    let commands = history.turns.iter().flat_map(|turn| &turn.commands);
    commands
        .filter_map(|command| match &command.kind {
            CommandKind::Activity(command) => Some((command.id.to_string(), command.seq, false)),
            CommandKind::LocalActivity(command) => Some((command.id.to_string(), command.seq, true)),
            _ => None,
        })
        .find(|(of, _, _)| of == id)
        .map(|(_, seq, local)| (seq, local))
}

/// Returns the operations that have a result, once for each time it was recorded.
fn resolved(history: &Transcript) -> Vec<Seq> {
    let jobs = history.turns.iter().flat_map(|turn| &turn.jobs);
    jobs.filter_map(|job| match job {
        Job::Resolve { resolution: Resolution::ChildStarted(_), .. } => None,
        Job::Resolve { seq, .. } => Some(*seq),
        _ => None,
    })
    .collect()
}

fn workflow(name: &str) -> Workflow {
    fn of<F: WorkflowFn<P>, P>(_: F) -> Workflow {
        F::Workflow::definition().workflow
    }
    match name {
        "line" => of(line),
        "fan" => of(fan),
        "nap" => of(nap),
        "stubborn" => of(stubborn),
        "family" => of(family),
        "at_home" => of(at_home),
        "fed" => of(fed),
        other => panic!("{other} is no workflow of the mill"),
    }
}
