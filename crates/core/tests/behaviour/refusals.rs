//! What a layer above cannot read: the activation fails and says why, the run goes on later.

use std::panic::Location;

use dacapo_core::{Ctx, Failure, RunOptions};
use dacapo_testkit::{Mode, Player, expect, workflow};

use crate::kit::*;

#[test]
fn a_refusal_fails_the_activation_and_the_run_goes_on_when_it_is_read() {
    check_refused(
        |ctx: Ctx, _| async move {
            let site = Location::caller();
            let came = ctx.activity("count", "").await?;
            match came.as_text().and_then(|text| text.parse::<u64>().ok()) {
                Some(count) => say((count + 1).to_string()),
                None => ctx.refuse(format!("no number came, but {came}"), site),
            }
        },
        "start
         resolve count = many
         resolve count = 4",
        expect![[r#"
            turn 0  [] activity count
            failed: no number came, but many
            in the root unit, at crates/core/tests/behaviour/refusals.rs
            turn 1  [] complete 5
        "#]],
    );
}

/// T-28: a programmer who changed the type of a result has to know which build recorded it. The report once named neither turn nor build.
#[test]
fn a_refusal_of_what_was_recorded_names_the_turn_and_the_build() {
    let counts = |ctx: Ctx, _| async move { ctx.activity("count", "").await };
    let mut play = Player::new(workflow(counts), Default::default(), Mode::Whole);
    play.play("start\nresolve count = many");
    let picky = |ctx: Ctx, _| async move {
        let site = Location::caller();
        let came = ctx.activity("count", "").await?;
        ctx.refuse(format!("no number came, but {came}"), site)
    };
    let failed = play.transcript.replay(&workflow(picky), RunOptions::default()).err().unwrap();
    expect![[r#"
        no number came, but many
        in turn 1, recorded by build kit, the root unit, at crates/core/tests/behaviour/refusals.rs"#]]
    .assert_eq(&without_lines(&failed.error.to_string()));
}

#[test]
fn a_refusal_in_a_condition_fails_the_activation() {
    check_refused(
        |ctx: Ctx, _| async move {
            let (inner, site) = (ctx.clone(), Location::caller());
            ctx.wait_until(move || inner.refuse("it cannot be read", site)).await?;
            say("never")
        },
        "start",
        expect![[r#"
            failed: it cannot be read
            in the root unit, at crates/core/tests/behaviour/refusals.rs
        "#]],
    );
}

#[test]
fn a_refusal_in_a_query_fails_the_query_alone() {
    check_refused(
        |ctx: Ctx, _| async move {
            let (inner, site) = (ctx.clone(), Location::caller());
            ctx.on_query("look", move |_| inner.refuse("it cannot be read", site));
            ctx.sleep(secs(1)).await?;
            say("fine")
        },
        "start
         query look
         fire",
        expect![[r#"
            turn 0  [] timer 1s
            no answer: the handler of query "look" panicked: it cannot be read
            turn 1  [] complete fine
        "#]],
    );
}

#[test]
fn the_guard_of_a_cell_may_be_held_while_the_ctx_is_called_but_not_twice() {
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(1);
            let call = {
                let mut value = cell.lock();
                *value += 1;
                ctx.activity("count", value.to_string())
            };
            call.await?;
            say(cell.lock().to_string())
        },
        "start
         resolve count",
        expect![[r#"
            turn 0  [] activity count
            turn 1  [] complete 2
        "#]],
    );
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(1);
            let _first = cell.lock();
            drop(cell.lock());
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/refusals.rs: a state cell was entered while it was entered already; let go of one guard, or return from one closure, before the next
        "#]],
    );
}

#[test]
fn a_condition_looks_into_a_cell_and_cannot_change_it() {
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(1);
            let seen = cell.clone();
            ctx.wait_until(move || *seen.lock() == 1).await?;
            ctx.wait_until(move || {
                *cell.lock() = 2;
                true
            })
            .await?;
            say("never")
        },
        "start",
        expect![[r#"
            failed: a condition, validator or query changed a state cell; such closures only look
            in the root unit, at crates/core/tests/behaviour/refusals.rs
        "#]],
    );
}

#[test]
fn errors_become_failures_with_their_sources_as_causes() {
    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("outer")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let failure = Failure::from_error(&Outer(std::io::Error::other("inner")));
    assert_eq!(failure.to_string(), "outer: inner");
    let own = Failure::application("own").typed("Own").non_retryable();
    assert_eq!(Failure::from_error(&own), own);
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(own.clone());
    assert_eq!(Failure::from(boxed), own);
    let cancelled = dacapo_core::Cancelled { reason: "enough".to_owned() };
    assert!(Failure::from_error(&cancelled).is_cancelled());
}
