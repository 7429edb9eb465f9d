//! Committing a group: facts are locked and read in one round trip, and changes written and committed in a second. A group of plain turns
//! needs one trip only.

mod connection;
mod id_locks;
mod one_trip;
mod portions;
mod task_blocks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_core::Name;
use dacapo_store::{Batch, Refused, Shards, StoreError, TurnOf, Write, Written, apply};

use self::connection::{FIRST_PAUSE, LONGEST_PAUSE, session};
use self::id_locks::lock_ids;
use self::portions::portions;
use self::task_blocks::TaskBlocks;
use crate::address::Address;
use crate::alarm::Alarm;
use crate::facts::{Facts, Reading};
use crate::failure::Failure;
use crate::flush::flush;
use crate::link::Link;
use crate::membership::{self, Membership, Renewed, make_shards};
use crate::needs::Needs;
use crate::node::{Node, View};
use crate::overlay::Overlay;
use crate::prediction::Prediction;
use crate::sweep::sweep;
use crate::traffic::TotalTraffic;
use crate::trip::{Trip, values};

type Result<T> = std::result::Result<T, StoreError>;
type WriteResult = Result<Written>;

/// It may write also where statements outside of transactions may only read.
const BEGIN: &str = "BEGIN READ WRITE";

/// How often a group is tried again because a fact has changed meanwhile. Locks make that rare; without end, it is a bug.
const PREMISES: usize = 20;

pub(crate) struct GroupCommit {
    address: Address,
    /// None while there is no connection.
    link: Option<Link>,
    node: Arc<Node>,
    /// Rung when the others took this node for dead, so that the engine learns it at once.
    alarm: Arc<Alarm>,
    /// None before this process has joined the other nodes.
    membership: Option<Membership>,
    tasks: TaskBlocks,
    /// How often this process has joined the other nodes.
    life: u64,
    /// The shards that the node has lost because the others took it for dead, until the engine has learnt of them.
    lost: Option<Shards>,
    /// Whether a transaction has begun and has not ended.
    is_begun: bool,
    /// How often in a row a call was too late.
    too_late: u32,
    /// Set when the store closes: from then on nothing waits for the server to come back.
    closing: Arc<AtomicBool>,
    /// The traffic of the groups.
    traffic: Arc<TotalTraffic>,
    /// Why nothing is written any more.
    ended: Option<StoreError>,
}

/// The outcome of an attempt to commit a group.
enum Attempt {
    Committed(Vec<WriteResult>),
    /// More has to be read first.
    Incomplete,
    /// One write cannot be applied, and the others are applied without it.
    Excluded(usize, StoreError),
}

impl GroupCommit {
    pub(crate) fn open(
        address: Address,
        mut link: Link,
        (node, alarm): (Arc<Node>, Arc<Alarm>),
        closing: Arc<AtomicBool>,
        traffic: Arc<TotalTraffic>,
    ) -> Result<Self> {
        link.script(&session(&address)).map_err(Failure::into_error)?;
        let tasks = TaskBlocks::default();
        let link = Some(link);
        Ok(Self {
            address,
            link,
            node,
            alarm,
            membership: None,
            tasks,
            life: 0,
            lost: None,
            is_begun: false,
            too_late: 0,
            closing,
            traffic,
            ended: None,
        })
    }

    /// Commits writes in one transaction, however long the server is away meanwhile.
    fn transact(&mut self, writes: &[Write]) -> Result<Vec<WriteResult>> {
        let mut needs = Needs::of(writes);
        let mut prediction = Prediction::of(writes, &needs);
        let mut excluded = BTreeMap::new();
        let (mut pause, mut premises) = (FIRST_PAUSE, 0);
        loop {
            let mut prepared = None;
            let before = self.link.as_ref().map(|link| link.traffic);
            let attempt = match prediction.take() {
                Some(prediction) => self.attempt_in_one_trip(writes, &prediction, &mut prepared),
                None => self.attempt(writes, &needs, &excluded, &mut prepared),
            };
            if let (Some(before), Some(link)) = (before, &self.link) {
                self.traffic.add(link.traffic.since(before));
            }
            match attempt {
                Ok((Attempt::Committed(answers), _)) => {
                    self.too_late = 0;
                    return Ok(answers);
                }
                Ok((Attempt::Excluded(place, error), _)) => drop(excluded.insert(place, error)),
                Ok((Attempt::Incomplete, missing)) => needs.extend(missing),
                Err(Failure::Store(error)) => {
                    self.roll_back();
                    return Err(error);
                }
                Err(Failure::Premise(why)) if premises == PREMISES => {
                    self.roll_back();
                    return Err(StoreError::Corrupt(why));
                }
                Err(Failure::Premise(_)) => {
                    self.roll_back();
                    premises += 1;
                }
                Err(Failure::Conflict(why)) => {
                    self.node.meters.conflicts.increment(1);
                    // A pause is at its longest after a few seconds.
                    match pause < LONGEST_PAUSE {
                        true => tracing::debug!(why, "a commit met another one and is tried again"),
                        false => tracing::warn!(why, "a commit is tried again and again"),
                    }
                    self.roll_back();
                    self.wait(&mut pause)?;
                }
                Err(Failure::Dead) => {
                    if let Err(failure) = self.join_again() {
                        self.end_if_replaced(failure)?;
                    }
                }
                Err(Failure::Disconnected(why)) => {
                    let last = self.reconnect(&why)?;
                    if let Some((group, answers)) = prepared
                        && last.is_some_and(|last| last >= group)
                    {
                        self.node.meters.receipts.increment(1);
                        return Ok(answers);
                    }
                }
            }
        }
    }

    /// Tries to commit writes over these facts. `prepared` gets the answers before the commit is sent, and the number of
    /// its group: if the outcome stays unknown, they are right if the group was committed.
    fn attempt(
        &mut self,
        writes: &[Write],
        needs: &Needs,
        excluded: &BTreeMap<usize, StoreError>,
        prepared: &mut Option<(i64, Vec<WriteResult>)>,
    ) -> std::result::Result<(Attempt, Needs), Failure> {
        let mut trip = Trip::default();
        if self.is_begun {
            trip.step("ROLLBACK", values![]);
        }
        trip.step(BEGIN, values![]);
        let Some(membership) = &mut self.membership else { return Err(not_joined().into()) };
        let fence = trip.step(membership::FENCE, membership.fence());
        let group = membership.group;
        lock_ids(needs, &self.address.schema, &mut trip);
        let reading = Reading::begin(needs, &mut trip);
        let draws = self.tasks.draw(writes, &mut trip);
        self.is_begun = true;
        let link = self.link.as_mut().ok_or_else(|| Failure::Disconnected("there is no connection".to_owned()))?;
        let answers = link.run(&trip)?;
        if !membership::passes(&answers[fence]) {
            return Err(Failure::Dead);
        }
        if let Some(draws) = draws {
            self.tasks.add(&answers[draws])?;
        }
        let mut facts = reading.end(&answers)?;
        if let Some(most) = needs.sweep {
            facts.swept = Some(sweep(link, most, &self.node.foreign())?);
        }
        let node = self.node.clone();
        // A shard that the node is about to give away is given once this group is committed.
        let owned = node.owned.get();
        let mut overlay = Overlay::new(&facts, &node, owned, &mut self.tasks);
        let mut answers = Vec::with_capacity(writes.len());
        for (place, write) in writes.iter().enumerate() {
            if let Some(error) = excluded.get(&place) {
                answers.push(Err(error.clone()));
                continue;
            }
            if let Some(refused) = refuse(&node, &owned, &facts, write) {
                answers.push(Err(refused.into()));
                continue;
            }
            match apply(&mut overlay, write) {
                Err(error) if !matches!(error, StoreError::Refused(_)) && overlay.is_complete() => {
                    return Ok((Attempt::Excluded(place, error), Needs::default()));
                }
                answer => answers.push(answer),
            }
        }
        if !overlay.new_queues.is_empty() {
            let queues: Vec<Name> = std::mem::take(&mut overlay.new_queues).into_iter().collect();
            let missing = std::mem::take(&mut overlay.missing);
            self.make_shards(&queues)?;
            return Ok((Attempt::Incomplete, missing));
        }
        if !overlay.is_complete() {
            if overlay.lacks_task_numbers {
                // The next attempt draws some.
                let missing = std::mem::take(&mut overlay.missing);
                self.tasks = TaskBlocks::default();
                return Ok((Attempt::Incomplete, missing));
            }
            return Ok((Attempt::Incomplete, overlay.missing));
        }
        let changes = overlay.changes;
        let mut trip = Trip::default();
        flush(&changes, &mut trip);
        trip.step("COMMIT", values![]);
        let (_, answers) = prepared.insert((group, answers));
        link.run(&trip)?;
        self.is_begun = false;
        Ok((Attempt::Committed(std::mem::take(answers)), Needs::default()))
    }

    /// Makes the shards of queues that no node has served yet, and looks at them.
    fn make_shards(&mut self, queues: &[Name]) -> std::result::Result<(), Failure> {
        let (Some(membership), Some(link)) = (&self.membership, &mut self.link) else { return Ok(()) };
        link.script("ROLLBACK")?;
        self.is_begun = false;
        link.write_outside_of_transactions()?;
        make_shards(link, &self.address.schema, queues)?;
        if let Renewed::Alive { view, .. } = membership.renew(link)? {
            if let Some(queue) = queues.iter().find(|queue| !view.shards.contains_key(*queue)) {
                return Err(StoreError::Unsupported(format!(
                    "task queue {queue:?} cannot have shards: all 1,024 of the store are in use by other queues"
                ))
                .into());
            }
            let life = self.life;
            self.node.see(|seen| *seen = View { life, ..view });
        }
        Ok(())
    }

    /// Commits writes that may share a transaction. If one of them fails all, they are committed one by one.
    fn commit_together(&mut self, writes: &[Write]) -> Vec<WriteResult> {
        let all = |error: &StoreError| writes.iter().map(|_| Err(error.clone())).collect();
        if let Some(ended) = &self.ended {
            return all(ended);
        }
        match self.transact(writes) {
            Ok(answers) => answers,
            Err(error) if self.ended.is_some() || writes.len() == 1 || matches!(error, StoreError::Full(_)) => {
                all(&error)
            }
            Err(error) if self.closing.load(Ordering::Acquire) => all(&error),
            Err(_) => writes.iter().flat_map(|write| self.commit_together(std::slice::from_ref(write))).collect(),
        }
    }
}

impl Batch for GroupCommit {
    fn commit(&mut self, writes: &[Write]) -> Vec<WriteResult> {
        let mut answers = Vec::with_capacity(writes.len());
        for portion in portions(writes) {
            answers.extend(self.commit_together(portion));
        }
        answers
    }

    fn close(&mut self) -> Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        self.ended = Some(StoreError::Unavailable("this process has ended writing".to_owned()));
        // What the node was about to begin with belongs to a life that is over.
        self.life += 1;
        self.node.owned.clear();
        if let (Some(mut link), Some(membership)) = (self.link.take(), &self.membership) {
            // If this fails, the others wait for the end of the lease.
            if self.is_begun {
                let _ = link.script("ROLLBACK");
            }
            let _ = link.write_outside_of_transactions().and_then(|()| membership.leave(&mut link));
        }
        Ok(())
    }
}

fn not_joined() -> StoreError {
    StoreError::Unsupported("this process serves no task queue, so it is no node and writes nothing".to_owned())
}

/// Returns why this node may not make a write: the owner of a run plays it, and no other.
fn refuse(node: &Node, owned: &Shards, facts: &Facts, write: &Write) -> Option<Refused> {
    if let Write::Turn(turn) = write
        && let TurnOf::New(new) = &turn.run
    {
        return (!node.owns_shard_of(owned, &new.queue)).then_some(Refused::NotOwner);
    }
    let run = write.owned_run()?;
    match facts.runs.get(&run) {
        None => Some(Refused::NoSuchRun),
        // A closed run has no turns any more: any node may begin another from it.
        Some(row) if !row.status.is_open() => None,
        Some(_) => (!owned.has_run(run)).then_some(Refused::NotOwner),
    }
}
