//! The node: this process as the database knows it. Its row is the fence of all its commits, and keeps the number of
//! the last one.

use dacapo_store::StoreError;

use crate::address::Address;
use crate::failure::Failure;
use crate::link::Link;
use crate::row::get;
use crate::schema::lock_space;
use crate::trip::{Trip, Value, values};

/// The second half of the key of the lock that the serving process holds as long as it is connected.
const SERVING: i32 = 1;

/// Fence and receipt: the row of a node that has lost the store is not alive, and a row that a later connection has
/// taken has another incarnation. The row keeps the number of the group, so that the node can tell later whether the
/// group was committed.
pub(crate) const FENCE: &str =
    "UPDATE nodes SET last_group = $1 WHERE no = $2 AND incarnation = $3 AND alive RETURNING no";

/// A registered node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    no: i64,
    incarnation: i64,
    /// The number of the last group that was sent.
    pub(crate) group: i64,
}

impl Node {
    /// Registers this process as the one that serves the store. Whoever served it before can commit nothing more.
    pub(crate) fn register(link: &mut Link, address: &Address) -> Result<Self, StoreError> {
        lock(link, address)?;
        let mut trip = Trip::default();
        trip.step("UPDATE nodes SET alive = false WHERE alive", values![]);
        let sql = "INSERT INTO nodes (name, build, incarnation, last_group, alive, lease_until) \
             VALUES (gen_random_uuid()::text, $1, 1, 0, true, clock_timestamp()) RETURNING no";
        let place = trip.step(sql, values![env!("CARGO_PKG_VERSION")]);
        trip.step(
            "DELETE FROM nodes WHERE NOT alive AND lease_until < clock_timestamp() - interval '1 day'",
            values![],
        );
        let answers = link.run(&trip).map_err(Failure::into_error)?;
        let row = answers[place].first().ok_or_else(lost)?;
        Ok(Self { no: get(row, 0)?, incarnation: 1, group: 0 })
    }

    /// Takes the node over for a new connection, and returns the number of the last group that was committed. It waits
    /// for a commit that is still under way on the old one.
    pub(crate) fn take_over(&mut self, link: &mut Link, address: &Address) -> Result<i64, Failure> {
        let sql = "UPDATE nodes SET incarnation = incarnation + 1 WHERE no = $1 AND incarnation = $2 AND alive \
             RETURNING incarnation, last_group";
        let rows = link.query(sql, values![self.no, self.incarnation])?;
        let row = rows.first().ok_or_else(lost)?;
        self.incarnation = get(row, 0)?;
        let last = get(row, 1)?;
        lock(link, address).map_err(|error| Failure::Disconnected(error.to_string()))?;
        Ok(last)
    }

    /// Returns the values of [`FENCE`] for the next group.
    pub(crate) fn fence(&mut self) -> Vec<Value<'static>> {
        self.group += 1;
        values![self.group, self.no, self.incarnation]
    }

    /// Leaves: the next process may serve the store at once.
    pub(crate) fn leave(&self, link: &mut Link) -> Result<(), Failure> {
        let sql = "UPDATE nodes SET alive = false WHERE no = $1 AND incarnation = $2 RETURNING no";
        link.query(sql, values![self.no, self.incarnation]).map(drop)
    }
}

/// Takes the lock of the serving process.
fn lock(link: &mut Link, address: &Address) -> Result<(), StoreError> {
    let space = lock_space(&address.schema);
    let taken = link.query("SELECT pg_try_advisory_lock($1, $2)", values![space, SERVING]);
    let taken = taken.map_err(Failure::into_error)?;
    if taken.first().map(|row| get::<bool>(row, 0)).transpose()? == Some(true) {
        return Ok(());
    }
    let sql = "SELECT coalesce(host(activity.client_addr), 'the same machine'), activity.pid, activity.backend_start::text \
         FROM pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid) \
         WHERE locks.locktype = 'advisory' AND locks.classid = $1::bigint::oid AND locks.objid = 1 AND locks.objsubid = 2 AND locks.granted";
    let space = i64::from(space.cast_unsigned());
    let holder = link.query(sql, values![space]).map_err(Failure::into_error)?;
    let who = match holder.first() {
        Some(row) => {
            let (from, pid, since): (String, i32, String) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            format!("from {from} since {since}, backend {pid} of the server")
        }
        None => "it has just begun".to_owned(),
    };
    Err(StoreError::Busy(format!("{} ({who}). End it first, or use another schema", address.shown())))
}

/// The error of a node that another process has taken the store from.
pub(crate) fn lost() -> StoreError {
    StoreError::Unavailable(
        "another process serves this store now: this one has lost it and writes nothing more".to_owned(),
    )
}
