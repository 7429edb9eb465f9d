//! Steps that no version changes.

use std::time::{SystemTime, UNIX_EPOCH};

use dacapo::prelude::*;

use crate::order::{CANCEL, CONFIRM, Outcome, Stage};
use crate::shop::Shop;

/// What becomes of an order that was charged.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    Confirmed,
    Cancelled(String),
    Expired,
}

/// Waits until the payment is confirmed, the order is cancelled, or two weeks have passed.
pub(super) async fn decision(ctx: &Ctx) -> Result<Decision, Failure> {
    ctx.publish(&Stage::Confirming);
    let decision = ctx.cell(None);
    let end = ctx
        .phase(&decision)
        .on_signal(CANCEL, |decision, cancel| {
            decision.get_or_insert(Decision::Cancelled(cancel.reason));
            Handled::Done(())
        })
        .on_update(
            CONFIRM,
            |decision, confirm| match (decision, confirm.by.trim()) {
                (Some(_), _) => Err("the order is decided already".into()),
                (None, "") => Err("say who confirms the payment".into()),
                (None, _) => Ok(()),
            },
            |decision, confirm| {
                *decision = Some(Decision::Confirmed);
                Handled::Done(format!("confirmed by {}", confirm.by))
            },
        )
        .until(Option::is_some)
        .timeout(days(14))
        .await?;
    match end {
        PhaseEnd::Timeout => Ok(Decision::Expired),
        PhaseEnd::Condition => Ok(decision.read(Clone::clone).unwrap_or(Decision::Expired)),
    }
}

/// Gives back the money and the stock.
pub(super) async fn undo(ctx: &Ctx, order: &str) -> Result<(), Failure> {
    ctx.publish(&Stage::Undoing);
    ctx.call(Shop::refund, order.to_owned()).await?;
    ctx.call(Shop::release, order.to_owned()).await
}

/// A step said no for good: that is an outcome. If it was cancelled instead, so is the run.
pub(super) fn declined(failure: Failure) -> Result<Outcome, Failure> {
    let said = failure.chain().last().map(|failure| failure.message.clone());
    match failure.is_cancelled() {
        true => Err(failure),
        false => Ok(Outcome::Declined { reason: said.unwrap_or_default() }),
    }
}

/// What stands on the customer's statement: the time on this machine's own clock, which workflow code may only look at in
/// `ctx.run`.
pub(super) fn reference() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
