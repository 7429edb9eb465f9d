//! Tasks go from node to node: one that another has, or is about to have, is left to it.

use std::sync::mpsc;
use std::time::Duration;

use dacapo_store::{RunNo, Shards, SharedStore, TaskNo};

use crate::kit::{
    LONG, QUIET, TestNode, claimed, make_tasks, node, node_of_task, run_of_each, started, task, two_nodes,
};
use crate::schema::Schema;

/// Takes all tasks of a run's shard that this node may have, as one that gets the shard does.
fn taken(node: &TestNode, run: RunNo) -> Vec<TaskNo> {
    let shards: Shards = [run.shard()].into_iter().collect();
    node.store.tasks_in(&shards, &["main".into()], 0, 100).unwrap().iter().map(|task| task.no).collect()
}

/// Does something that must not wait.
fn at_once<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let (sender, done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(sender.send(act())));
        done.recv_timeout(Duration::from_secs(60)).expect("it waits for no other")
    })
}

#[test]
fn a_node_that_is_no_more_gets_no_task() {
    for ends in ["alive = false", "incarnation = incarnation + 1, process = process + 1"] {
        let schema = Schema::new();
        let a = node(&schema.with(QUIET));
        let run = started(&a.store, 1);
        let tasks = make_tasks(&a.store, run, 0, vec![task(1, true)]);
        schema.execute(&format!("UPDATE nodes SET {ends}"));
        assert_eq!((claimed(&a), taken(&a, run)), (Vec::new(), Vec::new()), "{ends}");
        assert_eq!(node_of_task(&a.store, tasks[0]), None);
    }
}

/// It is about to be another node's, or to end.
#[test]
fn a_task_that_is_locked_is_passed_over() {
    for (locks, commits) in [
        ("SELECT no FROM tasks ORDER BY no LIMIT 1 FOR UPDATE", false),
        ("UPDATE tasks SET node = 4711 WHERE seq = 1", true),
    ] {
        let schema = Schema::new();
        let a = node(&schema.with(QUIET));
        let run = started(&a.store, 1);
        let tasks = make_tasks(&a.store, run, 0, vec![task(1, true), task(2, true), task(3, true)]);
        let held = schema.hold(locks);
        assert_eq!(at_once(|| claimed(&a)), tasks[1..], "{locks}");
        assert_eq!(at_once(|| taken(&a, run)), tasks[1..], "{locks}");
        match commits {
            true => held.commit(),
            false => drop(held),
        }
        assert_eq!(schema.number("SELECT count(*) FROM tasks WHERE node = 4711") == 1, commits);
    }
}

/// A node took it in the moment in which it was taken for dead.
#[test]
fn a_task_of_a_dead_node_is_free_for_the_next_claim_and_for_the_owner_of_its_run() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(LONG), &schema.with(LONG)]);
    let [run, of_b] = run_of_each(&[&a, &b])[..] else { panic!("there are two") };
    let tasks = make_tasks(&a.store, run, 0, vec![task(1, false)]);
    let of_live = make_tasks(&b.store, of_b, 0, vec![task(1, false)]);
    schema.execute(
        "INSERT INTO nodes (name, build, queues, process, incarnation, last_group, alive, lease_until) \
         VALUES ('dead', 'test', '{main}', 1, 1, 0, false, clock_timestamp()); \
         UPDATE tasks SET node = nodes.no FROM nodes WHERE nodes.name = 'dead' AND tasks.no = (SELECT min(no) FROM tasks)",
    );
    assert_eq!(taken(&a, run), tasks, "the owner gets it at once");
    schema.execute("UPDATE tasks SET node = nodes.no FROM nodes WHERE nodes.name = 'dead' AND tasks.no = (SELECT min(no) FROM tasks)");
    // What another transaction has locked is freed later.
    let held = schema.hold("SELECT no FROM tasks FOR UPDATE");
    assert_eq!(at_once(|| claimed(&a)), []);
    drop(held);
    let claims: Vec<Vec<TaskNo>> = (0..3).map(|_| claimed(&a)).collect();
    assert_eq!(claims, [vec![], tasks, vec![]], "it is freed by one claim, and had by the next");
    assert_eq!(node_of_task(&a.store, of_live[0]), Some(b.no()));
}

#[test]
fn a_node_gives_back_its_own_tasks_alone_and_gets_none_of_them_again() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(LONG), &schema.with(LONG)]);
    let run = started(&a.store, 1);
    let tasks = make_tasks(&a.store, run, 0, vec![task(1, true), task(2, false)]);
    assert_eq!(claimed(&b), tasks[..1]);
    b.store.decline(&tasks).unwrap();
    let nodes = || [tasks[0], tasks[1]].map(|task| node_of_task(&a.store, task));
    assert_eq!(nodes(), [None, Some(a.no())]);
    assert_eq!(claimed(&b), []);
    assert_eq!(claimed(&a), tasks[..1]);
}

#[test]
fn a_node_gets_the_tasks_of_its_own_shards() {
    let schema = Schema::new();
    let a = node(&schema.with(QUIET));
    let (run, other) = (started(&a.store, 1), started(&a.store, 2));
    assert_ne!(run.shard(), other.shard());
    let tasks = make_tasks(&a.store, run, 0, vec![task(1, true)]);
    let of_other = make_tasks(&a.store, other, 0, vec![task(1, true)]);
    assert_eq!((taken(&a, run), taken(&a, other)), (tasks, of_other));
}
