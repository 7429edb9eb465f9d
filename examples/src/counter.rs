//! Continue-as-new: a counter that counts for ever. A run's history only grows, so after so many signals the run goes on as a
//! new one, which begins with what it is given and an empty history. Signals that come in between are the new run's.

use dacapo::prelude::*;

/// Adds to the counter.
pub const ADD: Signal<u64> = Signal::new("add");
/// Ends the counter.
pub const STOP: Signal<()> = Signal::new("stop");
/// How many signals a run takes.
pub const TAKEN_BY_ONE_RUN: u32 = 10;

/// Counts from here until it is stopped, and gives the sum.
#[workflow]
pub async fn counter(ctx: Ctx, mut sum: u64) -> Result<u64, Failure> {
    for _ in 0..TAKEN_BY_ONE_RUN {
        match ctx.race(ctx.next_signal(ADD), ctx.next_signal(STOP)).await? {
            First(more) => sum += more,
            Second(()) => return Ok(sum),
        }
    }
    Err(ctx.continue_as_new(counter, sum))
}
