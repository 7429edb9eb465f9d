//! Messages and values that the shop, its checkouts and its customers exchange.

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

/// The customer, or the shop, gives the order up. Taken while the order waits for its confirmation.
pub const CANCEL: Signal<Cancel> = Signal::new("cancel");

/// The payment is confirmed. Answered with what is sent to whom.
pub const CONFIRM: Update<Confirm, String> = Update::new("confirm");

/// A wish to give an order up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cancel {
    /// Why.
    pub reason: String,
}

/// A confirmation of the payment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Confirm {
    /// Who confirms it.
    pub by: String,
}

/// The stage that a checkout is in. It publishes this before every step, so that looking at an order never disturbs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Stock is being put aside.
    Reserving,
    /// The order is checked for fraud. Since v2.
    Screening,
    /// The card is being charged.
    Charging,
    /// It waits for the confirmation of the payment, or for a wish to cancel.
    Confirming,
    /// It is being sent.
    Shipping,
    /// Earlier steps are being undone.
    Undoing,
    /// It is over.
    Closed,
}

/// The result of a checkout. None of these is a failure: an order that was cancelled was handled well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It is on its way.
    Shipped {
        /// The parcel's number.
        parcel: String,
        /// The bonus points it earned. Since v4; earlier orders earned none.
        #[serde(default)]
        points: u32,
    },
    /// The bank said no; the stock is back.
    Declined {
        /// Why.
        reason: String,
    },
    /// It was cancelled; the stock and the money are back.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// It was not confirmed in time; the stock and the money are back.
    Expired,
}

/// The items to reserve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Items {
    /// For which order.
    pub order: String,
    /// What.
    pub sku: String,
    /// How many.
    pub quantity: u32,
}

/// The amount to charge.
///
/// Activities are handed values of their own and not the whole order: what an activity was called with is compared on
/// replay, so an order with a new field would be another command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bill {
    /// For which order.
    pub order: String,
    /// Whom.
    pub card: String,
    /// How much.
    pub cents: u32,
    /// What stands on the customer's statement.
    pub reference: String,
}
