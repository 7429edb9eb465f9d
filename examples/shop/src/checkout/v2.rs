//! The second checkout: tuned, with gifts, and with a screening before the charge.
//!
//! Nothing here breaks an open run. Retries and timeouts are tuning: what was recorded wins. A field with a default reads
//! orders that lack it. The screening stands behind a patch: runs that were past this point are not screened.

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

use super::steps::{Decision, decision, declined, reference, undo};
use super::v1;
use crate::order::{Bill, Items, Outcome, Stage};
use crate::shop::Shop;

/// An order as it is known since v2.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The shop's name for it.
    pub id: String,
    /// What.
    pub sku: String,
    /// How many.
    pub quantity: u32,
    /// What it costs.
    pub cents: u32,
    /// Who pays.
    pub card: String,
    /// Whether it is wrapped. Orders from before v2 were not asked.
    #[serde(default)]
    pub gift: bool,
}

impl From<Order> for v1::Order {
    fn from(order: Order) -> Self {
        let Order { id, sku, quantity, cents, card, gift: _ } = order;
        Self { id, sku, quantity, cents, card }
    }
}

/// Reserve, screen, charge, wait for the confirmation, wrap and ship; or undo it all.
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
