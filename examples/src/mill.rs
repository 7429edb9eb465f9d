//! Work of all kinds whose right results are known: for the test that kills its process, and not to learn from.
//!
//! Every attempt appends one line to a file, in one write: the number of the process, the activity's key, the attempt. What
//! is in that file has happened, even if the process was killed right after it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use dacapo::core::PolicySpec;
use dacapo::prelude::*;
use dacapo::{IdConflict, Pins};

/// The signal that a `fed` run takes.
pub const GRAIN: Signal<u64> = Signal::new("grain");

/// The file to which attempts append their lines.
#[derive(Debug)]
pub struct Log {
    file: File,
    life: u32,
}

impl Log {
    /// A log for this life of the process.
    pub fn open(path: impl AsRef<Path>, life: u32) -> std::io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)?, life })
    }

    fn note(&self, ctx: &ActivityCtx) -> Result<(), Failure> {
        let line = format!("{} {} {}\n", self.life, ctx.idempotency_key(), ctx.info().attempt);
        Ok((&self.file).write_all(line.as_bytes())?)
    }
}

#[activities]
impl Log {
    /// Squares a number, slowly.
    #[activity]
    pub async fn grind(self: Arc<Self>, ctx: ActivityCtx, n: u64) -> Result<u64, Failure> {
        self.note(&ctx)?;
        tokio::time::sleep(millis(1 + n % 5)).await;
        Ok(n * n)
    }

    /// The same, at the third attempt.
    #[activity]
    pub async fn balk(self: Arc<Self>, ctx: ActivityCtx, n: u64) -> Result<u64, Failure> {
        self.note(&ctx)?;
        if ctx.info().attempt < 3 { Err("not yet".into()) } else { Ok(n * n) }
    }
}

/// One after the other.
#[workflow]
pub async fn line(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    for k in n..n + 6 {
        sum += ctx.call(Log::grind, k).await?;
    }
    Ok(sum)
}

/// Side by side, in an order that is drawn.
#[workflow]
pub async fn fan(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let branches = (n..n + 6).map(|k| {
        let ctx = ctx.clone();
        async move {
            // Either way is right; which one is taken is drawn once, and for ever.
            let n = if ctx.choose(2) == 0 {
                ctx.call(Log::grind, k).await?
            } else {
                ctx.call(Log::balk, k).retry(soon()).await?
            };
            ctx.call(Log::grind, k).await.map(|m| n + m)
        }
    });
    ctx.parallel(branches).await.into_iter().sum()
}

/// With pauses.
#[workflow]
pub async fn nap(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    for k in n..n + 4 {
        ctx.sleep(millis(5)).await?;
        sum += ctx.call(Log::grind, k).await?;
    }
    Ok(sum)
}

/// With failures.
#[workflow]
pub async fn stubborn(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    for k in n..n + 3 {
        sum += ctx.call(Log::balk, k).retry(soon()).await?;
    }
    Ok(sum)
}

/// With children.
#[workflow]
pub async fn family(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let (one, other) = (ctx.child(line, n), ctx.child(nap, n));
    Ok(one.await? + other.await?)
}

/// Between turns.
#[workflow]
pub async fn at_home(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    for k in n..n + 4 {
        sum += ctx.call_local(Log::grind, k).await?;
        sum += ctx.side_effect("one more", || async { Ok(1) }).await?;
    }
    Ok(sum)
}

/// By signals, two in each run of its chain.
#[workflow]
pub async fn fed(ctx: Ctx, n: u64, done: u64, sum: u64) -> Result<u64, Failure> {
    let mut sum = sum;
    for _ in 0..2 {
        let k = ctx.next_signal(GRAIN).await?;
        sum += ctx.call(Log::grind, k).await?;
    }
    if done + 2 == MEALS { Ok(sum) } else { Err(ctx.continue_as_new(fed, (n, done + 2, sum))) }
}

/// How many signals [`fed`] takes.
const MEALS: u64 = 6;

fn soon() -> Retry {
    Retry { first_pause: millis(2), ..Retry::exponential() }
}

/// The kinds of work there are.
pub const KINDS: [&str; 7] = ["line", "fan", "nap", "stubborn", "family", "at_home", "fed"];

/// Returns the right result of work of this kind.
pub fn expected(kind: &str, n: u64) -> u64 {
    let squares = |count: u64| (n..n + count).map(|k| k * k).sum::<u64>();
    match kind {
        "line" => squares(6),
        "fan" => 2 * squares(6),
        "nap" => squares(4),
        "stubborn" => squares(3),
        "family" => squares(6) + squares(4),
        "at_home" => squares(4) + 4,
        "fed" => squares(MEALS),
        other => unreachable!("{other} is no kind of work"),
    }
}

/// Starts a piece of work, unless an earlier life of the process did, and waits for it.
pub async fn work(app: App, kind: &'static str, n: u64) -> dacapo::Result<u64> {
    let id = format!("{kind}-{n}");
    let policy = if kind == "fan" { PolicySpec::Random { seed: n } } else { PolicySpec::Deterministic };
    let pins = Pins { policy, ..Pins::default() };
    let input = match kind {
        "fed" => vec![n.into(), 0.into(), 0.into()],
        _ => vec![n.into()],
    };
    let start = app.start_raw(kind, input).id(id.clone()).id_conflict(IdConflict::UseExisting);
    // Sent again by every life, it is the same start.
    start.request_id(format!("start {id}")).pins(pins).await?;
    let run = app.handle_of::<u64>(id);
    if kind == "fed" {
        for k in n..n + MEALS {
            run.signal(GRAIN, k).request_id(format!("meal {k}")).await?;
        }
    }
    run.result().await
}
