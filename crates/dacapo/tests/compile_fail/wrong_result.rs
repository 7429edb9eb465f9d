use dacapo::prelude::*;

#[activity]
async fn charge(cents: u64) -> Result<String, Failure> {
    Ok(cents.to_string())
}

#[workflow]
async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> {
    let receipt: u64 = ctx.call(charge, cents).await?;
    Ok(receipt)
}

fn main() {}
