//! **A bad deploy.** It looks harmless in review: the reference became a number, and it is drawn before the screening. But
//! open runs recorded a text, and recorded the screening first.
//!
//! Runs from v1 cannot read their reference, runs from v2 find another command where they recorded the screening. None of
//! them fails: they get stuck when something wakes them.

use dacapo::prelude::*;

use super::steps::{Decision, decision, declined, reference, undo};
use super::v2::Order;
use crate::order::{Bill, Items, Outcome, Stage};
use crate::shop::Shop;

/// Reserve, screen, charge, wait for the confirmation, wrap and ship; or undo it all.
#[workflow(name = "checkout")]
pub async fn checkout(ctx: Ctx, order: Order) -> Result<Outcome, Failure> {
    let Order { id, sku, quantity, cents, card, gift } = order;

    ctx.publish(&Stage::Reserving);
    let items = Items { order: id.clone(), sku, quantity };
    if let Err(failure) = ctx.call(Shop::reserve, items).start_to_close(secs(5)).await {
        return declined(failure);
    }

    let reference: u64 = ctx.side_effect("reference", || async { Ok(reference()) }).await?;

    if ctx.patched("screening") {
        ctx.publish(&Stage::Screening);
        if !ctx.call(Shop::screen, card.clone()).await? {
            ctx.call(Shop::release, id).await?;
            return Ok(Outcome::Declined { reason: "the card was reported stolen".to_owned() });
        }
    }

    ctx.publish(&Stage::Charging);
    let bill = Bill { order: id.clone(), card, cents, reference: format!("SHOP {reference}") };
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
            let parcel = ctx.call(Shop::ship, id).await?;
            Outcome::Shipped { parcel, points: 0 }
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
