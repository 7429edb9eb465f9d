//! Messages that end a task, or are settled without a turn.

use super::*;

fn message(key: &'static str) -> NewMessage {
    NewMessage { key: key.into(), sent: at(2), job: vec![7] }
}

pub fn message_that_ends_a_task_is_stored_together_with_its_end(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let task =
        |seq| NewTask { seq: Seq(seq), queue: "main".into(), ready: at(0), priority: 0, position: 0, offered: false };
    let tasks = commit(store, TurnWrite { tasks: vec![task(0), task(1)], ..turn(run, 0) }).unwrap().tasks;
    let send = |run, key, ended| write(store, Write::Send { run, message: message(key), ended: Some(ended) });
    let Written::Sent(sent) = send(run, "result-0", tasks[0]).unwrap() else { panic!("the message is sent") };
    assert!(sent.fresh);
    let left = |store: &dyn Store| store.tasks_of(run).unwrap().iter().map(|task| task.no).collect::<Vec<_>>();
    assert_eq!((left(store), store.message(run, "result-0").unwrap().unwrap().no), (vec![tasks[1]], sent.no));
    assert_eq!(refused(send(run, "again", tasks[0])), Refused::NoSuchTask);
    assert_eq!(store.message(run, "again").unwrap(), None);
    assert_eq!(refused(send(RunNo(999), "absent", tasks[1])), Refused::NoSuchRun);
    let other = owned(store, "order-2", "run-2").run;
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run: other, status: Status::Terminated, at: at(50), failure }).unwrap();
    assert_eq!(refused(send(other, "late", tasks[1])), Refused::Closed(Status::Terminated));
    assert_eq!(left(store), [tasks[1]]);
}

pub fn message_is_settled_without_a_turn(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let run = started.run;
    commit(store, TurnWrite { taken: started.message.into_iter().collect(), ..turn(run, 0) }).unwrap();
    let send = |key| match write(store, Write::Send { run, message: message(key), ended: None }).unwrap() {
        Written::Sent(sent) => sent.no,
        other => panic!("a message was answered with {other:?}"),
    };
    let (rejected, twice, waiting) = (send("rejected"), send("twice"), send("waiting"));
    let settle = |run, epoch, turn| {
        let messages = vec![(rejected, "rejected".into(), Some(vec![5])), (twice, "twice".into(), None)];
        write(store, Write::Settle { run, epoch, turn, messages, tasks: Vec::new() })
    };
    let unseen = || store.unseen(run).unwrap().iter().map(|message| message.no).collect::<Vec<_>>();
    assert_eq!(refused(settle(run, Epoch(7), 1)), Refused::Fenced { turns: 1, epoch: FIRST });
    assert_eq!(refused(settle(run, FIRST, 0)), Refused::Fenced { turns: 1, epoch: FIRST });
    assert_eq!(refused(settle(RunNo(999), FIRST, 1)), Refused::NoSuchRun);
    assert_eq!(unseen(), [rejected, twice, waiting]);
    assert_eq!(store.count_unseen(run).unwrap(), 3);
    assert_eq!(settle(run, FIRST, 1).unwrap(), Written::Done);
    assert_eq!(unseen(), [waiting]);
    assert_eq!(store.count_unseen(run).unwrap(), 1);
    let settled = |key| store.message(run, key).unwrap().map(|message| (message.taken, message.outcome));
    assert_eq!(settled("rejected"), Some((Some(1), Some(vec![5]))));
    assert_eq!(settled("twice"), Some((Some(1), None)));
    assert_eq!((store.run(run).unwrap().unwrap().turns, records(store, run).len()), (1, 1));
    commit(store, TurnWrite { taken: vec![waiting], close: closing(Status::Completed), ..turn(run, 1) }).unwrap();
    assert_eq!(refused(settle(run, FIRST, 2)), Refused::Closed(Status::Completed));
}

pub fn a_request_is_known_to_the_whole_chain(store: &dyn Store) {
    let first = owned(store, "order-1", "run-1");
    let other = owned(store, "order-2", "run-9").run;
    let send = |run, key| match write(store, Write::Send { run, message: message(key), ended: None }).unwrap() {
        Written::Sent(sent) => sent.no,
        other => panic!("a message was answered with {other:?}"),
    };
    let sent = [send(first.run, "signal:a"), send(first.run, "update:b"), send(first.run, "once:c")];
    send(other, "signal:a");
    let next = Some(Box::new(NewRun { first_run_id: "run-1".into(), ..new_run("order-1", "run-2") }));
    let carried = vec![message("update:b")];
    let close = Some(Closing { status: Status::ContinuedAsNew, result: Vec::new(), to_parent: None, next, carried });
    let taken = first.message.into_iter().chain(sent).collect();
    let second = commit(store, TurnWrite { taken, close, ..turn(first.run, 0) }).unwrap().started[0].run;
    assert_eq!(store.asked("run-1", "signal:a").unwrap(), [first.run]);
    assert_eq!(store.asked("run-1", "update:b").unwrap(), [first.run, second]);
    assert_eq!(store.asked("run-9", "signal:a").unwrap(), [other]);
    for (chain, request) in [("run-1", "once:c"), ("run-1", "signal:x"), ("run-2", "update:b"), ("run-9", "update:b")] {
        assert_eq!(store.asked(chain, request).unwrap(), [], "{request} in the chain of {chain}");
    }
}

pub fn message_is_taken_by_one_turn(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let taken: Vec<_> = started.message.into_iter().collect();
    commit(store, TurnWrite { taken: taken.clone(), ..turn(started.run, 0) }).unwrap();
    let before = store.run(started.run).unwrap();
    let again = commit(store, TurnWrite { taken, ..turn(started.run, 1) });
    assert_eq!(again.unwrap_err(), Refused::MessageTaken.into());
    assert_eq!(store.run(started.run).unwrap(), before, "nothing was changed");
}
