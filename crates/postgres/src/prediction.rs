//! The facts of a group of plain turns, as they are unless something came between: the runs are open and have one turn less, and no turn
//! has taken the messages. Nothing is read beforehand, so the group is checked, written and committed in one round trip.

use std::collections::BTreeMap;

use dacapo_core::{Name, Timestamp};
use dacapo_store::{MessageNo, RunNo, RunRow, Status, TurnOf, TurnWrite, Write};

use crate::changes::{Changes, Extent};
use crate::facts::{Facts, MessageFact};
use crate::needs::Needs;
use crate::trip::{Trip, values};

/// Locks the runs, and fails if one of them is not as it was predicted.
const CHECK_RUNS: &str = "SELECT 1 / coalesce(array_agg(turns) = $2 AND array_agg(epoch) = $3 AND bool_and(status = 0), false)::integer \
     FROM (SELECT turns, epoch, status FROM runs WHERE no = ANY($1) ORDER BY no FOR UPDATE) AS locked";
/// Fails if a turn has taken one of the messages, or if it is not there. It begins after the runs are locked.
const CHECK_MESSAGES: &str = "SELECT 1 / (count(*) = cardinality($1))::integer \
     FROM unnest($1::bigint[], $2::bigint[]) AS wanted (no, run) \
     JOIN messages ON messages.no = wanted.no AND messages.run = wanted.run AND messages.taken IS NULL";

pub(crate) struct Prediction {
    pub(crate) facts: Facts,
    /// The first turn of each run in the group.
    turns: BTreeMap<RunNo, (u64, i64)>,
    messages: BTreeMap<MessageNo, RunNo>,
}

impl Prediction {
    /// Returns none if a write needs a fact that has to be read.
    pub(crate) fn of(writes: &[Write], needs: &Needs) -> Option<Self> {
        let turns: Vec<(RunNo, &TurnWrite)> = writes.iter().map(turn_of_run).collect::<Option<_>>()?;
        let Needs { runs, messages, ended_tasks, ended_activities, .. } = needs.clone();
        if *needs != (Needs { runs, messages, ended_tasks, ended_activities, ..Needs::default() }) {
            return None;
        }
        let mut prediction = Self {
            facts: Facts { asked: needs.clone(), is_predicted: true, ..Facts::default() },
            turns: BTreeMap::new(),
            messages: BTreeMap::new(),
        };
        for (run, turn) in turns {
            prediction.turns.entry(run).or_insert((turn.turn, turn.epoch.0));
            prediction.facts.runs.entry(run).or_insert_with(|| predicted(run, turn));
            for message in &turn.taken {
                prediction.messages.insert(*message, run);
                let fact = MessageFact { no: *message, run, taken: None };
                prediction.facts.messages.insert(*message, fact);
            }
        }
        Some(prediction)
    }

    /// Returns whether these changes, which were made over the predicted facts, write nothing of a run but what was predicted and the count of
    /// its turns.
    pub(crate) fn suffices_for(changes: &Changes) -> bool {
        changes.runs.values().all(|run| run.extent == Extent::Turn)
    }

    /// Adds the statements that fail if the facts are others.
    pub(crate) fn check(&self, trip: &mut Trip<'_>) {
        let runs: Vec<i64> = self.turns.keys().map(|run| run.0).collect();
        let (turns, epochs): (Vec<i64>, Vec<i64>) =
            self.turns.values().map(|(turn, epoch)| (*turn as i64, *epoch)).unzip();
        trip.step(CHECK_RUNS, values![runs, turns, epochs]);
        if !self.messages.is_empty() {
            let (messages, runs): (Vec<i64>, Vec<i64>) = self.messages.iter().map(|(no, run)| (no.0, run.0)).unzip();
            trip.step(CHECK_MESSAGES, values![messages, runs]);
        }
    }
}

fn turn_of_run(write: &Write) -> Option<(RunNo, &TurnWrite)> {
    let Write::Turn(turn) = write else { return None };
    match &turn.run {
        // What these change is written with all else of the run.
        TurnOf::Run(run) if turn.memo.is_none() && turn.published.is_none() => Some((*run, turn)),
        TurnOf::Run(_) | TurnOf::New(_) => None,
    }
}

/// Returns a run as the turn has to find it. No more of it is known, and no more is looked at.
fn predicted(run: RunNo, turn: &TurnWrite) -> RunRow {
    RunRow {
        no: run,
        run_id: Name::default(),
        workflow_id: Name::default(),
        workflow: Name::default(),
        queue: Name::default(),
        status: Status::Open,
        started: Timestamp::default(),
        closed: None,
        turns: turn.turn,
        owner: None,
        epoch: turn.epoch,
        pins: Vec::new(),
        parent: None,
        first_run_id: Name::default(),
        stuck: None,
        crash_count: turn.crash_count,
        memo: Vec::new(),
        published: None,
        result: None,
    }
}
