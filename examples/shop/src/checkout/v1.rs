//! The first checkout.

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

use super::steps::{Decision, decision, declined, reference, undo};
use crate::order::{Bill, Items, Outcome, Stage};
use crate::shop::Shop;

/// An order as v1 knows it.
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
}

/// Reserve, charge, wait for the confirmation, ship; or undo it all.
#[workflow(name = "checkout")]
pub async fn checkout(ctx: Ctx, order: Order) -> Result<Outcome, Failure> {
    let Order { id, sku, quantity, cents, card } = order;

    ctx.publish(&Stage::Reserving);
    let items = Items { order: id.clone(), sku, quantity };
    if let Err(failure) = ctx.call(Shop::reserve, items).start_to_close(secs(10)).await {
        return declined(failure);
    }

    ctx.publish(&Stage::Charging);
    let reference: String = ctx.side_effect("reference", || async { Ok(format!("SHOP {}", reference())) }).await?;
    let bill = Bill { order: id.clone(), card, cents, reference };
    let patient = Retry { first_pause: secs(1), max_pause: secs(2), ..Retry::exponential().attempts(100) };
    if let Err(failure) = ctx.call(Shop::charge, bill).retry(patient).start_to_close(mins(5)).await {
        ctx.call(Shop::release, id).await?;
        return declined(failure);
    }

    let outcome = match decision(&ctx).await? {
        Decision::Confirmed => {
            ctx.publish(&Stage::Shipping);
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
