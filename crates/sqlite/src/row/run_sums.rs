//! The checksums of a run. Columns that change together share one, so that a turn's commit need not read the rest of
//! the row.

use dacapo_core::Name;
use dacapo_store::{Epoch, NewRun, NodeNo, Parent, RunRow, Status, Stuck};

use crate::columns::moment;
use crate::sum::{Part, Sum};

/// The columns that stay the same for nearly all of a run's life.
pub(crate) struct Identity<'r> {
    pub(crate) run_id: &'r str,
    pub(crate) workflow_id: &'r str,
    pub(crate) workflow: &'r str,
    pub(crate) queue: &'r str,
    pub(crate) started: i64,
    pub(crate) owner: Option<NodeNo>,
    pub(crate) pins: &'r [u8],
    pub(crate) parent: Option<&'r Parent>,
    pub(crate) first_run_id: &'r str,
    pub(crate) request: Option<&'r str>,
}

impl<'r> Identity<'r> {
    pub(crate) fn of_new(new: &'r NewRun, owner: Option<NodeNo>) -> Self {
        Self {
            run_id: &new.run_id,
            workflow_id: &new.workflow_id,
            workflow: &new.workflow,
            queue: &new.queue,
            started: moment(new.started),
            owner,
            pins: &new.pins,
            parent: new.parent.as_ref(),
            first_run_id: new.chain(),
            request: new.request.as_deref(),
        }
    }

    pub(crate) fn of_row(row: &'r RunRow, owner: Option<NodeNo>, request: Option<&'r str>) -> Self {
        Self {
            run_id: &row.run_id,
            workflow_id: &row.workflow_id,
            workflow: &row.workflow,
            queue: &row.queue,
            started: moment(row.started),
            owner,
            pins: &row.pins,
            parent: row.parent.as_ref(),
            first_run_id: &row.first_run_id,
            request,
        }
    }

    /// Returns the identity of a closed run of another store: it has no owner and no parent here.
    pub(crate) fn of_closed(row: &'r RunRow, request: Option<&'r Name>) -> Self {
        Self { parent: None, ..Self::of_row(row, None, request.map(Name::as_str)) }
    }

    pub(crate) fn sum(&self, no: i64) -> Sum {
        Sum::of(Part::RunIdentity, no)
            .text(self.run_id)
            .text(self.workflow_id)
            .text(self.workflow)
            .text(self.queue)
            .number(self.started)
            .option_number(self.owner.map(|owner| owner.0))
            .bytes(self.pins)
            .option(self.parent, |sum, parent| {
                sum.number(parent.run.0).number(parent.seq.0 as i64).number(parent.close as i64)
            })
            .text(self.first_run_id)
            .option_text(self.request)
    }
}

/// Returns the checksum of the columns that each turn changes.
pub(crate) fn progress(no: i64, turns: u64, epoch: Epoch, crash_count: u32) -> Sum {
    Sum::of(Part::RunProgress, no).number(turns as i64).number(epoch.0).number(crash_count.into())
}

pub(crate) fn stuck(no: i64, stuck: &Stuck) -> Sum {
    let Stuck { cause, subject, reason, since, attempts, retry } = stuck;
    let sum = Sum::of(Part::RunStuck, no).number(cause.code()).text(subject).text(reason);
    sum.number(moment(*since)).number((*attempts).into()).number(moment(*retry))
}

pub(crate) fn memo(no: i64, memo: &[u8]) -> Sum {
    Sum::of(Part::RunMemo, no).bytes(memo)
}

pub(crate) fn published(no: i64, snapshot: &[u8]) -> Sum {
    Sum::of(Part::RunPublished, no).bytes(snapshot)
}

/// Returns the checksum of how a run ended. An open run has no such checksum.
pub(crate) fn result(no: i64, status: Status, closed: Option<i64>, result: Option<&[u8]>) -> Sum {
    Sum::of(Part::RunResult, no).number(status.code()).option_number(closed).option_bytes(result)
}
