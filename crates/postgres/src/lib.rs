//! The store in PostgreSQL: one process serves a schema, and commits its writes in groups.
//!
//! What a write means is decided by [`dacapo_store::apply`], as for every store. A network lies between it and the rows
//! here, so it does not read row by row: what a group needs is locked and read in one round trip, `apply` works on that in
//! memory, and what it changes is written and committed in a second.
//!
//! ```text
//! writes ──► needs ──► facts (locked, read) ──► overlay: apply ──► changes ──► flush, COMMIT ──► answers
//!              ▲                                   │
//!              └────────── what was missing ◄──────┘
//! ```

mod address;
mod batch;
mod changes;
mod facts;
mod failure;
mod flush;
mod link;
mod needs;
mod node;
mod overlay;
mod read;
mod readers;
mod row;
mod schema;
mod sweep;
mod tls;
mod trip;
mod upkeep;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_store::{Done, Group, StoreError, Write, Writes};

use address::Address;
use batch::GroupCommit;
use failure::Failure;
use link::Link;
use readers::Readers;

/// The most writes that share one transaction.
const GROUP: usize = 1024;

/// A store in a schema of a PostgreSQL database.
pub struct PostgresStore {
    /// None when the store is open for reading only.
    group: Option<Group<GroupCommit>>,
    readers: Readers,
    closing: Arc<AtomicBool>,
}

impl PostgresStore {
    /// Opens a store for serving, and makes its tables if there are none. Only one process may serve it.
    ///
    /// The URL is PostgreSQL's own, such as `postgres://app:secret@db.example/shop`. Dacapo adds `schema` (`dacapo`
    /// unless it is given), and takes `sslmode` and `sslrootcert` as other clients do.
    ///
    /// # Errors
    /// If the URL is wrong, the server cannot be reached or refuses it, another process serves the store, or the schema
    /// belongs to another program.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let mut link = Link::connect(&address).map_err(|failure| naming(&address, failure))?;
        schema::prepare(&mut link, &address)?;
        let closing = Arc::new(AtomicBool::new(false));
        let group = GroupCommit::open(address.clone(), link, closing.clone())?;
        let readers = Readers::new(address, closing.clone());
        Ok(Self { group: Some(Group::new(group, GROUP)), readers, closing })
    }

    /// Opens a store for reading, also while another process serves it.
    ///
    /// # Errors
    /// If the URL is wrong, the server cannot be reached or refuses it, or there is no store.
    pub fn open_read_only(url: &str) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let mut link = Link::connect(&address).map_err(|failure| naming(&address, failure))?;
        schema::check(&mut link, &address.schema)?;
        let closing = Arc::new(AtomicBool::new(false));
        Ok(Self { group: None, readers: Readers::new(address, closing.clone()), closing })
    }
}

/// Adds the server and the database to the error of a first connection.
fn naming(address: &Address, failure: Failure) -> StoreError {
    match failure.into_error() {
        StoreError::Unavailable(why) => StoreError::Unavailable(format!("{}: {why}", address.shown())),
        StoreError::Unsupported(why) => StoreError::Unsupported(format!("{}: {why}", address.shown())),
        other => other,
    }
}

impl Writes for PostgresStore {
    fn submit(&self, write: Write, done: Done) {
        match &self.group {
            Some(group) => group.submit(write, done),
            None => done(Err(StoreError::Unsupported(
                "the store is open for reading only: write in the process that serves it".to_owned(),
            ))),
        }
    }

    fn close(&self) -> Result<(), StoreError> {
        self.closing.store(true, Ordering::Release);
        self.group.as_ref().map_or(Ok(()), Group::close)
    }
}
