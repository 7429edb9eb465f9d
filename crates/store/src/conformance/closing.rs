//! How runs close, and what the write does with their children and with the callers that wait for a result.

use super::*;

pub fn run_with_unseen_messages_cannot_close(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let last = TurnWrite { close: closing(Status::Completed), ..turn(started.run, 0) };
    assert_eq!(refused(commit(store, last.clone())), Refused::UnseenMessages);
    assert_eq!((status(store, started.run), records(store, started.run)), (Status::Open, Vec::new()));
    commit(store, TurnWrite { taken: started.message.into_iter().collect(), ..last }).unwrap();
    let row = store.run(started.run).unwrap().unwrap();
    assert_eq!((row.status, row.closed, row.result, row.owner), (Status::Completed, Some(at(10)), Some(vec![9]), None));
}

pub fn a_closed_run_takes_nothing_more(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let task = task();
    commit(store, TurnWrite { tasks: vec![task], ..turn(run, 0) }).unwrap();
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run, status: Status::Terminated, at: at(50), failure }).unwrap();
    assert_eq!((status(store, run), store.tasks_of(run).unwrap()), (Status::Terminated, Vec::new()));
    let closed = Refused::Closed(Status::Terminated);
    assert_eq!(refused(commit(store, turn(run, 1))), closed);
    let message = NewMessage { key: "late".into(), sent: at(51), job: Vec::new() };
    assert_eq!(refused(write(store, Write::Send { run, message, ended: None })), closed);
    assert_eq!(refused(own(store, run, FIRST, Epoch(2))), closed);
    assert_eq!(records(store, run).len(), 1);
}

pub fn a_parent_is_told_of_its_child(store: &dyn Store) {
    let parent = owned(store, "parent", "run-1");
    let run = parent.run;
    owned(store, "taken", "run-2");
    let children = vec![
        child(run, 0, "child", "run-3", ParentClose::Abandon),
        child(run, 1, "taken", "run-4", ParentClose::Abandon),
    ];
    let taken = parent.message.into_iter().collect();
    let written = commit(store, TurnWrite { taken, children, ..turn(run, 0) }).unwrap();
    assert_eq!(written.started.len(), 1);
    let told = jobs(store, run);
    assert_eq!(told[0], Job::resolve(Seq(0), Resolution::ChildStarted(StartOutcome::As("run-3".into()))));
    assert!(
        matches!(
            &told[1],
            Job::Resolve { seq: Seq(1), resolution: Resolution::ChildStarted(StartOutcome::Failed(_)), .. }
        ),
        "{told:?}"
    );
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    let child = written.started[0].run;
    write(store, Write::Close { run: child, status: Status::Terminated, at: at(50), failure }).unwrap();
    assert!(
        matches!(jobs(store, run).last(), Some(Job::Resolve { seq: Seq(0), resolution: Resolution::Child(_), .. })),
        "{:?}",
        jobs(store, run)
    );
}

pub fn children_end_with_their_parent_as_agreed(store: &dyn Store) {
    let parent = owned(store, "parent", "run-1");
    let run = parent.run;
    let children = vec![
        child(run, 0, "terminated", "run-2", ParentClose::Terminate),
        child(run, 1, "abandoned", "run-3", ParentClose::Abandon),
        child(run, 2, "asked", "run-4", ParentClose::RequestCancel),
    ];
    let taken = parent.message.into_iter().collect();
    let started = commit(store, TurnWrite { taken, children, ..turn(run, 0) }).unwrap().started;
    let taken = store.unseen(run).unwrap().iter().map(|message| message.no).collect();
    commit(store, TurnWrite { taken, close: closing(Status::Completed), ..turn(run, 1) }).unwrap();
    let statuses: Vec<Status> = started.iter().map(|child| status(store, child.run)).collect();
    assert_eq!(statuses, [Status::Terminated, Status::Open, Status::Open]);
    assert!(jobs(store, started[2].run).contains(&Job::Cancel { reason: "the parent closed".to_owned() }));
    assert!(!jobs(store, started[1].run).iter().any(|job| matches!(job, Job::Cancel { .. })));
}

pub fn message_to_another_run_arrives_or_its_sender_is_told(store: &dyn Store) {
    let sender = owned(store, "sender", "run-1");
    let other = owned(store, "other", "run-2").run;
    let send = |seq, to: &'static str| OutgoingMessage {
        seq: (seq < 2).then_some(Seq(seq)),
        is_cancel: false,
        to: Target::workflow(to),
        message: NewMessage { key: format!("from-{seq}").into(), sent: at(2), job: vec![1] },
    };
    let taken = sender.message.into_iter().collect();
    commit(
        store,
        TurnWrite { taken, sends: vec![send(0, "other"), send(1, "absent"), send(2, "absent")], ..turn(sender.run, 0) },
    )
    .unwrap();
    assert!(store.message(other, "from-0").unwrap().is_some());
    let told = jobs(store, sender.run);
    let delivered = Resolution::SignalExternal { failure: None };
    assert_eq!(told[0], Job::resolve(Seq(0), delivered));
    let lost = |job: &Job| match job {
        Job::Resolve { seq: Seq(1), resolution: Resolution::SignalExternal { failure }, .. } => failure.is_some(),
        _ => false,
    };
    assert!(lost(&told[1]), "{told:?}");
    assert_eq!(told.len(), 2, "a sender that does not wait is not told");
}

pub fn a_run_continues_under_its_id(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let next = Some(Box::new(NewRun { first_run_id: "run-1".into(), ..new_run("order-1", "run-2") }));
    let carried = vec![NewMessage { key: "carried:0".into(), sent: at(2), job: vec![7] }];
    let close = Some(Closing { status: Status::ContinuedAsNew, result: Vec::new(), to_parent: None, next, carried });
    let taken = started.message.into_iter().collect();
    let written = commit(store, TurnWrite { taken, close, ..turn(started.run, 0) }).unwrap();
    assert_eq!(status(store, started.run), Status::ContinuedAsNew);
    let row = store.find("order-1", None).unwrap().unwrap();
    assert_eq!((row.no, row.run_id.as_str(), row.first_run_id.as_str()), (written.started[0].run, "run-2", "run-1"));
    let keys: Vec<Name> = store.unseen(row.no).unwrap().into_iter().map(|message| message.key).collect();
    assert_eq!(keys, ["start", "carried:0"], "what the first run did not take waits behind the start");
    let first = store.find("order-1", Some("run-1")).unwrap().unwrap();
    assert_eq!(first.no, started.run);
}

pub fn rows_left_of_a_closed_run_can_be_removed(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let (run, taken) = (started.run, started.message.into_iter().collect());
    let task = NewTask { seq: Seq(0), queue: "main".into(), ready: at(3), priority: 0, position: 0, offered: false };
    let timer = (at(9), TimerKind::RunTimeout);
    let written = commit(store, TurnWrite { tasks: vec![task], timers: vec![timer], taken, ..turn(run, 0) }).unwrap();
    let forget = || Write::Forget { run, tasks: written.tasks.clone(), timers: vec![timer] };
    assert_eq!(write(store, forget()).unwrap_err(), Refused::Open.into());
    assert_eq!((store.tasks_of(run).unwrap().len(), store.next_due().unwrap()), (1, Some(at(9))));
    commit(store, TurnWrite { close: closing(Status::Completed), ..turn(run, 1) }).unwrap();
    write(store, forget()).unwrap();
    assert_eq!((store.tasks_of(run).unwrap().len(), store.next_due().unwrap()), (0, None));
}
