//! Writes the changes of a group: one statement for each table and kind of change, with arrays for its rows.

use std::borrow::Cow;

use dacapo_core::{Name, Seq};
use dacapo_store::{NodeNo, RunNo, TaskRow, TimerRow};

use crate::changes::{Changes, Extent, RunChange};
use crate::row::attribute::{self, Part};
use crate::row::moment;
use crate::trip::{Trip, values};

const COUNT_TURNS: &str = "UPDATE runs SET turns = new.turns, crash_count = new.crash_count, stuck_cause = NULL, \
     stuck_subject = NULL, stuck_reason = NULL, stuck_since = NULL, stuck_attempts = NULL, stuck_retry = NULL \
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS new (no, turns, crash_count) WHERE runs.no = new.no";
const CHANGE_RUNS: &str = "UPDATE runs SET status = new.status, closed = new.closed, turns = new.turns, owner = new.owner, \
     epoch = new.epoch, parent = new.parent, parent_seq = new.parent_seq, crash_count = new.crash_count, \
     stuck_cause = new.stuck_cause, stuck_subject = new.stuck_subject, stuck_reason = new.stuck_reason, \
     stuck_since = new.stuck_since, stuck_attempts = new.stuck_attempts, stuck_retry = new.stuck_retry, \
     memo = coalesce(new.memo, runs.memo), published = coalesce(new.published, runs.published), \
     result = coalesce(new.result, runs.result) \
     FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
     $8::bigint[], $9::bigint[], $10::smallint[], $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], \
     $16::bytea[], $17::bytea[], $18::bytea[]) \
     AS new (no, status, closed, turns, owner, epoch, parent, parent_seq, crash_count, stuck_cause, stuck_subject, \
     stuck_reason, stuck_since, stuck_attempts, stuck_retry, memo, published, result) WHERE runs.no = new.no";
const ADD_RUNS: &str = "INSERT INTO runs (no, run_id, workflow_id, workflow, queue, status, started, closed, turns, owner, \
     epoch, pins, parent, parent_seq, parent_close, first_run_id, request, crash_count, memo, published, result) \
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], \
     $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bytea[], $13::bigint[], $14::bigint[], $15::smallint[], \
     $16::text[], $17::text[], $18::bigint[], $19::bytea[], $20::bytea[], $21::bytea[])";
const ADD_TURNS: &str =
    "INSERT INTO turns (run, turn, record) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])";
const COPY_TURNS: &str =
    "INSERT INTO turns (run, turn, record) SELECT $2::bigint, turn, record FROM turns WHERE run = $1 AND turn < $3";
const ADD_TASKS: &str = "INSERT INTO tasks (no, run, seq, queue, ready, priority, turn, position, attempt, crash_count, node, \
     external, failure, details) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], \
     $6::integer[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[], \
     $14::bytea[])";
const NOTE_ATTEMPTS: &str = "UPDATE tasks SET attempt = new.attempt, ready = new.ready, node = new.node, \
     crash_count = new.crash_count, external = new.external, failure = new.failure, details = new.details \
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[]) \
     AS new (no, attempt, ready, node, crash_count, external, failure, details) WHERE tasks.no = new.no";
const COUNT_CRASHES: &str = "UPDATE tasks SET crash_count = new.crash_count \
     FROM unnest($1::bigint[], $2::bigint[]) AS new (no, crash_count) WHERE tasks.no = new.no";
const END_TASK: &str = "DELETE FROM tasks WHERE no = ANY($1)";
/// They are locked in the order of their numbers, so that no two transactions wait for each other.
const END_TASKS: &str = "DELETE FROM tasks USING (SELECT no FROM tasks WHERE no IN (SELECT unnest($1::bigint[]) \
     UNION ALL SELECT tasks.no FROM unnest($2::bigint[], $3::bigint[]) AS ended (run, seq) \
     JOIN tasks ON tasks.run = ended.run AND tasks.seq = ended.seq \
     UNION ALL SELECT tasks.no FROM unnest($4::bigint[]) AS ended JOIN tasks ON tasks.run = ended) \
     ORDER BY no FOR UPDATE) AS locked WHERE tasks.no = locked.no";
const ADD_TIMERS: &str = "INSERT INTO timers (due, run, kind, seq) \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[]) ON CONFLICT DO NOTHING";
const END_TIMERS: &str = "DELETE FROM timers USING unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[]) \
     AS ended (due, run, kind, seq) WHERE timers.due = ended.due AND timers.run = ended.run AND timers.kind = ended.kind \
     AND timers.seq = ended.seq";
const ADD_MESSAGES: &str = "INSERT INTO messages (no, run, key, sent, job, taken, outcome, chain) \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bytea[], $6::bigint[], $7::bytea[], \
     $8::text[])";
const TAKE_MESSAGES: &str = "UPDATE messages SET taken = new.turn FROM unnest($1::bigint[], $2::bigint[]) AS new (no, turn) \
     WHERE messages.no = new.no";
const ANSWER_MESSAGES: &str = "UPDATE messages SET outcome = new.outcome \
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS new (run, key, outcome) \
     WHERE messages.run = new.run AND messages.key = new.key";
/// A message whose key the other run has is there already.
const MOVE_MESSAGES: &str = "UPDATE messages SET run = $2 WHERE run = $1 AND taken IS NULL \
     AND NOT EXISTS (SELECT FROM messages AS there WHERE there.run = $2 AND there.key = messages.key)";
const END_ATTRIBUTES: &str = "DELETE FROM attributes USING unnest($1::bigint[], $2::text[]) AS ended (run, name) \
     WHERE attributes.run = ended.run AND attributes.name = ended.name";
const ADD_ATTRIBUTES: &str = "INSERT INTO attributes (run, name, place, parts, kind, word, number, real) \
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::integer[], $5::smallint[], $6::text[], $7::bigint[], \
     $8::float8[])";
const DELETE_RUNS: &str = "WITH tasks AS (DELETE FROM tasks USING (SELECT no FROM tasks WHERE run = ANY($1) ORDER BY no FOR UPDATE) \
     AS locked WHERE tasks.no = locked.no), \
     attributes AS (DELETE FROM attributes WHERE run = ANY($1)), runs AS (DELETE FROM runs WHERE no = ANY($1)) \
     INSERT INTO garbage (run) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING";

/// Collects a column of an array of rows.
fn column<'r, R, T>(rows: &[&'r R], read: impl Fn(&'r R) -> T) -> Vec<T> {
    rows.iter().map(|row| read(row)).collect()
}

/// Returns a text without the one character that the database cannot keep.
fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Adds the statements that write these changes. Rows are removed before others are added, so that an id or a key which
/// one row gives up is free for another.
pub(crate) fn flush<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    runs(changes, trip);
    turns(changes, trip);
    tasks(changes, trip);
    timers(changes, trip);
    messages(changes, trip);
    attributes(changes, trip);
    if !changes.deleted_runs.is_empty() {
        let deleted: Vec<i64> = changes.deleted_runs.iter().map(|run| run.0).collect();
        trip.step(DELETE_RUNS, values![deleted]);
    }
}

fn runs<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    let of = |extent| changes.runs.values().filter(move |run| run.extent == extent).collect::<Vec<&RunChange>>();
    let counted = of(Extent::Turn);
    if !counted.is_empty() {
        let (no, turns) = (column(&counted, |run| run.row.no.0), column(&counted, |run| run.row.turns as i64));
        trip.step(COUNT_TURNS, values![no, turns, column(&counted, |run| i64::from(run.row.crash_count))]);
    }
    let changed = of(Extent::Any);
    if !changed.is_empty() {
        trip.step(CHANGE_RUNS, changed_runs(&changed));
    }
    let added = of(Extent::New);
    if !added.is_empty() {
        trip.step(ADD_RUNS, added_runs(&added));
    }
}

fn changed_runs<'c>(runs: &[&'c RunChange]) -> Vec<crate::trip::Value<'c>> {
    let stuck = |run: &'c RunChange| run.row.stuck.as_ref();
    values![
        column(runs, |run| run.row.no.0),
        column(runs, |run| run.row.status.code() as i16),
        column(runs, |run| run.row.closed.map(moment)),
        column(runs, |run| run.row.turns as i64),
        column(runs, |run| run.row.owner.map(|NodeNo(node)| node)),
        column(runs, |run| run.row.epoch.0),
        column(runs, |run| run.row.parent.as_ref().map(|parent| parent.run.0)),
        column(runs, |run| run.row.parent.as_ref().map(|parent| parent.seq.0 as i64)),
        column(runs, |run| i64::from(run.row.crash_count)),
        column(runs, |run| stuck(run).map(|stuck| stuck.cause.code() as i16)),
        column(runs, |run| stuck(run).map(|stuck| text(&stuck.subject))),
        column(runs, |run| stuck(run).map(|stuck| text(&stuck.reason))),
        column(runs, |run| stuck(run).map(|stuck| moment(stuck.since))),
        column(runs, |run| stuck(run).map(|stuck| i64::from(stuck.attempts))),
        column(runs, |run| stuck(run).map(|stuck| moment(stuck.retry))),
        column(runs, |run| run.has_memo.then_some(run.row.memo.as_slice())),
        column(runs, |run| run.row.published.as_deref().filter(|_| run.has_published)),
        column(runs, |run| run.row.result.as_deref()),
    ]
}

fn added_runs<'c>(runs: &[&'c RunChange]) -> Vec<crate::trip::Value<'c>> {
    let parent = |run: &'c RunChange| run.row.parent.as_ref();
    values![
        column(runs, |run| run.row.no.0),
        column(runs, |run| run.row.run_id.as_str()),
        column(runs, |run| run.row.workflow_id.as_str()),
        column(runs, |run| run.row.workflow.as_str()),
        column(runs, |run| run.row.queue.as_str()),
        column(runs, |run| run.row.status.code() as i16),
        column(runs, |run| moment(run.row.started)),
        column(runs, |run| run.row.closed.map(moment)),
        column(runs, |run| run.row.turns as i64),
        column(runs, |run| run.row.owner.map(|NodeNo(node)| node)),
        column(runs, |run| run.row.epoch.0),
        column(runs, |run| run.row.pins.as_slice()),
        column(runs, |run| parent(run).map(|parent| parent.run.0)),
        column(runs, |run| parent(run).map(|parent| parent.seq.0 as i64)),
        column(runs, |run| parent(run).map(|parent| parent.close as i16)),
        column(runs, |run| run.row.first_run_id.as_str()),
        column(runs, |run| run.request.as_deref()),
        column(runs, |run| i64::from(run.row.crash_count)),
        column(runs, |run| run.row.memo.as_slice()),
        column(runs, |run| run.row.published.as_deref()),
        column(runs, |run| run.row.result.as_deref()),
    ]
}

fn turns<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    if !changes.turns.is_empty() {
        let rows: Vec<&(RunNo, u64, Vec<u8>)> = changes.turns.iter().collect();
        let (run, turn) = (column(&rows, |row| row.0.0), column(&rows, |row| row.1 as i64));
        trip.step(ADD_TURNS, values![run, turn, column(&rows, |row| row.2.as_slice())]);
    }
    for (from, to, count) in &changes.copies {
        trip.step(COPY_TURNS, values![from.0, to.0, *count as i64]);
    }
}

fn tasks<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    if !changes.attempts.is_empty() {
        let rows: Vec<_> = changes.attempts.values().collect();
        let values = values![
            column(&rows, |row| row.task.0),
            column(&rows, |row| i64::from(row.attempt)),
            column(&rows, |row| moment(row.ready)),
            column(&rows, |row| row.node.map(|NodeNo(node)| node)),
            column(&rows, |row| i64::from(row.crash_count)),
            column(&rows, |row| row.external.map(moment)),
            column(&rows, |row| row.failure.as_deref()),
            column(&rows, |row| row.details.as_deref()),
        ];
        trip.step(NOTE_ATTEMPTS, values);
    }
    if !changes.crash_counts.is_empty() {
        let (no, count): (Vec<i64>, Vec<i64>) =
            changes.crash_counts.iter().map(|(task, count)| (task.0, i64::from(*count))).unzip();
        trip.step(COUNT_CRASHES, values![no, count]);
    }
    end_tasks(changes, trip);
    if !changes.new_tasks.is_empty() {
        trip.step(ADD_TASKS, added_tasks(&changes.new_tasks.values().collect::<Vec<_>>()));
    }
}

fn end_tasks<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    let Changes { ended_tasks, ended_activities, ended_runs, .. } = changes;
    let tasks: Vec<i64> = ended_tasks.iter().map(|task| task.0).collect();
    if ended_activities.is_empty() && ended_runs.is_empty() && tasks.len() <= 1 {
        if !tasks.is_empty() {
            trip.step(END_TASK, values![tasks]);
        }
        return;
    }
    let (of, seqs): (Vec<i64>, Vec<i64>) = ended_activities.iter().map(|(run, Seq(seq))| (run.0, *seq as i64)).unzip();
    let runs: Vec<i64> = ended_runs.iter().map(|run| run.0).collect();
    trip.step(END_TASKS, values![tasks, of, seqs, runs]);
}

fn added_tasks<'c>(tasks: &[&'c TaskRow]) -> Vec<crate::trip::Value<'c>> {
    values![
        column(tasks, |task| task.no.0),
        column(tasks, |task| task.run.0),
        column(tasks, |task| task.seq.0 as i64),
        column(tasks, |task| task.queue.as_str()),
        column(tasks, |task| moment(task.ready)),
        column(tasks, |task| task.priority),
        column(tasks, |task| task.turn as i64),
        column(tasks, |task| i64::from(task.position)),
        column(tasks, |task| i64::from(task.attempt)),
        column(tasks, |task| i64::from(task.crash_count)),
        column(tasks, |task| task.node.map(|NodeNo(node)| node)),
        column(tasks, |task| task.external.map(moment)),
        column(tasks, |task| task.failure.as_deref()),
        column(tasks, |task| task.details.as_deref()),
    ]
}

fn timers<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    let columns = |timers: &std::collections::BTreeSet<TimerRow>| {
        let rows: Vec<&TimerRow> = timers.iter().collect();
        values![
            column(&rows, |row| moment(row.due)),
            column(&rows, |row| row.run.0),
            column(&rows, |row| row.kind.code().0 as i16),
            column(&rows, |row| row.kind.code().1 as i64),
        ]
    };
    if !changes.ended_timers.is_empty() {
        trip.step(END_TIMERS, columns(&changes.ended_timers));
    }
    if !changes.new_timers.is_empty() {
        trip.step(ADD_TIMERS, columns(&changes.new_timers));
    }
}

fn messages<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    if !changes.new_messages.is_empty() {
        let rows: Vec<_> = changes.new_messages.values().collect();
        let values = values![
            column(&rows, |new| new.row.no.0),
            column(&rows, |new| new.row.run.0),
            column(&rows, |new| new.row.key.as_str()),
            column(&rows, |new| moment(new.row.sent)),
            column(&rows, |new| new.row.job.as_slice()),
            column(&rows, |new| new.row.taken.map(|turn| turn as i64)),
            column(&rows, |new| new.row.outcome.as_deref()),
            column(&rows, |new| new.chain.as_deref()),
        ];
        trip.step(ADD_MESSAGES, values);
    }
    if !changes.taken.is_empty() {
        let (no, turn): (Vec<i64>, Vec<i64>) = changes.taken.iter().map(|(no, turn)| (no.0, *turn as i64)).unzip();
        trip.step(TAKE_MESSAGES, values![no, turn]);
    }
    if !changes.outcomes.is_empty() {
        let rows: Vec<(&(RunNo, Name), &Vec<u8>)> = changes.outcomes.iter().collect();
        let run: Vec<i64> = rows.iter().map(|((run, _), _)| run.0).collect();
        let key: Vec<&str> = rows.iter().map(|((_, key), _)| key.as_str()).collect();
        let outcome: Vec<&[u8]> = rows.iter().map(|(_, outcome)| outcome.as_slice()).collect();
        trip.step(ANSWER_MESSAGES, values![run, key, outcome]);
    }
    for (from, to) in &changes.moved {
        trip.step(MOVE_MESSAGES, values![from.0, to.0]);
    }
}

fn attributes<'c>(changes: &'c Changes, trip: &mut Trip<'c>) {
    if changes.attributes.is_empty() {
        return;
    }
    let is_new = |run: &RunNo| changes.runs.get(run).is_some_and(|run| run.extent == Extent::New);
    let stored = changes.attributes.keys().filter(|(run, _)| !is_new(run));
    let (run, name): (Vec<i64>, Vec<&str>) = stored.map(|(run, name)| (run.0, name.as_str())).unzip();
    if !run.is_empty() {
        trip.step(END_ATTRIBUTES, values![run, name]);
    }
    let mut parts: Vec<(i64, &str, Part)> = Vec::new();
    for ((run, name), value) in &changes.attributes {
        let of_value = value.as_ref().map_or_else(Vec::new, attribute::parts);
        parts.extend(of_value.into_iter().map(|part| (run.0, name.as_str(), part)));
    }
    if parts.is_empty() {
        return;
    }
    let values = values![
        parts.iter().map(|part| part.0).collect::<Vec<i64>>(),
        parts.iter().map(|part| part.1).collect::<Vec<&str>>(),
        parts.iter().map(|part| part.2.place).collect::<Vec<i32>>(),
        parts.iter().map(|part| part.2.parts).collect::<Vec<i32>>(),
        parts.iter().map(|part| part.2.kind).collect::<Vec<i16>>(),
        parts.iter().map(|part| part.2.word.clone()).collect::<Vec<Option<String>>>(),
        parts.iter().map(|part| part.2.number).collect::<Vec<Option<i64>>>(),
        parts.iter().map(|part| part.2.real).collect::<Vec<Option<f64>>>(),
    ];
    trip.step(ADD_ATTRIBUTES, values);
}
