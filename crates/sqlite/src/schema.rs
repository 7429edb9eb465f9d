//! The tables, and how a file becomes a Dacapo store. Tables grow at their end: rows have rising numbers, and nothing
//! is clustered by the id of a run.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use dacapo_store::StoreError;

use crate::Tuning;
use crate::counters::Counters;
use crate::store_error::store_error;

/// "dcp1": marks a file as a Dacapo store.
const APPLICATION: i64 = 0x6463_7031;
/// "dcpo": the mark of files that were written before the formats were numbered anew.
const DEVELOPMENT: i64 = 0x6463_706f;
/// The version of the schema that this build writes and reads. `docs/compatibility.md` says when it changes.
const VERSION: i64 = 2;
const SCHEMA: &str = include_str!("schema.sql");

/// The pragmas of a store's file. Nothing is written before its commit, which the layer below SQLite requires; what a
/// group writes is in memory anyway.
const DURABLE: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON; PRAGMA cache_spill = OFF; PRAGMA foreign_keys = OFF;";

/// Makes an empty file a Dacapo store, and refuses any other file that is not one.
pub(crate) fn prepare(connection: &Connection) -> Result<(), StoreError> {
    let found = version(connection)?;
    check_version(connection, found)?;
    // Only now, because it changes the file.
    connection.execute_batch(DURABLE).map_err(store_error)?;
    if found == 0 {
        let transaction =
            Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(store_error)?;
        let script = format!("{SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};");
        transaction.execute_batch(&script).map_err(store_error)?;
        Counters::seal(&transaction)?;
        transaction.commit().map_err(store_error)?;
    }
    Ok(())
}

/// Keeps the log of a store's file short.
pub(crate) fn tune(connection: &Connection, tuning: &Tuning) -> Result<(), StoreError> {
    let Tuning { checkpoint_pages, log_bytes } = tuning;
    let script = format!("PRAGMA wal_autocheckpoint = {checkpoint_pages}; PRAGMA journal_size_limit = {log_bytes};");
    connection.execute_batch(&script).map_err(store_error)
}

/// Refuses a file that is not a Dacapo store, and changes nothing.
pub(crate) fn check(connection: &Connection) -> Result<(), StoreError> {
    match version(connection)? {
        0 => Err(StoreError::Foreign("the file is empty".to_owned())),
        found => check_version(connection, found),
    }
}

/// Refuses a file of a newer build, and one that lacks a table of its version.
fn check_version(connection: &Connection, found: i64) -> Result<(), StoreError> {
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    if found == 0 {
        return Ok(());
    }
    let mut statement =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").map_err(store_error)?;
    let made = statement.query_map([], |row| row.get::<_, String>(0)).map_err(store_error)?;
    let made: Vec<String> = made.collect::<Result<_, _>>().map_err(store_error)?;
    // Operators may have added indexes of their own.
    let known = made.iter().filter(|statement| SCHEMA.contains(&format!("\n{statement};"))).count();
    if known == SCHEMA.matches("\nCREATE ").count() {
        return Ok(());
    }
    Err(StoreError::Foreign(format!(
        "its tables are not those of schema version {found}, so a development build wrote it: move it away, and start with a new file"
    )))
}

/// Returns the schema version of a Dacapo store, or 0 for an empty file.
pub(crate) fn version(connection: &Connection) -> Result<i64, StoreError> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0)).map_err(store_error);
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    match (application, tables) {
        (APPLICATION, _) => number("PRAGMA user_version"),
        (0, 0) => Ok(0),
        (DEVELOPMENT, _) => Err(StoreError::Foreign(
            "a development build wrote it, before the first numbered format: move it away, and start with a new file"
                .to_owned(),
        )),
        (0, _) => {
            Err(StoreError::Foreign("it is another program's database: give Dacapo a file of its own".to_owned()))
        }
        (other, _) => Err(StoreError::Foreign(format!("it belongs to application {other:#x}"))),
    }
}

/// Opens a connection, and changes nothing.
pub(crate) fn connect(path: &str, read_only: bool) -> Result<Connection, StoreError> {
    match read_only {
        true => connect_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY, None),
        false => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            connect_with(path, flags, dacapo_sys::log::install())
        }
    }
}

fn connect_with(path: &str, flags: OpenFlags, layer: Option<&str>) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match layer {
        Some(layer) => Connection::open_with_flags_and_vfs(path, flags, layer),
        None => Connection::open_with_flags(path, flags),
    };
    let connection = connection.map_err(store_error)?;
    connection.set_prepared_statement_cache_capacity(64);
    // A store that is dropped and not closed leaves the file as a process that died would: no checkpoint moves the log
    // then.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(store_error)?;
    // With this option a query plan does not depend on the parameters, so SQLite need not make it anew each time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(store_error)?;
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(store_error)?;
    Ok(connection)
}

/// Opens a connection to read a Dacapo store.
pub(crate) fn connect_to_read(path: &str) -> Result<Connection, StoreError> {
    let connection = connect(path, true)?;
    match check(&connection) {
        Ok(()) => Ok(connection),
        Err(StoreError::Unavailable(why)) => connect_at_rest(path, &why),
        Err(other) => Err(other),
    }
}

/// Opens a file that no process serves, as it is. A reader keeps an index of the log beside the file; where it may not
/// write one, it can only read a file whose log is empty.
fn connect_at_rest(path: &str, why: &str) -> Result<Connection, StoreError> {
    if std::fs::metadata(format!("{path}-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(StoreError::Unavailable(format!(
            "{path}: {why}. What was written last is in {path}-wal, and reading it takes the right to write {path}-shm. Ask for \
             the right to write to the folder, or look at a copy of {path} and {path}-wal elsewhere"
        )));
    }
    let name = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = connect_with(&format!("file:{name}?immutable=1"), flags, None)?;
    check(&connection)?;
    Ok(connection)
}
