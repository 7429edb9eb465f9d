//! The connection that commits, between two groups: this process joins the other nodes over it, renews its lease, and connects and
//! joins again when the connection is lost or the others took the node for dead.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dacapo_core::Name;
use dacapo_store::{NodeNo, Shards, StoreError};

use super::GroupCommit;
use crate::address::Address;
use crate::failure::Failure;
use crate::link::Link;
use crate::membership::{Membership, Renewed};
use crate::node::{Moment, View};

type Result<T> = std::result::Result<T, StoreError>;

/// Plans that read a table from its beginning, or build a table of it, are never right for the few rows of a group.
const PLANS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(20);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl GroupCommit {
    /// Joins the other nodes.
    pub(crate) fn join(&mut self, queues: &[Name], build: &Name) -> Result<()> {
        let Some(link) = &mut self.link else { return Err(StoreError::Unavailable("the store is closed".to_owned())) };
        let Address { schema, node, pace, .. } = &self.address;
        let membership = Membership::join(link, schema, node.as_deref(), queues, build, *pace);
        let membership = membership.map_err(Failure::into_error)?;
        self.node.set_no(NodeNo(membership.no), membership.process);
        self.membership = Some(membership);
        self.life += 1;
        Ok(())
    }

    /// Returns how often this process has joined the other nodes: what it saw of them before belongs to another life.
    pub(crate) fn life(&self) -> u64 {
        self.life
    }

    /// Has the node do something between two groups, however long the server is away meanwhile.
    pub(crate) fn between_groups<T>(
        &mut self,
        mut act: impl FnMut(&mut Membership, &mut Link) -> std::result::Result<T, Failure>,
    ) -> Result<T> {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(ended) = &self.ended {
                return Err(ended.clone());
            }
            let (Some(membership), Some(link)) = (&mut self.membership, &mut self.link) else {
                self.reconnect("there is no connection")?;
                continue;
            };
            match link.write_outside_of_transactions().and_then(|()| act(membership, link)) {
                Ok(done) => return Ok(done),
                Err(Failure::Disconnected(why)) => drop(self.reconnect(&why)?),
                Err(Failure::Conflict(_)) => {
                    self.node.meters.conflicts.increment(1);
                    // A statement of several may have begun a transaction.
                    self.is_begun = true;
                    self.roll_back();
                    self.wait(&mut pause)?;
                }
                Err(failure) => {
                    self.is_begun = true;
                    self.roll_back();
                    return Err(failure.into_error());
                }
            }
        }
    }

    /// Joins the others again, because they have taken this node for dead. What it held is its own no longer. Returns the number
    /// of the last group that it had committed before.
    pub(super) fn join_again(&mut self) -> std::result::Result<i64, Failure> {
        self.life += 1;
        let lost = self.node.owned.clear();
        let all = self.lost.get_or_insert_default();
        lost.iter().for_each(|shard| all.insert(shard));
        self.alarm.ring();
        let (Some(membership), Some(link)) = (&mut self.membership, &mut self.link) else {
            return Err(Failure::Disconnected("there is no connection".to_owned()));
        };
        if self.is_begun {
            link.script("ROLLBACK")?;
            self.is_begun = false;
        }
        link.write_outside_of_transactions()?;
        if membership.is_replaced(link)? {
            return Err(replaced().into());
        }
        tracing::warn!("the other nodes took this one for dead: it drops what it held, and joins them again");
        let last = membership.join_again(link, &self.address.schema)?;
        self.node.set_no(NodeNo(membership.no), membership.process);
        Ok(last)
    }

    /// Takes the shards that the node has lost because the others took it for dead.
    pub(crate) fn take_lost(&mut self) -> Option<Shards> {
        self.lost.take()
    }

    /// Renews the lease, and joins again if that is too late. None if the others took the node for dead.
    pub(crate) fn renew(&mut self) -> Result<Option<(View, bool)>> {
        let mut sent = Moment::now();
        let renewed = self.between_groups(|membership, link| {
            sent = Moment::now();
            membership.renew(link)
        });
        match renewed? {
            Renewed::Alive { view, has_calls, time } => {
                self.node.set_lease(sent, self.address.pace.lease, time);
                Ok(Some((View { life: self.life, ..view }, has_calls)))
            }
            Renewed::Dead => {
                self.join_again().map_err(Failure::into_error)?;
                Ok(None)
            }
            Renewed::Replaced => {
                self.ended = Some(replaced());
                Err(replaced())
            }
        }
    }

    /// Ends writing if another process has taken this node's name. Other failures pass.
    pub(super) fn end_if_replaced(&mut self, failure: Failure) -> Result<()> {
        match failure {
            Failure::Store(error) if error == replaced() => {
                self.ended = Some(error.clone());
                Err(error)
            }
            failure => {
                tracing::debug!(?failure, "the node cannot join the others yet");
                self.link = None;
                Ok(())
            }
        }
    }

    /// Ends the transaction, so that no other waits for its locks.
    pub(super) fn roll_back(&mut self) {
        if self.is_begun && self.link.as_mut().is_some_and(|link| link.script("ROLLBACK").is_ok()) {
            self.is_begun = false;
        }
    }

    /// Connects again, however long that takes, and returns the number of the last group that was committed, also if the others
    /// have taken the node for dead meanwhile, and it has joined them again. None if it has not joined them yet.
    pub(super) fn reconnect(&mut self, why: &str) -> Result<Option<i64>> {
        tracing::warn!(why, "the connection to PostgreSQL is lost: writing waits until it is back");
        // What the server is slow at, it may be slow at again.
        self.too_late += u32::from(self.link.take().is_some_and(|link| link.is_late));
        self.is_begun = false;
        let mut pause = FIRST_PAUSE;
        loop {
            self.wait(&mut pause)?;
            let connected = Link::connect_patiently(&self.address, self.too_late).and_then(|mut link| {
                link.script(&session(&self.address))?;
                let last = self.membership.as_mut().map(|membership| membership.reconnect(&mut link)).transpose()?;
                Ok((link, last))
            });
            match connected {
                Ok((link, last)) => {
                    tracing::info!("the connection to PostgreSQL is back");
                    self.node.meters.reconnects.increment(1);
                    self.link = Some(link);
                    if last != Some(None) {
                        return Ok(last.flatten());
                    }
                    match self.join_again() {
                        Ok(last) => return Ok(Some(last)),
                        Err(failure) => self.end_if_replaced(failure)?,
                    }
                }
                Err(failure) => tracing::debug!(?failure, "PostgreSQL is not back yet"),
            }
        }
    }

    /// Waits before another attempt, longer each time.
    pub(super) fn wait(&self, pause: &mut Duration) -> Result<()> {
        if self.closing.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable(
                "the store was closed while PostgreSQL was away: what was not acknowledged may be missing".to_owned(),
            ));
        }
        thread::sleep(*pause);
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// Returns the settings of the connection that commits. A process that is stopped in the middle of a group must not hold its
/// locks for longer than a part of the lease.
pub(super) fn session(address: &Address) -> String {
    let part = address.pace.lease.as_millis() / 3;
    format!("{PLANS}; SET lock_timeout = {part}; SET idle_in_transaction_session_timeout = {part}")
}

/// The error of a process whose name another one has taken.
fn replaced() -> StoreError {
    StoreError::Unavailable(
        "another process has joined under the name of this node: give each process a name of its own (`node` in the URL)".to_owned(),
    )
}
