//! Many runs that are removed at once, and the rows that a sweep then removes.

use super::delete::{closed, sweep};
use super::*;

pub fn runs_that_closed_too_long_ago_go_together(store: &dyn Store) {
    let old: Vec<RunNo> = vec![closed(store, "a", "run-1", 2, at(10)), closed(store, "b", "run-2", 1, at(11))];
    let young = closed(store, "c", "run-3", 1, at(20));
    let open = owned(store, "d", "run-4").run;
    let runs = [&old[..], &[young, open, RunNo(999)]].concat();
    assert_eq!(write(store, Write::Expire { runs, before: at(20) }), Ok(Written::Done));
    assert!(old.iter().all(|run| store.run(*run).unwrap().is_none()));
    assert!(store.run(young).unwrap().is_some() && store.run(open).unwrap().is_some());
    while sweep(store, 100) {}
    assert!(old.iter().all(|run| records(store, *run).is_empty()));
    assert_eq!(records(store, young).len(), 1);
}

/// Regression: a step removed a number of rows of one run, whatever their size: too little where runs are small, too
/// much where they are large.
pub fn a_step_takes_small_runs_together_and_large_records_apart(store: &dyn Store) {
    let ids = [("a", "run-1"), ("b", "run-2"), ("c", "run-3"), ("d", "run-4")];
    let small = ids.map(|(workflow_id, run_id)| closed(store, workflow_id, run_id, 2, at(10)));
    write(store, Write::Expire { runs: small.to_vec(), before: at(20) }).unwrap();
    assert!(!sweep(store, 100) && !store.has_remains().unwrap(), "twelve rows of four runs are one step");
    assert!(small.iter().all(|run| records(store, *run).is_empty()));

    let large = owned(store, "e", "run-5").run;
    let taken = store.unseen(large).unwrap().iter().map(|message| message.no).collect();
    commit(store, TurnWrite { taken, record: vec![7; 600_000], ..turn(large, 0) }).unwrap();
    for number in 1..5 {
        let close = if number == 4 { closing(Status::Completed) } else { None };
        commit(store, TurnWrite { record: vec![7; 600_000], close, ..turn(large, number) }).unwrap();
    }
    write(store, Write::Delete { run: large }).unwrap();
    let mut left = vec![records(store, large).len()];
    while sweep(store, 100) {
        left.push(records(store, large).len());
    }
    assert_eq!(left, [5, 3, 1], "a mebibyte and the record that goes beyond it");
}
