//! Starts: the run that a workflow id or a request refers to.

use dacapo_core::to_stored;

use super::*;

pub fn started_run_is_open_and_its_start_waits_as_a_message(store: &dyn Store) {
    let started = start(store, new_run("order-1", "run-1")).unwrap();
    assert!(started.fresh);
    let row = store.find("order-1", None).unwrap().unwrap();
    assert_eq!((row.no, row.status, row.turns, row.owner), (started.run, Status::Open, 0, None));
    assert_eq!((row.run_id.as_str(), row.first_run_id.as_str()), ("run-1", "run-1"));
    let messages = store.unseen(started.run).unwrap();
    assert_eq!((messages.len(), messages[0].key.as_str(), messages[0].job.clone()), (1, "start", vec![2]));
    assert_eq!(store.with_unseen_messages(10).unwrap(), [started.run]);
    assert_eq!(store.find("order-2", None).unwrap(), None);
}

pub fn a_run_may_start_with_its_first_turn(store: &dyn Store) {
    let with_run = |new: NewRun| TurnWrite { run: TurnOf::New(Box::new(new)), ..turn(RunNo(0), 0) };
    let timers = vec![(at(60), TimerKind::RunTimeout)];
    let written = commit(store, with_run(NewRun { timers, ..new_run("order-1", "run-1") })).unwrap();
    let row = store.run(written.run).unwrap().unwrap();
    assert_eq!((row.turns, row.owner, row.epoch), (1, Some(NODE), FIRST));
    assert_eq!((records(store, row.no), store.unseen(row.no).unwrap()), (vec![(0, vec![0])], Vec::new()));
    assert_eq!(store.next_due().unwrap(), Some(at(60)));
    commit(store, turn(row.no, 1)).unwrap();
    let taken = refused(commit(store, with_run(new_run("order-1", "run-2"))));
    assert!(matches!(taken, Refused::InUse { .. }), "{taken:?}");
    assert_eq!(store.count(&Filter::default(), u64::MAX).unwrap(), 1);
}

pub fn an_open_workflow_id_belongs_to_one_run(store: &dyn Store) {
    let first = owned(store, "order-1", "run-1").run;
    let taken = refused(start(store, new_run("order-1", "run-2")));
    assert!(matches!(taken, Refused::InUse { ref run_id, .. } if run_id.as_str() == "run-1"), "{taken:?}");
    let existing = NewRun { conflict: IdConflict::UseExisting, ..new_run("order-1", "run-3") };
    let existing = start(store, existing).unwrap();
    assert_eq!((existing.run, existing.fresh), (first, false));
    let instead = NewRun { conflict: IdConflict::TerminateExisting, ..new_run("order-1", "run-4") };
    let instead = start(store, instead).unwrap();
    assert_eq!((status(store, first), status(store, instead.run)), (Status::Terminated, Status::Open));
    // The same start comes again: it ends other runs, and not its own.
    let again = NewRun { conflict: IdConflict::TerminateExisting, ..new_run("order-1", "run-4") };
    let again = start(store, again).unwrap();
    assert_eq!((again.run, again.fresh, status(store, again.run)), (instead.run, false, Status::Open));
    assert_eq!(store.count(&Filter::default(), u64::MAX).unwrap(), 2);
}

/// A run that is replaced ends as any other does: its parent gets a message and its children are released. The answer
/// to the start names both.
pub fn a_start_says_whom_it_replaced_and_who_was_told(store: &dyn Store) {
    let first_turn = |new: NewRun| TurnWrite { run: TurnOf::New(Box::new(new)), ..turn(RunNo(0), 0) };
    let instead = |run_id| NewRun { conflict: IdConflict::TerminateExisting, ..new_run("order-1", run_id) };
    let fresh = start_with_effects(store, instead("run-1")).unwrap();
    assert_eq!(fresh.1, TurnWritten { run: fresh.0.run, ..TurnWritten::default() });
    let parent = owned(store, "parent", "run-2").run;
    let family = |replaced: RunNo, workflow_id, run_id, close| {
        let link = Some(Parent { run: replaced, seq: Seq(0), close });
        start(store, NewRun { parent: link, ..new_run(workflow_id, run_id) }).unwrap().run
    };
    let ended = family(fresh.0.run, "ended", "run-3", ParentClose::Terminate);
    let (second, effects) = start_with_effects(store, instead("run-4")).unwrap();
    assert_eq!((effects.run, closed(&effects)), (second.run, vec![fresh.0.run, ended]));
    assert_eq!((effects.sent, effects.started), (Vec::new(), Vec::new()));
    let close = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run: second.run, status: Status::Terminated, at: at(50), failure: close }).unwrap();
    let replaced = family(parent, "order-1", "run-5", ParentClose::Abandon);
    let asked = family(replaced, "asked", "run-6", ParentClose::RequestCancel);
    let written = commit(store, first_turn(instead("run-7"))).unwrap();
    let told: Vec<RunNo> = written.sent.iter().map(|sent| sent.run).collect();
    assert_eq!((closed(&written), told), (vec![replaced], vec![parent, asked]));
    assert_eq!(status(store, written.run), Status::Open);
    let taken = refused(commit(store, first_turn(new_run("order-1", "run-8"))));
    assert!(matches!(taken, Refused::InUse { .. }), "{taken:?}");
    assert_eq!((status(store, written.run), status(store, asked)), (Status::Open, Status::Open));
}

pub fn a_used_workflow_id_may_be_refused(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1");
    commit(
        store,
        TurnWrite { taken: run.message.into_iter().collect(), close: closing(Status::Completed), ..turn(run.run, 0) },
    )
    .unwrap();
    let again = |reuse, run_id| start(store, NewRun { reuse, ..new_run("order-1", run_id) });
    let used = refused(again(IdReuse::RejectDuplicate, "run-2"));
    assert!(matches!(used, Refused::Used { status: Status::Completed, .. }), "{used:?}");
    let used = refused(again(IdReuse::AllowDuplicateFailedOnly, "run-3"));
    assert!(matches!(used, Refused::Used { .. }), "{used:?}");
    let second = again(IdReuse::AllowDuplicate, "run-4").unwrap();
    own(store, second.run, Epoch::default(), FIRST).unwrap();
    commit(
        store,
        TurnWrite {
            taken: second.message.into_iter().collect(),
            close: closing(Status::Failed),
            ..turn(second.run, 0)
        },
    )
    .unwrap();
    assert!(again(IdReuse::AllowDuplicateFailedOnly, "run-5").unwrap().fresh);
}

pub fn the_same_request_starts_one_run(store: &dyn Store) {
    let request = |workflow_id, run_id| NewRun { request: Some("req-1".into()), ..new_run(workflow_id, run_id) };
    let first = start(store, request("order-1", "run-1")).unwrap();
    let again = start(store, request("order-1", "run-2")).unwrap();
    assert_eq!((again.run, again.fresh, again.run_id.as_str()), (first.run, false, "run-1"));
    assert_eq!(refused(start(store, request("order-2", "run-3"))), Refused::OtherRequest("req-1".into()));
    assert_eq!(store.count(&Filter::default(), u64::MAX).unwrap(), 1);
}

pub fn a_request_that_comes_again_with_another_input_is_refused(store: &dyn Store) {
    let request = |run_id, input: &'static str| {
        let begin = Job::Start(Box::new(Start {
            input: vec![input.into()],
            run_id: Name::from_static(run_id),
            ..Start::default()
        }));
        let start = to_stored(&begin);
        NewRun { request: Some("req-1".into()), start, ..new_run("order-1", run_id) }
    };
    let first = start(store, request("run-1", "three")).unwrap();
    let again = || start(store, request("run-2", "three")).map(|again| (again.run, again.fresh));
    assert_eq!(again(), Ok((first.run, false)));
    assert_eq!(refused(start(store, request("run-3", "four"))), Refused::OtherRequest("req-1".into()));
    own(store, first.run, Epoch::default(), FIRST).unwrap();
    commit(store, TurnWrite { taken: first.message.into_iter().collect(), ..turn(first.run, 0) }).unwrap();
    assert_eq!(again(), Ok((first.run, false)), "also when its start was taken");
    assert_eq!(refused(start(store, request("run-3", "four"))), Refused::OtherRequest("req-1".into()));
    assert_eq!(store.count(&Filter::default(), u64::MAX).unwrap(), 1);
}

pub fn open_runs_are_listed_with_their_workflows_oldest_first(store: &dyn Store) {
    let [first, second, third] =
        [("a", "r1", "kit"), ("b", "r2", "bag"), ("c", "r3", "kit")].map(|(id, run_id, workflow)| {
            start(store, NewRun { workflow: workflow.into(), ..new_run(id, run_id) }).unwrap().run
        });
    let rows =
        |all: &[(RunNo, &'static str)]| all.iter().map(|(no, name)| (*no, Name::from(*name))).collect::<Vec<_>>();
    assert_eq!(store.open_runs(None, 2).unwrap(), rows(&[(first, "kit"), (second, "bag")]));
    assert_eq!(store.open_runs(Some(second), 2).unwrap(), rows(&[(third, "kit")]));
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run: second, status: Status::Terminated, at: at(20), failure }).unwrap();
    assert_eq!(store.open_runs(None, 9).unwrap(), rows(&[(first, "kit"), (third, "kit")]));
}

pub fn runs_are_listed_newest_first_in_pages(store: &dyn Store) {
    for (place, (workflow_id, run_id)) in [("a", "r1"), ("b", "r2"), ("c", "r3"), ("d", "r4")].into_iter().enumerate() {
        let workflow = if place % 2 == 0 { "even" } else { "odd" };
        let started = at(10 * place as u64);
        start(store, NewRun { workflow: workflow.into(), started, ..new_run(workflow_id, run_id) }).unwrap();
    }
    let list = |filter: &Filter, before: Option<RunNo>, limit| {
        let rows = store.list(filter, before.map(Into::into), limit).unwrap();
        (rows.iter().map(|row| row.workflow_id.to_string()).collect::<Vec<_>>(), rows.last().map(|row| row.no))
    };
    let all = Filter::default();
    let (page, last) = list(&all, None, 3);
    assert_eq!(page, ["d", "c", "b"]);
    assert_eq!(list(&all, last, 3).0, ["a"]);
    let numbers: Vec<RunNo> = store.list(&all, None, 9).unwrap().iter().map(|row| row.no).collect();
    assert_eq!(
        (store.numbers(None, 3).unwrap(), store.numbers(last, 3).unwrap()),
        (numbers[..3].into(), numbers[3..].into())
    );
    let odd = Filter { workflow: Some("odd".into()), ..Filter::default() };
    assert_eq!(
        (list(&odd, None, 9).0, store.count(&odd, u64::MAX).unwrap()),
        (vec!["d".to_owned(), "b".to_owned()], 2)
    );
    let between = Filter { started_from: Some(at(10)), started_before: Some(at(30)), ..Filter::default() };
    assert_eq!(list(&between, None, 9).0, ["c", "b"]);
    let closed = Filter { status: Some(Status::Failed), ..Filter::default() };
    assert_eq!(store.count(&closed, u64::MAX).unwrap(), 0);
    let one = Filter { workflow_id: Some("a".into()), ..Filter::default() };
    assert_eq!(list(&one, None, 9).0, ["a"]);
}

/// In builds with debug assertions the lock order shows it: a lock of the lowest rank can be taken only while no other
/// is held.
pub fn commit_callback_runs_while_the_store_holds_no_lock(store: &dyn Store) {
    let (told, answers) = mpsc::channel();
    // The second start is refused, and its callback is called as well.
    for run_id in ["run-1", "run-2"] {
        let told = told.clone();
        let done = move |written: Result<Written, StoreError>| {
            drop(dacapo_sync::Mutex::new(dacapo_sync::Rank::new(0, "test: lowest"), ()).lock());
            told.send(written.is_ok()).expect("the test waits");
        };
        store.submit(Write::Start(Box::new(new_run("order-1", run_id))), Box::new(done));
    }
    drop(told);
    assert_eq!(answers.iter().collect::<Vec<_>>(), [true, false]);
}
