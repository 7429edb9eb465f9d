//! Which shards a node takes, and which it gives away. Every node decides for itself, by the same rule.

use std::collections::BTreeMap;

use dacapo_core::Name;

use crate::{NodeNo, Shard};

/// A live node, and the queues that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node's number.
    pub no: NodeNo,
    /// The queues that it serves.
    pub queues: Vec<Name>,
}

/// A shard of a queue, and the live node that owns it, if one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedShard {
    /// The shard.
    pub shard: Shard,
    /// The queue whose runs it has.
    pub queue: Name,
    /// The owner. None: no live node owns it.
    pub owner: Option<NodeNo>,
}

/// The moves of a node by which each gets its share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// The shards without an owner that it takes.
    pub take: Vec<Shard>,
    /// The shards that it gives to other nodes.
    pub give: Vec<(Shard, NodeNo)>,
}

/// Decides for this node. The shares of the nodes that serve a queue differ by one shard at most, and every shard is in
/// the share of one of them, so none stays without an owner.
pub fn balance(me: NodeNo, members: &[Member], shards: &[OwnedShard]) -> Balance {
    let mut queues: BTreeMap<&Name, Vec<&OwnedShard>> = BTreeMap::new();
    for shard in shards {
        queues.entry(&shard.queue).or_default().push(shard);
    }
    let mut balance = Balance::default();
    for (queue, shards) in queues {
        let mut serving: Vec<NodeNo> =
            members.iter().filter(|member| member.queues.contains(queue)).map(|member| member.no).collect();
        serving.sort();
        let owned =
            |node: NodeNo| shards.iter().filter(move |shard| shard.owner == Some(node)).map(|shard| shard.shard);
        let Some(rank) = serving.iter().position(|node| *node == me) else {
            // A queue that this node no longer serves.
            let heirs = serving.iter().cycle();
            balance.give.extend(owned(me).zip(heirs).map(|(shard, heir)| (shard, *heir)));
            continue;
        };
        let share = |rank: usize| shards.len() / serving.len() + usize::from(rank < shards.len() % serving.len());
        let mine: Vec<Shard> = owned(me).collect();
        let lacks = share(rank).saturating_sub(mine.len());
        let free = shards.iter().filter(|shard| shard.owner.is_none());
        balance.take.extend(free.take(lacks).map(|shard| shard.shard));
        let mut spare = mine.into_iter().skip(share(rank));
        for (rank, node) in serving.iter().enumerate() {
            let lacks = share(rank).saturating_sub(owned(*node).count());
            balance.give.extend(spare.by_ref().take(lacks).map(|shard| (shard, *node)));
        }
    }
    balance
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(no: i64) -> Member {
        Member { no: NodeNo(no), queues: vec!["main".into()] }
    }

    fn shards(owners: &[Option<i64>]) -> Vec<OwnedShard> {
        let shard = |(no, owner): (u16, &Option<i64>)| OwnedShard {
            shard: Shard(no),
            queue: "main".into(),
            owner: owner.map(NodeNo),
        };
        (0..).zip(owners).map(shard).collect()
    }

    /// Lets every node decide in turn until nothing moves, and returns how many shards each has.
    fn settled(members: &[Member], mut shards: Vec<OwnedShard>) -> Vec<usize> {
        for _ in 0..10 {
            for member in members {
                let Balance { take, give } = balance(member.no, members, &shards);
                let taken = take.into_iter().map(|shard| (shard, member.no));
                for (moved, to) in taken.chain(give) {
                    shards.iter_mut().find(|shard| shard.shard == moved).unwrap().owner = Some(to);
                }
            }
        }
        assert!(shards.iter().all(|shard| shard.owner.is_some()), "{shards:?}");
        members.iter().map(|member| shards.iter().filter(|shard| shard.owner == Some(member.no)).count()).collect()
    }

    #[test]
    fn one_node_takes_all_and_a_second_gets_half_from_it() {
        assert_eq!(settled(&[member(1)], shards(&[None; 5])), [5]);
        assert_eq!(settled(&[member(1), member(2)], shards(&[Some(1); 5])), [3, 2]);
    }

    #[test]
    fn shards_of_a_dead_node_are_shared_by_those_that_are_left() {
        let owners = [Some(1), Some(1), None, None, Some(3), Some(3)];
        assert_eq!(settled(&[member(1), member(3)], shards(&owners)), [3, 3]);
    }

    #[test]
    fn nothing_moves_once_each_has_its_share() {
        let (members, shards) = ([member(1), member(2)], shards(&[Some(1), Some(1), Some(2)]));
        for member in &members {
            assert_eq!(balance(member.no, &members, &shards), Balance::default());
        }
    }

    #[test]
    fn a_node_takes_no_shard_of_a_queue_that_it_does_not_serve() {
        let other = Member { no: NodeNo(2), queues: vec!["other".into()] };
        assert_eq!(balance(NodeNo(2), &[member(1), other], &shards(&[None; 3])), Balance::default());
    }

    #[test]
    fn shares_always_come_out_even() {
        for count in 1..20 {
            for nodes in 1..5 {
                let members: Vec<Member> = (1..=nodes).map(member).collect();
                for pattern in 0..40_u64 {
                    let owner = |shard: u64| match (shard * 7 + pattern) % (nodes as u64 + 1) {
                        0 => None,
                        node => Some(node as i64),
                    };
                    let owners: Vec<Option<i64>> = (0..count).map(owner).collect();
                    let counts = settled(&members, shards(&owners));
                    assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
                }
            }
        }
    }
}
