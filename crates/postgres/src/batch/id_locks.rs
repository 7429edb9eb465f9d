//! The locks of ids that a group starts or looks up: two groups with one id are committed one after the other.

use dacapo_core::Name;

use crate::needs::Needs;
use crate::schema::lock_space;
use crate::trip::{Trip, values};

/// Locks the ids of workflows and requests. They are sorted, so that two nodes cannot wait for each other.
const LOCK_IDS: &str = "SELECT pg_advisory_xact_lock(id) FROM unnest($1::bigint[]) AS id";
/// A group that locks single ids shares this lock; one that has too many for the table of locks takes it alone.
const LOCK_ALL_SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1, 2)";
const LOCK_ALL: &str = "SELECT pg_advisory_xact_lock($1, 2)";
/// The most ids that a group locks one by one. The server has room for 64 locks in each of its connections.
pub(super) const IDS: usize = 200;

/// Adds statements that lock the ids which a group starts or looks up, until it is committed.
pub(super) fn lock_ids<'n>(needs: &'n Needs, schema: &str, trip: &mut Trip<'n>) {
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
