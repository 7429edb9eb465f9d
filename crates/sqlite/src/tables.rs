//! The primitives of a store on SQLite's tables.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use dacapo_core::{AttributeValue, Name, ParentClose, Seq, Timestamp};
use dacapo_store::{
    AttemptWrite, Epoch, MessageNo, NewMessage, NewRun, NewTask, NodeNo, Rows, RunNo, RunRow, SWEEP_BYTES, Status,
    StoreError, Stuck, TaskNo, TimerKind, TimerRow, is_request,
};

use crate::columns::moment;
use crate::counters::Counters;
use crate::last_row::LastRow;
use crate::row::run_sums::{self, Identity};
use crate::row::{attribute, deleted_run, message, run, task, timer, turn};
use crate::store_error::store_error;

type Result<T> = std::result::Result<T, StoreError>;

/// A connection within a transaction that the batch began, and what the transaction has changed.
pub(crate) struct Tables<'c> {
    connection: &'c Connection,
    /// The source of numbers for new rows.
    counters: Counters,
    /// A row that was added and stays until its run is deleted.
    added: Option<LastRow>,
    has_removed: bool,
}

/// The rows and bytes that a step of a sweep may still remove.
struct Left {
    rows: usize,
    bytes: usize,
}

impl<'c> Tables<'c> {
    pub(crate) fn new(connection: &'c Connection, counters: Counters) -> Self {
        Self { connection, counters, added: None, has_removed: false }
    }

    /// Returns the counters after the transaction, and a row by which it can be recognised. A transaction that deletes
    /// runs has none: it may remove the row by which an earlier one is recognised.
    pub(crate) fn changed(self) -> (Counters, Option<LastRow>) {
        (self.counters, self.added.filter(|_| !self.has_removed))
    }

    fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(store_error)
    }

    /// Changes columns of a run that share a checksum with others: the row is checked before, and sealed after.
    fn change_run(&self, no: RunNo, sql: &str, params: impl Params) -> Result<()> {
        if run::find(self.connection, "no = ?", [no.0])?.is_some() {
            self.execute(sql, params)?;
            run::seal(self.connection, no)?;
        }
        Ok(())
    }

    fn unseen_messages(&self, run: RunNo) -> Result<Vec<MessageNo>> {
        let sql = format!("SELECT {} FROM messages WHERE run = ? AND taken IS NULL", message::COLUMNS);
        let mut statement = self.connection.prepare_cached(&sql).map_err(store_error)?;
        let mut rows = statement.query([run.0]).map_err(store_error)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(store_error)? {
            found.push(message::read(row)?.no);
        }
        Ok(found)
    }

    /// Removes turns of a deleted run. Returns whether all are removed.
    fn sweep_turns(&self, run: i64, left: &mut Left) -> Result<bool> {
        let sql = "SELECT turn, length(record) FROM turns WHERE run = ? ORDER BY turn LIMIT ?";
        let (last, is_all) = self.portion::<i64>(sql, run, left)?;
        if let Some(last) = last {
            self.execute("DELETE FROM turns WHERE run = ? AND turn <= ?", [run, last])?;
        }
        Ok(is_all)
    }

    /// Removes messages of a deleted run. Returns whether all are removed.
    fn sweep_messages(&self, run: i64, left: &mut Left) -> Result<bool> {
        let sql =
            "SELECT key, length(job) + coalesce(length(outcome), 0) FROM messages WHERE run = ? ORDER BY key LIMIT ?";
        let (last, is_all) = self.portion::<String>(sql, run, left)?;
        if let Some(last) = last {
            self.execute("DELETE FROM messages WHERE run = ? AND key <= ?", params![run, last])?;
        }
        Ok(is_all)
    }

    /// Returns the last of the rows that can be removed now, and whether there are no more after it.
    fn portion<K: FromSql>(&self, sql: &str, run: i64, left: &mut Left) -> Result<(Option<K>, bool)> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        // Asks for one more row, to see whether there is one.
        let mut rows = statement.query(params![run, left.rows as i64 + 1]).map_err(store_error)?;
        let mut last = None;
        while let Some(row) = rows.next().map_err(store_error)? {
            if left.rows == 0 || left.bytes == 0 {
                return Ok((last, false));
            }
            let (key, size): (K, i64) = row.try_into().map_err(store_error)?;
            left.rows -= 1;
            left.bytes = left.bytes.saturating_sub(size as usize);
            last = Some(key);
        }
        Ok((last, true))
    }

    fn number(&self, sql: &str, params: impl Params) -> Result<Option<i64>> {
        self.value(sql, params)
    }

    /// Returns the first row that a query finds.
    fn first<T>(&self, sql: &str, params: impl Params, read: impl Fn(&Row<'_>) -> Result<T>) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        let mut rows = statement.query(params).map_err(store_error)?;
        rows.next().map_err(store_error)?.map(read).transpose()
    }

    fn value<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        statement.query_row(params, |row| row.get(0)).optional().map_err(store_error)
    }
}

impl Rows for Tables<'_> {
    fn insert_run(&mut self, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Result<RunNo> {
        let first = new.chain();
        let parent = new.parent.as_ref();
        let RunNo(no) = self.counters.take_run();
        self.execute(
            "INSERT INTO runs (no, run_id, workflow_id, workflow, queue, status, started, turns, owner, epoch, pins, parent, \
             parent_seq, parent_close, first_run_id, request, memo, identity_sum, progress_sum, memo_sum) \
             VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                no,
                new.run_id.as_str(),
                new.workflow_id.as_str(),
                new.workflow.as_str(),
                new.queue.as_str(),
                moment(new.started),
                turns as i64,
                owner.map(|owner| owner.0),
                epoch.0,
                new.pins,
                parent.map(|parent| parent.run.0),
                parent.map(|parent| parent.seq.0 as i64),
                parent.map(|parent| parent.close as i64),
                first.as_str(),
                new.request.as_deref(),
                new.memo,
                Identity::of_new(new, owner).sum(no).finish(),
                run_sums::progress(no, turns, epoch, 0).finish(),
                run_sums::memo(no, &new.memo).finish(),
            ],
        )?;
        self.added = Some(LastRow::Run(no));
        Ok(RunNo(no))
    }

    fn insert_closed(&mut self, run: &RunRow, request: Option<&Name>, no: Option<RunNo>) -> Result<RunNo> {
        let no = no.unwrap_or_else(|| self.counters.take_run()).0;
        self.execute(
            "INSERT INTO runs (no, run_id, workflow_id, workflow, queue, status, started, closed, turns, epoch, pins, \
             first_run_id, request, memo, published, result, identity_sum, progress_sum, memo_sum, published_sum, result_sum) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                no,
                run.run_id.as_str(),
                run.workflow_id.as_str(),
                run.workflow.as_str(),
                run.queue.as_str(),
                run.status.code(),
                moment(run.started),
                run.closed.map(moment),
                run.turns as i64,
                run.pins,
                run.first_run_id.as_str(),
                request.map(Name::as_str),
                run.memo,
                run.published,
                run.result,
                Identity::of_closed(run, request).sum(no).finish(),
                run_sums::progress(no, run.turns, Epoch::default(), 0).finish(),
                run_sums::memo(no, &run.memo).finish(),
                run.published.as_ref().map(|snapshot| run_sums::published(no, snapshot).finish()),
                run_sums::result(no, run.status, run.closed.map(moment), run.result.as_deref()).finish(),
            ],
        )?;
        self.added = Some(LastRow::Run(no));
        Ok(RunNo(no))
    }

    fn last_no(&mut self, from: RunNo, until: RunNo) -> Result<Option<RunNo>> {
        let sql = "SELECT max(no) FROM (SELECT max(no) AS no FROM runs WHERE no >= ?1 AND no < ?2 \
             UNION ALL SELECT max(run) FROM garbage WHERE run >= ?1 AND run < ?2) HAVING max(no) IS NOT NULL";
        Ok(self.number(sql, [from.0, until.0])?.map(RunNo))
    }

    fn run_of_id(&mut self, run_id: &str) -> Result<Option<RunNo>> {
        Ok(self.number("SELECT no FROM runs WHERE run_id = ?", [run_id])?.map(RunNo))
    }

    fn run(&mut self, no: RunNo) -> Result<Option<RunRow>> {
        run::find(self.connection, "no = ?", [no.0])
    }

    fn open_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>> {
        Ok(self.number("SELECT no FROM runs WHERE workflow_id = ? AND status = 0", [workflow_id])?.map(RunNo))
    }

    fn last_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>> {
        let sql = "SELECT no FROM runs WHERE workflow_id = ? ORDER BY no DESC LIMIT 1";
        Ok(self.number(sql, [workflow_id])?.map(RunNo))
    }

    fn requested_run(&mut self, request: &str) -> Result<Option<RunNo>> {
        Ok(self.number("SELECT no FROM runs WHERE request = ?", [request])?.map(RunNo))
    }

    fn open_children(&mut self, run: RunNo) -> Result<Vec<(RunNo, ParentClose)>> {
        let sql = "SELECT no, parent_close FROM runs WHERE parent = ? AND status = 0 ORDER BY no";
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        let children = statement.query_map([run.0], |row| Ok((row.get(0)?, row.get(1)?))).map_err(store_error)?;
        let children: Vec<(i64, i64)> = children.collect::<std::result::Result<_, _>>().map_err(store_error)?;
        children.into_iter().map(|(no, close)| Ok((RunNo(no), run::parent_close(close)?))).collect()
    }

    fn hand_over(&mut self, child: RunNo, parent: RunNo) -> Result<()> {
        let sql = "UPDATE runs SET parent = ?, parent_seq = -1 WHERE no = ?";
        self.change_run(child, sql, [parent.0, child.0])
    }

    fn advance(&mut self, run: RunNo, turn: u64, epoch: Epoch, crash_count: u32) -> Result<bool> {
        let sql = "UPDATE runs SET turns = ?1 + 1, crash_count = ?4, progress_sum = ?5, stuck_cause = NULL, stuck_subject = NULL, \
             stuck_reason = NULL, stuck_since = NULL, stuck_attempts = NULL, stuck_retry = NULL, stuck_sum = NULL \
             WHERE no = ?2 AND turns = ?1 AND epoch = ?3 AND status = 0";
        let sum = run_sums::progress(run.0, turn + 1, epoch, crash_count).finish();
        Ok(self.execute(sql, params![turn as i64, run.0, epoch.0, crash_count, sum])? == 1)
    }

    fn own(&mut self, run: RunNo, seen: Epoch, node: NodeNo, epoch: Epoch) -> Result<bool> {
        let passes = self.run(run)?.is_some_and(|row| row.status.is_open() && row.epoch == seen);
        if passes {
            let sql = "UPDATE runs SET owner = ?, epoch = ? WHERE no = ?";
            self.change_run(run, sql, [node.0, epoch.0, run.0])?;
        }
        Ok(passes)
    }

    fn set_parent(&mut self, run: RunNo, parent: RunNo) -> Result<()> {
        self.change_run(run, "UPDATE runs SET parent = ? WHERE no = ?", [parent.0, run.0])
    }

    fn close(&mut self, run: RunNo, status: Status, at: Timestamp, result: &[u8]) -> Result<()> {
        // The owner stays in the row: it shares a checksum with columns that never change. A closed run is read without
        // its owner.
        let sql = "UPDATE runs SET status = ?, closed = ?, result = ?, result_sum = ?, stuck_cause = NULL, stuck_subject = NULL, stuck_reason = NULL, \
             stuck_since = NULL, stuck_attempts = NULL, stuck_retry = NULL, stuck_sum = NULL WHERE no = ?";
        let sum = run_sums::result(run.0, status, Some(moment(at)), Some(result)).finish();
        self.execute(sql, params![status.code(), moment(at), result, sum, run.0]).map(drop)
    }

    fn set_stuck(&mut self, run: RunNo, stuck: Option<&Stuck>) -> Result<()> {
        let sql = "UPDATE runs SET stuck_cause = ?, stuck_subject = ?, stuck_reason = ?, stuck_since = ?, stuck_attempts = ?, stuck_retry = ?, stuck_sum = ? \
             WHERE no = ?";
        let row = params![
            stuck.map(|stuck| stuck.cause.code()),
            stuck.map(|stuck| stuck.subject.as_str()),
            stuck.map(|stuck| stuck.reason.as_str()),
            stuck.map(|stuck| moment(stuck.since)),
            stuck.map(|stuck| stuck.attempts),
            stuck.map(|stuck| moment(stuck.retry)),
            stuck.map(|stuck| run_sums::stuck(run.0, stuck).finish()),
            run.0,
        ];
        self.execute(sql, row).map(drop)
    }

    fn set_run_crash_count(&mut self, run: RunNo, crash_count: u32) -> Result<()> {
        self.change_run(run, "UPDATE runs SET crash_count = ? WHERE no = ?", params![crash_count, run.0])
    }

    fn delete_run(&mut self, run: RunNo) -> Result<()> {
        self.has_removed = true;
        for sql in
            ["DELETE FROM runs WHERE no = ?", "DELETE FROM attributes WHERE run = ?", "DELETE FROM tasks WHERE run = ?"]
        {
            self.execute(sql, [run.0])?;
        }
        let sum = deleted_run::sum(run).finish();
        self.execute("INSERT OR IGNORE INTO garbage (run, sum) VALUES (?, ?)", [run.0, sum]).map(drop)
    }

    fn sweep(&mut self, most: usize) -> Result<bool> {
        self.has_removed = true;
        let mut left = Left { rows: most, bytes: SWEEP_BYTES };
        let sql = format!("SELECT {} FROM garbage ORDER BY run LIMIT 1", deleted_run::COLUMNS);
        while let Some(RunNo(run)) = self.first(&sql, [], deleted_run::read)? {
            if !(self.sweep_turns(run, &mut left)? && self.sweep_messages(run, &mut left)?) {
                return Ok(true);
            }
            self.execute("DELETE FROM garbage WHERE run = ?", [run])?;
        }
        Ok(false)
    }

    fn set_memo(&mut self, run: RunNo, memo: &[u8]) -> Result<()> {
        let sum = run_sums::memo(run.0, memo).finish();
        self.execute("UPDATE runs SET memo = ?, memo_sum = ? WHERE no = ?", params![memo, sum, run.0]).map(drop)
    }

    fn set_published(&mut self, run: RunNo, snapshot: &[u8]) -> Result<()> {
        let sum = run_sums::published(run.0, snapshot).finish();
        let sql = "UPDATE runs SET published = ?, published_sum = ? WHERE no = ?";
        self.execute(sql, params![snapshot, sum, run.0]).map(drop)
    }

    fn set_attribute(&mut self, run: RunNo, name: &Name, value: Option<&AttributeValue>) -> Result<()> {
        self.execute("DELETE FROM attributes WHERE run = ? AND name = ?", params![run.0, name.as_str()])?;
        let sql = "INSERT INTO attributes (run, name, place, count, kind, text, number, real, sum) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        for part in value.map_or_else(Vec::new, attribute::parts) {
            let sum = part.sum(run, name).finish();
            let attribute::Part { place, count, kind, text, number, real } = part;
            self.execute(sql, params![run.0, name.as_str(), place, count, kind, text, number, real, sum])?;
        }
        Ok(())
    }

    fn insert_turn(&mut self, run: RunNo, turn: u64, record: &[u8]) -> Result<()> {
        let sql = "INSERT INTO turns (run, turn, record, sum) VALUES (?, ?, ?, ?)";
        let sum = turn::sum(run, turn, record);
        self.execute(sql, params![run.0, turn as i64, record, sum])?;
        self.added = Some(LastRow::Turn { run: run.0, turn: turn as i64 });
        Ok(())
    }

    fn copy_turns(&mut self, from: RunNo, to: RunNo, count: u64) -> Result<()> {
        let sql = format!("SELECT {} FROM turns WHERE run = ? AND turn < ? ORDER BY turn", turn::COLUMNS);
        let connection = self.connection;
        let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
        let mut rows = statement.query(params![from.0, count as i64]).map_err(store_error)?;
        while let Some(row) = rows.next().map_err(store_error)? {
            let (number, record) = turn::read(from, row)?;
            self.insert_turn(to, number, record)?;
        }
        Ok(())
    }

    fn turn(&mut self, run: RunNo, number: u64) -> Result<Option<Vec<u8>>> {
        let sql = format!("SELECT {} FROM turns WHERE run = ? AND turn = ?", turn::COLUMNS);
        self.first(&sql, params![run.0, number as i64], |row| Ok(turn::read(run, row)?.1.to_vec()))
    }

    fn insert_task(&mut self, run: RunNo, turn: u64, task: &NewTask) -> Result<TaskNo> {
        let sql = "INSERT INTO tasks (no, run, seq, queue, ready, priority, turn, position, attempt, crash_count, sum, attempt_sum) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 0, ?, ?)";
        let NewTask { seq, queue, ready, priority, position, .. } = task;
        let no = self.counters.take();
        let sum = task::Fixed::of_new(no, run, turn, task).sum();
        let attempt_sum = task::Attempt::first(no, *ready).sum();
        let (seq, ready, turn) = (seq.0 as i64, moment(*ready), turn as i64);
        self.execute(sql, params![no, run.0, seq, queue.as_str(), ready, priority, turn, position, sum, attempt_sum])?;
        Ok(TaskNo(no))
    }

    fn delete_task(&mut self, task: TaskNo) -> Result<bool> {
        Ok(self.execute("DELETE FROM tasks WHERE no = ?", [task.0])? == 1)
    }

    fn delete_task_of(&mut self, run: RunNo, seq: Seq) -> Result<()> {
        self.execute("DELETE FROM tasks WHERE run = ? AND seq = ?", params![run.0, seq.0 as i64]).map(drop)
    }

    fn delete_tasks(&mut self, run: RunNo) -> Result<()> {
        self.execute("DELETE FROM tasks WHERE run = ?", [run.0]).map(drop)
    }

    fn set_task_crash_count(&mut self, no: TaskNo, crash_count: u32) -> Result<()> {
        let sql = format!("SELECT {} FROM tasks WHERE no = ?", task::COLUMNS);
        if self.first(&sql, [no.0], task::read)?.is_some() {
            self.execute("UPDATE tasks SET crash_count = ? WHERE no = ?", params![crash_count, no.0])?;
            task::seal(self.connection, no)?;
        }
        Ok(())
    }

    fn update_task(&mut self, attempt: &AttemptWrite) -> Result<bool> {
        let sql = "UPDATE tasks SET attempt = ?, ready = ?, holder = ?, crash_count = ?, external = ?, failure = ?, details = ?, \
             attempt_sum = ? WHERE no = ?";
        let found =
            self.first(&format!("SELECT {} FROM tasks WHERE no = ?", task::COLUMNS), [attempt.task.0], task::read)?;
        let Some(row) = found else { return Ok(false) };
        if attempt.is_older_than(row.attempt, row.external) {
            return Ok(true);
        }
        let sum = task::Attempt::of_write(attempt).sum();
        let (node, ready) = (attempt.node.map(|node| node.0), moment(attempt.ready));
        let external = attempt.external.map(moment);
        let AttemptWrite { task, attempt, crash_count, failure, details, .. } = attempt;
        let row = params![attempt, ready, node, crash_count, external, failure, details, sum, task.0];
        Ok(self.execute(sql, row)? == 1)
    }

    fn insert_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        let sum = timer::sum(&TimerRow { due, run, kind }).finish();
        let (kind, seq) = kind.code();
        let sql = "INSERT OR IGNORE INTO timers (due, run, kind, seq, sum) VALUES (?, ?, ?, ?, ?)";
        self.execute(sql, params![moment(due), run.0, kind, seq as i64, sum]).map(drop)
    }

    fn delete_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        let (kind, seq) = kind.code();
        let sql = "DELETE FROM timers WHERE due = ? AND run = ? AND kind = ? AND seq = ?";
        self.execute(sql, params![moment(due), run.0, kind, seq as i64]).map(drop)
    }

    fn insert_message(&mut self, run: RunNo, message: &NewMessage, taken: Option<u64>) -> Result<Option<MessageNo>> {
        let chain = match is_request(&message.key) {
            true => self.value::<String>("SELECT first_run_id FROM runs WHERE no = ?", [run.0])?,
            false => None,
        };
        let sql = "INSERT OR IGNORE INTO messages (no, run, key, sent, job, taken, chain, sum, taken_sum) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let no = self.counters.take();
        let sum = message::sum(no, run, &message.key, moment(message.sent), &message.job, chain.as_deref()).finish();
        let taken_sum = taken.map(|turn| message::taken_sum(no, turn).finish());
        let (key, sent, taken) = (message.key.as_str(), moment(message.sent), taken.map(|turn| turn as i64));
        let added = self.execute(sql, params![no, run.0, key, sent, message.job, taken, chain, sum, taken_sum])?;
        if added == 0 {
            return Ok(None);
        }
        self.added = Some(LastRow::Message(no));
        Ok(Some(MessageNo(no)))
    }

    fn message_job(&mut self, run: RunNo, key: &str) -> Result<Option<Vec<u8>>> {
        let sql = format!("SELECT {} FROM messages WHERE run = ? AND key = ?", message::COLUMNS);
        self.first(&sql, params![run.0, key], |row| Ok(message::read(row)?.job))
    }

    fn message_no(&mut self, run: RunNo, key: &str) -> Result<Option<MessageNo>> {
        Ok(self.number("SELECT no FROM messages WHERE run = ? AND key = ?", params![run.0, key])?.map(MessageNo))
    }

    fn is_unseen(&mut self, run: RunNo, message: MessageNo) -> Result<bool> {
        let sql = "SELECT 1 FROM messages WHERE no = ? AND run = ? AND taken IS NULL";
        Ok(self.number(sql, [message.0, run.0])?.is_some())
    }

    fn move_unseen(&mut self, from: RunNo, to: RunNo) -> Result<()> {
        for no in self.unseen_messages(from)? {
            // A message whose key the other run has is there already.
            if self.execute("UPDATE OR IGNORE messages SET run = ? WHERE no = ?", [to.0, no.0])? == 1 {
                message::seal(self.connection, no)?;
            }
        }
        Ok(())
    }

    fn take_message(&mut self, message: MessageNo, turn: u64) -> Result<()> {
        let sum = message::taken_sum(message.0, turn).finish();
        let sql = "UPDATE messages SET taken = ?, taken_sum = ? WHERE no = ?";
        self.execute(sql, [turn as i64, sum, message.0]).map(drop)
    }

    fn count_unseen(&mut self, run: RunNo) -> Result<usize> {
        let count = self.number("SELECT count(*) FROM messages WHERE run = ? AND taken IS NULL", [run.0])?;
        Ok(count.unwrap_or_default() as usize)
    }

    fn set_outcome(&mut self, run: RunNo, key: &Name, outcome: &[u8]) -> Result<()> {
        let sum = message::outcome_sum(run, key, outcome).finish();
        let sql = "UPDATE messages SET outcome = ?, outcome_sum = ? WHERE run = ? AND key = ?";
        self.execute(sql, params![outcome, sum, run.0, key.as_str()]).map(drop)
    }
}
