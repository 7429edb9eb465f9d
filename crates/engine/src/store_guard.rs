//! The check before each access to a store: only threads that may block reach it.

use dacapo_sync::assert_may_block;

/// Panics, in builds with debug assertions, if this thread must not block: it holds a lock that others wait for, runs a commit
/// callback, or belongs to an async runtime and is not within [`allow_blocking`](dacapo_sync::allow_blocking).
#[track_caller]
pub(crate) fn assert_may_use_store() {
    assert_may_block("the store");
    #[cfg(debug_assertions)]
    assert!(
        tokio::runtime::Handle::try_current().is_err() || dacapo_sync::is_blocking_allowed(),
        "the store may block, and this thread must not: it belongs to an async runtime"
    );
}
