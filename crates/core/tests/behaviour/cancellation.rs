//! Cancellation: of the run and of parts of it, a level that every wait meets, up to a shield.

use dacapo_core::{CancelType, Cancelled, Ctx, Failure, Payload, Pins, Target};
use dacapo_testkit::{check, check_workflow, expect, workflow};

use crate::kit::*;

async fn one_activity(ctx: Ctx, _: Payload) -> Done {
    ctx.activity("A", "").await
}

/// S0-40
#[test]
fn a_cancelled_run_whose_code_passes_the_cancellation_on_ends_as_cancelled() {
    check(
        one_activity,
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0  [] cancelled: enough
        "#]],
    );
}

/// S0-40
#[test]
fn an_err_that_wraps_a_cancellation_ends_a_cancelled_run_as_cancelled() {
    check(
        |ctx: Ctx, _| async move { ctx.activity("A", "").await.map_err(|failure| fail("gave up").caused_by(failure)) },
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0  [] cancelled: gave up: enough
        "#]],
    );
}

/// S0-40
#[test]
fn any_other_err_of_a_cancelled_run_fails_it_and_an_ok_completes_it() {
    check(
        |ctx: Ctx, _| async move { ctx.activity("A", "").await.map_err(|_| fail("something else")) },
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0  [] fail: something else
        "#]],
    );
    check(
        |ctx: Ctx, _| async move { Ok(ctx.activity("A", "").await.unwrap_or("made do".into())) },
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0  [] complete made do
        "#]],
    );
}

/// S0-40: the run was not cancelled: it failed.
#[test]
fn a_cancellation_that_the_code_makes_up_fails_a_run_that_was_not_cancelled() {
    check(
        |ctx: Ctx, _| async move { ctx.activity("A", "").await },
        "start
         drop A: the activity was cancelled by its worker",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] fail: the activity was cancelled by its worker
        "#]],
    );
}

/// S0-40
#[test]
fn code_sees_at_its_first_instruction_that_it_is_cancelled() {
    check(
        |ctx: Ctx, _| async move {
            ctx.activity("A", "").await?;
            say(format!("{:?}", ctx.cancellation()))
        },
        "start
         resolve A, cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] complete Some(Cancelled { reason: "enough" })
        "#]],
    );
    check(
        |ctx: Ctx, _| async move { say(format!("{:?}", ctx.cancellation())) },
        "start, cancel: before it began",
        expect![[r#"
            turn 0  [] complete Some(Cancelled { reason: "before it began" })
        "#]],
    );
}

/// C-15: in one activation the earlier of the two counts.
#[test]
fn a_result_that_came_before_the_cancellation_is_taken_and_one_after_it_is_not() {
    check(
        one_activity,
        "start
         resolve A = in time, cancel: late",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] complete in time
        "#]],
    );
    check(
        one_activity,
        "start
         cancel: first, resolve A = too late",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancelled: first
        "#]],
    );
}

/// S0-40: the level, not the edge.
#[test]
fn every_wait_begun_after_the_cancellation_fails_at_once() {
    check(
        |ctx: Ctx, _| async move {
            let waits = [
                ctx.activity("A", "").await.is_err(),
                ctx.sleep(secs(1)).await.is_err(),
                ctx.next_signal("s").await.is_err(),
                ctx.wait_until(|| false).await.is_err(),
                ctx.activity("B", "").await.is_err(),
                ctx.child("child", "").await.is_err(),
            ];
            say(format!("{waits:?}"))
        },
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0  [] timer 1s  [] cancel #1  [] activity B  [] cancel #2  [] child child  [] cancel #3  [] complete [true, true, true, true, true, true]
        "#]],
    );
}

/// S0-40
#[test]
fn a_signal_that_came_for_a_cancelled_wait_is_kept() {
    check(
        |ctx: Ctx, _| async move {
            let first = ctx.next_signal("s").await.is_err();
            let kept = ctx.try_signal("s").map(|signal| word(&signal.input));
            say(format!("{first} {kept:?}"))
        },
        "start
         cancel: enough, signal s = kept",
        expect![[r#"
            turn 0
            turn 1  [] complete true Some("kept")
        "#]],
    );
}

/// S0-40
#[test]
fn a_shield_lets_clean_up_go_on() {
    check(
        |ctx: Ctx, _| async move {
            let cancelled = ctx.activity("A", "").await;
            let shielded = ctx.shield(async {
                ctx.activity("undo", "").await?;
                say(format!("{:?}", ctx.cancellation()))
            });
            ctx.set_state("in the shield", shielded.await?);
            ctx.set_state("behind it", format!("{:?}", ctx.cancellation().is_some()));
            cancelled
        },
        "start
         cancel: enough
         resolve undo",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0  [] activity undo
            turn 2  [] state in the shield = None  [] state behind it = true  [] cancelled: enough
        "#]],
    );
}

/// S0-40: what a shield began before the cancellation is not disturbed by it.
#[test]
fn a_cancellation_does_not_reach_into_a_shield() {
    check(
        |ctx: Ctx, _| async move {
            ctx.shield(ctx.activity("shielded", "")).await?;
            ctx.activity("never sent", "").await
        },
        "start
         cancel: enough
         resolve shielded",
        expect![[r#"
            turn 0  [] activity shielded
            turn 1
            turn 2  [] activity never sent  [] cancel #1  [] cancelled: enough
        "#]],
    );
}

/// S0-40
#[test]
fn a_part_can_be_cancelled_by_itself_from_another_unit_with_a_reason() {
    check(
        |ctx: Ctx, _| async move {
            let (part, handle) = ctx.cancellable(ctx.activity("part", ""));
            let inside = ctx.clone();
            drop(ctx.launch(async move {
                inside.activity("other", "").await?;
                handle.cancel("not needed");
                Ok(())
            }));
            let failed = part.await.unwrap_err();
            let after = ctx.activity("after", "").await?;
            say(format!("{failed}, {after}, {:?}", ctx.cancellation()))
        },
        "start
         resolve other
         resolve after = unharmed",
        expect![[r#"
            turn 0  [] activity part  [l0] activity other
            turn 1  [] cancel #0  [] activity after
            turn 2  [] complete not needed, unharmed, None
        "#]],
    );
}

/// S0-40: within a shield a part of its own can still be cancelled.
#[test]
fn a_part_inside_a_shield_can_be_cancelled_by_itself() {
    check(
        |ctx: Ctx, _| async move {
            let result = ctx.shield(async {
                let (part, handle) = ctx.cancellable(ctx.activity("part", ""));
                ctx.join([
                    Box::pin(async {
                        ctx.next_signal("drop it").await?;
                        handle.cancel("dropped");
                        say("")
                    }) as std::pin::Pin<Box<dyn Future<Output = Done> + Send>>,
                    Box::pin(part),
                ])
                .await
            });
            say(format!("{:?}", result.await[1].as_ref().map_err(Failure::to_string)))
        },
        "start
         cancel: the whole run
         signal drop it",
        expect![[r#"
            turn 0  [] activity part
            turn 1
            turn 2  [] cancel #0  [] complete Err("dropped")
        "#]],
    );
}

/// S0-40: branches of a parallel are cancelled with the unit that awaits them, and it waits until they have cleaned up.
/// The wait for units is one that a cancellation does not end; what came to it after the cancellation was held to be
/// lost, and the run hung.
#[test]
fn parallel_branches_are_cancelled_and_awaited() {
    check(
        |ctx: Ctx, _| async move {
            let branches = ["A", "B"].map(|name| {
                let ctx = ctx.clone();
                async move {
                    let result = ctx.activity(name, "").await;
                    ctx.shield(ctx.activity("clean up", "")).await?;
                    result
                }
            });
            let results = ctx.parallel(branches).await;
            let _: Payload = results.into_iter().collect::<Result<Vec<_>, _>>()?.remove(0);
            say("never")
        },
        "start
         cancel: enough
         resolve clean up
         resolve clean up",
        expect![[r#"
            turn 0  [p0] activity A  [p1] activity B
            turn 1  [p0] cancel #0  [p0] activity clean up  [p1] cancel #1  [p1] activity clean up
            turn 2
            turn 3  [] cancelled: enough
        "#]],
    );
}

async fn cancelled_as(ctx: Ctx, cancel: CancelType) -> Done {
    let activity = ctx.activity("A", "").cancel_type(cancel).await;
    ctx.set_state("activity", activity.unwrap_or_else(|failure| failure.to_string().into()));
    say("done")
}

const CANCEL_AND_RESOLVE: &str = "start
     cancel: enough
     drop #0: stopped by request";

/// C-41
#[test]
fn try_cancel_asks_the_activity_to_stop_and_does_not_wait() {
    check(
        |ctx, _| cancelled_as(ctx, CancelType::TryCancel),
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0  [] state activity = enough  [] complete done
        "#]],
    );
}

/// C-41
#[test]
fn abandon_asks_nothing_and_does_not_wait() {
    check(
        |ctx, _| cancelled_as(ctx, CancelType::Abandon),
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] state activity = enough  [] complete done
        "#]],
    );
}

/// C-41: it asks once, waits, and takes what the activity makes of it. Its late answer was held to be lost.
#[test]
fn wait_completed_asks_once_and_takes_what_the_activity_makes_of_it() {
    check(
        |ctx, _| cancelled_as(ctx, CancelType::WaitCompleted),
        CANCEL_AND_RESOLVE,
        expect![[r#"
        turn 0  [] activity A
        turn 1  [] cancel #0
        turn 2  [] state activity = stopped by request  [] complete done
    "#]],
    );
    check(
        |ctx, _| cancelled_as(ctx, CancelType::WaitCompleted),
        "start
         cancel: enough, signal noise
         signal noise
         resolve #0 = finished all the same",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0
            turn 2
            turn 3  [] state activity = finished all the same  [] complete done
        "#]],
    );
}

/// C-41: the start of a child, its result, and the three ways to cancel it.
#[test]
fn children_are_cancelled_as_their_type_says() {
    let child = |cancel| {
        move |ctx: Ctx, _| async move {
            let started = ctx.child("C", "").cancel_type(cancel).started().await?;
            let result = started.await.unwrap_or_else(|failure| failure.to_string().into());
            ctx.set_state("child", result);
            say("done")
        }
    };
    let script = "start
         started C = run 1
         cancel: enough";
    check(
        child(CancelType::TryCancel),
        script,
        expect![[r#"
        turn 0  [] child C
        turn 1
        turn 2  [] cancel #0  [] state child = enough  [] complete done
    "#]],
    );
    check(
        child(CancelType::Abandon),
        script,
        expect![[r#"
        turn 0  [] child C
        turn 1
        turn 2  [] state child = enough  [] complete done
    "#]],
    );
    let script = "start
         started C = run 1
         cancel: enough
         drop C: asked to";
    check(
        child(CancelType::WaitRequested),
        script,
        expect![[r#"
        turn 0  [] child C
        turn 1
        turn 2  [] cancel #0
        turn 3  [] state child = asked to  [] complete done
    "#]],
    );
    check(
        child(CancelType::WaitCompleted),
        script,
        expect![[r#"
        turn 0  [] child C
        turn 1
        turn 2  [] cancel #0
        turn 3  [] state child = asked to  [] complete done
    "#]],
    );
}

/// C-41: before it has started there is a start to cancel.
#[test]
fn a_child_is_cancelled_before_its_start() {
    check(
        |ctx: Ctx, _| async move {
            let failed = ctx.child("C", "").started().await.err().map(|failure| failure.to_string());
            say(format!("{failed:?}"))
        },
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] child C
            turn 1  [] cancel #0  [] complete Some("enough")
        "#]],
    );
}

/// S0-40
#[test]
fn handlers_are_cancelled_with_the_run() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            ctx.on_update(
                "u",
                |_| Ok(()),
                move |_| {
                    let ctx = inside.clone();
                    async move { ctx.activity("A", "").await }
                },
            );
            ctx.shield(ctx.next_signal("stop")).await?;
            say("stopped")
        },
        "start
         update u 1
         cancel: enough
         signal stop",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h0] activity A
            turn 2  [h0] cancel #0  [h0] complete update 1 failed enough
            turn 3  [] complete stopped
        "#]],
    );
}

/// S3-3: a cancelled run's launched unit passed its cancellation on while main cleaned up in a shield. It counted as the
/// unit's own failure, and the run ended as failed.
#[test]
fn a_launched_unit_that_passes_on_the_run_s_cancellation_does_not_fail_the_run() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            drop(ctx.launch(async move { inside.activity("launched", "").await }));
            let main = ctx.activity("main", "").await;
            ctx.shield(ctx.activity("clean up", "")).await?;
            main
        },
        "start
         cancel: enough
         resolve clean up",
        expect![[r#"
            turn 0  [] activity main  [l0] activity launched
            turn 1  [] cancel #0  [] activity clean up  [l0] cancel #1
            turn 2  [] cancelled: enough
        "#]],
    );
}

/// S0-40: asking twice changes nothing, the first reason stands.
#[test]
fn a_second_cancellation_changes_nothing() {
    check(
        |ctx: Ctx, _| async move {
            let first: Cancelled = ctx.sleep(secs(5)).await.unwrap_err();
            ctx.shield(ctx.next_signal("again")).await?;
            let second: Cancelled = ctx.sleep(secs(5)).await.unwrap_err();
            say(format!("{first}, {second}"))
        },
        "start
         cancel: one
         cancel: two, signal again",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1  [] cancel #0
            turn 2  [] timer 5s  [] cancel #1  [] complete cancelled: one, cancelled: one
        "#]],
    );
}

/// S0-40: units that a part started and left to others stay within reach of the run's cancellation when the part is done.
#[test]
fn branches_that_outlive_the_part_they_were_started_in_are_cancelled_with_the_run() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let (part, handle) = ctx.cancellable(async move {
                let ctx = inside.clone();
                let branches = inside.parallel([async move { ctx.activity("A", "").await }]);
                Some(branches)
            });
            let branches = part.await;
            drop(handle);
            branches.unwrap().await.remove(0)
        },
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [p0] activity A
            turn 1  [p0] cancel #0  [] cancelled: enough
        "#]],
    );
}

/// C-48
#[test]
fn a_cancellation_reaches_handlers_first_where_handlers_go_first() {
    let both = workflow(|ctx: Ctx, _| async move {
        let inside = ctx.clone();
        ctx.on_update(
            "u",
            |_| Ok(()),
            move |_| {
                let ctx = inside.clone();
                async move { ctx.activity("handler", "").await }
            },
        );
        ctx.activity("main", "").await
    });
    let pins = Pins { order: dacapo_core::Order::HandlersFirst, ..Pins::default() };
    check_workflow(
        &both,
        pins,
        "start, update u 1
         cancel: enough",
        expect![[r#"
            turn 0  [] activity main  [h0] accept update 1  [h0] activity handler
            turn 1  [h0] cancel #1  [h0] complete update 1 failed enough  [] cancel #0  [] cancelled: enough
        "#]],
    );
}

/// C-41: a call to another service is cancelled as its type says, too.
#[test]
fn a_call_that_is_to_be_abandoned_is_not_asked_to_stop() {
    check(
        |ctx: Ctx, _| async move {
            let call = ctx.nexus("endpoint", "service", "N", "").with(|call| call.cancel = CancelType::Abandon);
            let ended = call.await.unwrap_err();
            say(ended.to_string())
        },
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] nexus service/N
            turn 1  [] complete enough
        "#]],
    );
}

/// Of two cancellations the first holds, whichever scope they reach: a result between them came too late.
#[test]
fn a_later_cancellation_of_a_part_lets_no_late_result_pass() {
    check(
        |ctx: Ctx, _| async move {
            let (part, handle) = ctx.cancellable(ctx.activity("A", ""));
            let inside = ctx.clone();
            let waits = ctx.launch(async move {
                inside.set_state("part", part.await.unwrap_or_else(|failure| failure.to_string().into()));
                Ok(())
            });
            ctx.next_signal("never").await.unwrap_err();
            handle.cancel("later");
            ctx.shield(waits).await?;
            say("done")
        },
        "start
         cancel: enough, resolve A = too late",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [l0] state part = enough  [] complete done
        "#]],
    );
}

/// S3-3: a cancellation that is not the run's own is a failure like any other.
#[test]
fn a_launched_unit_that_passes_on_the_cancellation_of_a_part_fails_the_run() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            drop(ctx.launch(async move {
                let (part, handle) = inside.cancellable(inside.activity("part", ""));
                handle.cancel("not needed");
                part.await
            }));
            ctx.next_signal("never").await?;
            say("done")
        },
        "start",
        expect![[r#"
            turn 0  [l0] activity part  [l0] cancel #0  [] fail: not needed
        "#]],
    );
}

/// C-41: a result that is there before a unit waits for it is no wait that a cancellation could end.
#[test]
fn result_that_is_not_awaited_yet_outlives_a_cancellation() {
    check(
        |ctx: Ctx, _| async move {
            let a = ctx.activity("A", "");
            ctx.next_signal("never").await.unwrap_err();
            a.await
        },
        "start
         cancel: enough, resolve A = there",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] complete there
        "#]],
    );
}

/// C-41: what was asked of another workflow is not taken back.
#[test]
fn a_request_to_cancel_another_workflow_is_not_cancelled_itself() {
    check(
        |ctx: Ctx, _| async move {
            drop(ctx.cancel_external(Target::workflow("other"), "enough"));
            say("done")
        },
        "start",
        expect![[r#"
            turn 0  [] cancel external other  [] complete done
        "#]],
    );
}

/// C-41: code that polls all it waits for whenever anything comes must not ask again.
#[test]
fn an_activity_that_is_polled_again_is_not_asked_to_cancel_again() {
    check(
        |ctx: Ctx, _| async move {
            let [a, b] = ["A", "B"].map(|name| ctx.activity(name, "").cancel_type(CancelType::WaitCompleted));
            let (a, b) = futures::join!(a, b);
            say(format!("{:?} {:?}", a?, b?))
        },
        "start
         cancel: enough
         resolve B = b
         resolve A = a",
        expect![[r#"
            turn 0  [] activity A  [] activity B
            turn 1  [] cancel #0  [] cancel #1
            turn 2
            turn 3  [] complete a b
        "#]],
    );
}

/// Branches belong to the part that started them.
#[test]
fn the_branches_of_a_part_are_cancelled_with_it() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let (part, handle) = ctx.cancellable(async move {
                let branch = one_activity(inside.clone(), Payload::empty());
                inside.parallel([branch]).await.remove(0)
            });
            let other = ctx.clone();
            drop(ctx.launch(async move {
                other.next_signal("stop").await?;
                handle.cancel("not needed");
                Ok(())
            }));
            say(part.await.unwrap_err().to_string())
        },
        "start
         signal stop",
        expect![[r#"
            turn 0  [p1] activity A
            turn 1  [p1] cancel #0  [] complete not needed
        "#]],
    );
}

/// The scope around a shield holds again as soon as the shield is over, within the same step.
#[test]
fn code_after_a_shield_in_the_same_step_is_not_shielded() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let _ = ctx.next_signal("never").await;
        ctx.shield(async {}).await;
        let slept = ctx.sleep(secs(5)).await;
        say(format!("slept {}", slept.is_ok()))
    }
    check(
        main,
        "start
         cancel: enough",
        expect![[r#"
            turn 0
            turn 1  [] timer 5s  [] cancel #0  [] complete slept false
        "#]],
    );
}

/// Units that outlive the part they were started in belong to the part around it, and not to the run alone.
#[test]
fn branches_that_outlive_an_inner_part_are_cancelled_with_the_outer_one() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.clone();
        let (outer, stop) = ctx.cancellable(async move {
            let maker = inner.clone();
            let (part, handle) = inner.cancellable(async move {
                let ctx = maker.clone();
                // Handed out to be awaited elsewhere.
                (maker.parallel([async move { ctx.activity("A", "").await }]),)
            });
            let (branches,) = part.await;
            drop(handle);
            branches.await
        });
        let watcher = ctx.clone();
        drop(ctx.launch(async move {
            watcher.next_signal("stop").await?;
            stop.cancel("stopped");
            Ok(())
        }));
        let results = outer.await;
        say(format!("cancelled {}", results[0].as_ref().is_err_and(|failure| failure.is_cancelled())))
    }
    check(
        main,
        "start
         signal stop",
        expect![[r#"
            turn 0  [p1] activity A
            turn 1  [p1] cancel #0  [] complete cancelled true
        "#]],
    );
}

/// A shield covers what is in it, and not what is awaited beside it.
#[test]
fn branch_beside_a_shield_is_not_shielded() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let _ = ctx.next_signal("never").await;
        let (shielded, slept) = futures::join!(ctx.shield(ctx.next_signal("go")), ctx.sleep(secs(5)));
        say(format!("shielded {}, slept {}", shielded.is_ok(), slept.is_ok()))
    }
    check(
        main,
        "start
         cancel: enough
         signal go",
        expect![[r#"
            turn 0
            turn 1  [] timer 5s  [] cancel #0
            turn 2  [] complete shielded true, slept false
        "#]],
    );
}
