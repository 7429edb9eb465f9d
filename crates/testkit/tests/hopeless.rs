//! A test of a workflow that cannot end says so, and does not hang.

use dacapo::prelude::*;
use dacapo_testkit::Kit;

#[workflow]
async fn clumsy(_ctx: Ctx) -> Result<(), Failure> {
    panic!("over its own feet")
}

#[workflow]
async fn endless(ctx: Ctx) -> Result<(), Failure> {
    loop {
        ctx.sleep(secs(1)).await?;
    }
}

#[test]
#[should_panic(expected = "over its own feet")]
fn a_run_that_cannot_be_played_fails_the_test_with_its_reason() {
    let _ = Kit::new().run(clumsy, ());
}

#[test]
#[should_panic(expected = "does not end")]
fn a_run_that_never_ends_fails_the_test() {
    let _ = Kit::new().run(endless, ());
}
