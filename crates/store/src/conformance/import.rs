//! Runs that come from another store.

use dacapo_core::AttributeValue;

use super::delete::{closed, sweep};
use super::*;
use crate::{MessageRow, Shard};

/// Imports a run of another store that was started at this second.
fn import(store: &dyn Store, like: &RunRow, run_id: &'static str, started: u64) {
    let (run_id, started) = (Name::from(run_id), at(started));
    let run = RunRow { first_run_id: run_id.clone(), run_id, started, turns: 0, ..like.clone() };
    let import = ImportWrite { run, turns: Vec::new(), belongings: Belongings::default() };
    write(store, Write::Import(Box::new(import))).unwrap();
}

fn last(store: &dyn Store) -> String {
    store.find("order-1", None).unwrap().unwrap().run_id.to_string()
}

fn all(store: &dyn Store) -> Vec<String> {
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = store.oldest(&Filter::default(), after, 2).unwrap();
        let Some(end) = page.last() else { return found };
        after = Some(end.no);
        found.extend(page.iter().map(|row| row.run_id.to_string()));
    }
}

/// Regression: runs were imported newest first, and the store took the oldest for the last.
pub fn runs_of_another_store_stand_in_the_order_of_their_starts(store: &dyn Store) {
    let local = closed(store, "order-1", "local", 1, at(9));
    let row = store.run(local).unwrap().unwrap();
    write(store, Write::Delete { run: local }).unwrap();
    while sweep(store, 100) {}
    for (run_id, started) in [("at-40", 40), ("at-20", 20), ("at-30", 30), ("at-10", 10), ("also-at-10", 10)] {
        import(store, &row, run_id, started);
        assert_eq!(last(store), "at-40", "{run_id}");
    }
    assert_eq!(all(store), ["at-10", "also-at-10", "at-20", "at-30", "at-40"]);
    let newest = store.list(&Filter::default(), None, 9).unwrap();
    assert_eq!(newest.iter().map(|row| row.run_id.to_string()).rev().collect::<Vec<_>>(), all(store));
    import(store, &row, "at-50", 50);
    assert_eq!(last(store), "at-50");
    let local = start(store, NewRun { started: at(60), ..new_run("order-1", "at-60") }).unwrap().run;
    assert_eq!(last(store), "at-60");
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run: local, status: Status::Terminated, at: at(61), failure }).unwrap();
    import(store, &row, "at-55", 55);
    assert_eq!(last(store), "at-60", "a newer one of this store is not hidden");
}

/// One attribute of every kind, in the order of their names.
fn attributes() -> Vec<(Name, AttributeValue)> {
    let keywords = vec!["b".to_owned(), "a".to_owned(), "b".to_owned()];
    vec![
        ("colour".into(), "red".into()),
        ("due".into(), at(7).into()),
        ("paid".into(), true.into()),
        ("size".into(), (-3_i64).into()),
        ("tags".into(), keywords.into()),
        ("weight".into(), 0.5.into()),
    ]
}

pub fn messages_attributes_and_turns_of_a_run_go_with_it_to_another_store(store: &dyn Store) {
    let new = NewRun { request: Some("once".into()), attributes: attributes(), ..new_run("order-1", "run-1") };
    let run = start(store, new.clone()).unwrap().run;
    own(store, run, Epoch::default(), FIRST).unwrap();
    let message = NewMessage { key: "update:u".into(), sent: at(3), job: vec![5] };
    write(store, Write::Send { run, message, ended: None }).unwrap();
    let taken = store.unseen(run).unwrap().iter().map(|message| message.no).collect();
    let outcomes = vec![("update:u".into(), vec![6])];
    commit(store, TurnWrite { taken, outcomes, close: closing(Status::Completed), ..turn(run, 0) }).unwrap();
    let belongings = store.belongings(run).unwrap();
    assert_eq!(belongings.request, new.request);
    assert_eq!(belongings.attributes, new.attributes);
    let keys: Vec<_> =
        belongings.messages.iter().map(|message| (message.key.as_str(), message.outcome.clone())).collect();
    assert_eq!(keys, [("start", None), ("update:u", Some(vec![6]))]);

    let turns: Vec<_> = records(store, run).into_iter().map(|(_, record)| record).collect();
    let row = store.run(run).unwrap().unwrap();
    write(store, Write::Delete { run }).unwrap();
    while sweep(store, 100) {}
    let import = ImportWrite { run: row.clone(), turns: turns.clone(), belongings: belongings.clone() };
    write(store, Write::Import(Box::new(import.clone()))).unwrap();
    let there = store.find("order-1", None).unwrap().unwrap().no;
    let found = store.belongings(there).unwrap();
    let elsewhere = |message: &MessageRow| MessageRow { no: MessageNo(0), run: RunNo(0), ..message.clone() };
    assert_eq!((&found.request, &found.attributes), (&belongings.request, &belongings.attributes));
    let (found, sent): (Vec<_>, Vec<_>) =
        found.messages.iter().zip(&belongings.messages).map(|(a, b)| (elsewhere(a), elsewhere(b))).unzip();
    assert_eq!((found.len(), found), (2, sent));
    let again = start(store, new.clone()).unwrap();
    assert_eq!((again.fresh, again.run), (false, there), "the same request is the same start");

    // A request that belongs to another run of this store stays with that run.
    let run = RunRow { run_id: "run-9".into(), ..row };
    write(store, Write::Import(Box::new(ImportWrite { run, ..import }))).unwrap();
    let other = store.find("order-1", Some("run-9")).unwrap().unwrap().no;
    assert_eq!(store.belongings(other).unwrap().request, None);
    assert_eq!(start(store, new).unwrap().run, there);
}

/// A store that one process serves has one shard, number 0, and the newest run of a workflow id has the highest number.
pub fn number_of_a_run_leaves_room_for_its_shard(store: &dyn Store) {
    let local = closed(store, "order-1", "local", 1, at(9));
    let row = store.run(local).unwrap().unwrap();
    for (run_id, started) in [("at-10", 10), ("at-20", 20), ("at-15", 15), ("also-at-15", 15)] {
        import(store, &row, run_id, started);
    }
    start(store, NewRun { started: at(60), ..new_run("order-1", "open") }).unwrap();
    let numbers = store.numbers(None, 9).unwrap();
    assert_eq!((numbers.len(), last(store).as_str()), (6, "open"));
    assert!(numbers.is_sorted_by(|newer, older| newer > older && newer.sequence() > older.sequence()), "{numbers:?}");
    let is_shared = store.shared().is_some();
    assert!(is_shared || numbers.iter().all(|no| no.shard() == Shard(0)), "{numbers:?}");
}

/// Other values for these attributes, most of another kind; none removes one.
fn changes() -> Vec<(Name, Option<AttributeValue>)> {
    let tags = |tags: &[&str]| Some(tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>().into());
    vec![
        ("colour".into(), Some(7_i64.into())),
        ("due".into(), None),
        ("paid".into(), None),
        ("size".into(), tags(&["x", "y"])),
        ("tags".into(), tags(&["c"])),
        ("weight".into(), Some((-0.0).into())),
    ]
}

pub fn attribute_of_any_kind_is_set_replaced_and_removed(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let mut number = 0;
    let mut set = |changes: Vec<(Name, Option<AttributeValue>)>| {
        commit(store, TurnWrite { attributes: changes, ..turn(run, number) }).unwrap();
        number += 1;
        store.attributes(run).unwrap()
    };
    assert_eq!(set(attributes().into_iter().map(|(name, value)| (name, Some(value))).collect()), attributes());
    let changed: Vec<_> = changes().into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    assert_eq!(set(changes()), changed);
    let gone = ["colour", "size", "tags", "weight", "never"].map(|name| (Name::from(name), None));
    assert_eq!(set(gone.into()), []);
}
