//! Signals: kept in order, taken once, never lost.

use dacapo_core::{Ctx, Either, Payload};
use dacapo_testkit::{check, expect};

use crate::kit::*;

async fn two_signals(ctx: Ctx, _: Payload) -> Done {
    let first = ctx.next_signal("s").await?;
    let second = ctx.next_signal("s").await?;
    say(format!("{} then {}", word(&first.input), word(&second.input)))
}

/// S0-13, C-31
#[test]
fn signals_that_came_before_the_wait_are_taken_first_come_first_served() {
    check(
        two_signals,
        "start, signal s = one, signal s = two",
        expect![[r#"
            turn 0  [] complete one then two
        "#]],
    );
}

/// S0-39
#[test]
fn swapping_the_signals_of_an_activation_swaps_what_the_waits_take() {
    check(
        two_signals,
        "start, signal s = two, signal s = one",
        expect![[r#"
            turn 0  [] complete two then one
        "#]],
    );
}

/// S0-13
#[test]
fn a_wait_for_a_signal_that_has_not_come_pauses_without_a_command() {
    check(
        two_signals,
        "start
         signal other = x
         signal s = one
         signal s = two",
        expect![[r#"
            turn 0
            turn 1
            turn 2
            turn 3  [] complete one then two
        "#]],
    );
}

async fn race_then_wait(ctx: Ctx, _: Payload) -> Done {
    let raced = match ctx.race(ctx.next_signal("s"), ctx.sleep(secs(5))).await? {
        Either::First(signal) => word(&signal.input),
        Either::Second(()) => "timer".to_owned(),
    };
    let next = ctx.next_signal("s").await?;
    say(format!("{raced}, then {}", word(&next.input)))
}

/// C-15, C-31: the wait was first in line for the signal, but the timer had fired before it came.
#[test]
fn a_signal_that_lost_its_race_is_there_for_the_next_wait() {
    check(
        race_then_wait,
        "start
         fire 5s, signal s = late",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1  [] complete timer, then late
        "#]],
    );
}

/// C-15
#[test]
fn a_signal_that_came_before_the_timer_wins_although_both_are_there() {
    check(
        race_then_wait,
        "start
         signal s = early, fire 5s
         signal s = next",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1
            turn 2  [] complete early, then next
        "#]],
    );
}

/// C-31: two waits stand in line; the first gives up, and what came for it keeps its place before later signals.
#[test]
fn a_signal_given_back_goes_before_those_that_came_after_it() {
    check(
        |ctx: Ctx, _| async move {
            let lost = ctx.race(ctx.activity("a", ""), ctx.next_signal("s")).await?;
            assert!(matches!(lost, Either::First(_)));
            let mut taken = Vec::new();
            while let Some(signal) = ctx.try_signal("s") {
                taken.push(word(&signal.input));
            }
            say(taken.join(" "))
        },
        "start
         resolve a, signal s = one, signal s = two, signal s = three",
        expect![[r#"
            turn 0  [] activity a
            turn 1  [] complete one two three
        "#]],
    );
}

/// C-31: waits in several units stand in one line.
#[test]
fn of_several_waits_the_one_that_began_first_gets_the_first_signal() {
    check(
        |ctx: Ctx, _| async move {
            let branches = ["a", "b"].map(|name| {
                let ctx = ctx.clone();
                async move {
                    let signal = ctx.next_signal("s").await.unwrap();
                    format!("{name} got {}", word(&signal.input))
                }
            });
            say(ctx.parallel(branches).await.join(", "))
        },
        "start
         signal s = one
         signal s = two",
        expect![[r#"
            turn 0
            turn 1
            turn 2  [] complete a got one, b got two
        "#]],
    );
}

/// C-31
#[test]
fn try_signal_takes_what_came_and_nothing_else() {
    check(
        |ctx: Ctx, _| async move {
            let before = ctx.try_signal("s").is_some();
            ctx.next_signal("go").await?;
            let after = ctx.try_signal("s").map(|signal| word(&signal.input));
            say(format!("{before} {after:?} {}", ctx.try_signal("s").is_some()))
        },
        "start
         signal s = one
         signal go",
        expect![[r#"
            turn 0
            turn 1
            turn 2  [] complete false Some("one") false
        "#]],
    );
}

/// C-31, T-24: a look at the queue must not see what came in later turns, or replay would see more than was there.
#[test]
fn looking_for_a_signal_on_replay_sees_only_what_had_come_by_then() {
    check(
        |ctx: Ctx, _| async move {
            let early = ctx.try_signal("s").is_some();
            ctx.sleep(secs(1)).await?;
            say(format!("{early} {}", ctx.try_signal("s").is_some()))
        },
        "start
         signal s = later
         fire",
        expect![[r#"
            turn 0  [] timer 1s
            turn 1
            turn 2  [] complete false true
        "#]],
    );
}

/// C-31
#[test]
fn a_signal_that_a_handler_takes_cannot_be_waited_for() {
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.on_signal("s", |_| async { Ok(()) });
            ctx.next_signal("s").await?;
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/signals.rs: signal "s" has a handler, so it cannot be waited for as well: take it in one place
        "#]],
    );
}

/// C-31: nor taken by a look.
#[test]
fn a_signal_that_a_handler_takes_cannot_be_looked_for() {
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.on_signal("s", |_| async { Ok(()) });
            say(format!("{:?}", ctx.try_signal("s")))
        },
        "start, signal s",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/signals.rs: signal "s" has a handler, so it cannot be waited for as well: take it in one place
        "#]],
    );
}

/// C-31
#[test]
fn a_signal_that_is_waited_for_cannot_get_a_handler() {
    check_refused(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let waiting = ctx.launch(async move { Ok(word(&inside.next_signal("s").await?.input)) });
            // The wait begins in the next round, after the root's go in it.
            ctx.yield_now().await;
            ctx.yield_now().await;
            ctx.on_signal("s", |_| async { Ok(()) });
            say(waiting.await?)
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/signals.rs: signal "s" is being waited for; it cannot have a handler as well
        "#]],
    );
}
