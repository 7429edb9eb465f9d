//! Plain turns, which are checked, written and committed in one round trip.

use dacapo_store::{MessageNo, ReadMessages, Refused, TurnWrite};
use dacapo_test_postgres::Proxy;

use crate::kit::{
    QUIET, as_write, new, node, plain_turn, refused, signal, start, started, submit_on_a_thread, turn, turns, until,
    write,
};
use crate::meters::Meters;
use crate::schema::Schema;

/// All statements of a turn are under way when the first is refused. Each ends by itself: none may change anything then.
#[test]
fn a_turn_whose_transaction_does_not_begin_changes_nothing() {
    let schema = Schema::new();
    let proxy = Proxy::to(&schema.address());
    let a = node(&proxy.url(&schema.with(&format!("{QUIET}&sslmode=disable"))));
    let run = started(&a.store, 1);
    write(&a.store, turn(run, 0)).unwrap();
    let rows = || schema.number("SELECT last_group + (SELECT sum(turns) FROM runs)::bigint FROM nodes");
    let before = rows();
    proxy.fail_to_begin();
    let error = write(&a.store, turn(run, 1)).expect_err("it does not begin");
    assert!(error.to_string().contains("prepared statement"), "{error}");
    assert_eq!((turns(&a.store, run), rows()), (1, before));
    write(&a.store, turn(run, 1)).unwrap();
    assert_eq!(turns(&a.store, run), 2);
}

#[test]
fn a_turn_whose_answer_is_lost_is_answered_by_its_receipt() {
    let schema = Schema::new();
    let (proxy, meters) = (Proxy::to(&schema.address()), Meters::default());
    let url = proxy.url(&schema.with(&format!("{QUIET}&sslmode=disable")));
    let a = metrics::with_local_recorder(&meters, || node(&url));
    let run = started(&a.store, 1);
    write(&a.store, turn(run, 0)).unwrap();
    proxy.lose_commits(true);
    let answer = submit_on_a_thread(&a.store, turn(run, 1));
    until("the turn is committed", || schema.number("SELECT count(*) FROM turns") == 2);
    proxy.lose_commits(false);
    proxy.cut();
    answer.get().expect("the turn was committed");
    assert_eq!((turns(&a.store, run), meters.get("receipts_total")), (2, 1));
}

#[test]
fn a_turn_takes_no_message_of_another_run_and_none_that_is_not_there() {
    let schema = Schema::new();
    let a = node(&schema.with(QUIET));
    let (run, other) = (started(&a.store, 1), started(&a.store, 2));
    let of_other = a.store.unseen(other).unwrap()[0].no;
    for message in [of_other, MessageNo(i64::MAX)] {
        let takes = as_write(TurnWrite { taken: vec![message], ..plain_turn(run, 0) });
        assert_eq!(refused(write(&a.store, takes)), Refused::MessageTaken);
    }
    assert_eq!((turns(&a.store, run), a.store.unseen(other).unwrap().len()), (0, 1));
}

/// They are committed together, and the second of a run builds on the first.
#[test]
fn turns_of_one_group_follow_each_other() {
    let schema = Schema::new();
    let a = node(&schema.named("a", QUIET));
    let runs = [started(&a.store, 1), started(&a.store, 2)];
    let held = schema.hold(&format!("SELECT no FROM runs WHERE no = {} FOR UPDATE", runs[0].0));
    let first = submit_on_a_thread(&a.store, signal(runs[0], 1));
    until("the node is at a group", || schema.is_waiting("a"));
    let turns_of = |run| (0..3).map(move |number| (run, number));
    let answers: Vec<_> = runs
        .into_iter()
        .flat_map(turns_of)
        .map(|(run, number)| crate::kit::submit(&a.store, turn(run, number)))
        .collect();
    drop(held);
    first.get().unwrap();
    answers.iter().for_each(|answer| drop(answer.get().unwrap()));
    assert_eq!(runs.map(|run| turns(&a.store, run)), [3, 3]);
    write(&a.store, start(new(3))).unwrap();
}
