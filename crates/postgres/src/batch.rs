//! Committing a group: facts are locked and read in one round trip, and changes written and committed in a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dacapo_core::Name;
use dacapo_store::{Batch, StoreError, Write, Written, apply};

use crate::address::Address;
use crate::facts::Reading;
use crate::failure::Failure;
use crate::flush::flush;
use crate::link::Link;
use crate::needs::Needs;
use crate::node::{self, Node};
use crate::overlay::{Overlay, TaskNumbers};
use crate::row::get;
use crate::schema::lock_space;
use crate::sweep::sweep;
use crate::trip::{Trip, values};

type Result<T> = std::result::Result<T, StoreError>;
type WriteResult = Result<Written>;

/// Plans that read a table from its beginning, or build a table of it, are never right for the few rows of a group.
const PLANS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'";

/// Locks the ids of workflows and requests. They are sorted, so that two nodes cannot wait for each other.
const LOCK_IDS: &str = "SELECT pg_advisory_xact_lock(id) FROM unnest($1::bigint[]) AS id";
/// Whoever locks single ids shares this lock; whoever has too many for the table of locks takes it alone.
const LOCK_ALL_SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1, 2)";
const LOCK_ALL: &str = "SELECT pg_advisory_xact_lock($1, 2)";
/// The most ids that a group locks one by one. The server has room for 64 locks in each of its connections.
const IDS: usize = 200;

/// The numbers of tasks that a node draws at once.
const TASK_BLOCK: i64 = 4096;

/// How often a group is tried again because a fact has changed meanwhile. Locks make that rare; without end, it is a bug.
const PREMISES: usize = 20;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct GroupCommit {
    address: Address,
    /// None while there is no connection.
    link: Option<Link>,
    node: Node,
    tasks: TaskBlock,
    /// Whether a transaction has begun and has not ended.
    is_begun: bool,
    /// Set when the store closes: from then on nothing waits for the server to come back.
    closing: Arc<AtomicBool>,
    /// Why nothing is written any more.
    ended: Option<StoreError>,
}

/// Numbers of tasks that this node has drawn and not used.
struct TaskBlock {
    next: i64,
    end: i64,
}

impl TaskNumbers for TaskBlock {
    fn next(&mut self) -> Option<i64> {
        (self.next < self.end).then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

/// What became of an attempt to commit a group.
enum Attempt {
    Committed(Vec<WriteResult>),
    /// More has to be read first.
    Incomplete,
    /// One write cannot be applied, and the others are applied without it.
    Excluded(usize, StoreError),
}

impl GroupCommit {
    pub(crate) fn open(address: Address, mut link: Link, closing: Arc<AtomicBool>) -> Result<Self> {
        link.script(PLANS).map_err(Failure::into_error)?;
        let node = Node::register(&mut link, &address)?;
        let tasks = TaskBlock { next: 0, end: 0 };
        Ok(Self { address, link: Some(link), node, tasks, is_begun: false, closing, ended: None })
    }

    /// Commits writes in one transaction, however long the server is away meanwhile.
    fn transact(&mut self, writes: &[Write]) -> Result<Vec<WriteResult>> {
        let mut needs = Needs::of(writes);
        let mut excluded = BTreeMap::new();
        let (mut pause, mut premises) = (FIRST_PAUSE, 0);
        loop {
            let mut prepared = None;
            match self.attempt(writes, &needs, &excluded, &mut prepared) {
                Ok((Attempt::Committed(answers), _)) => return Ok(answers),
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
                Err(Failure::Premise(_)) => premises += 1,
                Err(Failure::Conflict(why)) => {
                    tracing::debug!(why, "a commit met another one and is tried again");
                    self.roll_back();
                    self.wait(&mut pause)?;
                }
                Err(Failure::Disconnected(why)) => {
                    let last = self.reconnect(&why)?;
                    if let Some((group, answers)) = prepared
                        && last >= group
                    {
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
        trip.step("BEGIN", values![]);
        let fence = trip.step(node::FENCE, self.node.fence());
        lock_ids(needs, &self.address.schema, &mut trip);
        let reading = Reading::begin(needs, &mut trip);
        let draws = self.draws_tasks(writes, &mut trip);
        self.is_begun = true;
        let link = self.link.as_mut().ok_or_else(|| Failure::Disconnected("there is no connection".to_owned()))?;
        let answers = link.run(&trip)?;
        if answers[fence].is_empty() {
            return Err(node::lost().into());
        }
        if let Some(draws) = draws
            && let Some(row) = answers[draws].first()
        {
            let block: i64 = get(row, 0)?;
            self.tasks = TaskBlock { next: block * TASK_BLOCK, end: (block + 1) * TASK_BLOCK };
        }
        let mut facts = reading.end(&answers)?;
        if let Some(most) = needs.sweep {
            facts.swept = Some(sweep(link, most)?);
        }
        let mut overlay = Overlay::new(&facts, &mut self.tasks);
        let mut answers = Vec::with_capacity(writes.len());
        for (place, write) in writes.iter().enumerate() {
            if let Some(error) = excluded.get(&place) {
                answers.push(Err(error.clone()));
                continue;
            }
            match apply(&mut overlay, write) {
                Err(error) if !matches!(error, StoreError::Refused(_)) && overlay.is_complete() => {
                    return Ok((Attempt::Excluded(place, error), Needs::default()));
                }
                answer => answers.push(answer),
            }
        }
        if !overlay.is_complete() {
            if overlay.lacks_task_numbers {
                // The next attempt draws some.
                let missing = std::mem::take(&mut overlay.missing);
                self.tasks = TaskBlock { next: 0, end: 0 };
                return Ok((Attempt::Incomplete, missing));
            }
            return Ok((Attempt::Incomplete, overlay.missing));
        }
        let changes = overlay.changes;
        let mut trip = Trip::default();
        flush(&changes, &mut trip);
        trip.step("COMMIT", values![]);
        let (_, answers) = prepared.insert((self.node.group, answers));
        link.run(&trip)?;
        self.is_begun = false;
        Ok((Attempt::Committed(std::mem::take(answers)), Needs::default()))
    }

    /// Adds a statement that draws numbers for tasks if they may not suffice. Returns its place.
    fn draws_tasks(&self, writes: &[Write], trip: &mut Trip<'_>) -> Option<usize> {
        let wanted: usize = writes.iter().map(new_tasks).sum();
        let left = self.tasks.end - self.tasks.next;
        let lacks = wanted > 0 && (left as usize) < wanted;
        lacks.then(|| trip.step("SELECT nextval('task_blocks')", values![]))
    }

    /// Ends the transaction, so that nobody waits for its locks.
    fn roll_back(&mut self) {
        if self.is_begun && self.link.as_mut().is_some_and(|link| link.script("ROLLBACK").is_ok()) {
            self.is_begun = false;
        }
    }

    /// Connects again, however long that takes, and returns the number of the last group that was committed.
    fn reconnect(&mut self, why: &str) -> Result<i64> {
        tracing::warn!(why, "the connection to PostgreSQL is lost: writing waits until it is back");
        self.link = None;
        self.is_begun = false;
        let mut pause = FIRST_PAUSE;
        loop {
            self.wait(&mut pause)?;
            let connected = Link::connect(&self.address).and_then(|mut link| {
                link.script(PLANS)?;
                let last = self.node.take_over(&mut link, &self.address)?;
                Ok((link, last))
            });
            match connected {
                Ok((link, last)) => {
                    tracing::info!("the connection to PostgreSQL is back");
                    self.link = Some(link);
                    return Ok(last);
                }
                Err(Failure::Store(error)) if error == node::lost() => {
                    self.ended = Some(error.clone());
                    return Err(error);
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
            Err(error) if error == node::lost() => {
                self.ended = Some(error.clone());
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
        for portion in writes.chunk_by(|one, other| !is_alone(one) && !is_alone(other)) {
            answers.extend(self.commit_together(portion));
        }
        answers
    }

    fn close(&mut self) -> Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        self.ended = Some(StoreError::Unavailable("this process has ended writing".to_owned()));
        if let Some(mut link) = self.link.take() {
            // If this fails, the server notices the end of the connection by itself.
            let _ = self.node.leave(&mut link);
        }
        Ok(())
    }
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
