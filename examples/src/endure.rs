//! Mixed work that never ends: the soak test runs, kills and audits it. Every run writes its result into a file before it
//! ends, because closed runs are deleted soon, perhaps before the test has read their results.

use std::fs::OpenOptions;
use std::io::Write;

use dacapo::prelude::*;

/// The signal that a waiting run is sent.
pub const GO: Signal<u64> = Signal::new("go");

/// A piece of work: its id, the file that results are written to, and its number.
pub type Piece = (String, String, u64);

#[activity]
async fn step(number: u64) -> Result<u64, Failure> {
    Ok(number + 1)
}

/// Writes the result of a run. A line is written whole, and perhaps more than once.
#[activity]
async fn account(file: String, id: String, value: u64) -> Result<u64, Failure> {
    let mut file = OpenOptions::new().create(true).append(true).open(file).or_fail()?;
    file.write_all(format!("{id} {value}\n").as_bytes()).or_fail()?;
    Ok(value)
}

/// Activities in a row.
#[workflow]
pub async fn chain(ctx: Ctx, (id, file, number): Piece) -> Result<u64, Failure> {
    let mut value = number;
    for _ in 0..5 {
        value = ctx.call(step, value).await?;
    }
    ctx.call(account, (file, id, value)).await
}

/// Activities at once.
#[workflow]
pub async fn fan(ctx: Ctx, (id, file, number): Piece) -> Result<u64, Failure> {
    let all: Vec<_> = (0..10).map(|_| ctx.call(step, number)).collect();
    let mut value = 0;
    for one in all {
        value += one.await?;
    }
    ctx.call(account, (file, id, value)).await
}

/// A timer.
#[workflow]
pub async fn nap(ctx: Ctx, (id, file, number): Piece) -> Result<u64, Failure> {
    ctx.sleep(millis(200 + number % 2_000)).await?;
    ctx.call(account, (file, id, number)).await
}

/// A signal.
#[workflow]
pub async fn waits(ctx: Ctx, (id, file, number): Piece) -> Result<u64, Failure> {
    let sent = ctx.next_signal(GO).await?;
    ctx.call(account, (file, id, number + sent)).await
}

/// Children.
#[workflow]
pub async fn family(ctx: Ctx, (id, file, number): Piece) -> Result<u64, Failure> {
    let child = |name: &str| ctx.child(chain, (format!("{id}-{name}"), file.clone(), number));
    let (one, other) = (child("one"), child("other"));
    let value = one.await? + other.await?;
    ctx.call(account, (file, id, value)).await
}

/// A run that goes on as another, three times.
#[workflow]
pub async fn counter(ctx: Ctx, (id, file, number): Piece, round: u64) -> Result<u64, Failure> {
    let value = ctx.call(step, number).await?;
    match round {
        0 => ctx.call(account, (file, id, value)).await,
        _ => Err(ctx.continue_as_new(counter, ((id, file, value), round - 1))),
    }
}

/// All kinds of work, and the activities they need.
pub const KINDS: [&str; 6] = ["chain", "fan", "nap", "waits", "family", "counter"];

/// Serves all of them.
pub async fn serve(store: Dacapo) -> dacapo::Result<App> {
    store.serve((chain, fan, nap, waits, family, counter, step, account)).await
}

/// Starts a piece of work. The start is durable when this answers.
pub async fn start(app: &App, kind: &str, piece: Piece) -> dacapo::Result<Handle<u64>> {
    let id = piece.0.clone();
    match kind {
        "chain" => app.start(chain, piece).id(id).await,
        "fan" => app.start(fan, piece).id(id).await,
        "nap" => app.start(nap, piece).id(id).await,
        "waits" => app.start(waits, piece).id(id).await,
        "family" => app.start(family, piece).id(id).await,
        _ => app.start(counter, (piece, 3)).id(id).await,
    }
}

/// Returns the right result of a piece of work.
pub fn expected(kind: &str, number: u64) -> u64 {
    match kind {
        "chain" => number + 5,
        "fan" => 10 * (number + 1),
        "nap" => number,
        "waits" => number + 7,
        "family" => 2 * (number + 5),
        _ => number + 4,
    }
}

/// Sends what waiting runs wait for. Sent again it is the same signal.
pub async fn release(app: &App, id: &str) -> dacapo::Result<()> {
    app.handle(waits, id).signal(GO, 7).request_id("go").await
}
