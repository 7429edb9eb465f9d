//! What is held against a run whose process died while its code was played.

use super::*;

fn strikes(store: &dyn Store, run: RunNo) -> u32 {
    store.run(run).unwrap().unwrap().strikes
}

fn words() -> Option<Stuck> {
    Some(Stuck { reason: "its process died".to_owned(), since: at(3), attempts: 1, retry: at(3) })
}

/// What is held against a run and why it does not go on are one write, and so are a turn and the end of both.
pub fn strikes_of_a_run_end_with_its_next_turn(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    assert_eq!(strikes(store, run), 0);
    write(store, Write::Strike { run, strikes: 2, stuck: words() }).unwrap();
    let row = store.run(run).unwrap().unwrap();
    assert_eq!((row.strikes, row.stuck), (2, words()));
    assert_eq!(refused(commit(store, turn(run, 7))), Refused::Fenced { turns: 0, epoch: FIRST });
    assert_eq!(strikes(store, run), 2);
    commit(store, TurnWrite { strikes: 1, ..turn(run, 0) }).unwrap();
    let row = store.run(run).unwrap().unwrap();
    assert_eq!((row.strikes, row.stuck), (1, None), "the turn says what is still held against it");
    commit(store, turn(run, 1)).unwrap();
    assert_eq!(strikes(store, run), 0);
}

/// The code of a closed run is played for those who ask it something.
pub fn what_is_held_against_a_run_outlives_its_end(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    write(store, Write::Strike { run, strikes: 3, stuck: words() }).unwrap();
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run, status: Status::Terminated, at: at(5), failure }).unwrap();
    let row = store.run(run).unwrap().unwrap();
    assert_eq!((row.strikes, row.stuck), (3, None));
    write(store, Write::Strike { run, strikes: 4, stuck: words() }).unwrap();
    let row = store.run(run).unwrap().unwrap();
    assert_eq!((row.strikes, row.stuck), (4, None), "a closed run need not go on");
    let closed = RunFilter { stuck: true, ..RunFilter::default() };
    assert_eq!(store.count(&closed).unwrap(), 0);
    write(store, Write::Delete { run }).unwrap();
    assert_eq!(refused(write(store, Write::Strike { run, strikes: 0, stuck: None })), Refused::NoSuchRun);
}
