//! An entity: an account that lives for as long as its owner, as a workflow with state.

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

/// How many events a run takes before it continues as new, with a short history.
const EVENTS: u32 = 5;

/// An account. All of it travels to the next run, except what only this run needs to know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The balance.
    pub cents: u64,
    /// The number of deposits and withdrawals, in all runs.
    pub moves: u32,
    #[serde(skip)]
    events: u32,
    #[serde(skip)]
    closed: bool,
}

#[workflow(name = "account")]
impl Account {
    #[init]
    fn carried_over(account: &Account) -> Self {
        account.clone()
    }

    /// Lives until it is closed, and gives what was left.
    #[run]
    pub async fn run(ctx: Ctx<Self>, _: Account) -> Result<u64, Failure> {
        ctx.wait_state(|account| account.closed || account.events >= EVENTS).await?;
        let account = ctx.state().clone();
        if account.closed {
            return Ok(account.cents);
        }
        // A message that comes just now is not lost: this turn is only committed if the run has seen all its messages.
        Err(ctx.continue_as_new(Account::run, account))
    }

    /// Puts money in.
    #[signal]
    pub fn deposit(&mut self, cents: u64) {
        self.cents += cents;
        self.moved();
    }

    /// Takes money out, and says what is left.
    #[update]
    pub fn withdraw(&mut self, cents: u64) -> Result<u64, Failure> {
        self.cents -= cents;
        self.moved();
        Ok(self.cents)
    }

    /// An account is never overdrawn: such a withdrawal is refused, and leaves no trace.
    #[validate(withdraw)]
    fn may_withdraw(&self, cents: &u64) -> Result<(), Failure> {
        if *cents <= self.cents { Ok(()) } else { Err(format!("there are {} cents, not {cents}", self.cents).into()) }
    }

    /// Returns the balance.
    #[query]
    pub fn balance(&self) -> u64 {
        self.cents
    }

    /// Closes the account.
    #[signal]
    pub fn close(&mut self) {
        self.closed = true;
    }

    fn moved(&mut self) {
        self.moves += 1;
        self.events += 1;
    }
}
