//! The fixed checkout: v2 as it was, and bonus points behind a patch of their own.
//!
//! Runs that v1 and v2 left, and those that got stuck under v3, go on here as if nothing had been.

use dacapo::prelude::*;

use super::steps::{Decision, decision, declined, reference, undo};
use super::v2::Order;
use crate::order::{Bill, Items, Outcome, Stage};
use crate::shop::Shop;

/// Reserve, screen, charge, wait for the confirmation, wrap and ship, reward; or undo it all.
#[workflow(name = "checkout")]
pub async fn checkout(ctx: Ctx, order: Order) -> Result<Outcome, Failure> {
    let Order { id, sku, quantity, cents, card, gift } = order;

    ctx.publish(&Stage::Reserving);
    let items = Items { order: id.clone(), sku, quantity };
    if let Err(failure) = ctx.call(Shop::reserve, items).start_to_close(secs(5)).await {
        return declined(failure);
    }

    if ctx.patched("screening") {
        ctx.publish(&Stage::Screening);
        if !ctx.call(Shop::screen, card.clone()).await? {
            ctx.call(Shop::release, id).await?;
            return Ok(Outcome::Declined { reason: "the card was reported stolen".to_owned() });
        }
    }

    ctx.publish(&Stage::Charging);
    let reference: String = ctx.side_effect("reference", || async { Ok(format!("SHOP {}", reference())) }).await?;
    let bill = Bill { order: id.clone(), card, cents, reference };
    let brisk = Retry { first_pause: millis(200), max_pause: secs(60), ..Retry::exponential().attempts(8) };
    if let Err(failure) = ctx.call(Shop::charge, bill).retry(brisk).start_to_close(secs(30)).await {
        ctx.call(Shop::release, id).await?;
        return declined(failure);
    }

    let outcome = match decision(&ctx).await? {
        Decision::Confirmed => {
            ctx.publish(&Stage::Shipping);
            if gift {
                ctx.call(Shop::wrap, id.clone()).await?;
            }
            let parcel = ctx.call(Shop::ship, id.clone()).await?;
            let points = if ctx.patched("points") { ctx.call(Shop::reward, (id, cents)).await? } else { 0 };
            Outcome::Shipped { parcel, points }
        }
        Decision::Cancelled(reason) => {
            undo(&ctx, &id).await?;
            Outcome::Cancelled { reason }
        }
        Decision::Expired => {
            undo(&ctx, &id).await?;
            Outcome::Expired
        }
    };
    ctx.publish(&Stage::Closed);
    Ok(outcome)
}
