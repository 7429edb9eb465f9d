//! Errands: work that many nodes do together, each with activities, signals, an update, a child and a timer. A soak kills
//! the nodes, and counts what came of it.

use dacapo::prelude::*;

/// The queue that the nodes serve.
pub const QUEUE: &str = "errands";

/// Adds to the sum of an errand.
pub const ADD: Signal<u64> = Signal::new("add");
/// Adds to the sum of an errand, and answers with it.
pub const PUT: Update<u64, u64> = Update::new("put");
/// Lets an errand end.
pub const GO: Signal<()> = Signal::new("go");

/// Adds one.
#[activity]
pub async fn step(number: u64) -> Result<u64, Failure> {
    Ok(number + 1)
}

/// Does a part of an errand.
#[workflow]
pub async fn part(ctx: Ctx, number: u64) -> Result<u64, Failure> {
    ctx.call(step, number).await
}

/// Takes steps, sums what it is sent, and ends when it is told to.
#[workflow]
pub async fn errand(ctx: Ctx, number: u64) -> Result<u64, Failure> {
    let sum = ctx.cell(0_u64);
    let added = sum.clone();
    ctx.on_signal(ADD, move |more| {
        let added = added.clone();
        async move {
            added.update(|sum| *sum += more);
            Ok(())
        }
    });
    let put = sum.clone();
    ctx.on_update(
        PUT,
        |_| Ok(()),
        move |more| {
            let put = put.clone();
            async move {
                Ok(put.update(|sum| {
                    *sum += more;
                    *sum
                }))
            }
        },
    );
    let mut value = number;
    for _ in 0..3 {
        value = ctx.call(step, value).await?;
    }
    if number.is_multiple_of(8) {
        value = ctx.child(part, value).await?;
        ctx.sleep(millis(50)).await?;
    }
    ctx.next_signal(GO).await?;
    Ok(value + sum.read(|sum| *sum))
}

/// Returns the right result of an errand that was sent this.
pub const fn expected(number: u64, sent: u64) -> u64 {
    let steps = if number.is_multiple_of(8) { 4 } else { 3 };
    number + steps + sent
}
