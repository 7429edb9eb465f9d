//! Concurrent branches, joins and races, and their cancellation.

use dacapo::prelude::*;
use dacapo_testkit::expect;

use crate::kit::check;

#[activity]
async fn half(n: u64) -> Result<u64, Failure> {
    Ok(n / 2)
}

#[activity]
async fn undo() -> Result<(), Failure> {
    Ok(())
}

#[workflow]
async fn units(ctx: Ctx) -> Result<u64, Failure> {
    let branches = [2, 4].map(|n| {
        let ctx = ctx.clone();
        async move { ctx.call(half, n).await }
    });
    let sum: u64 = ctx.parallel(branches).await.into_iter().sum::<Result<u64, Failure>>()?;
    let inner = ctx.clone();
    let launched = ctx.launch(async move { inner.call(half, 8).await });
    let scoped = ctx
        .scope(async |scope| {
            let inner = ctx.clone();
            scope.launch(async move { inner.call(half, 10).await.map(drop) });
            Ok(1)
        })
        .await?;
    Ok(sum + launched.await? + scoped)
}

#[test]
fn branches_launched_units_and_scopes_are_units_of_their_own() {
    check(
        units,
        "start
         resolve #0 = 1, resolve #1 = 2
         resolve #3 = 5
         resolve #2 = 4",
        expect![[r#"
            turn 0  [p0] activity half  [p1] activity half
            turn 1  [l2] activity half  [l3] activity half
            turn 2
            turn 3  [] complete 8
        "#]],
    );
}

#[workflow]
async fn together(ctx: Ctx) -> Result<(Vec<u64>, Vec<u64>, usize), Failure> {
    let joined = ctx.join([ctx.call(half, 2), ctx.call(half, 4)]).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let tried = ctx.try_join([ctx.call(half, 6), ctx.call(half, 8)]).await?;
    let (place, value, others) = ctx.select_all([ctx.sleep(secs(9)), ctx.sleep(secs(3))]).await;
    value?;
    drop(others);
    Ok((joined, tried, place))
}

#[test]
fn joins_and_races_stay_within_their_unit() {
    check(
        together,
        "start
         resolve #1 = 2, resolve #0 = 1
         resolve #2 = 3, resolve #3 = 4
         fire 3s",
        expect![[r#"
            turn 0  [] activity half  [] activity half
            turn 1  [] activity half  [] activity half
            turn 2  [] timer 9s  [] timer 3s
            turn 3  [] cancel #4  [] complete [[1,2],[3,4],1]
        "#]],
    );
}

#[workflow]
async fn bounded(ctx: Ctx) -> Result<Vec<u64>, Failure> {
    let branches = [2, 4, 6].map(|n| {
        let ctx = ctx.clone();
        async move { ctx.call(half, n).await }
    });
    ctx.parallel(branches).at_most(2).await.into_iter().collect()
}

#[test]
fn bounded_branches_wait_for_a_place() {
    check(
        bounded,
        "start
         resolve #1 = 2
         resolve #2 = 3, resolve #0 = 1",
        expect![[r#"
            turn 0  [p0] activity half  [p1] activity half
            turn 1  [p2] activity half
            turn 2  [] complete [1,2,3]
        "#]],
    );
}

const STOP: Signal<String> = Signal::new("stop");

#[workflow]
async fn first_of_three(ctx: Ctx) -> Result<String, Failure> {
    Ok(match ctx.race_of((ctx.call(half, 2), ctx.next_signal(STOP), ctx.sleep(mins(1)))).await? {
        OneOf3::First(n) => n.to_string(),
        OneOf3::Second(reason) => reason,
        OneOf3::Third(()) => "late".into(),
    })
}

#[test]
fn race_of_three_returns_the_value_of_the_winner_with_its_type() {
    check(
        first_of_three,
        "start
         signal stop = \"enough\"",
        expect![[r#"
            turn 0  [] activity half  [] timer 1m
            turn 1  [] cancel #0  [] cancel #1  [] complete "enough"
        "#]],
    );
}

#[workflow]
async fn quorum(ctx: Ctx, n: usize) -> Result<Vec<(usize, u64)>, Failure> {
    ctx.n_of_m(n, [1, 2, 3].map(|vote| ctx.call(half, vote))).await
}

#[test]
fn the_first_n_to_succeed_win_and_the_others_are_cancelled() {
    check(
        quorum,
        "start = 2
         fail #0: no
         resolve #2 = 30
         resolve #1 = 20",
        expect![[r#"
            turn 0  [] activity half  [] activity half  [] activity half
            turn 1
            turn 2
            turn 3  [] complete [[2,30],[1,20]]
        "#]],
    );
    check(
        quorum,
        "start = 1
         resolve #1 = 20",
        expect![[r#"
            turn 0  [] activity half  [] activity half  [] activity half
            turn 1  [] cancel #0  [] cancel #2  [] complete [[1,20]]
        "#]],
    );
}

#[test]
fn n_of_m_fails_once_n_is_out_of_reach() {
    check(
        quorum,
        "start = 2
         fail #0: no
         fail #2: never",
        expect![[r#"
            turn 0  [] activity half  [] activity half  [] activity half
            turn 1
            turn 2  [] cancel #1  [] fail: never
        "#]],
    );
    check(
        quorum,
        "start = 4",
        expect![[r#"
            turn 0  [] activity half  [] activity half  [] activity half  [] cancel #0  [] cancel #1  [] cancel #2  [] fail: n_of_m of 3 futures cannot have 4 successes: ask for at most 3
        "#]],
    );
    check(
        quorum,
        "start = 0",
        expect![[r#"
        turn 0  [] activity half  [] activity half  [] activity half  [] cancel #0  [] cancel #1  [] cancel #2  [] complete []
    "#]],
    );
}

#[workflow]
async fn careful(ctx: Ctx) -> Result<String, Failure> {
    let late = ctx.with_timeout(secs(5), ctx.call(half, 1)).await;
    assert!(late.unwrap_err().is_timeout());
    let (part, handle) = ctx.cancellable(ctx.sleep(hours(1)));
    handle.cancel("not needed");
    assert_eq!(part.await.unwrap_err().reason, "not needed");
    assert_eq!(ctx.cancellation(), None);
    let Err(cancelled) = ctx.sleep(hours(2)).await else { return Ok("slept".to_owned()) };
    assert_eq!(ctx.cancellation(), Some(cancelled.clone()));
    ctx.shield(ctx.call(undo, ())).await?;
    Err(cancelled.into())
}

#[test]
fn timeout_and_cancel_handle_cancel_one_future_and_a_shielded_call_is_made_after_a_cancellation() {
    check(
        careful,
        "start
         fire 5s
         cancel: enough
         resolve undo",
        expect![[r#"
            turn 0  [] activity half  [] timer 5s
            turn 1  [] cancel #0  [] timer 1h  [] cancel #2  [] timer 2h
            turn 2  [] cancel #3  [] activity undo
            turn 3  [] cancelled: enough
        "#]],
    );
}
