//! Dropping: what it cancels, in which order, and what it leaves alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;

use crate::kit::*;

/// C-12: two losers are cancelled in the order of their seqs, whichever was dropped first.
#[test]
fn cancels_leave_in_seq_order_whatever_the_order_of_the_drops() {
    async fn careless(ctx: Ctx, order: Payload) -> Done {
        let mut losers: Vec<Option<Activity>> = ["A", "B", "C"].map(|name| Some(ctx.activity(name, ""))).into();
        ctx.activity("D", "").await?;
        for place in order.to_string().bytes() {
            losers[usize::from(place - b'0')] = None;
        }
        ctx.activity("E", "").await
    }
    for order in ["012", "210", "102", "201"] {
        let played = play(careless, &format!("start = {order}\nresolve D"));
        assert_eq!(
            decided(&played.transcript)[4..],
            ["[] cancel #0", "[] cancel #1", "[] cancel #2", "[] activity E"],
            "{order}"
        );
    }
}

/// C-12: cancels stand before the unit's next command, or at the end of its step, and not in another unit's.
#[test]
fn cancels_leave_before_the_next_command_of_their_unit() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let branches = [0, 1].map(|_| {
            let ctx = ctx.clone();
            async move {
                let (a, b) = (ctx.activity("A", ""), ctx.activity("B", ""));
                ctx.activity("C", "").await?;
                drop(b);
                ctx.set_state("between", "1");
                drop(a);
                ctx.activity("D", "").await
            }
        });
        ctx.parallel(branches).await;
        nothing()
    }
    check(
        two,
        "start
         resolve C, resolve C",
        expect![[r#"
            turn 0  [p0] activity A  [p0] activity B  [p0] activity C  [p1] activity A  [p1] activity B  [p1] activity C
            turn 1  [p0] cancel #1  [p0] state between = 1  [p0] cancel #0  [p0] activity D  [p1] cancel #4  [p1] state between = 1  [p1] cancel #3  [p1] activity D
        "#]],
    );
}

/// C-12: what has its result, or was detached, is not cancelled when it is dropped.
#[test]
fn dropping_what_is_done_or_detached_cancels_nothing() {
    async fn tidy(ctx: Ctx, _: Payload) -> Done {
        let mut seen = ctx.activity("seen", "");
        let unseen = ctx.activity("unseen", "");
        ctx.activity("detached", "").detach();
        assert!((&mut seen).now_or_never().is_none());
        ctx.activity("A", "").await?;
        drop((seen, unseen));
        ctx.activity("B", "").await
    }
    check(
        tidy,
        "start
         resolve seen, resolve unseen, resolve A",
        expect![[r#"
            turn 0  [] activity seen  [] activity unseen  [] activity detached  [] activity A
            turn 1  [] activity B
        "#]],
    );
}

/// C-34: what was decided before the run ends is part of its end: detached work stays, undetached work is cancelled.
#[test]
fn commands_before_the_end_leave_with_it() {
    async fn last_words(ctx: Ctx, fails: Payload) -> Done {
        ctx.activity("audit", "").detach();
        let _undetached = ctx.activity("forgotten", "");
        match fails.as_text() {
            Some("yes") => Err(Failure::application("no")),
            _ => nothing(),
        }
    }
    check(
        last_words,
        "start",
        expect![[r#"
            turn 0  [] activity audit  [] activity forgotten  [] cancel #1  [] complete
        "#]],
    );
    check(
        last_words,
        "start = yes",
        expect![[r#"
            turn 0  [] activity audit  [] activity forgotten  [] cancel #1  [] fail: no
        "#]],
    );
}

/// C-34: launched units that are open when the run ends go with it, without a word.
#[test]
fn launched_units_that_are_open_at_the_end_decide_nothing_more() {
    async fn leave(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.clone();
        drop(ctx.launch(async move { inner.activity("background", "").await }));
        ctx.activity("A", "").await
    }
    check(
        leave,
        "start
         resolve A = done",
        expect![[r#"
            turn 0  [] activity A  [l0] activity background
            turn 1  [] complete done
        "#]],
    );
}

struct Guard {
    ctx: Ctx,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
        self.ctx.set_state("cleaned up", "1");
        self.ctx.activity("clean up", "").detach();
        drop(self.ctx.sleep(secs(1)));
        panic_if_asked(&self.ctx);
    }
}

fn panic_if_asked(ctx: &Ctx) {
    assert!(
        ctx.now() == Timestamp::default() || ctx.get_state("quiet").is_some(),
        "a run that is taken apart has no time"
    );
}

/// C-35: eviction polls no future, drops every guard once, and whatever destructors ask for does nothing.
#[test]
fn an_evicted_run_is_dropped_without_being_polled() {
    async fn guarded(ctx: Ctx, dropped: Arc<AtomicUsize>, polls: Arc<AtomicUsize>) -> Done {
        let branches = (0..3).map(|_| {
            let (ctx, polls) = (ctx.clone(), polls.clone());
            let guard = Guard { ctx: ctx.clone(), dropped: dropped.clone() };
            async move {
                let mut activity = ctx.activity("A", "");
                let result = std::future::poll_fn(|cx| {
                    polls.fetch_add(1, Ordering::SeqCst);
                    activity.poll_unpin(cx)
                })
                .await;
                drop(guard);
                result
            }
        });
        ctx.parallel(branches).await;
        nothing()
    }
    let (dropped, polls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (drops, polled) = (dropped.clone(), polls.clone());
    let function = workflow(move |ctx, _| guarded(ctx, drops.clone(), polled.clone()));
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(function, options).unwrap();
    assert_eq!(commands(&run.activate(turn(vec![start(7)]))).len(), 3);
    assert_eq!(run.activate(Activation::Evict), Completion::Evicted);
    assert_eq!((dropped.load(Ordering::SeqCst), polls.load(Ordering::SeqCst)), (3, 3));
    assert_eq!(run.activate(Activation::Evict), Completion::Evicted);
    drop(run);
    assert_eq!((dropped.load(Ordering::SeqCst), polls.load(Ordering::SeqCst)), (3, 3));
}

/// S4-54: a future that was carried out of its run says that the run is gone, and keeps nothing of it alive.
#[test]
fn a_future_outside_its_evicted_run_says_so() {
    async fn leak(ctx: Ctx, out: Arc<Mutex<Vec<Activity>>>, alive: Arc<()>) -> Done {
        let _alive = alive;
        out.lock().unwrap().push(ctx.activity("A", ""));
        ctx.activity("B", "").await
    }
    let (out, alive) = (Arc::new(Mutex::new(Vec::new())), Arc::new(()));
    let (leaked, kept) = (out.clone(), Arc::downgrade(&alive));
    let mut kept_by_function = Some(alive);
    let alive = Arc::new(Mutex::new(kept_by_function.take()));
    let function = workflow(move |ctx, _| leak(ctx, leaked.clone(), alive.lock().unwrap().take().unwrap()));
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(function, options).unwrap();
    run.activate(turn(vec![start(7)]));
    assert!(kept.upgrade().is_some(), "the run is in memory");
    run.activate(Activation::Evict);
    assert!(kept.upgrade().is_none(), "the run's futures are freed, though one of its activities is held elsewhere");
    let activity = out.lock().unwrap().pop().unwrap();
    let failure = activity.now_or_never().unwrap().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert_eq!(failure.to_string(), "the run was evicted from memory");
}

/// C-12: what a given-up branch asks for while it is dropped is still its own decision, and is played again the same way.
#[test]
fn destructors_of_a_given_up_branch_may_still_decide() {
    struct Undo(Ctx);
    impl Drop for Undo {
        fn drop(&mut self) {
            self.0.activity("undo", "").detach();
        }
    }
    async fn undoing(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.clone();
        let branch = async move {
            let _undo = Undo(inner.clone());
            inner.activity("do", "").await
        };
        let branches = ctx.parallel([branch]).map(Ok::<_, Failure>);
        ctx.race(branches, ctx.sleep(secs(5))).await?;
        ctx.activity("after", "").await
    }
    check(
        undoing,
        "start
         fire
         resolve after",
        expect![[r#"
            turn 0  [] timer 5s  [p0] activity do
            turn 1  [] activity after  [p0] cancel #1  [p0] activity undo
            turn 2  [] complete
        "#]],
    );
}
