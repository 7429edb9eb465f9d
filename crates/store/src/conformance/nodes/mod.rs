//! The suite of a store that several nodes share. A store's tests call `conformance_tests_of_nodes!(make a cluster)`.

mod ownership;
mod together;

use super::cluster::{TestNode, as_write, one_of, plain_turn, settle, until};
use super::*;

pub use super::cluster::{Cluster, clustered};
pub use ownership::{
    a_dead_node_loses_its_runs_and_its_tasks_to_the_others, a_node_that_joins_gets_shards_from_their_owners,
    a_node_that_leaves_hands_over_at_once, a_node_that_was_taken_for_dead_commits_no_turn_and_joins_again,
    a_run_has_one_owner_at_most_while_nodes_come_and_go, a_turn_is_refused_where_another_node_owns_the_run,
    due_timers_are_returned_to_the_owner_of_their_run_alone, nodes_that_were_all_away_keep_their_shards_and_settle,
    old_runs_are_removed_by_the_node_that_owns_their_shard,
};
pub use together::{
    a_child_on_another_node_tells_its_parent_however_the_parent_goes_on, a_task_that_no_node_has_is_claimed_by_one,
    a_write_whose_answer_is_cut_off_is_committed_once, messages_of_one_sender_keep_their_order,
    of_two_writers_of_one_turn_one_commits, the_owner_of_a_run_leaves_its_tasks_to_the_node_that_works_at_them,
    two_nodes_that_make_one_request_start_one_run, two_nodes_that_start_one_workflow_id_start_one_run,
};

/// Defines one test for each rule of several nodes, over a [`Cluster`](crate::conformance::nodes::Cluster) that the
/// expression makes.
#[macro_export]
macro_rules! conformance_tests_of_nodes {
    ($make:expr) => {
        $crate::conformance_tests_of_nodes! { $make;
            a_turn_is_refused_where_another_node_owns_the_run
            a_run_has_one_owner_at_most_while_nodes_come_and_go
            a_node_that_joins_gets_shards_from_their_owners
            a_node_that_leaves_hands_over_at_once
            a_node_that_was_taken_for_dead_commits_no_turn_and_joins_again
            a_dead_node_loses_its_runs_and_its_tasks_to_the_others
            nodes_that_were_all_away_keep_their_shards_and_settle
            due_timers_are_returned_to_the_owner_of_their_run_alone
            old_runs_are_removed_by_the_node_that_owns_their_shard
            a_task_that_no_node_has_is_claimed_by_one
            the_owner_of_a_run_leaves_its_tasks_to_the_node_that_works_at_them
            two_nodes_that_start_one_workflow_id_start_one_run
            two_nodes_that_make_one_request_start_one_run
            of_two_writers_of_one_turn_one_commits
            messages_of_one_sender_keep_their_order
            a_child_on_another_node_tells_its_parent_however_the_parent_goes_on
            a_write_whose_answer_is_cut_off_is_committed_once
        }
    };
    ($make:expr; $($rule:ident)*) => {
        $(
            #[test]
            fn $rule() {
                $crate::conformance::nodes::clustered(&$make, $crate::conformance::nodes::$rule);
            }
        )*
    };
}
