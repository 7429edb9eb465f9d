//! The `checkout` of the front page, with the macros expanded by hand: what the typed layer has to make of a function
//! fits the raw ctx.

use std::marker::PhantomData;
use std::time::Duration;

use dacapo_core::{Ctx, Either, Failure, Payload, Retry};
use dacapo_testkit::{check, expect};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    id: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Receipt {
    id: String,
}

#[derive(Serialize, Deserialize)]
struct Cancel {
    why: String,
}

/// What `const CANCEL: Signal<Cancel>` is.
struct Signal<T>(&'static str, PhantomData<T>);

const CANCEL: Signal<Cancel> = Signal("cancel", PhantomData);

/// What `#[activity]` makes of a function: a name with an input and an output.
struct Activity<I, O>(&'static str, PhantomData<(I, O)>);

const CHARGE: Activity<Order, Receipt> = Activity("charge", PhantomData);
const REFUND: Activity<String, ()> = Activity("refund", PhantomData);
const SHIP: Activity<Order, ()> = Activity("ship", PhantomData);

fn encode(value: &impl Serialize) -> Payload {
    Payload::json(serde_json::to_vec(value).unwrap())
}

fn decode<T: DeserializeOwned>(payload: &Payload) -> Result<T, Failure> {
    serde_json::from_str(payload.as_text().unwrap_or_default())
        .map_err(|error| Failure::application(error.to_string()).typed("Decode"))
}

/// What the typed ctx's `call` does with the raw one.
fn call<I: Serialize, O>(ctx: &Ctx, activity: &Activity<I, O>, input: &I) -> dacapo_core::Activity {
    ctx.activity(activity.0, encode(input))
}

async fn checkout(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    let order: Order = decode(&input)?;
    let charged = call(&ctx, &CHARGE, &order)
        .retry(Retry::exponential().attempts(5))
        .start_to_close(Duration::from_secs(10))
        .await?;
    let receipt: Receipt = decode(&charged)?;
    match ctx.race(ctx.next_signal(CANCEL.0), ctx.sleep(Duration::from_secs(14 * 86_400))).await? {
        Either::First(signal) => {
            let _: Cancel = decode(&signal.input[0])?;
            call(&ctx, &REFUND, &receipt.id).await?
        }
        Either::Second(()) => call(&ctx, &SHIP, &order).await?,
    };
    Ok(encode(&receipt))
}

#[test]
fn order_that_is_not_cancelled_is_shipped_after_two_weeks() {
    check(
        checkout,
        r#"start = {"id":42}
           resolve charge = {"id":"r-1"}
           fire
           resolve ship = null"#,
        expect![[r#"
            turn 0  [] activity charge
            turn 1  [] timer 14d
            turn 2  [] activity ship
            turn 3  [] complete {"id":"r-1"}
        "#]],
    );
}

#[test]
fn an_order_that_is_cancelled_in_time_is_refunded() {
    check(
        checkout,
        r#"start = {"id":42}
           resolve charge = {"id":"r-1"}
           signal cancel = {"why":"too big"}
           resolve refund = null"#,
        expect![[r#"
            turn 0  [] activity charge
            turn 1  [] timer 14d
            turn 2  [] cancel #1  [] activity refund
            turn 3  [] complete {"id":"r-1"}
        "#]],
    );
}

#[test]
fn an_order_that_cannot_be_charged_fails_with_the_bank_s_words() {
    check(
        checkout,
        r#"start = {"id":42}
           fail charge: no money"#,
        expect![[r#"
            turn 0  [] activity charge
            turn 1  [] fail: no money
        "#]],
    );
}
