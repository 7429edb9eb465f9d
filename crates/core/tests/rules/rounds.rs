//! Rounds: who goes in which.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::kit::*;

/// S0-24, C-37: a yielding unit goes on in the next round, after the others had their go.
#[test]
fn a_unit_that_yields_goes_on_after_the_others() {
    async fn yielding(ctx: Ctx, _: Payload) -> Done {
        let branches = ["A", "B"].map(|name| {
            let ctx = ctx.clone();
            async move {
                ctx.set_state(name, "1");
                if name == "A" {
                    ctx.yield_now().await;
                    ctx.set_state(name, "2");
                }
            }
        });
        ctx.parallel(branches).await;
        nothing()
    }
    check(
        yielding,
        "start",
        expect![[r#"
            turn 0  [p0] state A = 1  [p1] state B = 1  [p0] state A = 2  [] complete
        "#]],
    );
}

/// C-37: a future that wakes itself, as those of other libraries do, is a yield and nothing worse.
#[test]
fn a_foreign_future_that_wakes_itself_goes_on_in_the_next_round() {
    async fn restless(ctx: Ctx, _: Payload) -> Done {
        let mut left = 3;
        std::future::poll_fn(|cx| {
            left -= 1;
            cx.waker().wake_by_ref();
            if left == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        ctx.activity("A", "").await
    }
    let mut played = play(restless, "start");
    assert_eq!(played.printed, "turn 0  [] activity A\n");
    // The last wake came while the unit went on to its activity: one more go, in which nothing is there.
    assert_eq!(played.run().inspect().round, 4);
    assert_eq!(played.run().inspect().runnable, []);
}

/// S0-25, S0-69: branch 0 lets branch 1 go on, and branch 2, which was runnable before, still goes first.
#[test]
fn a_unit_made_runnable_in_a_round_goes_in_the_next() {
    async fn gate(ctx: Ctx, _: Payload) -> Done {
        let (open, gate) = tokio::sync::oneshot::channel::<()>();
        let (mut open, mut gate) = (Some(open), Some(gate));
        let branches = [0, 1, 2].map(|branch| {
            let ctx = ctx.clone();
            let (open, gate) = (open.take_if(|_| branch == 0), gate.take_if(|_| branch == 1));
            async move {
                if let Some(gate) = gate {
                    gate.await.unwrap();
                    ctx.set_state("after the gate", "1");
                    return;
                }
                ctx.activity("A", "").await.unwrap();
                ctx.set_state(format!("branch {branch}"), "1");
                if let Some(open) = open {
                    open.send(()).unwrap();
                }
            }
        });
        ctx.parallel(branches).await;
        nothing()
    }
    check(
        gate,
        "start
         resolve #1, resolve #0",
        expect![[r#"
            turn 0  [p0] activity A  [p2] activity A
            turn 1  [p0] state branch 0 = 1  [p2] state branch 2 = 1  [p1] state after the gate = 1  [] complete
        "#]],
    );
}

/// S0-21, S0-22, S0-23: two units that wake each other all the time get one step each in every round.
#[test]
fn each_unit_gets_one_step_in_a_round_however_often_it_is_woken() {
    async fn ping_pong(ctx: Ctx, trace: Trace) -> Done {
        let (to_b, mut at_b) = tokio::sync::mpsc::unbounded_channel();
        let (to_a, mut at_a) = tokio::sync::mpsc::unbounded_channel();
        let note = trace.clone();
        let ping = async move {
            for ball in 0..3 {
                note.note(format!("ping {ball}"));
                // Three messages are three wakes, and still one step.
                (0..3).for_each(|_| to_b.send(ball).unwrap());
                for _ in 0..3 {
                    at_a.recv().await.unwrap();
                }
            }
        };
        let pong = async move {
            for ball in 0..3 {
                for _ in 0..3 {
                    at_b.recv().await.unwrap();
                }
                trace.note(format!("pong {ball}"));
                (0..3).for_each(|_| to_a.send(ball).unwrap());
            }
        };
        ctx.parallel([Box::pin(ping) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>, Box::pin(pong)]).await;
        nothing()
    }
    let trace = Trace::default();
    let traced = trace.clone();
    let mut played = play(move |ctx, _| ping_pong(ctx, traced.clone()), "start");
    assert_eq!(trace.take(), ["ping 0", "pong 0", "ping 1", "pong 1", "ping 2", "pong 2"]);
    assert_eq!(played.printed, "turn 0  [] complete\n");
    // Both go in round 2. From then on each has to be woken by the other, so they take turns, one round each.
    assert_eq!(played.run().inspect().round, 8);
}

/// S0-26: of ten branches, only the one whose results come goes on.
#[test]
fn branch_with_its_result_goes_on_without_the_others() {
    async fn ten(ctx: Ctx, _: Payload) -> Done {
        let branches = (0..10).map(|branch| {
            let ctx = ctx.clone();
            async move {
                for step in 0..4 {
                    ctx.activity(format!("{branch}.{step}"), "").await?;
                }
                nothing()
            }
        });
        ctx.parallel(branches).await;
        nothing()
    }
    check(
        ten,
        "start
         resolve 7.0
         resolve 7.1
         resolve 7.2",
        expect![[r#"
            turn 0  [p0] activity 0.0  [p1] activity 1.0  [p2] activity 2.0  [p3] activity 3.0  [p4] activity 4.0  [p5] activity 5.0  [p6] activity 6.0  [p7] activity 7.0  [p8] activity 8.0  [p9] activity 9.0
            turn 1  [p7] activity 7.1
            turn 2  [p7] activity 7.2
            turn 3  [p7] activity 7.3
        "#]],
    );
}

/// S0-27, S0-43, C-13: fifty units, each waking the next, all go in one activation, and then all is still.
#[test]
fn rounds_follow_each_other_until_nothing_can_go() {
    async fn chain(ctx: Ctx, _: Payload) -> Done {
        let (first, mut link) = tokio::sync::oneshot::channel::<()>();
        for number in 0..50 {
            let (next, mut waiting) = tokio::sync::oneshot::channel();
            std::mem::swap(&mut link, &mut waiting);
            let ctx = ctx.clone();
            drop(ctx.clone().launch(async move {
                waiting.await.unwrap();
                ctx.set_state("last", number.to_string());
                next.send(()).unwrap();
                Ok(())
            }));
        }
        ctx.activity("A", "").await?;
        first.send(()).unwrap();
        link.await.unwrap();
        Ok(ctx.get_state("last").unwrap_or_default())
    }
    let mut played = play(chain, "start\nresolve A");
    let last = &played.transcript.turns[1].commands;
    assert_eq!(last.len(), 51, "fifty states and the end, in one completion");
    assert_eq!(last[50].kind.to_string(), "complete 49");
    let inspection = played.run().inspect();
    assert_eq!((inspection.round, inspection.runnable, inspection.running), (54, vec![], None));
}

/// S0-20, S0-61, S0-62: whatever twenty units do between their waits, no two of them are ever in it together.
#[test]
fn one_unit_at_a_time_is_in_user_code() {
    async fn crowd(ctx: Ctx, inside: Arc<AtomicUsize>, most: Arc<AtomicUsize>) -> Done {
        let branches = (0..20).map(|_| {
            let (ctx, inside, most) = (ctx.clone(), inside.clone(), most.clone());
            let work = move |ctx: &Ctx| {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                ctx.set_state("busy", "1");
                inside.fetch_sub(1, Ordering::SeqCst);
            };
            async move {
                for _ in 0..3 {
                    work(&ctx);
                    ctx.yield_now().await;
                    work(&ctx);
                    ctx.activity("A", "").await?;
                }
                nothing()
            }
        });
        ctx.parallel(branches).await;
        nothing()
    }
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (within, highest) = (inside.clone(), most.clone());
    let all = |from: u64| (from..from + 20).map(|seq| format!("resolve #{seq}")).collect::<Vec<_>>().join(", ");
    let script = format!("start\n{}\n{}\n{}", all(0), all(20), all(40));
    let played = play(move |ctx, _| crowd(ctx, within.clone(), highest.clone()), &script);
    assert_eq!(decided(&played.transcript).len(), 20 * 3 * 3 + 1);
    assert_eq!((inside.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (0, 1));
}

/// S0-4: root, branches, launched units, units of a scope and handlers, in every way in which a workflow can have several at
/// once: all of a turn run on the thread that plays it, and the run knows of at most one that is running.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test plays turns on threads of its own")]
fn units_of_every_kind_run_one_after_the_other_on_the_thread_that_plays_the_turn() {
    type Seen = Arc<Mutex<Vec<(std::thread::ThreadId, Option<UnitId>)>>>;
    async fn every_kind(ctx: Ctx, note: impl Fn() + Clone + Send + Sync + 'static) -> Done {
        let unit = |ctx: &Ctx| {
            let (ctx, note) = (ctx.clone(), note.clone());
            async move {
                note();
                ctx.yield_now().await;
                note();
                ctx.next_signal("go").await?;
                note();
                Ok::<_, Failure>(())
            }
        };
        let inside = ctx.clone();
        let noted = note.clone();
        ctx.on_signal("tick", move |_| {
            let (ctx, note) = (inside.clone(), noted.clone());
            async move {
                note();
                ctx.yield_now().await;
                note();
                Ok(())
            }
        });
        let launched = ctx.launch(unit(&ctx));
        note();
        let scoped = unit(&ctx);
        let scope = ctx.scope(|scope| async move {
            scope.launch(scoped);
            Ok::<_, Failure>(())
        });
        let branches = ctx.parallel([unit(&ctx), unit(&ctx)]);
        scope.await?;
        branches.await.into_iter().collect::<Result<Vec<_>, _>>()?;
        launched.await?;
        note();
        nothing()
    }
    let seen: Seen = Arc::default();
    let watch: Arc<Mutex<Option<Watch>>> = Arc::default();
    let (noted, watched) = (seen.clone(), watch.clone());
    let workflow = workflow(move |ctx, _| {
        let (seen, watch) = (noted.clone(), watched.clone());
        every_kind(ctx, move || {
            let running = watch.lock().unwrap().as_ref().and_then(Watch::running);
            seen.lock().unwrap().push((std::thread::current().id(), running));
        })
    });
    let mut run = Run::new(workflow, RunOptions { double_play: false, ..RunOptions::default() }).unwrap();
    *watch.lock().unwrap() = Some(run.watch());
    let signal = |name: &'static str| Job::Signal(Box::new(Signal { name: name.into(), ..Signal::default() }));
    let script = [vec![start(7), signal("tick"), signal("tick")], (0..4).map(|_| signal("go")).collect()];
    let (mut threads, mut units) = (BTreeSet::new(), BTreeSet::new());
    for jobs in script {
        let (played, id) = std::thread::scope(|scope| {
            let thread = scope.spawn(|| run.activate(turn(jobs)));
            let id = thread.thread().id();
            (thread.join().unwrap(), id)
        });
        assert!(matches!(played, Completion::Turn(_)), "{played:?}");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert!(seen.iter().all(|(thread, _)| *thread == id), "every unit runs on the thread that plays the turn");
        units.extend(seen.into_iter().map(|(_, unit)| unit.expect("a unit is running").to_string()));
        threads.insert(format!("{id:?}"));
    }
    assert_eq!(threads.len(), 2, "each turn was played by another thread");
    assert_eq!(units.into_iter().collect::<Vec<_>>(), ["[]", "[h0]", "[h1]", "[l0]", "[l3]", "[p1]", "[p2]"]);
    assert!(run.inspect().units.is_empty(), "all of them ended");
}
