//! Deleting: the run's row is removed at once, its turns and messages in small steps.

use super::*;

/// Makes a closed run with this many turns, and its messages.
pub(super) fn closed(
    store: &dyn Store,
    workflow_id: &'static str,
    run_id: &'static str,
    turns: u64,
    when: Timestamp,
) -> RunNo {
    let started = owned(store, workflow_id, run_id);
    let run = started.run;
    for number in 0..turns {
        let mut taken: Vec<_> = store.unseen(run).unwrap().iter().map(|message| message.no).collect();
        taken.sort();
        let close = if number + 1 == turns { closing(Status::Completed) } else { None };
        commit(store, TurnWrite { taken, close, at: when, ..turn(run, number) }).unwrap();
    }
    run
}

pub(super) fn sweep(store: &dyn Store, most: usize) -> bool {
    match write(store, Write::Sweep { most }).unwrap() {
        Written::Swept { more } => more,
        other => panic!("a sweep was answered with {other:?}"),
    }
}

pub fn a_closed_run_is_deleted_at_once_and_what_is_left_of_it_step_by_step(store: &dyn Store) {
    let new = NewRun { request: Some("once".into()), ..new_run("old", "run-0") };
    let requested = start(store, new.clone()).unwrap().run;
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run: requested, status: Status::Terminated, at: at(5), failure }).unwrap();
    let kept = closed(store, "kept", "run-1", 3, at(20));
    let gone = closed(store, "gone", "run-2", 5, at(10));
    assert_eq!(store.closed_before(at(5), 9).unwrap(), []);
    assert_eq!(store.closed_before(at(20), 9).unwrap(), [requested, gone]);
    assert_eq!(store.closed_before(at(21), 2).unwrap(), [requested, gone]);
    assert_eq!(store.closed_before(at(21), 9).unwrap(), [requested, gone, kept]);

    assert_eq!(write(store, Write::Delete { run: gone }), Ok(Written::Done));
    assert_eq!((store.run(gone).unwrap(), store.find("gone", None).unwrap()), (None, None));
    assert_eq!(
        (store.count(&Filter::default(), u64::MAX).unwrap(), store.find("gone", Some("run-2")).unwrap()),
        (2, None)
    );
    assert_eq!(refused(write(store, Write::Delete { run: gone })), Refused::NoSuchRun);
    assert_eq!(store.closed_before(at(21), 9).unwrap(), [requested, kept]);
    assert!(store.has_remains().unwrap());
    let mut left = records(store, gone).len();
    assert_eq!(left, 5);
    while sweep(store, 2) {
        let now = records(store, gone).len();
        assert!(now <= left && left - now <= 2, "{left} then {now}");
        left = now;
    }
    assert_eq!((records(store, gone).len(), store.message(gone, "start").unwrap()), (0, None));
    assert!(!sweep(store, 2) && !store.has_remains().unwrap());
    assert_eq!((records(store, kept).len(), status(store, kept)), (3, Status::Completed));
    assert!(store.message(kept, "start").unwrap().is_some());

    write(store, Write::Delete { run: requested }).unwrap();
    while sweep(store, 100) {}
    assert!(start(store, new).unwrap().fresh, "a request is forgotten with the run it started");
}

pub fn a_number_is_given_once_whatever_is_deleted(store: &dyn Store) {
    let mut last = (RunNo(0), TaskNo(0), MessageNo(0));
    for run_id in ["run-1", "run-2", "run-3"] {
        let started = owned(store, "order-1", run_id);
        let message = started.message.expect("its start waits");
        let tasks = vec![task()];
        let planned = commit(store, TurnWrite { tasks, taken: vec![message], ..turn(started.run, 0) }).unwrap().tasks;
        let now = (started.run, planned[0], message);
        assert!(now.0 > last.0 && now.1 > last.1 && now.2 > last.2, "{now:?} after {last:?}");
        last = now;
        let close = closing(Status::Completed);
        commit(store, TurnWrite { ended_tasks: planned, close, ..turn(started.run, 1) }).unwrap();
        write(store, Write::Delete { run: started.run }).unwrap();
        while sweep(store, 100) {}
    }
}

pub fn a_run_that_is_added_again_takes_no_place_of_what_is_left_of_it(store: &dyn Store) {
    let old = closed(store, "order-1", "run-1", 5, at(9));
    let row = RunRow { started: at(0), ..store.run(old).unwrap().unwrap() };
    let turns: Vec<_> = records(store, old).into_iter().map(|(_, record)| record).collect();
    closed(store, "order-1", "run-2", 1, at(20));
    write(store, Write::Delete { run: old }).unwrap();
    while sweep(store, 100) {}
    let import = || {
        let import = ImportWrite { run: row.clone(), turns: turns.clone(), belongings: Default::default() };
        write(store, Write::Import(Box::new(import))).unwrap();
        store.find("order-1", Some("run-1")).unwrap().unwrap().no
    };
    let first = import();
    write(store, Write::Delete { run: first }).unwrap();
    sweep(store, 1);
    let second = import();
    assert_ne!(first, second);
    while sweep(store, 2) {}
    assert_eq!(records(store, second).len(), 5, "what was left of the first is gone, and nothing else");
}

pub fn a_closed_run_of_another_store_is_added_as_it_is(store: &dyn Store) {
    let run = closed(store, "order-1", "run-1", 3, at(9));
    let row = store.run(run).unwrap().unwrap();
    let turns: Vec<_> = records(store, run).into_iter().map(|(_, record)| record).collect();
    let import = |run: RunRow| {
        let import = ImportWrite { run, turns: turns.clone(), belongings: Belongings::default() };
        write(store, Write::Import(Box::new(import)))
    };
    assert_eq!(refused(import(row.clone())), Refused::Exists("run-1".into()));
    assert_eq!(refused(import(RunRow { status: Status::Open, ..row.clone() })), Refused::Open);
    write(store, Write::Delete { run }).unwrap();
    while sweep(store, 100) {}
    let open = owned(store, "order-1", "run-2").run;
    import(row.clone()).unwrap();
    let found = store.find("order-1", Some("run-1")).unwrap().unwrap();
    assert_eq!(found, RunRow { no: found.no, owner: None, epoch: Epoch::default(), ..row });
    assert_eq!(records(store, found.no).into_iter().map(|(_, record)| record).collect::<Vec<_>>(), turns);
    assert_eq!(store.find("order-1", None).unwrap().map(|row| row.no), Some(open), "the open one goes before it");
}

pub fn an_open_run_cannot_be_deleted(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    commit(store, turn(run, 0)).unwrap();
    assert_eq!(refused(write(store, Write::Delete { run })), Refused::Open);
    assert_eq!(refused(write(store, Write::Delete { run: RunNo(999) })), Refused::NoSuchRun);
    assert!(!sweep(store, 100));
    assert_eq!((records(store, run).len(), status(store, run)), (1, Status::Open));
    assert_eq!(store.closed_before(at(1_000_000), 9).unwrap(), []);
}

pub fn the_parent_of_a_run_may_be_deleted_before_it(store: &dyn Store) {
    let parent = owned(store, "parent", "run-1");
    let children = vec![child(parent.run, 0, "child", "run-2", ParentClose::Abandon)];
    let taken = parent.message.into_iter().collect();
    let started = commit(store, TurnWrite { taken, children, ..turn(parent.run, 0) }).unwrap().started;
    let taken = store.unseen(parent.run).unwrap().iter().map(|message| message.no).collect();
    commit(store, TurnWrite { taken, close: closing(Status::Completed), ..turn(parent.run, 1) }).unwrap();
    write(store, Write::Delete { run: parent.run }).unwrap();
    while sweep(store, 100) {}
    let child = started[0].run;
    own(store, child, Epoch::default(), FIRST).unwrap();
    let taken = store.unseen(child).unwrap().iter().map(|message| message.no).collect();
    let close = Some(Closing { to_parent: Some(vec![1]), ..closing(Status::Completed).unwrap() });
    commit(store, TurnWrite { taken, close, ..turn(child, 0) }).unwrap();
    assert_eq!(status(store, child), Status::Completed);
}
