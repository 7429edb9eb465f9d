//! How a schema of a database becomes a Dacapo store.

use dacapo_store::StoreError;
use tokio_postgres::Row;

use crate::address::Address;
use crate::failure::Failure;
use crate::link::Link;
use crate::row::get;
use crate::trip::values;

/// The version of the schema that this build writes and reads. `docs/compatibility.md` says when it changes.
const VERSION: i32 = 2;
const SCHEMA: &str = include_str!("schema.sql");

/// The first half of the keys of all locks of a store, so that two stores in one database do not wait for each other.
pub(crate) fn lock_space(schema: &str) -> i32 {
    let hash = schema.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.cast_signed()
}

/// Makes an empty schema a store, and refuses one that belongs to something else. Many processes may do this at once.
pub(crate) fn prepare(link: &mut Link, address: &Address) -> Result<(), StoreError> {
    let schema = &address.schema;
    if version(link, schema)?.is_some() {
        return check(link, schema);
    }
    let key = (i64::from(lock_space(schema)) << 32) | 0x6463_7031;
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({key}); CREATE SCHEMA IF NOT EXISTS {schema};");
    let made = link.script(&begin).map_err(Failure::into_error).and_then(|()| {
        if version(link, schema)?.is_some() {
            // Another process has made the tables meanwhile.
            return Ok(());
        }
        refuse_other_tables(link, schema)?;
        let meta = format!("INSERT INTO meta (version, store) VALUES ({VERSION}, gen_random_uuid())");
        link.script(&format!("SET LOCAL search_path = {schema}; {SCHEMA}; {meta}")).map_err(Failure::into_error)
    });
    let end = if made.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = link.script(end).map_err(Failure::into_error);
    made.and(ended)?;
    check(link, schema)
}

/// Refuses a schema that is not a store of this version, and changes nothing.
pub(crate) fn check(link: &mut Link, schema: &str) -> Result<(), StoreError> {
    match version(link, schema)? {
        None => Err(StoreError::Foreign(format!(
            "schema {schema} of the database has no tables of Dacapo: the program that serves it makes them"
        ))),
        Some(VERSION) => Ok(()),
        Some(found) if found > VERSION => Err(StoreError::Newer { found: found.into(), known: VERSION.into() }),
        Some(found) => Err(StoreError::Foreign(format!(
            "schema {schema} has version {found}, which a development build wrote: drop it, or name another"
        ))),
    }
}

/// Returns the version of a store. None if the schema has none.
fn version(link: &mut Link, schema: &str) -> Result<Option<i32>, StoreError> {
    let sql = "SELECT to_regclass($1)::text";
    let found = one(link.query(sql, values![format!("{schema}.meta")]))?;
    if found.is_none_or(|row| get::<Option<String>>(&row, 0).is_ok_and(|name| name.is_none())) {
        return Ok(None);
    }
    let row = one(link.query(&format!("SELECT version FROM {schema}.meta"), values![]))?;
    row.map(|row| get(&row, 0)).transpose()
}

fn refuse_other_tables(link: &mut Link, schema: &str) -> Result<(), StoreError> {
    let sql = "SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'v', 'S') LIMIT 1";
    match one(link.query(sql, values![schema]))? {
        None => Ok(()),
        Some(row) => {
            let table: String = get(&row, 0)?;
            Err(StoreError::Foreign(format!(
                "schema {schema} has a table of another program ({table}): give Dacapo a schema of its own, such as `?schema=dacapo`"
            )))
        }
    }
}

fn one(rows: Result<Vec<Row>, Failure>) -> Result<Option<Row>, StoreError> {
    rows.map_err(Failure::into_error).map(|mut rows| rows.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_what_their_version_says() {
        let golden = include_str!("../tests/golden/schema-v2.sql");
        assert_eq!((VERSION, SCHEMA), (2, golden), "raise the version, and keep the file of the one before");
    }
}
