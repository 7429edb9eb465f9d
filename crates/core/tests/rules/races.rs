//! Races: the result that came first wins, wherever it is listed.

use futures::FutureExt;

use crate::kit::*;

async fn activity_or_timer(ctx: Ctx, _: Payload) -> Done {
    match ctx.race(ctx.activity("A", ""), ctx.sleep(secs(5))).await? {
        Either::First(value) => Ok(format!("activity {value}").into()),
        Either::Second(()) => Ok("timer".into()),
    }
}

/// S2-20, S2-22, C-12, C-15: each side wins when its result is the first, with its own value; the loser is cancelled.
#[test]
fn the_side_whose_result_came_first_wins_wherever_it_is_listed() {
    check(
        activity_or_timer,
        "start
         resolve A = a, fire",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] complete activity a
        "#]],
    );
    check(
        activity_or_timer,
        "start
         fire, resolve A = a",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] complete timer
        "#]],
    );
    check(
        activity_or_timer,
        "start
         fire",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] cancel #0  [] complete timer
        "#]],
    );
    check(
        activity_or_timer,
        "start
         resolve A = a",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] cancel #1  [] complete activity a
        "#]],
    );
}

/// C-15: results that came before their futures were polled are compared by when they came.
#[test]
fn a_race_over_results_that_are_there_goes_by_when_they_came() {
    async fn late_race(ctx: Ctx, _: Payload) -> Done {
        let (a, b) = (ctx.activity("A", ""), ctx.activity("B", ""));
        ctx.activity("first", "").await?;
        match ctx.race(a, b).await? {
            Either::First(value) | Either::Second(value) => Ok(value),
        }
    }
    check(
        late_race,
        "start
         resolve B = b, resolve A = a
         resolve first",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity first
            turn 1
            turn 2  [] complete b
        "#]],
    );
    check(
        late_race,
        "start
         resolve B = b
         resolve A = a
         resolve first",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity first
            turn 1
            turn 2
            turn 3  [] complete b
        "#]],
    );
}

/// C-15: a side of several steps counts by the last result it took.
#[test]
fn a_side_of_several_steps_counts_by_its_last_result() {
    async fn composite(ctx: Ctx, _: Payload) -> Done {
        let steps = async {
            ctx.activity("A", "").await?;
            ctx.activity("B", "").await
        };
        match ctx.race(steps, ctx.sleep(secs(5))).await? {
            Either::First(_) => Ok("steps".into()),
            Either::Second(()) => Ok("timer".into()),
        }
    }
    check(
        composite,
        "start
         resolve A
         resolve B, fire",
        expect![[r#"
            turn 0  [] timer 5s  [] activity A
            turn 1  [] activity B
            turn 2  [] complete steps
        "#]],
    );
    check(
        composite,
        "start
         resolve A, fire",
        expect![[r#"
            turn 0  [] timer 5s  [] activity A
            turn 1  [] activity B  [] cancel #2  [] complete timer
        "#]],
    );
}

/// C-15: a side took a result that no unit had waited for, and with it won against a timer that had fired before, but
/// whose turn to be shown had not come.
#[test]
fn a_side_does_not_win_with_a_result_that_came_after_the_other_side_was_done() {
    async fn prefetched(ctx: Ctx, _: Payload) -> Done {
        let (a, b) = (ctx.activity("A", ""), ctx.activity("B", ""));
        let steps = async {
            a.await?;
            b.await
        };
        match ctx.race(steps, ctx.sleep(secs(5))).await? {
            Either::First(_) => Ok("steps".into()),
            Either::Second(()) => Ok("timer".into()),
        }
    }
    check(
        prefetched,
        "start
         resolve A, fire, resolve B",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] timer 5s
            turn 1  [] complete timer
        "#]],
    );
    check(
        prefetched,
        "start
         resolve A, resolve B, fire",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] timer 5s
            turn 1  [] complete steps
        "#]],
    );
}

/// S2-20: between equals the policy decides, and the deterministic one takes the first listed.
#[test]
fn between_equals_the_first_listed_wins() {
    async fn equals(ctx: Ctx, _: Payload) -> Done {
        let ready = |text: &'static str| async move { Ok::<_, Failure>(text) };
        match ctx.race(ready("first"), ready("second")).await? {
            Either::First(text) | Either::Second(text) => Ok(text.into()),
        }
    }
    check(
        equals,
        "start",
        expect![[r#"
            turn 0  [] complete first
        "#]],
    );
}

/// S2-20, C-47: under a policy that explores, either of two equals wins under some seed, and each replays as it went.
#[test]
fn between_equals_an_exploring_policy_takes_either() {
    async fn equals(ctx: Ctx, _: Payload) -> Done {
        let ready = |text: &'static str| async move { Ok::<_, Failure>(text) };
        match ctx.race(ready("first"), ready("second")).await? {
            Either::First(text) | Either::Second(text) => Ok(text.into()),
        }
    }
    let mut results = std::collections::BTreeSet::new();
    for seed in 0..16 {
        let pins = Pins { policy: PolicySpec::Random { seed }, ..Pins::default() };
        let mut play = Player::new(workflow(equals), pins, Mode::Evicted);
        play.play("start");
        results.insert(play.printed.clone());
    }
    let results: Vec<_> = results.into_iter().collect();
    assert_eq!(results, ["turn 0  [] complete first\n", "turn 0  [] complete second\n"]);
}

/// S2-22, C-15: of many, the place of the winner is told and the others live on.
#[test]
fn a_race_of_many_tells_who_won_and_gives_the_others_back() {
    async fn many(ctx: Ctx, _: Payload) -> Done {
        let mut race = ctx.select_all((0..4).map(|n| ctx.activity(n.to_string(), "")));
        let mut order = Vec::new();
        while !race.is_empty() {
            let (place, value, others) = race.await;
            order.push(format!("{place}:{}", value?));
            race = others;
        }
        Ok(order.join(" ").into())
    }
    check(
        many,
        "start
         resolve #2 = c, resolve #0 = a
         resolve #3 = d
         resolve #1 = b",
        expect![[r#"
            turn 0  [] activity 0  [] activity 1  [] activity 2  [] activity 3
            turn 1
            turn 2
            turn 3  [] complete 2:c 0:a 1:d 0:b
        "#]],
    );
}

/// C-12, C-15: a signal that came for the side that lost stays where it was.
#[test]
fn a_signal_of_the_losing_side_is_not_lost() {
    async fn careful(ctx: Ctx, _: Payload) -> Done {
        let won = match ctx.race(ctx.sleep(secs(5)), ctx.next_signal("word")).await? {
            Either::First(()) => "timer",
            Either::Second(_) => "signal",
        };
        let word = ctx.next_signal("word").await?.input.remove(0);
        Ok(format!("{won}, {word}").into())
    }
    check(
        careful,
        "start
         fire, signal word = kept, signal word = later",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1  [] complete timer, kept
        "#]],
    );
    check(
        careful,
        "start
         signal word = taken, fire, signal word = next",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1  [] complete signal, next
        "#]],
    );
}

/// C-15: the race within a race is decided by the same rule.
#[test]
fn a_race_within_a_race_counts_by_the_result_it_took() {
    async fn nested(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.race(ctx.activity("A", ""), ctx.activity("B", ""));
        match ctx.race(inner, ctx.activity("C", "")).await? {
            Either::First(Either::First(value) | Either::Second(value)) | Either::Second(value) => Ok(value),
        }
    }
    for (jobs, wins) in [
        ("resolve C = c, resolve B = b, resolve A = a", "c"),
        ("resolve B = b, resolve C = c, resolve A = a", "b"),
        ("resolve A = a, resolve B = b, resolve C = c", "a"),
    ] {
        let played = play(nested, &format!("start\n{jobs}"));
        let all = "turn 0  [] activity A  [] activity B  [] activity C\n";
        assert_eq!(played.printed, format!("{all}turn 1  [] complete {wins}\n"));
    }
}

/// S2-14, C-15, T-9: a join within a race once looked at its futures while the race only peeked, took that for an
/// answer, and never looked again: a deadline around a join hung the run.
#[test]
fn a_join_within_a_race_sees_the_results_that_the_race_looked_at() {
    async fn deadline<F: Future<Output = Vec<Done>>>(ctx: Ctx, all: impl Fn(Vec<Activity>) -> F) -> Done {
        let activities = (0..40).map(|n| ctx.activity(n.to_string(), "")).collect();
        let all = all(activities).map(|results| results.into_iter().collect::<Result<Vec<_>, _>>());
        let all = ctx.with_timeout(secs(60), all).await?;
        Ok(all.len().to_string().into())
    }
    let own = |ctx: Ctx, _| deadline(ctx.clone(), move |all| ctx.join(all));
    let foreign = |ctx: Ctx, _| deadline(ctx, futures::future::join_all);
    let jobs = |seqs: std::ops::Range<u32>| seqs.map(|seq| format!("resolve #{seq}")).collect::<Vec<_>>().join(", ");
    let script = format!("start\n{}\n{}\n{}", jobs(0..1), jobs(1..20), jobs(20..40));
    for printed in [play(own, &script).printed, play(foreign, &script).printed] {
        assert_eq!(
            printed.lines().skip(1).collect::<Vec<_>>(),
            ["turn 1", "turn 2", "turn 3  [] cancel #40  [] complete 40"]
        );
    }
}

/// C-12, S0-7: branches that a lost race gives up are cancelled in the order of their units, nested ones included.
#[test]
fn branches_of_the_losing_side_are_given_up_in_unit_order() {
    async fn give_up(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.clone();
        let outer = [0, 1].map(|_| {
            let ctx = inner.clone();
            async move {
                let own = ctx.activity("own", "");
                let inner = [0, 1].map(|_| ctx.activity("inner", ""));
                ctx.parallel(inner).await;
                own.await
            }
        });
        let branches = ctx.parallel(outer).map(Ok::<_, Failure>);
        ctx.race(branches, ctx.sleep(secs(5))).await?;
        ctx.activity("after", "").await
    }
    check(
        give_up,
        "start
         fire
         resolve after = done",
        expect![[r#"
            turn 0  [] timer 5s  [p0] activity own  [p0] activity inner  [p0] activity inner  [p1] activity own  [p1] activity inner  [p1] activity inner
            turn 1  [] activity after  [p0] cancel #1  [p0,p0] cancel #2  [p0,p1] cancel #3  [p1] cancel #4  [p1,p0] cancel #5  [p1,p1] cancel #6
            turn 2  [] complete done
        "#]],
    );
}

/// C-15: a side that waits for several things at once counts by the first of them that came.
#[test]
fn a_foreign_select_within_a_race_counts_by_its_earliest_result() {
    async fn nested(ctx: Ctx, _: Payload) -> Done {
        let [a, b, c] = ["A", "B", "C"].map(|name| ctx.activity(name, ""));
        ctx.next_signal("go").await?;
        let either = async { futures::future::select(a, b).await.factor_first().0 };
        match ctx.race(either, c).await? {
            Either::First(_) => Ok("either of A and B".into()),
            Either::Second(_) => Ok("C".into()),
        }
    }
    check(
        nested,
        "start
         resolve A, resolve C, resolve B, signal go",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1  [] complete either of A and B
        "#]],
    );
}

/// C-15: a side counts by the latest of its results, in whatever order it takes them.
#[test]
fn a_side_that_takes_its_earliest_result_last_counts_by_the_latest() {
    async fn backwards(ctx: Ctx, _: Payload) -> Done {
        let [first, second, late, other] = ["first", "second", "late", "other"].map(|name| ctx.activity(name, ""));
        ctx.next_signal("go").await?;
        let slow = async {
            second.await?;
            late.await?;
            first.await
        };
        match ctx.race(slow, other).await? {
            Either::First(_) => Ok("slow".into()),
            Either::Second(_) => Ok("other".into()),
        }
    }
    check(
        backwards,
        "start
         resolve first, resolve second, resolve other, resolve late, signal go",
        expect![[r#"
            turn 0  [] activity first  [] activity second  [] activity late  [] activity other
            turn 1  [] complete other
        "#]],
    );
}

/// C-15: it is listed first and has its signal, but the timer fired before that came.
#[test]
fn a_side_that_is_listed_first_and_loses_leaves_its_signal() {
    async fn late(ctx: Ctx, _: Payload) -> Done {
        let timer = ctx.sleep(secs(5));
        ctx.next_signal("go").await?;
        let lost = ctx.race(ctx.next_signal("word"), timer).await?;
        assert!(matches!(lost, Either::Second(())));
        Ok(ctx.try_signal("word").map_or("lost".into(), |mut signal| signal.input.remove(0)))
    }
    check(
        late,
        "start
         fire, signal word = kept, signal go",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1  [] complete kept
        "#]],
    );
}

/// C-15: both sides have taken their last result before they are done; it is those results that count.
#[test]
fn a_side_that_goes_on_after_its_last_result_counts_by_that_result() {
    async fn yielding(ctx: Ctx, _: Payload) -> Done {
        let later = async {
            ctx.activity("later", "").await?;
            ctx.yield_now().await;
            nothing()
        };
        let earlier = async {
            ctx.activity("earlier", "").await?;
            ctx.yield_now().await;
            ctx.yield_now().await;
            nothing()
        };
        match ctx.race(later, earlier).await? {
            Either::First(_) => Ok("later".into()),
            Either::Second(_) => Ok("earlier".into()),
        }
    }
    check(
        yielding,
        "start
         resolve earlier, resolve later",
        expect![[r#"
            turn 0  [] activity later  [] activity earlier
            turn 1  [] complete earlier
        "#]],
    );
}

/// C-15: a side of two steps took both its results and was done, in the very step in which another side won with a result
/// that came between them. What it came to was thrown away with the race, and a loop over the others ended early.
#[test]
fn result_of_a_losing_side_is_kept_for_the_next_race() {
    async fn all_in_turn(ctx: Ctx, _: Payload) -> Done {
        let [a, b, c] = ["A", "B", "C"].map(|name| ctx.activity(name, ""));
        ctx.next_signal("go").await?;
        let both = async {
            a.await?;
            c.await
        };
        let mut race = ctx.select_all([both.boxed(), b.boxed()]);
        let mut order = Vec::new();
        while !race.is_empty() {
            let (place, value, others) = race.await;
            order.push(format!("{place}:{}", value?));
            race = others;
        }
        Ok(order.join(" ").into())
    }
    check(
        all_in_turn,
        "start
         resolve A = a, resolve B = b, resolve C = c, signal go",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1  [] complete 1:b 0:c
        "#]],
    );
}
