//! The suite that every store must pass. A store's tests call `conformance_tests!(make a store)`, and those of a store that
//! several nodes share `conformance_tests_of_nodes!(make a cluster)` as well.

mod closing;
mod cluster;
mod crash_count;
mod delete;
mod extremes;
mod import;
mod messages;
pub mod nodes;
mod reset;
mod retention;
mod search;
mod starts;
mod turns;

use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};

use dacapo_core::{
    AttributeValue, Failure, FailureKind, IdReuse, Job, Name, ParentClose, Resolution, Seq, Start, StartOutcome,
    Target, Timestamp, from_stored,
};

use crate::{
    AttemptWrite, Belongings, Closing, CrashCount, Epoch, Filter, IdConflict, ImportWrite, MessageNo, NewMessage,
    NewRun, NewTask, NodeEvents, NodeNo, Notice, OutgoingMessage, Parent, Refused, RunNo, RunRow, Shards, StartedRun,
    Status, Store, StoreError, Stuck, StuckCause, TaskNo, TaskRow, TimerKind, TimerRow, TurnOf, TurnWrite, TurnWritten,
    Write, Written,
};

pub use closing::{
    a_closed_run_takes_nothing_more, a_parent_is_told_of_its_child, a_run_continues_under_its_id,
    children_end_with_their_parent_as_agreed, message_to_another_run_arrives_or_its_sender_is_told,
    rows_left_of_a_closed_run_can_be_removed, run_with_unseen_messages_cannot_close,
};
pub use crash_count::{
    crash_count_of_a_run_is_reset_by_its_next_turn, crash_count_of_a_run_outlives_its_end,
    crash_counts_of_tasks_and_runs_are_written_together, death_is_counted_once_and_not_for_a_run_that_has_gone_on,
};
pub use delete::{
    a_closed_run_is_deleted_at_once_and_what_is_left_of_it_step_by_step,
    a_closed_run_of_another_store_is_added_as_it_is, a_number_is_given_once_whatever_is_deleted,
    a_run_that_is_added_again_takes_no_place_of_what_is_left_of_it, an_open_run_cannot_be_deleted,
    the_parent_of_a_run_may_be_deleted_before_it,
};
pub use extremes::{
    a_nul_in_the_text_of_an_error_does_no_harm, ids_and_text_of_any_script_are_kept,
    messages_are_read_in_the_order_in_which_they_were_stored, moments_of_another_clock_are_kept_as_they_are,
    pages_end_where_the_next_begins, records_and_messages_of_two_mebibytes_are_kept_whole,
    ten_thousand_tasks_of_one_turn_are_committed_together, writes_that_come_again_together_change_nothing,
};
pub use import::{
    attribute_of_any_kind_is_set_replaced_and_removed,
    messages_attributes_and_turns_of_a_run_go_with_it_to_another_store, number_of_a_run_leaves_room_for_its_shard,
    runs_of_another_store_stand_in_the_order_of_their_starts,
};
pub use messages::{
    a_request_is_known_to_the_whole_chain, message_is_settled_without_a_turn, message_is_taken_by_one_turn,
    message_that_ends_a_task_is_stored_together_with_its_end,
};
pub use reset::{
    a_closed_run_can_be_reset_and_stays_as_it_is, a_reset_that_is_refused_changes_nothing,
    a_run_that_is_reset_goes_on_as_another_with_the_turns_that_are_kept, a_run_that_moved_on_is_not_reset_as_planned,
    children_of_a_run_that_is_reset_are_kept_or_released, the_same_request_resets_once,
    unseen_messages_move_to_the_run_of_a_reset,
};
pub use search::{searches_find_the_runs_that_meet_them_and_no_others, workflows_of_runs_are_listed_once};
pub use starts::{
    a_request_that_comes_again_with_another_input_is_refused, a_run_may_start_with_its_first_turn,
    a_start_says_whom_it_replaced_and_who_was_told, a_used_workflow_id_may_be_refused,
    an_open_workflow_id_belongs_to_one_run, commit_callback_runs_while_the_store_holds_no_lock,
    open_runs_are_listed_with_their_workflows_oldest_first, runs_are_listed_newest_first_in_pages,
    started_run_is_open_and_its_start_waits_as_a_message, the_same_request_starts_one_run,
};
pub use turns::{
    a_lost_acknowledgement_is_answered_when_the_same_turn_comes_again, a_node_that_has_lost_its_run_cannot_commit,
    a_stuck_run_goes_on_with_its_next_turn, a_stuck_run_says_why, a_turn_is_committed_once_and_only_as_the_next,
    message_sent_twice_under_one_key_is_stored_once, tasks_live_until_their_turn_ends_them, timers_are_due_in_order,
};

pub use retention::{
    a_step_takes_small_runs_together_and_large_records_apart, runs_that_closed_too_long_ago_go_together,
};

/// Defines one test for each rule of the suite, over a store that the expression makes.
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        $crate::conformance_tests! { $make;
            started_run_is_open_and_its_start_waits_as_a_message
            a_turn_is_committed_once_and_only_as_the_next
            a_node_that_has_lost_its_run_cannot_commit
            a_lost_acknowledgement_is_answered_when_the_same_turn_comes_again
            a_run_may_start_with_its_first_turn
            an_open_workflow_id_belongs_to_one_run
            a_start_says_whom_it_replaced_and_who_was_told
            a_used_workflow_id_may_be_refused
            the_same_request_starts_one_run
            a_request_that_comes_again_with_another_input_is_refused
            message_sent_twice_under_one_key_is_stored_once
            message_that_ends_a_task_is_stored_together_with_its_end
            message_is_settled_without_a_turn
            a_request_is_known_to_the_whole_chain
            run_with_unseen_messages_cannot_close
            a_closed_run_takes_nothing_more
            a_parent_is_told_of_its_child
            children_end_with_their_parent_as_agreed
            message_to_another_run_arrives_or_its_sender_is_told
            tasks_live_until_their_turn_ends_them
            timers_are_due_in_order
            a_run_continues_under_its_id
            a_run_that_is_reset_goes_on_as_another_with_the_turns_that_are_kept
            a_closed_run_can_be_reset_and_stays_as_it_is
            a_run_that_moved_on_is_not_reset_as_planned
            message_is_taken_by_one_turn
            unseen_messages_move_to_the_run_of_a_reset
            children_of_a_run_that_is_reset_are_kept_or_released
            a_reset_that_is_refused_changes_nothing
            the_same_request_resets_once
            a_stuck_run_says_why
            searches_find_the_runs_that_meet_them_and_no_others
            workflows_of_runs_are_listed_once
            rows_left_of_a_closed_run_can_be_removed
            a_stuck_run_goes_on_with_its_next_turn
            crash_count_of_a_run_is_reset_by_its_next_turn
            crash_count_of_a_run_outlives_its_end
            death_is_counted_once_and_not_for_a_run_that_has_gone_on
            crash_counts_of_tasks_and_runs_are_written_together
            runs_are_listed_newest_first_in_pages
            open_runs_are_listed_with_their_workflows_oldest_first
            a_closed_run_is_deleted_at_once_and_what_is_left_of_it_step_by_step
            a_closed_run_of_another_store_is_added_as_it_is
            runs_of_another_store_stand_in_the_order_of_their_starts
            messages_attributes_and_turns_of_a_run_go_with_it_to_another_store
            number_of_a_run_leaves_room_for_its_shard
            attribute_of_any_kind_is_set_replaced_and_removed
            a_step_takes_small_runs_together_and_large_records_apart
            runs_that_closed_too_long_ago_go_together
            an_open_run_cannot_be_deleted
            a_number_is_given_once_whatever_is_deleted
            a_run_that_is_added_again_takes_no_place_of_what_is_left_of_it
            the_parent_of_a_run_may_be_deleted_before_it
            commit_callback_runs_while_the_store_holds_no_lock
            records_and_messages_of_two_mebibytes_are_kept_whole
            ids_and_text_of_any_script_are_kept
            a_nul_in_the_text_of_an_error_does_no_harm
            writes_that_come_again_together_change_nothing
            messages_are_read_in_the_order_in_which_they_were_stored
            pages_end_where_the_next_begins
            ten_thousand_tasks_of_one_turn_are_committed_together
            moments_of_another_clock_are_kept_as_they_are
        }
    };
    ($make:expr; $($rule:ident)*) => {
        $(
            #[test]
            fn $rule() {
                $crate::conformance::joined(&$make, $crate::conformance::$rule);
            }
        )*
    };
}

/// Plays a rule on a store. Where several nodes may share it, this process becomes one first.
pub fn joined(store: &dyn Store, rule: fn(&dyn Store)) {
    if let Some(shared) = store.shared() {
        shared.join(&["main".into()], &"test".into(), Arc::new(NoEngine)).expect("a node can join");
    }
    rule(store);
    store.close().expect("the store can be closed");
}

/// A node without an engine.
struct NoEngine;

impl NodeEvents for NoEngine {
    fn gained(&self, _: Shards) {}

    fn giving(&self, _: Shards) -> Vec<TaskNo> {
        Vec::new()
    }

    fn lost(&self, _: Shards, _: bool) {}

    fn notified(&self, _: Notice) {}

    fn called(&self, _: Vec<u8>, _: Box<dyn FnOnce(Vec<u8>) + Send>) {}

    fn look(&self, _: Shards) {}
}

const NODE: NodeNo = NodeNo(1);
const FIRST: Epoch = Epoch(1);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn write(store: &dyn Store, write: Write) -> Result<Written, StoreError> {
    let (told, answer) = mpsc::channel();
    store.submit(write, Box::new(move |written| told.send(written).expect("the caller waits")));
    answer.recv().expect("every write is answered")
}

/// Returns a run to start that has ids of its own by this number, and nothing that is optional: a sample for tests of stores.
pub fn order(number: usize) -> NewRun {
    NewRun {
        run_id: format!("run-{number}").into(),
        workflow_id: format!("order-{number}").into(),
        workflow: "kit".into(),
        queue: "main".into(),
        started: at(1),
        pins: vec![1],
        start: vec![2],
        parent: None,
        first_run_id: Name::default(),
        reuse: IdReuse::AllowDuplicate,
        conflict: IdConflict::Fail,
        request: None,
        timers: Vec::new(),
        memo: Vec::new(),
        attributes: Vec::new(),
    }
}

fn new_run(workflow_id: &'static str, run_id: &'static str) -> NewRun {
    NewRun { workflow_id: workflow_id.into(), run_id: run_id.into(), ..order(0) }
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

/// Returns the runs that a write closed.
fn closed(written: &TurnWritten) -> Vec<RunNo> {
    written.closed.iter().map(|closed| closed.run).collect()
}

fn task() -> NewTask {
    NewTask { seq: Seq(0), queue: "main".into(), ready: at(0), priority: 0, position: 0, offered: false }
}

/// Starts a run that this node owns.
fn owned(store: &dyn Store, workflow_id: &'static str, run_id: &'static str) -> StartedRun {
    let started = start(store, new_run(workflow_id, run_id)).expect("the id is free");
    own(store, started.run, Epoch::default(), FIRST).expect("no node has it");
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
    let messages = store.unseen(run).expect("messages can be read");
    messages.iter().filter_map(|message| from_stored(&message.job).ok()).collect()
}

fn child(run: RunNo, seq: u64, workflow_id: &'static str, run_id: &'static str, close: ParentClose) -> (Seq, NewRun) {
    let parent = Some(Parent { run, seq: Seq(seq), close });
    (Seq(seq), NewRun { parent, ..new_run(workflow_id, run_id) })
}
