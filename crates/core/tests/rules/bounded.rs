//! Bounded parallel branches: at most so many are played at a time.

use crate::kit::*;

/// Five branches of two steps each. Branch 1 fails after its first step.
fn five_branches(at_most: usize) -> impl Fn(Ctx, Payload) -> std::pin::Pin<Box<dyn Future<Output = Done> + Send>> {
    move |ctx, _| {
        Box::pin(async move {
            let branches = (0..5).map(|n| {
                let ctx = ctx.clone();
                async move {
                    let first = ctx.activity(format!("A{n}"), "").await?;
                    if n == 1 {
                        return Err(Failure::application("branch 1"));
                    }
                    Ok::<_, Failure>(format!("{first}{}", ctx.activity(format!("B{n}"), "").await?))
                }
            });
            let outputs = ctx.parallel(branches).at_most(at_most).await;
            let outputs: Vec<String> =
                outputs.into_iter().map(|output| output.unwrap_or_else(|failure| failure.message)).collect();
            Ok(outputs.join(" ").into())
        })
    }
}

const RESULTS: &str = "start
    resolve A1
    resolve A0 = a
    resolve A2 = c, resolve B0 = a
    resolve B2 = c
    resolve A3 = d, resolve A4 = e
    resolve B4 = e
    resolve B3 = d";

/// The next branch begins in the turn in which a place is free, also after a failure; outputs are in the order of the
/// branches. `check` also plays this with the run evicted and replayed between all turns.
#[test]
fn bounded_branches_begin_in_order_as_places_become_free() {
    check(
        five_branches(2),
        RESULTS,
        expect![[r#"
            turn 0  [p0] activity A0  [p1] activity A1
            turn 1  [p2] activity A2
            turn 2  [p0] activity B0
            turn 3  [p2] activity B2  [p3] activity A3
            turn 4  [p4] activity A4
            turn 5  [p3] activity B3  [p4] activity B4
            turn 6
            turn 7  [] complete aa branch 1 cc dd ee
        "#]],
    );
}

#[test]
fn bound_of_one_plays_branches_one_after_the_other() {
    check(
        five_branches(1),
        "start
         resolve A0
         resolve B0
         resolve A1
         resolve A2",
        expect![[r#"
            turn 0  [p0] activity A0
            turn 1  [p0] activity B0
            turn 2  [p1] activity A1
            turn 3  [p2] activity A2
            turn 4  [p2] activity B2
        "#]],
    );
}

#[test]
fn bound_above_the_number_of_branches_plays_all_at_once() {
    let text = play(five_branches(9), "start").printed;
    assert_eq!(text, play(five_branches(5), "start").printed);
    assert_eq!(text.matches("activity").count(), 5);
}

#[test]
fn replay_stops_at_a_changed_bound() {
    check_replay(
        five_branches(2),
        RESULTS,
        five_branches(3),
        expect![[r#"
            failed: nondeterminism: a command was not recorded
              --> turn 0, command 2
               |
               | recorded: nothing, by build kit
               | new:      activity A2 #2, activity(2), unit [p2], at crates/core/tests/rules/bounded.rs:12:37
               |
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

/// A branch that waits for a place is played when its turn comes, so that it can clean up; its waits fail at once.
#[test]
fn cancelled_run_plays_the_branches_that_wait_and_their_waits_fail_at_once() {
    async fn cleans_up(ctx: Ctx, _: Payload) -> Done {
        let branches = (0..4).map(|n| {
            let ctx = ctx.clone();
            async move {
                let failed = ctx.activity(format!("A{n}"), "").await.is_err();
                if failed {
                    ctx.shield(ctx.activity(format!("clean up {n}"), "")).await.unwrap();
                }
                n
            }
        });
        let ended = ctx.parallel(branches).at_most(2).await;
        Ok(format!("{ended:?}").into())
    }
    check(
        cleans_up,
        "start
         cancel: enough
         resolve clean up 1
         resolve clean up 0, resolve clean up 2
         resolve clean up 3",
        expect![[r#"
            turn 0  [p0] activity A0  [p1] activity A1
            turn 1  [p0] cancel #0  [p0] activity clean up 0  [p1] cancel #1  [p1] activity clean up 1
            turn 2  [p2] activity A2  [p2] cancel #4  [p2] activity clean up 2
            turn 3  [p3] activity A3  [p3] cancel #6  [p3] activity clean up 3
            turn 4  [] complete [0, 1, 2, 3]
        "#]],
    );
}

#[test]
fn dropped_bounded_branches_are_aborted_and_those_that_wait_never_begin() {
    async fn gives_up(ctx: Ctx, _: Payload) -> Done {
        let branches = (0..4).map(|n| {
            let ctx = ctx.clone();
            async move { ctx.activity(format!("A{n}"), "").await }
        });
        let branches = async { Ok::<_, Failure>(ctx.parallel(branches).at_most(2).await) };
        ctx.race(branches, ctx.sleep(secs(5))).await?;
        nothing()
    }
    check(
        gives_up,
        "start
         resolve A0
         fire",
        expect![[r#"
            turn 0  [] timer 5s  [p0] activity A0  [p1] activity A1
            turn 1  [p2] activity A2
            turn 2  [p1] cancel #2  [p2] cancel #3  [] complete
        "#]],
    );
}

#[test]
fn branch_that_waits_for_a_place_is_shown_as_waiting_for_other_units() {
    let mut played = play(five_branches(2), "start");
    let inspection = played.run().inspect();
    let waits: Vec<&str> =
        inspection.units.iter().flat_map(|unit| &unit.waits).map(|wait| wait.what.as_str()).collect();
    assert_eq!(waits, ["other units", "activity A0 #0", "activity A1 #1", "other units", "other units", "other units"]);
}

fn failure_of<F, P>(function: F) -> String
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Done> + Send + 'static,
{
    play(function, "start").printed
}

#[test]
fn bound_of_branches_that_have_scheduled_their_work_already_fails_the_activation() {
    let text = failure_of(|ctx, _| async move {
        ctx.parallel((0..4).map(|n| ctx.activity(format!("A{n}"), ""))).at_most(2).await;
        nothing()
    });
    assert!(text.contains("was scheduled when they were created"), "{text}");
    assert!(text.contains("async move"), "{text}");
}

#[test]
fn bound_of_zero_or_after_the_branches_have_begun_fails_the_activation() {
    let zero = failure_of(|ctx, _| async move {
        ctx.parallel([async {}]).at_most(0).await;
        nothing()
    });
    assert!(zero.contains("`at_most(0)` would play no branch"), "{zero}");
    let late = failure_of(|ctx, _| async move {
        let branches = ctx.parallel([async {}]);
        ctx.yield_now().await;
        ctx.yield_now().await;
        branches.at_most(1).await;
        nothing()
    });
    assert!(late.contains("the branches have begun"), "{late}");
}
