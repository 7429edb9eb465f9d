//! The transactions into which a group of writes is divided.

use dacapo_store::Write;

use crate::batch::id_locks::IDS;
use crate::needs::Needs;

/// Divides a group into transactions. Each locks no more single ids than the table of locks has room for: one that locks them all
/// stops the starts of every node. A write of its own may have more.
pub(super) fn portions(writes: &[Write]) -> Vec<&[Write]> {
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

#[cfg(test)]
mod tests {
    use dacapo_store::RunNo;
    use dacapo_store::conformance::order;

    use super::*;

    fn start(number: usize) -> Write {
        Write::Start(Box::new(order(number)))
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
