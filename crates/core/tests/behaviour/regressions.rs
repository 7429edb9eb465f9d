//! Bugs that were found by attacking the core, each with its story.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use dacapo_core::{
    Activation, ActivationError, Activity, Completion, Ctx, Either, Enabled, Failure, Job, OwnPolicy, Payload, Pins,
    Policy, PolicyError, PolicySpec, Run, RunOptions, Signal, Start, Timer, Timestamp, Turn, Update,
};
use dacapo_testkit::{check, expect, render_completion, workflow};
use futures::FutureExt;

use crate::deadline::Deadline;
use crate::kit::*;

fn play(run: &mut Run, jobs: Vec<Job>) -> String {
    render_completion(&run.activate(Activation::Turn(Turn::new(Timestamp::default(), jobs))))
}

fn single<F, P>(function: F) -> Run
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Done> + Send + 'static,
{
    Run::new(workflow(function), RunOptions { double_play: false, ..RunOptions::default() }).unwrap()
}

fn start() -> Vec<Job> {
    vec![Job::Start(Box::new(Start { workflow: "kit".into(), ..Start::default() }))]
}

fn signal(name: &'static str) -> Vec<Job> {
    vec![Job::Signal(Box::new(Signal { name: name.into(), ..Signal::default() }))]
}

/// Something that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("bomb");
    }
}

/// Of several futures that were ready at once, a race of many gave one and forgot the others.
#[test]
fn every_future_of_a_race_of_many_is_heard_of() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let ready = |place: u32| {
            let ctx = ctx.clone();
            async move {
                match place {
                    0 | 1 => Ok::<_, Failure>(format!("cached {place}")),
                    _ => ctx.activity("A", "").await.map(|value| value.to_string()),
                }
            }
        };
        let mut race = ctx.select_all((0..3).map(ready));
        let mut heard = Vec::new();
        while !race.is_empty() {
            let (_, output, others) = race.await;
            heard.push(output?);
            race = others;
        }
        say(heard.join(", "))
    }
    check(
        main,
        "start
         resolve A = fetched",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] complete cached 0, cached 1, fetched
        "#]],
    );
}

/// A side of a race that waited for two signals took the second although the race had been decided before it came.
#[test]
fn a_losing_side_takes_nothing_that_came_after_the_race_was_decided() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let activity = ctx.activity("B", "");
        ctx.sleep(secs(2)).await?;
        let inner = ctx.clone();
        let side = async move {
            inner.next_signal("x").await?;
            inner.next_signal("y").await?;
            Ok::<_, Failure>(())
        };
        let winner = match ctx.race(side, activity).await? {
            Either::First(()) => "signals",
            Either::Second(_) => "B",
        };
        say(format!("{winner} won, y is {}", if ctx.try_signal("y").is_some() { "there" } else { "gone" }))
    }
    check(
        main,
        "start
         signal x, resolve B, signal y
         fire 2s",
        expect![[r#"
            turn 0  [] activity B  [] timer 2s
            turn 1
            turn 2  [] complete B won, y is there
        "#]],
    );
}

/// A panic that the workflow caught inside a race left the run looking at results for ever and taking none.
#[test]
fn run_goes_on_after_a_panic_caught_inside_a_race_or_a_shield() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let race = ctx.race(async { broken().await }, ctx.sleep(secs(5)));
        let raced = AssertUnwindSafe(race).catch_unwind().await.is_err();
        let shielded = AssertUnwindSafe(ctx.shield(broken())).catch_unwind().await.is_err();
        let value = ctx.activity("A", "").await?;
        say(format!("caught {raced} and {shielded}, got {value}"))
    }
    async fn broken() -> Result<(), Failure> {
        panic!("a bug of the user's")
    }
    check(
        main,
        "start
         resolve A = a",
        expect![[r#"
            turn 0  [] timer 5s  [] cancel #0  [] activity A
            turn 1  [] complete caught true and true, got a
        "#]],
    );
}

/// A timer that was replaced inside a state cell was never cancelled.
#[test]
fn dropping_a_future_inside_a_state_update_cancels_it() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let debounce = ctx.state(None::<Timer>);
        let timer = ctx.sleep(secs(60));
        debounce.update(|kept| *kept = Some(timer));
        ctx.next_signal("again").await?;
        let timer = ctx.sleep(secs(61));
        debounce.update(|kept| *kept = Some(timer));
        ctx.next_signal("end").await?;
        say("done")
    }
    check(
        main,
        "start
         signal again",
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [] timer 1m 1s  [] cancel #0
        "#]],
    );
}

/// A setter that panicked left another command in the place of the one it was to change.
#[test]
fn a_setter_that_panics_leaves_the_command_as_it_was() {
    let mut run = single(|ctx, _| async move {
        let set = || drop(ctx.child("kid", "").with(|_| panic!("setter")));
        assert!(catch_unwind(AssertUnwindSafe(set)).is_err());
        ctx.next_signal("never").await?;
        say("done")
    });
    assert_eq!(play(&mut run, start()), "turn 0  [] child kid  [] cancel #0\n");
}

/// An update that failed with a very long chain of causes was recorded with a shorter one, and then did not replay.
#[test]
fn a_long_chain_of_causes_is_the_same_live_and_on_replay() {
    fn deep(levels: u32) -> Failure {
        (0..levels).fold(fail("leaf"), |cause, level| fail(&format!("level {level}")).caused_by(cause))
    }
    async fn main(ctx: Ctx, _: Payload) -> Done {
        ctx.on_update("deep", |_| Ok(()), |_| async { Err(deep(200)) });
        ctx.next_signal("go").await?;
        say(format!("{} links", deep(200).chain().count()))
    }
    let mut whole = dacapo_testkit::Player::new(workflow(main), Pins::default(), dacapo_testkit::Mode::Evicted);
    whole.play("start\nupdate deep 1\nsignal go");
    assert!(!whole.printed.contains("does not replay"), "{}", whole.printed);
    assert!(whole.printed.ends_with("turn 2  [] complete 64 links\n"), "{}", whole.printed);
}

/// A run that is played twice could not be interrupted in its second instance.
#[test]
fn both_instances_of_a_run_that_is_played_twice_can_be_interrupted() {
    let spins = workflow(|ctx: Ctx, _| async move {
        let deadline = Deadline::of("the interrupt");
        loop {
            ctx.now();
            deadline.check();
        }
    });
    let mut run = Run::new(spins, RunOptions { double_play: true, ..RunOptions::default() }).unwrap();
    let watch = run.watch();
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = over.clone();
    #[allow(clippy::disallowed_methods, reason = "a thread of its own watches the play")]
    let watcher = std::thread::spawn(move || {
        while !seen.load(std::sync::atomic::Ordering::Relaxed) {
            watch.interrupt("too long");
            std::thread::yield_now();
        }
    });
    let answer = run.activate(Activation::Turn(Turn::new(Timestamp::default(), start())));
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    watcher.join().unwrap();
    let Completion::Failed(error) = answer else { panic!("{answer:?}") };
    assert!(matches!(*error, ActivationError::Interrupted { .. }), "{error}");
}

/// A waker of the user's own that panicked came out of `activate`.
#[test]
fn a_waker_that_panics_fails_the_activation() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker");
        }
    }
    let mut run = single(|ctx, _| async move {
        let kept: Arc<Mutex<Option<Activity>>> = Arc::default();
        let (keep, inner) = (kept.clone(), ctx.clone());
        ctx.parallel([async move {
            let mut activity = inner.activity("A", "");
            let waker = Waker::from(Arc::new(Panics));
            assert!(Pin::new(&mut activity).poll(&mut Context::from_waker(&waker)).is_pending());
            *keep.lock().unwrap() = Some(activity);
        }])
        .await;
        ctx.next_signal("never").await?;
        drop(kept);
        say("done")
    });
    play(&mut run, start());
    let done = dacapo_core::Outcome::Completed("".into());
    let resolution = dacapo_core::Resolution::Activity(done);
    let answer = play(&mut run, vec![Job::resolve(dacapo_core::Seq(0), resolution)]);
    assert!(answer.starts_with("failed: workflow code panicked in the root unit"), "{answer}");
}

/// A panic that carries a bomb came out of `activate`.
#[test]
fn a_panic_that_carries_a_bomb_fails_the_activation() {
    let mut run = single(|_, _| async move { std::panic::panic_any(Bomb) });
    assert!(play(&mut run, start()).contains("a panic without a message"));
}

/// Two destructors that panicked one after the other ended the process.
#[test]
fn two_destructors_that_panic_do_not_abort_the_process() {
    let mut run = single(|ctx, _| async move {
        let (first, second) = (Bomb, Bomb);
        ctx.on_query("first", move |_| {
            let _ = &first;
            say("")
        });
        ctx.on_query("second", move |_| {
            let _ = &second;
            say("")
        });
        ctx.next_signal("never").await?;
        say("done")
    });
    play(&mut run, start());
    assert_eq!(run.activate(Activation::Evict), Completion::Evicted);

    let mut run = single(|ctx, _| async move {
        let (first, second) = (Bomb, Bomb);
        let first = ctx.side_effect("first", move || async move {
            drop(first);
            say("")
        });
        let second = ctx.side_effect("second", move || async move {
            drop(second);
            say("")
        });
        ctx.next_signal("drop").await?;
        drop((first, second));
        say("done")
    });
    play(&mut run, start());
    assert!(play(&mut run, signal("drop")).contains("bomb"));
}

/// A policy that used a ctx, and a waker that did so when it was dropped, waited for the run's lock for ever.
#[test]
fn user_code_that_meets_the_ctx_in_odd_places_does_not_hang() {
    struct CallsCtx(Arc<Mutex<Option<Ctx>>>);
    impl Policy for CallsCtx {
        fn choose(&mut self, _: &Enabled<'_>) -> Result<usize, PolicyError> {
            let ctx = self.0.lock().unwrap().clone();
            ctx.map(|ctx| ctx.now());
            Ok(0)
        }
    }
    let shared: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let (outside, kept) = (shared.clone(), shared.clone());
    let main = workflow(move |ctx: Ctx, _| {
        let kept = kept.clone();
        async move {
            *kept.lock().unwrap() = Some(ctx.clone());
            ctx.parallel((0..2).map(|_| async {})).await;
            say("done")
        }
    });
    let pins = Pins { policy: PolicySpec::Own { name: "calls-ctx".into() }, ..Pins::default() };
    let own: OwnPolicy = Arc::new(move || Box::new(CallsCtx(outside.clone())));
    let options = RunOptions { pins, double_play: false, own_policy: Some(own), ..RunOptions::default() };
    let mut run = Run::new(main, options).unwrap();
    assert!(play(&mut run, start()).starts_with("failed: "));

    struct CallsWhenDropped(Ctx);
    impl Drop for CallsWhenDropped {
        fn drop(&mut self) {
            self.0.now();
        }
    }
    impl Wake for CallsWhenDropped {
        fn wake(self: Arc<Self>) {}
    }
    let mut run = single(|ctx, _| async move {
        let mut activity = ctx.activity("A", "");
        {
            let waker = Waker::from(Arc::new(CallsWhenDropped(ctx.clone())));
            assert!(Pin::new(&mut activity).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        activity.detach();
        say("done")
    });
    assert_eq!(play(&mut run, start()), "turn 0  [] activity A  [] complete done\n");
}

/// A query that sent on a channel of its run was answered, and the run then went another way than its record.
#[test]
fn a_query_that_wakes_a_unit_fails_and_the_run_is_built_again() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<u32>();
        ctx.on_query("send", move |_| {
            sender.send(1).map_err(|error| fail(&error.to_string()))?;
            say("sent")
        });
        tokio::select! {
            biased;
            _ = receiver.recv() => ctx.activity("from the query", "").await,
            result = ctx.activity("A", "") => result,
        }
    }
    check(
        main,
        "start
         query send
         signal other",
        expect![[r#"
            turn 0  [] activity A
            no answer: query "send" tried to change the run; a query only reads
            failed: scheduler violation in the root unit, at crates/core/tests/behaviour/regressions.rs:351:26: something outside the run woke this unit: a timer, channel or task of another runtime; await only what ctx gives, and move work on the world into an activity or `ctx.side_effect`
        "#]],
    );
}

/// A validator that sent on a channel of its run made a turn that did not replay.
#[test]
fn a_validator_that_wakes_a_unit_fails_the_activation() {
    let mut run = single(|ctx, _| async move {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<u32>();
        let validator = move |_: &Update| {
            sender.send(1).map_err(|error| fail(&error.to_string()))?;
            Err(fail("no"))
        };
        ctx.on_update("u", validator, |_| async { say("") });
        receiver.recv().await;
        say("done")
    });
    play(&mut run, start());
    let update = Update { id: "1".into(), name: "u".into(), ..Update::default() };
    let answer = play(&mut run, vec![Job::Update(Box::new(update))]);
    assert!(answer.starts_with("failed: scheduler violation"), "{answer}");
}

/// An option set on a local activity in its pause was reported as a panic of the workflow's.
#[test]
fn an_option_set_in_the_pause_of_a_local_activity_is_set_too_late() {
    async fn main(ctx: Ctx, _: Payload) -> Done {
        let mut local = ctx.local_activity("L", "");
        assert!(futures::poll!(&mut local).is_pending());
        ctx.next_signal("go").await?;
        assert!(futures::poll!(&mut local).is_pending());
        local.summary("late").await
    }
    let mut late = dacapo_testkit::Player::new(workflow(main), Pins::default(), dacapo_testkit::Mode::Whole);
    late.play("start\nbackoff L, signal go");
    assert!(late.printed.contains("comes too late, because local activity L is sealed"), "{}", late.printed);
}

/// It was taken for a difference between the two plays.
#[test]
fn a_second_play_that_is_stopped_is_stopped_and_not_different() {
    let plays = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = plays.clone();
    let spins = workflow(move |ctx: Ctx, _| {
        let count = count.clone();
        async move {
            let deadline = Deadline::of("the interrupt");
            if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
                return Ok("".into());
            }
            loop {
                ctx.now();
                deadline.check();
            }
        }
    });
    let mut run = Run::new(spins, RunOptions { double_play: true, ..RunOptions::default() }).unwrap();
    let watch = run.watch();
    #[allow(clippy::disallowed_methods, reason = "a thread of its own watches the play")]
    let watcher = std::thread::spawn(move || {
        let deadline = Deadline::of("the second play");
        while plays.load(std::sync::atomic::Ordering::Relaxed) < 2 {
            deadline.check();
        }
        watch.interrupt("too long");
    });
    let answer = run.activate(Activation::Turn(Turn::new(Timestamp::default(), start())));
    watcher.join().unwrap();
    let Completion::Failed(error) = answer else { panic!("{answer:?}") };
    assert!(matches!(*error, ActivationError::Interrupted { .. }), "{error}");
}

/// A payload whose bytes differ each time that they are written, as those of a cipher do, was a difference between two plays.
#[test]
fn two_plays_are_compared_by_the_digests_of_their_payloads() {
    use dacapo_core::PayloadDigest;
    use std::sync::atomic::{AtomicU64, Ordering};
    let played = |digest: fn(u64) -> &'static str| {
        let written = AtomicU64::new(0);
        let next = move || {
            let time = written.fetch_add(1, Ordering::Relaxed);
            let digest = PayloadDigest { key: "k1".into(), value: digest(time).into() };
            Payload { digest: Some(Box::new(digest)), ..Payload::json(format!("cipher {time}")) }
        };
        let next = Arc::new(next);
        let writes = workflow(move |ctx: Ctx, _| {
            let next = next.clone();
            async move {
                ctx.publish(next());
                ctx.activity("pay", next()).await
            }
        });
        let mut run = Run::new(writes, RunOptions { double_play: true, ..RunOptions::default() }).unwrap();
        run.activate(Activation::Turn(Turn::new(Timestamp::default(), start())))
    };
    let same = played(|_| "4711");
    assert!(matches!(same, Completion::Turn(_)), "{same:?}");
    let other = played(|time| if time < 3 { "4711" } else { "0815" });
    let Completion::Failed(error) = other else { panic!("{other:?}") };
    assert!(matches!(*error, ActivationError::DoublePlay { .. }), "{error}");
}
