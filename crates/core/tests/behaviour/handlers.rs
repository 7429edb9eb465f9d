//! Handlers that live as long as the run.

use dacapo_core::{Ctx, Order, Payload, Pins, UnfinishedHandlers};
use dacapo_testkit::{check, check_workflow, expect, workflow};

use crate::kit::*;

/// Handles `s` by an activity of the signal's own word; returns on `stop`.
async fn serve(ctx: Ctx, _: Payload) -> Done {
    let inside = ctx.clone();
    ctx.on_signal("s", move |signal| {
        let ctx = inside.clone();
        async move {
            ctx.activity(word(&signal.input), "").await?;
            Ok(())
        }
    });
    ctx.next_signal("stop").await?;
    say("stopped")
}

/// S0-34, S3-5: numbers follow the order of the jobs, and a handler schedules work like any unit.
#[test]
fn signals_of_one_activation_start_handlers_numbered_in_job_order() {
    check(
        serve,
        "start, signal s = A, signal s = B, signal s = C
         resolve B
         resolve A, resolve C
         signal stop",
        expect![[r#"
            turn 0  [h0] activity A  [h1] activity B  [h2] activity C
            turn 1
            turn 2
            turn 3  [] complete stopped
        "#]],
    );
}

/// C-38
#[test]
fn handlers_of_the_run_go_on_beside_each_other() {
    check(
        serve,
        "start
         signal s = slow
         signal s = quick
         resolve quick
         resolve slow
         signal stop",
        expect![[r#"
            turn 0
            turn 1  [h0] activity slow
            turn 2  [h1] activity quick
            turn 3
            turn 4
            turn 5  [] complete stopped
        "#]],
    );
}

/// C-9, C-31
#[test]
fn a_handler_registered_late_takes_what_came_before_it_in_the_order_it_came() {
    check(
        |ctx: Ctx, input| async move {
            ctx.next_signal("open").await?;
            serve(ctx, input).await
        },
        "start, signal s = A
         signal s = B
         signal open, signal s = C
         resolve A, resolve B, resolve C, signal stop",
        expect![[r#"
            turn 0
            turn 1
            turn 2  [h0] activity A  [h1] activity B  [h2] activity C
            turn 3  [] complete stopped
        "#]],
    );
}

/// C-9: the handler exists from the first step of the turn that brings its first message.
#[test]
fn a_handler_takes_the_message_of_the_very_turn_that_registers_it() {
    check(
        serve,
        "start, signal s = A
         resolve A, signal stop",
        expect![[r#"
            turn 0  [h0] activity A
            turn 1  [] complete stopped
        "#]],
    );
}

/// S3-4, T-10: a signal that was buffered and one that came live are handled alike.
#[test]
fn a_failing_signal_handler_ends_alone_whether_its_signal_was_buffered_or_live() {
    check(
        |ctx: Ctx, _| async move {
            ctx.on_signal("s", |signal| async move { Err(fail(&word(&signal.input))) });
            ctx.next_signal("stop").await?;
            say("unharmed")
        },
        "start, signal s = buffered
         signal s = live
         signal stop",
        expect![[r#"
            turn 0
              warning: signal handler [h0] failed: buffered
            turn 1
              warning: signal handler [h1] failed: live
            turn 2  [] complete unharmed
        "#]],
    );
}

async fn both_speak(ctx: Ctx, _: Payload) -> Done {
    let inside = ctx.clone();
    ctx.on_signal("s", move |_| {
        let ctx = inside.clone();
        async move {
            ctx.set_state("by", "handler");
            Ok(())
        }
    });
    ctx.activity("a", "").await?;
    ctx.set_state("by", "root");
    ctx.next_signal("stop").await?;
    say("done")
}

const SPEAK: &str = "start
     signal s, resolve a
     signal stop";

/// S0-32, T-1, C-48
#[test]
fn a_run_pinned_to_root_first_plays_the_root_before_the_handlers() {
    check_root_first(
        both_speak,
        SPEAK,
        expect![[r#"
        turn 0  [] activity a
        turn 1  [] state by = root  [h0] state by = handler
        turn 2  [] complete done
    "#]],
    );
}

/// C-48
#[test]
fn a_new_run_plays_handlers_before_the_root() {
    check(
        both_speak,
        SPEAK,
        expect![[r#"
        turn 0  [] activity a
        turn 1  [h0] state by = handler  [] state by = root
        turn 2  [] complete done
    "#]],
    );
}

/// C-48: the order is part of the record, not of today's settings.
#[test]
fn a_run_keeps_its_order_of_units_when_it_is_replayed_by_a_worker_with_another_default() {
    let mut play = dacapo_testkit::Player::new(workflow(both_speak), root_first(), dacapo_testkit::Mode::Whole);
    play.play(SPEAK);
    let today = dacapo_core::RunOptions::default();
    assert_eq!(today.pins.order, Order::HandlersFirst);
    assert!(play.transcript.replay(&workflow(both_speak), today).is_ok());
}

/// S3-5: units of handlers are children of handlers.
#[test]
fn a_handler_starts_branches_and_launches_units_of_its_own() {
    let serve = workflow(|ctx: Ctx, _| async move {
        let inside = ctx.clone();
        ctx.on_signal("s", move |_| {
            let ctx = inside.clone();
            async move {
                let launched = ctx.clone();
                let launched = ctx.launch(async move { launched.activity("L", "").await });
                let branches = ["A", "B"].map(|name| ctx.clone().activity_of(name));
                ctx.parallel(branches).await;
                launched.await?;
                Ok(())
            }
        });
        say("returned at once")
    });
    let serve = serve.unfinished_handlers(UnfinishedHandlers::Wait);
    check_workflow(
        &serve,
        Pins::default(),
        "start, signal s
         resolve A, resolve L, resolve B",
        expect![[r#"
            turn 0  [h0,l0] activity L  [h0,p1] activity A  [h0,p2] activity B
            turn 1  [] complete returned at once
        "#]],
    );
}

trait ActivityOf {
    fn activity_of(self, name: &'static str) -> impl Future<Output = Done> + Send + 'static;
}

impl ActivityOf for Ctx {
    async fn activity_of(self, name: &'static str) -> Done {
        self.activity(name, "").await
    }
}

/// C-9
#[test]
fn a_second_handler_of_one_name_is_refused() {
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.on_signal("s", |_| async { Ok(()) });
            ctx.on_signal("s", |_| async { Ok(()) });
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/handlers.rs: signal "s" has a handler already; one name has one handler
        "#]],
    );
}

/// S0-40: signals and updates are dispatched by when they came, whatever they are.
#[test]
fn signals_and_updates_start_their_handlers_in_the_order_they_came() {
    check(
        |ctx: Ctx, _| async move {
            ctx.on_update("u", |_| Ok(()), |update| async move { Ok(update.input[0].clone()) });
            let inside = ctx.clone();
            ctx.on_signal("s", move |signal| {
                inside.set_state("signal", word(&signal.input));
                async { Ok(()) }
            });
            ctx.next_signal("stop").await?;
            say("done")
        },
        "start
         signal s = 1, update u a = 2, signal s = 3, update u b = 4
         signal stop",
        expect![[r#"
            turn 0
            turn 1  [h1] accept update a  [h3] accept update b  [h0] state signal = 1  [h1] complete update a ok 2  [h2] state signal = 3  [h3] complete update b ok 4
            turn 2  [] complete done
        "#]],
    );
}

/// C-31: whichever handlers they are for, messages are taken in the order they came.
#[test]
fn signals_of_several_names_start_their_handlers_in_the_order_they_came() {
    check(
        |ctx: Ctx, _| async move {
            for name in ["a", "b"] {
                let inside = ctx.clone();
                ctx.on_signal(name, move |signal| {
                    inside.set_state(name, word(&signal.input));
                    async { Ok(()) }
                });
            }
            ctx.next_signal("stop").await?;
            say("done")
        },
        "start
         signal b = 1, signal a = 2, signal b = 3",
        expect![[r#"
            turn 0
            turn 1  [h0] state b = 1  [h1] state a = 2  [h2] state b = 3
        "#]],
    );
}
