//! Plays an order, forgets the run after every turn, plays it again from the beginning, and shows what happens when the
//! code changes under it. Run it with `cargo run --example checkout`.

use std::time::Duration;

use dacapo_core::{Ctx, Either, Failure, Payload, Pins, RunOptions};
use dacapo_testkit::{Mode, Player, workflow};

async fn checkout(ctx: Ctx, order: Payload) -> Result<Payload, Failure> {
    let receipt = ctx.activity("charge", order.clone()).await?;
    match ctx.race(ctx.next_signal("cancel"), ctx.sleep(Duration::from_secs(14 * 86_400))).await? {
        Either::First(_) => ctx.activity("refund", receipt.clone()).await?,
        Either::Second(()) => ctx.activity("ship", order).await?,
    };
    Ok(receipt)
}

/// The same workflow after a change: it waits for three weeks.
async fn patient_checkout(ctx: Ctx, order: Payload) -> Result<Payload, Failure> {
    let receipt = ctx.activity("charge", order.clone()).await?;
    match ctx.race(ctx.next_signal("cancel"), ctx.sleep(Duration::from_secs(21 * 86_400))).await? {
        Either::First(_) => ctx.activity("refund", receipt.clone()).await?,
        Either::Second(()) => ctx.activity("ship", order).await?,
    };
    Ok(receipt)
}

const SCRIPT: &str = "
    start = order-42
    resolve charge = receipt-7
    signal cancel = too big
    resolve refund = done
";

fn main() {
    println!("Played, and forgotten and rebuilt from its transcript after every turn:\n");
    let mut play = Player::new(workflow(checkout), Pins::default(), Mode::Evicted);
    play.play(SCRIPT);
    println!("{}", play.printed);

    println!("What was recorded:\n\n{}", play.transcript.to_text());

    println!("The record, played again by code that was changed:\n");
    match play.transcript.replay(&workflow(patient_checkout), RunOptions::default()) {
        Ok(_) => println!("nothing differs"),
        Err(failed) => println!("{}", failed.error),
    }
}
