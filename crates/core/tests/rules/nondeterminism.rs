//! Nondeterminism: what replay refuses, and what it says then.

use crate::kit::*;

async fn a_then_b(ctx: Ctx, _: Payload) -> Done {
    let a = ctx.activity("A", "");
    let b = ctx.activity("B", "");
    a.await?;
    b.await
}

/// S0-52, S0-72, T-28: the code no longer does what it did; the report names what is missing, where and by which build.
#[test]
fn a_missing_command_is_nondeterminism() {
    async fn only_a(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await
    }
    check_replay(
        a_then_b,
        "start\nresolve A",
        only_a,
        expect![[r#"
            failed: nondeterminism: a recorded command is missing
              --> turn 0, command 1
               |
               | recorded: activity B #1, activity(1), the root unit, at crates/core/tests/rules/nondeterminism.rs:7:17, by build kit
               | new:      nothing
               |
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

/// S0-52, C-7, T-25: a workflow that returns early leaves recorded work behind, and that is noticed.
#[test]
fn an_early_return_does_not_hide_recorded_work() {
    async fn early(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        if ctx.now() == Timestamp::default() {
            a.detach();
            return nothing();
        }
        a.await
    }
    check_replay(
        a_then_b,
        "start",
        early,
        expect![[r#"
            failed: nondeterminism: a command differs from what was recorded
              --> turn 0, command 1
               |
               | recorded: activity B #1, activity(1), the root unit, at crates/core/tests/rules/nondeterminism.rs:7:17, by build kit
               | new:      complete, the root unit, at crates/core/tests/rules/nondeterminism.rs:45:5
               |
               | command: recorded "activity", new "complete"
               |
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

/// S0-53, S0-72, C-6: what the code does more, within a turn that was recorded.
#[test]
fn an_extra_command_is_nondeterminism() {
    async fn and_c(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        let b = ctx.activity("B", "");
        ctx.activity("C", "").detach();
        a.await?;
        b.await
    }
    check_replay(
        a_then_b,
        "start\nresolve A",
        and_c,
        expect![[r#"
            failed: nondeterminism: a command was not recorded
              --> turn 0, command 2
               |
               | recorded: nothing, by build kit
               | new:      activity C #2, activity(2), the root unit, at crates/core/tests/rules/nondeterminism.rs:69:13
               |
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

/// C-6: the same extra command after the last recorded turn is new work.
#[test]
fn an_extra_command_after_the_last_recorded_turn_is_new_work() {
    async fn longer(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        let b = ctx.activity("B", "");
        a.await?;
        b.await?;
        ctx.activity("C", "").await
    }
    let recorded = play(a_then_b, "start\nresolve A").transcript;
    let mut run = recorded.replay(&workflow(longer), RunOptions::default()).unwrap();
    let live = run.activate(turn(vec![resolved(1, "")]));
    assert_eq!(commands(&live)[0].kind.to_string(), "activity C");
    let closed = play(a_then_b, "start\nresolve A\nresolve B").transcript;
    let failed = closed.replay(&workflow(longer), RunOptions::default()).err().unwrap();
    assert_eq!(failed.turn, 2, "in a turn that was recorded it is not");
}

/// S0-54, S0-72, C-3: a task and a timer once could swap unnoticed, because each was counted among its own kind only.
#[test]
fn a_reordered_command_is_nondeterminism() {
    async fn b_then_a(ctx: Ctx, _: Payload) -> Done {
        let b = ctx.activity("B", "");
        let a = ctx.activity("A", "");
        a.await?;
        b.await
    }
    check_replay(
        a_then_b,
        "start",
        b_then_a,
        expect![[r#"
            failed: nondeterminism: a command differs from what was recorded
              --> turn 0, command 0
               |
               | recorded: activity A #0, activity(0), the root unit, at crates/core/tests/rules/nondeterminism.rs:6:17, by build kit
               | new:      activity B #0, activity(0), the root unit, at crates/core/tests/rules/nondeterminism.rs:112:21
               |
               | activity: recorded "A", new "B"
               |
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
    async fn task_and_timer(ctx: Ctx, _: Payload) -> Done {
        let (a, _timer) = (ctx.activity("A", ""), ctx.sleep(secs(5)));
        a.await
    }
    async fn timer_and_task(ctx: Ctx, _: Payload) -> Done {
        let (_timer, a) = (ctx.sleep(secs(5)), ctx.activity("A", ""));
        a.await
    }
    check_replay(
        task_and_timer,
        "start",
        timer_and_task,
        expect![[r#"
            failed: nondeterminism: a command differs from what was recorded
              --> turn 0, command 0
               |
               | recorded: activity A #0, activity(0), the root unit, at crates/core/tests/rules/nondeterminism.rs:134:32, by build kit
               | new:      timer 5s #0, timer(0), the root unit, at crates/core/tests/rules/nondeterminism.rs:138:32
               |
               | command: recorded "activity", new "timer"
               |
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

/// S0-55, S0-58, S0-72: the field that changed is named, with both of its values.
#[test]
fn a_changed_command_is_nondeterminism() {
    async fn five(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "five").await
    }
    async fn six(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "six").await
    }
    check_replay(
        five,
        "start\nresolve A",
        six,
        expect![[r#"
            failed: nondeterminism: a command differs from what was recorded
              --> turn 0, command 0
               |
               | recorded: activity A #0, activity(0), the root unit, at crates/core/tests/rules/nondeterminism.rs:163:13, by build kit
               | new:      activity A #0, activity(0), the root unit, at crates/core/tests/rules/nondeterminism.rs:166:13
               |
               | input: recorded [five], new [six]
               |
               = help: the same call with another input. If a type got a new field, give it `#[serde(default, skip_serializing_if = …)]`, so that old values are written as they were; if it lost one, keep it until the runs that recorded it are closed
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

/// C-3: results may come in every order; only what was scheduled is matched.
#[test]
fn results_in_any_order_are_no_nondeterminism() {
    for jobs in ["resolve A\nresolve B", "resolve B\nresolve A", "resolve A, resolve B", "resolve B, resolve A"] {
        let recorded = play(a_then_b, &format!("start\n{jobs}")).transcript;
        assert!(recorded.replay(&workflow(a_then_b), RunOptions::default()).is_ok(), "{jobs}");
    }
}

/// S2-15, S0-1: whatever replayed code does, it either decides as recorded or the activation fails; nothing is decided
/// twice and nothing in part.
#[test]
fn a_failed_replay_decides_nothing() {
    async fn other(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").detach();
        ctx.activity("X", "").await
    }
    let recorded = play(a_then_b, "start\nresolve A").transcript;
    let mut run = Run::new(workflow(other), RunOptions::default()).unwrap();
    let first = run.activate(Activation::Turn(recorded.turns[0].clone().into_turn()));
    assert!(matches!(&first, Completion::Failed(error) if matches!(**error, ActivationError::Nondeterminism(_))));
    let again = run.activate(Activation::Turn(recorded.turns[0].clone().into_turn()));
    assert!(matches!(&again, Completion::Failed(error) if matches!(**error, ActivationError::Poisoned(_))));
    assert!(recorded.replay(&workflow(a_then_b), RunOptions::default()).is_ok(), "the code that recorded it plays it");
}

/// T-25: a panic on replay is a panic, and not reported as nondeterminism.
#[test]
fn a_panic_on_replay_is_reported_as_a_panic() {
    async fn panics(ctx: Ctx, _: Payload) -> Done {
        let _a = ctx.activity("A", "");
        panic!("out of luck");
    }
    let recorded = play(a_then_b, "start").transcript;
    let failed = recorded.replay(&workflow(panics), RunOptions::default()).err().unwrap();
    let ActivationError::Panic { message, unit, site } = *failed.error else { panic!("{failed}") };
    assert_eq!((message.as_str(), unit, site.is_some()), ("out of luck", UnitId::root(), true));
}

/// C-49, T-27: five attempts became eight while the run was open. It goes on with what was recorded, says so once, and
/// what it asks for from now on is as the code says.
#[test]
fn changed_tuning_warns_once_and_the_run_goes_on() {
    async fn tuned(ctx: Ctx, attempts: u32) -> Done {
        let retry = Retry::exponential().attempts(attempts);
        ctx.activity("A", "").retry(retry.clone()).await?;
        ctx.activity("B", "").retry(retry).await
    }
    let recorded = play(|ctx, _| tuned(ctx, 5), "start").transcript;
    let eight = workflow(|ctx, _| tuned(ctx, 8));
    let mut run = Run::new(eight, RunOptions::default()).unwrap();
    let replayed = run.activate(Activation::Turn(recorded.turns[0].clone().into_turn()));
    let Completion::Turn(done) = &replayed else { panic!("{replayed:?}") };
    assert_eq!(done.commands[0].kind, recorded.turns[0].commands[0].kind, "the recorded value holds");
    let [warning @ Warning::Tuning { position: 0, fields, site, .. }] = &done.warnings[..] else { panic!("{done:?}") };
    assert_eq!(fields, &["retry"]);
    assert_eq!(
        warning.to_string(),
        format!(
            "retry of command 0, activity A, was recorded differently from what {site} asks for now; the recorded \
             value holds for this run"
        )
    );
    let live = run.activate(turn(vec![resolved(0, "")]));
    let CommandKind::Activity(new) = &commands(&live)[0].kind else { panic!("{live:?}") };
    assert_eq!(new.retry.as_ref().unwrap().attempts, 8);
}

/// T-27: a sealed command holds what it was resolved to, so a default that changes later changes nothing recorded.
#[test]
fn command_without_options_records_its_defaults() {
    async fn plain(ctx: Ctx, _: Payload) -> Done {
        let _open = (
            ctx.activity("A", ""),
            ctx.local_activity("L", ""),
            ctx.child("C", ""),
            ctx.side_effect("R", || async { nothing() }),
        );
        ctx.next_signal("never").await?;
        nothing()
    }
    let played = play(plain, "start");
    for command in &played.transcript.turns[0].commands {
        let (queue, retry) = match &command.kind {
            CommandKind::Activity(c) => (c.queue.clone(), c.retry.clone()),
            CommandKind::LocalActivity(c) => (Some("kit".into()), c.retry.clone()),
            CommandKind::SideEffect(c) => (Some("kit".into()), c.retry.clone()),
            CommandKind::Child(c) => (c.queue.clone(), Some(Retry::exponential())),
            other => panic!("{other}"),
        };
        assert_eq!((queue, retry), (Some("kit".into()), Some(Retry::exponential())), "{}", command.kind);
    }
}

/// S4-15, C-3: a report tells an operation's number in the run and its number among those of its kind, both from zero.
#[test]
fn a_report_numbers_operations_in_the_run_and_among_their_kind() {
    async fn three(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await?;
        let (_b, _timer) = (ctx.activity("B", ""), ctx.sleep(secs(5)));
        ctx.activity("C", "").await
    }
    async fn sooner(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await?;
        let (_b, _c) = (ctx.activity("B", ""), ctx.activity("C", ""));
        ctx.sleep(secs(5)).await?;
        nothing()
    }
    check_replay(
        three,
        "start\nresolve A",
        sooner,
        expect![[r#"
            turn 0  [] activity A
            failed: nondeterminism: a command differs from what was recorded
              --> turn 1, command 1
               |
               | recorded: timer 5s #2, timer(0), the root unit, at crates/core/tests/rules/nondeterminism.rs:286:56, by build kit
               | new:      activity C #2, activity(2), the root unit, at crates/core/tests/rules/nondeterminism.rs:291:52
               |
               | command: recorded "timer", new "activity"
               |
               = help: the run stays open. Bring back the code that recorded it, guard the new path with `ctx.patched`, or begin it again with `reset(1, …)`: that undoes updates which turns from this one on took, although their senders were answered, and runs their activities again
        "#]],
    );
}

/// S0-55: a change of tuning does not hide a change of meaning beside it.
#[test]
fn another_activity_with_another_timeout_is_nondeterminism() {
    async fn before(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").start_to_close(secs(5)).await
    }
    async fn after(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("B", "").start_to_close(secs(9)).await
    }
    let recorded = play(before, "start").transcript;
    let failed = recorded.replay(&workflow(after), RunOptions::default()).err().unwrap();
    assert!(failed.to_string().contains(r#"activity: recorded "A", new "B""#), "{failed}");
}
