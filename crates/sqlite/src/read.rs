//! Reading the file.

use std::ops::ControlFlow;

use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};

use dacapo_core::{AttributeValue, Name, Timestamp};
use dacapo_store::{
    Belongings, Filter, MessageRow, ReadMessages, ReadRuns, ReadTasks, ReadTimers, ReadTurns, RunNo, RunRow,
    StoreError, TaskNo, TaskRow, TimerRow,
};

use crate::SqliteStore;
use crate::columns::moment;
use crate::row::{attribute, message, run, task, timer, turn};
use crate::store_error::store_error;

type Result<T> = std::result::Result<T, StoreError>;

/// Few closed runs have a crash count, but there are very many open runs: the plus keeps SQLite from using the index of
/// open runs.
const WITH_CRASH_COUNT: &str =
    "SELECT crash_count, no FROM runs WHERE crash_count > 0 AND +status = 0 ORDER BY crash_count, no";
const CLOSED_BEFORE: &str = "SELECT no FROM runs WHERE closed < ? ORDER BY closed LIMIT ?";
const OPEN_RUNS: &str = "SELECT no, workflow FROM runs WHERE status = 0 AND no > ? ORDER BY no LIMIT ?";
const ASKED: &str = "SELECT run FROM messages WHERE chain = ? AND key = ? ORDER BY run";

impl SqliteStore {
    fn rows<T>(&self, sql: &str, values: &[Value], read: impl Fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
        let reader = self.reader();
        let mut statement = reader.prepare_cached(sql).map_err(store_error)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(store_error)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(store_error)? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

/// Writes a filter as SQL.
fn condition(filter: &Filter) -> (String, Vec<Value>) {
    let mut terms = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut term = |text: &str, value: Value| {
        terms.push(text.to_owned());
        values.push(value);
    };
    if let Some(workflow) = &filter.workflow {
        term("workflow = ?", workflow.to_string().into());
    }
    if let Some(workflow_id) = &filter.workflow_id {
        term("workflow_id = ?", workflow_id.to_string().into());
    }
    if let Some(from) = filter.started_from {
        term("started >= ?", moment(from).into());
    }
    if let Some(before) = filter.started_before {
        term("started < ?", moment(before).into());
    }
    // The constant lets SQLite use the index of open runs. Stuck runs are fewer: the plus keeps SQLite from using that
    // index.
    match (filter.status, filter.stuck) {
        (Some(status), true) => terms.push(format!("+status = {} AND stuck_cause IS NOT NULL", status.code())),
        (Some(status), false) => terms.push(format!("status = {}", status.code())),
        (None, true) => terms.push("stuck_cause IS NOT NULL".to_owned()),
        (None, false) => {}
    }
    (terms.join(" AND "), values)
}

fn list_sql(filter: &Filter) -> (String, Vec<Value>) {
    let (condition, values) = condition(filter);
    (format!("SELECT {} FROM runs WHERE {condition} AND no < ? ORDER BY no DESC LIMIT ?", run::COLUMNS), values)
}

fn oldest_sql(filter: &Filter) -> (String, Vec<Value>) {
    let (condition, values) = condition(filter);
    (format!("SELECT {} FROM runs WHERE {condition} AND no > ? ORDER BY no LIMIT ?", run::COLUMNS), values)
}

fn count_sql(filter: &Filter) -> (String, Vec<Value>) {
    let (condition, values) = condition(filter);
    (format!("SELECT count(*) FROM runs WHERE {condition}"), values)
}

impl ReadRuns for SqliteStore {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>> {
        run::find(&self.reader(), "no = ?", params![no.0])
    }

    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>> {
        match run_id {
            Some(run_id) => run::find(&self.reader(), "run_id = ? AND workflow_id = ?", params![run_id, workflow_id]),
            None => {
                let reader = self.reader();
                let open = run::find(&reader, "workflow_id = ? AND status = 0", params![workflow_id])?;
                let last = || run::find(&reader, "workflow_id = ? ORDER BY no DESC LIMIT 1", params![workflow_id]);
                open.map_or_else(last, |open| Ok(Some(open)))
            }
        }
    }

    fn list(&self, filter: &Filter, before: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        let (sql, mut values) = list_sql(filter);
        values.push(before.map_or(i64::MAX, |before| before.0).into());
        values.push((limit as i64).into());
        self.rows(&sql, &values, run::read)
    }

    fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        let (sql, mut values) = oldest_sql(filter);
        values.push(after.map_or(i64::MIN, |after| after.0).into());
        values.push((limit as i64).into());
        self.rows(&sql, &values, run::read)
    }

    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>> {
        let values = [before.map_or(i64::MAX, |before| before.0).into(), (limit as i64).into()];
        let sql = "SELECT no FROM runs WHERE no < ? ORDER BY no DESC LIMIT ?";
        self.rows(sql, &values, |row| row.get(0).map(RunNo).map_err(store_error))
    }

    fn belongings(&self, run: RunNo) -> Result<Belongings> {
        let no = &[run.0.into()];
        let Some(request) = run::request(&self.reader(), run)? else { return Ok(Belongings::default()) };
        let attributes = self.attributes(run)?;
        let sql = format!("SELECT {} FROM messages WHERE run = ? ORDER BY no", message::COLUMNS);
        let messages = self.rows(&sql, no, message::read)?;
        Ok(Belongings { request, attributes, messages })
    }

    fn attributes(&self, run: RunNo) -> Result<Vec<(Name, AttributeValue)>> {
        let sql = format!("SELECT {} FROM attributes WHERE run = ? ORDER BY name, place", attribute::COLUMNS);
        attribute::values(run, self.rows(&sql, &[run.0.into()], attribute::read)?)
    }

    fn runs_with_crash_count(&self) -> Result<Vec<(u32, RunNo)>> {
        self.rows(WITH_CRASH_COUNT, &[], |row| {
            let read = || Ok((row.get(0)?, RunNo(row.get(1)?)));
            read().map_err(store_error)
        })
    }

    fn closed_before(&self, before: Timestamp, limit: usize) -> Result<Vec<RunNo>> {
        self.rows(CLOSED_BEFORE, &[moment(before).into(), (limit as i64).into()], |row| {
            row.get(0).map(RunNo).map_err(store_error)
        })
    }

    fn has_remains(&self) -> Result<bool> {
        Ok(!self.rows("SELECT 1 FROM garbage LIMIT 1", &[], |_| Ok(()))?.is_empty())
    }

    fn count(&self, filter: &Filter) -> Result<u64> {
        let (sql, values) = count_sql(filter);
        let counts = self.rows(&sql, &values, |row| row.get::<_, i64>(0).map_err(store_error))?;
        Ok(counts.first().map_or(0, |count| *count as u64))
    }

    fn open_runs(&self, after: Option<RunNo>, limit: usize) -> Result<Vec<(RunNo, Name)>> {
        let values = [after.map_or(i64::MIN, |after| after.0).into(), (limit as i64).into()];
        self.rows(OPEN_RUNS, &values, |row| {
            let read = || Ok((RunNo(row.get(0)?), Name::from(row.get::<_, String>(1)?)));
            read().map_err(store_error)
        })
    }
}

impl ReadTurns for SqliteStore {
    fn turns(&self, run: RunNo, from: u64, show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()> {
        let reader = self.reader();
        let sql = format!("SELECT {} FROM turns WHERE run = ? AND turn >= ? ORDER BY turn", turn::COLUMNS);
        let mut statement = reader.prepare_cached(&sql).map_err(store_error)?;
        let mut rows = statement.query(params![run.0, from as i64]).map_err(store_error)?;
        while let Some(row) = rows.next().map_err(store_error)? {
            let (turn, record) = turn::read(run, row)?;
            if show(turn, record).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl ReadMessages for SqliteStore {
    fn unseen(&self, run: RunNo) -> Result<Vec<MessageRow>> {
        let sql = format!("SELECT {} FROM messages WHERE run = ? AND taken IS NULL ORDER BY no", message::COLUMNS);
        self.rows(&sql, &[run.0.into()], message::read)
    }

    fn count_unseen(&self, run: RunNo) -> Result<usize> {
        let sql = "SELECT count(*) FROM messages WHERE run = ? AND taken IS NULL";
        let counts = self.rows(sql, &[run.0.into()], |row| row.get::<_, i64>(0).map_err(store_error))?;
        Ok(counts.first().map_or(0, |count| *count as usize))
    }

    fn message(&self, run: RunNo, key: &str) -> Result<Option<MessageRow>> {
        let sql = format!("SELECT {} FROM messages WHERE run = ? AND key = ?", message::COLUMNS);
        Ok(self.rows(&sql, &[run.0.into(), key.to_owned().into()], message::read)?.pop())
    }

    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>> {
        let (chain, request) = (chain.to_owned().into(), request.to_owned().into());
        self.rows(ASKED, &[chain, request], |row| row.get(0).map(RunNo).map_err(store_error))
    }

    fn with_unseen_messages(&self, limit: usize) -> Result<Vec<RunNo>> {
        let sql = "SELECT DISTINCT messages.run FROM messages JOIN runs ON runs.no = messages.run \
             WHERE messages.taken IS NULL AND runs.status = 0 ORDER BY messages.run LIMIT ?";
        self.rows(sql, &[(limit as i64).into()], |row| row.get(0).map(RunNo).map_err(store_error))
    }
}

impl ReadTasks for SqliteStore {
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>> {
        let places = vec!["?"; queues.len()].join(", ");
        let sql =
            format!("SELECT {} FROM tasks WHERE no > ? AND queue IN ({places}) ORDER BY no LIMIT ?", task::COLUMNS);
        let mut values: Vec<Value> = vec![above.into()];
        values.extend(queues.iter().map(|queue| Value::from(queue.to_string())));
        values.push((limit as i64).into());
        self.rows(&sql, &values, task::read)
    }

    fn task(&self, no: TaskNo) -> Result<Option<TaskRow>> {
        let sql = format!("SELECT {} FROM tasks WHERE no = ?", task::COLUMNS);
        Ok(self.rows(&sql, &[no.0.into()], task::read)?.pop())
    }

    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>> {
        self.rows(
            &format!("SELECT {} FROM tasks WHERE run = ? ORDER BY no", task::COLUMNS),
            &[run.0.into()],
            task::read,
        )
    }
}

impl ReadTimers for SqliteStore {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>> {
        let sql = format!("SELECT {} FROM timers WHERE due <= ? ORDER BY due, run, kind, seq LIMIT ?", timer::COLUMNS);
        self.rows(&sql, &[moment(until).into(), (limit as i64).into()], timer::read)
    }

    fn next_due(&self) -> Result<Option<Timestamp>> {
        let sql = format!("SELECT {} FROM timers ORDER BY due LIMIT 1", timer::COLUMNS);
        Ok(self.rows(&sql, &[], timer::read)?.first().map(|timer| timer.due))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use dacapo_store::Status;

    use super::*;

    /// Returns SQLite's query plans for listing and counting these runs.
    fn plans(filter: &Filter) -> [String; 2] {
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::prepare(&connection).unwrap();
        let (list, mut values) = list_sql(filter);
        values.extend([i64::MAX.into(), 10.into()]);
        [(list, values), count_sql(filter)].map(|(sql, values)| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            steps.map(|step| step.unwrap()).collect::<Vec<_>>().join(", ")
        })
    }

    #[test]
    fn stuck_runs_are_found_without_looking_at_others() {
        for status in [None, Some(Status::Open)] {
            for workflow in [None, Some("kit".into())] {
                let filter = Filter { stuck: true, status, workflow, ..Filter::default() };
                let [list, count] = plans(&filter);
                assert_eq!(list, "SEARCH runs USING INDEX runs_stuck (no<?)", "{filter:?}");
                assert_eq!(count, "SCAN runs USING INDEX runs_stuck", "{filter:?}");
            }
        }
    }

    #[test]
    fn runs_that_closed_first_are_found_without_looking_at_others() {
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::prepare(&connection).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {CLOSED_BEFORE}");
        let plan: String = connection.query_row(&sql, [1, 1], |row| row.get(3)).unwrap();
        assert_eq!(plan, "SEARCH runs USING COVERING INDEX runs_closed (closed<?)");
    }

    #[test]
    fn a_request_is_found_without_looking_at_the_runs_of_its_chain() {
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::prepare(&connection).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {ASKED}");
        let plan: String = connection.query_row(&sql, ["run-1", "update:1"], |row| row.get(3)).unwrap();
        assert_eq!(plan, "SEARCH messages USING INDEX messages_chain (chain=? AND key=?)");
    }

    #[test]
    fn runs_with_a_crash_count_are_found_without_looking_at_others() {
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::prepare(&connection).unwrap();
        let plan: String =
            connection.query_row(&format!("EXPLAIN QUERY PLAN {WITH_CRASH_COUNT}"), [], |row| row.get(3)).unwrap();
        assert_eq!(plan, "SEARCH runs USING INDEX runs_crash_count (crash_count>?)");
    }

    #[test]
    fn open_runs_are_found_in_their_order_without_looking_at_closed_ones() {
        let open = Filter { status: Some(Status::Open), ..Filter::default() };
        for filter in [open.clone(), Filter { workflow: Some("kit".into()), ..open.clone() }] {
            let [list, count] = plans(&filter);
            assert_eq!(list, "SEARCH runs USING INDEX runs_open_no (no<?)", "{filter:?}");
            assert!(count.ends_with("INDEX runs_open_no"), "{count}: {filter:?}");
        }
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::prepare(&connection).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {OPEN_RUNS}");
        let plan: String = connection.query_row(&sql, [1, 1], |row| row.get(3)).unwrap();
        assert_eq!(plan, "SEARCH runs USING INDEX runs_open_no (no>?)");
        let [list, _] = plans(&Filter { workflow_id: Some("order-1".into()), ..open });
        assert_eq!(list, "SEARCH runs USING INDEX runs_open (workflow_id=? AND rowid<?)");
    }
}
