//! Which node owns a run, and what it loses with its lease.

use super::*;

pub fn a_turn_is_refused_where_another_node_owns_the_run(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    for run in runs {
        let (owner, other) = if a.owns(run) { (&a, &b) } else { (&b, &a) };
        let epoch = Epoch::default();
        let of_the_owner = [
            as_write(plain_turn(run, 0)),
            Write::Settle { run, epoch, turn: 0, messages: Vec::new(), tasks: Vec::new() },
            Write::SetStuck { run, epoch, stuck: None },
        ];
        for refused_write in of_the_owner {
            assert_eq!(refused(write(&*other.store, refused_write)), Refused::NotOwner);
        }
        assert_eq!(records(&*other.store, run), []);
        commit(&*owner.store, plain_turn(run, 0)).unwrap();
    }
}

pub fn a_run_has_one_owner_at_most_while_nodes_come_and_go(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    let c = TestNode::join(cluster, "c", "main");
    settle(cluster, &[&a, &b, &c], &runs);
    b.store.close().unwrap();
    assert!(!runs.iter().any(|run| b.owns(*run)), "a node that has left owns nothing");
    settle(cluster, &[&a, &c], &runs);
}

pub fn a_node_that_joins_gets_shards_from_their_owners(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    assert!(runs.iter().all(|run| a.owns(*run)), "the first node owns everything");
    let b = TestNode::join(cluster, "b", "main");
    let other = TestNode::join(cluster, "c", "other");
    settle(cluster, &[&a, &b], &runs);
    until(cluster, "each has half of the shards", || {
        let nodes = a.shared().nodes().unwrap();
        let shards = |name: &str| nodes.iter().find(|node| node.name == *name).map_or(0, |node| node.shards);
        shards("a") == shards("b") && shards("a") > 0
    });
    assert!(!runs.iter().any(|run| other.owns(*run)), "a node gets no shard of a queue that it does not serve");
    assert_eq!((a.losses_of_all(), b.losses_of_all()), (0, 0), "no node was taken for dead");
}

/// The lease of the node that leaves would last on.
pub fn a_node_that_leaves_hands_over_at_once(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    let run = runs[0];
    commit(&*a.store, TurnWrite { tasks: vec![task()], ..plain_turn(run, 0) }).unwrap();
    a.store.close().unwrap();
    let b = TestNode::join(cluster, "b", "main");
    assert!(runs.iter().all(|run| b.owns(*run)));
    let tasks = b.shared().claim(&[("main".into(), 10)]).unwrap();
    assert_eq!(tasks.iter().map(|task| task.run).collect::<Vec<_>>(), [run]);
    commit(&*b.store, plain_turn(run, 1)).unwrap();
}

pub fn a_node_that_was_taken_for_dead_commits_no_turn_and_joins_again(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    let run = one_of(&a, &runs);
    commit(&*a.store, plain_turn(run, 0)).unwrap();
    cluster.silence("a");
    until(cluster, "the other has taken its runs over", || runs.iter().all(|run| b.owns(*run)));
    let late = a.submit(as_write(plain_turn(run, 1)));
    cluster.resume("a");
    assert_eq!(refused(late.recv().expect("every write is answered")), Refused::NotOwner);
    assert_eq!(records(&*b.store, run).len(), 1);
    // Any node may send a message.
    let message = NewMessage { key: "signal:1".into(), sent: at(2), job: vec![7] };
    write(&*a.store, Write::Send { run, message, ended: None }).unwrap();
    until(cluster, "it learns that it has lost everything", || a.losses_of_all() == 1);
    settle(cluster, &[&a, &b], &runs);
    let owner = if a.owns(run) { &a } else { &b };
    commit(&*owner.store, plain_turn(run, 1)).unwrap();
}

pub fn a_dead_node_loses_its_runs_and_its_tasks_to_the_others(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    let run = one_of(&a, &runs);
    let tasks = commit(&*a.store, TurnWrite { tasks: vec![task(), task()], ..plain_turn(run, 0) }).unwrap().tasks;
    let claimed = || b.shared().claim(&[("main".into(), 10)]).unwrap().iter().map(|task| task.no).collect::<Vec<_>>();
    assert_eq!(claimed(), [], "a live node works at its tasks itself");
    cluster.silence("a");
    until(cluster, "the other has taken its runs over", || runs.iter().all(|run| b.owns(*run)));
    let mut found = claimed();
    found.sort();
    assert_eq!(found, tasks);
    assert_eq!(claimed(), [], "a task is claimed once");
    commit(&*b.store, TurnWrite { ended_tasks: tasks, ..plain_turn(run, 1) }).unwrap();
    assert_eq!(b.losses_of_all(), 0);
}

/// The database was away for longer than a lease: nodes that then take each other for dead, in turns, never come to work.
pub fn nodes_that_were_all_away_keep_their_shards_and_settle(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    cluster.silence("a");
    cluster.silence("b");
    cluster.pass_lease();
    cluster.resume("a");
    cluster.resume("b");
    cluster.pass();
    settle(cluster, &[&a, &b], &runs);
    cluster.pass();
    let before = (a.gains(), b.gains());
    for _ in 0..8 {
        cluster.pass();
    }
    assert_eq!((a.gains(), b.gains()), before, "no shard moves any more");
    for run in runs {
        let owner = if a.owns(run) { &a } else { &b };
        commit(&*owner.store, plain_turn(run, 0)).unwrap();
    }
}

pub fn due_timers_are_returned_to_the_owner_of_their_run_alone(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    for run in &runs {
        let timers = vec![(at(5), TimerKind::Sleep(Seq(1)))];
        commit(&*a.store, TurnWrite { timers, ..plain_turn(*run, 0) }).unwrap();
    }
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    let other = TestNode::join(cluster, "c", "other");
    for node in [&a, &b] {
        let due: Vec<RunNo> = node.store.due(at(5), 100).unwrap().iter().map(|timer| timer.run).collect();
        let owned: Vec<RunNo> = runs.iter().copied().filter(|run| node.owns(*run)).collect();
        assert_eq!((due, node.store.next_due().unwrap()), (owned, Some(at(5))));
    }
    assert_eq!((other.store.due(at(5), 100).unwrap(), other.store.next_due().unwrap()), (Vec::new(), None));
    let timer = TimerRow { due: at(5), run: runs[0], kind: TimerKind::Sleep(Seq(1)) };
    assert_eq!(other.shared().timers_of(runs[0]).unwrap(), [timer], "any node can describe a run");
}

pub fn old_runs_are_removed_by_the_node_that_owns_their_shard(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    for run in &runs {
        let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
        write(&*a.store, Write::Close { run: *run, status: Status::Terminated, at: at(9), failure }).unwrap();
    }
    assert_eq!(a.store.closed_before(at(10), 100).unwrap(), runs);
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    cluster.pass();
    for node in [&a, &b] {
        let owned: Vec<RunNo> = runs.iter().copied().filter(|run| node.owns(*run)).collect();
        assert_eq!(node.store.closed_before(at(10), 100).unwrap(), owned);
    }
    let run = one_of(&a, &runs);
    write(&*a.store, Write::Expire { runs: vec![run], before: at(10) }).unwrap();
    assert!(a.store.has_remains().unwrap() && !b.store.has_remains().unwrap());
    while write(&*a.store, Write::Sweep { most: 100 }).unwrap() == (Written::Swept { more: true }) {}
    assert!(!a.store.has_remains().unwrap());
}
