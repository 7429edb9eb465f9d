//! Who is a node, and whose the shards are: what one writes of itself and of the others holds for it as it is at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dacapo_postgres::PostgresStore;
use dacapo_store::{Filter, ReadRuns, Refused, RunNo, Shard, SharedStore, TaskNo, Writes, Written};
use dacapo_test_postgres::Proxy;

use crate::kit::{
    LONG, PACE, QUIET, TestNode, call, claimed, make_tasks, new, node, node_of_task, opened, refused, start, started,
    submit_on_a_thread, task, turn, turns, two_nodes, until, write,
};
use crate::meters::Meters;
use crate::schema::Schema;

/// A node that no process is behind.
const OTHER: &str = "INSERT INTO nodes (name, build, queues, process, incarnation, last_group, alive, lease_until) \
     VALUES ('other', 'test', '{main}', 1, 1, 0, true, clock_timestamp() + interval '1 hour')";
const SHARDS_OF_OTHER: &str =
    "SELECT count(*) FROM shards JOIN nodes ON nodes.no = shards.owner WHERE nodes.name = 'other'";

fn is_alive(schema: &Schema, name: &str) -> bool {
    schema.number(&format!("SELECT count(*) FROM nodes WHERE name = '{name}' AND alive")) == 1
}

fn lease_of(node: &TestNode, name: &str) -> Option<Duration> {
    node.store.nodes().unwrap().iter().find(|row| row.name == *name).map(|row| row.lease)
}

/// A commit renews the lease.
#[test]
fn a_node_whose_lease_ends_while_it_commits_is_not_dead() {
    let schema = Schema::new();
    let a = node(&schema.with("&lease=1s&renewal=200ms&node=a"));
    let b = node(&schema.named("b", LONG));
    let commits = schema.hold("UPDATE nodes SET lease_until = clock_timestamp() + interval '1 hour' WHERE name = 'a'");
    drop(a);
    until("the other takes it for dead, and waits for its commit", || schema.is_waiting("b"));
    commits.commit();
    until("the other looks again", || lease_of(&b, "a").is_none_or(|lease| lease.as_secs() > 60));
    assert!(is_alive(&schema, "a"));
}

#[test]
fn a_node_that_two_find_dead_at_once_dies_once() {
    let schema = Schema::new();
    let a = node(&schema.with("&lease=1s&renewal=200ms&node=a"));
    let meters = Meters::default();
    let others = ["b", "c"].map(|name| metrics::with_local_recorder(&meters, || node(&schema.named(name, LONG))));
    let held = schema.hold("SELECT no FROM nodes WHERE name = 'a' FOR UPDATE");
    drop(a);
    until("both take it for dead", || schema.is_waiting("b") && schema.is_waiting("c"));
    drop(held);
    until("it is gone", || others.iter().all(|other| lease_of(other, "a").is_none()));
    assert_eq!(meters.get("dead_nodes_total"), 1);
}

#[test]
fn a_shard_that_another_took_meanwhile_is_not_taken() {
    let schema = Schema::new();
    drop(PostgresStore::open(schema.url()).expect("the tables are made"));
    schema.execute(&format!(
        "{OTHER}; INSERT INTO shards (no, queue) SELECT no, 'main' FROM generate_series(0, 15) AS no"
    ));
    let takes = schema.hold("UPDATE shards SET owner = nodes.no FROM nodes WHERE nodes.name = 'other'");
    let url = schema.named("b", LONG);
    let joining = thread::spawn(move || node(&url));
    until("the node takes its share", || schema.is_waiting("b"));
    takes.commit();
    let _b = joining.join().expect("it joins");
    assert_eq!(schema.number(SHARDS_OF_OTHER), 16);
}

#[test]
fn a_shard_whose_owner_is_gone_is_taken() {
    let schema = Schema::new();
    let a = node(&schema.with(LONG));
    until("it has all shards", || a.shards() == 16);
    schema.execute("UPDATE shards SET owner = 4711");
    until("it has all shards again", || a.shards() == 16);
}

/// The node is taken for dead, or another process takes its name, between its look at the shards and its hand on them.
#[test]
fn a_node_that_is_no_more_takes_no_shard() {
    for ends in ["alive = false", "incarnation = incarnation + 1, process = process + 1"] {
        let schema = Schema::new();
        let proxy = Proxy::to(&schema.address());
        let stopped = proxy.stop_at("UPDATE shards SET owner = $1");
        let a = opened(&proxy.url(&schema.with(&format!("{QUIET}&sslmode=disable"))));
        let (store, seen) = (a.store.clone(), a.seen.clone());
        let joining = thread::spawn(move || store.join(&["main".into()], &"test".into(), seen));
        stopped.until_reached();
        schema.execute(&format!("UPDATE nodes SET {ends}"));
        // When it is connected for notifications it looks at the nodes again.
        let _stopped = proxy.stop_at("LISTEN ");
        joining.join().unwrap().expect("it joins");
        assert_eq!(a.seen.gained(), 0, "{ends}");
        assert_eq!(schema.number("SELECT count(*) FROM shards WHERE owner IS NOT NULL"), 0, "{ends}");
    }
}

#[test]
fn a_node_gives_no_shard_that_it_has_lost() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let a = node(&proxy.url(&schema.with(&format!("{LONG}&node=a&sslmode=disable"))));
    until("it has all shards", || a.shards() == 16);
    let stopped = proxy.stop_at("UPDATE shards SET owner = given.owner");
    let _b = node(&schema.with(LONG));
    stopped.until_reached();
    schema.execute(&format!(
        "{OTHER}; UPDATE nodes SET alive = false WHERE name = 'a'; \
         UPDATE shards SET owner = nodes.no FROM nodes WHERE nodes.name = 'other'"
    ));
    drop(stopped);
    until("it learns that it has lost everything", || a.seen.lost_all() == 1);
    assert_eq!(schema.number(SHARDS_OF_OTHER), 16);
}

/// The node sees its shards, and has another life before it begins with them: the others took it for dead, and another has the shards.
#[test]
fn a_node_begins_with_no_shard_that_it_saw_in_an_earlier_life() {
    let schema = Schema::new();
    let a = opened(&schema.with(QUIET));
    let (store, url) = (Arc::downgrade(&a.store), schema.clone());
    *a.seen.losing.lock().unwrap() = Some(Box::new(move || {
        url.execute(&format!(
            "{OTHER}; UPDATE nodes SET alive = false WHERE name <> 'other'; \
             UPDATE shards SET owner = nodes.no FROM nodes WHERE nodes.name = 'other'"
        ));
        // It learns by a write that it is dead, and joins the others again.
        write(&store.upgrade().expect("the node is there"), start(new(1))).unwrap();
    }));
    a.store.join(&["main".into()], &"test".into(), a.seen.clone()).expect("the node joins");
    let shards = |row: &dacapo_store::NodeRow| row.shards;
    until("it sees the others", || a.store.nodes().unwrap().iter().map(shards).collect::<Vec<_>>() == [0, 16]);
    let run = RunNo(schema.number("SELECT no FROM runs"));
    assert!(!a.store.owns(run));
    assert_eq!(a.seen.gained(), 0);
}

#[test]
fn a_node_that_ends_begins_with_no_shard_that_it_saw_before() {
    let schema = Schema::new();
    let a = opened(&schema.with(QUIET));
    let store = Arc::downgrade(&a.store);
    *a.seen.losing.lock().unwrap() = Some(Box::new(move || {
        store.upgrade().expect("the node is there").close().unwrap();
    }));
    a.store.join(&["main".into()], &"test".into(), a.seen.clone()).expect("the node joins");
    assert!((0..16).all(|shard| !a.store.owns(RunNo::new(1, Shard(shard)))), "it has left");
    assert_eq!(a.seen.gained(), 0);
}

/// Its queries would be answered from a run that another node plays.
#[test]
fn a_node_without_a_lease_has_none_confirmed_before_it_has_one_again() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let a = node(&proxy.url(&schema.with(&format!("{PACE}&sslmode=disable"))));
    let b = node(&schema.with(PACE));
    proxy.shut();
    until("the other has taken its shards over", || b.shards() == 16);
    let is_open = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // The longer, the surer it is that a node which does not wait is found out.
            thread::park_timeout(Duration::from_millis(200));
            is_open.store(true, Ordering::SeqCst);
            proxy.open();
        });
        a.store.confirm_lease().unwrap();
        assert!(is_open.load(Ordering::SeqCst), "it had no lease");
    });
}

/// While the node gives shards away it commits no turn of theirs any more, and goes on with some of its tasks.
#[test]
fn a_node_that_gives_shards_away_plays_their_runs_no_more_and_keeps_the_tasks_that_it_goes_on_with() {
    let schema = Schema::new();
    let [a, c] = two_nodes([&schema.with(LONG), &schema.with(LONG)]);
    let runs: Vec<RunNo> = (0..16).map(|number| started(&a.store, number)).collect();
    let of = |run: &RunNo| make_tasks(&a.store, *run, 0, vec![task(1, false), task(2, false), task(3, true)]);
    let tasks: Vec<[TaskNo; 3]> = runs.iter().map(|run| of(run).try_into().expect("it made three")).collect();
    assert_eq!(claimed(&c).len(), 16);
    let (store, all) = (Arc::downgrade(&a.store), runs.iter().copied().zip(tasks.clone()).collect::<Vec<_>>());
    *a.seen.giving.lock().unwrap() = Some(Box::new(move |shards| {
        let store = store.upgrade().expect("the node is there");
        let given = all.iter().filter(|(run, _)| shards.has_run(*run));
        given
            .map(|(run, [_, kept, _])| {
                assert_eq!(refused(write(&store, turn(*run, 1))), Refused::NotOwner);
                *kept
            })
            .collect()
    }));
    let b = node(&schema.with(LONG));
    until("each has its share", || [&a, &b, &c].map(TestNode::shards).iter().all(|shards| *shards >= 5));
    until("shards have moved", || runs.iter().any(|run| b.store.owns(*run)));
    for (run, [first, kept, of_c]) in runs.iter().zip(tasks) {
        let is_given = !a.store.owns(*run);
        let nodes = [first, kept, of_c].map(|task| node_of_task(&a.store, task));
        assert_eq!(nodes, [(!is_given).then(|| a.no()), Some(a.no()), Some(c.no())], "given: {is_given}");
        assert_eq!(turns(&a.store, *run), 1);
    }
    assert!(runs.iter().any(|run| a.store.owns(*run)), "it keeps some shards");
}

#[test]
fn a_node_that_joins_again_gives_up_its_own_tasks_alone() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(&format!("{LONG}&node=a")), &schema.with(LONG)]);
    let run = started(&a.store, 1);
    let tasks = make_tasks(&a.store, run, 0, vec![task(1, false), task(2, true)]);
    assert_eq!(claimed(&b), tasks[1..]);
    schema.execute("UPDATE nodes SET alive = false WHERE name = 'a'");
    until("it has joined again", || a.seen.lost_all() == 1);
    until("its task is free", || node_of_task(&b.store, tasks[0]).is_none());
    assert_eq!(node_of_task(&b.store, tasks[1]), Some(b.no()));
}

#[test]
fn tasks_of_the_process_before_are_free_when_a_node_comes_back_under_its_name() {
    let schema = Schema::new();
    let url = schema.with(&format!("{QUIET}&node=same"));
    let first = node(&url);
    let run = started(&first.store, 1);
    let tasks = make_tasks(&first.store, run, 0, vec![task(1, false), task(2, false)]);
    drop(first);
    assert_eq!(claimed(&node(&url)), tasks);
}

/// The next process of a name.
fn two_of_one_name(pace: &str) -> (Schema, TestNode, TestNode) {
    let schema = Schema::new();
    let url = schema.with(&format!("{pace}&node=same"));
    let first = node(&url);
    let second = node(&url);
    (schema, first, second)
}

#[test]
fn a_process_whose_name_another_took_ends_nothing_of_that() {
    let (schema, first, second) = two_of_one_name(QUIET);
    let run = started(&second.store, 1);
    first.store.stop_serving().unwrap();
    assert_eq!(schema.number("SELECT cardinality(queues)::bigint FROM nodes"), 1);
    first.store.close().unwrap();
    assert!(is_alive(&schema, "same"));
    write(&second.store, turn(run, 0)).unwrap();
    assert_eq!(second.seen.lost_all(), 0);
}

#[test]
fn a_process_whose_name_another_took_keeps_no_lease_alive() {
    let (schema, _first, second) = two_of_one_name(PACE);
    drop(second);
    let third = node(&schema.with(PACE));
    until("the shards of the dead process are taken over", || third.shards() == 16);
}

#[test]
fn a_process_whose_name_another_took_does_not_take_it_back_when_it_connects_again() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let url = schema.with(&format!("{QUIET}&node=same&sslmode=disable"));
    let first = node(&proxy.url(&url));
    let run = started(&first.store, 1);
    let second = node(&url);
    proxy.cut();
    let error = write(&first.store, turn(run, 0)).unwrap_err();
    assert!(error.to_string().contains("another process has joined under the name of this node"), "{error}");
    assert_eq!(turns(&second.store, run), 0);
    write(&second.store, turn(run, 0)).unwrap();
    assert_eq!(second.seen.lost_all(), 0);
}

/// Another node joins meanwhile, which forgets nodes that are gone for long.
#[test]
fn the_receipt_of_a_node_that_was_taken_for_dead_is_kept_for_it() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let a = node(&proxy.url(&schema.with(&format!("{QUIET}&sslmode=disable"))));
    let reader = PostgresStore::open_read_only(schema.url()).unwrap();
    proxy.lose_commits(true);
    let answer = submit_on_a_thread(&a.store, start(new(1)));
    until("the start is committed", || reader.count(&Filter::default(), u64::MAX).unwrap() == 1);
    proxy.lose_commits(false);
    schema.execute("UPDATE nodes SET alive = false, lease_until = clock_timestamp(); UPDATE shards SET owner = NULL");
    let _b = node(&schema.with(QUIET));
    proxy.cut();
    match answer.get() {
        Ok(Written::Started { run, .. }) => assert!(run.fresh, "it has started the run itself"),
        other => panic!("a start was answered with {other:?}"),
    }
}

/// Its row says so to the others, who free what it held.
#[test]
fn a_node_that_was_away_for_days_is_taken_for_dead_as_any_other() {
    let schema = Schema::new();
    let a = node(&schema.named("a", &format!("{QUIET}&node=a")));
    let run = started(&a.store, 1);
    let tasks = make_tasks(&a.store, run, 0, vec![task(1, false)]);
    drop(a);
    until("no thread of it is left to renew its lease", || !schema.is_connected("a"));
    schema.execute("UPDATE nodes SET lease_until = clock_timestamp() - interval '2 days' WHERE name = 'a'");
    let b = node(&schema.with(LONG));
    until("its tasks are free", || claimed(&b) == tasks);
}

/// The server ends the connection while it waits in the middle of the commit, so that nothing is committed. What processes of this name
/// committed before says nothing about that.
#[test]
fn a_write_that_the_server_gave_up_is_made_again() {
    for (change, is_start) in [("INSERT ON runs", true), ("INSERT ON turns", false)] {
        let schema = Schema::new();
        let url = schema.named("a", &format!("{QUIET}&node=same"));
        let first = node(&url);
        let runs: Vec<RunNo> = (0..9).map(|number| started(&first.store, number)).collect();
        drop(first);
        let a = node(&url);
        schema.add_gate(change, "true");
        let shut = schema.shut_gate();
        let write = if is_start { start(new(9)) } else { turn(runs[0], 0) };
        let answer = submit_on_a_thread(&a.store, write);
        until("the write waits at the gate", || schema.is_waiting("a"));
        schema.end_waiting("a");
        drop(shut);
        answer.get().expect("the write is made");
        let made = if is_start { "SELECT count(*) - 9 FROM runs" } else { "SELECT count(*) FROM turns" };
        assert_eq!(schema.number(made), 1, "{change}");
    }
}

#[test]
fn a_call_is_answered_although_another_node_joins_meanwhile() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(PACE), &schema.with(PACE)]);
    b.seen.hold_answers(true);
    let answer = call(&a, &b, b"abc");
    until("the other is called", || b.seen.calls() == 1);
    let _c = node(&schema.with(PACE));
    b.seen.hold_answers(false);
    let answer = answer.recv_timeout(Duration::from_secs(60)).expect("a call is answered");
    assert_eq!(answer.unwrap(), b"cba");
}

/// The process that has begun with it may have carried it out.
#[test]
fn a_call_that_a_process_has_begun_with_is_not_carried_out_by_the_next_of_its_name() {
    let schema = Schema::new();
    let url = schema.named("b", &format!("{PACE}&node=b"));
    let [a, b] = two_nodes([&schema.with(PACE), &url]);
    b.seen.hold_answers(true);
    let lost = call(&a, &b, b"first");
    until("the other is called", || b.seen.calls() == 1);
    drop(b);
    until("no thread of it is left to answer", || !schema.is_connected("b"));
    let b = node(&url);
    let error = lost.recv_timeout(Duration::from_secs(60)).expect("a call of a process that is gone ends");
    assert!(error.unwrap_err().to_string().contains("went away before it answered"));
    let answer = call(&a, &b, b"abc").recv_timeout(Duration::from_secs(60)).expect("a call is answered");
    assert_eq!((answer.unwrap(), b.seen.calls()), (b"cba".to_vec(), 1));
}
