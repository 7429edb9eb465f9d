use dacapo::prelude::*;

#[activity]
async fn charge(cents: u64) -> Result<String, Failure> {
    Ok(cents.to_string())
}

#[activity]
async fn transfer(from: String, cents: u64) -> Result<(), Failure> {
    let _ = (from, cents);
    Ok(())
}

#[workflow]
async fn pay(ctx: Ctx, order: String) -> Result<(), Failure> {
    ctx.call(charge, order.clone()).await?;
    ctx.call(transfer, (1, order)).await
}

fn main() {}
