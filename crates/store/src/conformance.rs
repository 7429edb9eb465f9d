//! The suite that every store must pass. A store's tests say `conformance_tests!(make a store)`.

mod delete;
mod import;
mod mail;
mod reset;
mod retention;
mod strikes;

use std::ops::ControlFlow;
use std::sync::mpsc;

use dacapo_core::{
    Failure, FailureKind, IdReuse, Job, Name, ParentClose, Resolution, Seq, Start, Started, Target, Timestamp,
};

use crate::{
    AttemptWrite, Belongings, Closing, Conflict, Epoch, ImportWrite, MailNo, NewMail, NewRun, NewTask, NodeNo, Parent,
    Refused, RunFilter, RunNo, RunRow, Send, StartedRun, Status, Store, StoreError, Strikes, Stuck, TaskNo, TaskRow,
    TimerKind, TimerRow, TurnOf, TurnWrite, TurnWritten, Write, Written,
};

pub use delete::{
    a_closed_run_is_deleted_at_once_and_what_is_left_of_it_step_by_step,
    a_closed_run_of_another_store_is_added_as_it_is, a_number_is_given_once_whatever_is_deleted,
    a_run_that_is_added_again_takes_no_place_of_what_is_left_of_it, an_open_run_cannot_be_deleted,
    the_parent_of_a_run_may_be_deleted_before_it,
};
pub use import::{
    runs_of_another_store_stand_in_the_order_of_their_starts, what_belongs_to_a_run_goes_with_it_to_another_store,
};
pub use mail::{
    a_request_is_known_to_the_whole_chain, mail_is_settled_without_a_turn, mail_is_taken_once,
    mail_that_ends_a_task_is_in_with_the_task_s_end,
};
pub use reset::{
    a_closed_run_can_be_reset_and_stays_as_it_is, a_reset_that_is_refused_changes_nothing,
    a_run_that_is_reset_goes_on_as_another_with_the_turns_that_are_kept, a_run_that_moved_on_is_not_reset_as_planned,
    children_of_a_run_that_is_reset_are_kept_or_released, mail_that_waits_goes_to_the_run_that_takes_its_place,
    the_same_request_resets_once,
};
pub use strikes::{
    strikes_of_a_run_end_with_its_next_turn, tasks_and_runs_are_struck_together,
    what_is_held_against_a_run_outlives_its_end,
};

pub use retention::{
    a_step_takes_small_runs_together_and_large_records_apart, runs_that_closed_too_long_ago_go_together,
};

/// One test for each rule of the suite, over a store that the expression makes.
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        $crate::conformance_tests! { $make;
            a_started_run_is_open_and_its_start_waits_as_mail
            a_turn_is_committed_once_and_only_as_the_next
            a_node_that_has_lost_its_run_cannot_commit
            a_lost_acknowledgement_is_answered_when_the_same_turn_comes_again
            a_run_may_start_with_its_first_turn
            an_open_workflow_id_belongs_to_one_run
            a_start_says_whom_it_replaced_and_who_was_told
            a_used_workflow_id_may_be_refused
            the_same_request_starts_one_run
            a_request_that_comes_again_with_another_input_is_refused
            mail_of_one_key_is_kept_once_until_a_turn_takes_it
            mail_that_ends_a_task_is_in_with_the_task_s_end
            mail_is_settled_without_a_turn
            a_request_is_known_to_the_whole_chain
            a_run_with_unseen_mail_cannot_close
            a_closed_run_takes_nothing_more
            a_parent_is_told_of_its_child
            children_end_with_their_parent_as_agreed
            mail_to_other_runs_arrives_or_its_sender_is_told
            tasks_live_until_their_turn_ends_them
            timers_are_due_in_order
            a_run_continues_under_its_id
            a_run_that_is_reset_goes_on_as_another_with_the_turns_that_are_kept
            a_closed_run_can_be_reset_and_stays_as_it_is
            a_run_that_moved_on_is_not_reset_as_planned
            mail_is_taken_once
            mail_that_waits_goes_to_the_run_that_takes_its_place
            children_of_a_run_that_is_reset_are_kept_or_released
            a_reset_that_is_refused_changes_nothing
            the_same_request_resets_once
            a_stuck_run_says_why
            what_is_left_of_a_closed_run_can_be_removed
            a_stuck_run_goes_on_with_its_next_turn
            strikes_of_a_run_end_with_its_next_turn
            what_is_held_against_a_run_outlives_its_end
            tasks_and_runs_are_struck_together
            runs_are_listed_newest_first_in_pages
            a_closed_run_is_deleted_at_once_and_what_is_left_of_it_step_by_step
            a_closed_run_of_another_store_is_added_as_it_is
            runs_of_another_store_stand_in_the_order_of_their_starts
            what_belongs_to_a_run_goes_with_it_to_another_store
            a_step_takes_small_runs_together_and_large_records_apart
            runs_that_closed_too_long_ago_go_together
            an_open_run_cannot_be_deleted
            a_number_is_given_once_whatever_is_deleted
            a_run_that_is_added_again_takes_no_place_of_what_is_left_of_it
            the_parent_of_a_run_may_be_deleted_before_it
        }
    };
    ($make:expr; $($rule:ident)*) => {
        $(
            #[test]
            fn $rule() {
                $crate::conformance::$rule(&$make);
            }
        )*
    };
}

const NODE: NodeNo = NodeNo(1);
const FIRST: Epoch = Epoch(1);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn write(store: &dyn Store, write: Write) -> Result<Written, StoreError> {
    let (told, answer) = mpsc::channel();
    store.submit(write, Box::new(move |written| told.send(written).expect("somebody waits")));
    answer.recv().expect("every write is answered")
}

fn new_run(workflow_id: &'static str, run_id: &'static str) -> NewRun {
    NewRun {
        run_id: run_id.into(),
        workflow_id: workflow_id.into(),
        workflow: "kit".into(),
        queue: "main".into(),
        started: at(1),
        pins: vec![1],
        start: vec![2],
        parent: None,
        first_run_id: Name::default(),
        reuse: IdReuse::AllowDuplicate,
        conflict: Conflict::Fail,
        request: None,
        timers: Vec::new(),
        memo: Vec::new(),
        attributes: Vec::new(),
    }
}

fn start(store: &dyn Store, new: NewRun) -> Result<StartedRun, StoreError> {
    Ok(start_with_effects(store, new)?.0)
}

fn start_with_effects(store: &dyn Store, new: NewRun) -> Result<(StartedRun, TurnWritten), StoreError> {
    match write(store, Write::Start(Box::new(new)))? {
        Written::Started { run, effects } => Ok((run, *effects)),
        other => panic!("a start was answered with {other:?}"),
    }
}

/// The first activity of a turn.
fn task() -> NewTask {
    NewTask { seq: Seq(0), queue: "main".into(), ready: at(0), priority: 0, position: 0 }
}

/// A run that this node owns.
fn owned(store: &dyn Store, workflow_id: &'static str, run_id: &'static str) -> StartedRun {
    let started = start(store, new_run(workflow_id, run_id)).expect("the id is free");
    own(store, started.run, Epoch::default(), FIRST).expect("nobody has it");
    started
}

fn own(store: &dyn Store, run: RunNo, seen: Epoch, epoch: Epoch) -> Result<Written, StoreError> {
    write(store, Write::Own { run, seen, node: NODE, epoch })
}

fn turn(run: RunNo, number: u64) -> TurnWrite {
    TurnWrite {
        node: NODE,
        epoch: FIRST,
        ..TurnWrite::new(TurnOf::Run(run), number, at(10 + number), vec![number as u8])
    }
}

fn closing(status: Status) -> Option<Closing> {
    Some(Closing { status, result: vec![9], to_parent: None, next: None, carried: Vec::new() })
}

fn commit(store: &dyn Store, turn: TurnWrite) -> Result<TurnWritten, StoreError> {
    match write(store, Write::Turn(Box::new(turn)))? {
        Written::Turn(written) => Ok(*written),
        other => panic!("a turn was answered with {other:?}"),
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Refused {
    match result {
        Err(StoreError::Refused(refused)) => refused,
        other => panic!("{other:?} is no refusal"),
    }
}

fn records(store: &dyn Store, run: RunNo) -> Vec<(u64, Vec<u8>)> {
    let mut records = Vec::new();
    let mut show = |turn: u64, record: &[u8]| {
        records.push((turn, record.to_vec()));
        ControlFlow::Continue(())
    };
    store.turns(run, 0, &mut show).expect("a history can be read");
    records
}

fn status(store: &dyn Store, run: RunNo) -> Status {
    store.run(run).expect("a run can be read").expect("the run is there").status
}

fn jobs(store: &dyn Store, run: RunNo) -> Vec<Job> {
    let mail = store.unseen(run).expect("mail can be read");
    mail.iter().filter_map(|mail| minicbor::decode(&mail.job).ok()).collect()
}

pub fn a_started_run_is_open_and_its_start_waits_as_mail(store: &dyn Store) {
    let started = start(store, new_run("order-1", "run-1")).unwrap();
    assert!(started.fresh);
    let row = store.find("order-1", None).unwrap().unwrap();
    assert_eq!((row.no, row.status, row.turns, row.owner), (started.run, Status::Open, 0, None));
    assert_eq!((row.run_id.as_str(), row.first_run_id.as_str()), ("run-1", "run-1"));
    let mail = store.unseen(started.run).unwrap();
    assert_eq!((mail.len(), mail[0].key.as_str(), mail[0].job.clone()), (1, "start", vec![2]));
    assert_eq!(store.with_unseen_mail(10).unwrap(), [started.run]);
    assert_eq!(store.find("order-2", None).unwrap(), None);
}

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
    assert_eq!(store.count(&RunFilter::default()).unwrap(), 1);
}

pub fn an_open_workflow_id_belongs_to_one_run(store: &dyn Store) {
    let first = owned(store, "order-1", "run-1").run;
    let taken = refused(start(store, new_run("order-1", "run-2")));
    assert!(matches!(taken, Refused::InUse { ref run_id, .. } if run_id.as_str() == "run-1"), "{taken:?}");
    let existing = NewRun { conflict: Conflict::UseExisting, ..new_run("order-1", "run-3") };
    let existing = start(store, existing).unwrap();
    assert_eq!((existing.run, existing.fresh), (first, false));
    let instead = NewRun { conflict: Conflict::TerminateExisting, ..new_run("order-1", "run-4") };
    let instead = start(store, instead).unwrap();
    assert_eq!((status(store, first), status(store, instead.run)), (Status::Terminated, Status::Open));
    assert_eq!(store.count(&RunFilter::default()).unwrap(), 2);
}

/// A run that is replaced ends as any other does: its parent is told, its children are released, and whoever replaced it
/// learns of both.
pub fn a_start_says_whom_it_replaced_and_who_was_told(store: &dyn Store) {
    let first_turn = |new: NewRun| TurnWrite { run: TurnOf::New(Box::new(new)), ..turn(RunNo(0), 0) };
    let instead = |run_id| NewRun { conflict: Conflict::TerminateExisting, ..new_run("order-1", run_id) };
    let fresh = start_with_effects(store, instead("run-1")).unwrap();
    assert_eq!(fresh.1, TurnWritten { run: fresh.0.run, ..TurnWritten::default() });
    let parent = owned(store, "parent", "run-2").run;
    let family = |replaced: RunNo, workflow_id, run_id, close| {
        let link = Some(Parent { run: replaced, seq: Seq(0), close });
        start(store, NewRun { parent: link, ..new_run(workflow_id, run_id) }).unwrap().run
    };
    let ended = family(fresh.0.run, "ended", "run-3", ParentClose::Terminate);
    let (second, effects) = start_with_effects(store, instead("run-4")).unwrap();
    assert_eq!((effects.run, effects.closed), (second.run, vec![fresh.0.run, ended]));
    assert_eq!((effects.posted, effects.started), (Vec::new(), Vec::new()));
    let close = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    write(store, Write::Close { run: second.run, status: Status::Terminated, at: at(50), failure: close }).unwrap();
    let replaced = family(parent, "order-1", "run-5", ParentClose::Abandon);
    let asked = family(replaced, "asked", "run-6", ParentClose::RequestCancel);
    let written = commit(store, first_turn(instead("run-7"))).unwrap();
    let told: Vec<RunNo> = written.posted.iter().map(|posted| posted.run).collect();
    assert_eq!((written.closed, told), (vec![replaced], vec![parent, asked]));
    assert_eq!(status(store, written.run), Status::Open);
    let taken = refused(commit(store, first_turn(new_run("order-1", "run-8"))));
    assert!(matches!(taken, Refused::InUse { .. }), "{taken:?}");
    assert_eq!((status(store, written.run), status(store, asked)), (Status::Open, Status::Open));
}

pub fn a_used_workflow_id_may_be_refused(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1");
    commit(
        store,
        TurnWrite { taken: run.mail.into_iter().collect(), close: closing(Status::Completed), ..turn(run.run, 0) },
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
        TurnWrite { taken: second.mail.into_iter().collect(), close: closing(Status::Failed), ..turn(second.run, 0) },
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
    assert_eq!(store.count(&RunFilter::default()).unwrap(), 1);
}

pub fn a_request_that_comes_again_with_another_input_is_refused(store: &dyn Store) {
    let request = |run_id, input: &'static str| {
        let begin = Job::Start(Box::new(Start {
            input: vec![input.into()],
            run_id: Name::from_static(run_id),
            ..Start::default()
        }));
        let start = minicbor::to_vec(begin).expect("writing to memory cannot fail");
        NewRun { request: Some("req-1".into()), start, ..new_run("order-1", run_id) }
    };
    let first = start(store, request("run-1", "three")).unwrap();
    let again = || start(store, request("run-2", "three")).map(|again| (again.run, again.fresh));
    assert_eq!(again(), Ok((first.run, false)));
    assert_eq!(refused(start(store, request("run-3", "four"))), Refused::OtherRequest("req-1".into()));
    own(store, first.run, Epoch::default(), FIRST).unwrap();
    commit(store, TurnWrite { taken: first.mail.into_iter().collect(), ..turn(first.run, 0) }).unwrap();
    assert_eq!(again(), Ok((first.run, false)), "also when its start was taken");
    assert_eq!(refused(start(store, request("run-3", "four"))), Refused::OtherRequest("req-1".into()));
    assert_eq!(store.count(&RunFilter::default()).unwrap(), 1);
}

pub fn mail_of_one_key_is_kept_once_until_a_turn_takes_it(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let run = started.run;
    let post = |key: &'static str, job: u8| {
        let mail = NewMail { key: key.into(), sent: at(2), job: vec![job] };
        match write(store, Write::Post { run, mail, ended: None }).unwrap() {
            Written::Posted(posted) => posted,
            other => panic!("mail was answered with {other:?}"),
        }
    };
    let first = post("signal-1", 7);
    assert!(first.fresh);
    let again = post("signal-1", 8);
    assert_eq!((again.no, again.fresh), (first.no, false));
    let taken: Vec<MailNo> = started.mail.into_iter().chain([first.no]).collect();
    commit(store, TurnWrite { taken, outcomes: vec![("signal-1".into(), vec![5])], ..turn(run, 0) }).unwrap();
    assert_eq!((store.unseen(run).unwrap(), store.with_unseen_mail(10).unwrap()), (Vec::new(), Vec::new()));
    let row = store.mail(run, "signal-1").unwrap().unwrap();
    assert_eq!((row.job, row.taken, row.outcome), (vec![7], Some(0), Some(vec![5])));
    assert!(!post("signal-1", 1).fresh, "mail that was taken is known by its key");
}

pub fn a_run_with_unseen_mail_cannot_close(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let last = TurnWrite { close: closing(Status::Completed), ..turn(started.run, 0) };
    assert_eq!(refused(commit(store, last.clone())), Refused::UnseenMail);
    assert_eq!((status(store, started.run), records(store, started.run)), (Status::Open, Vec::new()));
    commit(store, TurnWrite { taken: started.mail.into_iter().collect(), ..last }).unwrap();
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
    let mail = NewMail { key: "late".into(), sent: at(51), job: Vec::new() };
    assert_eq!(refused(write(store, Write::Post { run, mail, ended: None })), closed);
    assert_eq!(refused(own(store, run, FIRST, Epoch(2))), closed);
    assert_eq!(records(store, run).len(), 1);
}

fn child(run: RunNo, seq: u64, workflow_id: &'static str, run_id: &'static str, close: ParentClose) -> (Seq, NewRun) {
    let parent = Some(Parent { run, seq: Seq(seq), close });
    (Seq(seq), NewRun { parent, ..new_run(workflow_id, run_id) })
}

pub fn a_parent_is_told_of_its_child(store: &dyn Store) {
    let parent = owned(store, "parent", "run-1");
    let run = parent.run;
    owned(store, "taken", "run-2");
    let children = vec![
        child(run, 0, "child", "run-3", ParentClose::Abandon),
        child(run, 1, "taken", "run-4", ParentClose::Abandon),
    ];
    let taken = parent.mail.into_iter().collect();
    let written = commit(store, TurnWrite { taken, children, ..turn(run, 0) }).unwrap();
    assert_eq!(written.started.len(), 1);
    let told = jobs(store, run);
    assert_eq!(
        told[0],
        Job::Resolve { seq: Seq(0), resolution: Resolution::ChildStarted(Started::As("run-3".into())) }
    );
    assert!(
        matches!(&told[1], Job::Resolve { seq: Seq(1), resolution: Resolution::ChildStarted(Started::Failed(_)) }),
        "{told:?}"
    );
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    let child = written.started[0].run;
    write(store, Write::Close { run: child, status: Status::Terminated, at: at(50), failure }).unwrap();
    assert!(
        matches!(jobs(store, run).last(), Some(Job::Resolve { seq: Seq(0), resolution: Resolution::Child(_) })),
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
    let taken = parent.mail.into_iter().collect();
    let started = commit(store, TurnWrite { taken, children, ..turn(run, 0) }).unwrap().started;
    let taken = store.unseen(run).unwrap().iter().map(|mail| mail.no).collect();
    commit(store, TurnWrite { taken, close: closing(Status::Completed), ..turn(run, 1) }).unwrap();
    let statuses: Vec<Status> = started.iter().map(|child| status(store, child.run)).collect();
    assert_eq!(statuses, [Status::Terminated, Status::Open, Status::Open]);
    assert!(jobs(store, started[2].run).contains(&Job::Cancel { reason: "the parent closed".to_owned() }));
    assert!(!jobs(store, started[1].run).iter().any(|job| matches!(job, Job::Cancel { .. })));
}

pub fn mail_to_other_runs_arrives_or_its_sender_is_told(store: &dyn Store) {
    let sender = owned(store, "sender", "run-1");
    let other = owned(store, "other", "run-2").run;
    let send = |seq, to: &'static str| Send {
        seq: (seq < 2).then_some(Seq(seq)),
        is_cancel: false,
        to: Target::workflow(to),
        mail: NewMail { key: format!("from-{seq}").into(), sent: at(2), job: vec![1] },
    };
    let taken = sender.mail.into_iter().collect();
    commit(
        store,
        TurnWrite { taken, sends: vec![send(0, "other"), send(1, "nobody"), send(2, "nobody")], ..turn(sender.run, 0) },
    )
    .unwrap();
    assert!(store.mail(other, "from-0").unwrap().is_some());
    let told = jobs(store, sender.run);
    let delivered = Resolution::SignalExternal { failure: None };
    assert_eq!(told[0], Job::Resolve { seq: Seq(0), resolution: delivered });
    let lost = |job: &Job| match job {
        Job::Resolve { seq: Seq(1), resolution: Resolution::SignalExternal { failure } } => failure.is_some(),
        _ => false,
    };
    assert!(lost(&told[1]), "{told:?}");
    assert_eq!(told.len(), 2, "whoever does not want to know is not told");
}

pub fn tasks_live_until_their_turn_ends_them(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let task = |seq, queue: &'static str| NewTask {
        seq: Seq(seq),
        queue: queue.into(),
        ready: at(3),
        priority: -1,
        position: seq as u32,
    };
    let written = commit(store, TurnWrite { tasks: vec![task(0, "main"), task(1, "other")], ..turn(run, 0) }).unwrap();
    let rows = store.tasks(&["main".into()], 0, 10).unwrap();
    assert_eq!((rows.len(), rows[0].no, rows[0].run, rows[0].seq), (1, written.tasks[0], run, Seq(0)));
    assert_eq!((rows[0].attempt, rows[0].priority, rows[0].turn, rows[0].position), (1, -1, 0, 0));
    let attempt = AttemptWrite {
        task: written.tasks[0],
        attempt: 2,
        ready: at(9),
        holder: Some(NODE),
        strikes: 1,
        outside: Some(at(8)),
        failure: Some(vec![4]),
        details: Some(vec![5]),
    };
    write(store, Write::Attempt(Box::new(attempt.clone()))).unwrap();
    let row = store.tasks_of(run).unwrap().remove(0);
    assert_eq!(store.task(row.no).unwrap().as_ref(), Some(&row));
    assert_eq!((row.attempt, row.ready, row.holder, row.strikes), (2, at(9), Some(NODE), 1));
    assert_eq!((row.failure, row.details), (Some(vec![4]), Some(vec![5])));
    assert_eq!(row.outside, Some(at(8)), "somebody outside completes it");
    let retried = AttemptWrite { attempt: 3, outside: None, ..attempt.clone() };
    write(store, Write::Attempt(Box::new(retried))).unwrap();
    let row = store.tasks_of(run).unwrap().remove(0);
    assert_eq!((row.attempt, row.outside), (3, None), "the next attempt is to be made");
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

pub fn a_run_continues_under_its_id(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let next = Some(Box::new(NewRun { first_run_id: "run-1".into(), ..new_run("order-1", "run-2") }));
    let carried = vec![NewMail { key: "carried:0".into(), sent: at(2), job: vec![7] }];
    let close = Some(Closing { status: Status::ContinuedAsNew, result: Vec::new(), to_parent: None, next, carried });
    let taken = started.mail.into_iter().collect();
    let written = commit(store, TurnWrite { taken, close, ..turn(started.run, 0) }).unwrap();
    assert_eq!(status(store, started.run), Status::ContinuedAsNew);
    let row = store.find("order-1", None).unwrap().unwrap();
    assert_eq!((row.no, row.run_id.as_str(), row.first_run_id.as_str()), (written.started[0].run, "run-2", "run-1"));
    let keys: Vec<Name> = store.unseen(row.no).unwrap().into_iter().map(|mail| mail.key).collect();
    assert_eq!(keys, ["start", "carried:0"], "what the first run did not take waits behind the start");
    let first = store.find("order-1", Some("run-1")).unwrap().unwrap();
    assert_eq!(first.no, started.run);
}

pub fn what_is_left_of_a_closed_run_can_be_removed(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let (run, taken) = (started.run, started.mail.into_iter().collect());
    let task = NewTask { seq: Seq(0), queue: "main".into(), ready: at(3), priority: 0, position: 0 };
    let timer = (at(9), TimerKind::RunTimeout);
    let written = commit(store, TurnWrite { tasks: vec![task], timers: vec![timer], taken, ..turn(run, 0) }).unwrap();
    let forget = || Write::Forget { run, tasks: written.tasks.clone(), timers: vec![timer] };
    assert_eq!(write(store, forget()).unwrap_err(), Refused::Open.into());
    assert_eq!((store.tasks_of(run).unwrap().len(), store.next_due().unwrap()), (1, Some(at(9))));
    commit(store, TurnWrite { close: closing(Status::Completed), ..turn(run, 1) }).unwrap();
    write(store, forget()).unwrap();
    assert_eq!((store.tasks_of(run).unwrap().len(), store.next_due().unwrap()), (0, None));
}

pub fn a_stuck_run_says_why(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let stuck = Stuck { reason: "nondeterminism".to_owned(), since: at(3), attempts: 2, retry: at(9) };
    let park = |stuck, epoch| write(store, Write::Park { run, epoch, stuck });
    park(Some(stuck.clone()), FIRST).unwrap();
    let filter = RunFilter { stuck: true, ..RunFilter::default() };
    assert_eq!(store.list(&filter, None, 10).unwrap()[0].stuck, Some(stuck));
    assert_eq!(refused(park(None, Epoch(7))), Refused::Fenced { turns: 0, epoch: FIRST });
    park(None, FIRST).unwrap();
    assert_eq!(store.count(&filter).unwrap(), 0);
}

pub fn a_stuck_run_goes_on_with_its_next_turn(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let stuck = Stuck { reason: "nondeterminism".to_owned(), since: at(3), attempts: 2, retry: at(9) };
    write(store, Write::Park { run, epoch: FIRST, stuck: Some(stuck.clone()) }).unwrap();
    assert_eq!(refused(commit(store, turn(run, 1))), Refused::Fenced { turns: 0, epoch: FIRST });
    assert_eq!(store.run(run).unwrap().unwrap().stuck, Some(stuck));
    commit(store, turn(run, 0)).unwrap();
    assert_eq!(store.run(run).unwrap().unwrap().stuck, None);
    assert_eq!(store.count(&RunFilter { stuck: true, ..RunFilter::default() }).unwrap(), 0);
}

pub fn runs_are_listed_newest_first_in_pages(store: &dyn Store) {
    for (place, (workflow_id, run_id)) in [("a", "r1"), ("b", "r2"), ("c", "r3"), ("d", "r4")].into_iter().enumerate() {
        let workflow = if place % 2 == 0 { "even" } else { "odd" };
        let started = at(10 * place as u64);
        start(store, NewRun { workflow: workflow.into(), started, ..new_run(workflow_id, run_id) }).unwrap();
    }
    let list = |filter: &RunFilter, before, limit| {
        let rows = store.list(filter, before, limit).unwrap();
        (rows.iter().map(|row| row.workflow_id.to_string()).collect::<Vec<_>>(), rows.last().map(|row| row.no))
    };
    let all = RunFilter::default();
    let (page, last) = list(&all, None, 3);
    assert_eq!(page, ["d", "c", "b"]);
    assert_eq!(list(&all, last, 3).0, ["a"]);
    let numbers: Vec<RunNo> = store.list(&all, None, 9).unwrap().iter().map(|row| row.no).collect();
    assert_eq!(
        (store.numbers(None, 3).unwrap(), store.numbers(last, 3).unwrap()),
        (numbers[..3].into(), numbers[3..].into())
    );
    let odd = RunFilter { workflow: Some("odd".into()), ..RunFilter::default() };
    assert_eq!((list(&odd, None, 9).0, store.count(&odd).unwrap()), (vec!["d".to_owned(), "b".to_owned()], 2));
    let between = RunFilter { started_from: Some(at(10)), started_before: Some(at(30)), ..RunFilter::default() };
    assert_eq!(list(&between, None, 9).0, ["c", "b"]);
    let closed = RunFilter { status: Some(Status::Failed), ..RunFilter::default() };
    assert_eq!(store.count(&closed).unwrap(), 0);
    let one = RunFilter { workflow_id: Some("a".into()), ..RunFilter::default() };
    assert_eq!(list(&one, None, 9).0, ["a"]);
}
