//! Calls that block, off the threads of an async runtime.

use crate::EngineError;

/// Makes a call on a thread that may block, and awaits its answer. The call is made on this thread if it may block: where
/// there is no runtime, and in the test kit, which does everything on the test's thread.
pub async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Result<T, EngineError> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) if !dacapo_sync::is_blocking_allowed() => {
            let called = runtime.spawn_blocking(move || dacapo_sync::allow_blocking(call)).await;
            called.map_err(|error| EngineError::NoThread(error.to_string()))
        }
        _ => Ok(call()),
    }
}
