//! Writing to the store. Commit callbacks run on the thread that committed, while others wait for it: they may enqueue,
//! but not read, write or wait.

use std::sync::Arc;
use std::time::Instant;

use dacapo_core::Name;
use dacapo_store::{StoreError, TurnWrite, Write, Written};
use dacapo_sync::forbid_blocking;

use crate::host::WorkKind;
use crate::lifecycle::count_open::count_page;
use crate::lifecycle::halt::halt;
use crate::report::open_runs::Generation;
use crate::report::run_meters::OwnRun;
use crate::shared::Shared;

/// Submits a write that is not a turn, from a thread that may block. `done` is a commit callback.
pub(crate) fn submit(
    shared: &Arc<Shared>,
    write: Write,
    done: impl FnOnce(&Arc<Shared>, Result<Written, StoreError>) + Send + 'static,
) {
    let own = OwnRun::of(&write);
    submit_counted(shared, own, write, done);
}

/// Submits a turn of a run of this workflow, from a thread that may block. `done` is a commit callback.
pub(crate) fn submit_turn(
    shared: &Arc<Shared>,
    workflow: &Name,
    write: TurnWrite,
    done: impl FnOnce(&Arc<Shared>, Result<Written, StoreError>) + Send + 'static,
) {
    let own = OwnRun::of_turn(workflow, &write);
    submit_counted(shared, own, Write::Turn(Box::new(write)), done);
}

fn submit_counted(
    shared: &Arc<Shared>,
    own: OwnRun,
    write: Write,
    done: impl FnOnce(&Arc<Shared>, Result<Written, StoreError>) + Send + 'static,
) {
    let (this, began, generation) = (shared.clone(), Instant::now(), shared.run_meters.open().write_begins());
    let tell = move |result: Result<Written, StoreError>| {
        let _forbidden = forbid_blocking("it runs a commit callback");
        this.commit_seconds.record(began.elapsed());
        count(&this, own, &result, generation);
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

/// Counts the runs that a write has started and closed. The count of open runs may wait for that.
fn count(shared: &Arc<Shared>, own: OwnRun, result: &Result<Written, StoreError>, generation: Generation) {
    if let Ok(written) = result {
        shared.run_meters.count(own, written, generation);
    }
    if shared.run_meters.open().write_ends(generation) {
        shared.later(WorkKind::Read, None, count_page);
    }
}
