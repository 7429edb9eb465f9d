//! Commands: what they hold, when they are sealed, and what becomes of operations with a life of their own.

use crate::kit::*;

/// C-12: an operation whose cancellation is to be awaited ends with the result that follows its cancellation. It once
/// lost that result, because it came after the cancellation, and waited for ever.
#[test]
fn a_wait_that_outlasts_its_cancellation_ends_with_what_comes_then() {
    async fn patient(ctx: Ctx, _: Payload) -> Done {
        let result = ctx.activity("A", "").cancel_type(CancelType::WaitCompleted).await;
        Err(result.unwrap_err())
    }
    check(
        patient,
        "start
         cancel: enough
         drop A: cleaned up",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] cancel #0
            turn 2  [] cancelled: cleaned up
        "#]],
    );
    async fn branches(ctx: Ctx, _: Payload) -> Done {
        let branches = ["A", "B"].map(|name| ctx.activity(name, ""));
        let results = ctx.parallel(branches).await;
        Err(results.into_iter().find_map(Result::err).unwrap())
    }
    check(
        branches,
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A  [] activity B
            turn 1  [p0] cancel #0  [p1] cancel #1  [] cancelled: enough
        "#]],
    );
}

/// A body that says when it is dropped, and asks something of the run then.
struct Nosy(Ctx, Trace);

impl Drop for Nosy {
    fn drop(&mut self) {
        self.1.note("dropped");
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.0.now())));
    }
}

/// C-4, S0-50: the closure of a side effect whose result is known is dropped when the run is played again. That once happened
/// under the run's own lock: a body that holds something of its run hung the worker.
#[test]
fn a_body_that_is_not_needed_is_dropped_without_harm() {
    async fn effect(ctx: Ctx, trace: Trace) -> Done {
        let nosy = Nosy(ctx.clone(), trace.clone());
        let first = ctx.side_effect("R", move || async move {
            drop(nosy);
            nothing()
        });
        let held = ctx.activity("held", "");
        let second = ctx.side_effect("S", move || async move {
            drop(held);
            nothing()
        });
        first.await?;
        drop(second);
        ctx.activity("A", "").await
    }
    let trace = Trace::default();
    let traced = trace.clone();
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(workflow(move |ctx, _| effect(ctx, traced.clone())), options).unwrap();
    run.activate(turn(vec![start(7)]));
    let done = Job::resolve(Seq(0), Resolution::SideEffect(Outcome::Completed("".into())));
    let completion = run.activate(turn(vec![done]));
    let names: Vec<String> = commands(&completion).iter().map(|command| command.kind.to_string()).collect();
    assert_eq!(names, ["cancel #2", "activity A", "cancel #1"], "the second run, and what its body held");
    assert_eq!(trace.take(), ["dropped"]);
    assert!(run.take_closure(Seq(0)).is_none() && run.take_closure(Seq(2)).is_none());
}

/// S0-15: the handlers of a phase are dropped when it ends. That once happened under the run's own lock: a handler that
/// held the last handle of a cancellation scope hung the worker.
#[test]
fn handlers_that_hold_something_of_their_run_are_dropped_without_harm() {
    async fn phased(ctx: Ctx, _: Payload) -> Done {
        let (work, handle) = ctx.cancellable(async { nothing() });
        work.await?;
        let stopped = ctx.state(false);
        ctx.phase(&stopped)
            .on_signal("stop", move |stopped, _| {
                *stopped = true;
                let handle = handle.clone();
                Handled::with(async move {
                    handle.cancel("stop");
                    nothing()
                })
            })
            .until(|stopped| *stopped)
            .await?;
        ctx.activity("after", "").await
    }
    check(
        phased,
        "start
         signal stop
         resolve after",
        expect![[r#"
            turn 0
            turn 1  [] activity after
            turn 2  [] complete
        "#]],
    );
}

/// C-2: options belong to a command as long as it is open: until it is polled, dropped or detached, or its step ends.
#[test]
fn options_are_set_until_the_command_is_sealed() {
    async fn in_time(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        ctx.set_state("between", "1");
        a.queue("other").summary("still open").await
    }
    let played = play(in_time, "start");
    let CommandKind::Activity(activity) = &played.transcript.turns[0].commands[0].kind else { panic!() };
    assert_eq!((activity.queue.as_deref(), activity.summary.as_deref()), (Some("other"), Some("still open")));
    async fn after_a_poll(ctx: Ctx, _: Payload) -> Done {
        let mut a = ctx.activity("A", "");
        futures::poll!(&mut a).is_pending();
        a.queue("other").await
    }
    async fn after_the_step(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        ctx.yield_now().await;
        a.queue("other").await
    }
    async fn after_the_turn(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        ctx.sleep(secs(1)).await?;
        a.queue("other").await
    }
    for printed in [
        play(after_a_poll, "start").printed,
        play(after_the_step, "start").printed,
        play(after_the_turn, "start\nfire").printed,
    ] {
        let last = printed.lines().last().unwrap();
        assert!(
            last.starts_with("failed: scheduler violation in the root unit, at crates/core/tests/rules/commands.rs:"),
            "{last}"
        );
    }
}

/// C-2, C-29: the seqs and places of open commands stand, in whatever order they are sealed.
#[test]
fn commands_keep_their_places_in_whatever_order_they_are_sealed() {
    async fn backwards(ctx: Ctx, _: Payload) -> Done {
        let [a, b, c] = ["A", "B", "C"].map(|name| ctx.activity(name, ""));
        let c = c.queue("third");
        let (mut c, mut a, mut b) = (c, a.queue("first"), b);
        futures::poll!(&mut c).is_pending();
        futures::poll!(&mut a).is_pending();
        b = b.queue("second");
        b.await?;
        ctx.join([c, a]).await;
        nothing()
    }
    let played = play(backwards, "start\nresolve B\nresolve A, resolve C");
    let shown = played.transcript.turns[0].commands.iter().map(|command| match &command.kind {
        CommandKind::Activity(c) => format!("{} {} {}", c.seq, c.activity, c.queue.as_ref().unwrap()),
        other => panic!("{other}"),
    });
    assert_eq!(shown.collect::<Vec<_>>(), ["#0 A first", "#1 B second", "#2 C third"]);
    check(
        backwards,
        "start
         resolve B
         resolve A, resolve C",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C
            turn 1
            turn 2  [] complete
        "#]],
    );
}

/// S0-48: all options of a child or a call may be set, and none of them is its seq.
#[test]
fn options_never_change_a_seq() {
    async fn forges(ctx: Ctx, _: Payload) -> Done {
        let child = ctx.child("C", "").with(|child| child.seq = Seq(9));
        let call = ctx.nexus("E", "S", "N", "").with(|call| call.seq = Seq(9));
        child.await?;
        call.await
    }
    check(
        forges,
        "start
         started #0 = run, resolve #0
         started #1 = token, resolve #1 = done",
        expect![[r#"
            turn 0  [] child C  [] nexus S/N
            turn 1
            turn 2  [] complete done
        "#]],
    );
    let played = play(forges, "start");
    let seqs: Vec<_> = played.transcript.turns[0].commands.iter().map(|command| command.kind.seq()).collect();
    assert_eq!(seqs, [Some(Seq(0)), Some(Seq(1))]);
}

/// What takes its place is registered under the lock, and what it takes the place of is dropped outside it.
#[test]
fn a_query_handler_that_holds_something_of_its_run_can_be_replaced() {
    async fn twice(ctx: Ctx, _: Payload) -> Done {
        let (work, handle) = ctx.cancellable(async { nothing() });
        work.await?;
        ctx.on_query("q", move |_| {
            let _held = &handle;
            nothing()
        });
        ctx.on_query("q", |_| Ok("second".into()));
        ctx.next_signal("stop").await?;
        nothing()
    }
    check(
        twice,
        "start
         query q",
        expect![[r#"
            turn 0
            answer second
        "#]],
    );
}
