//! Reset: a new run starts from a point of another run's history.

use dacapo_core::{Outcome, from_stored};

use super::*;
use crate::ResetWrite;

fn task(seq: u64) -> NewTask {
    NewTask { seq: Seq(seq), queue: "main".into(), ready: at(0), priority: 0, position: seq as u32, offered: false }
}

/// Makes a write that resets "order-1" as this run.
fn again(from: RunNo, keep: u64, run_id: &'static str) -> ResetWrite {
    ResetWrite {
        turns: 0,
        from,
        keep,
        new: NewRun { first_run_id: "run-1".into(), ..new_run("order-1", run_id) },
        at: at(60),
        tasks: Vec::new(),
        messages: Vec::new(),
        taken: Vec::new(),
        children: Vec::new(),
        failure: Box::new(Failure::new(FailureKind::Terminated, "reset")),
    }
}

/// Resets a run at its current turn number.
fn reset(store: &dyn Store, reset: ResetWrite) -> Result<TurnWritten, StoreError> {
    let turns = store.run(reset.from).unwrap().map_or(0, |row| row.turns);
    reset_as_planned(store, ResetWrite { turns, ..reset })
}

fn reset_as_planned(store: &dyn Store, reset: ResetWrite) -> Result<TurnWritten, StoreError> {
    match write(store, Write::Reset(Box::new(reset)))? {
        Written::Turn(written) => Ok(*written),
        other => panic!("a reset was answered with {other:?}"),
    }
}

/// Makes "order-1", owned, with a parent that waits for it and three turns, the last of which made a task.
fn played(store: &dyn Store) -> (RunNo, Parent) {
    let parent = Parent { run: owned(store, "parent", "run-0").run, seq: Seq(4), close: ParentClose::Abandon };
    let new = NewRun { parent: Some(parent.clone()), ..new_run("order-1", "run-1") };
    let started = start(store, new).unwrap();
    let run = started.run;
    own(store, run, Epoch::default(), FIRST).unwrap();
    commit(store, TurnWrite { taken: started.message.into_iter().collect(), ..turn(run, 0) }).unwrap();
    commit(store, turn(run, 1)).unwrap();
    commit(store, TurnWrite { tasks: vec![task(9)], ..turn(run, 2) }).unwrap();
    (run, parent)
}

pub fn a_run_that_is_reset_goes_on_as_another_with_the_turns_that_are_kept(store: &dyn Store) {
    let (old, parent) = played(store);
    let waiting = store.unseen(parent.run).unwrap();
    let mut write = again(old, 2, "run-2");
    write.new.timers = vec![(at(90), TimerKind::RunTimeout)];
    write.tasks = vec![(1, task(5)), (0, task(3))];
    write.messages = vec![NewMessage { key: "signal-1".into(), sent: at(3), job: vec![8] }];
    let written = reset(store, write).unwrap();
    let run = written.run;
    let row = store.run(run).unwrap().unwrap();
    assert_eq!((row.status, row.turns, row.owner, row.epoch), (Status::Open, 2, None, Epoch::default()));
    assert_eq!((row.run_id.as_str(), row.first_run_id.as_str(), row.parent), ("run-2", "run-1", Some(parent.clone())));
    assert_eq!(records(store, run), [(0, vec![0]), (1, vec![1])]);
    let tasks: Vec<_> = store.tasks_of(run).unwrap().iter().map(|task| (task.no, task.turn, task.seq)).collect();
    assert_eq!(tasks, [(written.tasks[0], 1, Seq(5)), (written.tasks[1], 0, Seq(3))]);
    let messages: Vec<_> =
        store.unseen(run).unwrap().into_iter().map(|message| (message.no, message.key, message.job)).collect();
    assert_eq!(messages, [(written.sent[0].no, "signal-1".into(), vec![8])]);
    assert_eq!((written.sent[0].run, written.sent.len(), written.started.clone()), (run, 1, Vec::new()));
    assert_eq!(store.next_due().unwrap(), Some(at(90)));

    let ended = store.run(old).unwrap().unwrap();
    assert_eq!((ended.status, ended.closed, ended.owner), (Status::Terminated, Some(at(60)), None));
    let failure = Box::new(Failure::new(FailureKind::Terminated, "reset"));
    let result: Outcome = from_stored(&ended.result.unwrap()).unwrap();
    assert_eq!((result, closed(&written)), (Outcome::Failed(failure), vec![old]));
    assert_eq!((records(store, old).len(), store.tasks_of(old).unwrap()), (3, Vec::new()));
    assert_eq!(store.unseen(parent.run).unwrap(), waiting);

    own(store, run, Epoch::default(), FIRST).unwrap();
    commit(store, turn(run, 2)).unwrap();
    assert_eq!((records(store, run).len(), store.find("order-1", None).unwrap().unwrap().no), (3, run));
}

/// The parent of a closed run has its answer, so the new run has no parent.
pub fn a_closed_run_can_be_reset_and_stays_as_it_is(store: &dyn Store) {
    let (old, parent) = played(store);
    let (_, left) = child(old, 7, "left", "run-7", ParentClose::RequestCancel);
    let left = start(store, left).unwrap().run;
    let (_, kept) = child(old, 8, "kept", "run-8", ParentClose::Abandon);
    let kept = start(store, kept).unwrap().run;
    commit(store, TurnWrite { close: closing(Status::Completed), ..turn(old, 3) }).unwrap();
    let before = (store.run(old).unwrap(), store.unseen(parent.run).unwrap(), store.unseen(left).unwrap());
    let written = reset(store, ResetWrite { children: vec![Seq(8)], ..again(old, 4, "run-2") }).unwrap();
    assert_eq!(written, TurnWritten { run: written.run, ..TurnWritten::default() });
    assert_eq!((store.run(old).unwrap(), store.unseen(parent.run).unwrap(), store.unseen(left).unwrap()), before);
    let parent = |child| store.run(child).unwrap().unwrap().parent.unwrap().run;
    assert_eq!((parent(left), parent(kept)), (old, written.run));
    let row = store.run(written.run).unwrap().unwrap();
    assert_eq!((row.status, row.turns, row.parent), (Status::Open, 4, None));
    assert_eq!((records(store, row.no), store.unseen(row.no).unwrap()), (records(store, old), Vec::new()));
}

pub fn children_of_a_run_that_is_reset_are_kept_or_released(store: &dyn Store) {
    let (old, _) = played(store);
    let family = [
        (0, "kept", "run-2", ParentClose::Terminate),
        (1, "ended", "run-3", ParentClose::Terminate),
        (2, "asked", "run-4", ParentClose::RequestCancel),
        (3, "over", "run-5", ParentClose::Terminate),
    ];
    let family = family.map(|(seq, workflow_id, run_id, close)| {
        let (_, child) = child(old, seq, workflow_id, run_id, close);
        start(store, child).unwrap().run
    });
    let [kept, ended, asked, over] = family;
    let enough = || Box::new(Failure::new(FailureKind::Terminated, "enough"));
    let close = |run| write(store, Write::Close { run, status: Status::Terminated, at: at(50), failure: enough() });
    close(over).unwrap();
    let written = reset(store, ResetWrite { children: vec![Seq(0), Seq(3)], ..again(old, 1, "run-6") }).unwrap();
    let statuses = family.map(|child| status(store, child));
    assert_eq!(statuses, [Status::Open, Status::Terminated, Status::Open, Status::Terminated]);
    assert_eq!(closed(&written), [old, ended]);
    assert_eq!(written.sent.iter().map(|sent| sent.run).collect::<Vec<_>>(), [asked]);
    let parent = |child| store.run(child).unwrap().unwrap().parent.unwrap();
    let new = Parent { run: written.run, seq: Seq(0), close: ParentClose::Terminate };
    assert_eq!((parent(kept), parent(over).run, parent(asked).run), (new, old, old));
    close(kept).unwrap();
    let told = jobs(store, written.run);
    // The message that the old run had not taken, then the child's result.
    assert!(matches!(told[..], [_, Job::Resolve { seq: Seq(0), resolution: Resolution::Child(_), .. }]), "{told:?}");
}

pub fn a_reset_that_is_refused_changes_nothing(store: &dyn Store) {
    let (old, _) = played(store);
    let (_, kept) = child(old, 0, "kept", "run-7", ParentClose::Terminate);
    let kept = start(store, kept).unwrap().run;
    let rows = || {
        let runs = store.list(&Filter::default(), None, 10).unwrap();
        (runs, store.tasks_of(old).unwrap(), store.unseen(kept).unwrap())
    };
    let before = rows();
    let full = |from, keep| ResetWrite {
        tasks: vec![(0, task(5))],
        messages: vec![NewMessage { key: "signal-1".into(), sent: at(3), job: vec![8] }],
        children: vec![Seq(0)],
        ..again(from, keep, "run-2")
    };
    assert_eq!(refused(reset(store, full(RunNo(999), 1))), Refused::NoSuchRun);
    assert_eq!(refused(reset(store, full(old, 0))), Refused::NoSuchTurn { turn: 0, turns: 3 });
    let beyond = refused(reset(store, full(old, 4)));
    assert_eq!(beyond, Refused::NoSuchTurn { turn: 4, turns: 3 });
    assert!(beyond.to_string().contains("from 1 to 3"), "{beyond}");
    assert_eq!(refused(reset(store, full(kept, 1))), Refused::NoSuchTurn { turn: 1, turns: 0 });
    let mut other = full(old, 1);
    other.new.workflow_id = "parent".into();
    let taken = refused(reset(store, other));
    assert!(matches!(taken, Refused::InUse { ref run_id, .. } if run_id.as_str() == "run-0"), "{taken:?}");
    assert_eq!(rows(), before);
}

pub fn the_same_request_resets_once(store: &dyn Store) {
    let (old, _) = played(store);
    let request = |run_id, workflow_id: &'static str| {
        let mut write = again(old, 1, run_id);
        (write.new.request, write.new.workflow_id) = (Some("req-1".into()), workflow_id.into());
        reset(store, write)
    };
    let first = request("run-2", "order-1").unwrap();
    let second = request("run-3", "order-1").unwrap();
    assert_eq!(second, TurnWritten { run: first.run, ..TurnWritten::default() });
    assert_eq!(refused(request("run-4", "order-2")), Refused::OtherRequest("req-1".into()));
    assert_eq!((status(store, first.run), store.count(&Filter::default(), u64::MAX).unwrap()), (Status::Open, 3));
}

pub fn a_run_that_moved_on_is_not_reset_as_planned(store: &dyn Store) {
    let (old, _) = played(store);
    let before = store.run(old).unwrap().unwrap();
    let early = ResetWrite { turns: before.turns - 1, ..again(old, 1, "run-9") };
    assert_eq!(reset_as_planned(store, early).unwrap_err(), Refused::MovedOn.into());
    assert_eq!(store.run(old).unwrap().unwrap(), before, "nothing was changed");
}

pub fn unseen_messages_move_to_the_run_of_a_reset(store: &dyn Store) {
    let (old, _) = played(store);
    let message = NewMessage { key: "late".into(), sent: at(9), job: vec![1] };
    write(store, Write::Send { run: old, message, ended: None }).unwrap();
    let written = reset(store, again(old, 1, "run-9")).unwrap();
    let keys = |run| store.unseen(run).unwrap().into_iter().map(|message| message.key.to_string()).collect::<Vec<_>>();
    assert_eq!((keys(old).contains(&"late".to_owned()), keys(written.run).contains(&"late".to_owned())), (false, true));
}
