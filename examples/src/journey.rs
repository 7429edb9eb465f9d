//! A rail journey with several legs: find trains, hold seats, pay before the holds lapse, collect tickets.

use std::io::Write;

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

/// How long the railway keeps a seat that is not paid for.
const HOLD: std::time::Duration = mins(10);

/// The position of a step: "step 8 of 13".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// The snapshot that the journey publishes, so that the next process can say where it goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diary {
    /// The steps that are done, a line each.
    pub done: Vec<String>,
    /// How many steps there will be.
    pub of: usize,
}

impl Diary {
    /// The step that comes next.
    pub fn next(&self) -> Step {
        Step { number: self.done.len() + 1, of: self.of }
    }

    fn note(&mut self, ctx: &Ctx, line: String) {
        self.done.push(line);
        ctx.publish(self);
    }
}

/// Plans and books a journey along these stations.
///
/// It is written as if no process ever died: nothing in it deals with crashes.
#[workflow]
pub async fn journey(ctx: Ctx, stations: Vec<String>) -> Result<String, Failure> {
    let legs: Vec<String> = stations.windows(2).map(|leg| leg.join(" - ")).collect();
    let mut diary = Diary { done: Vec::new(), of: 3 * legs.len() + 1 };
    ctx.publish(&diary);

    let mut trains = Vec::new();
    for leg in &legs {
        let train = ctx.call(find_train, (diary.next(), leg.clone())).await?;
        diary.note(&ctx, format!("{leg}: {train}"));
        trains.push(train);
    }

    let receipt = loop {
        // The timer runs on while this process is dead: a seat is not held longer because we crashed.
        let lapse = ctx.sleep(HOLD);
        let mut cents = 0;
        for train in &trains {
            let price = ctx.call(hold_seat, (diary.next(), train.clone())).await?;
            diary.note(&ctx, format!("seat on {train} held, {}", euros(price)));
            cents += price;
        }
        match ctx.race(ctx.call(pay, (diary.next(), cents)), lapse).await? {
            First(receipt) => break receipt,
            // The branch that loses the race is cancelled. Hold the seats again.
            Second(()) => diary.of += trains.len(),
        }
    };
    diary.note(&ctx, format!("paid: {receipt}"));

    for train in &trains {
        let ticket = ctx.call(collect_ticket, (diary.next(), train.clone())).await?;
        diary.note(&ctx, ticket);
    }
    Ok(format!("{}, {} trains, {receipt}", stations.join(" - "), trains.len()))
}

/// Looks up a train.
#[activity]
pub async fn find_train(step: Step, leg: String) -> Result<String, Failure> {
    work(&step, format!("looking for a train {leg}")).await;
    Ok(format!("EC {}", 100 + leg.len()))
}

/// Holds a seat, and says what it costs in cents.
#[activity]
pub async fn hold_seat(step: Step, train: String) -> Result<u64, Failure> {
    work(&step, format!("holding a seat on {train}")).await;
    Ok(4_900)
}

/// Pays. A bank that is given the key knows a payment that is tried again, and takes the money once.
#[activity]
pub async fn pay(ctx: ActivityCtx, step: Step, cents: u64) -> Result<String, Failure> {
    let _key = ctx.idempotency_key();
    work(&step, format!("paying {}", euros(cents))).await;
    Ok(format!("receipt over {}", euros(cents)))
}

/// Collects a ticket.
#[activity]
pub async fn collect_ticket(step: Step, train: String) -> Result<String, Failure> {
    work(&step, format!("collecting the ticket for {train}")).await;
    Ok(format!("ticket for {train}"))
}

/// A second of work that can be seen.
async fn work(Step { number, of }: &Step, what: String) {
    say(&format!("step {number:>2} of {of}  {what} ..."));
    tokio::time::sleep(secs(1)).await;
    say(" done\n");
}

/// Prints a text and ignores errors: `println!` panics when the output is closed, and an attempt that panics has failed.
pub fn say(what: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(what.as_bytes()).and_then(|()| out.flush());
}

fn euros(cents: u64) -> String {
    format!("{}.{:02} euros", cents / 100, cents % 100)
}
