//! The store as several nodes share it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;

use dacapo_core::{Name, Timestamp};
use dacapo_store::{
    CallAnswered, Group, Looked, NodeEvents, NodeNo, NodeRow, Nodes, Notice, Recipient, RunNo, RunRow, RunningNotes,
    Shards, SharedStore, StoreError, TaskNo, TaskRow, TimerRow,
};

use crate::PostgresStore;
use crate::alarm::Alarm;
use crate::batch::GroupCommit;
use crate::channel;
use crate::keeper::Keeper;
use crate::membership::Membership;
use crate::node::SeenNode;
use crate::notification::Listener;
use crate::outbox::Outbox;
use crate::row::{get, low_bits, run, task, timer};
use crate::trip::{Trip, values};

type Result<T> = std::result::Result<T, StoreError>;

/// Tasks at which no node works. Those of a node that took them in the moment in which it was taken for dead are free for the next
/// claim.
const CLAIM: &str = "WITH released AS (UPDATE tasks SET node = NULL FROM (SELECT tasks.no FROM nodes JOIN tasks ON tasks.node = nodes.no \
     WHERE NOT nodes.alive AND nodes.lease_until > clock_timestamp() - interval '1 hour' ORDER BY tasks.no \
     FOR UPDATE OF tasks SKIP LOCKED) AS locked WHERE tasks.no = locked.no), \
     free AS MATERIALIZED (SELECT found.no FROM unnest($2::text[], $3::bigint[]) AS wanted (queue, places) \
     CROSS JOIN LATERAL (SELECT tasks.no FROM tasks WHERE tasks.queue = wanted.queue AND tasks.node IS NULL \
     AND tasks.no <> ALL($5) ORDER BY tasks.no LIMIT wanted.places FOR UPDATE SKIP LOCKED) AS found) \
     UPDATE tasks SET node = $1 FROM free WHERE tasks.no = free.no \
     AND EXISTS (SELECT FROM nodes WHERE nodes.no = $1 AND nodes.process = $4 AND nodes.alive) RETURNING {columns}";
/// A task that another transaction has locked is passed over, so that no two wait for each other; a later look finds it. The
/// condition holds twice: another node may have taken a task since the statement began.
const TASKS_IN: &str = "UPDATE tasks SET node = $1 WHERE tasks.no IN (SELECT tasks.no FROM tasks WHERE tasks.no > $4 \
     AND tasks.queue = ANY($3) AND (tasks.run & 1023) = ANY($2::bigint[]) AND {free} ORDER BY tasks.no LIMIT $5 \
     FOR UPDATE SKIP LOCKED) \
     AND {free} AND EXISTS (SELECT FROM nodes WHERE nodes.no = $1 AND nodes.process = $6 AND nodes.alive) \
     RETURNING {columns}";
const FREE: &str = "(tasks.node IS NULL OR tasks.node = $1 \
     OR NOT EXISTS (SELECT FROM nodes WHERE nodes.no = tasks.node AND nodes.alive))";
const DECLINE: &str = "UPDATE tasks SET node = NULL FROM (SELECT no FROM tasks WHERE node = $1 AND no = ANY($2) ORDER BY no FOR UPDATE) \
     AS locked WHERE tasks.no = locked.no";
/// One statement, because an idle node makes it every few seconds. A run whose start time has not come has nothing to do.
const LOOK: &str = "SELECT DISTINCT 0::smallint, messages.run FROM messages JOIN runs ON runs.no = messages.run \
     WHERE messages.taken IS NULL AND runs.status = 0 AND (messages.run & 1023) = ANY($2::bigint[]) \
     AND (runs.turns > 0 OR runs.started <= (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint) \
     UNION ALL SELECT (CASE WHEN runs.status = 0 THEN 1 ELSE 2 END)::smallint, wanted FROM unnest($3::bigint[]) AS wanted \
     LEFT JOIN runs ON runs.no = wanted WHERE runs.no IS NULL OR runs.status <> 0 OR runs.stuck_cause IS NOT NULL \
     UNION ALL SELECT 3::smallint, no FROM tasks WHERE node = $1";
const UNSEEN_IN: &str = "SELECT DISTINCT messages.run FROM messages JOIN runs ON runs.no = messages.run \
     WHERE messages.taken IS NULL AND runs.status = 0 AND (messages.run & 1023) = ANY($1::bigint[]) ORDER BY messages.run";

/// For how many leases a node takes no task again that it has declined.
const DECLINED: u32 = 3;

/// The parts of a serving process beside its connections.
pub(crate) struct Serving {
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) alarm: Arc<Alarm>,
}

/// Hands on the notices and calls of other nodes.
struct Receiver {
    events: Arc<dyn NodeEvents>,
    alarm: Arc<Alarm>,
    outbox: Weak<Outbox>,
}

impl Listener for Receiver {
    fn notified(&self, notice: Notice) {
        self.events.notified(notice);
    }

    fn called(&self, id: i64, request: Vec<u8>) {
        let outbox = self.outbox.clone();
        let answer = move |answer| {
            if let Some(outbox) = outbox.upgrade() {
                outbox.answer(id, answer);
            }
        };
        self.events.called(request, Box::new(answer));
    }

    fn members_changed(&self) {
        self.alarm.ring();
    }

    fn reconnected(&self) {
        self.alarm.look();
    }
}

impl PostgresStore {
    fn group(&self) -> Result<&Arc<Group<GroupCommit>>> {
        self.group.as_ref().ok_or_else(|| StoreError::Unsupported("the store is open for reading only".to_owned()))
    }

    fn begin_thread(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let begun = thread::Builder::new().name(name.to_owned()).spawn(work);
        begun.map(drop).map_err(|error| StoreError::Unavailable(format!("a thread cannot be started: {error}")))
    }
}

impl Nodes for PostgresStore {
    fn shared(&self) -> Option<&dyn SharedStore> {
        self.group.is_some().then_some(self as &dyn SharedStore)
    }
}

impl SharedStore for PostgresStore {
    fn join(&self, queues: &[Name], build: &Name, events: Arc<dyn NodeEvents>) -> Result<()> {
        let group = self.group()?;
        group.between(|batch| batch.join(queues, build))?;
        let Serving { outbox, alarm } = &self.serving;
        let mut keeper = Keeper {
            group: Arc::downgrade(group),
            node: self.node.clone(),
            outbox: outbox.clone(),
            events: events.clone(),
            alarm: alarm.clone(),
            pace: self.address.pace,
            renewed: None,
            lenient_until: None,
        };
        if !self.keeps_notes() {
            tracing::info!(
                "code that kills its process is not quarantined here: set `state_dir` to a local folder for notes of what the process runs"
            );
        }
        events.joined()?;
        keeper.renew(group)?;
        let others: Vec<NodeNo> = self.node.see(|view| view.nodes.iter().map(|node| node.row.no).collect());
        outbox.notify_members(others.into_iter().filter(|node| *node != self.node.no()));
        let receiver = Receiver { events, alarm: alarm.clone(), outbox: Arc::downgrade(outbox) };
        let (address, outbox) = (self.address.clone(), outbox.clone());
        self.begin_thread("dacapo-notices", move || channel::run(&address, &outbox, &receiver))?;
        self.begin_thread("dacapo-node", move || keeper.run())
    }

    fn node(&self) -> NodeNo {
        self.node.no()
    }

    fn owns(&self, run: RunNo) -> bool {
        self.node.owns(run)
    }

    fn is_served(&self, queue: &str) -> bool {
        self.node.see(|view| view.nodes.iter().any(|node| node.row.queues.iter().any(|served| *served == *queue)))
    }

    fn others_serve(&self, queue: &str) -> bool {
        let me = self.node.no();
        let serves = |node: &SeenNode| node.row.no != me && node.row.queues.iter().any(|served| *served == *queue);
        self.node.see(|view| view.nodes.iter().any(serves))
    }

    fn other_builds(&self) -> Vec<Name> {
        let me = self.node.no();
        let others = |node: &&SeenNode| node.row.no != me;
        self.node.see(|view| view.nodes.iter().filter(others).map(|node| node.row.build.clone()).collect())
    }

    fn clock(&self) -> Result<Timestamp> {
        if let Some(time) = self.node.time() {
            return Ok(time);
        }
        let rows = self.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", values![])?;
        let micros: i64 = rows.first().map_or(Ok(0), |row| get(row, 0))?;
        Ok(Timestamp((micros as u64).saturating_mul(1_000)))
    }

    fn notify(&self, to: Recipient, notice: Notice) {
        self.serving.outbox.notify(&to, &notice);
    }

    fn call(&self, to: Recipient, request: Vec<u8>, answered: CallAnswered) {
        self.serving.outbox.call(&to, request, answered);
    }

    fn confirm_lease(&self) -> Result<()> {
        if self.node.has_lease() {
            return Ok(());
        }
        self.serving.alarm.ring();
        match self.node.wait_for_lease(|| self.closing.load(Ordering::Acquire)) {
            true => Ok(()),
            false => Err(StoreError::Unavailable("the store is closed".to_owned())),
        }
    }

    fn stop_serving(&self) -> Result<()> {
        self.group()?.between(|batch| batch.between_groups(Membership::stop_serving))?;
        self.serving.alarm.ring();
        Ok(())
    }

    fn decline(&self, tasks: &[TaskNo]) -> Result<()> {
        self.node.decline(tasks, self.address.pace.lease * DECLINED);
        let tasks: Vec<i64> = tasks.iter().map(|task| task.0).collect();
        self.rows(DECLINE, values![self.node.no().0, tasks]).map(drop)
    }

    fn claim(&self, places: &[(Name, usize)]) -> Result<Vec<TaskRow>> {
        let sql = CLAIM.replace("{columns}", &task::columns());
        let (queues, free): (Vec<&str>, Vec<i64>) =
            places.iter().map(|(queue, free)| (queue.as_str(), *free as i64)).unzip();
        let mut trip = Trip::default();
        trip.step(sql, values![self.node.no().0, queues, free, self.node.process(), self.node.declined()]);
        // Not made again by itself: if the answer is lost, tasks may be this node's that it does not know.
        let rows = self.readers.run_once(&trip)?.pop().unwrap_or_default();
        let mut claimed: Vec<TaskRow> = rows.iter().map(task::read).collect::<Result<_>>()?;
        claimed.sort_by_key(|task| task.no);
        Ok(claimed)
    }

    fn tasks_in(&self, shards: &Shards, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>> {
        let sql = TASKS_IN.replace("{free}", FREE).replace("{columns}", &task::columns());
        let queues: Vec<&str> = queues.iter().map(Name::as_str).collect();
        let (me, process) = (self.node.no().0, self.node.process());
        let rows = self.rows(sql, values![me, low_bits(shards), queues, above, limit as i64, process])?;
        let mut tasks: Vec<TaskRow> = rows.iter().map(task::read).collect::<Result<_>>()?;
        tasks.sort_by_key(|task| task.no);
        Ok(tasks)
    }

    fn look(&self, shards: &Shards, runs: &[RunNo]) -> Result<Looked> {
        let runs: Vec<i64> = runs.iter().map(|run| run.0).collect();
        let mut looked = Looked::default();
        for row in self.rows(LOOK, values![self.node.no().0, low_bits(shards), runs])? {
            let no = get(&row, 1)?;
            match get::<i16>(&row, 0)? {
                0 => looked.unseen.push(RunNo(no)),
                1 => looked.stuck.push(RunNo(no)),
                2 => looked.ended.push(RunNo(no)),
                _ => looked.tasks.push(TaskNo(no)),
            }
        }
        looked.unseen.sort();
        Ok(looked)
    }

    fn unseen_in(&self, shards: &Shards) -> Result<Vec<RunNo>> {
        self.rows(UNSEEN_IN, values![low_bits(shards)])?.iter().map(|row| Ok(RunNo(get(row, 0)?))).collect()
    }

    fn stuck_in(&self, shards: &Shards) -> Result<Vec<RunRow>> {
        let sql = format!(
            "SELECT {} FROM runs WHERE stuck_cause IS NOT NULL AND (no & 1023) = ANY($1::bigint[]) ORDER BY no",
            run::COLUMNS
        );
        self.rows(sql, values![low_bits(shards)])?.iter().map(run::read).collect()
    }

    fn timers_of(&self, run: RunNo) -> Result<Vec<TimerRow>> {
        let sql = format!("SELECT {} FROM timers WHERE run = $1", timer::COLUMNS);
        self.rows(sql, values![run.0])?.iter().map(timer::read).collect()
    }

    fn nodes(&self) -> Result<Vec<NodeRow>> {
        Ok(self.node.see(|view| view.nodes.iter().map(|node| node.row.clone()).collect()))
    }
}
