//! Retention of closed runs. The engine deletes runs that closed too long ago, and removes their rows in small steps
//! beside all other work. A step is one write: it shares a commit with other writes, so that a commit never waits for
//! more than one, and there is one of each kind at a time. While runs become too old faster than they are deleted, step
//! follows step; otherwise each step is followed by a pause as long as it took.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_store::{RunNo, StoreError, Write, Written};

use crate::host::WorkKind;
use crate::run::forget::forget;
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::writes::submit;

/// The most rows that one step removes: more than a commit adds under full load, so that sweeping keeps up.
const STEP: usize = 2_000;
/// The most runs that are deleted by one write.
const PAGE: usize = 200;
/// The longest pause between two searches for runs that are too old.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest pause between two such searches.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// Begins to delete runs that are too old, and goes on removing the rows of runs that an earlier process deleted.
pub(crate) fn begin_retention(shared: &Arc<Shared>) -> Result<(), StoreError> {
    if shared.store().has_remains()? {
        want_sweep(shared);
    }
    if shared.options.retention.is_some() {
        shared.arm_in(Duration::ZERO, Due::Expire);
    }
    Ok(())
}

/// Deletes runs that closed too long ago, as many as one search finds.
pub(crate) fn expire(shared: &Arc<Shared>) {
    let Some(retention) = shared.options.retention else { return };
    shared.later(WorkKind::Write, None, move |shared| {
        let now = shared.now();
        let before = Timestamp(now.0.saturating_sub(u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX)));
        match shared.store().closed_before(before, PAGE) {
            Ok(runs) if runs.is_empty() => expire_later(shared, retention),
            Ok(runs) => delete_all(shared, runs, before, retention),
            Err(error) => {
                tracing::warn!(%error, "runs past their retention cannot be looked up");
                expire_later(shared, retention);
            }
        }
    });
}

fn expire_later(shared: &Shared, retention: Duration) {
    shared.sweeping.set_behind(false);
    let pause = (retention / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    shared.arm_in(pause, Due::Expire);
}

/// Deletes these runs, and looks for more at once if there may be.
fn delete_all(shared: &Arc<Shared>, runs: Vec<RunNo>, before: Timestamp, retention: Duration) {
    let write = Write::Expire { runs: runs.clone(), before };
    submit(shared, write, move |shared, result| match result {
        Ok(_) => {
            runs.iter().for_each(|run| forget(shared, *run));
            shared.sweeping.set_behind(runs.len() == PAGE);
            want_sweep(shared);
            if runs.len() == PAGE { expire(shared) } else { expire_later(shared, retention) }
        }
        Err(error) => {
            tracing::warn!(%error, "runs past their retention cannot be deleted yet");
            shared.arm_in(LONGEST_PAUSE, Due::Expire);
        }
    });
}

/// Begins to remove the rows of runs that were deleted, unless a sweep runs already.
pub(crate) fn want_sweep(shared: &Shared) {
    if shared.sweeping.want() {
        shared.arm_in(Duration::ZERO, Due::Sweep);
    }
}

/// Removes some of the rows that deleted runs left.
pub(crate) fn sweep(shared: &Arc<Shared>) {
    shared.later(WorkKind::Write, None, |shared| {
        let began = shared.host.steady_now();
        shared.sweeping.begin_step();
        submit(shared, Write::Sweep { most: STEP }, move |shared, result| match result {
            Ok(Written::Swept { more: true }) if shared.sweeping.is_behind() => sweep(shared),
            Ok(Written::Swept { more: true }) => {
                shared.arm_in(shared.host.steady_now().since(began), Due::Sweep);
            }
            Ok(_) => {
                if shared.sweeping.end() {
                    want_sweep(shared);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "rows of deleted runs cannot be removed yet");
                shared.arm_in(LONGEST_PAUSE, Due::Sweep);
            }
        });
    });
}
