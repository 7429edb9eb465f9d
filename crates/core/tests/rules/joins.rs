//! Joins and selects, ours and those of other libraries, over durable futures.

use futures::FutureExt;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::kit::*;

/// S2-14, S4-8: ten thousand futures are one join. Libraries switch to a set that polls only what was woken beyond thirty.
#[test]
fn ten_thousand_futures_can_be_joined() {
    async fn many(ctx: Ctx, _: Payload) -> Done {
        let all: Vec<Activity> = (0..10_000).map(|_| ctx.activity("A", "")).collect();
        let results = futures::future::join_all(all).await;
        Ok(results.iter().filter(|result| result.is_ok()).count().to_string().into())
    }
    for together in [10_000, 137] {
        let mut run = Run::new(workflow(many), RunOptions::default()).unwrap();
        let started = run.activate(turn(vec![start(7)]));
        assert_eq!(commands(&started).len(), 10_000);
        let mut last = started;
        // The last comes first, so that no join is done before all have come.
        let jobs: Vec<Job> = (0..10_000).rev().map(|seq| resolved(seq, "")).collect();
        for jobs in jobs.chunks(together) {
            last = run.activate(turn(jobs.to_vec()));
        }
        assert_eq!(commands(&last).last().unwrap().kind.to_string(), "complete 10000");
    }
}

/// S2-14: polling a future that has nothing new changes nothing.
#[test]
fn a_poll_without_cause_changes_nothing() {
    async fn nervous(ctx: Ctx, _: Payload) -> Done {
        let mut activity = ctx.activity("A", "");
        for _ in 0..10 {
            assert!((&mut activity).now_or_never().is_none());
        }
        ctx.yield_now().await;
        assert!((&mut activity).now_or_never().is_none());
        activity.await
    }
    check(
        nervous,
        "start
         signal other
         resolve A = once",
        expect![[r#"
            turn 0  [] activity A
            turn 1
            turn 2  [] complete once
        "#]],
    );
}

/// The same three activities under each of the joins.
async fn three<F>(ctx: Ctx, join: impl FnOnce(Ctx, [Activity; 3]) -> F) -> Done
where
    F: Future<Output = Vec<Done>>,
{
    let activities = ["A", "B", "C"].map(|name| ctx.activity(name, ""));
    let results: Result<Vec<_>, _> = join(ctx, activities).await.into_iter().collect();
    Ok(results?.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").into())
}

/// S2-24, S4-8, S4-11: whichever join it is, all are scheduled in one turn and the results stand in input order.
#[test]
fn every_join_gives_the_same_commands_and_results_in_input_order() {
    let script = "start
         resolve C = c, resolve A = a
         resolve B = b";
    let expected = "\
turn 0  [] activity A  [] activity B  [] activity C
turn 1
turn 2  [] complete a b c
";
    let printed = [
        play(|ctx, _| three(ctx, |ctx, all| ctx.join(all)), script).printed,
        play(|ctx, _| three(ctx, |_, all| futures::future::join_all(all)), script).printed,
        play(|ctx, _| three(ctx, |_, [a, b, c]| async { <[_; 3]>::from(tokio::join!(a, b, c)).to_vec() }), script)
            .printed,
        play(|ctx, _| three(ctx, |_, [a, b, c]| async { <[_; 3]>::from(futures::join!(a, b, c)).to_vec() }), script)
            .printed,
        play(
            |ctx, _| {
                three(ctx, |_, all| async {
                    let indexed = all.into_iter().enumerate().map(|(place, one)| one.map(move |one| (place, one)));
                    let mut done: Vec<_> = indexed.collect::<FuturesUnordered<_>>().collect().await;
                    done.sort_by_key(|(place, _)| *place);
                    done.into_iter().map(|(_, result)| result).collect()
                })
            },
            script,
        )
        .printed,
    ];
    for printed in printed {
        assert_eq!(printed, expected);
    }
}

/// C-15: a set of futures yields them in the order in which their results came, though they came together.
#[test]
fn a_set_of_futures_yields_results_in_the_order_they_came() {
    async fn set(ctx: Ctx, _: Payload) -> Done {
        let mut set: FuturesUnordered<_> = (0..40).map(|n| ctx.activity(n.to_string(), "")).collect();
        let mut order = Vec::new();
        while let Some(result) = set.next().await {
            order.push(result?.to_string());
        }
        Ok(order.join(" ").into())
    }
    let order = [31, 7, 39, 0, 12];
    let rest = (0..40).filter(|n| !order.contains(n));
    let jobs = |seqs: Vec<u32>| seqs.iter().map(|n| format!("resolve #{n} = {n}")).collect::<Vec<_>>().join(", ");
    let script = format!("start\n{}\n{}", jobs(order.to_vec()), jobs(rest.clone().collect()));
    let played = play(set, &script);
    let expected: Vec<String> = order.into_iter().chain(rest).map(|n| n.to_string()).collect();
    assert_eq!(decided(&played.transcript)[40], format!("[] complete {}", expected.join(" ")));
}

/// C-15: selects of other libraries, which go by the order in which they list their futures, see the earliest first.
#[test]
fn a_foreign_select_over_pending_futures_sees_the_earliest_result() {
    async fn tokio_select(ctx: Ctx, _: Payload) -> Done {
        let (a, timer) = (ctx.activity("A", ""), ctx.sleep(secs(5)));
        tokio::select! {
            biased;
            a = a => Ok(format!("activity {}", a?).into()),
            _ = timer => Ok("timer".into()),
        }
    }
    async fn futures_select(ctx: Ctx, _: Payload) -> Done {
        let (mut a, mut timer) = (ctx.activity("A", "").fuse(), ctx.sleep(secs(5)).fuse());
        futures::select_biased! {
            a = a => Ok(format!("activity {}", a?).into()),
            _ = timer => Ok("timer".into()),
        }
    }
    let all = "turn 0  [] activity A  [] timer 5s\nturn 1  [] complete";
    for (jobs, wins) in [("resolve A = a, fire", "activity a"), ("fire, resolve A = a", "timer")] {
        let script = format!("start\n{jobs}");
        assert_eq!(play(tokio_select, &script).printed, format!("{all} {wins}\n"));
        assert_eq!(play(futures_select, &script).printed, format!("{all} {wins}\n"));
    }
}

/// C-15: what a select did not take is there for the next one, in the order in which it came.
#[test]
fn a_select_in_a_loop_takes_results_in_the_order_they_came() {
    async fn looped(ctx: Ctx, _: Payload) -> Done {
        let mut futures = ["A", "B", "C"].map(|name| ctx.activity(name, "").fuse());
        let mut order = String::new();
        for _ in 0..3 {
            let [mut a, mut b, mut c] = futures.each_mut();
            let value = futures::select_biased! { v = a => v?, v = b => v?, v = c => v? };
            order += &value.to_string();
        }
        Ok(order.into())
    }
    check(
        looped,
        "start
         resolve C = c, resolve A = a, resolve B = b",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1  [] complete cab
        "#]],
    );
}

/// S2-24: a join that fails fast drops the others, which cancels them.
#[test]
fn a_join_that_fails_fast_cancels_the_others() {
    async fn fragile(ctx: Ctx, _: Payload) -> Done {
        let activities = ["A", "B", "C"].map(|name| ctx.activity(name, ""));
        ctx.try_join(activities).await?;
        nothing()
    }
    check(
        fragile,
        "start
         fail B: no",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1  [] cancel #0  [] cancel #2  [] fail: no
        "#]],
    );
}

/// The order in which futures of a join were woken does not decide the order in which they go on.
#[test]
fn futures_of_a_join_that_are_woken_together_go_on_in_input_order() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let first = async {
            ctx.next_signal("never").await.unwrap_err();
            ctx.set_state("first", "");
        };
        let second = async {
            ctx.activity("A", "").await.unwrap_err();
            ctx.set_state("second", "");
        };
        ctx.join([first.boxed(), second.boxed()]).await;
        nothing()
    }
    check(
        two,
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] state first =  [] cancel #0  [] state second =  [] complete
        "#]],
    );
}

/// A waker that counts, and wakes another.
struct Counting(std::task::Waker, Arc<std::sync::atomic::AtomicUsize>);

impl std::task::Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.wake_by_ref();
    }
}

/// S2-14: of the wakers that a future was polled with, the last one is woken, once, when the result is there; until then the
/// future is pending, and then it is ready and holds none of them.
#[test]
fn future_wakes_only_the_waker_of_its_last_poll_and_then_keeps_none() {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Waker};

    let counts: [Arc<AtomicUsize>; 3] = Default::default();
    let held: Arc<Mutex<Vec<std::sync::Weak<Counting>>>> = Arc::default();
    let (inside, kept) = (counts.clone(), held.clone());
    let workflow = workflow(move |ctx: Ctx, _| {
        let (counts, held) = (inside.clone(), kept.clone());
        async move {
            let mut activity = ctx.activity("A", "");
            let mut polls = 0;
            let result = std::future::poll_fn(|cx| {
                polls += 1;
                for count in &counts {
                    let waker = Arc::new(Counting(cx.waker().clone(), count.clone()));
                    held.lock().unwrap().push(Arc::downgrade(&waker));
                    let waker = Waker::from(waker);
                    if let Poll::Ready(result) = Pin::new(&mut activity).poll(&mut Context::from_waker(&waker)) {
                        return Poll::Ready(result);
                    }
                }
                Poll::Pending
            })
            .await?;
            let alive = held.lock().unwrap().iter().filter(|waker| waker.upgrade().is_some()).count();
            Ok(Payload::from(format!(
                "{} after {polls} polls, {alive} wakers held",
                result.as_text().unwrap_or_default()
            )))
        }
    });
    let mut play = Player::new(workflow, Pins::default(), Mode::Whole);
    let woken = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    play.play("start\nsignal other");
    let alive = held.lock().unwrap().iter().filter(|waker| waker.upgrade().is_some()).count();
    assert_eq!((woken(), alive), ([0, 0, 0], 1), "it is pending, and keeps the last");
    play.play("resolve A = done");
    assert_eq!(woken(), [0, 0, 1]);
    assert!(play.printed.ends_with("[] complete done after 2 polls, 0 wakers held\n"), "{}", play.printed);
}

/// S4-9: who comes from a system in which a call was awaited twice, or in which calls were joined to be scheduled together,
/// leaves the first await and the join out: the commands are the same.
#[test]
fn calls_without_a_join_around_them_are_scheduled_like_joined_ones() {
    async fn joined(ctx: Ctx, _: Payload) -> Done {
        let results = futures::future::join_all(["A", "B", "C"].map(|name| ctx.activity(name, ""))).await;
        ctx.activity("D", results.into_iter().collect::<Result<Vec<_>, _>>()?.remove(2)).await
    }
    async fn plain(ctx: Ctx, _: Payload) -> Done {
        let [a, b, c] = ["A", "B", "C"].map(|name| ctx.activity(name, ""));
        let results = [a.await?, b.await?, c.await?];
        ctx.activity("D", results[2].clone()).await
    }
    let script = "start\nresolve C = c\nresolve A = a\nresolve B = b\nresolve D = d";
    let (joined, plain) = (play(joined, script), play(plain, script));
    assert_eq!(decided(&joined.transcript), decided(&plain.transcript));
    assert_eq!(plain.transcript.turns[0].commands.len(), 3, "all three in the first turn");
    assert_eq!(joined.printed, plain.printed);
}
