//! Reading the file.

use std::ops::ControlFlow;

use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};

use dacapo_core::{AttributeValue, Name, Timestamp};
use dacapo_store::{
    Belongings, Dialect, Filter, ListPlace, MessageRow, ReadMessages, ReadRuns, ReadTasks, ReadTimers, ReadTurns,
    RunNo, RunRow, SqlQuery, SqlValue, StoreError, TaskNo, TaskRow, TimerRow,
};

use crate::SqliteStore;
use crate::columns::{moment, name};
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

const DIALECT: Dialect = Dialect { placeholder: '?', word: "text", join: "CROSS JOIN", without_index: "+" };

/// Looks at one entry of the index of workflows for each workflow.
const WORKFLOWS: &str = "WITH RECURSIVE found (workflow) AS (SELECT min(workflow) FROM runs \
     UNION ALL SELECT (SELECT min(runs.workflow) FROM runs WHERE runs.workflow > found.workflow) FROM found WHERE found.workflow IS NOT NULL) \
     SELECT workflow FROM found WHERE workflow IS NOT NULL";

fn bound(values: Vec<SqlValue>) -> Vec<Value> {
    let value = |value| match value {
        SqlValue::Text(text) => Value::Text(text),
        SqlValue::Int(number) => Value::Integer(number),
        SqlValue::Float(number) => Value::Real(number),
    };
    values.into_iter().map(value).collect()
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

    fn list(&self, filter: &Filter, after: Option<ListPlace>, limit: usize) -> Result<Vec<RunRow>> {
        let SqlQuery { text, values } = DIALECT.list(filter, run::COLUMNS, after, limit);
        self.rows(&text, &bound(values), run::read)
    }

    fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        let SqlQuery { text, values } = DIALECT.oldest(filter, run::COLUMNS, after, limit);
        self.rows(&text, &bound(values), run::read)
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

    fn count(&self, filter: &Filter, most: u64) -> Result<u64> {
        let SqlQuery { text, values } = DIALECT.count(filter, most);
        let counts = self.rows(&text, &bound(values), |row| row.get::<_, i64>(0).map_err(store_error))?;
        Ok(counts.first().map_or(0, |count| *count as u64))
    }

    fn open_runs(&self, after: Option<RunNo>, limit: usize) -> Result<Vec<(RunNo, Name)>> {
        let values = [after.map_or(i64::MIN, |after| after.0).into(), (limit as i64).into()];
        self.rows(OPEN_RUNS, &values, |row| {
            let read = || Ok((RunNo(row.get(0)?), name(row, 1)?));
            read().map_err(store_error)
        })
    }

    fn workflows(&self) -> Result<Vec<Name>> {
        self.rows(WORKFLOWS, &[], |row| name(row, 0).map_err(store_error))
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
        let place = ListPlace { no: RunNo(i64::MAX), time: Timestamp(1) };
        [DIALECT.list(filter, run::COLUMNS, Some(place), 10), DIALECT.count(filter, 10)].map(|query| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", query.text)).unwrap();
            let steps =
                statement.query_map(params_from_iter(bound(query.values)), |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<String> = steps.map(|step| step.unwrap()).collect();
            steps.join(", ").replace("CO-ROUTINE found, ", "").replace(", SCAN found", "")
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

    /// Returns the query plans of a search.
    fn searched(text: &str) -> [String; 2] {
        plans(&Filter { search: Some(text.parse().unwrap()), ..Filter::default() })
    }

    #[test]
    fn searches_begin_with_the_index_that_leaves_the_fewest_runs() {
        let text = "SEARCH a USING COVERING INDEX attributes_text (name=? AND text=?)";
        let number = |sign: &str| {
            format!("SEARCH a USING COVERING INDEX attributes_number (name=? AND kind=? AND number{sign}?)")
        };
        let real =
            |sign: &str| format!("SEARCH a USING COVERING INDEX attributes_real (name=? AND kind=? AND real{sign}?)");
        let all = [
            (
                "customer = 'ada' AND WorkflowType = 'kit' AND ExecutionStatus = 'Running'",
                "SEARCH one USING COVERING INDEX attributes_text (name=? AND text=? AND run<?)".to_owned(),
            ),
            ("customer IN ('ada', 'bob') AND StartTime > '2026-01-01'", text.to_owned()),
            ("customer = 'ada' AND WorkflowType = 'kit' AND StartTime > '2026-01-01'", text.to_owned()),
            ("total > 5 AND ExecutionStatus = 'Failed'", format!("{}, UNION ALL, {}", number(">"), real(">"))),
            ("customer = 'ada' OR total = 5", format!("{text}, UNION ALL, {}, UNION ALL, {}", number("="), real("="))),
            (
                "WorkflowId STARTS_WITH 'order' AND customer = 'ada'",
                "SEARCH runs USING INDEX runs_workflow_id (workflow_id>? AND workflow_id<?)".to_owned(),
            ),
            (
                "WorkflowId = 'order-1' AND WorkflowType = 'kit'",
                "SEARCH runs USING INDEX runs_workflow_id (workflow_id=? AND rowid<?)".to_owned(),
            ),
            ("StuckCause = 'panic' AND WorkflowType = 'kit'", "SEARCH runs USING INDEX runs_stuck (no<?)".to_owned()),
            (
                "ExecutionStatus = 'Failed' AND WorkflowType = 'kit'",
                "SEARCH runs USING INDEX runs_ended (status=? AND rowid<?)".to_owned(),
            ),
            (
                "WorkflowType = 'kit' AND TaskQueue = 'eu'",
                "SEARCH runs USING INDEX runs_workflow (workflow=? AND rowid<?)".to_owned(),
            ),
            ("StartTime < '2026-01-01'", "SEARCH runs USING INDEX runs_started (started<?)".to_owned()),
            (
                "StartTime > '2026-01-01' AND WorkflowType = 'kit'",
                "SEARCH runs USING INDEX runs_started (started>? AND started<?)".to_owned(),
            ),
            (
                "WorkflowType = 'kit' ORDER BY CloseTime DESC",
                "SEARCH runs USING INDEX runs_closed (closed>? AND closed<?)".to_owned(),
            ),
            (
                "ExecutionStatus = 'Running' ORDER BY StartTime",
                "runs USING INDEX runs_open_no, USE TEMP B-TREE".to_owned(),
            ),
        ];
        for (text, expected) in all {
            let [list, _] = searched(text);
            assert!(list.contains(&expected), "{text}: {list}");
            assert!(!list.contains("SCAN runs USING INTEGER") && !list.ends_with("SCAN runs"), "{text}: {list}");
        }
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
