//! What ends a unit's step, and what does not.

use crate::kit::*;

/// S0-10: three decisions and a pause are one step.
#[test]
fn a_step_goes_on_until_the_unit_pauses() {
    async fn busy(ctx: Ctx, _: Payload) -> Done {
        ctx.set_state("one", "1");
        ctx.set_state("two", "2");
        ctx.set_state("three", "3");
        ctx.activity("A", "").await
    }
    let mut play = play(busy, "start");
    assert_eq!(play.printed, "turn 0  [] state one = 1  [] state two = 2  [] state three = 3  [] activity A\n");
    assert_eq!(play.run().inspect().round, 1);
}

/// S0-11, S0-17: between the activations there is one pending entry, and only its result answers it.
#[test]
fn an_activity_pauses_its_unit_until_its_result_comes() {
    async fn one(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await
    }
    let mut played = play(one, "start\nsignal other");
    let inspection = played.run().inspect();
    assert_eq!(played.printed, "turn 0  [] activity A\nturn 1\n");
    assert_eq!(inspection.pending.len(), 1);
    assert_eq!(inspection.pending[0].unit, Some(UnitId::root()));
    assert_eq!(inspection.units[0].waits[0].what, "activity A #0");
    check(
        one,
        "start
         signal other
         resolve A = done",
        expect![[r#"
            turn 0  [] activity A
            turn 1
            turn 2  [] complete done
        "#]],
    );
}

/// S0-12, S0-17
#[test]
fn a_timer_pauses_its_unit_until_it_fires() {
    async fn nap(ctx: Ctx, _: Payload) -> Done {
        ctx.sleep(secs(5)).await?;
        Ok("woken".into())
    }
    let mut played = play(nap, "start");
    assert_eq!(played.run().inspect().units[0].waits[0].what, "timer 5s #0");
    check(
        nap,
        "start
         signal other
         fire 5s",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1
            turn 2  [] complete woken
        "#]],
    );
}

/// S0-13
#[test]
fn a_wait_for_a_signal_pauses_only_when_none_is_there() {
    async fn greet(ctx: Ctx, _: Payload) -> Done {
        Ok(ctx.next_signal("go").await?.input.remove(0))
    }
    check(
        greet,
        "start, signal go = early",
        expect![[r#"
            turn 0  [] complete early
        "#]],
    );
    let mut early = play(greet, "start, signal go = early");
    assert_eq!(early.run().inspect().round, 1, "a signal that is there costs no further round");
    check(
        greet,
        "start
         signal stop = other
         signal go = late",
        expect![[r#"
            turn 0
            turn 1
            turn 2  [] complete late
        "#]],
    );
}

/// S0-14: the start of a child answers no unit that waits for its result.
#[test]
fn a_wait_for_a_child_pauses_until_the_child_ends() {
    async fn parent(ctx: Ctx, _: Payload) -> Done {
        ctx.child("C", "").await
    }
    check(
        parent,
        "start
         started C = run-1
         resolve C = grown",
        expect![[r#"
            turn 0  [] child C
            turn 1
            turn 2  [] complete grown
        "#]],
    );
}

/// S0-14, S0-16: start and result may come in one activation, and a result that is there is taken without a pause.
#[test]
fn a_child_that_starts_and_ends_at_once_is_seen_to_start_and_to_end() {
    async fn parent(ctx: Ctx, _: Payload) -> Done {
        let child = ctx.child("C", "").started().await?;
        ctx.set_state("run", child.run_id().to_string());
        child.await
    }
    check(
        parent,
        "start
         started C = run-1, resolve C = grown",
        expect![[r#"
            turn 0  [] child C
            turn 1  [] state run = run-1  [] complete grown
        "#]],
    );
    check(
        parent,
        "start
         refused C: taken",
        expect![[r#"
            turn 0  [] child C
            turn 1  [] fail: taken
        "#]],
    );
}

/// S0-15
#[test]
fn a_wait_for_a_condition_pauses_until_it_holds() {
    async fn count(ctx: Ctx, _: Payload) -> Done {
        let signals = ctx.state(0);
        let counted = signals.clone();
        ctx.on_signal("tick", move |_| {
            let counted = counted.clone();
            async move {
                counted.update(|n| *n += 1);
                Ok(())
            }
        });
        ctx.wait_until(move || signals.read(|n| *n == 2)).await?;
        Ok("two".into())
    }
    check(
        count,
        "start
         signal tick
         signal tick",
        expect![[r#"
            turn 0
            turn 1
            turn 2  [] complete two
        "#]],
    );
    check(
        count,
        "start, signal tick, signal tick",
        expect![[r#"
            turn 0  [] complete two
        "#]],
    );
}

/// S0-15, T-8: a condition was once looked at only in rounds that scheduled nothing, so a unit that changed the state
/// and scheduled in one step woke no unit.
#[test]
fn a_condition_is_looked_at_after_a_round_that_scheduled_something() {
    async fn both(ctx: Ctx, _: Payload) -> Done {
        let open = ctx.state(false);
        let seen = open.clone();
        let inner = ctx.clone();
        let opener = async move {
            inner.activity("A", "").await?;
            open.update(|open| *open = true);
            inner.activity("B", "").await
        };
        let inner = ctx.clone();
        let waiter = async move {
            inner.wait_until(move || seen.read(|open| *open)).await?;
            inner.activity("C", "").await
        };
        let done = ctx.parallel([Box::pin(opener) as Branch, Box::pin(waiter)]).await;
        done.into_iter().collect::<Result<Vec<_>, _>>()?;
        nothing()
    }
    check(
        both,
        "start
         resolve A
         resolve C, resolve B",
        expect![[r#"
            turn 0  [p0] activity A
            turn 1  [p0] activity B  [p1] activity C
            turn 2  [] complete
        "#]],
    );
}

type Branch = std::pin::Pin<Box<dyn Future<Output = Done> + Send>>;

/// S0-16: a handle that is awaited later than its result came does not pause.
#[test]
fn a_result_that_came_before_the_wait_is_taken_without_a_pause() {
    async fn later(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        ctx.activity("B", "").await?;
        let a = a.await?;
        ctx.activity("C", a).await
    }
    check(
        later,
        "start
         resolve A = early
         resolve B
         resolve C = done",
        expect![[r#"
            turn 0  [] activity A  [] activity B
            turn 1
            turn 2  [] activity C
            turn 3  [] complete done
        "#]],
    );
    let mut played = play(later, "start\nresolve A, resolve B");
    assert_eq!(played.printed, "turn 0  [] activity A  [] activity B\nturn 1  [] activity C\n");
    assert_eq!(played.run().inspect().round, 2, "taking what is there costs no round");
}

/// S0-18, S0-70, S4-29
#[test]
fn call_that_answers_at_once_does_not_end_the_step() {
    async fn ask(ctx: Ctx, _: Payload) -> Done {
        for _ in 0..100 {
            ctx.now();
            ctx.random();
            ctx.random_u64();
            ctx.uuid();
            ctx.info();
            ctx.cancellation();
            ctx.get_state("key");
            ctx.try_signal("none");
            ctx.publish("asking");
        }
        ctx.activity("A", "").await
    }
    let mut played = play(ask, "start");
    assert_eq!(played.printed, "turn 0  [] activity A\n  published asking\n");
    assert_eq!(played.run().inspect().round, 1);
}

/// S0-19, S0-71
#[test]
fn call_that_decides_without_waiting_appends_its_command_and_keeps_the_step() {
    async fn decide(ctx: Ctx, _: Payload) -> Done {
        ctx.set_attrs([("city".into(), Some("Ulm".into()))]);
        ctx.set_memo([("note".into(), None)]);
        ctx.patched("faster");
        ctx.set_state("key", "value");
        ctx.clear_state("key");
        ctx.deprecate_patch("older");
        ctx.activity("A", "").await
    }
    let mut played = play(decide, "start");
    expect![[r#"
        turn 0  [] search attributes city  [] memo note  [] patch faster  [] state key = value  [] state key cleared  [] patch older (deprecated)  [] activity A
    "#]]
    .assert_eq(&played.printed);
    assert_eq!(played.run().inspect().round, 1);
}

/// T-9: a plain channel between two units is a wait like any other: neither an escape nor a deadlock.
#[test]
fn a_unit_may_wait_for_another_on_a_plain_channel() {
    async fn relay(ctx: Ctx, _: Payload) -> Done {
        let (tell, told) = tokio::sync::oneshot::channel();
        let inner = ctx.clone();
        let sender = async move {
            let value = inner.activity("A", "").await?;
            tell.send(value).map_err(|_| Failure::application("no receiver"))?;
            nothing()
        };
        let inner = ctx.clone();
        let receiver = async move {
            let value = told.await.map_err(|_| Failure::application("no sender"))?;
            inner.activity("B", value).await
        };
        let done = ctx.parallel([Box::pin(sender) as Branch, Box::pin(receiver)]).await;
        done.into_iter().nth(1).unwrap()
    }
    check(
        relay,
        "start
         resolve A = word
         resolve B = heard",
        expect![[r#"
            turn 0  [p0] activity A
            turn 1  [p1] activity B
            turn 2  [] complete heard
        "#]],
    );
}

/// T-9: a deadline around a wait that has no command of its own is a timer, and ends it.
#[test]
fn a_deadline_ends_a_wait_that_nothing_else_would_end() {
    async fn patient(ctx: Ctx, _: Payload) -> Done {
        ctx.with_timeout(secs(9), ctx.next_signal("never")).await?;
        nothing()
    }
    check(
        patient,
        "start
         fire 9s",
        expect![[r#"
            turn 0  [] timer 9s
            turn 1  [] fail: the deadline passed
        "#]],
    );
}
