//! Results belong to the unit that last polled their future, wherever the future goes.

use futures::FutureExt;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::kit::*;

/// S2-14, C-15: a future that was polled in one unit and awaited in another brings its result to the other.
#[test]
fn a_future_that_moves_to_another_unit_takes_its_result_along() {
    async fn hand_over(ctx: Ctx, _: Payload) -> Done {
        let (give, take) = tokio::sync::oneshot::channel();
        let inner = ctx.clone();
        let giver = async move {
            let mut activity = inner.activity("A", "");
            assert!((&mut activity).now_or_never().is_none());
            give.send(activity).ok().unwrap();
            inner.activity("B", "").await
        };
        let inner = ctx.clone();
        let taker = async move {
            let value = take.await.unwrap().await?;
            inner.activity("C", value).await
        };
        let both = ctx.parallel([giver.boxed(), taker.boxed()]).await;
        both.into_iter().nth(1).unwrap()
    }
    check(
        hand_over,
        "start
         resolve A = moved
         resolve B, resolve C = done",
        expect![[r#"
            turn 0  [p0] activity A  [p0] activity B
            turn 1  [p1] activity C
            turn 2  [] complete done
        "#]],
    );
}

/// S2-14, T-9: a branch once polled a set of futures and gave it to its parent when it ended. Such a set polls only what
/// was woken; the result that came later belonged to a unit that was gone, so it woke no unit and the run hung.
#[test]
fn result_whose_unit_is_gone_wakes_the_unit_that_has_its_future() {
    async fn bequeath(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.clone();
        let branch = async move {
            let mut set: FuturesUnordered<Activity> =
                [inner.activity("A", ""), inner.activity("B", "")].into_iter().collect();
            assert!(set.next().now_or_never().is_none());
            set
        };
        let mut set = ctx.parallel([branch]).await.remove(0);
        assert!(set.next().now_or_never().is_none());
        let first = set.next().await.unwrap()?;
        let second = set.next().await.unwrap()?;
        Ok(format!("{first} then {second}").into())
    }
    check(
        bequeath,
        "start
         resolve B = b
         resolve A = a",
        expect![[r#"
            turn 0  [p0] activity A  [p0] activity B
            turn 1
            turn 2  [] complete b then a
        "#]],
    );
    check(
        bequeath,
        "start
         resolve B = b, resolve A = a",
        expect![[r#"
            turn 0  [p0] activity A  [p0] activity B
            turn 1  [] complete b then a
        "#]],
    );
}

/// S2-14: of two units that share one future, the one that polled it first may go before the result comes.
#[test]
fn a_shared_future_outlives_the_unit_that_polled_it_first() {
    async fn share(ctx: Ctx, _: Payload) -> Done {
        let shared = ctx.activity("A", "").shared();
        let (first, second) = (shared.clone(), shared);
        let mut losing = ctx.parallel([first]);
        assert!((&mut losing).now_or_never().is_none());
        ctx.yield_now().await;
        let inner = ctx.clone();
        let staying = ctx.launch(async move { inner.activity("B", second.await?).await });
        ctx.yield_now().await;
        ctx.yield_now().await;
        drop(losing);
        Ok(staying.await?)
    }
    check(
        share,
        "start
         resolve A = a
         resolve B = b",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [l1] activity B
            turn 2  [] complete b
        "#]],
    );
}

/// S2-14: two results come for a unit that ends with the first and leaves the second to another unit.
#[test]
fn a_unit_that_ends_leaves_the_results_it_did_not_see() {
    async fn bequeath(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.clone();
        let branch = async move {
            let mut set: FuturesUnordered<Activity> =
                ["A", "B"].map(|name| inner.activity(name, "")).into_iter().collect();
            let first = set.next().await.unwrap();
            (first, set)
        };
        let (first, mut set) = ctx.parallel([branch]).await.remove(0);
        let second = set.next().await.unwrap()?;
        Ok(format!("{} then {second}", first?).into())
    }
    check(
        bequeath,
        "start
         resolve B = b, resolve A = a",
        expect![[r#"
            turn 0  [p0] activity A  [p0] activity B
            turn 1  [] complete b then a
        "#]],
    );
}

/// C-15: results that have come and were not seen move along with their futures, in their order.
#[test]
fn results_that_move_together_are_seen_in_the_order_they_came() {
    async fn hands_on(ctx: Ctx, _: Payload) -> Done {
        let all = ["A", "B", "C", "D"].map(|name| ctx.activity(name, ""));
        let (_, _, mut rest) = futures::future::select_all(all).await;
        let others = async move {
            let mut seen = Vec::new();
            while !rest.is_empty() {
                let (came, _, left) = futures::future::select_all(rest).await;
                seen.push(came.unwrap().to_string());
                rest = left;
            }
            seen.concat()
        };
        Ok(ctx.parallel([others]).await.remove(0).into())
    }
    for order in ["BCD", "BDC", "CBD", "CDB", "DBC", "DCB"] {
        let jobs: Vec<String> = order.chars().map(|name| format!("resolve {name} = {name}")).collect();
        let played = play(hands_on, &format!("start\nresolve A, {}", jobs.join(", ")));
        assert_eq!(*decided(&played.transcript).last().unwrap(), format!("[] complete {order}"));
    }
}
