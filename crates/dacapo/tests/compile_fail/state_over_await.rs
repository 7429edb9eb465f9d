use dacapo::prelude::*;

#[derive(Default)]
struct Account {
    cents: u64,
}

#[workflow]
impl Account {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<u64, Failure> {
        let account = ctx.state();
        ctx.sleep(secs(1)).await?;
        Ok(account.cents)
    }
}

fn main() {}
