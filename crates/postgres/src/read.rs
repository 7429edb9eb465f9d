//! Reading the tables.

use std::ops::ControlFlow;

use dacapo_core::{AttributeValue, Name, Timestamp};
use dacapo_store::{
    Belongings, Dialect, Filter, ListPlace, MessageRow, ReadAlong, ReadMessages, ReadRuns, ReadTasks, ReadTimers,
    ReadTurns, Records, RunNo, RunRow, SqlQuery, SqlValue, StoreError, StoredRun, TaskNo, TaskRow, TimerRow,
};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::row::{attribute, get, low_bits, message, moment, run, task, timer};
use crate::trip::{Trip, Value, values};

type Result<T> = std::result::Result<T, StoreError>;

/// The turns that are read in the first round trip of a reader that may want only a few, and how many times as many in the
/// next.
const FIRST_TURNS: usize = 4;
const GROWTH: usize = 4;

/// Some records, and no more once there are so many bytes of them: the server sends all that it is asked for.
const RECORDS: &str = "SELECT turn, record FROM (SELECT turn, record, \
     sum(octet_length(record)) OVER (ORDER BY turn ROWS UNBOUNDED PRECEDING) - octet_length(record) AS before \
     FROM turns WHERE run = $1 AND turn >= $2 ORDER BY turn LIMIT $3) AS portion WHERE before < $4 ORDER BY turn";

/// [`RECORDS`] of a run that is loaded, if it is open. A closed one is seldom played.
const RECORDS_OF_OPEN: &str = "SELECT turn, record FROM (SELECT turn, record, \
     sum(octet_length(record)) OVER (ORDER BY turn ROWS UNBOUNDED PRECEDING) - octet_length(record) AS before \
     FROM turns WHERE run = $1 AND turn >= $2 AND EXISTS (SELECT FROM runs WHERE no = $1 AND status = 0) \
     ORDER BY turn LIMIT $3) AS portion WHERE before < $4 ORDER BY turn";
/// The first unseen messages of an open run, and so many bytes of them that it shows whether there are more.
const UNSEEN_OF_OPEN: &str = "SELECT {columns} FROM (SELECT {columns}, \
     sum(octet_length(job)) OVER (ORDER BY no ROWS UNBOUNDED PRECEDING) - octet_length(job) AS before \
     FROM messages WHERE run = $1 AND taken IS NULL AND EXISTS (SELECT FROM runs WHERE no = $1 AND status = 0) \
     ORDER BY no LIMIT $2) AS first WHERE before <= $3 ORDER BY no";

impl PostgresStore {
    pub(crate) fn rows(&self, sql: impl Into<String>, values: Vec<Value<'_>>) -> Result<Vec<Row>> {
        let mut trip = Trip::default();
        trip.step(sql.into(), values);
        Ok(self.readers.run(&trip)?.pop().unwrap_or_default())
    }

    fn find_run(&self, condition: &str, values: Vec<Value<'_>>) -> Result<Option<RunRow>> {
        run_of(&self.rows(format!("SELECT {} FROM runs WHERE {condition}", run::COLUMNS), values)?)
    }
}

/// Returns the values of [`RECORDS`].
fn portion(run: RunNo, from: u64, most: usize) -> Vec<Value<'static>> {
    values![run.0, from as i64, most as i64, Records::BYTES as i64]
}

fn run_of(rows: &[Row]) -> Result<Option<RunRow>> {
    rows.first().map(run::read).transpose()
}

fn records(rows: &[Row], room: usize) -> Result<Records> {
    let mut records = Records::with_room(room);
    for row in rows {
        records.push(get::<i64>(row, 0)? as u64, get(row, 1)?);
    }
    Ok(records)
}

/// Returns the messages that [`UNSEEN_OF_OPEN`] has found, if these are all.
fn all_of(unseen: Vec<MessageRow>) -> Option<Vec<MessageRow>> {
    let bytes: usize = unseen.iter().map(|message| message.job.len()).sum();
    (unseen.len() <= ReadAlong::MOST && bytes <= ReadAlong::BYTES).then_some(unseen)
}

fn unseen() -> String {
    format!("SELECT {} FROM messages WHERE run = $1 AND taken IS NULL ORDER BY no", message::COLUMNS)
}

fn numbers(rows: &[Row]) -> Result<Vec<RunNo>> {
    rows.iter().map(|row| Ok(RunNo(get(row, 0)?))).collect()
}

const DIALECT: Dialect = Dialect { placeholder: '$', word: "word", join: "JOIN", without_index: "" };

/// Looks at one entry of the index of workflows for each workflow.
const WORKFLOWS: &str = "WITH RECURSIVE found (workflow) AS (SELECT min(workflow) FROM runs \
     UNION ALL SELECT (SELECT min(runs.workflow) FROM runs WHERE runs.workflow > found.workflow) FROM found WHERE found.workflow IS NOT NULL) \
     SELECT workflow FROM found WHERE workflow IS NOT NULL";

fn bound(values: Vec<SqlValue>) -> Vec<Value<'static>> {
    let value = |value| match value {
        SqlValue::Text(text) => Box::new(text) as Value<'static>,
        SqlValue::Int(number) => Box::new(number),
        SqlValue::Float(number) => Box::new(number),
    };
    values.into_iter().map(value).collect()
}

impl ReadRuns for PostgresStore {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>> {
        self.find_run("no = $1", values![no.0])
    }

    /// Each statement sees what was committed when it begins, and they begin in this order: the records have all turns that the
    /// row counts, and no message was taken by one of them.
    fn load(&self, no: RunNo) -> Result<Option<StoredRun>> {
        let mut trip = Trip::default();
        trip.step(format!("SELECT {} FROM runs WHERE no = $1", run::COLUMNS), values![no.0]);
        trip.step(RECORDS_OF_OPEN, portion(no, 0, Records::MOST));
        let most = values![no.0, ReadAlong::MOST as i64 + 1, ReadAlong::BYTES as i64];
        trip.step(UNSEEN_OF_OPEN.replace("{columns}", message::COLUMNS), most);
        let answers = self.readers.run(&trip)?;
        let Some(row) = run_of(&answers[0])? else { return Ok(None) };
        let unseen: Result<Vec<MessageRow>> = answers[2].iter().map(message::read).collect();
        // What cannot be read is read again by itself when it is needed, and reported then.
        let along = records(&answers[1], 0).and_then(|records| Ok(ReadAlong { records, unseen: all_of(unseen?) }));
        // A run that has closed since its row was read has none.
        let is_whole = |along: &ReadAlong| answers[1].len() as u64 >= row.turns || along.records.next().is_some();
        let along = along.ok().filter(|along| row.status.is_open() && is_whole(along));
        Ok(Some(StoredRun { row, along }))
    }

    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>> {
        match run_id {
            Some(run_id) => self.find_run("run_id = $1 AND workflow_id = $2", values![run_id, workflow_id]),
            None => {
                // The open run, or else the last one, in one statement: it must not close between two.
                let open = "(SELECT no FROM runs WHERE workflow_id = $1 AND status = 0)";
                let last = "(SELECT max(no) FROM runs WHERE workflow_id = $1)";
                self.find_run(&format!("no = coalesce({open}, {last})"), values![workflow_id])
            }
        }
    }

    fn list(&self, filter: &Filter, after: Option<ListPlace>, limit: usize) -> Result<Vec<RunRow>> {
        let SqlQuery { text, values } = DIALECT.list(filter, run::COLUMNS, after, limit);
        self.rows(text, bound(values))?.iter().map(run::read).collect()
    }

    fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        let SqlQuery { text, values } = DIALECT.oldest(filter, run::COLUMNS, after, limit);
        self.rows(text, bound(values))?.iter().map(run::read).collect()
    }

    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>> {
        let sql = "SELECT no FROM runs WHERE no < $1 ORDER BY no DESC LIMIT $2";
        numbers(&self.rows(sql, values![before.map_or(i64::MAX, |before| before.0), limit as i64])?)
    }

    fn belongings(&self, run: RunNo) -> Result<Belongings> {
        let mut trip = Trip::default();
        trip.step("SELECT request FROM runs WHERE no = $1", values![run.0]);
        trip.step(
            format!("SELECT {} FROM attributes WHERE run = $1 ORDER BY name, place", attribute::COLUMNS),
            values![run.0],
        );
        trip.step(format!("SELECT {} FROM messages WHERE run = $1 ORDER BY no", message::COLUMNS), values![run.0]);
        let answers = self.readers.run(&trip)?;
        let Some(row) = answers[0].first() else { return Ok(Belongings::default()) };
        let parts: Vec<_> = answers[1].iter().map(attribute::read).collect::<Result<_>>()?;
        Ok(Belongings {
            request: get::<Option<String>>(row, 0)?.map(Name::from),
            attributes: attribute::values(run, &parts)?,
            messages: answers[2].iter().map(message::read).collect::<Result<_>>()?,
        })
    }

    fn attributes(&self, run: RunNo) -> Result<Vec<(Name, AttributeValue)>> {
        let sql = format!("SELECT {} FROM attributes WHERE run = $1 ORDER BY name, place", attribute::COLUMNS);
        let parts: Vec<_> = self.rows(sql, values![run.0])?.iter().map(attribute::read).collect::<Result<_>>()?;
        attribute::values(run, &parts)
    }

    fn runs_with_crash_count(&self) -> Result<Vec<(u32, RunNo)>> {
        let sql = "SELECT crash_count, no FROM runs WHERE crash_count > 0 AND status = 0 ORDER BY crash_count, no";
        let rows = self.rows(sql, values![])?;
        rows.iter().map(|row| Ok((get::<i64>(row, 0)? as u32, RunNo(get(row, 1)?)))).collect()
    }

    fn closed_before(&self, before: Timestamp, limit: usize) -> Result<Vec<RunNo>> {
        // Each node removes old runs of its own shards, and of those that no node owns.
        let sql =
            "SELECT no FROM runs WHERE closed < $1 AND (no & 1023) <> ALL($3::bigint[]) ORDER BY closed, no LIMIT $2";
        numbers(&self.rows(sql, values![moment(before), limit as i64, low_bits(&self.node.foreign())])?)
    }

    fn has_remains(&self) -> Result<bool> {
        let sql = "SELECT run FROM garbage WHERE (run & 1023) <> ALL($1::bigint[]) LIMIT 1";
        Ok(!self.rows(sql, values![low_bits(&self.node.foreign())])?.is_empty())
    }

    fn count(&self, filter: &Filter, most: u64) -> Result<u64> {
        let SqlQuery { text, values } = DIALECT.count(filter, most);
        self.rows(text, bound(values))?.first().map_or(Ok(0), |row| Ok(get::<i64>(row, 0)? as u64))
    }

    fn workflows(&self) -> Result<Vec<Name>> {
        self.rows(WORKFLOWS, values![])?.iter().map(|row| Ok(get::<String>(row, 0)?.into())).collect()
    }

    fn open_runs(&self, after: Option<RunNo>, limit: usize) -> Result<Vec<(RunNo, Name)>> {
        let sql = "SELECT no, workflow FROM runs WHERE status = 0 AND no > $1 AND (no & 1023) <> ALL($3::bigint[]) \
             ORDER BY no LIMIT $2";
        let after = after.map_or(i64::MIN, |after| after.0);
        let foreign = self.node.foreign().without(&self.node.owned.get());
        let rows = self.rows(sql, values![after, limit as i64, low_bits(&foreign)])?;
        rows.iter().map(|row| Ok((RunNo(get(row, 0)?), Name::from(get::<String>(row, 1)?)))).collect()
    }
}

impl ReadTurns for PostgresStore {
    fn turns(&self, run: RunNo, from: u64, show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()> {
        let (mut next, mut most) = (from, FIRST_TURNS);
        loop {
            let rows = self.rows(RECORDS, portion(run, next, most))?;
            let mut bytes = 0;
            for row in &rows {
                let (turn, record) = (get::<i64>(row, 0)? as u64, get::<&[u8]>(row, 1)?);
                if show(turn, record).is_break() {
                    return Ok(());
                }
                (next, bytes) = (turn + 1, bytes + record.len());
            }
            if rows.len() < most && bytes < Records::BYTES {
                return Ok(());
            }
            most = (most * GROWTH).min(Records::MOST);
        }
    }

    fn records(&self, run: RunNo, from: u64, room: usize) -> Result<Records> {
        records(&self.rows(RECORDS, portion(run, from, Records::MOST))?, room)
    }
}

impl ReadMessages for PostgresStore {
    fn unseen(&self, run: RunNo) -> Result<Vec<MessageRow>> {
        self.rows(unseen(), values![run.0])?.iter().map(message::read).collect()
    }

    fn count_unseen(&self, run: RunNo) -> Result<usize> {
        let rows = self.rows("SELECT count(*) FROM messages WHERE run = $1 AND taken IS NULL", values![run.0])?;
        rows.first().map_or(Ok(0), |row| Ok(get::<i64>(row, 0)? as usize))
    }

    fn message(&self, run: RunNo, key: &str) -> Result<Option<MessageRow>> {
        let sql = format!("SELECT {} FROM messages WHERE run = $1 AND key = $2", message::COLUMNS);
        self.rows(sql, values![run.0, key])?.first().map(message::read).transpose()
    }

    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>> {
        numbers(
            &self
                .rows("SELECT run FROM messages WHERE chain = $1 AND key = $2 ORDER BY run", values![chain, request])?,
        )
    }

    fn with_unseen_messages(&self, limit: usize) -> Result<Vec<RunNo>> {
        let sql = "SELECT DISTINCT messages.run FROM messages JOIN runs ON runs.no = messages.run \
             WHERE messages.taken IS NULL AND runs.status = 0 ORDER BY messages.run LIMIT $1";
        numbers(&self.rows(sql, values![limit as i64])?)
    }
}

impl ReadTasks for PostgresStore {
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>> {
        let sql = format!("SELECT {} FROM tasks WHERE no > $1 AND queue = ANY($2) ORDER BY no LIMIT $3", task::COLUMNS);
        let queues: Vec<&str> = queues.iter().map(Name::as_str).collect();
        self.rows(sql, values![above, queues, limit as i64])?.iter().map(task::read).collect()
    }

    fn task(&self, no: TaskNo) -> Result<Option<TaskRow>> {
        let sql = format!("SELECT {} FROM tasks WHERE no = $1", task::COLUMNS);
        self.rows(sql, values![no.0])?.first().map(task::read).transpose()
    }

    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>> {
        let sql = format!("SELECT {} FROM tasks WHERE run = $1 ORDER BY no", task::COLUMNS);
        self.rows(sql, values![run.0])?.iter().map(task::read).collect()
    }
}

impl ReadTimers for PostgresStore {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>> {
        let columns = timer::COLUMNS;
        if self.group.is_none() {
            let sql = format!("SELECT {columns} FROM timers WHERE due <= $1 ORDER BY due, run, kind, seq LIMIT $2");
            return self.rows(sql, values![moment(until), limit as i64])?.iter().map(timer::read).collect();
        }
        // The timers of other nodes are theirs.
        let sql = format!(
            "SELECT {columns} FROM timers WHERE due <= $1 AND (run & 1023) = ANY($3::bigint[]) ORDER BY due, run, kind, seq LIMIT $2"
        );
        let values = values![moment(until), limit as i64, low_bits(&self.node.owned.get())];
        self.rows(sql, values)?.iter().map(timer::read).collect()
    }

    fn next_due(&self) -> Result<Option<Timestamp>> {
        Ok(self.due(Timestamp(u64::MAX), 1)?.first().map(|timer| timer.due))
    }
}
