//! The order of units, which follows from their ids alone.

use proptest::prelude::*;

use crate::kit::*;

async fn two_branches(ctx: Ctx, _: Payload) -> Done {
    let branches = [("A", "C"), ("B", "D")].map(|(first, second)| {
        let ctx = ctx.clone();
        async move {
            ctx.activity(first, "").await?;
            ctx.activity(second, "").await
        }
    });
    ctx.parallel(branches).await;
    nothing()
}

/// S0-28, S0-66: the parent pauses on its branches, which run in the next round and schedule in branch order.
#[test]
fn branches_schedule_their_first_steps_in_branch_order() {
    check(
        two_branches,
        "start",
        expect![[r#"
            turn 0  [p0] activity A  [p1] activity B
        "#]],
    );
    let mut played = play(two_branches, "start");
    let inspection = played.run().inspect();
    assert_eq!(inspection.round, 2, "the root in one round, its branches in the next");
    assert_eq!(inspection.units[0].waits[0].what, "other units");
    assert_eq!(played.transcript.turns.len(), 1);
}

/// S0-29, S0-67
#[test]
fn a_branch_goes_on_alone_when_only_its_result_comes() {
    check(
        two_branches,
        "start
         resolve #0",
        expect![[r#"
            turn 0  [p0] activity A  [p1] activity B
            turn 1  [p0] activity C
        "#]],
    );
    let played = play(two_branches, "start\nresolve #0");
    let seqs: Vec<_> = played.transcript.turns.iter().flat_map(|turn| &turn.commands).map(|c| c.kind.seq()).collect();
    assert_eq!(seqs, [Some(Seq(0)), Some(Seq(1)), Some(Seq(2))]);
}

/// S0-30, S0-68, C-15
#[test]
fn branches_that_resolve_together_go_on_in_branch_order() {
    for jobs in ["resolve A, resolve B", "resolve B, resolve A"] {
        check(
            two_branches,
            &format!("start\n{jobs}"),
            expect![[r#"
                turn 0  [p0] activity A  [p1] activity B
                turn 1  [p0] activity C  [p1] activity D
            "#]],
        );
    }
}

/// S0-22, S0-31, S0-36: whatever the order in which five units become runnable, they go in the order of their ids.
#[test]
fn the_order_of_wake_ups_does_not_decide_the_order_of_units() {
    async fn five(ctx: Ctx, _: Payload) -> Done {
        let branches = (0..5).map(|branch| {
            let ctx = ctx.clone();
            async move {
                ctx.activity("A", "").await.unwrap();
                ctx.set_state(branch.to_string(), "1");
            }
        });
        ctx.parallel(branches).await;
        nothing()
    }
    let orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [1, 4, 0, 3, 2], [3, 1, 4, 2, 0]];
    for order in orders {
        let jobs = order.map(|seq| format!("resolve #{seq}")).join(", ");
        let played = play(five, &format!("start\n{jobs}"));
        assert_eq!(
            decided(&played.transcript)[5..],
            [
                "[p0] state 0 = 1",
                "[p1] state 1 = 1",
                "[p2] state 2 = 1",
                "[p3] state 3 = 1",
                "[p4] state 4 = 1",
                "[] complete"
            ]
        );
    }
}

async fn units_of_every_kind(ctx: Ctx, _: Payload) -> Done {
    let inner = ctx.clone();
    ctx.on_signal("tick", move |_| {
        let ctx = inner.clone();
        async move {
            ctx.activity("H", "").await?;
            ctx.set_state("handler", "1");
            Ok(())
        }
    });
    let branches = [0, 1].map(|branch| {
        let ctx = ctx.clone();
        async move {
            ctx.activity("P", "").await.unwrap();
            ctx.set_state(format!("branch {branch}"), "1");
        }
    });
    let branches = ctx.parallel(branches);
    ctx.activity("R", "").await?;
    ctx.set_state("root", "1");
    branches.await;
    ctx.activity("end", "").await
}

/// S0-32, T-1: handlers come after branches, though an `h` stands before a `p` in the alphabet.
#[test]
fn the_root_goes_first_then_branches_then_handlers() {
    check_workflow(
        &workflow(units_of_every_kind),
        root_first(),
        "start, signal tick, signal tick
         resolve H, resolve P, resolve H, resolve P, resolve R",
        expect![[r#"
            turn 0  [] activity R  [p0] activity P  [p1] activity P  [h0] activity H  [h1] activity H
            turn 1  [] state root = 1  [p0] state branch 0 = 1  [p1] state branch 1 = 1  [h0] state handler = 1  [h1] state handler = 1  [] activity end
        "#]],
    );
}

/// S0-34: handlers are numbered as they start, in the order of the jobs.
#[test]
fn handlers_are_numbered_in_the_order_of_the_jobs() {
    async fn mixed(ctx: Ctx, _: Payload) -> Done {
        for name in ["a", "b", "c"] {
            let ctx = ctx.clone();
            ctx.clone().on_signal(name, move |_| {
                let ctx = ctx.clone();
                async move {
                    ctx.activity(name, "").await?;
                    Ok(())
                }
            });
        }
        ctx.activity("end", "").await
    }
    check(
        mixed,
        "start, signal c, signal a, signal b
         signal b",
        expect![[r#"
            turn 0  [] activity end  [h0] activity c  [h1] activity a  [h2] activity b
            turn 1  [h3] activity b
        "#]],
    );
}

/// S0-33: a unit's children come before its next sibling.
#[test]
fn paths_are_compared_segment_by_segment() {
    async fn nested(ctx: Ctx, _: Payload) -> Done {
        let outer = [0, 1].map(|outer| {
            let ctx = ctx.clone();
            async move {
                let inner = [0, 1].map(|inner| {
                    let ctx = ctx.clone();
                    async move {
                        ctx.activity("A", "").await.unwrap();
                        ctx.set_state(format!("{outer}.{inner}"), "1");
                    }
                });
                let inner = ctx.parallel(inner);
                ctx.activity("A", "").await.unwrap();
                ctx.set_state(outer.to_string(), "1");
                inner.await;
            }
        });
        ctx.parallel(outer).await;
        nothing()
    }
    check(
        nested,
        "start
         resolve #5, resolve #4, resolve #3, resolve #2, resolve #1, resolve #0",
        expect![[r#"
            turn 0  [p0] activity A  [p1] activity A  [p0,p0] activity A  [p0,p1] activity A  [p1,p0] activity A  [p1,p1] activity A
            turn 1  [p0] state 0 = 1  [p0,p0] state 0.0 = 1  [p0,p1] state 0.1 = 1  [p1] state 1 = 1  [p1,p0] state 1.0 = 1  [p1,p1] state 1.1 = 1  [] complete
        "#]],
    );
}

/// S0-32: branches and launched units stand in one order, by index; the letter is for people.
#[test]
fn branches_and_launched_units_are_ordered_by_index_and_not_by_letter() {
    async fn mixed(ctx: Ctx, _: Payload) -> Done {
        let state = |name: &'static str| {
            let ctx = ctx.clone();
            async move {
                ctx.set_state(name, "1");
                Ok(())
            }
        };
        let first = ctx.parallel([state("first")]);
        let second = ctx.launch(state("second"));
        let third = ctx.parallel([state("third")]);
        third.await;
        second.await?;
        first.await;
        nothing()
    }
    check(
        mixed,
        "start",
        expect![[r#"
            turn 0  [p0] state first = 1  [l1] state second = 1  [p2] state third = 1  [] complete
        "#]],
    );
}

fn unit_id() -> impl Strategy<Value = UnitId> {
    let below = (0..2u8, 0..3u32).prop_map(|(letter, index)| if letter == 0 { Seg::P(index) } else { Seg::L(index) });
    let first = prop_oneof![Just(None), (0..3u32).prop_map(|index| Some(Seg::H(index)))];
    (first, proptest::collection::vec(below, 0..4)).prop_map(|(first, rest)| first.into_iter().chain(rest).collect())
}

proptest! {
    /// S0-35: the order is total: antisymmetric, transitive, and equal only to itself.
    #[test]
    fn the_order_of_units_is_total(a in unit_id(), b in unit_id(), c in unit_id()) {
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        prop_assert!(!(a <= b && b <= c) || a <= c);
        prop_assert!(a.is_handler() || !b.is_handler() || a < b, "handlers come last");
        prop_assert!(UnitId::root() <= a);
    }

    /// S0-31, S0-36, T-16: the order of any set of units is that of their ids as printed and read back: nothing about
    /// the objects themselves takes part in it.
    #[test]
    fn the_order_of_units_survives_printing(mut ids in proptest::collection::vec(unit_id(), 0..8)) {
        let mut copies: Vec<UnitId> = ids.iter().rev().map(|id| id.to_string().parse().unwrap()).collect();
        ids.sort();
        copies.sort();
        prop_assert_eq!(ids, copies);
    }
}
