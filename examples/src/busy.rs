//! Work that a worker does in its own process, beside a timer and an update that stay open: for the test that kills workers, and not to
//! learn from.

use dacapo::prelude::*;

/// Is answered with the result of the run and this number, once there is a result.
pub const AWAIT: Update<u64, u64> = Update::new("await");

/// Returns one, after a while.
#[activity]
pub async fn one() -> Result<u64, Failure> {
    tokio::time::sleep(millis(1_500)).await;
    Ok(1)
}

/// Gets a one from a local activity and another from a side effect, so many times, while a timer runs. Returns their sum.
#[workflow(unfinished_handlers = "wait")]
pub async fn busy(ctx: Ctx, rounds: u64) -> Result<u64, Failure> {
    let result = ctx.cell(None::<u64>);
    let (awaited, inside) = (result.clone(), ctx.clone());
    ctx.on_update(
        AWAIT,
        |_| Ok(()),
        move |n| {
            let (awaited, ctx) = (awaited.clone(), inside.clone());
            async move {
                let result = awaited.clone();
                ctx.wait_until(move || result.read(Option::is_some)).await?;
                Ok(n + awaited.read(|result| result.unwrap_or_default()))
            }
        },
    );
    let timer = ctx.sleep(secs(20));
    let mut sum = 0;
    for _ in 0..rounds {
        ctx.sleep(millis(10)).await?;
        let call = ctx.call_local(one, ());
        let effect = ctx.side_effect("one", || async {
            tokio::time::sleep(millis(1_500)).await;
            Ok(1)
        });
        // Both have begun.
        sum += call.await?;
        sum += effect.await?;
    }
    timer.await?;
    result.update(|result| *result = Some(sum));
    Ok(sum)
}
