use dacapo::prelude::*;

const CANCEL: Signal<String> = Signal::new("cancel");

#[workflow]
async fn stop(ctx: Ctx) -> Result<u64, Failure> {
    ctx.signal_external("order-1", CANCEL, 5).await?;
    ctx.next_signal(CANCEL).await
}

fn main() {}
