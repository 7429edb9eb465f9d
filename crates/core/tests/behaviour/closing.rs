//! Closing: the execution ends first, then what is left of the handlers, then the run.

use dacapo_core::{Ctx, Handled, Payload, Pins, UnfinishedHandlers};
use dacapo_testkit::{check, check_workflow, expect, workflow};

use crate::kit::*;

/// Updates answer after an activity; returns on `stop`.
async fn serve(ctx: Ctx, _: Payload) -> Done {
    let inside = ctx.clone();
    ctx.on_update(
        "u",
        |_| Ok(()),
        move |update| {
            let ctx = inside.clone();
            async move { ctx.activity(word(&update.input), "").await }
        },
    );
    let inside = ctx.clone();
    drop(ctx.launch(async move { inside.activity("launched", "").await }));
    ctx.next_signal("stop").await?;
    say("stopped")
}

/// S3-6, C-10
#[test]
fn an_update_in_the_turn_in_which_main_returns_is_answered_before_the_run_closes() {
    check(
        |ctx: Ctx, _| async move {
            ctx.on_update("u", |_| Ok(()), |_| async { say("in time") });
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start
         signal stop, update u 1",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h0] complete update 1 ok in time  [] complete stopped
        "#]],
    );
}

/// S3-7, C-34: the launched unit ends without a command, then the handlers go on to their end, and the terminal command
/// is the last.
#[test]
fn closing_ends_the_execution_then_the_handlers_then_the_run() {
    check(
        |ctx: Ctx, _| async move {
            let diary = Diary::default();
            let (inside, guard) = (ctx.clone(), Guard(diary.clone(), "execution over"));
            drop(ctx.launch(async move {
                let _guard = guard;
                inside.activity("launched", "").await
            }));
            let (inside, notes) = (ctx.clone(), diary.clone());
            ctx.on_update(
                "u",
                |_| Ok(()),
                move |update| {
                    let (ctx, diary) = (inside.clone(), notes.clone());
                    async move {
                        for _ in 0..3 {
                            ctx.yield_now().await;
                        }
                        diary.note(format!("handled {}", word(&update.input)));
                        say(diary.text())
                    }
                },
            );
            let inside = ctx.clone();
            ctx.on_update(
                "slow",
                |_| Ok(()),
                move |_| {
                    let (ctx, guard) = (inside.clone(), Guard(diary.clone(), "never seen"));
                    async move {
                        let _guard = guard;
                        ctx.activity("slow", "").await
                    }
                },
            );
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start
         update slow 1
         update u 2 = A, signal stop, update u 3 = B",
        expect![[r#"
            turn 0  [l0] activity launched
            turn 1  [h0] accept update 1  [h0] activity slow
            turn 2  [h1] accept update 2  [h2] accept update 3  [h1] complete update 2 ok execution over handled A  [h2] complete update 3 ok execution over handled A handled B  [h0] complete update 1 failed the workflow completed before this update did  [] complete stopped
              warning: the workflow returned while [h0] still waited; abandoned
        "#]],
    );
}

/// C-10, C-34
#[test]
fn handlers_that_still_wait_are_abandoned_with_a_warning_and_a_definite_answer() {
    check(
        serve,
        "start
         update u 1 = A, update u 2 = B
         signal stop",
        expect![[r#"
            turn 0  [l0] activity launched
            turn 1  [h0] accept update 1  [h1] accept update 2  [h0] activity A  [h1] activity B
            turn 2  [h0] complete update 1 failed the workflow completed before this update did  [h1] complete update 2 failed the workflow completed before this update did  [] complete stopped
              warning: the workflow returned while [h0] [h1] still waited; abandoned
        "#]],
    );
}

/// C-10
#[test]
fn a_run_that_waits_for_its_handlers_closes_when_the_last_is_done() {
    let patient = workflow(serve).unfinished_handlers(UnfinishedHandlers::Wait);
    check_workflow(
        &patient,
        Pins::default(),
        "start
         update u 1 = A, update u 2 = B
         signal stop
         resolve A = a
         update u 3 = C
         resolve C = c
         resolve #0
         resolve B = b",
        expect![[r#"
            turn 0  [l0] activity launched
            turn 1  [h0] accept update 1  [h1] accept update 2  [h0] activity A  [h1] activity B
            turn 2
            turn 3  [h0] complete update 1 ok a
            turn 4  [h2] accept update 3  [h2] activity C
            turn 5  [h2] complete update 3 ok c
            turn 6
            turn 7  [h1] complete update 2 ok b  [] complete stopped
        "#]],
    );
}

/// C-10: a cancellation still reaches them, and the result of the workflow stands.
#[test]
fn handlers_that_a_run_waits_for_can_be_cancelled() {
    let patient = workflow(serve).unfinished_handlers(UnfinishedHandlers::Wait);
    check_workflow(
        &patient,
        Pins::default(),
        "start
         update u 1 = A
         signal stop
         cancel: too slow",
        expect![[r#"
            turn 0  [l0] activity launched
            turn 1  [h0] accept update 1  [h0] activity A
            turn 2
            turn 3  [h0] cancel #1  [h0] complete update 1 failed too slow  [] complete stopped
        "#]],
    );
}

/// C-31: main returned and gave up a launched unit that stood first in line for a signal. Its place in the line outlived
/// it: the next signal went to the dead, and the handler behind it waited for ever.
#[test]
fn a_unit_that_is_given_up_leaves_the_line_for_a_signal() {
    let patient = workflow(|ctx: Ctx, _| async move {
        let inside = ctx.clone();
        drop(ctx.launch(async move { Ok(inside.next_signal("s").await?) }));
        let inside = ctx.clone();
        ctx.on_update(
            "u",
            |_| Ok(()),
            move |_| {
                let ctx = inside.clone();
                async move { Ok(ctx.next_signal("s").await?.input[0].clone()) }
            },
        );
        ctx.next_signal("stop").await?;
        say("stopped")
    });
    check_workflow(
        &patient.unfinished_handlers(UnfinishedHandlers::Wait),
        Pins::default(),
        "start
         update u 1
         signal stop
         signal s = mine",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1
            turn 2
            turn 3  [h0] complete update 1 ok mine  [] complete stopped
        "#]],
    );
}

/// S3-11, C-34
#[test]
fn work_that_a_handler_asks_for_after_main_returned_is_ignored_with_a_warning() {
    let late = |ctx: Ctx, _| async move {
        let inside = ctx.clone();
        ctx.on_update(
            "u",
            |_| Ok(()),
            move |_| {
                let ctx = inside.clone();
                async move {
                    ctx.set_state("handler", "ran");
                    ctx.activity("detached", "").detach();
                    ctx.sleep(secs(1)).await?;
                    say("never")
                }
            },
        );
        ctx.next_signal("stop").await?;
        say("stopped")
    };
    check_refused_with(
        root_first(),
        late,
        "start
         signal stop, update u 1",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h0] state handler = ran  [h0] complete update 1 failed the workflow completed before this update did  [] complete stopped
              warning: handler [h0] asked for activity detached at crates/core/tests/behaviour/closing.rs after the workflow had returned; it is ignored: wait for handlers before returning, or set unfinished handlers to wait
              warning: handler [h0] asked for timer 1s at crates/core/tests/behaviour/closing.rs after the workflow had returned; it is ignored: wait for handlers before returning, or set unfinished handlers to wait
              warning: the workflow returned while [h0] still waited; abandoned
        "#]],
    );
}

/// C-34
#[test]
fn operations_detached_or_dropped_before_main_returns_are_recorded_with_its_end() {
    check(
        |ctx: Ctx, _| async move {
            ctx.activity("fire and forget", "").detach();
            drop(ctx.activity("dropped", ""));
            say("returned")
        },
        "start",
        expect![[r#"
            turn 0  [] activity fire and forget  [] activity dropped  [] cancel #1  [] complete returned
        "#]],
    );
}

/// C-10: a phase is over before main returns, so its handlers are too.
#[test]
fn a_handler_of_a_phase_is_never_left_behind() {
    check(
        |ctx: Ctx, _| async move {
            let stop = ctx.state(false);
            let inside = ctx.clone();
            ctx.phase(&stop)
                .on_update(
                    "u",
                    |_, _| Ok(()),
                    move |_, _| {
                        let ctx = inside.clone();
                        Handled::with(async move { ctx.activity("A", "").await })
                    },
                )
                .on_signal("stop", |stop, _| {
                    *stop = true;
                    Handled::done()
                })
                .until(|stop| *stop)
                .concurrent()
                .await?;
            say("stopped")
        },
        "start
         update u 1
         signal stop
         resolve A = a",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h0,a0] activity A
            turn 2
            turn 3  [h0,a0] complete update 1 ok a  [] complete stopped
        "#]],
    );
}

/// C-34
#[test]
fn a_closed_run_takes_no_further_turn() {
    check(
        |_: Ctx, input| async move { Ok(input) },
        "start = done
         signal s",
        expect![[r#"
            turn 0  [] complete done
            failed: the run is closed: it takes queries and an eviction, no further turn
        "#]],
    );
}

/// S3-7: an unhandled update in the last turn gets its definite answer too.
#[test]
fn update_without_a_handler_is_rejected_before_the_run_closes() {
    check(
        |_: Ctx, input| async move { Ok(input) },
        "start = done, update u 1",
        expect![[r#"
            turn 0  [] complete done
              rejected 1: no handler for update "u": correct the name, or register a handler; known now: none
        "#]],
    );
}

/// A unit that a handler had launched failed after the workflow function had returned, and no caller was ever told: the run
/// completed as if nothing had happened. The run was still open for that handler, so it fails.
#[test]
fn a_unit_launched_by_a_handler_fails_a_run_that_still_waits_for_the_handler() {
    async fn main(ctx: Ctx, _: Payload) -> Result<Payload, dacapo_core::Failure> {
        let inner = ctx.clone();
        ctx.on_signal("work", move |_| {
            let ctx = inner.clone();
            async move {
                let branch = ctx.clone();
                ctx.launch(async move { branch.activity("launched", "").await });
                ctx.activity("handler", "").await.map(drop)
            }
        });
        Ok("done".into())
    }
    check_workflow(
        &workflow(main).unfinished_handlers(UnfinishedHandlers::Wait),
        Pins::default(),
        "start, signal work
         fail launched: broken
         resolve handler",
        expect![[r#"
            turn 0  [h0] activity handler  [h0,l0] activity launched
            turn 1
            turn 2  [] fail: broken
        "#]],
    );
}

/// S3-7: the branches of a handler belong to it, and outlive main as it does.
#[test]
fn units_launched_by_a_handler_go_on_when_main_returns() {
    let branching = |ctx: Ctx, _| async move {
        let inside = ctx.clone();
        ctx.on_update(
            "u",
            |_| Ok(()),
            move |_| {
                let ctx = inside.clone();
                async move { ctx.parallel([ctx.activity("B", "")]).await.remove(0) }
            },
        );
        ctx.next_signal("stop").await?;
        say("stopped")
    };
    check_workflow(
        &workflow(branching).unfinished_handlers(UnfinishedHandlers::Wait),
        Pins::default(),
        "start, update u 1
         signal stop
         resolve B = b",
        expect![[r#"
            turn 0  [h0] accept update 1  [h0] activity B
            turn 1
            turn 2  [h0] complete update 1 ok b  [] complete stopped
        "#]],
    );
}
