//! What nodes write at the same time, and for each other.

use std::collections::BTreeSet;
use std::thread;

use super::*;

/// Joins two nodes and returns the runs that they share.
fn two_nodes(cluster: &dyn Cluster) -> (TestNode, TestNode, Vec<RunNo>) {
    let a = TestNode::join(cluster, "a", "main");
    let runs = a.start_many();
    let b = TestNode::join(cluster, "b", "main");
    settle(cluster, &[&a, &b], &runs);
    (a, b, runs)
}

pub fn a_task_that_no_node_has_is_claimed_by_one(cluster: &dyn Cluster) {
    let (a, b, runs) = two_nodes(cluster);
    let run = one_of(&a, &runs);
    let offered = (0..100).map(|seq| NewTask { seq: Seq(seq), offered: true, ..task() }).collect();
    let tasks = commit(&*a.store, TurnWrite { tasks: offered, ..plain_turn(run, 0) }).unwrap().tasks;
    let claim = |node: &TestNode| {
        let mut claimed = Vec::new();
        for _ in 0..40 {
            let some = node.shared().claim(&[("main".into(), 3), ("absent".into(), 3)]).unwrap();
            assert!(some.len() <= 3, "a node has three places");
            claimed.extend(some);
        }
        assert!(claimed.iter().all(|task| task.node == Some(node.shared().node())), "{claimed:?}");
        claimed.into_iter().map(|task| task.no).collect::<Vec<_>>()
    };
    let (of_a, of_b) = thread::scope(|scope| {
        let other = scope.spawn(|| claim(&b));
        (claim(&a), other.join().expect("the thread does not panic"))
    });
    assert_eq!(of_a.len() + of_b.len(), tasks.len());
    let all: BTreeSet<TaskNo> = of_a.into_iter().chain(of_b).collect();
    assert_eq!(all, tasks.into_iter().collect());
}

pub fn the_owner_of_a_run_leaves_its_tasks_to_the_node_that_works_at_them(cluster: &dyn Cluster) {
    let (a, b, runs) = two_nodes(cluster);
    let run = one_of(&b, &runs);
    let shards: Shards = [run.shard()].into_iter().collect();
    let offered = || NewTask { offered: true, ..task() };
    let first = commit(&*b.store, TurnWrite { tasks: vec![offered()], ..plain_turn(run, 0) }).unwrap().tasks;
    let claimed = a.shared().claim(&[("main".into(), 10)]).unwrap();
    assert_eq!(claimed.iter().map(|task| task.no).collect::<Vec<_>>(), first);
    let more = TurnWrite { tasks: vec![task(), offered()], ..plain_turn(run, 1) };
    let more = commit(&*b.store, more).unwrap().tasks;
    let own = |above: i64, limit| -> Vec<TaskNo> {
        let tasks = b.shared().tasks_in(&shards, &["main".into()], above, limit).unwrap();
        assert!(tasks.iter().all(|task| task.node == Some(b.shared().node())), "{tasks:?}");
        tasks.into_iter().map(|task| task.no).collect()
    };
    assert_eq!((own(0, 10), own(0, 1), own(more[0].0, 10)), (more.clone(), more[..1].to_vec(), more[1..].to_vec()));
    assert_eq!(b.shared().tasks_in(&shards, &["other".into()], 0, 10).unwrap(), []);
    assert_eq!(a.store.task(first[0]).unwrap().unwrap().node, Some(a.shared().node()));
    cluster.silence("a");
    until(cluster, "the other has taken its runs over", || runs.iter().all(|run| b.owns(*run)));
    assert_eq!(own(0, 10), [first, more].concat());
}

pub fn two_nodes_that_start_one_workflow_id_start_one_run(cluster: &dyn Cluster) {
    let (a, b, _) = two_nodes(cluster);
    for number in 100..140 {
        let new = |run_id: String| Write::Start(Box::new(NewRun { run_id: run_id.into(), ..order(number) }));
        let (one, other) = (a.submit(new(format!("a-{number}"))), b.submit(new(format!("b-{number}"))));
        let answers = [one, other].map(|answer| answer.recv().expect("every write is answered"));
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
        let lost = answers.into_iter().find(Result::is_err).expect("one of them is refused");
        assert!(matches!(refused(lost), Refused::InUse { .. }));
    }
}

pub fn two_nodes_that_make_one_request_start_one_run(cluster: &dyn Cluster) {
    let (a, b, runs) = two_nodes(cluster);
    for number in 100..140 {
        let request = Some(format!("request-{number}").into());
        let new = |run_id: String| {
            Write::Start(Box::new(NewRun { run_id: run_id.into(), request: request.clone(), ..order(number) }))
        };
        let (one, other) = (a.submit(new(format!("a-{number}"))), b.submit(new(format!("b-{number}"))));
        let answers = [one, other].map(|answer| match answer.recv().expect("every write is answered") {
            Ok(Written::Started { run, .. }) => run,
            other => panic!("a start was answered with {other:?}"),
        });
        assert_eq!(answers[0].run, answers[1].run);
        assert_eq!(answers.iter().filter(|run| run.fresh).count(), 1, "{answers:?}");
    }
    assert_eq!(a.store.count(&Filter::default(), u64::MAX).unwrap(), runs.len() as u64 + 40);
}

pub fn of_two_writers_of_one_turn_one_commits(cluster: &dyn Cluster) {
    let (a, b, runs) = two_nodes(cluster);
    for run in runs {
        let (owner, other) = if a.owns(run) { (&a, &b) } else { (&b, &a) };
        let turn = |record: u8| as_write(TurnWrite { record: vec![record], ..plain_turn(run, 0) });
        let (first, second, foreign) = (owner.submit(turn(1)), owner.submit(turn(2)), other.submit(turn(3)));
        let answers = [first, second].map(|answer| answer.recv().expect("every write is answered"));
        let foreign = foreign.recv().expect("every write is answered");
        assert_eq!(refused(foreign), Refused::NotOwner);
        let winner = answers.iter().position(Result::is_ok).expect("one of them is committed");
        let loser = answers.into_iter().find(Result::is_err).expect("the other is refused");
        assert_eq!(refused(loser), Refused::Fenced { turns: 1, epoch: Epoch::default() });
        assert_eq!(records(&*other.store, run), [(0, vec![winner as u8 + 1])]);
    }
}

pub fn messages_of_one_sender_keep_their_order(cluster: &dyn Cluster) {
    let (a, b, runs) = two_nodes(cluster);
    let run = one_of(&a, &runs);
    let mut sent = vec![Name::from("start")];
    for number in 0..60 {
        let key = Name::from(format!("signal:{number}"));
        let message = NewMessage { key: key.clone(), sent: at(2), job: vec![number] };
        // The sender has its answer before it sends the next, from whichever node.
        let node = if number % 3 == 0 { &b } else { &a };
        write(&*node.store, Write::Send { run, message, ended: None }).unwrap();
        sent.push(key);
    }
    // It waits for no answer here.
    let (told, answers) = mpsc::channel();
    for number in 60..120 {
        let key = Name::from(format!("signal:{number}"));
        let message = NewMessage { key: key.clone(), sent: at(2), job: vec![number] };
        let told = told.clone();
        b.store.submit(
            Write::Send { run, message, ended: None },
            Box::new(move |sent| {
                let _ = told.send(sent.is_ok());
            }),
        );
        sent.push(key);
    }
    assert!((0..60).all(|_| answers.recv().expect("every write is answered")));
    let keys = |node: &TestNode| -> Vec<Name> {
        node.store.unseen(run).unwrap().into_iter().map(|message| message.key).collect()
    };
    assert_eq!((keys(&a), keys(&b)), (sent.clone(), sent));
}

/// The parent continues as another run at the moment at which its child ends on another node. Either the parent sees the
/// message first, or the run that it continues as awaits no child; the message is never lost in a closed run.
pub fn a_child_on_another_node_tells_its_parent_however_the_parent_goes_on(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let b = TestNode::join(cluster, "b", "other");
    let finished = || Job::resolve(Seq(0), Resolution::ChildStarted(StartOutcome::As("finished".into())));
    for number in 0..30 {
        let parent = start(&*a.store, order(number)).expect("the id is free");
        let child = NewRun {
            queue: "other".into(),
            parent: Some(Parent { run: parent.run, seq: Seq(0), close: ParentClose::Abandon }),
            ..order(1_000 + number)
        };
        let first = TurnWrite {
            taken: parent.message.into_iter().collect(),
            children: vec![(Seq(0), child)],
            ..plain_turn(parent.run, 0)
        };
        let child = commit(&*a.store, first).unwrap().started.remove(0);
        assert!(b.owns(child.run) && !a.owns(child.run), "the node that serves its queue owns it");
        let last = Closing {
            status: Status::Completed,
            result: vec![9],
            to_parent: Some(dacapo_core::to_stored(&finished())),
            next: None,
            carried: Vec::new(),
        };
        let last =
            TurnWrite { taken: child.message.into_iter().collect(), close: Some(last), ..plain_turn(child.run, 0) };
        let next = NewRun { run_id: format!("next-{number}").into(), ..order(number) };
        let taken = a.store.unseen(parent.run).unwrap().iter().map(|message| message.no).collect();
        let close = Closing {
            status: Status::ContinuedAsNew,
            result: Vec::new(),
            to_parent: None,
            next: Some(Box::new(NewRun { first_run_id: format!("run-{number}").into(), ..next })),
            carried: Vec::new(),
        };
        let continues = TurnWrite { taken, close: Some(close), ..plain_turn(parent.run, 1) };
        let (one, other) = match number % 2 {
            0 => (a.submit(as_write(continues)), b.submit(as_write(last))),
            _ => {
                let last = b.submit(as_write(last));
                (a.submit(as_write(continues)), last)
            }
        };
        let (continued, ended) = (one.recv().expect("it is answered"), other.recv().expect("it is answered"));
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(status(&*a.store, child.run), Status::Completed);
        let told = jobs(&*a.store, parent.run);
        match continued {
            Ok(_) => {
                assert_eq!((status(&*a.store, parent.run), told), (Status::ContinuedAsNew, Vec::new()));
                let next = a.store.find(&format!("order-{number}"), None).unwrap().unwrap();
                assert_eq!(next.run_id, *format!("next-{number}"));
                let row = b.store.run(child.run).unwrap().unwrap();
                assert_eq!(row.parent.map(|parent| parent.run), Some(next.no), "the child belongs to the next run");
            }
            Err(error) => {
                assert_eq!(error, Refused::UnseenMessages.into());
                assert_eq!(told.last(), Some(&finished()));
            }
        }
    }
}

pub fn a_write_whose_answer_is_cut_off_is_committed_once(cluster: &dyn Cluster) {
    let a = TestNode::join(cluster, "a", "main");
    let mut runs = Vec::new();
    cluster.cut_answers("a", &mut || {
        let run = start(&*a.store, order(runs.len())).expect("the id is free").run;
        for number in 0..3 {
            let message = NewMessage { key: format!("signal:{number}").into(), sent: at(2), job: vec![7] };
            match write(&*a.store, Write::Send { run, message, ended: None }) {
                Ok(Written::Sent(sent)) => assert!(sent.fresh, "it was sent once"),
                other => panic!("a message was answered with {other:?}"),
            }
            let written = commit(&*a.store, TurnWrite { tasks: vec![task()], ..plain_turn(run, number) }).unwrap();
            assert_eq!(a.store.task(written.tasks[0]).unwrap().map(|task| task.turn), Some(number));
        }
        runs.push(run);
    });
    assert_eq!(a.store.count(&Filter::default(), u64::MAX).unwrap(), runs.len() as u64);
    for run in runs {
        let counts = (records(&*a.store, run).len(), a.store.unseen(run).unwrap().len());
        assert_eq!((counts, a.store.tasks_of(run).unwrap().len()), ((3, 4), 3));
    }
}
