//! The store in PostgreSQL: processes that serve one schema are nodes, which share its runs, and commit their writes in
//! groups.
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
//!
//! Plain turns say themselves what they build on. That is predicted, and checked in the same trip in which it is written.

mod address;
mod alarm;
mod batch;
mod calls;
mod changes;
mod channel;
mod facts;
mod failure;
mod flush;
mod keeper;
mod link;
mod membership;
mod meters;
mod needs;
mod node;
mod notification;
mod outbox;
mod overlay;
mod prediction;
mod read;
mod readers;
mod row;
mod schema;
mod session;
mod shared;
mod state_dir;
mod sweep;
mod tls;
mod traffic;
mod trip;
mod upkeep;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use dacapo_store::{Done, Group, StoreError, Write, Writes};

use address::Address;
use alarm::Alarm;
use batch::GroupCommit;
use failure::Failure;
use link::Link;
use node::Node;
use outbox::Outbox;
use readers::Readers;
use shared::Serving;
use state_dir::StateDir;
use traffic::TotalTraffic;

/// The most writes that share one transaction.
const GROUP: usize = 1024;

/// A store in a schema of a PostgreSQL database.
pub struct PostgresStore {
    /// None when the store is open for reading only.
    group: Option<Arc<Group<GroupCommit>>>,
    readers: Readers,
    address: Address,
    node: Arc<Node>,
    serving: Serving,
    closing: Arc<AtomicBool>,
    /// The traffic of the groups of writes, without that of the node between them.
    commits: Arc<TotalTraffic>,
    /// Where this process notes what it runs. None: it does not.
    state_dir: OnceLock<StateDir>,
}

impl PostgresStore {
    /// Opens a store for serving, and makes its tables if there are none. Other processes may serve it too.
    ///
    /// The URL is PostgreSQL's own, such as `postgres://app:secret@db.example/shop`. Dacapo adds `schema` (`dacapo`
    /// unless it is given), and takes `sslmode` and `sslrootcert` as other clients do.
    ///
    /// # Errors
    /// If the URL is wrong, the server cannot be reached or refuses it, or the schema belongs to another program.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let mut link = Link::connect(&address).map_err(|failure| naming(&address, failure))?;
        schema::prepare(&mut link, &address)?;
        let mut store = Self::of(address.clone(), false);
        let parts = (store.node.clone(), store.serving.alarm.clone());
        let group = GroupCommit::open(address, link, parts, store.closing.clone(), store.commits.clone())?;
        store.group = Some(Arc::new(Group::new(group, GROUP)));
        Ok(store)
    }

    /// Opens a store for reading, also while another process serves it.
    ///
    /// # Errors
    /// If the URL is wrong, the server cannot be reached or refuses it, or there is no store.
    pub fn open_read_only(url: &str) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let mut link = Link::connect(&address).map_err(|failure| naming(&address, failure))?;
        schema::check(&mut link, &address.schema)?;
        Ok(Self::of(address, true))
    }

    fn of(address: Address, is_read_only: bool) -> Self {
        let (closing, node) = (Arc::new(AtomicBool::new(false)), Node::new());
        let readers = Readers::new(address.clone(), is_read_only, closing.clone());
        let serving = Serving { outbox: Outbox::new(node.clone()), alarm: Alarm::new() };
        Self {
            group: None,
            readers,
            address,
            node,
            serving,
            closing,
            commits: Arc::default(),
            state_dir: OnceLock::new(),
        }
    }

    /// Returns how many round trips and statements the groups of writes have cost so far, and how many reading has.
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn traffic(&self) -> [(u64, u64); 2] {
        [self.commits.get(), self.readers.traffic.get()]
    }

    /// Ends the threads of the node.
    fn end_threads(&self) {
        self.closing.store(true, Ordering::Release);
        self.node.stop_waiting();
        self.serving.alarm.close();
        self.serving.outbox.close();
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
        let others: Vec<_> = self.node.see(|view| view.nodes.iter().map(|node| node.row.no).collect());
        self.closing.store(true, Ordering::Release);
        self.node.stop_waiting();
        self.serving.alarm.close();
        let closed = self.group.as_ref().map_or(Ok(()), |group| group.close());
        // The others take over at once.
        self.serving.outbox.notify_members(others.into_iter().filter(|node| *node != self.node.no()));
        self.serving.outbox.close();
        if let Some(state_dir) = self.state_dir.get() {
            state_dir.close();
        }
        closed
    }
}

/// A store that is dropped and not closed ends as a process does that dies: the others wait for the end of its lease.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.end_threads();
    }
}
