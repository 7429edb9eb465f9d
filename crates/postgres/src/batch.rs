//! Committing a group: facts are locked and read in one round trip, and changes written and committed in a second.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dacapo_core::Name;
use dacapo_store::{Batch, NodeNo, Refused, Shards, StoreError, TurnOf, Write, Written, apply};
use tokio_postgres::Row;

use crate::address::Address;
use crate::alarm::Alarm;
use crate::facts::{Facts, Reading};
use crate::failure::Failure;
use crate::flush::flush;
use crate::link::Link;
use crate::membership::{self, Membership, Renewed, make_shards};
use crate::needs::Needs;
use crate::node::{Moment, Node, View};
use crate::overlay::{Overlay, TaskNumbers};
use crate::row::get;
use crate::schema::lock_space;
use crate::sweep::sweep;
use crate::traffic::TotalTraffic;
use crate::trip::{Trip, values};

type Result<T> = std::result::Result<T, StoreError>;
type WriteResult = Result<Written>;

/// Plans that read a table from its beginning, or build a table of it, are never right for the few rows of a group.
const PLANS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

/// Locks the ids of workflows and requests. They are sorted, so that two nodes cannot wait for each other.
const LOCK_IDS: &str = "SELECT pg_advisory_xact_lock(id) FROM unnest($1::bigint[]) AS id";
/// A group that locks single ids shares this lock; one that has too many for the table of locks takes it alone.
const LOCK_ALL_SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1, 2)";
const LOCK_ALL: &str = "SELECT pg_advisory_xact_lock($1, 2)";
/// The most ids that a group locks one by one. The server has room for 64 locks in each of its connections.
const IDS: usize = 200;

/// The numbers of tasks that a node draws at once.
const TASK_BLOCK: i64 = 4096;
const DRAW_TASKS: &str = "SELECT nextval('task_blocks') FROM generate_series(1, $1::bigint)";

/// How often a group is tried again because a fact has changed meanwhile. Locks make that rare; without end, it is a bug.
const PREMISES: usize = 20;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct GroupCommit {
    address: Address,
    /// None while there is no connection.
    link: Option<Link>,
    node: Arc<Node>,
    /// Rung when the others took this node for dead, so that it is told at once.
    alarm: Arc<Alarm>,
    /// None before this process has joined the other nodes.
    membership: Option<Membership>,
    tasks: TaskBlocks,
    /// How often this process has joined the other nodes.
    life: u64,
    /// The shards that the node has lost because the others took it for dead, until it is told.
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

/// Numbers of tasks that this node has drawn and not used, in rising order.
#[derive(Default)]
struct TaskBlocks(VecDeque<Range<i64>>);

impl TaskNumbers for TaskBlocks {
    fn next(&mut self) -> Option<i64> {
        let number = self.0.front_mut()?.next();
        if self.0.front().is_some_and(Range::is_empty) {
            self.0.pop_front();
        }
        number
    }
}

impl TaskBlocks {
    /// Returns how many numbers are left.
    fn left(&self) -> usize {
        self.0.iter().map(|block| (block.end - block.start) as usize).sum()
    }

    /// Adds the blocks of these numbers, which are higher than all before.
    fn add(&mut self, rows: &[Row]) -> Result<()> {
        for row in rows {
            let block: i64 = get(row, 0)?;
            self.0.push_back(block * TASK_BLOCK..(block + 1) * TASK_BLOCK);
        }
        Ok(())
    }
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
            match act(membership, link) {
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
    fn join_again(&mut self) -> std::result::Result<i64, Failure> {
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

    /// Commits writes in one transaction, however long the server is away meanwhile.
    fn transact(&mut self, writes: &[Write]) -> Result<Vec<WriteResult>> {
        let mut needs = Needs::of(writes);
        let mut excluded = BTreeMap::new();
        let (mut pause, mut premises) = (FIRST_PAUSE, 0);
        loop {
            let mut prepared = None;
            let before = self.link.as_ref().map(|link| link.traffic);
            let attempt = self.attempt(writes, &needs, &excluded, &mut prepared);
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

    /// Ends writing if another process has taken this node's name. Other failures pass.
    fn end_if_replaced(&mut self, failure: Failure) -> Result<()> {
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
        trip.step("BEGIN", values![]);
        let Some(membership) = &mut self.membership else { return Err(not_joined().into()) };
        let fence = trip.step(membership::FENCE, membership.fence());
        let group = membership.group;
        lock_ids(needs, &self.address.schema, &mut trip);
        let reading = Reading::begin(needs, &mut trip);
        let draws = self.draws_tasks(writes, &mut trip);
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

    /// Adds a statement that draws numbers for tasks if they may not suffice. Returns its place.
    fn draws_tasks(&self, writes: &[Write], trip: &mut Trip<'_>) -> Option<usize> {
        let wanted: usize = writes.iter().map(new_tasks).sum();
        let lacks = wanted.saturating_sub(self.tasks.left());
        (lacks > 0).then(|| trip.step(DRAW_TASKS, values![lacks.div_ceil(TASK_BLOCK as usize) as i64]))
    }

    /// Ends the transaction, so that no other waits for its locks.
    fn roll_back(&mut self) {
        if self.is_begun && self.link.as_mut().is_some_and(|link| link.script("ROLLBACK").is_ok()) {
            self.is_begun = false;
        }
    }

    /// Connects again, however long that takes, and returns the number of the last group that was committed, also if the others
    /// have taken the node for dead meanwhile, and it has joined them again. None if it has not joined them yet.
    fn reconnect(&mut self, why: &str) -> Result<Option<i64>> {
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
    fn wait(&self, pause: &mut Duration) -> Result<()> {
        if self.closing.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable(
                "the store was closed while PostgreSQL was away: what was not acknowledged may be missing".to_owned(),
            ));
        }
        thread::sleep(*pause);
        *pause = (*pause * 2).min(LONGEST_PAUSE);
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
        self.node.owned.clear();
        if let (Some(mut link), Some(membership)) = (self.link.take(), &self.membership) {
            // If this fails, the others wait for the end of the lease.
            if self.is_begun {
                let _ = link.script("ROLLBACK");
            }
            let _ = membership.leave(&mut link);
        }
        Ok(())
    }
}

/// Returns the settings of the connection that commits. A process that is stopped in the middle of a group must not hold its
/// locks for longer than a part of the lease.
fn session(address: &Address) -> String {
    let part = address.pace.lease.as_millis() / 3;
    format!("{PLANS}; SET lock_timeout = {part}; SET idle_in_transaction_session_timeout = {part}")
}

fn not_joined() -> StoreError {
    StoreError::Unsupported("this process serves no task queue, so it is no node and writes nothing".to_owned())
}

/// The error of a process whose name another one has taken.
fn replaced() -> StoreError {
    StoreError::Unavailable(
        "another process has joined under the name of this node: give each process a name of its own (`node` in the URL)".to_owned(),
    )
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

/// Divides a group into transactions. Each locks no more single ids than the table of locks has room for: one that locks them all
/// stops the starts of every node. A write of its own may have more.
fn portions(writes: &[Write]) -> Vec<&[Write]> {
    let mut portions = Vec::new();
    for together in writes.chunk_by(|one, other| !is_alone(one) && !is_alone(other)) {
        let (mut rest, mut place, mut ids) = (together, 0, 0);
        while place < rest.len() {
            let more = Needs::of(&rest[place..=place]).ids();
            if place > 0 && ids + more > IDS {
                let (portion, left) = rest.split_at(place);
                portions.push(portion);
                (rest, place, ids) = (left, 0, 0);
                continue;
            }
            (place, ids) = (place + 1, ids + more);
        }
        portions.push(rest);
    }
    portions
}

/// Returns whether a write changes rows that it does not read, so that no other write may share its transaction.
fn is_alone(write: &Write) -> bool {
    use Write::{Delete, Expire, Import, Reset, Sweep};
    matches!(write, Reset(_) | Delete { .. } | Expire { .. } | Import(_) | Sweep { .. })
}

fn new_tasks(write: &Write) -> usize {
    match write {
        Write::Turn(turn) => turn.tasks.len(),
        Write::Reset(reset) => reset.tasks.len(),
        _ => 0,
    }
}

/// Adds statements that lock the ids which a group starts or looks up, until it is committed.
fn lock_ids<'n>(needs: &'n Needs, schema: &str, trip: &mut Trip<'n>) {
    let space = lock_space(schema);
    let key = |kind: u8, id: &Name| {
        // FNV-1a: two ids with one key wait for each other and are none the worse for it.
        let bytes = space.to_le_bytes().into_iter().chain([kind]).chain(id.bytes());
        let hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        hash.cast_signed()
    };
    let ids = needs.workflow_ids.iter().chain(&needs.last_runs).map(|id| key(0, id));
    let mut keys: Vec<i64> = ids.chain(needs.requests.iter().map(|id| key(1, id))).collect();
    if keys.is_empty() {
        return;
    }
    keys.sort_unstable();
    keys.dedup();
    if keys.len() > IDS {
        trip.step(LOCK_ALL, values![space]);
    } else {
        trip.step(LOCK_ALL_SHARED, values![space]);
        trip.step(LOCK_IDS, values![keys]);
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::{IdReuse, Timestamp};
    use dacapo_store::{IdConflict, NewRun, RunNo};

    use super::*;

    fn start(number: usize) -> Write {
        Write::Start(Box::new(NewRun {
            run_id: format!("run-{number}").into(),
            workflow_id: format!("order-{number}").into(),
            workflow: "kit".into(),
            queue: "main".into(),
            started: Timestamp::default(),
            pins: Vec::new(),
            start: Vec::new(),
            parent: None,
            first_run_id: Name::default(),
            reuse: IdReuse::AllowDuplicate,
            conflict: IdConflict::Fail,
            request: None,
            timers: Vec::new(),
            memo: Vec::new(),
            attributes: Vec::new(),
        }))
    }

    #[test]
    fn a_transaction_locks_no_more_ids_than_have_room_and_a_write_that_shares_none_is_alone() {
        let starts: Vec<Write> = (0..450).map(start).collect();
        let sizes = |writes: &[Write]| portions(writes).iter().map(|portion| portion.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&starts), [200, 200, 50]);
        let delete = Write::Delete { run: RunNo(1) };
        assert_eq!(sizes(&[start(1), delete, start(2), start(3)]), [1, 1, 2]);
        assert!(sizes(&[]).is_empty());
    }
}
