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

/// C-4, S0-50: the body of a `run` whose result is known is dropped when the run is played again. That once happened
/// under the run's own lock: a body that holds something of its run hung the worker.
#[test]
fn a_body_that_is_not_needed_is_dropped_without_harm() {
    async fn effect(ctx: Ctx, trace: Trace) -> Done {
        let nosy = Nosy(ctx.clone(), trace.clone());
        let first = ctx.run("R", move || async move {
            drop(nosy);
            nothing()
        });
        let held = ctx.activity("held", "");
        let second = ctx.run("S", move || async move {
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
    let done = Job::Resolve { seq: Seq(0), resolution: Resolution::Run(Outcome::Completed("".into())) };
    let completion = run.activate(turn(vec![done]));
    assert_eq!(commands(&completion).last().unwrap().kind.to_string(), "activity A");
    assert_eq!(trace.take(), ["dropped"]);
    assert!(run.take_body(Seq(0)).is_none() && run.take_body(Seq(2)).is_none());
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
