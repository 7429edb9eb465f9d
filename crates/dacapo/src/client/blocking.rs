//! Calls that block, off the threads of the async runtime.

use crate::client::{Error, Result};

/// Calls this on a thread that may block, and awaits its answer. It calls it here if this thread may block: where there is no
/// runtime, and in the kit for tests, which does everything on the test's thread.
pub(super) async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) if !dacapo_sync::is_blocking_allowed() => {
            let called = runtime.spawn_blocking(move || dacapo_sync::allow_blocking(call)).await;
            called.map_err(|error| Error::System(error.to_string()))
        }
        _ => Ok(call()),
    }
}
