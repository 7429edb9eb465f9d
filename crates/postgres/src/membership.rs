//! Joining the other nodes, staying with them, and leaving: what a node writes about itself and its shards.
//!
//! All of it goes over the connection that commits, between two groups, so that no commit of a run is under way while its
//! shard moves. A node that the others take for dead cannot commit from then on: its row is the fence of every group.

use std::time::Duration;

use dacapo_core::{Name, Timestamp};
use dacapo_store::{Member, NodeNo, NodeRow, OwnedShard, Shard, Shards, StoreError, TaskNo};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::address::Pace;
use crate::failure::Failure;
use crate::link::Link;
use crate::node::{SeenNode, View};
use crate::row::get;
use crate::schema::lock_space;
use crate::trip::{Trip, Value, values};

type Result<T> = std::result::Result<T, Failure>;

/// The shards of a queue. A cluster can have as many nodes for one queue.
const SHARDS: i64 = 16;

/// Fence, receipt and renewal: the row of a node that was taken for dead is not alive, and one that another process has
/// taken has another incarnation. The row keeps the number of the group, so that the node can tell later whether the group
/// was committed.
pub(crate) const FENCE: &str = "UPDATE nodes SET last_group = $1, lease_until = clock_timestamp() + $4 * interval '1 millisecond' \
     WHERE no = $2 AND incarnation = $3 AND alive RETURNING no";

/// The fence of a group that goes to the server whole: it fails where [`FENCE`] finds no row.
pub(crate) const STRICT_FENCE: &str = "WITH fence AS (UPDATE nodes SET last_group = $1, \
     lease_until = clock_timestamp() + $4 * interval '1 millisecond' WHERE no = $2 AND incarnation = $3 AND alive RETURNING no) \
     SELECT 1 / count(*)::integer FROM fence";

/// A process that joins again keeps the receipt of what it had committed: the node that took it for dead has waited for its
/// last commit.
const JOIN: &str = "INSERT INTO nodes AS node (name, build, queues, process, incarnation, last_group, alive, lease_until) \
     VALUES (coalesce($1, gen_random_uuid()::text), $2, $3, $5, 1, 0, true, clock_timestamp() + $4 * interval '1 millisecond') \
     ON CONFLICT (name) DO UPDATE SET build = excluded.build, queues = excluded.queues, process = excluded.process, \
     incarnation = node.incarnation + 1, \
     last_group = CASE WHEN node.process = excluded.process THEN node.last_group ELSE 0 END, alive = true, \
     lease_until = excluded.lease_until RETURNING no, incarnation, name, last_group";
const FORGET_NODES: &str = "DELETE FROM nodes WHERE NOT alive AND lease_until < clock_timestamp() - interval '1 day'";
/// Calls of nodes that are gone, which take no answer any more.
const FORGET_CALLS: &str = "DELETE FROM calls USING nodes WHERE calls.caller = nodes.no AND NOT nodes.alive";
/// Makes the shards of queues that have none, as long as there are numbers for them.
const MAKE_SHARDS: &str = "INSERT INTO shards (no, queue) SELECT made.no, made.queue FROM ( \
     SELECT (SELECT coalesce(max(no) + 1, 0) FROM shards) + row_number() OVER (ORDER BY new.queue, part) - 1 AS no, new.queue \
     FROM unnest($1::text[]) AS new (queue) CROSS JOIN generate_series(1, $2::bigint) AS part \
     WHERE NOT EXISTS (SELECT FROM shards WHERE shards.queue = new.queue)) AS made WHERE made.no < 1024";
const LOCK_SHARDS: &str = "SELECT pg_advisory_xact_lock($1, 3)";

/// One statement, because an idle node makes it every few seconds. It renews the lease, and returns all nodes and shards as
/// columns of arrays.
const RENEW: &str = "WITH renewed AS (UPDATE nodes SET lease_until = clock_timestamp() + $3 * interval '1 millisecond' \
     WHERE no = $1 AND incarnation = $2 AND alive RETURNING no) \
     SELECT (SELECT count(*) FROM renewed), (SELECT count(*) FROM calls WHERE node = $1 AND NOT is_taken), \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, seen.*, owned.* FROM ( \
     SELECT array_agg(no ORDER BY no), array_agg(name ORDER BY no), array_agg(build ORDER BY no), \
     array_agg(array_to_string(queues, E'\\x01') ORDER BY no), array_agg(process ORDER BY no), \
     array_agg((extract(epoch FROM lease_until - clock_timestamp()) * 1000)::bigint ORDER BY no) FROM nodes WHERE alive) AS seen, ( \
     SELECT array_agg(no ORDER BY no), array_agg(queue ORDER BY no), array_agg(owner ORDER BY no) FROM shards) AS owned";
const PROCESS: &str = "SELECT process, alive FROM nodes WHERE no = $1";
/// It may have been made before, and its answer lost with the connection: then it is made again. Whether the node is alive the next fence
/// says.
const RECONNECT: &str = "UPDATE nodes SET incarnation = incarnation + 1, \
     lease_until = clock_timestamp() + $3 * interval '1 millisecond' WHERE no = $1 AND process = $2 \
     RETURNING incarnation, last_group";

/// It waits for a commit of the dead node that is still under way, which renews the lease: then the node is not dead.
///
/// This statement and all that lock several tasks lock them in the order of their numbers, so that no two wait for each other.
const DECLARE_DEAD: &str = "WITH dead AS (UPDATE nodes SET alive = false WHERE no = ANY($1) AND alive AND lease_until < clock_timestamp() \
     RETURNING no), \
     freed AS (UPDATE shards SET owner = NULL FROM dead WHERE shards.owner = dead.no), \
     released AS (UPDATE tasks SET node = NULL FROM (SELECT tasks.no FROM dead JOIN tasks ON tasks.node = dead.no \
     ORDER BY tasks.no FOR UPDATE OF tasks) AS locked WHERE tasks.no = locked.no) \
     SELECT no FROM dead";
const TAKE: &str = "UPDATE shards SET owner = $1 WHERE no = ANY($2) \
     AND (owner IS NULL OR NOT EXISTS (SELECT FROM nodes WHERE nodes.no = shards.owner AND nodes.alive)) \
     AND EXISTS (SELECT FROM nodes WHERE nodes.no = $1 AND nodes.incarnation = $3 AND nodes.alive) RETURNING no";
const GIVE: &str = "UPDATE shards SET owner = given.owner FROM unnest($2::smallint[], $3::bigint[]) AS given (no, owner) \
     WHERE shards.no = given.no AND shards.owner = $1";
const RELEASE: &str = "UPDATE tasks SET node = NULL FROM (SELECT no FROM tasks WHERE node = $1 \
     AND (run & 1023) = ANY($2::bigint[]) AND no <> ALL($3) ORDER BY no FOR UPDATE) AS locked WHERE tasks.no = locked.no";
const RELEASE_OF_NAME: &str = "UPDATE tasks SET node = NULL FROM (SELECT tasks.no FROM nodes JOIN tasks ON tasks.node = nodes.no \
     WHERE nodes.name = $1 ORDER BY tasks.no FOR UPDATE OF tasks) AS locked WHERE tasks.no = locked.no";
const RELEASE_ALL: &str = "UPDATE tasks SET node = NULL FROM (SELECT no FROM tasks WHERE node = $1 ORDER BY no FOR UPDATE) AS locked \
     WHERE tasks.no = locked.no";
const LEAVE: &str = "WITH left_node AS (UPDATE nodes SET alive = false, lease_until = clock_timestamp() \
     WHERE no = $1 AND incarnation = $2 RETURNING no), \
     freed AS (UPDATE shards SET owner = NULL FROM left_node WHERE shards.owner = left_node.no), \
     released AS (UPDATE tasks SET node = NULL FROM (SELECT tasks.no FROM left_node JOIN tasks ON tasks.node = left_node.no \
     ORDER BY tasks.no FOR UPDATE OF tasks) AS locked WHERE tasks.no = locked.no) \
     SELECT no FROM left_node";

/// This process in the table of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) no: i64,
    /// A random number of this process: another that takes the name has another.
    pub(crate) process: i64,
    pub(crate) incarnation: i64,
    /// The name under which it joined.
    name: String,
    queues: Vec<Name>,
    build: Name,
    pace: Pace,
    /// The number of the last group that was sent.
    pub(crate) group: i64,
}

/// The outcome of a renewal.
pub(crate) enum Renewed {
    /// The node is alive, and this is what it sees.
    Alive {
        view: View,
        has_calls: bool,
        /// The time of day by the clock of the database.
        time: Timestamp,
    },
    /// The others have taken it for dead.
    Dead,
    /// Another process has taken its name.
    Replaced,
}

impl Membership {
    /// Joins the other nodes. A process that comes back under its name has its shards at once.
    pub(crate) fn join(
        link: &mut Link,
        schema: &str,
        node: Option<&str>,
        queues: &[Name],
        build: &Name,
        pace: Pace,
    ) -> Result<Self> {
        let process = (uuid::Uuid::new_v4().as_u64_pair().0 >> 1) as i64;
        Self::join_as(process, link, schema, node, queues, build, pace).map(|(membership, _)| membership)
    }

    /// Joins the other nodes. Returns also the number of the last group that this process has committed.
    fn join_as(
        process: i64,
        link: &mut Link,
        schema: &str,
        node: Option<&str>,
        queues: &[Name],
        build: &Name,
        pace: Pace,
    ) -> Result<(Self, i64)> {
        let mut trip = Trip::default();
        let lease = pace.lease.as_millis() as f64;
        let words: Vec<&str> = queues.iter().map(Name::as_str).collect();
        trip.step("BEGIN", values![]);
        let place = trip.step(JOIN, values![node, build.as_str(), words, lease, process]);
        trip.step(FORGET_NODES, values![]);
        // The process before this one had them in memory.
        trip.step(RELEASE_OF_NAME, values![node]);
        trip.step(FORGET_CALLS, values![]);
        trip.step("COMMIT", values![]);
        let answers = link.run(&trip)?;
        let row = answers[place].first().ok_or_else(|| StoreError::Corrupt("a node has no row".to_owned()))?;
        let (no, incarnation, name, last) = (get(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?);
        make_shards(link, schema, queues)?;
        let (queues, build) = (queues.to_vec(), build.clone());
        Ok((Self { no, process, incarnation, name, queues, build, pace, group: 0 }, last))
    }

    /// Joins again after the others have taken this node for dead. It is the same process: if the answer is lost, it has joined
    /// all the same. Returns the number of the last group that was committed.
    pub(crate) fn join_again(&mut self, link: &mut Link, schema: &str) -> Result<i64> {
        let Self { name, queues, build, .. } = &*self;
        let (joined, last) = Self::join_as(self.process, link, schema, Some(name), queues, build, self.pace)?;
        *self = Self { group: self.group, ..joined };
        Ok(last)
    }

    /// Returns the values of [`FENCE`] for the next group.
    pub(crate) fn fence(&mut self) -> Vec<Value<'static>> {
        self.group += 1;
        values![self.group, self.no, self.incarnation, self.pace.lease.as_millis() as f64]
    }

    /// Takes the node's row for a new connection, and returns the number of the last group that was committed. It waits for a
    /// commit that is still under way on the old one. None if another process has taken the name, or the node was forgotten.
    pub(crate) fn reconnect(&mut self, link: &mut Link) -> Result<Option<i64>> {
        let rows = link.query(RECONNECT, values![self.no, self.process, self.pace.lease.as_millis() as f64])?;
        let Some(row) = rows.first() else { return Ok(None) };
        self.incarnation = get(row, 0)?;
        Ok(Some(get(row, 1)?))
    }

    /// Renews the lease, and looks at the other nodes.
    pub(crate) fn renew(&self, link: &mut Link) -> Result<Renewed> {
        let rows = link.query(RENEW, values![self.no, self.incarnation, self.pace.lease.as_millis() as f64])?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("a renewal has no answer".to_owned()))?;
        let (renewed, calls): (i64, i64) = (get(row, 0)?, get(row, 1)?);
        if renewed == 0 {
            return self.why_not(link);
        }
        let micros: i64 = get(row, 2)?;
        let time = Timestamp((micros as u64).saturating_mul(1_000));
        Ok(Renewed::Alive { view: self.view(row)?, has_calls: calls > 0, time })
    }

    fn why_not(&self, link: &mut Link) -> Result<Renewed> {
        let rows = link.query(PROCESS, values![self.no])?;
        let Some(row) = rows.first() else { return Ok(Renewed::Dead) };
        let (process, is_alive): (i64, bool) = (get(row, 0)?, get(row, 1)?);
        Ok(if is_alive && process != self.process { Renewed::Replaced } else { Renewed::Dead })
    }

    /// Returns whether this node is dead or replaced, after its fence has refused a group.
    pub(crate) fn is_replaced(&self, link: &mut Link) -> Result<bool> {
        Ok(matches!(self.why_not(link)?, Renewed::Replaced))
    }

    /// Reads the nodes and their shards.
    fn view(&self, row: &Row) -> std::result::Result<View, StoreError> {
        let numbers: Vec<i64> = column(row, 3)?;
        let (names, builds): (Vec<String>, Vec<String>) = (column(row, 4)?, column(row, 5)?);
        let queues: Vec<String> = column(row, 6)?;
        let (processes, leases): (Vec<i64>, Vec<i64>) = (column(row, 7)?, column(row, 8)?);
        let mut view = View { served: self.queues.clone(), ..View::default() };
        for (at, no) in numbers.into_iter().enumerate() {
            let served =
                queues[at].split('\u{1}').filter(|queue| !queue.is_empty()).map(|queue| Name::from(queue.to_owned()));
            let row = NodeRow {
                no: NodeNo(no),
                name: names[at].clone().into(),
                build: builds[at].clone().into(),
                queues: served.collect(),
                shards: 0,
                lease: Duration::from_millis(leases[at].try_into().unwrap_or(0)),
            };
            view.nodes.push(SeenNode { row, process: processes[at] });
        }
        let (shards, of): (Vec<i16>, Vec<String>) = (column(row, 9)?, column(row, 10)?);
        let owners: Vec<Option<i64>> = column(row, 11)?;
        for (at, shard) in shards.into_iter().enumerate() {
            let shard = Shard(shard as u16);
            view.shards.entry(of[at].clone().into()).or_default().push(shard);
            let owner = owners[at].map(NodeNo);
            if let Some(seen) = view.nodes.iter_mut().find(|node| Some(node.row.no) == owner) {
                view.owners.insert(shard, seen.row.no);
                seen.row.shards += 1;
            }
        }
        Ok(view)
    }

    /// Takes nodes for dead whose leases are over. Returns those.
    pub(crate) fn declare_dead(&self, link: &mut Link, nodes: &[NodeNo]) -> Result<Vec<NodeNo>> {
        let nodes: Vec<i64> = nodes.iter().map(|node| node.0).collect();
        let rows = link.query(DECLARE_DEAD, values![nodes])?;
        rows.iter().map(|row| Ok(NodeNo(get(row, 0)?))).collect()
    }

    /// Takes shards that have no owner. Returns those that it got.
    pub(crate) fn take(&self, link: &mut Link, shards: &[Shard]) -> Result<Shards> {
        let wanted: Vec<i16> = shards.iter().map(|shard| shard.0 as i16).collect();
        let rows = link.query(TAKE, values![self.no, wanted, self.incarnation])?;
        rows.iter().map(|row| Ok(Shard(get::<i16>(row, 0)? as u16))).collect()
    }

    /// Gives shards to other nodes, with all their tasks but those that this node keeps. Returns false if the others have
    /// taken this node for dead meanwhile.
    pub(crate) fn give(&mut self, link: &mut Link, given: &[(Shard, NodeNo)], kept: &[TaskNo]) -> Result<bool> {
        let (shards, owners): (Vec<i16>, Vec<i64>) = given.iter().map(|(shard, to)| (shard.0 as i16, to.0)).unzip();
        let low_bits: Vec<i64> = given.iter().map(|(shard, _)| i64::from(shard.0)).collect();
        let kept: Vec<i64> = kept.iter().map(|task| task.0).collect();
        let mut trip = Trip::default();
        trip.step("BEGIN", values![]);
        let fence = trip.step(FENCE, self.fence());
        trip.step(GIVE, values![self.no, shards, owners]);
        trip.step(RELEASE, values![self.no, low_bits, kept]);
        trip.step("COMMIT", values![]);
        Ok(passes(&link.run(&trip)?[fence]))
    }

    /// Gives back all tasks that this node holds, because it has nothing in memory any more.
    pub(crate) fn release_tasks(&self, link: &mut Link) -> Result<()> {
        link.query(RELEASE_ALL, values![self.no]).map(drop)
    }

    /// Serves no queue from now on: this node and the others give and take shards accordingly.
    pub(crate) fn stop_serving(&mut self, link: &mut Link) -> Result<()> {
        self.queues.clear();
        link.query("UPDATE nodes SET queues = '{}' WHERE no = $1 AND process = $2", values![self.no, self.process])?;
        Ok(())
    }

    /// Leaves: the others may take the shards at once.
    pub(crate) fn leave(&self, link: &mut Link) -> Result<()> {
        link.query(LEAVE, values![self.no, self.incarnation]).map(drop)
    }
}

/// Returns whether [`FENCE`] has let this node pass: it is alive, and no other process has its name.
pub(crate) fn passes(fence: &[Row]) -> bool {
    !fence.is_empty()
}

/// Makes shards for queues that have none. Another node may do the same at this moment.
pub(crate) fn make_shards(link: &mut Link, schema: &str, queues: &[Name]) -> Result<()> {
    let words: Vec<&str> = queues.iter().map(Name::as_str).collect();
    let mut trip = Trip::default();
    trip.step("BEGIN", values![]);
    trip.step(LOCK_SHARDS, values![lock_space(schema)]);
    trip.step(MAKE_SHARDS, values![words, SHARDS]);
    trip.step("COMMIT", values![]);
    link.run(&trip).map(drop)
}

/// Reads an array. There is none where there are no rows.
fn column<'r, T: FromSql<'r>>(row: &'r Row, place: usize) -> std::result::Result<Vec<T>, StoreError> {
    Ok(get::<Option<Vec<T>>>(row, place)?.unwrap_or_default())
}

impl View {
    /// Returns the live nodes.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.nodes.iter().map(|node| Member { no: node.row.no, queues: node.row.queues.clone() }).collect()
    }

    /// Returns all shards.
    pub(crate) fn all_shards(&self) -> Vec<OwnedShard> {
        let of_queue = |(queue, shards): (&Name, &Vec<Shard>)| {
            let shard = |shard: &Shard| OwnedShard {
                shard: *shard,
                queue: queue.clone(),
                owner: self.owners.get(shard).copied(),
            };
            shards.iter().map(shard).collect::<Vec<_>>()
        };
        self.shards.iter().flat_map(of_queue).collect()
    }

    /// Returns the shards of a node.
    pub(crate) fn shards_of(&self, node: NodeNo) -> Shards {
        self.owners.iter().filter(|(_, owner)| **owner == node).map(|(shard, _)| *shard).collect()
    }
}
