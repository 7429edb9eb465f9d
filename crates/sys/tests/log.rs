//! What is written through the layer is what SQLite wrote: for the connection itself, for others beside it, and for the process that
//! opens the file next.

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("x.db")
    }

    /// A connection through the layer, with a log.
    fn through(&self) -> Connection {
        let layer = dacapo_sys::log::install().expect("SQLite takes it");
        let connection = Connection::open_with_flags_and_vfs(self.path(), OpenFlags::default(), layer).unwrap();
        let script = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE IF NOT EXISTS t (no INTEGER PRIMARY KEY, x BLOB)";
        connection.execute_batch(script).unwrap();
        connection
    }

    /// A connection of SQLite's own.
    fn beside(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

fn add(connection: &Connection, bytes: usize) {
    connection.execute("INSERT INTO t (x) VALUES (randomblob(?))", [bytes as i64]).unwrap();
}

/// How many rows there are, and how many bytes.
fn sum(connection: &Connection) -> (i64, i64) {
    let sql = "SELECT count(*), coalesce(sum(length(x)), 0) FROM t";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

fn assert_sound(connection: &Connection) {
    let found: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

#[test]
fn a_commit_is_seen_by_others_as_soon_as_it_is_done() {
    let place = Place::new();
    let (writer, reader) = (place.through(), place.beside());
    let mut bytes = 0;
    for number in 1..=200_i64 {
        // From a few bytes to more than is gathered at a time.
        let length = (number * number * 37) as usize % 300_000;
        add(&writer, length);
        bytes += length as i64;
        assert_eq!(sum(&reader), (number, bytes));
    }
    assert_sound(&reader);
}

#[test]
fn others_may_write_between_commits() {
    let place = Place::new();
    let (writer, other) = (place.through(), place.beside());
    for _ in 0..50 {
        add(&writer, 5_000);
        add(&other, 7_000);
        assert_eq!(sum(&writer), sum(&other));
    }
    assert_eq!(sum(&writer), (100, 600_000));
    assert_sound(&writer);
}

#[test]
fn a_transaction_that_outgrows_its_cache_reads_what_it_wrote() {
    let place = Place::new();
    let writer = place.through();
    writer.execute_batch("PRAGMA cache_size = 10; BEGIN").unwrap();
    for number in 1..=300 {
        add(&writer, 20_000);
        assert_eq!(sum(&writer), (number, number * 20_000));
    }
    writer.execute_batch("ROLLBACK; BEGIN").unwrap();
    assert_eq!(sum(&writer), (0, 0));
    (0..100).for_each(|_| add(&writer, 30_000));
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(sum(&place.beside()), (100, 3_000_000));
    assert_sound(&writer);
}

#[test]
fn the_log_goes_into_the_file_and_begins_again() {
    let place = Place::new();
    let writer = place.through();
    for round in 1..=20 {
        (0..20).for_each(|_| add(&writer, 3_000));
        let mode = if round % 2 == 0 { "TRUNCATE" } else { "RESTART" };
        writer.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).unwrap();
        assert_eq!(sum(&place.beside()).0, round * 20);
    }
    drop(writer);
    let again = place.through();
    assert_eq!(sum(&again), (400, 1_200_000));
    assert_sound(&again);
}

#[test]
fn committed_writes_are_there_for_the_next_process() {
    let place = Place::new();
    let writer = place.through();
    add(&writer, 10_000);
    // As a process that dies leaves it: the file and its log.
    let copy = Place::new();
    for end in ["", "-wal"] {
        let name = format!("x.db{end}");
        std::fs::copy(place.folder.path().join(&name), copy.folder.path().join(&name)).unwrap();
    }
    assert_eq!(sum(&copy.beside()), (1, 10_000));
}
