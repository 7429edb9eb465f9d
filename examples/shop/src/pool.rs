//! A small pool of connections to the shop's own database, which all activities share.

use std::sync::{Condvar, Mutex, MutexGuard};

use rusqlite::Connection;

/// Connections that are lent and come back.
pub struct Pool {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
}

/// Work runs without the lock, so that its panic cannot poison it.
const UNPOISONED: &str = "no code that can panic runs under this lock";

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, pieces INTEGER NOT NULL CHECK (pieces >= 0)) STRICT;
    CREATE TABLE IF NOT EXISTS reserved (
        purchase TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL, released INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE IF NOT EXISTS charges (
        purchase TEXT PRIMARY KEY, cents INTEGER NOT NULL, reference TEXT NOT NULL, refunded INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE IF NOT EXISTS parcels (number INTEGER PRIMARY KEY, purchase TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE IF NOT EXISTS points (purchase TEXT PRIMARY KEY, earned INTEGER NOT NULL) STRICT;
";

impl Pool {
    /// Opens so many connections to this file.
    pub fn open(path: &str, connections: usize) -> rusqlite::Result<Self> {
        let idle = (0..connections).map(|_| connect(path)).collect::<rusqlite::Result<Vec<_>>>()?;
        if let Some(connection) = idle.first() {
            connection.execute_batch(TABLES)?;
        }
        Ok(Self { idle: Mutex::new(idle), returned: Condvar::new() })
    }

    /// Waits for a connection, and does this with it in one transaction.
    pub fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut connection = self.borrow();
        let done = transact(&mut connection, work);
        self.idle().push(connection);
        self.returned.notify_one();
        done
    }

    fn borrow(&self) -> Connection {
        let mut idle = self.idle();
        loop {
            match idle.pop() {
                Some(connection) => return connection,
                None => idle = self.returned.wait(idle).expect(UNPOISONED),
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().expect(UNPOISONED)
    }
}

fn connect(path: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    Ok(connection)
}

fn transact<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let value = work(&transaction)?;
    transaction.commit()?;
    Ok(value)
}
