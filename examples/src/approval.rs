//! An approval: a request waits for a person, who may take days, forget it, or be on holiday.

use std::time::Duration;

use dacapo::Query;
use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

/// The update with which a person decides. The validator refuses a second decision, so a sender knows whether theirs counted.
pub const DECIDE: Update<Decision, String> = Update::new("decide");

/// The query for the person that the request waits for.
pub const WAITS_FOR: Query<(), String> = Query::new("waits_for");

/// A request that a manager or a director decides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The thing that is requested.
    pub what: String,
    /// The person who decides first.
    pub manager: String,
    /// The person who decides if the manager does not.
    pub director: String,
    /// How long each person has before a reminder is sent.
    pub patience: Duration,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The person who decided.
    pub by: String,
    /// Yes or no.
    pub approved: bool,
}

/// How often a person is reminded before the next one is asked.
const REMINDERS: u32 = 2;

/// Waits for a decision, reminds, escalates, and in the end says no.
#[workflow]
pub async fn approval(ctx: Ctx, request: Request) -> Result<Decision, Failure> {
    let decision = ctx.cell(None::<Decision>);
    let waits_for = ctx.cell(request.manager.clone());
    let (seen, given) = (decision.clone(), decision.clone());
    ctx.on_update(
        DECIDE,
        move |_| seen.read(|seen| seen.as_ref().map_or(Ok(()), |seen| Err(format!("{} decided", seen.by).into()))),
        move |decision| {
            let given = given.clone();
            async move { Ok(format!("thank you, {}", given.update(|given| given.insert(decision).by.clone()))) }
        },
    );
    let who = waits_for.clone();
    ctx.on_query(WAITS_FOR, move |()| Ok(who.read(String::clone)));

    for who in [request.manager, request.director] {
        waits_for.update(|waits_for| waits_for.clone_from(&who));
        for reminder in 0..=REMINDERS {
            let text = if reminder == 0 { "please decide on" } else { "do not forget" };
            ctx.call(send_email, (who.clone(), format!("{text} {}", request.what))).await?;
            let decided = decision.clone();
            let decided = ctx.wait_until(move || decided.read(Option::is_some));
            // This may take days, and needs no thread, connection or memory meanwhile.
            if let First(()) = ctx.race(decided, ctx.sleep(request.patience)).await? {
                return Ok(decision.read(Option::clone).expect("it was just seen"));
            }
        }
    }
    Ok(Decision { by: "timeout".into(), approved: false })
}

/// Sends an email.
#[activity]
pub async fn send_email(to: String, text: String) -> Result<(), Failure> {
    println!("  email to {to}: {text}");
    Ok(())
}
