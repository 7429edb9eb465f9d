use dacapo::prelude::*;

#[workflow]
async fn nothing() -> Result<(), Failure> {
    Ok(())
}

#[workflow]
async fn other(order: String) -> Result<(), Failure> {
    let _ = order;
    Ok(())
}

#[workflow]
fn sync(ctx: Ctx) -> Result<(), Failure> {
    let _ = ctx;
    Ok(())
}

#[workflow]
struct Nothing;

fn main() {}
