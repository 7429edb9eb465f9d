//! The failure matrix: what the failure of one unit means to others.

use dacapo_core::{Ctx, Failure, FailureKind, Payload, Pins, Target, TimeoutKind, Transcript};
use dacapo_testkit::{Mode, Player, check, expect, workflow};

use crate::kit::*;

async fn step(ctx: Ctx, name: &'static str) -> Done {
    ctx.activity(name, "").await
}

/// S3-2, S3-3, C-11: main observes a cancellation, and the run fails with the unit's own failure.
#[test]
fn a_launched_unit_that_fails_cancels_main_and_fails_the_run_with_its_own_failure() {
    check(
        |ctx: Ctx, _| async move {
            drop(ctx.launch(step(ctx.clone(), "launched")));
            let main = step(ctx.clone(), "main").await;
            ctx.set_state("main saw", main.clone().unwrap_err().to_string());
            main
        },
        "start
         fail launched: broken",
        expect![[r#"
            turn 0  [] activity main  [l0] activity launched
            turn 1  [] cancel #0  [] state main saw = launched unit [l0] failed: broken  [] fail: broken
        "#]],
    );
}

/// S3-3: whatever main makes of its cancellation.
#[test]
fn main_cannot_turn_the_failure_of_a_launched_unit_into_success() {
    check(
        |ctx: Ctx, _| async move {
            drop(ctx.launch(step(ctx.clone(), "launched")));
            drop(step(ctx.clone(), "main").await);
            say("all is well")
        },
        "start
         fail launched: broken",
        expect![[r#"
            turn 0  [] activity main  [l0] activity launched
            turn 1  [] cancel #0  [] fail: broken
        "#]],
    );
}

/// S3-3
#[test]
fn a_launched_unit_that_fails_cancels_its_siblings() {
    check(
        |ctx: Ctx, _| async move {
            for name in ["A", "B", "C"] {
                drop(ctx.launch(step(ctx.clone(), name)));
            }
            ctx.shield(ctx.activity("main", "")).await
        },
        "start
         fail B: broken
         resolve main",
        expect![[r#"
            turn 0  [] activity main  [l0] activity A  [l1] activity B  [l2] activity C
            turn 1  [l0] cancel #1  [l2] cancel #3
            turn 2  [] fail: broken
        "#]],
    );
}

/// S3-3: main awaited the failed unit where no cancellation reached it, and waited for a value that was never to come: a
/// run that had failed stayed open for ever.
#[test]
fn awaiting_a_launched_unit_that_failed_ends_even_in_a_shield_or_too_late() {
    check(
        |ctx: Ctx, _| async move {
            let launched = ctx.launch(step(ctx.clone(), "launched"));
            let seen = ctx.shield(launched).await;
            ctx.set_state("in a shield", seen.unwrap_err().to_string());
            say("done")
        },
        "start
         fail launched: broken",
        expect![[r#"
            turn 0  [l0] activity launched
            turn 1  [] state in a shield = cancelled: launched unit [l0] failed: broken  [] fail: broken
        "#]],
    );
    check(
        |ctx: Ctx, _| async move {
            let launched = ctx.launch(step(ctx.clone(), "launched"));
            ctx.shield(ctx.activity("main", "")).await?;
            let seen = launched.await;
            ctx.set_state("too late", seen.unwrap_err().to_string());
            say("done")
        },
        "start
         fail launched: broken
         resolve main",
        expect![[r#"
            turn 0  [] activity main  [l0] activity launched
            turn 1
            turn 2  [] state too late = cancelled: launched unit [l0] failed: broken  [] fail: broken
        "#]],
    );
}

/// S3-2, S3-4: a handler is in the other scope, and neither scope's failure reaches the other.
#[test]
fn a_launched_unit_that_fails_does_not_cancel_the_handlers() {
    check_root_first(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            ctx.on_update("u", |_| Ok(()), move |_| step(inside.clone(), "handler"));
            drop(ctx.launch(step(ctx.clone(), "launched")));
            ctx.shield(ctx.activity("main", "")).await
        },
        "start, update u 1
         fail launched: broken
         resolve handler = unharmed
         resolve main",
        expect![[r#"
            turn 0  [] activity main  [h0] accept update 1  [l0] activity launched  [h0] activity handler
            turn 1
            turn 2  [h0] complete update 1 ok unharmed
            turn 3  [] fail: broken
        "#]],
    );
}

/// S3-4
#[test]
fn a_handler_that_fails_reaches_neither_main_nor_launched_units_nor_other_handlers() {
    check_root_first(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            ctx.on_signal("s", move |signal| {
                let ctx = inside.clone();
                async move { ctx.activity(word(&signal.input), "").await.map(drop) }
            });
            let launched = ctx.launch(step(ctx.clone(), "launched"));
            step(ctx.clone(), "main").await?;
            launched.await.map_err(Into::into)
        },
        "start, signal s = A, signal s = B
         fail A: broken
         resolve B, resolve main
         resolve launched = fine",
        expect![[r#"
            turn 0  [] activity main  [l0] activity launched  [h0] activity A  [h1] activity B
            turn 1
              warning: signal handler [h0] failed: broken
            turn 2
            turn 3  [] complete fine
        "#]],
    );
}

/// S3-9
#[test]
fn launched_units_are_siblings_of_main_and_given_up_when_it_returns() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            drop(ctx.launch(async move {
                inside.activity("launched", "").await?;
                inside.set_state("never", "set");
                Ok(())
            }));
            step(ctx.clone(), "main").await
        },
        "start
         resolve main = first, resolve launched",
        expect![[r#"
            turn 0  [] activity main  [l0] activity launched
            turn 1  [] complete first
        "#]],
    );
}

/// S3-9: dropping the handle is not dropping the unit.
#[test]
fn a_launched_unit_lives_on_without_its_handle() {
    check(
        |ctx: Ctx, _| async move {
            drop(ctx.launch(step(ctx.clone(), "launched")));
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start
         resolve launched
         signal stop",
        expect![[r#"
            turn 0  [l0] activity launched
            turn 1
            turn 2  [] complete stopped
        "#]],
    );
}

/// S3-10
#[test]
fn a_scope_does_not_return_before_its_units() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let body = ctx.scope(|scope| async move {
                for name in ["A", "B"] {
                    let ctx = inside.clone();
                    scope.launch(async move { ctx.activity(name, "").await.map(drop) });
                }
                Ok("body")
            });
            let value = body.await?;
            ctx.set_state("scope", "ended");
            say(value)
        },
        "start
         resolve B
         resolve A",
        expect![[r#"
            turn 0  [l0] activity A  [l1] activity B
            turn 1
            turn 2  [] state scope = ended  [] complete body
        "#]],
    );
}

/// S3-10, C-11: the scope's first failure cancels body and siblings, is the scope's own, and ends nothing beyond it.
#[test]
fn a_scope_with_a_failing_unit_cancels_the_rest_and_fails_alone() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let scope = ctx.scope(|scope| async move {
                for name in ["A", "B"] {
                    let ctx = inside.clone();
                    scope.launch(async move { ctx.activity(name, "").await.map(drop) });
                }
                inside.activity("body", "").await
            });
            let failed = scope.await.unwrap_err();
            let after = step(ctx.clone(), "after").await?;
            say(format!("{failed}, then {after}"))
        },
        "start
         fail B: broken
         resolve after = well",
        expect![[r#"
            turn 0  [] activity body  [l0] activity A  [l1] activity B
            turn 1  [] cancel #0  [l0] cancel #1  [] activity after
            turn 2  [] complete broken, then well
        "#]],
    );
}

/// S3-10
#[test]
fn a_scope_whose_body_fails_cancels_its_units_and_waits_for_their_clean_up() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let scope = ctx.scope(|scope| async move {
                let ctx = inside.clone();
                scope.launch(async move {
                    let cancelled = ctx.activity("A", "").await;
                    ctx.shield(ctx.activity("clean up", "")).await?;
                    cancelled.map(drop)
                });
                inside.activity("body", "").await
            });
            let failed = scope.await.unwrap_err();
            say(format!("scope: {failed}"))
        },
        "start
         fail body: broken
         resolve clean up",
        expect![[r#"
            turn 0  [] activity body  [l0] activity A
            turn 1  [l0] cancel #1  [l0] activity clean up
            turn 2  [] complete scope: broken
        "#]],
    );
}

/// S3-10: a unit fails while the body is in a shield; the body finishes what it shields, and the scope fails.
#[test]
fn a_scope_waits_for_a_body_in_a_shield() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let scope = ctx.scope(|scope| async move {
                let ctx = inside.clone();
                scope.launch(async move { ctx.activity("A", "").await.map(drop) });
                inside.shield(inside.activity("shielded", "")).await?;
                inside.activity("never", "").await
            });
            let failed = scope.await.unwrap_err();
            say(format!("scope: {failed}"))
        },
        "start
         fail A: broken
         resolve shielded",
        expect![[r#"
            turn 0  [] activity shielded  [l0] activity A
            turn 1
            turn 2  [] activity never  [] cancel #2  [] complete scope: broken
        "#]],
    );
}

/// S3-10: a scope kept beyond its end took units that it did not wait for, which is what a scope promises not to do.
#[test]
fn launching_into_a_scope_that_has_ended_is_refused() {
    check_refused(
        |ctx: Ctx, _| async move {
            let kept = ctx.scope(|scope| async move { Ok(scope) }).await?;
            kept.launch(async { Ok(()) });
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/failures.rs: the scope has ended; launch into it before its body returns
        "#]],
    );
}

/// C-11: a parallel branch's failure is a value.
#[test]
fn parallel_plays_every_branch_to_its_end_and_hands_over_all_results() {
    check(
        |ctx: Ctx, _| async move {
            let results = ctx.parallel(["A", "B", "C"].map(|name| step(ctx.clone(), name))).await;
            say(format!("{:?}", results.iter().map(Result::is_ok).collect::<Vec<_>>()))
        },
        "start
         fail B: broken
         resolve C
         resolve A",
        expect![[r#"
            turn 0  [p0] activity A  [p1] activity B  [p2] activity C
            turn 1
            turn 2
            turn 3  [] complete [true, false, true]
        "#]],
    );
}

/// C-11
#[test]
fn join_awaits_all_and_hands_over_all_results() {
    check(
        |ctx: Ctx, _| async move {
            let results = ctx.join(["A", "B", "C"].map(|name| ctx.activity(name, ""))).await;
            say(format!("{:?}", results.iter().map(Result::is_ok).collect::<Vec<_>>()))
        },
        "start
         fail B: broken
         resolve C
         resolve A",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1
            turn 2
            turn 3  [] complete [true, false, true]
        "#]],
    );
}

/// C-11
#[test]
fn try_join_ends_with_the_first_failure_and_cancels_the_rest() {
    check(
        |ctx: Ctx, _| async move {
            let failed = ctx.try_join(["A", "B", "C"].map(|name| ctx.activity(name, ""))).await.unwrap_err();
            say(format!("{failed}"))
        },
        "start
         resolve A
         fail B: broken",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1
            turn 2  [] cancel #2  [] complete broken
        "#]],
    );
}

/// C-11: of two failures in one activation the first to come is the one.
#[test]
fn try_join_fails_with_the_failure_that_came_first() {
    check(
        |ctx: Ctx, _| async move {
            let failed = ctx.try_join(["A", "B", "C"].map(|name| ctx.activity(name, ""))).await.unwrap_err();
            say(format!("{failed}"))
        },
        "start
         fail C: c, fail A: a",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1  [] cancel #1  [] complete c
        "#]],
    );
}

/// C-12: what the branches of a lost race had open is cancelled, branch by branch.
#[test]
fn dropping_parallel_branches_gives_them_up_with_what_they_had_open() {
    check(
        |ctx: Ctx, _| async move {
            let branches = [["A", "B"], ["C", "D"]].map(|names| {
                let ctx = ctx.clone();
                async move {
                    let inner = ctx.parallel(names.map(|name| step(ctx.clone(), name)));
                    ctx.join([ctx.activity("own", "")]).await;
                    inner.await
                }
            });
            let all = ctx.parallel(branches);
            let race = ctx.race(async { Ok::<_, dacapo_core::Failure>(all.await) }, ctx.sleep(secs(5)));
            race.await?;
            step(ctx.clone(), "after").await
        },
        "start
         fire 5s
         resolve after = late results of the dead are ignored, resolve #1, resolve #2",
        expect![[r#"
            turn 0  [] timer 5s  [p0] activity own  [p1] activity own  [p0,p0] activity A  [p0,p1] activity B  [p1,p0] activity C  [p1,p1] activity D
            turn 1  [] activity after  [p0] cancel #1  [p0,p0] cancel #3  [p0,p1] cancel #4  [p1] cancel #2  [p1,p0] cancel #5  [p1,p1] cancel #6
            turn 2  [] complete late results of the dead are ignored
        "#]],
    );
}

/// S3-3, C-11: `?` on a plain activity in main.
#[test]
fn a_failure_that_main_passes_on_fails_the_run() {
    check(
        |ctx: Ctx, _: Payload| step(ctx, "main"),
        "start
         fail main: broken",
        expect![[r#"
            turn 0  [] activity main
            turn 1  [] fail: broken
        "#]],
    );
}

/// Others may be gone when a signal or a cancel reaches them.
#[test]
fn a_signal_or_cancel_that_could_not_be_delivered_is_a_failure() {
    check(
        |ctx: Ctx, _| async move {
            let signal = ctx.signal_external(Target::workflow("other"), "S", "").await.unwrap_err();
            let cancel = ctx.cancel_external(Target::workflow("other"), "enough").await.unwrap_err();
            say(format!("{signal}, then {cancel}"))
        },
        "start
         lost #0: receiver absent
         lost #1: still absent",
        expect![[r#"
            turn 0  [] signal external S to other
            turn 1  [] cancel external other
            turn 2  [] complete receiver absent, then still absent
        "#]],
    );
}

/// A timeout is one however often it was wrapped.
#[test]
fn a_failure_that_wraps_a_timeout_is_one() {
    let timeout = Failure::new(FailureKind::Timeout(TimeoutKind::Heartbeat), "no heartbeat");
    assert!(fail("gave up").caused_by(fail("activity").caused_by(timeout)).is_timeout());
    assert!(!fail("gave up").caused_by(fail("activity")).is_timeout());
}

/// However long a chain of causes grows, its record can be read.
#[test]
fn the_longest_chain_of_causes_comes_back_from_its_record() {
    let link = |n: i32| fail(&n.to_string()).typed("Broken").non_retryable();
    let chain = move || (0..100).fold(fail("first"), |cause, n| link(n).caused_by(cause));
    let kept = chain();
    assert_eq!((kept.message.as_str(), kept.chain().count()), ("99", 64), "the deepest are left out");
    let mut play = Player::new(workflow(move |_, _| async move { Err(chain()) }), Pins::default(), Mode::Whole);
    play.play("start");
    assert_eq!(Transcript::from_bytes(&play.transcript.to_bytes()).as_ref(), Ok(&play.transcript));
}

/// S3-10: the scope had nothing left to wait for when its body launched once more.
#[test]
fn a_scope_waits_for_a_unit_that_was_launched_when_all_others_had_ended() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            ctx.scope(|scope| async move {
                let launched = inside.clone();
                scope.launch(async move { step(launched, "first").await.map(drop) });
                step(inside.clone(), "body").await?;
                scope.launch(async move { step(inside, "second").await.map(drop) });
                Ok(())
            })
            .await?;
            say("scope over")
        },
        "start
         resolve first
         resolve body
         resolve second",
        expect![[r#"
            turn 0  [] activity body  [l0] activity first
            turn 1
            turn 2  [l1] activity second
            turn 3  [] complete scope over
        "#]],
    );
}

/// S3-2, S3-4: what a handler launched stands beside the handlers and not beside main.
#[test]
fn a_launched_unit_that_fails_does_not_cancel_what_a_handler_launched() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let launch = move |_| {
                let helper = inside.launch(step(inside.clone(), "helper"));
                async move { helper.await.map_err(Failure::from) }
            };
            ctx.on_update("u", |_| Ok(()), launch);
            drop(ctx.launch(step(ctx.clone(), "launched")));
            ctx.shield(ctx.activity("main", "")).await
        },
        "start, update u 1
         fail launched: broken
         resolve helper = unharmed
         resolve main",
        expect![[r#"
            turn 0  [] activity main  [h0] accept update 1  [l0] activity launched  [h0,l0] activity helper
            turn 1
            turn 2  [h0] complete update 1 ok unharmed
            turn 3  [] fail: broken
        "#]],
    );
}

/// S3-10: what goes wrong in the clean-up is not what the scope failed with.
#[test]
fn a_scope_fails_with_its_first_failure() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            ctx.scope(|scope| async move {
                let ctx = inside.clone();
                scope.launch(async move { ctx.activity("A", "").await.map(drop).map_err(|_| fail("clean-up")) });
                inside.activity("body", "").await
            })
            .await
        },
        "start
         fail body: broken",
        expect![[r#"
            turn 0  [] activity body  [l0] activity A
            turn 1  [l0] cancel #1  [] fail: broken
        "#]],
    );
}
