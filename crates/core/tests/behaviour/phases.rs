//! Phases: handlers over one state, open for a stretch of the root's life.

use std::future::{Future, poll_fn};
use std::pin::Pin;

use dacapo_core::{Ctx, Either, Handled, Payload, PhaseEnd, StateCell};
use dacapo_testkit::{check, expect};

use crate::kit::*;

/// Collects words until three are there; each word is confirmed by an activity before the next is looked at.
async fn collect(ctx: Ctx, words: StateCell<Vec<String>>) -> Result<PhaseEnd, dacapo_core::Cancelled> {
    let inside = ctx.clone();
    ctx.phase(&words)
        .on_signal("word", |words: &mut Vec<String>, signal| {
            words.push(word(&signal.input));
            Handled::done()
        })
        .on_update(
            "word",
            |words: &Vec<String>, update| match words.contains(&word(&update.input)) {
                true => Err(fail("known")),
                false => Ok(()),
            },
            move |words, update| {
                let (ctx, text) = (inside.clone(), word(&update.input));
                words.push(text.clone());
                Handled::with(async move { ctx.activity(text, "").await })
            },
        )
        .until(|words| words.len() >= 3)
        .timeout(secs(60))
        .await
}

async fn one_phase(ctx: Ctx, _: Payload) -> Done {
    let words = ctx.state(Vec::new());
    let end = collect(ctx.clone(), words.clone()).await?;
    say(format!("{end:?} with {}", words.read(|words| words.join(" "))))
}

/// S0-5, C-38: the async part is a unit of its own, `[hN,a0]`; the next handler's go comes when it is done.
#[test]
fn handlers_of_a_phase_go_one_after_the_other_async_part_included() {
    check(
        one_phase,
        "start
         update word 1 = A, update word 2 = B, signal word = C
         resolve A = a
         resolve B = b",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [h0] accept update 1  [h1] accept update 2  [h0,a0] activity A
            turn 2  [h0,a0] complete update 1 ok a  [h1,a0] activity B
            turn 3  [h1,a0] complete update 2 ok b  [] cancel #0  [] complete Condition with A B C
        "#]],
    );
}

/// C-10: B and C had started when the condition came true; the phase ends after them.
#[test]
fn a_phase_that_has_what_it_waits_for_ends_after_the_handlers_that_are_running() {
    check_root_first(
        one_phase,
        "start, signal word = A, signal word = B
         update word 1 = C
         update word 2 = D
         resolve C = c",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [h2] accept update 1  [] cancel #0  [h2,a0] activity C
            no turn
              rejected 2: no handler for update "word": correct the name, or register a handler; known now: none
            turn 2  [h2,a0] complete update 1 ok c  [] complete Condition with A B C
        "#]],
    );
}

/// T-3: the timer that the phase left behind fires late, and is ignored.
#[test]
fn a_phase_that_ends_by_its_condition_cancels_its_timer_and_ignores_its_late_fire() {
    check(
        |ctx: Ctx, input| async move {
            one_phase(ctx.clone(), input).await?;
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start
         signal word = A, signal word = B, signal word = C
         fire #0
         signal stop",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [] cancel #0
            turn 2
            turn 3  [] complete stopped
        "#]],
    );
}

/// C-10
#[test]
fn a_phase_whose_time_runs_out_ends_after_the_handlers_that_are_running() {
    check(
        one_phase,
        "start
         update word 1 = A, update word 2 = B
         fire 1m
         resolve A = a
         resolve B = b",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [h0] accept update 1  [h1] accept update 2  [h0,a0] activity A
            turn 2
            turn 3  [h0,a0] complete update 1 ok a  [h1,a0] activity B
            turn 4  [h1,a0] complete update 2 ok b  [] complete Timeout with A B
        "#]],
    );
}

/// C-9, C-45: a phase's validator sees the phase's state.
#[test]
fn a_phase_rejects_what_its_validator_refuses() {
    check(
        one_phase,
        "start
         signal word = A
         update word 1 = A",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1
            no turn
              rejected 1: known
        "#]],
    );
}

/// C-31: what comes while no phase is open waits for the next. D had started with the others, so the first phase ends
/// after it.
#[test]
fn signals_between_two_phases_wait_for_the_second() {
    check(
        |ctx: Ctx, _| async move {
            let words = ctx.state(Vec::new());
            collect(ctx.clone(), words.clone()).await?;
            ctx.activity("between", "").await?;
            ctx.set_state("first", words.read(|words| words.join(" ")));
            words.update(Vec::clear);
            collect(ctx.clone(), words.clone()).await?;
            say(words.read(|words| words.join(" ")))
        },
        "start
         signal word = A, signal word = B, signal word = C, signal word = D
         signal word = E
         resolve between
         signal word = F, signal word = G",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [] cancel #0  [] activity between
            turn 2
            turn 3  [] state first = A B C D  [] timer 1m
            turn 4  [] cancel #2  [] complete E F G
        "#]],
    );
}

/// C-38
#[test]
fn a_concurrent_phase_lets_its_handlers_go_on_beside_each_other() {
    check(
        |ctx: Ctx, _| async move {
            let done = ctx.state(0);
            let (inside, counted) = (ctx.clone(), done.clone());
            ctx.phase(&done)
                .on_signal("s", move |_, signal| {
                    let (ctx, done) = (inside.clone(), counted.clone());
                    Handled::with(async move {
                        ctx.activity(word(&signal.input), "").await?;
                        done.update(|done| *done += 1);
                        Ok(Payload::empty())
                    })
                })
                .until(|done| *done == 2)
                .concurrent()
                .await?;
            say("both")
        },
        "start
         signal s = A, signal s = B
         resolve B
         resolve A",
        expect![[r#"
            turn 0
            turn 1  [h0,a0] activity A  [h1,a0] activity B
            turn 2
            turn 3  [] complete both
        "#]],
    );
}

/// T-5: what a handler returns answers its sender; the state is what it did to the state, and nothing else.
#[test]
fn result_of_a_handler_never_becomes_the_state() {
    check(
        |ctx: Ctx, _| async move {
            let total = ctx.state(1);
            ctx.phase(&total)
                .on_signal("s", |_: &mut i32, signal| match word(&signal.input).as_str() {
                    "odd" => Handled::Done(Payload::from("999")),
                    "bad" => Handled::Failed(fail("odd return")),
                    _ => Handled::with(async { say("888") }),
                })
                .on_update(
                    "add",
                    |_, _| Ok(()),
                    |total, _| {
                        *total += 1;
                        Handled::Done(Payload::from(total.to_string()))
                    },
                )
                .until(|total| *total == 2)
                .await?;
            say(total.read(i32::to_string))
        },
        "start
         signal s = odd, signal s = bad, signal s = async
         update add 1",
        expect![[r#"
            turn 0
            turn 1
              warning: signal handler [h1] failed: odd return
            turn 2  [h3] accept update 1  [h3] complete update 1 ok 2  [] complete 2
        "#]],
    );
}

async fn open_phase(ctx: Ctx) -> Done {
    let state = ctx.state(());
    ctx.phase(&state).await?;
    say("never")
}

/// T-6
#[test]
fn a_branch_cannot_open_a_phase() {
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.parallel([open_phase(ctx.clone())]).await;
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in unit [p0], at crates/core/tests/behaviour/phases.rs: only the workflow function itself can open a phase
        "#]],
    );
}

/// T-6
#[test]
fn an_async_handler_cannot_open_a_phase() {
    check_refused(
        |ctx: Ctx, _| async move {
            let state = ctx.state(());
            let inside = ctx.clone();
            ctx.phase(&state).on_signal("s", move |_, _| Handled::with(open_phase(inside.clone()))).await?;
            say("never")
        },
        "start
         signal s",
        expect![[r#"
            turn 0
            failed: scheduler violation in unit [h0,a0], at crates/core/tests/behaviour/phases.rs: only the workflow function itself can open a phase
        "#]],
    );
}

/// T-6
#[test]
fn a_second_phase_cannot_be_opened_while_one_is_open() {
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.join([open_phase(ctx.clone()), open_phase(ctx.clone())]).await;
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/phases.rs: a phase is open already; one at a time
        "#]],
    );
}

/// T-6: once a phase has ended the next may open, also when it was given up.
#[test]
fn a_phase_that_was_given_up_makes_room_for_the_next() {
    check(
        |ctx: Ctx, _| async move {
            let words = ctx.state(Vec::new());
            let lost = ctx.race(collect(ctx.clone(), words.clone()), ctx.sleep(secs(5))).await?;
            assert!(matches!(lost, Either::Second(())));
            collect(ctx.clone(), words.clone()).await?;
            say(words.read(|words| words.join(" ")))
        },
        "start
         fire 5s
         signal word = A, signal word = B, signal word = C",
        expect![[r#"
            turn 0  [] timer 5s  [] timer 1m
            turn 1  [] cancel #1  [] timer 1m
            turn 2  [] cancel #2  [] complete A B C
        "#]],
    );
}

/// C-10: a serial phase was dropped by a lost race while one of its handlers ran and another was held back. The one held
/// back never got its go: its sender waited for ever, and a run that waits for its handlers never closed.
#[test]
fn handlers_that_wait_in_a_dropped_phase_still_run_one_after_the_other() {
    check(
        |ctx: Ctx, _| async move {
            let words = ctx.state(Vec::new());
            ctx.race(collect(ctx.clone(), words.clone()), ctx.sleep(secs(5))).await?;
            ctx.next_signal("stop").await?;
            say(words.read(|words| words.join(" ")))
        },
        "start
         update word 1 = A, update word 2 = B, update word 3 = C
         fire 5s
         resolve A = a
         resolve B = b
         resolve C = c
         signal stop",
        expect![[r#"
            turn 0  [] timer 5s  [] timer 1m
            turn 1  [h0] accept update 1  [h1] accept update 2  [h2] accept update 3  [h0,a0] activity A
            turn 2  [] cancel #1
            turn 3  [h0,a0] complete update 1 ok a  [h1,a0] activity B
            turn 4  [h1,a0] complete update 2 ok b  [h2,a0] activity C
            turn 5  [h2,a0] complete update 3 ok c
            turn 6  [] complete A B C
        "#]],
    );
}

/// C-12: an async part that was no async block, but a future of another make, still held the loser of its race when it was
/// done. It was dropped by the executor and not by the unit, so the loser was never cancelled.
#[test]
fn operations_an_async_handler_leaves_open_are_cancelled_when_it_ends() {
    check(
        |ctx: Ctx, _| async move {
            let state = ctx.state(());
            let inside = ctx.clone();
            ctx.phase(&state)
                .on_update(
                    "u",
                    |_, _| Ok(()),
                    move |_, _| {
                        let (ctx, mut race) = (inside.clone(), None);
                        Handled::with(poll_fn(move |cx| {
                            let start = || ctx.with_timeout(secs(5), ctx.activity("A", ""));
                            Pin::new(race.get_or_insert_with(start)).poll(cx)
                        }))
                    },
                )
                .await?;
            say("never")
        },
        "start
         update u 1
         resolve A = a
         fire #1",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h0,a0] activity A  [h0,a0] timer 5s
            turn 2  [h0,a0] cancel #1  [h0,a0] complete update 1 ok a
            turn 3
        "#]],
    );
}

/// C-10
#[test]
fn a_cancelled_phase_ends_after_its_handlers_have() {
    check_root_first(
        |ctx: Ctx, _| async move {
            let words = ctx.state(Vec::new());
            let end = collect(ctx.clone(), words.clone()).await;
            ctx.set_state("end", format!("{end:?}"));
            end.map_err(Into::into).map(|_| Payload::empty())
        },
        "start
         update word 1 = A
         cancel: enough",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [h0] accept update 1  [h0,a0] activity A
            turn 2  [] cancel #0  [h0,a0] cancel #1  [h0,a0] complete update 1 failed enough  [] state end = Err(Cancelled { reason: "enough" })  [] cancelled: enough
        "#]],
    );
}
