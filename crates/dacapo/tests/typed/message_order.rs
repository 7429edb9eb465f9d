//! Typed workflows handle messages in the order in which they were acknowledged.

use dacapo::prelude::*;
use dacapo::{Order, WorkflowType};
use dacapo_testkit::Kit;

const FINISH: Signal<()> = Signal::new("finish");

#[derive(Default)]
struct Account {
    sum: u64,
}

#[workflow]
impl Account {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<u64, Failure> {
        ctx.next_signal(FINISH).await?;
        Ok(ctx.state().sum)
    }

    #[signal]
    fn deposit(&mut self, amount: u64) {
        self.sum += amount;
    }
}

/// C-48
#[test]
fn typed_workflow_plays_handlers_first_unless_it_says_otherwise() {
    fn order<P, F: dacapo::WorkflowFn<P>>(_: F) -> Order {
        F::Workflow::definition().pins.order
    }
    assert_eq!(order(Account::run), Order::HandlersFirst);
    assert_eq!(order(counts), Order::HandlersFirst);
    assert_eq!(order(counts_root_first), Order::RootFirst);
}

#[workflow]
async fn counts(ctx: Ctx) -> Result<(), Failure> {
    Ok(ctx.sleep(secs(1)).await?)
}

#[workflow(order = "root_first")]
async fn counts_root_first(ctx: Ctx) -> Result<(), Failure> {
    Ok(ctx.sleep(secs(1)).await?)
}

/// C-48
#[test]
fn delayed_typed_run_returns_the_sum_of_all_deposits_acknowledged_before_its_finish() {
    let mut kit = Kit::new();
    kit.serve(Account::run);
    let app = kit.app();
    let run = kit.wait(async { app.start(Account::run, ()).id("a").delay(secs(60)).await }).unwrap();
    for amount in 1..=5 {
        kit.wait(run.signal(Account::DEPOSIT, amount)).unwrap();
    }
    kit.wait(run.signal(FINISH, ())).unwrap();
    kit.advance(secs(120));
    assert_eq!(kit.wait(run.result()).unwrap(), 15);
}
