//! Checksums for the rows of a file that was written before there were any.

use rusqlite::{Connection, params};

use dacapo_store::{MailNo, RunNo, StoreError, TaskNo, TimerKind, TimerRow};

use crate::columns::time;
use crate::counters::Counters;
use crate::row::{attribute, deleted_run, message, run, task, timer, turn};
use crate::trouble::{corrupt, trouble};

/// Computes the checksums of all rows. What is damaged by now cannot be told from what is not.
pub(crate) fn seal_all(connection: &Connection) -> Result<(), StoreError> {
    for no in numbers(connection, "SELECT no FROM runs")? {
        run::seal(connection, RunNo(no))?;
    }
    for no in numbers(connection, "SELECT no FROM mail")? {
        message::seal(connection, MailNo(no))?;
    }
    for no in numbers(connection, "SELECT no FROM tasks")? {
        task::seal(connection, TaskNo(no))?;
    }
    for no in numbers(connection, "SELECT no FROM turns")? {
        seal_turn(connection, no).map_err(trouble)?;
    }
    for no in numbers(connection, "SELECT run FROM garbage")? {
        let row = [deleted_run::sum(RunNo(no)).finish(), no];
        connection.execute("UPDATE garbage SET sum = ? WHERE run = ?", row).map_err(trouble)?;
    }
    seal_attributes(connection).map_err(trouble)?;
    seal_timers(connection)?;
    Counters::seal(connection)
}

fn numbers(connection: &Connection, sql: &str) -> Result<Vec<i64>, StoreError> {
    let read = || connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>();
    read().map_err(trouble)
}

fn seal_turn(connection: &Connection, no: i64) -> rusqlite::Result<usize> {
    let sql = "SELECT run, turn, record FROM turns WHERE no = ?";
    let sum = connection.prepare_cached(sql)?.query_row([no], |row| {
        let (number, record): (i64, Vec<u8>) = (row.get(1)?, row.get(2)?);
        Ok(turn::sum(RunNo(row.get(0)?), number as u64, &record).finish())
    })?;
    connection.prepare_cached("UPDATE turns SET sum = ? WHERE no = ?")?.execute([sum, no])
}

fn seal_attributes(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT run, name, value FROM attributes")?;
    let rows: Vec<(i64, String, Vec<u8>)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    for (run, name, value) in rows {
        let sum = attribute::sum(RunNo(run), &name, &value).finish();
        let sql = "UPDATE attributes SET sum = ? WHERE run = ? AND name = ?";
        connection.prepare_cached(sql)?.execute(params![sum, run, name])?;
    }
    Ok(())
}

fn seal_timers(connection: &Connection) -> Result<(), StoreError> {
    let read = || {
        let mut statement = connection.prepare("SELECT due, run, kind, seq FROM timers")?;
        statement
            .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?
            .collect::<Result<_, _>>()
    };
    let rows: Vec<[i64; 4]> = read().map_err(trouble)?;
    for [due, run, kind, seq] in rows {
        let known = TimerKind::from_code(kind, seq as u64);
        let known = known.ok_or_else(|| corrupt(format!("a timer of run {run} has kind {kind}")))?;
        let sum = timer::sum(&TimerRow { due: time(due), run: RunNo(run), kind: known }).finish();
        let sql = "UPDATE timers SET sum = ? WHERE due = ? AND run = ? AND kind = ? AND seq = ?";
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([sum, due, run, kind, seq]))
            .map_err(trouble)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dacapo_core::Timestamp;
    use dacapo_store::{Mail, RunFilter, Runs, Tasks, Timers, Upkeep};

    use crate::SqliteStore;

    #[test]
    fn file_without_checksums_gets_them_when_it_is_opened_for_serving() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db").to_str().unwrap().to_owned();
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch(include_str!("schema-1.sql")).unwrap();
        file.execute_batch(include_str!("schema-2.sql")).unwrap();
        let script = "PRAGMA application_id = 0x6463706f; PRAGMA user_version = 2;
            INSERT INTO runs (no, run_id, workflow_id, workflow, queue, status, started, closed, turns, owner, epoch, pins,
                first_run_id, request, memo, published, result)
            VALUES (3, 'r', 'w', 'kit', 'main', 1, 5, 6, 1, 1, 0, x'01', 'r', 'q', x'02', x'03', x'04');
            INSERT INTO turns (run, turn, record) VALUES (3, 0, x'05');
            INSERT INTO tasks (no, run, seq, queue, ready, priority, turn, position, attempt, strikes, failure)
            VALUES (4, 3, 0, 'main', 7, 0, 0, 0, 2, 1, x'06');
            INSERT INTO timers (due, run, kind, seq) VALUES (8, 3, 0, 9);
            INSERT INTO mail (no, run, key, sent, job, taken, outcome, chain)
            VALUES (5, 3, 'update:1', 9, x'07', 0, x'08', 'r');
            INSERT INTO attributes (run, name, value) VALUES (3, 'colour', x'09');
            INSERT INTO garbage (run) VALUES (2);
            UPDATE numbers SET next = 6";
        file.execute_batch(script).unwrap();
        drop(file);
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(store.flaws().unwrap(), [""; 0]);
        let row = store.list(&RunFilter::default(), None, 9).unwrap().remove(0);
        assert_eq!((row.owner, row.memo, row.published, row.result), (None, vec![2], Some(vec![3]), Some(vec![4])));
        assert_eq!(store.belongings(row.no).unwrap().attributes, [("colour".into(), vec![9])]);
        assert_eq!(store.mail(row.no, "update:1").unwrap().unwrap().outcome, Some(vec![8]));
        assert_eq!(store.tasks_of(row.no).unwrap()[0].failure, Some(vec![6]));
        assert_eq!(store.next_due().unwrap(), Some(Timestamp(8)));
    }
}
