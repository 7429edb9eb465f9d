//! Calls that block, off the threads of an async runtime.

use dacapo_client::Error;

/// Makes a call on a thread that may block, and awaits its answer. The call is made on this thread if it may block: where
/// there is no runtime, and in the test kit, which does everything on the test's thread.
pub async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) if !dacapo_sync::is_blocking_allowed() => {
            let called = runtime.spawn_blocking(move || dacapo_sync::allow_blocking(call)).await;
            called.map_err(no_thread)
        }
        _ => Ok(call()),
    }
}

/// Returns the error for a system that starts no further thread.
pub(crate) fn no_thread(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(format!("a thread cannot be started: {error}. Raise the system's limit of threads or memory"))
}
