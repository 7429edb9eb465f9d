//! The primitives of a store on SQLite's tables.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use dacapo_core::{Name, ParentClose, Seq, Timestamp};
use dacapo_store::{
    AttemptWrite, Epoch, MailNo, NewMail, NewRun, NewTask, NodeNo, Parent, Rows, RunNo, RunRow, SWEEP_BYTES, Status,
    StoreError, Stuck, TaskNo, TimerKind, is_request,
};

use crate::numbers::Numbers;
use crate::trouble::{corrupt, trouble};

type Result<T> = std::result::Result<T, StoreError>;

/// A connection, within a transaction that its owner began, and numbers for new rows.
pub(crate) struct Tables<'c>(pub(crate) &'c Connection, pub(crate) &'c mut Numbers);

/// The columns of a run, in the order in which [`run_row`] reads them.
pub(crate) const RUN: &str = "no, run_id, workflow_id, workflow, queue, status, started, closed, turns, owner, epoch, pins, \
     parent, parent_seq, parent_close, first_run_id, stuck_reason, stuck_since, stuck_attempts, stuck_retry, memo, \
     published, result, strikes";

/// What a step of a sweep may still remove.
struct Left {
    rows: usize,
    bytes: usize,
}

impl Tables<'_> {
    fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.0.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(trouble)
    }

    fn new_no(&mut self) -> Result<i64> {
        self.1.take(self.0)
    }

    /// Removes turns of a deleted run. Says whether they are all gone.
    fn sweep_turns(&self, run: i64, left: &mut Left) -> Result<bool> {
        let sql = "SELECT turn, length(record) FROM turns WHERE run = ? ORDER BY turn LIMIT ?";
        let (last, is_all) = self.portion::<i64>(sql, run, left)?;
        if let Some(last) = last {
            self.execute("DELETE FROM turns WHERE run = ? AND turn <= ?", [run, last])?;
        }
        Ok(is_all)
    }

    /// The same for its mail.
    fn sweep_mail(&self, run: i64, left: &mut Left) -> Result<bool> {
        let sql = "SELECT key, length(job) + coalesce(length(outcome), 0) FROM mail WHERE run = ? ORDER BY key LIMIT ?";
        let (last, is_all) = self.portion::<String>(sql, run, left)?;
        if let Some(last) = last {
            self.execute("DELETE FROM mail WHERE run = ? AND key <= ?", params![run, last])?;
        }
        Ok(is_all)
    }

    /// The last of the rows that can be removed now, and whether there are no more after it.
    fn portion<K: FromSql>(&self, sql: &str, run: i64, left: &mut Left) -> Result<(Option<K>, bool)> {
        let mut statement = self.0.prepare_cached(sql).map_err(trouble)?;
        // One more, to see whether there is one.
        let mut rows = statement.query(params![run, left.rows as i64 + 1]).map_err(trouble)?;
        let mut last = None;
        while let Some(row) = rows.next().map_err(trouble)? {
            if left.rows == 0 || left.bytes == 0 {
                return Ok((last, false));
            }
            let (key, size): (K, i64) = row.try_into().map_err(trouble)?;
            left.rows -= 1;
            left.bytes = left.bytes.saturating_sub(size as usize);
            last = Some(key);
        }
        Ok((last, true))
    }

    fn number(&self, sql: &str, params: impl Params) -> Result<Option<i64>> {
        let mut statement = self.0.prepare_cached(sql).map_err(trouble)?;
        statement.query_row(params, |row| row.get(0)).optional().map_err(trouble)
    }
}

impl Rows for Tables<'_> {
    fn insert_run(&mut self, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Result<RunNo> {
        let first = if new.first_run_id.is_empty() { &new.run_id } else { &new.first_run_id };
        let parent = new.parent.as_ref();
        let no = self.new_no()?;
        self.execute(
            "INSERT INTO runs (no, run_id, workflow_id, workflow, queue, status, started, turns, owner, epoch, pins, parent, \
             parent_seq, parent_close, first_run_id, request, memo) VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            ],
        )?;
        Ok(RunNo(no))
    }

    fn insert_closed(&mut self, run: &RunRow, request: Option<&Name>, no: Option<RunNo>) -> Result<RunNo> {
        let no = no.map_or_else(|| self.new_no(), |no| Ok(no.0))?;
        self.execute(
            "INSERT INTO runs (no, run_id, workflow_id, workflow, queue, status, started, closed, turns, epoch, pins, \
             first_run_id, request, memo, published, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)",
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
            ],
        )?;
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
        run_where(self.0, "no = ?", params![no.0])
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
        let mut statement = self.0.prepare_cached(sql).map_err(trouble)?;
        let children = statement.query_map([run.0], |row| Ok((row.get(0)?, row.get(1)?))).map_err(trouble)?;
        let children: Vec<(i64, i64)> = children.collect::<std::result::Result<_, _>>().map_err(trouble)?;
        children.into_iter().map(|(no, close)| Ok((RunNo(no), parent_close(close)?))).collect()
    }

    fn hand_over(&mut self, child: RunNo, parent: RunNo) -> Result<()> {
        self.execute("UPDATE runs SET parent = ?, parent_seq = -1 WHERE no = ?", params![parent.0, child.0]).map(drop)
    }

    fn advance(&mut self, run: RunNo, turn: u64, epoch: Epoch, strikes: u32) -> Result<bool> {
        let sql = "UPDATE runs SET turns = ?1 + 1, strikes = ?4, stuck_reason = NULL, stuck_since = NULL, stuck_attempts = NULL, \
             stuck_retry = NULL WHERE no = ?2 AND turns = ?1 AND epoch = ?3 AND status = 0";
        Ok(self.execute(sql, params![turn as i64, run.0, epoch.0, strikes])? == 1)
    }

    fn own(&mut self, run: RunNo, seen: Epoch, node: NodeNo, epoch: Epoch) -> Result<bool> {
        let sql = "UPDATE runs SET owner = ?, epoch = ? WHERE no = ? AND epoch = ? AND status = 0";
        Ok(self.execute(sql, params![node.0, epoch.0, run.0, seen.0])? == 1)
    }

    fn set_parent(&mut self, run: RunNo, parent: RunNo) -> Result<()> {
        self.execute("UPDATE runs SET parent = ? WHERE no = ?", params![parent.0, run.0]).map(drop)
    }

    fn close(&mut self, run: RunNo, status: Status, at: Timestamp, result: &[u8]) -> Result<()> {
        let sql = "UPDATE runs SET status = ?, closed = ?, result = ?, owner = NULL, stuck_reason = NULL, \
             stuck_since = NULL, stuck_attempts = NULL, stuck_retry = NULL WHERE no = ?";
        self.execute(sql, params![status.code(), moment(at), result, run.0]).map(drop)
    }

    fn set_stuck(&mut self, run: RunNo, stuck: Option<&Stuck>) -> Result<()> {
        let sql = "UPDATE runs SET stuck_reason = ?, stuck_since = ?, stuck_attempts = ?, stuck_retry = ? WHERE no = ?";
        let row = params![
            stuck.map(|stuck| stuck.reason.as_str()),
            stuck.map(|stuck| moment(stuck.since)),
            stuck.map(|stuck| stuck.attempts),
            stuck.map(|stuck| moment(stuck.retry)),
            run.0,
        ];
        self.execute(sql, row).map(drop)
    }

    fn strike_run(&mut self, run: RunNo, strikes: u32) -> Result<()> {
        self.execute("UPDATE runs SET strikes = ? WHERE no = ?", params![strikes, run.0]).map(drop)
    }

    fn delete_run(&mut self, run: RunNo) -> Result<()> {
        for sql in [
            "DELETE FROM runs WHERE no = ?",
            "DELETE FROM attributes WHERE run = ?",
            "DELETE FROM tasks WHERE run = ?",
            "INSERT OR IGNORE INTO garbage (run) VALUES (?)",
        ] {
            self.execute(sql, [run.0])?;
        }
        Ok(())
    }

    fn sweep(&mut self, most: usize) -> Result<bool> {
        let mut left = Left { rows: most, bytes: SWEEP_BYTES };
        while let Some(run) = self.number("SELECT run FROM garbage ORDER BY run LIMIT 1", [])? {
            if !(self.sweep_turns(run, &mut left)? && self.sweep_mail(run, &mut left)?) {
                return Ok(true);
            }
            self.execute("DELETE FROM garbage WHERE run = ?", [run])?;
        }
        Ok(false)
    }

    fn set_memo(&mut self, run: RunNo, memo: &[u8]) -> Result<()> {
        self.execute("UPDATE runs SET memo = ? WHERE no = ?", params![memo, run.0]).map(drop)
    }

    fn set_published(&mut self, run: RunNo, snapshot: &[u8]) -> Result<()> {
        self.execute("UPDATE runs SET published = ? WHERE no = ?", params![snapshot, run.0]).map(drop)
    }

    fn set_attribute(&mut self, run: RunNo, name: &Name, value: Option<&[u8]>) -> Result<()> {
        match value {
            Some(value) => {
                let sql = "INSERT INTO attributes (run, name, value) VALUES (?, ?, ?) \
                     ON CONFLICT (run, name) DO UPDATE SET value = excluded.value";
                self.execute(sql, params![run.0, name.as_str(), value])
            }
            None => self.execute("DELETE FROM attributes WHERE run = ? AND name = ?", params![run.0, name.as_str()]),
        }
        .map(drop)
    }

    fn insert_turn(&mut self, run: RunNo, turn: u64, record: &[u8]) -> Result<()> {
        let sql = "INSERT INTO turns (run, turn, record) VALUES (?, ?, ?)";
        self.execute(sql, params![run.0, turn as i64, record]).map(drop)
    }

    fn copy_turns(&mut self, from: RunNo, to: RunNo, count: u64) -> Result<()> {
        let sql = "INSERT INTO turns (run, turn, record) \
             SELECT ?, turn, record FROM turns WHERE run = ? AND turn < ? ORDER BY turn";
        self.execute(sql, params![to.0, from.0, count as i64]).map(drop)
    }

    fn turn(&mut self, run: RunNo, turn: u64) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT record FROM turns WHERE run = ? AND turn = ?";
        let mut statement = self.0.prepare_cached(sql).map_err(trouble)?;
        statement.query_row(params![run.0, turn as i64], |row| row.get(0)).optional().map_err(trouble)
    }

    fn insert_task(&mut self, run: RunNo, turn: u64, task: &NewTask) -> Result<TaskNo> {
        let sql = "INSERT INTO tasks (no, run, seq, queue, ready, priority, turn, position, attempt, strikes) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 0)";
        let (queue, ready) = (task.queue.as_str(), moment(task.ready));
        let no = self.new_no()?;
        self.execute(
            sql,
            params![no, run.0, task.seq.0 as i64, queue, ready, task.priority, turn as i64, task.position],
        )?;
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

    fn strike_task(&mut self, task: TaskNo, strikes: u32) -> Result<()> {
        self.execute("UPDATE tasks SET strikes = ? WHERE no = ?", params![strikes, task.0]).map(drop)
    }

    fn update_task(&mut self, attempt: &AttemptWrite) -> Result<bool> {
        let sql = "UPDATE tasks SET attempt = ?, ready = ?, holder = ?, strikes = ?, outside = ?, failure = ?, details = ? \
             WHERE no = ?";
        let (holder, ready) = (attempt.holder.map(|holder| holder.0), moment(attempt.ready));
        let outside = attempt.outside.map(moment);
        let AttemptWrite { task, attempt, strikes, failure, details, .. } = attempt;
        let row = params![attempt, ready, holder, strikes, outside, failure, details, task.0];
        Ok(self.execute(sql, row)? == 1)
    }

    fn insert_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        let (kind, seq) = kind.code();
        let sql = "INSERT OR IGNORE INTO timers (due, run, kind, seq) VALUES (?, ?, ?, ?)";
        self.execute(sql, params![moment(due), run.0, kind, seq as i64]).map(drop)
    }

    fn delete_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        let (kind, seq) = kind.code();
        let sql = "DELETE FROM timers WHERE due = ? AND run = ? AND kind = ? AND seq = ?";
        self.execute(sql, params![moment(due), run.0, kind, seq as i64]).map(drop)
    }

    fn insert_mail(&mut self, run: RunNo, mail: &NewMail, taken: Option<u64>) -> Result<Option<MailNo>> {
        let sql = match is_request(&mail.key) {
            true => {
                "INSERT OR IGNORE INTO mail (no, run, key, sent, job, taken, chain) \
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, first_run_id FROM runs WHERE no = ?2"
            }
            false => "INSERT OR IGNORE INTO mail (no, run, key, sent, job, taken) VALUES (?, ?, ?, ?, ?, ?)",
        };
        let taken = taken.map(|turn| turn as i64);
        let no = self.new_no()?;
        let added = self.execute(sql, params![no, run.0, mail.key.as_str(), moment(mail.sent), mail.job, taken])?;
        Ok((added == 1).then_some(MailNo(no)))
    }

    fn mail_job(&mut self, run: RunNo, key: &str) -> Result<Option<Vec<u8>>> {
        let mut statement = self.0.prepare_cached("SELECT job FROM mail WHERE run = ? AND key = ?").map_err(trouble)?;
        statement.query_row(params![run.0, key], |row| row.get(0)).optional().map_err(trouble)
    }

    fn mail_of_key(&mut self, run: RunNo, key: &str) -> Result<Option<MailNo>> {
        Ok(self.number("SELECT no FROM mail WHERE run = ? AND key = ?", params![run.0, key])?.map(MailNo))
    }

    fn is_unseen(&mut self, run: RunNo, mail: MailNo) -> Result<bool> {
        let sql = "SELECT 1 FROM mail WHERE no = ? AND run = ? AND taken IS NULL";
        Ok(self.number(sql, [mail.0, run.0])?.is_some())
    }

    fn move_unseen(&mut self, from: RunNo, to: RunNo) -> Result<()> {
        // Mail of a key that the other run has is there already.
        let sql = "UPDATE OR IGNORE mail SET run = ? WHERE run = ? AND taken IS NULL";
        self.execute(sql, params![to.0, from.0]).map(drop)
    }

    fn take_mail(&mut self, mail: MailNo, turn: u64) -> Result<()> {
        self.execute("UPDATE mail SET taken = ? WHERE no = ?", params![turn as i64, mail.0]).map(drop)
    }

    fn count_unseen(&mut self, run: RunNo) -> Result<usize> {
        let count = self.number("SELECT count(*) FROM mail WHERE run = ? AND taken IS NULL", [run.0])?;
        Ok(count.unwrap_or_default() as usize)
    }

    fn set_outcome(&mut self, run: RunNo, key: &Name, outcome: &[u8]) -> Result<()> {
        let sql = "UPDATE mail SET outcome = ? WHERE run = ? AND key = ?";
        self.execute(sql, params![outcome, run.0, key.as_str()]).map(drop)
    }
}

/// The run that a condition finds.
pub(crate) fn run_where(connection: &Connection, condition: &str, params: impl Params) -> Result<Option<RunRow>> {
    let sql = format!("SELECT {RUN} FROM runs WHERE {condition}");
    let mut statement = connection.prepare_cached(&sql).map_err(trouble)?;
    let mut rows = statement.query(params).map_err(trouble)?;
    rows.next().map_err(trouble)?.map(run_row).transpose()
}

/// Reads a run.
pub(crate) fn run_row(row: &Row<'_>) -> Result<RunRow> {
    read_run(row).map_err(trouble)?
}

fn read_run(row: &Row<'_>) -> rusqlite::Result<Result<RunRow>> {
    let parent: Option<(i64, i64, i64)> = match (row.get(12)?, row.get(13)?, row.get(14)?) {
        (Some(run), Some(seq), Some(close)) => Some((run, seq, close)),
        _ => None,
    };
    let parent: Option<Result<Parent>> = parent
        .map(|(run, seq, close)| Ok(Parent { run: RunNo(run), seq: Seq(seq as u64), close: parent_close(close)? }));
    let stuck = match (row.get::<_, Option<String>>(16)?, row.get(17)?, row.get(18)?, row.get(19)?) {
        (Some(reason), Some(since), Some(attempts), Some(retry)) => {
            Some(Stuck { reason, since: time(since), attempts, retry: time(retry) })
        }
        _ => None,
    };
    let (no, status) = (RunNo(row.get(0)?), row.get(5)?);
    let (run_id, workflow_id, workflow, queue) = (name(row, 1)?, name(row, 2)?, name(row, 3)?, name(row, 4)?);
    let (started, closed) = (time(row.get(6)?), row.get::<_, Option<i64>>(7)?.map(time));
    let (turns, owner, epoch) = (row.get::<_, i64>(8)? as u64, row.get::<_, Option<i64>>(9)?, Epoch(row.get(10)?));
    let (pins, first_run_id) = (row.get(11)?, name(row, 15)?);
    let (memo, published, result, strikes) = (row.get(20)?, row.get(21)?, row.get(22)?, row.get(23)?);
    Ok((|| {
        Ok(RunRow {
            no,
            run_id,
            workflow_id,
            workflow,
            queue,
            status: Status::from_code(status).ok_or_else(|| corrupt(format!("{no} has status {status}")))?,
            started,
            closed,
            turns,
            owner: owner.map(NodeNo),
            epoch,
            pins,
            parent: parent.transpose()?,
            first_run_id,
            stuck,
            strikes,
            memo,
            published,
            result,
        })
    })())
}

pub(crate) fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<Name> {
    Ok(Name::from(row.get::<_, String>(column)?))
}

/// A moment as SQLite keeps it. The end of time is the last moment it can hold.
pub(crate) fn moment(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(crate) const fn time(moment: i64) -> Timestamp {
    Timestamp(moment as u64)
}

fn parent_close(code: i64) -> Result<ParentClose> {
    [ParentClose::Terminate, ParentClose::Abandon, ParentClose::RequestCancel]
        .into_iter()
        .find(|close| *close as i64 == code)
        .ok_or_else(|| corrupt(format!("a run has parent-close policy {code}")))
}
