//! Violations: the activation fails, no command leaves, and the report says who did what.

#![allow(clippy::disallowed_methods, reason = "these tests do what workflow code must not do")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use dacapo_core::{
    Activation, Completion, Ctx, Handled, Job, Reporter, Run, RunOptions, Signal, StateCell, Violation, Workflow,
};
use dacapo_testkit::{expect, workflow};

use crate::kit::*;

fn signal(name: &'static str) -> Activation {
    turn(vec![Job::Signal(Box::new(Signal { name: name.into(), ..Signal::default() }))])
}

/// A run without a twin, and what its reporter was told.
fn reported(workflow: &Workflow) -> (Run, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let teller = told.clone();
    let reporter: Reporter = Arc::new(move |violation: &Violation| {
        teller.lock().unwrap().push(without_lines(&violation.to_string()));
    });
    let options = RunOptions { double_play: false, reporter: Some(reporter), ..RunOptions::default() };
    (Run::new(workflow.clone(), options).unwrap(), told)
}

fn refused(completion: &Completion) -> String {
    assert!(matches!(completion, Completion::Failed(_)), "no command leaves: {completion:?}");
    without_lines(&shown(completion))
}

/// S0-9, S0-63, S0-76
#[test]
fn a_ctx_used_from_another_thread_fails_the_activation_and_panics_there() {
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.set_state("before", "it");
            let inside = ctx.clone();
            let there = std::thread::spawn(move || inside.activity("smuggled", "").detach()).join();
            assert!(there.is_err(), "the thread panicked");
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency
        "#]],
    );
}

/// S0-63: a task of another runtime is another thread with a nicer name.
#[test]
fn a_ctx_used_by_a_task_of_another_runtime_fails_the_activation() {
    check_refused(
        |ctx: Ctx, _| async move {
            let task = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async move { tokio::spawn(async move { ctx.now() }).await.is_err() })
            });
            assert!(task.join().unwrap(), "the task panicked");
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency
        "#]],
    );
}

/// S0-63, T-20: turns are played without any runtime's context, so such a call panics where it stands.
#[test]
fn a_spawn_on_another_runtime_panics_at_the_call() {
    check_refused(
        |_: Ctx, _| async move {
            drop(tokio::spawn(async {}));
            say("never")
        },
        "start",
        expect![[r#"
            failed: workflow code panicked in the root unit, after no call: there is no reactor running, must be called from the context of a Tokio 1.x runtime
            Workflow code is played outside any async runtime, on purpose: use `ctx.sleep` for time, `ctx.launch` or `ctx.parallel` for concurrency, and an activity for I/O.
            The run stays open and is played again from the beginning; deploy code that does not panic here, or return an `Err` to fail the run.
        "#]],
    );
}

/// S0-9, S0-63, S0-76: nothing happens to the turn that is over; the next one fails, and the reporter knows at once.
#[test]
fn a_ctx_used_after_its_turn_panics_there_and_fails_the_next_activation() {
    let leaked: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let leak = leaked.clone();
    let leaky = workflow(move |ctx: Ctx, _| {
        *leak.lock().unwrap() = Some(ctx.clone());
        async move {
            ctx.next_signal("s").await?;
            say("never")
        }
    });
    let (mut run, told) = reported(&leaky);
    assert_eq!(shown(&run.activate(start())), "turn 0\n");
    let ctx = leaked.lock().unwrap().take().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| ctx.set_state("late", "value"))).is_err());
    expect!["scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency"].assert_eq(&told.lock().unwrap().join("\n"));
    expect![[r#"
        failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency
    "#]].assert_eq(&refused(&run.activate(signal("s"))));
    assert!(refused(&run.activate(signal("s"))).contains("failed before"), "and it stays so until it is evicted");
}

/// S0-63: code of one run used another run's ctx. The other run failed; the one that did it went on without the unit,
/// which was never heard of again.
#[test]
fn a_run_that_uses_another_run_s_ctx_fails_and_so_does_the_other() {
    let leaked: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let leak = leaked.clone();
    let victim = workflow(move |ctx: Ctx, _| {
        *leak.lock().unwrap() = Some(ctx.clone());
        async move {
            ctx.next_signal("s").await?;
            say("never")
        }
    });
    let (mut victim, told) = reported(&victim);
    victim.activate(start());
    let other = leaked.lock().unwrap().take().unwrap();
    let violator = workflow(move |ctx: Ctx, _| {
        let other = other.clone();
        async move {
            ctx.set_state("before", "it");
            other.set_state("theirs", "mine");
            say("never")
        }
    });
    expect![[r#"
        failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency
    "#]].assert_eq(&refused(&single(&violator).activate(start())));
    assert_eq!(told.lock().unwrap().len(), 1);
    expect![[r#"
        failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency
    "#]].assert_eq(&refused(&victim.activate(signal("s"))));
}

/// S0-63: dropping a durable future is a call too.
#[test]
fn a_future_dropped_on_another_thread_fails_the_activation() {
    check_refused(
        |ctx: Ctx, _| async move {
            let future = ctx.activity("A", "");
            std::thread::spawn(move || drop(future)).join().unwrap();
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency
        "#]],
    );
}

/// S0-64, S0-65, C-44
#[test]
fn a_closure_that_the_executor_runs_cannot_call_its_ctx() {
    let closure = "start
         signal s, update u 1";
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(0);
            cell.update(|_| ctx.activity("A", "").detach());
            say("never")
        },
        closure,
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a closure that the executor runs (a condition, a validator, a state update) called its ctx; such closures only compute
            failed: the activation does not fit the run: the first job of the first turn must be a start
        "#]],
    );
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(0);
            cell.read(|_| ctx.now());
            say("never")
        },
        closure,
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a closure that the executor runs (a condition, a validator, a state update) called its ctx; such closures only compute
            failed: the activation does not fit the run: the first job of the first turn must be a start
        "#]],
    );
    check_refused(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            ctx.wait_until(move || inside.random() > 2.0).await?;
            say("never")
        },
        closure,
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a closure that the executor runs (a condition, a validator, a state update) called its ctx; such closures only compute
            failed: the activation does not fit the run: the first job of the first turn must be a start
        "#]],
    );
    check_refused(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let valid = move |_: &_| {
                inside.set_state("seen", "yes");
                Ok(())
            };
            ctx.on_update("u", valid, |_| async { say("never") });
            ctx.next_signal("never").await?;
            say("never")
        },
        closure,
        expect![[r#"
            turn 0
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a closure that the executor runs (a condition, a validator, a state update) called its ctx; such closures only compute
        "#]],
    );
    check_refused(
        |ctx: Ctx, _| async move {
            let (cell, inside) = (ctx.state(0), ctx.clone());
            ctx.phase(&cell)
                .on_signal("s", move |_, _| {
                    inside.sleep(secs(1)).detach();
                    Handled::done()
                })
                .await?;
            say("never")
        },
        closure,
        expect![[r#"
            turn 0
            failed: scheduler violation in unit [h0], at crates/core/tests/behaviour/violations.rs: a closure that the executor runs (a condition, a validator, a state update) called its ctx; such closures only compute
        "#]],
    );
}

/// S0-64: an `Err` of the closure is its handler's own.
#[test]
fn an_err_of_a_closure_fails_only_its_handler() {
    dacapo_testkit::check(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(0);
            ctx.on_update(
                "u",
                |_| Ok(()),
                move |_| {
                    let cell = cell.clone();
                    async move { cell.update(|_| Err(fail("refused by the closure"))) }
                },
            );
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start
         update u 1
         signal stop",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h0] complete update 1 failed refused by the closure
            turn 2  [] complete stopped
        "#]],
    );
}

/// S0-65
#[test]
fn a_closure_over_a_cell_cannot_enter_the_cell_again() {
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(0);
            cell.update(|_| cell.read(|value| *value));
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a state cell was entered while it was entered already; let go of one guard, or return from one closure, before the next
        "#]],
    );
}

/// S0-65: another thread looked into a cell, and the core did not notice.
#[test]
fn a_cell_read_from_another_thread_fails_the_activation() {
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(0);
            let there = std::thread::spawn(move || cell.read(|value| *value)).join();
            assert!(there.is_err(), "the thread panicked");
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a ctx was used from another thread, another runtime's task, another run, or after its turn; only the unit that holds the turn may call it: use `ctx.launch` or `ctx.parallel` for concurrency
        "#]],
    );
}

/// C-2
#[test]
fn an_option_cannot_be_set_on_a_command_that_is_sealed() {
    check_refused(
        |ctx: Ctx, _| async move {
            let activity = ctx.activity("A", "");
            ctx.yield_now().await;
            activity.queue("elsewhere").await
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: the option that this line sets comes too late, because activity A is sealed; set all options before the first await
        "#]],
    );
    check_refused(
        |ctx: Ctx, _| async move {
            let mut timer = ctx.sleep(secs(1));
            assert!(futures::poll!(&mut timer).is_pending());
            timer.summary("too late").await?;
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: the option that this line sets comes too late, because timer 1s is sealed; set all options before the first await
        "#]],
    );
}

/// A turn later another command stands in its place, and is still open.
#[test]
fn an_option_that_is_set_a_turn_too_late_reaches_no_other_command() {
    check_refused(
        |ctx: Ctx, _| async move {
            let activity = ctx.activity("A", "");
            ctx.next_signal("go").await?;
            let other = ctx.activity("B", "");
            activity.queue("elsewhere").await?;
            other.await
        },
        "start
         signal go",
        expect![[r#"
            turn 0  [] activity A
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: the option that this line sets comes too late, because activity A is sealed; set all options before the first await
        "#]],
    );
}

/// A workflow that waits on a foreign waker and shows it.
fn exposed() -> (Workflow, Arc<Mutex<Option<Waker>>>) {
    let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
    let shown = waker.clone();
    let workflow = workflow(move |_: Ctx, _| {
        let shown = shown.clone();
        std::future::poll_fn(move |cx| {
            *shown.lock().unwrap() = Some(cx.waker().clone());
            std::task::Poll::Pending
        })
    });
    (workflow, waker)
}

/// S0-63
#[test]
fn a_wake_from_outside_at_rest_is_reported_at_once_and_fails_the_next_activation() {
    let (exposed, waker) = exposed();
    let (mut run, told) = reported(&exposed);
    assert_eq!(shown(&run.activate(start())), "turn 0\n");
    let waker = waker.lock().unwrap().take().unwrap();
    std::thread::spawn(move || waker.wake()).join().unwrap();
    expect!["scheduler violation in the root unit: something outside the run woke this unit: a timer, channel or task of another runtime; await only what ctx gives, and move work on the world into an activity or `ctx.side_effect`"].assert_eq(&told.lock().unwrap().join("\n"));
    expect![[r#"
        failed: scheduler violation in the root unit: something outside the run woke this unit: a timer, channel or task of another runtime; await only what ctx gives, and move work on the world into an activity or `ctx.side_effect`
    "#]].assert_eq(&refused(&run.activate(signal("s"))));
}

/// S0-63: the reporter is called at once, by the thread that woke, and may look at the run: no lock is held. A worker that serves
/// the run need not wait for the next message to say what is wrong with it.
#[test]
fn reporter_of_a_wake_from_outside_runs_on_the_waking_thread_and_may_look_at_the_run() {
    let (exposed, waker) = exposed();
    let watch: Arc<Mutex<Option<dacapo_core::Watch>>> = Arc::default();
    let (tell, told) = std::sync::mpsc::channel();
    let seen = watch.clone();
    let reporter: Reporter = Arc::new(move |violation: &Violation| {
        let watch = seen.lock().unwrap().clone().expect("the run is watched");
        let found = (std::thread::current().id(), violation.kind.clone(), watch.turn(), watch.is_playing());
        tell.send(found).unwrap();
    });
    let options = RunOptions { double_play: false, reporter: Some(reporter), ..RunOptions::default() };
    let mut run = Run::new(exposed, options).unwrap();
    *watch.lock().unwrap() = Some(run.watch());
    assert_eq!(shown(&run.activate(start())), "turn 0\n");
    let waker = waker.lock().unwrap().take().unwrap();
    let thread = std::thread::spawn(move || waker.wake());
    let waking = thread.thread().id();
    let Ok(found) = told.recv_timeout(secs(10)) else {
        // Its destructor would wait for the lock that the waking thread holds.
        std::mem::forget(run);
        panic!("the reporter is called while nothing is sent to the run, and no lock is held");
    };
    assert_eq!(found, (waking, dacapo_core::ViolationKind::ForeignWake, 1, false));
    thread.join().unwrap();
}

/// S0-63
#[test]
fn a_wake_from_outside_during_a_turn_fails_that_turn_and_is_reported_at_once() {
    let waking = workflow(|ctx: Ctx, _| async move {
        ctx.set_state("before", "it");
        std::future::poll_fn(|cx| {
            let waker = cx.waker().clone();
            std::thread::spawn(move || waker.wake()).join().unwrap();
            std::task::Poll::Ready(())
        })
        .await;
        say("never")
    });
    let (mut run, told) = reported(&waking);
    expect![[r#"
        failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: something outside the run woke this unit: a timer, channel or task of another runtime; await only what ctx gives, and move work on the world into an activity or `ctx.side_effect`
    "#]].assert_eq(&refused(&run.activate(start())));
    assert_eq!(told.lock().unwrap().len(), 1);
}

/// T-9: plain channels between units of one run are no escape: the wake means "runnable in the next round".
#[test]
fn units_of_one_run_may_wake_each_other_through_plain_channels() {
    dacapo_testkit::check(
        |ctx: Ctx, _| async move {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let sender = Mutex::new(Some(sender));
            ctx.on_signal("s", move |signal| {
                let sender = sender.lock().unwrap().take().unwrap();
                async move {
                    sender.send(word(&signal.input)).map_err(|_| fail("no receiver"))?;
                    Ok(())
                }
            });
            say(receiver.await.unwrap())
        },
        "start
         signal s = through a channel",
        expect![[r#"
            turn 0
            turn 1  [] complete through a channel
        "#]],
    );
}

/// T-9: a timeout around a plain channel waits like any other.
#[test]
fn a_timeout_around_a_plain_channel_ends_it() {
    dacapo_testkit::check(
        |ctx: Ctx, _| async move {
            let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
            let wait = async { receiver.await.map_err(|_| fail("closed")) };
            let timed_out = ctx.with_timeout(secs(5), wait).await.unwrap_err();
            drop(sender);
            say(timed_out.to_string())
        },
        "start
         fire 5s",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1  [] complete the deadline passed
        "#]],
    );
}

/// C-2: what a handler that was refused held was dropped under the run's own lock. If that was a part of the run, such as
/// the handle of a cancellation, the turn hung and the violation was not reported.
#[test]
fn a_refused_handler_may_hold_parts_of_the_run() {
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.on_signal("s", |_| async { Ok(()) });
            let ((_, handle), calls) = (ctx.cancellable(async {}), CallsWhenDropped(ctx.clone()));
            ctx.on_signal("s", move |_| {
                let _held = (&handle, &calls);
                async { Ok(()) }
            });
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: signal "s" has a handler already; one name has one handler
        "#]],
    );
    check_refused(
        |ctx: Ctx, _| async move {
            ctx.on_update("u", |_| Ok(()), |_| async { say("") });
            let ((_, handle), calls) = (ctx.cancellable(async {}), CallsWhenDropped(ctx.clone()));
            ctx.on_update(
                "u",
                move |_| {
                    let _held = &calls;
                    Ok(())
                },
                move |_| {
                    let _held = &handle;
                    async { say("") }
                },
            );
            say("never")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: update "u" has a handler already; one name has one handler
        "#]],
    );
}

/// C-2: the closure that sets a child's options ran under the run's own lock; one that asked its ctx for the time hung.
#[test]
fn the_options_of_a_child_may_be_computed_with_the_ctx() {
    dacapo_testkit::check(
        |ctx: Ctx, _| async move {
            let child = ctx.child("C", "").with(|child| {
                child.workflow_id = format!("C at {}", ctx.now()).into();
                ctx.set_state("while", "setting it up");
            });
            let id = child.started().await?.run_id().to_string();
            say(id)
        },
        "start
         started C = run 1",
        expect![[r#"
            turn 0  [] child C  [] state while = setting it up
            turn 1  [] cancel #0  [] complete run 1
        "#]],
    );
}

/// S0-63: the run is past saving once a rule is broken, whatever the code makes of it.
#[test]
fn code_that_catches_the_unwinding_of_a_violation_cannot_go_on() {
    check_refused(
        |ctx: Ctx, _| async move {
            let cell = ctx.state(0);
            let caught = catch_unwind(AssertUnwindSafe(|| cell.update(|_| ctx.now())));
            assert!(caught.is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| ctx.set_state("after", "it"))).is_err());
            say("as if nothing had happened")
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: a closure that the executor runs (a condition, a validator, a state update) called its ctx; such closures only compute
        "#]],
    );
}

/// A cell belongs to its run; a query of another run that reads it fails, and is a violation of the cell's run.
#[test]
fn a_query_cannot_read_the_cell_of_another_run() {
    let kept: Arc<Mutex<Option<StateCell<i32>>>> = Arc::default();
    let leak = kept.clone();
    let mut owner = single(&workflow(move |ctx: Ctx, _| {
        *leak.lock().unwrap() = Some(ctx.state(7));
        async move { Ok(ctx.next_signal("never").await?.input.remove(0)) }
    }));
    let mut other = single(&workflow(move |ctx: Ctx, _| {
        let kept = kept.clone();
        ctx.on_query("look", move |_| {
            let cell = kept.lock().unwrap().clone().unwrap();
            say(cell.read(i32::to_string))
        });
        async move { Ok(ctx.next_signal("never").await?.input.remove(0)) }
    }));
    owner.activate(start());
    other.activate(start());
    let query = dacapo_core::Query { name: "look".into(), ..Default::default() };
    let Completion::Query(answers) = other.activate(Activation::Query(vec![query])) else { panic!() };
    assert!(answers[0].result.is_err());
    assert!(matches!(owner.activate(turn(vec![])), Completion::Failed(_)));
    assert!(matches!(other.activate(turn(vec![])), Completion::Turn(_)));
}

/// A condition is looked at before its wait begins, too.
#[test]
fn a_condition_that_holds_at_once_cannot_call_its_ctx_either() {
    let mut run = single(&workflow(|ctx: Ctx, _| async move {
        let inside = ctx.clone();
        ctx.wait_until(move || inside.random() < 2.0).await?;
        say("done")
    }));
    assert!(refused(&run.activate(start())).contains("closure"));
}

/// The first error is the cause, and what follows from it is not what people need to hear.
#[test]
fn failed_activation_names_its_first_error() {
    check_refused(
        |ctx: Ctx, _| async move {
            let mut timer = ctx.sleep(secs(1));
            assert!(futures::poll!(&mut timer).is_pending());
            let caught = catch_unwind(AssertUnwindSafe(|| drop(timer.summary("too late"))));
            panic!("caught: {}", caught.is_err());
        },
        "start",
        expect![[r#"
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/violations.rs: the option that this line sets comes too late, because timer 1s is sealed; set all options before the first await
        "#]],
    );
}
