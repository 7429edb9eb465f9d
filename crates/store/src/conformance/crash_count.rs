//! Crash counts of tasks and runs whose process died while an attempt ran or a turn was played.

use super::*;

fn crash_state(store: &dyn Store, run: RunNo) -> (u32, Option<Stuck>) {
    let row = store.run(run).unwrap().unwrap();
    (row.crash_count, row.stuck)
}

fn words() -> Option<Stuck> {
    Some(Stuck {
        cause: StuckCause::Quarantined,
        subject: "workflow kit".to_owned(),
        reason: "its process died".to_owned(),
        since: at(3),
        attempts: 1,
        retry: at(3),
    })
}

fn set_count(store: &dyn Store, run: RunNo, crash_count: u32) {
    let crash_count = CrashCount::Run { run, crash_count, stuck: words() };
    assert_eq!(write(store, Write::CrashCounts(vec![crash_count])), Ok(Written::Done));
}

/// One write sets the crash count and the stuck cause of a run, and one turn's commit resets both.
pub fn crash_count_of_a_run_is_reset_by_its_next_turn(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    assert_eq!(crash_state(store, run), (0, None));
    set_count(store, run, 2);
    assert_eq!(crash_state(store, run), (2, words()));
    assert_eq!(refused(commit(store, turn(run, 7))), Refused::Fenced { turns: 0, epoch: FIRST });
    assert_eq!(crash_state(store, run), (2, words()));
    let cleared = [run, RunNo(run.0 + 100)].map(CrashCount::Cleared).to_vec();
    assert_eq!(write(store, Write::CrashCounts(cleared)), Ok(Written::Done));
    assert_eq!(crash_state(store, run), (0, words()), "it may be stuck for another reason");
    commit(store, TurnWrite { crash_count: 1, ..turn(run, 0) }).unwrap();
    assert_eq!(crash_state(store, run), (1, None), "the turn sets the count that remains");
    commit(store, turn(run, 1)).unwrap();
    assert_eq!(crash_state(store, run), (0, None));
}

/// Two nodes that died while they played one run each add one to its count, whichever of them comes back first. The first of
/// them reads the count anew once the other has written it.
pub fn death_is_counted_once_and_not_for_a_run_that_has_gone_on(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let other = owned(store, "order-2", "run-2").run;
    let died = |run, seen, turn, stuck| CrashCount::Died { run, seen, turn, stuck };
    let count = |counts: Vec<CrashCount>| write(store, Write::CrashCounts(counts));
    assert_eq!(count(vec![died(run, 0, Some(0), None)]), Ok(Written::Done));
    let stale = count(vec![died(other, 0, Some(0), None), died(run, 0, None, None)]);
    assert_eq!(stale, Err(Refused::MovedOn.into()), "another node has counted meanwhile");
    assert_eq!((crash_state(store, run), crash_state(store, other)), ((1, None), (0, None)), "it counts all or none");
    assert_eq!(count(vec![died(run, 1, None, words())]), Ok(Written::Done));
    assert_eq!(crash_state(store, run), (2, words()));
    assert_eq!(count(vec![died(run, 2, Some(0), None)]), Ok(Written::Done));
    assert_eq!(crash_state(store, run), (3, words()), "it is stuck as before");

    commit(store, turn(run, 0)).unwrap();
    let late = [died(run, 3, Some(0), words()), died(RunNo(run.0 + 100), 5, None, None)];
    assert_eq!(count(late.to_vec()), Ok(Written::Done));
    assert_eq!(crash_state(store, run), (0, None), "another node has played it on");
    assert_eq!(count(vec![died(run, 0, None, None)]), Ok(Written::Done));
    assert_eq!(crash_state(store, run), (1, None), "local work may go on beside turns");
}

/// A caller may still query a closed run, and the query plays its code. So its crash count is kept.
pub fn crash_count_of_a_run_outlives_its_end(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    set_count(store, run, 3);
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run, status: Status::Terminated, at: at(5), failure }).unwrap();
    assert_eq!(crash_state(store, run), (3, None));
    set_count(store, run, 4);
    assert_eq!(store.runs_with_crash_count().unwrap(), []);
    assert_eq!(crash_state(store, run), (4, None), "a closed run need not go on");
    let exported = store.run(run).unwrap().unwrap();
    write(store, Write::Delete { run }).unwrap();
    write(
        store,
        Write::Import(Box::new(ImportWrite { run: exported, turns: Vec::new(), belongings: Belongings::default() })),
    )
    .unwrap();
    let imported = store.find("order-1", None).unwrap().unwrap();
    assert_eq!(imported.crash_count, 0, "an imported run has no crash count");
}

/// Many counts are written at once; those of deleted rows are ignored.
pub fn crash_counts_of_tasks_and_runs_are_written_together(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let task = NewTask { seq: Seq(0), queue: "main".into(), ready: at(0), priority: 0, position: 0, offered: false };
    let task = commit(store, TurnWrite { tasks: vec![task], ..turn(run, 0) }).unwrap().tasks[0];
    let before = store.task(task).unwrap().unwrap();
    let all = vec![
        CrashCount::Task { task: TaskNo(task.0 + 100), crash_count: 1 },
        CrashCount::Run { run: RunNo(run.0 + 100), crash_count: 1, stuck: None },
        CrashCount::Task { task, crash_count: 2 },
        CrashCount::Run { run, crash_count: 3, stuck: None },
    ];
    assert_eq!(write(store, Write::CrashCounts(all)), Ok(Written::Done));
    assert_eq!(store.task(task).unwrap(), Some(TaskRow { crash_count: 2, ..before }));
    assert_eq!(crash_state(store, run), (3, None));
    let other = owned(store, "order-2", "run-2").run;
    write(store, Write::CrashCounts(vec![CrashCount::Run { run: other, crash_count: 1, stuck: None }])).unwrap();
    assert_eq!(store.runs_with_crash_count().unwrap(), [(1, other), (3, run)], "the lowest count first");
    commit(store, turn(other, 0)).unwrap();
    assert_eq!(store.runs_with_crash_count().unwrap(), [(3, run)]);
}
