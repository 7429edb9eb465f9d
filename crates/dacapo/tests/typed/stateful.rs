//! Workflows with state: signals, queries, updates and validators over one struct.

use std::sync::Arc;

use dacapo::Query;
use dacapo::prelude::*;
use dacapo::{Order, WorkflowType};
use dacapo_testkit::{Mode, Player, expect};
use serde::{Deserialize, Serialize};

use crate::kit::{check, check_refused};

#[activity]
async fn notify(text: String) -> Result<(), Failure> {
    let _ = text;
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Deposit {
    cents: u64,
}

#[derive(Default)]
struct Account {
    cents: u64,
    closed: bool,
    notes: Vec<String>,
}

#[workflow(name = "account", order = "handlers_first", unfinished_handlers = "wait")]
impl Account {
    const FEE: u64 = 1;

    #[init]
    fn opened(first: &u64) -> Self {
        Self { cents: *first, ..Self::default() }
    }

    #[run]
    async fn run(ctx: Ctx<Self>, first: u64) -> Result<u64, Failure> {
        assert_eq!(ctx.state().cents, first);
        ctx.wait_state(|account| account.closed).await?;
        let text = ctx.state().notes.join(", ");
        ctx.call(notify, text).await?;
        Ok(ctx.state().cents)
    }

    #[signal]
    fn deposit(&mut self, deposit: Deposit) {
        self.cents += deposit.cents;
    }

    /// Adds a note after an activity has ended.
    #[signal(name = "jot")]
    async fn note(ctx: Ctx<Self>, text: String) -> Result<(), Failure> {
        ctx.call(notify, text.clone()).await?;
        ctx.state().notes.push(text);
        Ok(())
    }

    #[signal]
    fn close(&mut self) {
        self.closed = true;
    }

    #[query]
    fn balance(&self) -> u64 {
        self.cents
    }

    #[query]
    fn can_pay(&self, cents: u64) -> Result<bool, String> {
        if cents == 0 { Err("nothing to pay".to_owned()) } else { Ok(self.cents >= cents) }
    }

    #[update]
    fn withdraw(&mut self, cents: u64) -> Result<u64, Failure> {
        self.cents -= cents + Self::FEE;
        Ok(self.cents)
    }

    #[validate(withdraw)]
    fn may_withdraw(&self, cents: &u64) -> Result<(), Failure> {
        match self.cents >= cents + Self::FEE {
            true => Ok(()),
            false => Err(Failure::application("not enough")),
        }
    }

    #[update]
    async fn send(ctx: Ctx<Self>, text: String) -> Result<usize, Failure> {
        ctx.call(notify, text.clone()).await?;
        Ok(text.len())
    }
}

#[test]
fn workflow_with_state_is_played_with_its_handlers() {
    check(
        Account::run,
        r#"start = 5
           signal deposit = {"cents":10}, update withdraw u1 = 100
           query balance
           query can_pay = 15
           query can_pay = 0
           signal jot = "hi", update withdraw u2 = 4, update send u3 = "abc"
           resolve notify, resolve notify
           update withdraw u4 = "all"
           signal close
           resolve notify"#,
        expect![[r#"
            turn 0
            turn 1
              rejected u1: not enough
            answer 15
            answer true
            no answer: nothing to pay
            turn 2  [h2] accept update u2  [h3] accept update u3  [h1] activity notify  [h2] complete update u2 ok 10  [h3] activity notify
            turn 3  [h3] complete update u3 ok 3
            no turn
              rejected u4: update "withdraw": the value cannot be read as `u64`: invalid type: string "all", expected u64 at line 1 column 5; it is `"all"`; send a value of that type
            turn 4  [] activity notify
            turn 5  [] complete 10
        "#]],
    );
}

#[test]
fn handlers_of_a_workflow_with_state_have_typed_names() {
    let deposit: Signal<Deposit> = Account::DEPOSIT;
    let note: Signal<String> = Account::NOTE;
    let balance: Query<(), u64> = Account::BALANCE;
    let can_pay: Query<u64, bool> = Account::CAN_PAY;
    let withdraw: Update<u64, u64> = Account::WITHDRAW;
    let send: Update<String, usize> = Account::SEND;
    let close: Signal<()> = Account::CLOSE;
    let names =
        [deposit.name(), note.name(), balance.name(), can_pay.name(), withdraw.name(), send.name(), close.name()];
    assert_eq!(names, ["deposit", "jot", "balance", "can_pay", "withdraw", "send", "close"]);
}

#[test]
fn options_of_a_workflow_with_state_are_in_its_definition() {
    let definition = Account::definition();
    assert_eq!(Account::NAME, "account");
    assert_eq!(definition.workflow.name(), "account");
    assert_eq!(definition.pins.order, Order::HandlersFirst);
}

#[workflow]
async fn opens(ctx: Ctx) -> Result<u64, Failure> {
    ctx.child(Account::run, 3).id("a-1").await
}

#[test]
fn workflow_with_state_can_be_a_child() {
    check(
        opens,
        "start
         started account = r
         resolve account = 8",
        expect![[r#"
            turn 0  [] child account
            turn 1
            turn 2  [] complete 8
        "#]],
    );
}

#[derive(Default)]
struct Tally(u64);

#[workflow]
impl Tally {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<u64, Failure> {
        let held = ctx.state();
        let twice = ctx.state();
        Ok(held.0 + twice.0)
    }
}

#[test]
fn entering_the_state_twice_fails_the_activation() {
    check_refused(
        Tally::run,
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/dacapo/tests/typed/stateful.rs a state cell was entered while it was entered already; let go of one guard, or return from one closure, before the next
        "#]],
    );
}

#[derive(Default)]
struct Changes(u64);

#[workflow]
impl Changes {
    #[run]
    async fn run(ctx: Ctx<Self>, change: bool) -> Result<u64, Failure> {
        let inner = ctx.clone();
        ctx.wait_until(move || {
            if change {
                inner.state().0 = 1;
            }
            inner.state().0 == 0
        })
        .await?;
        Ok(ctx.state().0)
    }
}

#[test]
fn condition_that_changes_the_state_fails_the_activation() {
    check(
        Changes::run,
        "start = false",
        expect![[r#"
        turn 0  [] complete 0
    "#]],
    );
    check_refused(
        Changes::run,
        "start = true",
        expect![[r#"
            failed: a condition, validator or query changed a state cell; such closures only look
            in the root unit, at crates/dacapo/tests/typed/stateful.rs
        "#]],
    );
}

thread_local! {
    static PROBE: Arc<()> = Arc::new(());
}

struct HoldsProbe {
    _probe: Arc<()>,
    ended: bool,
}

#[workflow]
impl HoldsProbe {
    #[init]
    fn new() -> Self {
        Self { _probe: PROBE.with(Arc::clone), ended: false }
    }

    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<(), Failure> {
        Ok(ctx.wait_state(|held| held.ended).await?)
    }

    #[signal]
    fn end(&mut self) {
        self.ended = true;
    }

    #[query]
    fn ended(&self) -> bool {
        self.ended
    }

    #[update]
    async fn ask(ctx: Ctx<Self>, _: ()) -> Result<(), Failure> {
        ctx.call(notify, String::new()).await
    }
}

/// Handlers and conditions hold the ctx, and the run holds them.
#[test]
fn dropped_run_drops_its_state() {
    let count = || PROBE.with(Arc::strong_count);
    let definition = HoldsProbe::definition();
    let mut play = Player::new(definition.workflow, definition.pins, Mode::Whole);
    play.play(
        "start
         update ask u",
    );
    assert_eq!(count(), 2);
    drop(play);
    assert_eq!(count(), 1);
}
