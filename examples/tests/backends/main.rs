//! One suite for every backend: programs that use only `App` and `Handle`, in real time. A backend joins by one line in
//! [`backends!`](main.rs).

mod activities;
mod handles;
mod messages;
mod operations;
mod programs;

use std::path::Path;
use std::time::Duration;

use dacapo::{App, Dacapo, Description, Handle, Register};
use tempfile::TempDir;

/// The longest that one case may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A place to run programs in.
struct Backend {
    url: String,
    folder: TempDir,
}

impl Backend {
    fn new(url: fn(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        Self { url: url(folder.path()), folder }
    }

    /// Serves these workflows and activities.
    async fn serve<P>(&self, items: impl Register<P>) -> App {
        self.open().await.serve(items).await.expect("it can be served")
    }

    async fn open(&self) -> Dacapo {
        Dacapo::open(&self.url).await.expect("it can be opened")
    }
}

/// A namespace of the server that tests share.
#[cfg(feature = "temporal")]
fn on_temporal(_: &Path) -> String {
    let server = dacapo_testkit::TemporalServer::shared();
    server.url(&server.new_namespace())
}

/// Plays a case within the limit.
async fn play(url: fn(&Path) -> String, case: impl AsyncFnOnce(&Backend)) {
    let backend = Backend::new(url);
    let played = tokio::time::timeout(LIMIT, case(&backend)).await;
    played.unwrap_or_else(|_| panic!("it did not end within {LIMIT:?} on {}", backend.url));
    drop(backend.folder);
}

/// Asks again and again until there is an answer. The case as a whole is bounded.
async fn wait<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    loop {
        match ask().await {
            Some(answer) => return answer,
            // sleep: some backends tell nothing of what a caller waits for, so they are asked again.
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Describes a run once it is as described.
async fn described<O>(run: &Handle<O>, is: impl Fn(&Description) -> bool) -> Description {
    wait(async || Some(run.describe().await.expect("it is there")).filter(|run| is(run))).await
}

/// Makes one test of each case for each backend.
macro_rules! backends {
    ({ $($(#[$on:meta])* $backend:ident: $url:expr,)* } $cases:tt) => {
        $(backends! { @of $(#[$on])* $backend $url; $cases })*
    };
    (@of $(#[$on:meta])* $backend:ident $url:expr; { $($module:ident: $($case:ident)*;)* }) => {
        $(#[$on])*
        mod $backend {
            $(mod $module {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    crate::play($url, crate::$module::$case).await;
                })*
            })*
        }
    };
}

backends! {
    {
        memory: |_| "memory:".to_owned(),
        sqlite: |folder| format!("sqlite:{}", folder.join("store.db").display()),
        #[cfg(feature = "postgres")]
        postgres: |_| dacapo_test_postgres::new_schema_url(),
        #[cfg(feature = "temporal")]
        temporal: crate::on_temporal,
    }
    {
        activities: activity_is_retried_until_it_succeeds activity_fails_after_its_last_attempt
            activity_is_completed_by_its_token attempts_and_failures_are_described local_activity_runs_in_the_workflow_process;
        handles: start_with_one_request_id_is_one_start workflow_id_in_use_is_refused_or_reused
            run_that_is_cancelled_cleans_up run_that_is_terminated_ends_at_once run_is_described_listed_and_counted
            start_without_a_queue_goes_to_default_or_to_the_first_one_named
            history_tells_what_happened result_of_a_failed_run_is_its_failure
            transcript_is_the_same_by_handle_and_by_workflow_id capabilities_say_which_calls_are_refused
            process_that_serves_is_listed;
        messages: signals_are_taken_in_order signal_with_one_request_id_counts_once update_is_answered_or_rejected
            query_sees_what_was_acknowledged promise_is_resolved_by_name child_and_parent_talk;
        operations: reset_begins_again_with_what_came_before_and_since next_attempt_gets_the_progress_of_the_one_before
            attempt_ends_at_its_timeout attributes_memo_and_snapshot_are_described
            answer_to_an_update_is_asked_for_later_by_its_request_id activity_is_completed_by_its_id
            run_signals_another_run closed_run_is_deleted_where_the_backend_can
            next_process_goes_on_where_the_store_outlives_one backup_is_made_where_the_backend_can
            runs_are_exported_and_imported_where_the_backend_can;
        programs: fan_out_counts_every_part saga_gives_everything_back entity_lives_on_as_new_runs counter_continues_as_new
            handle_of_a_start_finds_the_run_that_it_continued_as
            approval_is_decided;
    }
}
