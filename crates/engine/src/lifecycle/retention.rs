//! How long closed runs are kept. Those whose time is over are deleted, and what they leave is removed in small steps beside
//! all other work. A step is one write: it shares a commit with whatever else is written, so that a commit never waits for
//! more than one, and there is one of each kind at a time. While runs become too old faster than they are deleted, step
//! follows step; otherwise each is followed by a pause as long as it took.

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
/// The longest time between two looks at what has become too old.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// Begins to look after runs that are too old, and goes on with what an earlier process left of those it deleted.
pub(crate) fn begin_retention(shared: &Arc<Shared>) -> Result<(), StoreError> {
    if shared.store().has_remains()? {
        want_sweep(shared);
    }
    if shared.options.retention.is_some() {
        shared.arm_in(Duration::ZERO, Due::Expire);
    }
    Ok(())
}

/// Deletes runs that closed too long ago, as far as they are found in one look.
pub(crate) fn expire(shared: &Arc<Shared>) {
    let Some(retention) = shared.options.retention else { return };
    shared.later(WorkKind::Write, None, move |shared| {
        let now = shared.now();
        let before = Timestamp(now.0.saturating_sub(u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX)));
        match shared.store().closed_before(before, PAGE) {
            Ok(runs) if runs.is_empty() => expire_later(shared, retention),
            Ok(runs) => delete_all(shared, runs, before, retention),
            Err(error) => {
                tracing::warn!(%error, "runs that are too old cannot be looked up");
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
            tracing::warn!(%error, "runs that are too old cannot be deleted yet");
            shared.arm_in(LONGEST_PAUSE, Due::Expire);
        }
    });
}

/// Runs were deleted: what they left is removed.
pub(crate) fn want_sweep(shared: &Shared) {
    if shared.sweeping.want() {
        shared.arm_in(Duration::ZERO, Due::Sweep);
    }
}

/// Removes a little of what deleted runs left.
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
                tracing::warn!(%error, "what deleted runs left cannot be removed yet");
                shared.arm_in(LONGEST_PAUSE, Due::Sweep);
            }
        });
    });
}
