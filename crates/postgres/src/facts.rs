//! What was locked and read for a group of writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use dacapo_core::{Name, ParentClose};
use dacapo_store::{MessageNo, RunNo, RunRow, StoreError, TaskNo, TaskRow};
use tokio_postgres::Row;

use crate::needs::Needs;
use crate::row::{self, get, name};
use crate::trip::{Trip, values};

type Result<T> = std::result::Result<T, StoreError>;

const BY_NUMBER: &str = "SELECT {columns}, request FROM runs WHERE no = ANY($1) ORDER BY no FOR UPDATE";

/// Rows of runs by their numbers, workflow ids and requests, and the parents and children of those that close. A row
/// that another transaction changes meanwhile is read again once it is locked.
const BY_ALL: &str = "WITH wanted AS MATERIALIZED ( \
     SELECT unnest($1::bigint[]) AS no \
     UNION SELECT runs.no FROM unnest($2::text[]) AS id JOIN runs ON runs.workflow_id = id AND runs.status = 0 \
     UNION SELECT (SELECT max(runs.no) FROM runs WHERE runs.workflow_id = id) FROM unnest($3::text[]) AS id \
     UNION SELECT runs.no FROM unnest($4::text[]) AS id JOIN runs ON runs.request = id \
     UNION SELECT runs.parent FROM runs WHERE runs.no = ANY($5) \
     UNION SELECT runs.no FROM unnest($5::bigint[]) AS closing JOIN runs ON runs.parent = closing AND runs.status = 0) \
     SELECT {columns}, request FROM runs WHERE no IN (SELECT no FROM wanted) ORDER BY no FOR UPDATE";

const CHILDREN: &str = "SELECT runs.parent, runs.no, runs.parent_close FROM unnest($1::bigint[]) AS closing \
     JOIN runs ON runs.parent = closing AND runs.status = 0 ORDER BY runs.no";
const LAST_RUNS: &str =
    "SELECT id, (SELECT max(runs.no) FROM runs WHERE runs.workflow_id = id) FROM unnest($1::text[]) AS id";
const RUN_IDS: &str = "SELECT runs.run_id, runs.no FROM unnest($1::text[]) AS id JOIN runs ON runs.run_id = id";
const RANGES: &str = "SELECT low, high, (SELECT max(no) FROM (SELECT max(no) AS no FROM runs WHERE no >= low AND no < high \
     UNION ALL SELECT max(run) FROM garbage WHERE run >= low AND run < high) AS found) \
     FROM unnest($1::bigint[], $2::bigint[]) AS range (low, high)";
/// All tasks that the group locks, also those that it only ends: they are locked in the order of their numbers, so that no two
/// transactions wait for each other.
const TASKS: &str = "SELECT {columns} FROM tasks WHERE no IN (SELECT unnest($1::bigint[]) \
     UNION ALL SELECT tasks.no FROM unnest($2::bigint[], $3::bigint[]) AS ended (run, seq) \
     JOIN tasks ON tasks.run = ended.run AND tasks.seq = ended.seq \
     UNION ALL SELECT tasks.no FROM unnest($4::bigint[]) AS closing JOIN tasks ON tasks.run = closing) \
     ORDER BY no FOR UPDATE";
const MESSAGES: &str = "SELECT no, run, taken FROM messages WHERE no = ANY($1)";
const KEYS: &str = "SELECT messages.no, messages.run, messages.key, messages.taken \
     FROM unnest($1::bigint[], $2::text[]) AS wanted (run, key) \
     JOIN messages ON messages.run = wanted.run AND messages.key = wanted.key";
const KEYS_OF_IDS: &str = "SELECT messages.no, messages.run, messages.key, messages.taken \
     FROM unnest($1::text[], $2::text[]) AS wanted (id, key) \
     JOIN runs ON runs.workflow_id = wanted.id AND runs.status = 0 \
     JOIN messages ON messages.run = runs.no AND messages.key = wanted.key";
const KEYS_OF_PARENTS: &str = "SELECT messages.no, messages.run, messages.key, messages.taken \
     FROM unnest($1::bigint[]) AS closing JOIN runs ON runs.no = closing \
     JOIN messages ON messages.run = runs.parent AND messages.key = 'child:' || runs.run_id";
const JOBS: &str = "SELECT messages.run, messages.key, messages.job \
     FROM unnest($1::bigint[], $2::text[]) AS wanted (run, key) \
     JOIN messages ON messages.run = wanted.run AND messages.key = wanted.key";
const UNSEEN: &str = "SELECT wanted, (SELECT count(*) FROM messages WHERE messages.run = wanted AND messages.taken IS NULL) \
     FROM unnest($1::bigint[]) AS wanted";
const TURNS: &str = "SELECT turns.run, turns.turn, turns.record FROM unnest($1::bigint[], $2::bigint[]) AS wanted (run, turn) \
     JOIN turns ON turns.run = wanted.run AND turns.turn = wanted.turn";
/// Under the locks, so that the numbers of one run's messages, and of one workflow id's runs, rise with the commits.
const NUMBERS: &str = "SELECT nextval('numbers') FROM generate_series(1, $1::bigint)";

/// A stored message, as far as it matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFact {
    pub(crate) no: MessageNo,
    pub(crate) run: RunNo,
    pub(crate) taken: Option<u64>,
}

/// The rows that were found. A row that was asked for and is not here does not exist.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) asked: Needs,
    /// Whether nothing was read: of the runs is known only what a turn has to find.
    pub(crate) is_predicted: bool,
    pub(crate) runs: HashMap<RunNo, RunRow>,
    pub(crate) open: BTreeMap<Name, RunNo>,
    pub(crate) last: BTreeMap<Name, RunNo>,
    pub(crate) requests: BTreeMap<Name, RunNo>,
    pub(crate) run_ids: BTreeMap<Name, RunNo>,
    pub(crate) ranges: HashMap<(RunNo, RunNo), RunNo>,
    pub(crate) children: HashMap<RunNo, Vec<(RunNo, ParentClose)>>,
    pub(crate) tasks: HashMap<TaskNo, TaskRow>,
    pub(crate) messages: HashMap<MessageNo, MessageFact>,
    pub(crate) keys: BTreeMap<(RunNo, Name), MessageFact>,
    /// The keys at parents that were looked up because a child closes.
    pub(crate) parent_keys: BTreeSet<(RunNo, Name)>,
    pub(crate) jobs: BTreeMap<(RunNo, Name), Vec<u8>>,
    pub(crate) unseen: HashMap<RunNo, usize>,
    pub(crate) turns: HashMap<(RunNo, u64), Vec<u8>>,
    pub(crate) numbers: Vec<i64>,
    /// Whether a sweep left rows of deleted runs, if there was one.
    pub(crate) swept: Option<bool>,
}

/// The places of the statements that read facts, in a trip that does more than that.
pub(crate) struct Reading {
    needs: Needs,
    places: Vec<(Kind, usize)>,
}

#[derive(Clone, Copy)]
enum Kind {
    Runs,
    Children,
    LastRuns,
    RunIds,
    Ranges,
    Tasks,
    Messages,
    Keys,
    Jobs,
    Unseen,
    Turns,
    Numbers,
}

fn texts<'n>(names: impl IntoIterator<Item = &'n Name>) -> Vec<&'n str> {
    names.into_iter().map(Name::as_str).collect()
}

fn numbers<'n>(runs: impl IntoIterator<Item = &'n RunNo>) -> Vec<i64> {
    runs.into_iter().map(|run| run.0).collect()
}

fn pairs(pairs: &BTreeSet<(RunNo, Name)>) -> (Vec<i64>, Vec<&str>) {
    pairs.iter().map(|(run, key)| (run.0, key.as_str())).unzip()
}

impl Reading {
    /// Adds the statements that lock and read these rows.
    pub(crate) fn begin<'n>(needs: &'n Needs, trip: &mut Trip<'n>) -> Self {
        let mut places = Vec::new();
        let mut add = |kind, place| places.push((kind, place));
        let is_by_number = needs.workflow_ids.is_empty()
            && needs.last_runs.is_empty()
            && needs.requests.is_empty()
            && needs.closing.is_empty();
        if is_by_number {
            if !needs.runs.is_empty() {
                let sql = BY_NUMBER.replace("{columns}", row::run::COLUMNS);
                add(Kind::Runs, trip.step(sql, values![numbers(&needs.runs)]));
            }
        } else {
            let sql = BY_ALL.replace("{columns}", row::run::COLUMNS);
            let values = values![
                numbers(&needs.runs),
                texts(&needs.workflow_ids),
                texts(&needs.last_runs),
                texts(&needs.requests),
                numbers(&needs.closing)
            ];
            add(Kind::Runs, trip.step(sql, values));
        }
        if !needs.closing.is_empty() {
            add(Kind::Children, trip.step(CHILDREN, values![numbers(&needs.closing)]));
            add(Kind::Keys, trip.step(KEYS_OF_PARENTS, values![numbers(&needs.closing)]));
        }
        if !needs.last_runs.is_empty() {
            add(Kind::LastRuns, trip.step(LAST_RUNS, values![texts(&needs.last_runs)]));
        }
        if !needs.run_ids.is_empty() {
            add(Kind::RunIds, trip.step(RUN_IDS, values![texts(&needs.run_ids)]));
        }
        if !needs.ranges.is_empty() {
            let (low, high): (Vec<i64>, Vec<i64>) = needs.ranges.iter().map(|(low, high)| (low.0, high.0)).unzip();
            add(Kind::Ranges, trip.step(RANGES, values![low, high]));
        }
        if !needs.tasks.is_empty() {
            let sql = TASKS.replace("{columns}", row::task::COLUMNS);
            let tasks: Vec<i64> = needs.tasks.union(&needs.ended_tasks).map(|task| task.0).collect();
            let (runs, seqs): (Vec<i64>, Vec<i64>) =
                needs.ended_activities.iter().map(|(run, seq)| (run.0, seq.0 as i64)).unzip();
            add(Kind::Tasks, trip.step(sql, values![tasks, runs, seqs, numbers(&needs.closing)]));
        }
        if !needs.messages.is_empty() {
            let messages: Vec<i64> = needs.messages.iter().map(|message| message.0).collect();
            add(Kind::Messages, trip.step(MESSAGES, values![messages]));
        }
        if !needs.keys.is_empty() {
            let (runs, keys) = pairs(&needs.keys);
            add(Kind::Keys, trip.step(KEYS, values![runs, keys]));
        }
        if !needs.keys_of_ids.is_empty() {
            let (ids, keys): (Vec<&str>, Vec<&str>) =
                needs.keys_of_ids.iter().map(|(id, key)| (id.as_str(), key.as_str())).unzip();
            add(Kind::Keys, trip.step(KEYS_OF_IDS, values![ids, keys]));
        }
        if !needs.jobs.is_empty() {
            let (runs, keys) = pairs(&needs.jobs);
            add(Kind::Jobs, trip.step(JOBS, values![runs, keys]));
        }
        if !needs.unseen.is_empty() {
            add(Kind::Unseen, trip.step(UNSEEN, values![numbers(&needs.unseen)]));
        }
        if !needs.turns.is_empty() {
            let (runs, turns): (Vec<i64>, Vec<i64>) =
                needs.turns.iter().map(|(run, turn)| (run.0, *turn as i64)).unzip();
            add(Kind::Turns, trip.step(TURNS, values![runs, turns]));
        }
        if needs.numbers > 0 {
            add(Kind::Numbers, trip.step(NUMBERS, values![needs.numbers as i64]));
        }
        Self { needs: needs.clone(), places }
    }

    /// Reads the answers.
    pub(crate) fn end(self, answers: &[Vec<Row>]) -> Result<Facts> {
        let mut facts = Facts { asked: self.needs, ..Facts::default() };
        for (kind, place) in self.places {
            for row in &answers[place] {
                facts.read(kind, row)?;
            }
        }
        for closing in &facts.asked.closing {
            if let Some(child) = facts.runs.get(closing)
                && let Some(parent) = &child.parent
            {
                facts.parent_keys.insert((parent.run, Name::from(format!("child:{}", child.run_id))));
            }
        }
        Ok(facts)
    }
}

impl Facts {
    fn read(&mut self, kind: Kind, row: &Row) -> Result<()> {
        match kind {
            Kind::Runs => {
                let run = row::run::read(row)?;
                if let Some(request) = get::<Option<String>>(row, row::run::COUNT)? {
                    self.requests.insert(request.into(), run.no);
                }
                if run.status.is_open() {
                    self.open.insert(run.workflow_id.clone(), run.no);
                }
                self.runs.insert(run.no, run);
            }
            Kind::Children => {
                let close = row::run::parent_close(get(row, 2)?)?;
                self.children.entry(RunNo(get(row, 0)?)).or_default().push((RunNo(get(row, 1)?), close));
            }
            Kind::LastRuns => {
                if let Some(no) = get::<Option<i64>>(row, 1)? {
                    self.last.insert(name(row, 0)?, RunNo(no));
                }
            }
            Kind::RunIds => drop(self.run_ids.insert(name(row, 0)?, RunNo(get(row, 1)?))),
            Kind::Ranges => {
                if let Some(no) = get::<Option<i64>>(row, 2)? {
                    self.ranges.insert((RunNo(get(row, 0)?), RunNo(get(row, 1)?)), RunNo(no));
                }
            }
            Kind::Tasks => {
                let task = row::task::read(row)?;
                self.tasks.insert(task.no, task);
            }
            Kind::Messages => {
                let fact = message(row, 2)?;
                self.messages.insert(fact.no, fact);
            }
            Kind::Keys => {
                let fact = message(row, 3)?;
                self.messages.insert(fact.no, fact);
                self.keys.insert((fact.run, name(row, 2)?), fact);
            }
            Kind::Jobs => drop(self.jobs.insert((RunNo(get(row, 0)?), name(row, 1)?), get(row, 2)?)),
            Kind::Unseen => drop(self.unseen.insert(RunNo(get(row, 0)?), get::<i64>(row, 1)? as usize)),
            Kind::Turns => {
                self.turns.insert((RunNo(get(row, 0)?), get::<i64>(row, 1)? as u64), get(row, 2)?);
            }
            Kind::Numbers => self.numbers.push(get(row, 0)?),
        }
        Ok(())
    }
}

fn message(row: &Row, taken: usize) -> Result<MessageFact> {
    Ok(MessageFact {
        no: MessageNo(get(row, 0)?),
        run: RunNo(get(row, 1)?),
        taken: get::<Option<i64>>(row, taken)?.map(|turn| turn as u64),
    })
}
