//! Panics: wherever workflow code panics, the activation fails, and nothing else does.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use dacapo_core::{Ctx, Failure, Handled, Payload, Workflow};
use dacapo_testkit::{Mode, Player, check, expect, workflow};

use crate::kit::*;

async fn panics() -> Done {
    panic!("on purpose")
}

struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

/// Every place where user code runs, with a panic in it.
fn places() -> Vec<(&'static str, Workflow)> {
    vec![
        ("root", workflow(|_: Ctx, _: Payload| panics())),
        (
            "the function before its first await",
            workflow(|_: Ctx, _: Payload| -> std::future::Ready<Done> { panic!("on purpose") }),
        ),
        ("branch", workflow(|ctx: Ctx, _| async move { ctx.parallel([panics()]).await.remove(0) })),
        ("launched unit", workflow(|ctx: Ctx, _| async move { Ok(ctx.launch(panics()).await?) })),
        (
            "unit of a scope",
            workflow(|ctx: Ctx, _| async move {
                ctx.scope(|scope| async move {
                    scope.launch(async { panics().await.map(drop) });
                    say("")
                })
                .await
            }),
        ),
        (
            "signal handler",
            workflow(|ctx: Ctx, _| async move {
                ctx.on_signal("s", |_| async { panics().await.map(drop) });
                Ok(ctx.next_signal("never").await?.input.remove(0))
            }),
        ),
        (
            "update handler",
            workflow(|ctx: Ctx, _| async move {
                ctx.on_update("u", |_| Ok(()), |_| panics());
                Ok(ctx.next_signal("never").await?.input.remove(0))
            }),
        ),
        (
            "validator",
            workflow(|ctx: Ctx, _| async move {
                ctx.on_update("u", |_| panic!("on purpose"), |_| async { say("") });
                Ok(ctx.next_signal("never").await?.input.remove(0))
            }),
        ),
        (
            "condition",
            workflow(|ctx: Ctx, _| async move {
                ctx.wait_until(|| panic!("on purpose")).await?;
                say("")
            }),
        ),
        (
            "condition between rounds",
            workflow(|ctx: Ctx, _| async move {
                let mut looks = std::sync::atomic::AtomicU32::new(0);
                *looks.get_mut() = 1;
                ctx.wait_until(move || match looks.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) {
                    1 => false,
                    _ => panic!("on purpose"),
                })
                .await?;
                say("")
            }),
        ),
        (
            "state closure",
            workflow(|ctx: Ctx, _| async move {
                ctx.state(0).update(|_| panic!("on purpose"));
                say("")
            }),
        ),
        (
            "synchronous part of a phase",
            workflow(|ctx: Ctx, _| async move {
                let state = ctx.state(());
                ctx.phase(&state).on_signal("s", |_, _| panic!("on purpose")).await?;
                say("")
            }),
        ),
        (
            "asynchronous part of a phase",
            workflow(|ctx: Ctx, _| async move {
                let state = ctx.state(());
                ctx.phase(&state).on_signal("s", |_, _| Handled::with(panics())).await?;
                say("")
            }),
        ),
        (
            "destructor of a future that is done",
            workflow(|_: Ctx, _| async move {
                let _bomb = Bomb("on purpose");
                say("")
            }),
        ),
        (
            "destructor of a branch that is given up",
            workflow(|ctx: Ctx, _| async move {
                let bomb = Bomb("on purpose");
                let inside = ctx.clone();
                let mut branches = ctx.parallel([async move {
                    let _bomb = bomb;
                    inside.next_signal("never").await.map(drop)
                }]);
                assert!(futures::poll!(&mut branches).is_pending());
                ctx.yield_now().await;
                drop(branches);
                say("")
            }),
        ),
        (
            "waker of another make",
            workflow(|ctx: Ctx, _| async move {
                let mut wait = ctx.next_signal("later");
                let waker = Waker::from(Arc::new(PanickingWaker));
                std::future::poll_fn(|_| match std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(signal) => Poll::Ready(signal.map(|_| Payload::empty()).map_err(Failure::from)),
                })
                .await
            }),
        ),
    ]
}

/// C-44, T-28: one place after the other, the report says what was said and where.
#[test]
fn a_panic_fails_the_activation_wherever_it_happens() {
    let mut report = String::new();
    for (place, workflow) in places() {
        for mode in [Mode::Whole, Mode::Double] {
            let mut play = Player::new(workflow.clone(), Default::default(), mode);
            play.play("start, signal s, update u 1");
            if !play.printed.contains("failed") {
                play.play("signal later");
            }
            let text = without_lines(&play.printed);
            let line = text.lines().find(|line| line.starts_with("failed")).unwrap_or("no failure");
            if mode == Mode::Whole {
                report += &format!("{place}: {line}\n");
            } else {
                assert!(report.ends_with(&format!("{place}: {line}\n")), "{place}: {line}");
            }
        }
    }
    expect![[r#"
        root: failed: workflow code panicked in the root unit, after no call: on purpose
        the function before its first await: failed: workflow code panicked in the root unit, after no call: on purpose
        branch: failed: workflow code panicked in unit [p0], after the call at crates/core/tests/behaviour/panics.rs: on purpose
        launched unit: failed: workflow code panicked in unit [l0], after the call at crates/core/tests/behaviour/panics.rs: on purpose
        unit of a scope: failed: workflow code panicked in unit [l0], after the call at crates/core/tests/behaviour/panics.rs: on purpose
        signal handler: failed: workflow code panicked in unit [h0], after the call at crates/core/tests/behaviour/panics.rs: on purpose
        update handler: failed: workflow code panicked in unit [h0], after the call at crates/core/tests/behaviour/panics.rs: on purpose
        validator: failed: workflow code panicked in the root unit, after the call at crates/core/tests/behaviour/panics.rs: on purpose
        condition: failed: workflow code panicked in the root unit, after no call: on purpose
        condition between rounds: failed: workflow code panicked in the root unit, after no call: on purpose
        state closure: failed: workflow code panicked in the root unit, after the call at crates/core/tests/behaviour/panics.rs: on purpose
        synchronous part of a phase: failed: workflow code panicked in unit [h0], after the call at crates/core/src/ctx/phase.rs: on purpose
        asynchronous part of a phase: failed: workflow code panicked in unit [h0,a0], after the call at crates/core/src/ctx/phase.rs: on purpose
        destructor of a future that is done: failed: workflow code panicked in the root unit, after no call: on purpose
        destructor of a branch that is given up: failed: workflow code panicked in unit [p0], after the call at crates/core/tests/behaviour/panics.rs: on purpose
        waker of another make: failed: workflow code panicked in the root unit, after the call at crates/core/tests/behaviour/panics.rs: on purpose
    "#]].assert_eq(&report);
}

/// C-44, T-25: the run stays open: code that does not panic goes on from where it was.
#[test]
fn a_run_goes_on_when_the_panic_is_gone() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static BROKEN: AtomicBool = AtomicBool::new(true);
    let fixable = workflow(|ctx: Ctx, _| async move {
        let done = ctx.activity("A", "").await?;
        assert!(!BROKEN.load(Ordering::Relaxed), "not yet implemented");
        Ok(done)
    });
    let mut play = Player::new(fixable, Default::default(), Mode::Whole);
    play.play("start\n resolve A = a");
    BROKEN.store(false, Ordering::Relaxed);
    play.play("resolve A = a");
    expect![[r#"
        turn 0  [] activity A
        failed: workflow code panicked in the root unit, after the call at crates/core/tests/behaviour/panics.rs: not yet implemented
        The run stays open and is played again from the beginning; deploy code that does not panic here, or return an `Err` to fail the run.
        turn 1  [] complete a
    "#]].assert_eq(&without_lines(&play.printed));
}

/// C-44: main has decided; what a destructor of the rest does cannot undo it.
#[test]
fn a_destructor_that_panics_while_the_run_closes_is_a_warning() {
    check_root_first(
        |ctx: Ctx, _| async move {
            let (inside, bomb) = (ctx.clone(), Bomb("boom"));
            drop(ctx.launch(async move {
                let _bomb = bomb;
                inside.activity("launched", "").await
            }));
            let (inside, bomb) = (ctx.clone(), Arc::new(std::sync::Mutex::new(Some(Bomb("bang")))));
            ctx.on_update(
                "u",
                |_| Ok(()),
                move |_| {
                    let (ctx, bomb) = (inside.clone(), bomb.lock().unwrap().take());
                    async move {
                        let _bomb = bomb;
                        ctx.activity("handler", "").await
                    }
                },
            );
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start, update u 1
         signal stop",
        expect![[r#"
            turn 0  [h0] accept update 1  [l0] activity launched  [h0] activity handler
            turn 1  [h0] complete update 1 failed the workflow completed before this update did  [] complete stopped
              warning: a destructor panicked while the run was taken apart: boom
              warning: the workflow returned while [h0] still waited; abandoned
              warning: a destructor panicked while the run was taken apart: bang
        "#]],
    );
}

/// C-44: a destructor that uses its ctx while a panic unwinds must not make things worse.
#[test]
fn a_destructor_that_uses_its_ctx_while_a_panic_unwinds_does_nothing() {
    check_refused(
        |ctx: Ctx, _| async move {
            let _calls = CallsWhenDropped(ctx.clone());
            panics().await
        },
        "start",
        expect![[r#"
            failed: workflow code panicked in the root unit, after no call: on purpose
            The run stays open and is played again from the beginning; deploy code that does not panic here, or return an `Err` to fail the run.
        "#]],
    );
}

/// C-34: destructors of units that end with the run are inert as well.
#[test]
fn a_destructor_that_uses_its_ctx_while_the_run_closes_does_nothing() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            drop(ctx.launch(async move {
                let _calls = CallsWhenDropped(inside.clone());
                inside.activity("launched", "").await
            }));
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start
         signal stop",
        expect![[r#"
            turn 0  [l0] activity launched
            turn 1  [] complete stopped
        "#]],
    );
}

/// C-12: a branch that is given up is still the run's: what its destructor asks for happens.
#[test]
fn a_destructor_of_a_branch_that_is_given_up_may_use_its_ctx() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let branches = ctx.parallel([async move {
                let _calls = CallsWhenDropped(inside.clone());
                inside.activity("branch", "").await
            }]);
            ctx.race(async { Ok::<_, Failure>(branches.await) }, ctx.sleep(secs(5))).await?;
            say("done")
        },
        "start
         fire 5s",
        expect![[r#"
            turn 0  [] timer 5s  [p0] activity branch
            turn 1  [p0] cancel #1  [p0] state changed = yes  [p0] timer 1s  [p0] cancel #2  [p0] activity from a destructor  [p0] cancel #3  [] complete done
              published changed
        "#]],
    );
}

/// C-26: the closure of a side effect that was dropped held a guard that used its ctx. It was dropped under the run's own lock,
/// and the turn hung.
#[test]
fn dropping_a_run_whose_closure_holds_a_guard_that_uses_its_ctx_does_not_hang() {
    check(
        |ctx: Ctx, _| async move {
            let calls = CallsWhenDropped(ctx.clone());
            drop(ctx.side_effect("unwanted", move || async move {
                drop(calls);
                say("never")
            }));
            let calls = CallsWhenDropped(ctx.clone());
            ctx.side_effect("wanted", move || async move {
                drop(calls);
                say("never run here")
            })
            .await
        },
        "start
         resolve wanted = done",
        expect![[r#"
            turn 0  [] side effect unwanted  [] cancel #0  [] side effect wanted
            turn 1  [] complete done
        "#]],
    );
}
