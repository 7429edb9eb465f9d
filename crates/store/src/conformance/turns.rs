//! Turns: each is committed once, by the node that owns the run.

use super::*;

pub fn a_turn_is_committed_once_and_only_as_the_next(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let early = refused(commit(store, turn(run, 1)));
    assert_eq!(early, Refused::Fenced { turns: 0, epoch: FIRST });
    commit(store, turn(run, 0)).unwrap();
    commit(store, turn(run, 1)).unwrap();
    let again = TurnWrite { record: vec![7], ..turn(run, 1) };
    assert_eq!(refused(commit(store, again)), Refused::Fenced { turns: 2, epoch: FIRST });
    assert_eq!(records(store, run), [(0, vec![0]), (1, vec![1])]);
    assert_eq!(refused(commit(store, turn(RunNo(999), 0))), Refused::NoSuchRun);
}

pub fn a_node_that_has_lost_its_run_cannot_commit(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    commit(store, turn(run, 0)).unwrap();
    own(store, run, FIRST, Epoch(2)).unwrap();
    let task = task();
    let slow = TurnWrite { tasks: vec![task], timers: vec![(at(5), TimerKind::Sleep(Seq(1)))], ..turn(run, 1) };
    assert_eq!(refused(commit(store, slow)), Refused::Fenced { turns: 1, epoch: Epoch(2) });
    assert_eq!((store.tasks_of(run).unwrap(), store.next_due().unwrap()), (Vec::new(), None));
    commit(store, TurnWrite { epoch: Epoch(2), ..turn(run, 1) }).unwrap();
    assert_eq!(refused(own(store, run, FIRST, Epoch(3))), Refused::Fenced { turns: 2, epoch: Epoch(2) });
}

pub fn a_lost_acknowledgement_is_answered_when_the_same_turn_comes_again(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let task = task();
    let first = TurnWrite { tasks: vec![task], ..turn(run, 0) };
    commit(store, first.clone()).unwrap();
    assert_eq!(commit(store, first).unwrap().run, run);
    assert_eq!((records(store, run).len(), store.tasks_of(run).unwrap().len()), (1, 1));
}

pub fn message_sent_twice_under_one_key_is_stored_once(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let run = started.run;
    let send = |key: &'static str, job: u8| {
        let message = NewMessage { key: key.into(), sent: at(2), job: vec![job] };
        match write(store, Write::Send { run, message, ended: None }).unwrap() {
            Written::Sent(sent) => sent,
            other => panic!("a message was answered with {other:?}"),
        }
    };
    let first = send("signal-1", 7);
    assert!(first.fresh);
    let again = send("signal-1", 8);
    assert_eq!((again.no, again.fresh), (first.no, false));
    let taken: Vec<MessageNo> = started.message.into_iter().chain([first.no]).collect();
    commit(store, TurnWrite { taken, outcomes: vec![("signal-1".into(), vec![5])], ..turn(run, 0) }).unwrap();
    assert_eq!((store.unseen(run).unwrap(), store.with_unseen_messages(10).unwrap()), (Vec::new(), Vec::new()));
    let row = store.message(run, "signal-1").unwrap().unwrap();
    assert_eq!((row.job, row.taken, row.outcome), (vec![7], Some(0), Some(vec![5])));
    assert!(!send("signal-1", 1).fresh, "a message that was taken is known by its key");
}

pub fn tasks_live_until_their_turn_ends_them(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let task = |seq, queue: &'static str| NewTask {
        seq: Seq(seq),
        queue: queue.into(),
        ready: at(3),
        priority: -1,
        position: seq as u32,
        offered: false,
    };
    let written = commit(store, TurnWrite { tasks: vec![task(0, "main"), task(1, "other")], ..turn(run, 0) }).unwrap();
    let rows = store.tasks(&["main".into()], 0, 10).unwrap();
    assert_eq!((rows.len(), rows[0].no, rows[0].run, rows[0].seq), (1, written.tasks[0], run, Seq(0)));
    assert_eq!((rows[0].attempt, rows[0].priority, rows[0].turn, rows[0].position), (1, -1, 0, 0));
    let attempt = AttemptWrite {
        task: written.tasks[0],
        attempt: 2,
        ready: at(9),
        node: Some(NODE),
        crash_count: 1,
        external: Some(at(8)),
        failure: Some(vec![4]),
        details: Some(vec![5]),
    };
    write(store, Write::Attempt(Box::new(attempt.clone()))).unwrap();
    let row = store.tasks_of(run).unwrap().remove(0);
    assert_eq!(store.task(row.no).unwrap().as_ref(), Some(&row));
    assert_eq!((row.attempt, row.ready, row.node, row.crash_count), (2, at(9), Some(NODE), 1));
    assert_eq!((row.failure, row.details), (Some(vec![4]), Some(vec![5])));
    assert_eq!(row.external, Some(at(8)), "an external caller completes it");
    // Two writes that a later one overtook: a report of the same attempt, and one of the attempt before.
    for older in [AttemptWrite { external: None, ..attempt.clone() }, AttemptWrite { attempt: 1, ..attempt.clone() }] {
        write(store, Write::Attempt(Box::new(AttemptWrite { details: None, ..older }))).unwrap();
        let row = store.tasks_of(run).unwrap().remove(0);
        assert_eq!((row.attempt, row.external, row.details), (2, Some(at(8)), Some(vec![5])), "the later one holds");
    }
    let retried = AttemptWrite { attempt: 3, external: None, ..attempt.clone() };
    write(store, Write::Attempt(Box::new(retried))).unwrap();
    let row = store.tasks_of(run).unwrap().remove(0);
    assert_eq!((row.attempt, row.external), (3, None), "the next attempt is to be made");
    commit(store, TurnWrite { ended_tasks: vec![written.tasks[0]], ..turn(run, 1) }).unwrap();
    assert_eq!(store.tasks_of(run).unwrap().len(), 1);
    assert_eq!(store.task(written.tasks[0]).unwrap(), None);
    let gone = AttemptWrite { task: TaskNo(written.tasks[0].0), ..attempt };
    assert_eq!(refused(write(store, Write::Attempt(Box::new(gone)))), Refused::NoSuchTask);
}

pub fn timers_are_due_in_order(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let kinds = [
        TimerKind::Sleep(Seq(3)),
        TimerKind::Start,
        TimerKind::RunTimeout,
        TimerKind::ExecutionTimeout,
        TimerKind::Retry,
        TimerKind::ScheduleToStart(Seq(1)),
        TimerKind::ScheduleToClose(Seq(2)),
    ];
    let timers: Vec<_> = kinds.iter().rev().zip(1..).map(|(kind, due)| (at(due), *kind)).collect();
    commit(store, TurnWrite { timers: timers.clone(), ..turn(run, 0) }).unwrap();
    let due: Vec<_> = timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
    assert_eq!(store.due(at(100), 10).unwrap(), due);
    assert_eq!(store.due(at(2), 10).unwrap(), due[..2]);
    commit(store, TurnWrite { ended_timers: vec![timers[0]], ..turn(run, 1) }).unwrap();
    assert_eq!((store.next_due().unwrap(), store.due(at(100), 2).unwrap()), (Some(at(2)), due[1..3].to_vec()));
}

pub fn a_stuck_run_says_why(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let stuck = Stuck {
        cause: StuckCause::Nondeterminism,
        subject: "a.rs:1:2".to_owned(),
        reason: "it differs".to_owned(),
        since: at(3),
        attempts: 2,
        retry: at(9),
    };
    let set_stuck = |stuck, epoch| write(store, Write::SetStuck { run, epoch, stuck });
    set_stuck(Some(stuck.clone()), FIRST).unwrap();
    let filter = Filter { stuck: true, ..Filter::default() };
    assert_eq!(store.list(&filter, None, 10).unwrap()[0].stuck, Some(stuck));
    assert_eq!(refused(set_stuck(None, Epoch(7))), Refused::Fenced { turns: 0, epoch: FIRST });
    set_stuck(None, FIRST).unwrap();
    assert_eq!(store.count(&filter, u64::MAX).unwrap(), 0);
}

pub fn a_stuck_run_goes_on_with_its_next_turn(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let stuck = Stuck {
        cause: StuckCause::Nondeterminism,
        subject: "a.rs:1:2".to_owned(),
        reason: "it differs".to_owned(),
        since: at(3),
        attempts: 2,
        retry: at(9),
    };
    write(store, Write::SetStuck { run, epoch: FIRST, stuck: Some(stuck.clone()) }).unwrap();
    assert_eq!(refused(commit(store, turn(run, 1))), Refused::Fenced { turns: 0, epoch: FIRST });
    assert_eq!(store.run(run).unwrap().unwrap().stuck, Some(stuck));
    commit(store, turn(run, 0)).unwrap();
    assert_eq!(store.run(run).unwrap().unwrap().stuck, None);
    assert_eq!(store.count(&Filter { stuck: true, ..Filter::default() }, u64::MAX).unwrap(), 0);
}
