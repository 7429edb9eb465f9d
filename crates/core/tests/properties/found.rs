//! Bugs that generated programs found, each as a story of its own.

use std::future::IntoFuture;
use std::time::Duration;

use dacapo_core::{CancelType, Ctx, Either, Failure, Handled, Payload, Pins, UnfinishedHandlers, Workflow};
use dacapo_testkit::{Mode, Player, check, check_workflow, expect, workflow};

/// The text form left out everything that was null, and so the removal of a memo entry or of a search attribute: the
/// transcript read back said that nothing was changed, and did not replay.
#[test]
fn the_removal_of_a_memo_entry_survives_the_text_form() {
    async fn forgets(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        ctx.set_memo([("note".into(), None)]);
        ctx.set_attrs([("colour".into(), None), ("size".into(), Some("3".into()))]);
        Ok(Payload::empty())
    }
    check(
        forgets,
        "start",
        expect![[r#"
            turn 0  [] memo note  [] search attributes colour size  [] complete
        "#]],
    );
}

/// A wait that a cancellation does not end (for an activity that is to be waited for until it has stopped, for branches,
/// for a scope) took no result that came after the cancellation either, and so never ended.
#[test]
fn a_cancelled_run_takes_the_results_it_still_waits_for() {
    async fn stops(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let branch = |name: &'static str| {
            let ctx = ctx.clone();
            async move { ctx.activity(name, "").cancel_type(CancelType::WaitCompleted).await }
        };
        let ended = ctx.parallel([branch("a"), branch("b")]).await;
        let words = ended.into_iter().map(|end| end.map_or_else(|failure| failure.message, |end| end.to_string()));
        Ok(words.collect::<Vec<_>>().join(" ").into())
    }
    check(
        stops,
        "start
         cancel = enough
         drop b: stopped
         resolve a = done",
        expect![[r#"
            turn 0  [p0] activity a  [p1] activity b
            turn 1  [p0] cancel #0  [p1] cancel #1
            turn 2
            turn 3  [] complete done stopped
        "#]],
    );
}

/// A race first looks at its sides without taking results. A join polls only those of its futures that were woken, and
/// that look used up the wake: the result was never taken and the race never ended.
#[test]
fn a_join_inside_a_race_takes_the_results_of_its_futures() {
    async fn races(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let both = async { Ok::<_, Failure>(ctx.join([ctx.activity("a", ""), ctx.activity("b", "")]).await.len()) };
        match ctx.race(both, ctx.sleep(Duration::from_secs(9))).await? {
            Either::First(count) => Ok(format!("{count} came").into()),
            Either::Second(()) => Ok("late".into()),
        }
    }
    check(
        races,
        "start
         resolve b
         resolve a",
        expect![[r#"
            turn 0  [] timer 9s  [] activity a  [] activity b
            turn 1
            turn 2  [] cancel #0  [] complete 2 came
        "#]],
    );
}

/// As above, with many plain futures that poll only what was woken, and a race within a race.
#[test]
fn a_plain_join_of_many_inside_two_races_takes_the_results_of_its_futures() {
    async fn races(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let many = futures::future::join_all((0..40).map(|_| ctx.activity("a", "")));
        let inner = ctx.race(async { Ok::<_, Failure>(many.await.len()) }, ctx.promise("p"));
        match ctx.race(inner, ctx.promise("q")).await? {
            Either::First(Either::First(count)) => Ok(format!("{count} came").into()),
            other => Ok(format!("{other:?}").into()),
        }
    }
    let activities = vec!["resolve a"; 40].join(", ");
    let mut play = Player::new(workflow(races), Pins::default(), Mode::Double);
    play.play(&format!("start\n{activities}"));
    assert!(play.printed.ends_with("complete 40 came\n"), "{}", play.printed);
}

/// A launched unit that fails cancels the workflow function, and that was thought to end every wait for the unit. A wait
/// in a shield is not cancelled, and one that begins after the unit's end found it done: both waited for ever.
#[test]
fn a_wait_for_a_launched_unit_that_failed_ends() {
    async fn waits(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let first = ctx.launch::<()>(async { Err(Failure::application("no use")) });
        ctx.yield_now().await;
        let cancelled = ctx.shield(first).await.expect_err("the unit failed");
        ctx.set_state("why", cancelled.reason);
        Ok(Payload::empty())
    }
    check(
        waits,
        "start",
        expect![[r#"
            turn 0  [] state why = launched unit [l0] failed: no use  [] fail: no use
        "#]],
    );
}

/// The handlers of a serial phase that waited for their go were forgotten when the phase was dropped, as one is that
/// loses a race: the signals they had taken were lost and the senders of their updates never got an answer.
#[test]
fn handlers_of_a_dropped_phase_still_go_one_after_the_other() {
    async fn drops(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let state = ctx.state(0);
        let inner = ctx.clone();
        let phase = ctx.phase(&state).on_update(
            "add",
            |_, _| Ok(()),
            move |count, update| {
                *count += 1;
                let (ctx, id) = (inner.clone(), update.id);
                Handled::with(async move { ctx.activity(id, "").await })
            },
        );
        ctx.with_timeout(Duration::from_secs(1), phase.into_future()).await.expect_err("nothing ends the phase");
        ctx.promise("end").await
    }
    check(
        drops,
        "start
         update add u1, update add u2, update add u3
         fire
         resolve u1 = one
         resolve u2 = two
         resolve u3 = three
         resolve end",
        expect![[r#"
            turn 0  [] timer 1s
            turn 1  [h0] accept update u1  [h1] accept update u2  [h2] accept update u3  [h0,a0] activity u1
            turn 2  [] promise end
            turn 3  [h0,a0] complete update u1 ok one  [h1,a0] activity u2
            turn 4  [h1,a0] complete update u2 ok two  [h2,a0] activity u3
            turn 5  [h2,a0] complete update u3 ok three
            turn 6  [] complete
        "#]],
    );
}

/// When the workflow function returns, what it launched is dropped without a command. Its waits for signals were left in
/// the queue all the same, and took signals that handlers which outlive the function were waiting for.
#[test]
fn a_signal_goes_to_a_living_handler_and_not_to_a_wait_that_died_with_the_root() {
    async fn leaves(ctx: Ctx, _: Vec<Payload>) -> Result<Payload, Failure> {
        let inner = ctx.clone();
        ctx.on_update(
            "take",
            |_| Ok(()),
            move |_| {
                let ctx = inner.clone();
                async move { Ok(ctx.next_signal("news").await?.input.swap_remove(0)) }
            },
        );
        let inner = ctx.clone();
        drop(ctx.launch(async move { Ok(inner.next_signal("news").await?) }));
        ctx.next_signal("go").await?;
        Ok("left".into())
    }
    let workflow = Workflow::new("kit", leaves).unfinished_handlers(UnfinishedHandlers::Wait);
    check_workflow(
        &workflow,
        Pins::default(),
        "start, update take u
         signal go
         signal news = yes",
        expect![[r#"
            turn 0  [h0] accept update u
            turn 1
            turn 2  [h0] complete update u ok yes  [] complete left
        "#]],
    );
}
