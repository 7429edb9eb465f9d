use dacapo::prelude::*;

async fn charge(cents: u64) -> Result<String, Failure> {
    Ok(cents.to_string())
}

#[workflow]
async fn pay(ctx: Ctx, cents: u64) -> Result<String, Failure> {
    ctx.call(charge, cents).await
}

fn main() {}
