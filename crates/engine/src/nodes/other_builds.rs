//! Two builds at once, as during a rolling deploy: what one cannot play the other can.

use std::ops::ControlFlow;

use dacapo_core::{Name, TurnRecord};
use dacapo_store::{RunNo, StoreError, StuckCause};

use crate::shared::Shared;

/// Whether a run that cannot be played here for this cause can be played by another build that a live node serves: the one
/// that recorded its last turn, or, before its first turn, any.
pub(crate) fn may_play(shared: &Shared, run: RunNo, cause: StuckCause) -> bool {
    let depends_on_build =
        matches!(cause, StuckCause::Nondeterminism | StuckCause::MissingWorkflow | StuckCause::OtherBuild);
    let Some(nodes) = shared.nodes().filter(|_| depends_on_build) else { return false };
    let own = &shared.options.build;
    let others: Vec<Name> = nodes.other_builds().into_iter().filter(|build| build != own).collect();
    !others.is_empty() && last_build(shared, run).is_ok_and(|build| build.is_none_or(|build| others.contains(&build)))
}

/// Returns the build that recorded the last turn of a run. None if it has no turn, or the record cannot be read here.
fn last_build(shared: &Shared, run: RunNo) -> Result<Option<Name>, StoreError> {
    let Some(last) = shared.store().run(run)?.and_then(|row| row.turns.checked_sub(1)) else { return Ok(None) };
    let mut build = None;
    shared.store().turns(run, last, &mut |_, bytes| {
        build = TurnRecord::from_bytes(bytes).ok().map(|record| record.build);
        ControlFlow::Break(())
    })?;
    Ok(build)
}
