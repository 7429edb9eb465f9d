//! The messages of tests that fail: a few lines that say what a run waits for and what to do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dacapo::prelude::*;
use dacapo_testkit::{Kit, expect};

#[activity]
async fn charge(order: u64) -> Result<u64, Failure> {
    panic!("tests charge nothing for {order}")
}

const GO: Signal<()> = Signal::new("go");

/// Returns the message with which the test fails. Call sites are left out: they change with every line of this file.
fn message(test: impl FnOnce(&mut Kit)) -> String {
    let mut kit = Kit::new();
    let panic = catch_unwind(AssertUnwindSafe(|| test(&mut kit))).expect_err("the test must fail");
    let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    let lines = text.lines().map(|line| match line.split_once(", at ") {
        Some((before, site)) => {
            let after = site.split_once(": attempt").map(|(_, after)| format!(": attempt{after}"));
            format!("{before}, at …{}", after.unwrap_or_default())
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[workflow]
async fn panics(_ctx: Ctx) -> Result<(), Failure> {
    panic!("over its own feet")
}

#[workflow]
async fn sleeps_for_ever(ctx: Ctx) -> Result<(), Failure> {
    loop {
        ctx.sleep(secs(1)).await?;
    }
}

#[test]
fn run_that_panics_fails_the_test_with_the_panic() {
    let text = message(|kit| drop(kit.run(panics, ())));
    assert!(text.contains("over its own feet"), "{text}");
    assert!(text.starts_with("run \"test-1\" of workflow \"panics\" is stuck: "), "{text}");
}

#[test]
fn run_that_sleeps_for_ever_fails_the_test() {
    expect![[r#"
        run "test-1" of workflow "sleeps_for_ever" does not end: it was woken thousands of times, and still waits for the next time, 5h 33m 20s after its start.
          the root unit waits for timer 1s #20000 since 5h 33m 20s after the start, at …
        Print `kit.report()` for everything that is known."#]]
    .assert_eq(&message(|kit| drop(kit.run(sleeps_for_ever, ()))));
}

#[workflow]
async fn waits_for_much(ctx: Ctx) -> Result<(), Failure> {
    ctx.sleep(days(3)).await?;
    let call = ctx.call(charge, 42).retry(Retry::exponential().attempts(2));
    let inner = ctx.clone();
    let signals = (0..3).map(move |_| {
        let ctx = inner.clone();
        async move { ctx.next_signal(GO).await }
    });
    let branches = ctx.parallel(signals);
    ctx.join([branches]).await;
    call.await?;
    Ok(())
}

#[workflow]
async fn waits_for_an_activity(ctx: Ctx) -> Result<u64, Failure> {
    ctx.sleep(days(3)).await?;
    ctx.call(charge, 42).retry(Retry::exponential().attempts(2)).await
}

#[test]
fn run_that_waits_for_an_attempt_names_it_with_its_queue_and_its_last_failure() {
    let text = message(|kit| {
        kit.fake_with(charge, |ctx, _| async move {
            match ctx.info().attempt {
                1 => Err("the bank is closed".into()),
                _ => ctx.hang().await,
            }
        });
        let _ = kit.run(waits_for_an_activity, ());
    });
    expect![[r#"
        run "test-1" of workflow "waits_for_an_activity" does not end: no work and no timer is left, 3d 1s after its start.
          the root unit waits for activity charge #1 since 3d after the start, at …: attempt 2 of 2 in queue "default", running; last failure: the bank is closed
        Print `kit.report()` for everything that is known."#]]
    .assert_eq(&text);
}

#[test]
fn run_that_waits_for_much_shows_three_waits_and_counts_the_rest() {
    let text = message(|kit| {
        kit.fake_with(charge, |ctx, _| async move { ctx.hang().await });
        let _ = kit.run(waits_for_much, ());
    });
    expect![[r#"
        run "test-1" of workflow "waits_for_much" does not end: no work and no timer is left, 3d after its start.
          unit [p0] waits for signal go since 3d after the start, at …
          unit [p1] waits for signal go since 3d after the start, at …
          unit [p2] waits for signal go since 3d after the start, at …
          and 1 more
        Print `kit.report()` for everything that is known."#]]
    .assert_eq(&text);
}

#[test]
fn request_that_is_not_answered_names_what_open_runs_wait_for() {
    let text = message(|kit| {
        kit.fake(charge, Ok);
        let run = kit.start(waits_for_an_activity, ());
        let result = kit.app().handle_raw(run.workflow_id().to_owned());
        let _ = kit.wait(result.result());
    });
    expect![[r#"
        no work is left that could answer this request, and no time passes while it waits: let time pass with `kit.advance` or `kit.result` first.
          run "test-1" of workflow "waits_for_an_activity": the root unit waits for timer 3d #0 since the start, at …
        Print `kit.report()` for everything that is known."#]]
    .assert_eq(&text);
}

#[test]
fn report_shows_description_waits_and_turns_of_every_run() {
    let mut kit = Kit::new();
    kit.fake(charge, Ok);
    kit.serve(sleeps_for_ever);
    kit.start(waits_for_an_activity, ());
    kit.start(sleeps_for_ever, ());
    let report = kit.report();
    for part in ["run \"test-1\"", "run \"test-2\"", "Description {", "waits for timer 3d", "turn 0  start"] {
        assert!(report.contains(part), "{part} is not in the report:\n{report}");
    }
}

#[workflow]
async fn renders(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(charge, 1).queue("gpu").await
}

#[workflow]
async fn starts_a_child_elsewhere(ctx: Ctx) -> Result<(), Failure> {
    ctx.child(panics, ()).queue("far away").await
}

#[test]
fn activity_in_a_queue_that_is_not_served_fails_the_test_and_says_what_to_write() {
    let text = message(|kit| {
        kit.fake(charge, Ok);
        let _ = kit.run(renders, ());
    });
    expect![[r#"
        run "test-1" of workflow "renders" cannot go on: its activity "charge" waits in task queue "gpu", which this kit does not serve. It serves: default.
        Write `kit.queue("gpu")` before the first run."#]]
    .assert_eq(&text);
}

#[test]
fn child_in_a_queue_that_is_not_served_fails_the_test_and_says_what_to_write() {
    let text = message(|kit| {
        kit.serve(panics);
        kit.queue("gpu");
        let _ = kit.run(starts_a_child_elsewhere, ());
    });
    assert!(text.contains("it waits in task queue \"far away\""), "{text}");
    assert!(text.contains("It serves: default, gpu.\nWrite `kit.queue(\"far away\")`"), "{text}");
}

#[test]
fn activity_that_is_neither_faked_nor_served_fails_the_test_and_says_what_to_write() {
    expect![[r#"
        run "test-1" of workflow "waits_for_an_activity" is stuck: this kit neither fakes nor serves its activity "charge".
        Write `kit.fake(charge, …)` or `kit.serve(charge)` before the first run."#]]
    .assert_eq(&message(|kit| drop(kit.run(waits_for_an_activity, ()))));
}

#[test]
fn activity_in_a_queue_that_the_test_names_is_served() {
    let mut kit = Kit::new();
    kit.queue("gpu");
    let charged = kit.fake(charge, Ok);
    assert_eq!(kit.run(renders, ()), Ok(1));
    assert_eq!(charged.attempts()[0].queue, "gpu");
}
