//! Replay is ordinary execution over recorded activations.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::kit::*;

/// C-4, S0-50, S0-51: code that is played again decides everything again, and nothing of it is new work: the run goes on
/// with what it has not decided yet.
#[test]
fn replayed_code_decides_again_and_goes_on_with_new_work_only() {
    async fn chain(ctx: Ctx, trace: Trace) -> Done {
        for n in 0..3 {
            trace.note(format!("decides {n}, replaying {}", ctx.info().unwrap().replaying));
            ctx.activity(n.to_string(), "").await?;
        }
        nothing()
    }
    let trace = Trace::default();
    let traced = trace.clone();
    let function = workflow(move |ctx, _| chain(ctx, traced.clone()));
    let mut play = Player::new(function.clone(), Pins::default(), Mode::Whole);
    play.play("start\nresolve 0");
    trace.take();
    let mut run =
        play.transcript.replay(&function, RunOptions { double_play: false, ..RunOptions::default() }).unwrap();
    assert_eq!(trace.take(), ["decides 0, replaying true", "decides 1, replaying true"]);
    let live = run.activate(turn(vec![resolved(1, "")]));
    let names: Vec<_> = commands(&live).iter().map(|command| command.kind.to_string()).collect();
    assert_eq!(names, ["activity 2"], "and nothing that was decided before");
}

/// S0-50, S4-16, C-26: the closure of a side effect is there to be taken until its result is known, and never after.
#[test]
fn closure_of_a_side_effect_is_dropped_once_its_result_is_recorded() {
    async fn effect(ctx: Ctx, _: Payload) -> Done {
        let value = ctx.side_effect("R", || async { Ok("made".into()) }).await?;
        ctx.activity("A", value).await
    }
    let function = workflow(effect);
    let mut play = Player::new(function.clone(), Pins::default(), Mode::Whole);
    play.play("start");
    assert!(play.run().take_closure(Seq(0)).is_some());
    assert!(play.run().take_closure(Seq(0)).is_none(), "it is taken once");
    let mut again = play.transcript.replay(&function, RunOptions::default()).unwrap();
    assert!(again.take_closure(Seq(0)).is_some(), "without a result it has to be made again");
    play.play("resolve R = made\nresolve A");
    let mut again = play.transcript.replay(&function, RunOptions::default()).unwrap();
    assert!(again.take_closure(Seq(0)).is_none());
    assert_eq!(decided(&play.transcript), ["[] side effect R", "[] activity A", "[] complete"]);
}

/// S4-16, S4-49: on replay a future is ready at its first poll when its result had come, and pending when it had not.
#[test]
fn a_replayed_future_is_ready_if_its_result_had_come() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let (a, b) = (ctx.activity("A", ""), ctx.activity("B", ""));
        let a = a.await?;
        ctx.set_state("a", a);
        b.await
    }
    let mut evicted = Player::new(workflow(two), Pins::default(), Mode::Evicted);
    evicted.play("start\nresolve A = a");
    let inspection = evicted.run().inspect();
    let pending: Vec<_> = inspection.pending.iter().map(|pending| pending.name.as_str()).collect();
    assert_eq!(pending, ["B"]);
    evicted.play("resolve B = b");
    assert_eq!(decided(&evicted.transcript)[2..], ["[] state a = a", "[] complete b"]);
}

/// C-1: a run that is in memory is a memo of its transcript: evicted anywhere, it goes on as if nothing had been.
#[test]
fn a_run_evicted_at_any_turn_decides_the_same() {
    async fn busy(ctx: Ctx, _: Payload) -> Done {
        let branches = (0..3).map(|branch| {
            let ctx = ctx.clone();
            async move {
                let mut sum = ctx.random_u64() % 10;
                for step in 0..2 {
                    match ctx.race(ctx.activity(format!("{branch}.{step}"), ""), ctx.sleep(secs(9))).await? {
                        Either::First(_) => sum += 1,
                        Either::Second(()) => sum += 100,
                    }
                }
                Ok::<_, Failure>(sum)
            }
        });
        let sums: Result<Vec<_>, _> = ctx.parallel(branches).await.into_iter().collect();
        Ok(format!("{:?} {}", sums?, ctx.uuid()).into())
    }
    let lines = ["start", "resolve 0.0, fire #3", "resolve 2.0", "resolve 1.1", "fire, fire"];
    let whole = play(busy, &lines.join("\n")).transcript;
    assert_eq!(whole.turns.len(), lines.len());
    for evicted_after in 0..lines.len() {
        let mut script = lines.to_vec();
        script.insert(evicted_after + 1, "evict");
        let evicted = play(busy, &script.join("\n")).transcript;
        assert_eq!(whole.diff(&evicted).map(|difference| difference.to_string()), None, "after turn {evicted_after}");
        assert_eq!(whole.to_bytes(), evicted.to_bytes());
    }
}

/// S4-29, C-27: durable values are there again, and a changed one is noticed; a changed snapshot is not.
#[test]
fn durable_values_are_played_again_and_compared() {
    async fn keeps(ctx: Ctx, value: &'static str, snapshot: &'static str) -> Done {
        ctx.set_state("key", value);
        ctx.publish(snapshot);
        ctx.activity("A", "").await?;
        Ok(ctx.get_state("key").unwrap_or_default())
    }
    let recorded = play(|ctx, _| keeps(ctx, "one", "snapshot"), "start").transcript;
    let mut same = recorded.replay(&workflow(|ctx, _| keeps(ctx, "one", "other")), RunOptions::default()).unwrap();
    assert_eq!(commands(&same.activate(turn(vec![resolved(0, "")])))[0].kind.to_string(), "complete one");
    let failed = recorded.replay(&workflow(|ctx, _| keeps(ctx, "two", "snapshot")), RunOptions::default());
    let error = failed.err().unwrap().to_string();
    assert!(error.contains("value: recorded Some(one), new Some(two)"), "{error}");
}

/// C-1, C-13: the function is called once for each time the run is built, and not for each turn.
#[test]
fn the_function_is_called_once_for_each_time_the_run_is_built() {
    async fn two(ctx: Ctx, calls: Arc<AtomicUsize>) -> Done {
        calls.fetch_add(1, Ordering::SeqCst);
        ctx.activity("A", "").await?;
        ctx.activity("B", "").await
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let called = calls.clone();
    let mut played = play(move |ctx, _| two(ctx, called.clone()), "start\nresolve A");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    played.play("evict\nresolve B");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// S0-50: a local activity that wants a pause sleeps as a timer of the run, and is scheduled again as its next attempt.
#[test]
fn a_long_pause_of_a_local_activity_is_a_timer_of_the_run() {
    async fn local(ctx: Ctx, _: Payload) -> Done {
        ctx.local_activity("L", "input").summary("mine").await
    }
    check(
        local,
        "start
         backoff L
         fire 1m 30s
         resolve L = done",
        expect![[r#"
            turn 0  [] local activity L
            turn 1  [] timer 1m 30s
            turn 2  [] local activity L
            turn 3  [] complete done
        "#]],
    );
    let played = play(local, "start\nbackoff L\nfire 1m 30s");
    let CommandKind::LocalActivity(first) = &played.transcript.turns[0].commands[0].kind else { panic!() };
    let CommandKind::LocalActivity(second) = &played.transcript.turns[2].commands[0].kind else { panic!() };
    assert_eq!((first.attempt, first.seq, second.attempt, second.seq), (1, Seq(0), 2, Seq(2)));
    assert_eq!((&second.input, &second.summary), (&first.input, &first.summary));
    async fn raced(ctx: Ctx, _: Payload) -> Done {
        ctx.with_timeout(secs(60), ctx.local_activity("L", "input")).await
    }
    check(
        raced,
        "start
         backoff L
         fire 1m",
        expect![[r#"
            turn 0  [] local activity L  [] timer 1m
            turn 1  [] timer 1m 30s
            turn 2  [] cancel #2  [] fail: the deadline passed
        "#]],
    );
}

/// The time limit of a local activity counts from its first attempt, however long the pauses are.
#[test]
fn a_local_activity_remembers_when_it_was_first_scheduled() {
    let mut run =
        Run::new(workflow(|ctx: Ctx, _| async move { ctx.local_activity("L", "").await }), RunOptions::default())
            .unwrap();
    run.activate(turn(vec![start(7)]));
    let first_scheduled = Some(Timestamp::from_millis(5));
    let backoff = Resolution::Backoff { attempt: 2, pause: secs(90), first_scheduled };
    run.activate(turn(vec![Job::resolve(Seq(0), backoff)]));
    let again = run.activate(turn(vec![Job::resolve(Seq(1), Resolution::Timer)]));
    let CommandKind::LocalActivity(again) = &commands(&again)[0].kind else { panic!("{again:?}") };
    assert_eq!((again.attempt, again.first_scheduled), (2, first_scheduled));
}

/// People are told where two transcripts part, even if one of them only goes on.
#[test]
fn the_first_difference_of_two_transcripts_is_named() {
    async fn one(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await
    }
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        ctx.activity("B", "").detach();
        a.await
    }
    // Both calls of the first command stand on lines of their own, so only what follows it is looked at.
    let (one, mut two) = (play(one, "start").transcript, play(two, "start").transcript);
    two.turns[0].commands[0] = one.turns[0].commands[0].clone();
    let difference = one.diff(&two).unwrap();
    assert_eq!((difference.turn, difference.what.as_str(), difference.first.as_str()), (0, "command 1", "nothing"));
    assert!(difference.second.contains("[] Activity"), "{difference}");
    assert_eq!(one.diff(&one.clone()), None);
}

/// Durations are written for people, and read back to the nanosecond.
#[test]
fn parts_of_a_second_come_back_from_the_text_form() {
    async fn naps(ctx: Ctx, _: Payload) -> Done {
        for nanos in [1, 500_000_000, 2_500_000_000, 999_999_999] {
            ctx.sleep(Duration::from_nanos(nanos)).detach();
        }
        nothing()
    }
    let recorded = play(naps, "start").transcript;
    assert_eq!(Transcript::from_text(&recorded.to_text()).as_ref(), Ok(&recorded));
}
