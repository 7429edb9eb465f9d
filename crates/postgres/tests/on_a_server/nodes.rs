//! Several nodes on a real server: shards move, dead nodes commit nothing, and what was cut off is committed once.

use std::sync::mpsc;
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_postgres::PostgresStore;
use dacapo_store::{
    Filter, NewMessage, NewRun, Notice, ReadRuns, Recipient, Refused, RunNo, Shards, SharedStore, StoreError, Write,
    Writes, Written,
};

use crate::kit::{
    PACE, TestNode, attempt, make_tasks, new, node, start, started, submit, submit_on_a_thread, task, turn, turns,
    two_nodes, until, write,
};
use crate::schema::Schema;
use dacapo_test_postgres::{Proxy, Server, schema_url};

#[test]
fn nodes_share_the_shards_and_a_node_that_leaves_gives_them_back_at_once() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(PACE), &schema.with(PACE)]);
    b.store.close().unwrap();
    until("the other has all", || a.shards() == 16);
}

#[test]
fn shards_of_a_node_that_died_are_taken_over() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(PACE), &schema.with(PACE)]);
    drop(b);
    until("the other has all", || a.shards() == 16);
    assert_eq!(a.seen.lost_all(), 0);
}

#[test]
fn a_node_that_comes_back_under_its_name_has_its_shards_at_once() {
    let schema = Schema::new();
    let url = schema.with("&lease=60s&renewal=10s&node=first");
    let first = node(&url);
    let run = started(&first.store, 1);
    drop(first);
    let again = node(&url);
    assert!(again.store.owns(run), "the lease of the process before runs for a minute yet");
    write(&again.store, turn(run, 0)).unwrap();
}

#[test]
fn a_process_whose_name_another_takes_writes_nothing_more() {
    let schema = Schema::new();
    let url = schema.with("&lease=60s&renewal=10s&node=same");
    let first = node(&url);
    let run = started(&first.store, 1);
    let second = node(&url);
    let error = write(&first.store, turn(run, 0)).unwrap_err();
    assert!(error.to_string().contains("another process has joined under the name of this node"), "{error}");
    write(&second.store, turn(run, 0)).unwrap();
    let error = write(&first.store, start(new(2))).unwrap_err();
    assert!(error.to_string().contains("another process has joined"), "{error}");
}

#[test]
fn a_node_that_was_taken_for_dead_commits_no_turn_and_joins_again() {
    let schema = Schema::new();
    let a = node(&schema.with("&lease=60s&renewal=20s"));
    let run = started(&a.store, 1);
    write(&a.store, turn(run, 0)).unwrap();
    schema.execute("UPDATE nodes SET alive = false; UPDATE shards SET owner = NULL");
    match write(&a.store, turn(run, 1)) {
        Err(StoreError::Refused(Refused::NotOwner)) => {}
        other => panic!("a turn of a dead node was answered with {other:?}"),
    }
    // A message may come from any node.
    let message = NewMessage { key: "signal:1".into(), sent: Timestamp::from_millis(3), job: vec![7] };
    write(&a.store, Write::Send { run, message, ended: None }).unwrap();
    assert_eq!(turns(&a.store, run), 1);
    until("it learns that it has lost everything", || a.seen.lost_all() == 1);
    until("it owns the shards again", || a.store.owns(run));
    write(&a.store, turn(run, 1)).unwrap();
}

#[test]
fn a_turn_of_a_run_that_another_node_owns_is_refused() {
    let schema = Schema::new();
    let a = node(&schema.with(PACE));
    let runs: Vec<RunNo> = (0..16).map(|number| started(&a.store, number)).collect();
    let b = node(&schema.with(PACE));
    until("each has half of the shards", || a.shards() == 8 && b.shards() == 8);
    for run in runs {
        let (owner, other) = if a.store.owns(run) { (&a, &b) } else { (&b, &a) };
        assert!(matches!(write(&other.store, turn(run, 0)), Err(StoreError::Refused(Refused::NotOwner))));
        write(&owner.store, turn(run, 0)).unwrap();
    }
}

#[test]
fn notices_and_calls_reach_other_nodes() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(PACE), &schema.named("b", PACE)]);
    until("they know each other", || a.store.nodes().unwrap().len() == 2);
    let to = SharedStore::node(&*b.store);
    a.store.notify(Recipient::Node(to), Notice::Stored(RunNo(77)));
    until("the notice arrives", || b.seen.notices.lock().unwrap().contains(&Notice::Stored(RunNo(77))));
    let (sender, answer) = mpsc::channel();
    a.store.call(Recipient::Node(to), b"abc".to_vec(), Box::new(move |answer| drop(sender.send(answer))));
    assert_eq!(answer.recv_timeout(Duration::from_secs(60)).expect("a call is answered").unwrap(), b"cba");
    drop(b);
    until("no thread of it is left to answer", || !schema.is_connected("b"));
    let (sender, answer) = mpsc::channel();
    a.store.call(Recipient::Node(to), b"abc".to_vec(), Box::new(move |answer| drop(sender.send(answer))));
    let error = answer.recv_timeout(Duration::from_secs(60)).expect("a call to a dead node ends").unwrap_err();
    assert!(error.to_string().contains("went away before it answered"), "{error}");
}

/// However often the connection is cut, each write that is answered is there once. The answers of those whose connection
/// was cut in the middle of a commit come from the receipt.
#[test]
fn writes_over_a_connection_that_is_cut_again_and_again_are_committed_once() {
    let schema = Schema::new();
    // The node itself is not taken for dead meanwhile.
    let proxy = Proxy::to(&schema.address());
    let a = node(&proxy.url(&schema.with("&lease=60s&renewal=20s&sslmode=disable")));
    let cutting = proxy.cuts_every(Duration::from_millis(50)..Duration::from_millis(250));
    let mut runs = Vec::new();
    while cutting.cuts() < 20 {
        let run = started(&a.store, runs.len());
        for at in 0..3 {
            write(&a.store, turn(run, at)).unwrap();
        }
        runs.push(run);
    }
    cutting.stop();
    assert_eq!(a.store.count(&Filter::default(), u64::MAX).unwrap(), runs.len() as u64);
    for run in runs {
        assert_eq!(turns(&a.store, run), 3);
    }
}

#[test]
fn two_nodes_that_start_one_workflow_id_start_one_run() {
    let schema = Schema::new();
    let (a, b) = (node(&schema.with(PACE)), node(&schema.with(PACE)));
    for number in 0..40 {
        let (one, other) = (
            submit(&a.store, start(NewRun { run_id: format!("a-{number}").into(), ..new(number) })),
            submit(&b.store, start(NewRun { run_id: format!("b-{number}").into(), ..new(number) })),
        );
        let answers = [one.get(), other.get()];
        let made = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(made, 1, "{answers:?}");
    }
}

#[test]
fn many_processes_may_make_the_tables_at_once() {
    let schema = Schema::new();
    let url = schema.with(PACE);
    let openings: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            std::thread::spawn(move || PostgresStore::open(&url).map(drop))
        })
        .collect();
    for opening in openings {
        opening.join().unwrap().unwrap();
    }
}

#[test]
fn a_schema_of_another_program_is_refused() {
    let schema = Schema::new();
    schema.execute_raw("CREATE SCHEMA {schema}; CREATE TABLE {schema}.theirs (x integer)");
    let error = PostgresStore::open(schema.url()).err().expect("it belongs to another program");
    assert!(error.to_string().contains("a table of another program (theirs)"), "{error}");
}

/// A commit is under way when the node's connection and its lease are lost: the answer of the write is in the receipt.
#[test]
fn a_write_whose_answer_is_lost_is_committed_once_though_the_node_is_taken_for_dead_meanwhile() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let a = node(&proxy.url(&schema.with("&lease=60s&renewal=20s&sslmode=disable")));
    let reader = PostgresStore::open_read_only(schema.url()).unwrap();
    proxy.lose_commits(true);
    let answer = submit_on_a_thread(&a.store, start(new(1)));
    until("the start is committed", || reader.count(&Filter::default(), u64::MAX).unwrap() == 1);
    proxy.lose_commits(false);
    schema.execute("UPDATE nodes SET alive = false; UPDATE shards SET owner = NULL");
    proxy.cut();
    match answer.get() {
        Ok(Written::Started { run, .. }) => assert!(run.fresh, "it has started the run itself"),
        other => panic!("a start was answered with {other:?}"),
    }
    assert_eq!(reader.count(&Filter::default(), u64::MAX).unwrap(), 1);
}

#[test]
fn a_node_that_joins_again_is_the_same_process() {
    let schema = Schema::new();
    let a = node(&schema.with(PACE));
    let run = started(&a.store, 1);
    schema.execute("CREATE TABLE before AS SELECT no, process FROM nodes");
    schema.execute("UPDATE nodes SET alive = false; UPDATE shards SET owner = NULL");
    until("it has noticed", || a.seen.lost_all() == 1);
    until("it owns the shards again", || a.store.owns(run));
    // If the answer to this is lost, it asks again, and must not take itself for another.
    schema.execute(
        "DO $$ BEGIN ASSERT (SELECT nodes.process = before.process FROM nodes JOIN before USING (no)); END $$",
    );
}

#[test]
fn a_node_drops_the_shards_that_another_owns() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(PACE), &schema.with(PACE)]);
    let (of_a, of_b) = (started(&a.store, 1), started(&b.store, 2));
    let (one, other) = (SharedStore::node(&*a.store).0, SharedStore::node(&*b.store).0);
    schema.execute(&format!("UPDATE shards SET owner = {one} + {other} - owner"));
    until("they have changed their shards", || b.store.owns(of_a) && a.store.owns(of_b));
    until("none is owned twice", || !a.store.owns(of_a) && !b.store.owns(of_b));
}

#[test]
fn a_server_that_says_nothing_more_is_called_over_another_connection() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let a = node(&proxy.url(&schema.with("&lease=1s&renewal=200ms&slow_poll=500ms&sslmode=disable")));
    let run = started(&a.store, 1);
    proxy.fall_silent();
    // The others may have taken it for dead meanwhile: it is there again, and owns the run.
    until("it commits again", || write(&a.store, turn(run, 0)).is_ok());
    assert_eq!(turns(&a.store, run), 1);
}

#[test]
fn nodes_outlive_an_outage_that_is_longer_than_their_leases() {
    let mut server = Server::start(env!("CARGO_TARGET_TMPDIR").as_ref(), &[]).unwrap();
    let url = format!("{}&lease=2s&renewal=500ms&slow_poll=1s", schema_url(&server.url()));
    let nodes: Vec<TestNode> = (0..4).map(|_| node(&url)).collect();
    until("each has a share", || nodes.iter().all(|node| node.shards() == 4));
    server.kill().unwrap();
    // sleep: the outage is longer than a lease, which a real server counts.
    std::thread::sleep(Duration::from_secs(4));
    server.restart().unwrap();
    for (number, node) in nodes.iter().enumerate() {
        started(&node.store, number);
    }
    // sleep: what must not happen would happen within a lease.
    std::thread::sleep(Duration::from_secs(3));
    let lost: usize = nodes.iter().map(|node| node.seen.lost_all()).sum();
    assert_eq!(lost, 0, "no node was taken for dead");
    nodes.into_iter().for_each(|node| node.store.close().unwrap());
}

#[test]
fn an_attempt_of_a_node_that_does_not_have_the_task_is_refused() {
    let schema = Schema::new();
    let [a, b] = two_nodes([&schema.with(PACE), &schema.with(PACE)]);
    let run = started(&a.store, 1);
    let task = make_tasks(&a.store, run, 0, vec![task(1, false)])[0];
    match write(&b.store, attempt(task, 2)) {
        Err(StoreError::Refused(Refused::NoSuchTask)) => {}
        other => panic!("an attempt of another node was answered with {other:?}"),
    }
    write(&a.store, attempt(task, 2)).unwrap();
    let held = |node: &TestNode| node.store.look(&Shards::default(), &[]).unwrap().tasks;
    assert_eq!((held(&a), held(&b)), (vec![task], Vec::new()));
}

#[test]
fn statements_that_an_operator_cancels_are_made_again() {
    let schema = Schema::new();
    let name = format!("cancelled_{}", std::process::id());
    let a = node(&schema.with(&format!("&lease=60s&renewal=10s&application_name={name}")));
    // Cancels the statement that waits for the lock, as soon as there is one.
    let cancels = format!(
        "DO $$ BEGIN FOR look IN 1..6000 LOOP \
         PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}' AND wait_event_type = 'Lock'; \
         IF FOUND THEN RETURN; END IF; \
         PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01); \
         END LOOP; RAISE EXCEPTION 'no statement waits'; END $$"
    );
    for number in 0..5 {
        let held = schema.hold("LOCK TABLE runs IN EXCLUSIVE MODE");
        let answer = submit_on_a_thread(&a.store, start(new(number)));
        schema.execute(&cancels);
        drop(held);
        let answer = answer.get();
        assert!(answer.is_ok(), "{answer:?}");
    }
    assert_eq!(a.store.count(&Filter::default(), u64::MAX).unwrap(), 5);
}

#[test]
fn calls_over_connections_that_are_cut_again_and_again_are_answered() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let pace = "&lease=60s&renewal=1s&slow_poll=500ms&sslmode=disable";
    let (a, b) = (node(&proxy.url(&schema.with(pace))), node(&proxy.url(&schema.with(pace))));
    until("each has half of the shards", || a.shards() == 8 && b.shards() == 8);
    let to = SharedStore::node(&*b.store);
    // Now and then there is time for a whole call, also on a busy machine.
    let cutting = proxy.cuts_every(Duration::from_millis(50)..Duration::from_millis(900));
    for number in 0_u8..12 {
        let (sender, answer) = mpsc::channel();
        a.store.call(Recipient::Node(to), vec![number, 1], Box::new(move |answer| drop(sender.send(answer))));
        let answer = answer.recv_timeout(Duration::from_secs(60)).expect("a call is answered, whatever is cut");
        assert_eq!(answer.expect("no node is gone"), [1, number]);
    }
    cutting.stop();
}
