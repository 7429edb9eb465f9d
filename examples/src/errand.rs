//! Errands: work that many nodes do together. A soak kills the nodes, and counts what came of it.

use dacapo::prelude::*;

/// The queue that the nodes serve.
pub const QUEUE: &str = "errands";
/// The queue of the activities that other programs do for them.
pub const HELP: &str = "help";

/// Adds to the sum of an errand.
pub const ADD: Signal<u64> = Signal::new("add");
/// Adds to the sum of an errand, and answers with it.
pub const PUT: Update<u64, u64> = Update::new("put");
/// Lets an errand end.
pub const GO: Signal<()> = Signal::new("go");

/// What an errand does beside its three steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// The three steps are all.
    Nothing,
    /// A child takes a step.
    Child,
    /// A step fails before it succeeds.
    Shaky,
    /// Another program takes a step.
    Helped,
    /// A step is given from outside.
    Given,
    /// It waits for a moment.
    Timer,
    /// It is terminated.
    Terminated,
}

impl Extra {
    /// Returns what the errand of this number does.
    pub const fn of(number: u64) -> Self {
        match number % 8 {
            1 => Self::Child,
            2 => Self::Shaky,
            3 => Self::Helped,
            4 => Self::Given,
            5 => Self::Timer,
            6 if number % 32 == 6 => Self::Terminated,
            _ => Self::Nothing,
        }
    }

    const fn is_a_step(self) -> bool {
        matches!(self, Self::Child | Self::Shaky | Self::Helped | Self::Given)
    }
}

/// Adds one.
#[activity]
pub async fn step(number: u64) -> Result<u64, Failure> {
    Ok(number + 1)
}

/// Adds one, but not at the first attempt.
#[activity]
pub async fn shaky(ctx: ActivityCtx, number: u64) -> Result<u64, Failure> {
    match ctx.info().attempt {
        1 => Err(Failure::application("not yet")),
        _ => Ok(number + 1),
    }
}

/// Is completed from outside.
#[activity]
pub async fn given(ctx: ActivityCtx, _number: u64) -> Result<u64, Failure> {
    Err(ctx.complete_later())
}

/// Takes a step for an errand.
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
    value = match Extra::of(number) {
        Extra::Nothing | Extra::Terminated => value,
        Extra::Child => ctx.child(part, value).await?,
        Extra::Shaky => ctx.call(shaky, value).retry(Retry::exponential().first_pause(millis(20))).await?,
        Extra::Helped => ctx.call(step, value).queue(HELP).await?,
        Extra::Given => ctx.call(given, value).await?,
        Extra::Timer => {
            ctx.sleep(millis(50)).await?;
            value
        }
    };
    ctx.next_signal(GO).await?;
    Ok(value + sum.read(|sum| *sum))
}

/// Returns the right result of an errand that was sent this.
pub const fn expected(number: u64, sent: u64) -> u64 {
    let steps = if Extra::of(number).is_a_step() { 4 } else { 3 };
    number + steps + sent
}
