//! Turns: metadata, then jobs, then code, then one completion.

use crate::kit::*;

/// S0-38: the first thing that code sees is the time of its activation, and it never goes back.
#[test]
fn the_time_of_the_turn_holds_from_its_first_instruction_and_never_goes_back() {
    async fn clock(ctx: Ctx, _: Payload) -> Done {
        for _ in 0..3 {
            ctx.activity(ctx.now().to_string(), "").await?;
        }
        Ok(ctx.now().to_string().into())
    }
    check(
        clock,
        "at 10s: start
         at 25s: resolve #0
         at 20s: resolve #1
         at 30s: resolve #2",
        expect![[r#"
            turn 0  [] activity 1970-01-01T00:00:10Z
            turn 1  [] activity 1970-01-01T00:00:25Z
            turn 2  [] activity 1970-01-01T00:00:25Z
            turn 3  [] complete 1970-01-01T00:00:30Z
        "#]],
    );
}

/// S0-38: how much history there is comes with the activation too, and is played again as it was.
#[test]
fn the_size_of_the_history_holds_from_the_first_instruction() {
    async fn sized(ctx: Ctx, _: Payload) -> Done {
        let info = ctx.info().unwrap();
        ctx.activity(format!("{} {}", info.turn, info.history.length), "").await
    }
    let mut played = Player::new(workflow(sized), Pins::default(), Mode::Evicted);
    let mut first = Turn::new(Timestamp::default(), vec![start(7)]);
    first.history.length = 42;
    played.activate(first);
    assert_eq!(played.printed, "turn 0  [] activity 0 42\n", "and it replays");
}

/// S0-39: jobs are applied in the order in which the activation lists them.
#[test]
fn signals_are_taken_in_the_order_of_the_jobs() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let first = ctx.next_signal("word").await?.input.remove(0);
        let second = ctx.next_signal("word").await?.input.remove(0);
        Ok(format!("{first} {second}").into())
    }
    for script in ["start\nsignal word = a, signal word = b", "start\nsignal word = a\nsignal word = b"] {
        assert_eq!(decided(&play(two, script).transcript), ["[] complete a b"]);
    }
    assert_eq!(decided(&play(two, "start\nsignal word = b, signal word = a").transcript), ["[] complete b a"]);
    assert_eq!(decided(&play(two, "start, signal word = a, signal word = b").transcript), ["[] complete a b"]);
}

/// S0-40: every job is applied before any code runs: what stands last in the activation is seen by the first instruction.
#[test]
fn all_jobs_are_applied_before_any_code_runs() {
    async fn look(ctx: Ctx, _: Payload) -> Done {
        let cancelled = ctx.cancellation().is_some();
        let signal = ctx.try_signal("word").is_some();
        ctx.set_state("seen", format!("cancelled {cancelled}, signal {signal}"));
        let patched = ctx.patched("patch");
        Ok(format!("patched {patched}").into())
    }
    check(
        look,
        "start, patch patch, signal word, cancel: enough",
        expect![[r#"
            turn 0  [] state seen = cancelled true, signal true  [] patch patch  [] complete patched true
        "#]],
    );
    async fn resumed(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await?;
        Ok(format!("{:?}", ctx.cancellation().map(|cancelled| cancelled.reason)).into())
    }
    check(
        resumed,
        "start
         resolve A, cancel: enough",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] complete Some("enough")
        "#]],
    );
}

/// S0-44, T-28: one completion answers each activation, whatever becomes of it, and says what went wrong.
#[test]
fn every_activation_gets_one_answer_that_says_what_happened() {
    async fn moody(ctx: Ctx, mood: Payload) -> Done {
        match mood.as_text() {
            Some("panic") => panic!("a bad day"),
            Some("fail") => Err(Failure::application("no")),
            _ => ctx.activity("A", "").await,
        }
    }
    let answer = |mood: &str| play(moody, &format!("start = {mood}")).printed;
    assert_eq!(answer("good"), "turn 0  [] activity A\n");
    assert_eq!(answer("fail"), "turn 0  [] fail: no\n");
    assert_eq!(
        answer("panic"),
        "failed: workflow code panicked in the root unit, after no call: a bad day\n\
         The run stays open and is played again from the beginning; deploy code that does not panic here, or return an \
         `Err` to fail the run.\n"
    );
    let mut run = Run::new(workflow(moody), RunOptions::default()).unwrap();
    let early = run.activate(turn(vec![resolved(0, "")]));
    let Completion::Failed(error) = early else { panic!("{early:?}") };
    assert_eq!(
        error.to_string(),
        "the activation does not fit the run: the first job of the first turn must be a start"
    );
    assert_eq!(commands(&run.activate(turn(vec![start(7)]))).len(), 1);
    let again = run.activate(turn(vec![start(7)]));
    let Completion::Failed(error) = again else { panic!("{again:?}") };
    assert_eq!(error.to_string(), "the activation does not fit the run: the run was started before");
}

/// S0-3, S2-27: hand-written activations are all the core needs, and the commands of a turn are what the record gains.
#[test]
fn activations_are_all_the_core_needs() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "").await?;
        ctx.activity("B", a).await
    }
    let mut run = Run::new(workflow(two), RunOptions::default()).unwrap();
    let mut transcript = Transcript::new("kit", Pins::default());
    for jobs in [vec![start(7)], vec![resolved(0, "a")], vec![resolved(1, "b")]] {
        let turn = Turn::new(Timestamp::default(), jobs);
        let Completion::Turn(done) = run.activate(Activation::Turn(turn.clone())) else { panic!("a turn is played") };
        let before = transcript.turns.len();
        transcript.record(&turn, &done, &"build".into());
        assert_eq!(transcript.turns[before].commands, done.commands);
    }
    assert_eq!(decided(&transcript), ["[] activity A", "[] activity B", "[] complete b"]);
}

/// C-13: an activation without anything for the code polls no unit.
#[test]
fn a_unit_is_never_polled_without_cause() {
    async fn counted(ctx: Ctx, trace: Trace) -> Done {
        let mut activity = ctx.activity("A", "");
        std::future::poll_fn(|cx| {
            trace.note("poll");
            std::pin::Pin::new(&mut activity).poll(cx)
        })
        .await
    }
    let trace = Trace::default();
    let traced = trace.clone();
    let mut played = play(move |ctx, _| counted(ctx, traced.clone()), "start");
    assert_eq!(trace.take().len(), 1);
    played.play("signal unknown\npatch p\nseed 3\nquery unknown");
    assert_eq!(trace.take().len(), 0);
    played.play("resolve A");
    assert_eq!(trace.take().len(), 1);
}

/// T-24: a signal cannot be seen before its turn, neither the first time nor when the run is played again with the whole
/// history at hand.
#[test]
fn a_signal_is_seen_from_its_turn_on_and_not_before() {
    async fn peek(ctx: Ctx, _: Payload) -> Done {
        let early = ctx.try_signal("word").is_some();
        ctx.set_state("early", early.to_string());
        ctx.activity("A", "").await?;
        let late = ctx.try_signal("word").is_some();
        ctx.set_state("late", late.to_string());
        ctx.activity("B", "").await
    }
    check(
        peek,
        "start
         signal word
         resolve A
         resolve B",
        expect![[r#"
            turn 0  [] state early = false  [] activity A
            turn 1
            turn 2  [] state late = true  [] activity B
            turn 3  [] complete
        "#]],
    );
}

/// The end of time is a moment like any other; nothing comes after it, and no time passes backwards.
#[test]
fn moments_stop_at_the_ends_of_time() {
    let last = Timestamp(u64::MAX);
    assert_eq!(Timestamp(u64::MAX - 1).after(secs(5)), last);
    assert_eq!(Timestamp::default().after(Duration::MAX), last);
    assert_eq!(Timestamp::default().since(last), Duration::ZERO);
}
