//! Keeping this node among the others: it renews its lease, takes over the shards of nodes that are gone, moves shards so
//! that each node has its share, and looks for what notices may have missed. One thread does it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use dacapo_store::{Balance, Group, NodeEvents, NodeNo, Shard, Shards, StoreError, balance};

use crate::address::Pace;
use crate::alarm::Alarm;
use crate::batch::GroupCommit;
use crate::node::{Node, View};
use crate::outbox::Outbox;

/// The parts that the keeper works with.
pub(crate) struct Keeper {
    pub(crate) group: Weak<Group<GroupCommit>>,
    pub(crate) node: Arc<Node>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) events: Arc<dyn NodeEvents>,
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) pace: Pace,
    /// When the lease was last renewed.
    pub(crate) renewed: Option<Instant>,
    /// Until when no other node is taken for dead.
    pub(crate) lenient_until: Option<Instant>,
}

impl Keeper {
    /// Keeps the node until the store closes. Runs on a thread of its own.
    pub(crate) fn run(mut self) {
        let mut looks_at = Instant::now() + self.pace.slow_poll;
        loop {
            let renews_at = self.renewed.unwrap_or_else(Instant::now) + self.pace.renewal;
            let Some(mut looks) = self.alarm.wait(renews_at.min(looks_at)) else { return };
            let Some(group) = self.group.upgrade() else { return };
            let now = Instant::now();
            if (now >= renews_at || looks || now < looks_at)
                && let Err(error) = self.renew(&group)
            {
                tracing::debug!(%error, "the lease of this node is not renewed");
                std::thread::sleep(Duration::from_millis(100));
            }
            looks |= now >= looks_at;
            if looks {
                looks_at = now + self.pace.slow_poll;
                self.events.look(self.node.owned.get());
                self.outbox.look();
            }
        }
    }

    /// Renews the lease, and puts right what has changed since.
    pub(crate) fn renew(&mut self, group: &Group<GroupCommit>) -> Result<(), StoreError> {
        let Some((view, has_calls)) = self.see_others(group)? else { return Ok(()) };
        // The renewal may have waited for the database to come back.
        let now = Instant::now();
        match self.renewed {
            // This process is new, or the database was away, or this process was: the others may not have had the time to
            // renew their leases.
            None => self.lenient_until = Some(now + self.pace.renewal),
            Some(before) if now.duration_since(before) > self.pace.lease => {
                self.lenient_until = Some(now + self.pace.lease);
            }
            Some(_) => {}
        }
        self.renewed = Some(now);
        if has_calls {
            self.outbox.take_calls();
        }
        let view = match self.lenient_until.is_some_and(|until| now < until) {
            true => view,
            false => match self.declare_silent_dead(group, view)? {
                Some(view) => view,
                None => return Ok(()),
            },
        };
        self.node.see(|seen| *seen = view.clone());
        self.settle(group, &view)?;
        self.follow(group, view.life);
        Ok(())
    }

    /// Renews the lease, and returns what the node sees then. None if the others have taken it for dead: it has joined again, and
    /// looks at once at what it has now.
    fn see_others(&self, group: &Group<GroupCommit>) -> Result<Option<(View, bool)>, StoreError> {
        let (seen, lost) = group.between(|batch| (batch.renew(), batch.take_lost()));
        self.report_lost(group, lost)?;
        let seen = seen?;
        if seen.is_none() {
            self.alarm.ring();
        }
        Ok(seen)
    }

    /// Takes nodes for dead whose leases are over, and looks again if there were any. None if others have taken this one for dead
    /// meanwhile.
    fn declare_silent_dead(&self, group: &Group<GroupCommit>, view: View) -> Result<Option<View>, StoreError> {
        let me = self.node.no();
        let is_over = |row: &dacapo_store::NodeRow| row.lease.is_zero() && row.no != me;
        let over: Vec<NodeNo> =
            view.nodes.iter().map(|node| &node.row).filter(|row| is_over(row)).map(|row| row.no).collect();
        if over.is_empty() {
            return Ok(Some(view));
        }
        let dead =
            group.between(|batch| batch.between_groups(|membership, link| membership.declare_dead(link, &over)))?;
        for node in &dead {
            self.node.meters.dead_nodes.increment(1);
            tracing::warn!(node = node.0, "a node is gone: the others take over its runs");
        }
        Ok(self.see_others(group)?.map(|(view, _)| view))
    }

    /// Reports to the engine that the node has lost everything, if it has. What it took meanwhile it no longer has in memory.
    fn report_lost(&self, group: &Group<GroupCommit>, lost: Option<Shards>) -> Result<(), StoreError> {
        let Some(lost) = lost else { return Ok(()) };
        self.node.owned.clear();
        self.events.lost(lost, true);
        // The number of this node may be another now, and so the channel on which it listens.
        self.outbox.wake();
        group.between(|batch| batch.between_groups(|membership, link| membership.release_tasks(link)))
    }

    /// Takes and gives shards so that each node has its share.
    fn settle(&self, group: &Group<GroupCommit>, view: &View) -> Result<(), StoreError> {
        let Balance { take, give } = balance(self.node.no(), &view.members(), &view.all_shards());
        if !take.is_empty() {
            let taken = group.between(|batch| batch.between_groups(|membership, link| membership.take(link, &take)))?;
            let me = self.node.no();
            self.node.see(|view| view.owners.extend(taken.iter().map(|shard| (shard, me))));
        }
        self.give(group, &give)
    }

    /// Gives shards to other nodes.
    fn give(&self, group: &Group<GroupCommit>, give: &[(Shard, NodeNo)]) -> Result<(), StoreError> {
        if give.is_empty() {
            return Ok(());
        }
        let shards: Shards = give.iter().map(|(shard, _)| *shard).collect();
        // From here on no turn of their runs is committed; what is under way is, before they move.
        self.node.owned.remove(&shards);
        let kept = self.events.giving(shards);
        let given = group.between(|batch| batch.between_groups(|membership, link| membership.give(link, give, &kept)));
        self.node.see(|view| view.owners.extend(give.iter().copied()));
        self.events.lost(shards, false);
        if given? {
            self.outbox.notify_members(give.iter().map(|(_, to)| *to));
        }
        Ok(())
    }

    /// Gains the shards that this node owns and did not know of, and loses those that are no longer its own. What it saw in an
    /// earlier life says nothing about this one: the others may have taken it for dead since.
    fn follow(&self, group: &Group<GroupCommit>, life: u64) {
        let me = self.node.no();
        let (seen, owned) = (self.node.see(|view| view.shards_of(me)), self.node.owned.get());
        let (gained, gone) = (seen.without(&owned), owned.without(&seen));
        if !gone.is_empty() {
            self.node.owned.remove(&gone);
            self.events.lost(gone, false);
        }
        if gained.is_empty() {
            return;
        }
        // What memory has of their runs is from before others played them.
        self.events.lost(gained, false);
        let is_current = group.between(|batch| {
            let is_current = batch.life() == life;
            if is_current {
                self.node.owned.add(&gained);
            }
            is_current
        });
        match is_current {
            true => self.events.gained(gained),
            false => self.alarm.ring(),
        }
    }
}
