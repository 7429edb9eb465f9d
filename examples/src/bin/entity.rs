//! The life of an account, which is longer than any of its runs.

use anyhow::Result;
use dacapo::Filter;
use dacapo::prelude::*;
use dacapo_examples::entity::Account;

#[tokio::main]
async fn main() -> Result<()> {
    let app = Dacapo::open(&dacapo_examples::url_or("memory:")).await?.serve(Account::run).await?;
    app.start(Account::run, Account::default()).id("account-ada").await?;
    // By its id alone: whichever run it is in now.
    let account = app.handle(Account::run, "account-ada");
    for cents in 1..=20 {
        account.signal(Account::DEPOSIT, cents * 100).await?;
    }
    println!("after 20 deposits: {} cents", account.query(Account::BALANCE, ()).await?);
    println!("after a withdrawal: {} cents", account.update(Account::WITHDRAW, 1_000).await?);
    if let Err(error) = account.update(Account::WITHDRAW, 1_000_000).await {
        println!("too much: {error}");
    }
    account.signal(Account::CLOSE, ()).await?;
    println!("closed with {} cents", account.result().await?);
    println!("that took {} runs", app.runs().count(&Filter::all().workflow_id("account-ada")).await?);
    app.shutdown().await;
    Ok(())
}
