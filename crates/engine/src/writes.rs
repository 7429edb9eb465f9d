//! Writing to the store. Commit callbacks run on the thread that committed, while others wait for it: they may enqueue,
//! but not read, write or wait.

use std::sync::Arc;
use std::time::Instant;

use dacapo_store::{StoreError, Write, Written};
use dacapo_sync::forbid_blocking;

use crate::lifecycle::halt::halt;
use crate::shared::Shared;

/// Submits a write from a thread that may block. `done` is a commit callback.
pub(crate) fn submit(
    shared: &Arc<Shared>,
    write: Write,
    done: impl FnOnce(&Arc<Shared>, Result<Written, StoreError>) + Send + 'static,
) {
    let (this, began) = (shared.clone(), Instant::now());
    let tell = move |result: Result<Written, StoreError>| {
        let _forbidden = forbid_blocking("it runs a commit callback");
        this.commit_seconds.record(began.elapsed());
        if let Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) = &result {
            halt(&this, error.clone().into());
        }
        done(&this, result);
    };
    match shared.halted.is_halted() {
        true => tell(Err(StoreError::Unavailable("the engine has stopped".to_owned()))),
        false => shared.store().submit(write, Box::new(tell)),
    }
}
