//! The shop: an order is reserved, paid and sent.

use std::sync::Arc;

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

use super::PAUSE;
use super::bank::Bank;

const CUSTOMERS: [&str; 5] = ["ada", "bob", "cleo", "dan", "eve"];

/// An order of a customer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    number: u16,
    pub(super) customer: String,
    cents: i64,
}

impl Order {
    /// The order of this number, always the same.
    pub(super) fn of(number: u16) -> Self {
        let customer = CUSTOMERS[usize::from(number) % CUSTOMERS.len()].to_owned();
        Self { number, customer, cents: 500 + i64::from(number % 7) * 150 }
    }
}

/// The activities of the shop.
pub(super) struct Shop {
    pub(super) bank: Arc<Bank>,
}

#[activities]
impl Shop {
    /// Reserves the goods.
    #[activity]
    async fn reserve(self: Arc<Self>, order: Order) -> Result<(), Failure> {
        tokio::time::sleep(PAUSE).await;
        drop(order);
        Ok(())
    }

    /// Moves the money. The bank is out of reach at the first attempt of every third order, after it has made the payment.
    #[activity]
    async fn charge(self: Arc<Self>, ctx: ActivityCtx, order: Order) -> Result<(), Failure> {
        tokio::time::sleep(PAUSE).await;
        let paid = self.bank.pay(&ctx.idempotency_key(), &order.customer, "shop", order.cents);
        paid.map_err(|error| Failure::from(format!("the bank's book cannot be written: {error}")))?;
        if order.number.is_multiple_of(3) && ctx.info().attempt == 1 {
            return Err("the bank did not answer".into());
        }
        Ok(())
    }

    /// Sends the parcel.
    #[activity]
    async fn send(self: Arc<Self>, order: Order) -> Result<String, Failure> {
        tokio::time::sleep(PAUSE).await;
        Ok(format!("parcel {} to {}", order.number, order.customer))
    }
}

/// Sells to a customer.
#[workflow]
pub(super) async fn checkout(ctx: Ctx, order: Order) -> Result<String, Failure> {
    ctx.call(Shop::reserve, order.clone()).await?;
    ctx.call(Shop::charge, order.clone()).await?;
    ctx.sleep(PAUSE * u32::from(1 + order.number % 9)).await?;
    ctx.call(Shop::send, order).await
}
