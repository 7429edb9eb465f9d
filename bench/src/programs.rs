//! The workflows that are measured, and their one activity.

use dacapo::Query;
use dacapo::prelude::*;
use dacapo_bench_meter::ticks;
use futures::future::try_join_all;

/// How many activities a run of [`asked`] has seen.
pub(crate) const SEEN: Query<(), u32> = Query::new("seen");

/// Never sent: what [`asked`] waits for.
const END: Signal<()> = Signal::new("end");

#[activity]
pub(crate) async fn echo(payload: String) -> Result<String, Failure> {
    ticks::tick();
    Ok(payload)
}

/// One activity after another.
#[workflow]
pub(crate) async fn chain(ctx: Ctx, activities: u32, payload: String) -> Result<String, Failure> {
    let mut last = payload.clone();
    for _ in 0..activities {
        last = ctx.call(echo, payload.clone()).await?;
    }
    Ok(last)
}

/// All activities at once.
#[workflow]
pub(crate) async fn fan(ctx: Ctx, activities: u32, payload: String) -> Result<String, Failure> {
    let all = try_join_all((0..activities).map(|_| ctx.call(echo, payload.clone()))).await?;
    match all.iter().all(|one| *one == payload) {
        true => Ok(payload),
        false => Err(Failure::application("an activity gave something else than it was given")),
    }
}

/// One activity after another, then open for questions.
#[workflow]
pub(crate) async fn asked(ctx: Ctx, activities: u32, payload: String) -> Result<(), Failure> {
    let seen = ctx.cell(0);
    let shown = seen.clone();
    ctx.on_query(SEEN, move |()| Ok(shown.read(|seen| *seen)));
    for _ in 0..activities {
        ctx.call(echo, payload.clone()).await?;
        seen.update(|seen| *seen += 1);
    }
    ctx.next_signal(END).await?;
    Ok(())
}

#[workflow]
pub(crate) async fn sleeper(ctx: Ctx, payload: String) -> Result<String, Failure> {
    ctx.sleep(hours(1)).await?;
    Ok(payload)
}
