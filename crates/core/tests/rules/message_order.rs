//! Messages are handled in the order in which they were acknowledged, however they are split into turns.

use std::task::Poll;

use crate::kit::*;

fn amount(input: &[Payload]) -> u64 {
    input.first().and_then(Payload::as_text).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Adds what signals `deposit` and updates `add` bring; an update of 0 is rejected.
fn take_deposits(ctx: &Ctx) -> StateCell<u64> {
    let sum = ctx.state(0);
    let inside = sum.clone();
    ctx.on_signal("deposit", move |signal| {
        let sum = inside.clone();
        async move {
            sum.update(|sum| *sum += amount(&signal.input));
            Ok(())
        }
    });
    let inside = sum.clone();
    ctx.on_update(
        "add",
        |update| if amount(&update.input) == 0 { Err(Failure::application("nothing to add")) } else { Ok(()) },
        move |update| {
            let sum = inside.clone();
            async move {
                sum.update(|sum| *sum += amount(&update.input));
                nothing()
            }
        },
    );
    sum
}

fn total(sum: &StateCell<u64>) -> Done {
    Ok(Payload::from(sum.read(u64::to_string)))
}

async fn plain(ctx: Ctx, _: Payload) -> Done {
    let sum = take_deposits(&ctx);
    ctx.next_signal("finish").await?;
    total(&sum)
}

async fn in_a_race(ctx: Ctx, _: Payload) -> Done {
    let sum = take_deposits(&ctx);
    ctx.race(ctx.sleep(secs(3600)), ctx.next_signal("finish")).await?;
    total(&sum)
}

async fn in_a_branch(ctx: Ctx, _: Payload) -> Done {
    let sum = take_deposits(&ctx);
    let (inside, seen) = (ctx.clone(), sum.clone());
    let branch = async move {
        inside.next_signal("finish").await?;
        total(&seen)
    };
    ctx.parallel([branch]).await.remove(0)
}

/// Handlers that go on to wait: what they did before is what counts.
async fn with_slow_handlers(ctx: Ctx, _: Payload) -> Done {
    let sum = ctx.state(0);
    let (inside, seen) = (ctx.clone(), sum.clone());
    ctx.on_signal("deposit", move |signal| {
        let (ctx, sum) = (inside.clone(), seen.clone());
        async move {
            sum.update(|sum| *sum += amount(&signal.input));
            ctx.sleep(secs(60)).await?;
            Ok(())
        }
    });
    ctx.on_update("add", |_| Err(Failure::application("not here")), |_| async { nothing() });
    ctx.next_signal("finish").await?;
    total(&sum)
}

/// Handlers of a phase, which go one after the other.
async fn in_a_phase(ctx: Ctx, _: Payload) -> Done {
    let sum = ctx.state(0);
    let phase = ctx
        .phase(&sum)
        .on_signal("deposit", |sum, signal| {
            *sum += amount(&signal.input);
            Handled::done()
        })
        .on_update(
            "add",
            |_, update| if amount(&update.input) == 0 { Err(Failure::application("nothing to add")) } else { Ok(()) },
            |sum, update| {
                *sum += amount(&update.input);
                Handled::done()
            },
        );
    ctx.race(phase.into_future(), ctx.next_signal("finish")).await?;
    total(&sum)
}

/// Handlers of a phase whose second part is a unit of its own, and waits for nothing.
async fn in_a_phase_with_second_parts(ctx: Ctx, _: Payload) -> Done {
    let sum = ctx.state(0);
    let inside = sum.clone();
    let phase = ctx
        .phase(&sum)
        .on_signal("deposit", move |_, signal| {
            let sum = inside.clone();
            Handled::with(async move {
                sum.update(|sum| *sum += amount(&signal.input));
                nothing()
            })
        })
        .on_update("add", |_, _| Err(Failure::application("not here")), |_, _| Handled::done());
    ctx.race(phase.into_future(), ctx.next_signal("finish")).await?;
    total(&sum)
}

type Start = fn() -> Workflow;

const WORKFLOWS: [(&str, Start); 6] = [
    ("plain", || workflow(plain)),
    ("in a race", || workflow(in_a_race)),
    ("in a branch", || workflow(in_a_branch)),
    ("with slow handlers", || workflow(with_slow_handlers)),
    ("in a phase", || workflow(in_a_phase)),
    ("in a phase, with second parts", || workflow(in_a_phase_with_second_parts)),
];

/// What the run returns when these jobs come in turns that end where the bits of `split` say.
fn outcome(workflow: Workflow, pins: Pins, jobs: &[String], split: u32) -> String {
    let mut script = jobs[0].clone();
    for (place, job) in jobs.iter().enumerate().skip(1) {
        script += if split & (1 << (place - 1)) == 0 { ", " } else { "\n" };
        script += job;
    }
    let mut play = Player::new(workflow, pins, Mode::Whole);
    play.play(&script);
    let last = play.transcript.turns.last().and_then(|turn| turn.commands.last());
    match last.map(|command| &command.kind) {
        Some(CommandKind::Complete { result }) => result.as_text().unwrap_or_default().to_owned(),
        _ => panic!("{script}\n{}", play.printed),
    }
}

/// All messages of up to three kinds, this many of them. The amounts tell which of them arrived.
fn sequences(length: u32) -> impl Iterator<Item = Vec<String>> {
    (0..3_u32.pow(length)).map(move |mut number| {
        let mut jobs = vec!["start".to_owned()];
        for place in 0..length {
            let amount = 1 << place;
            jobs.push(match number % 3 {
                0 => format!("signal deposit = {amount}"),
                1 => format!("update add u{place} = {amount}"),
                _ => format!("update add u{place} = 0"),
            });
            number /= 3;
        }
        jobs.push("signal finish".to_owned());
        jobs
    })
}

/// C-48: whichever messages come, by signal and by update, all in the turn of the start or spread over turns in any way:
/// the run returns the same.
#[test]
fn every_split_of_the_messages_into_turns_gives_the_same_result() {
    let policies = [PolicySpec::Deterministic, PolicySpec::Random { seed: 5 }];
    let mut plays = 0;
    for (name, start) in WORKFLOWS {
        for jobs in (0..=3).flat_map(sequences) {
            let splits = 1 << (jobs.len() - 1);
            let apart = outcome(start(), Pins::default(), &jobs, splits - 1);
            for (policy, split) in policies.iter().flat_map(|policy| (0..splits).map(move |split| (policy, split))) {
                let pins = Pins { policy: policy.clone(), ..Pins::default() };
                let found = outcome(start(), pins, &jobs, split);
                assert_eq!(found, apart, "{name}, {policy:?}, {jobs:?}, split {split:b}");
                plays += 1;
            }
        }
    }
    assert!(plays > 5_000, "{plays} plays");
}

/// C-48: a delayed start, or a process that was down: everything comes in the first turn.
#[test]
fn signal_wait_in_the_first_turn_sees_the_deposits_acknowledged_before_it() {
    let script = "start, signal deposit = 1, signal deposit = 2, update add u = 3, signal deposit = 4, signal deposit = 5, signal finish";
    check(
        plain,
        script,
        expect![[r#"
            turn 0  [h2] accept update u  [h2] complete update u ok  [] complete 15
        "#]],
    );
    check_workflow(
        &workflow(plain),
        root_first(),
        script,
        expect![[r#"
            turn 0  [h2] accept update u  [h2] complete update u ok  [] complete 0
        "#]],
    );
}

/// C-48, S0-13: handlers that are registered after a wait take what was kept for them before the root sees a later signal.
#[test]
fn signal_wait_lets_handlers_registered_late_take_earlier_messages_first() {
    check(
        |ctx: Ctx, _| async move {
            ctx.activity("prepare", "").await?;
            plain(ctx, Payload::empty()).await
        },
        "start
         signal deposit = 1, signal deposit = 2, signal finish, signal deposit = 4
         resolve prepare",
        expect![[r#"
            turn 0  [] activity prepare
            turn 1
            turn 2  [] complete 7
        "#]],
    );
}

/// C-48: the order of a race is the order of arrival, although the earlier signal is shown later.
#[test]
fn signal_that_waits_for_an_earlier_handler_still_wins_against_a_later_timer() {
    check(
        |ctx: Ctx, _| async move {
            let sum = take_deposits(&ctx);
            let won = match ctx.race(ctx.sleep(secs(5)), ctx.next_signal("finish")).await? {
                Either::First(()) => "timer",
                Either::Second(_) => "signal",
            };
            Ok(Payload::from(format!("{won} {}", sum.read(|sum| *sum))))
        },
        "start
         signal deposit = 1, signal finish, fire 5s",
        expect![[r#"
            turn 0  [] timer 5s
            turn 1  [] complete signal 1
        "#]],
    );
}

/// C-48: a message that no unit handles delays nothing: a message without a handler, and one of which the handler has started.
#[test]
fn signal_wait_does_not_wait_for_messages_without_a_handler() {
    check(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            ctx.on_signal("begin", move |_| {
                let ctx = inside.clone();
                async move {
                    let word = ctx.next_signal("word").await?;
                    ctx.set_state("word", word.input[0].clone());
                    Ok(())
                }
            });
            ctx.next_signal("finish").await?;
            nothing()
        },
        "start, signal other, signal begin, signal word = said, signal finish",
        expect![[r#"
            turn 0  [h0] state word = said  [] complete
        "#]],
    );
}

/// C-48: a handler that is held back behind one that waits may be held for long, so no signal waits for it.
#[test]
fn signal_wait_does_not_wait_for_a_handler_that_waits_for_its_phase() {
    check(
        |ctx: Ctx, _| async move {
            let begun = ctx.state(0);
            let inside = ctx.clone();
            let phase = ctx.phase(&begun).on_signal("work", move |begun, _| {
                *begun += 1;
                let ctx = inside.clone();
                Handled::with(async move {
                    let go = ctx.next_signal("go").await?;
                    ctx.activity(go.input[0].as_text().unwrap_or_default().to_owned(), "").await
                })
            });
            ctx.race(phase.into_future(), ctx.next_signal("finish")).await?;
            Ok(Payload::from(begun.read(i32::to_string)))
        },
        "start
         signal work, signal work, signal go = A
         signal finish",
        expect![[r#"
            turn 0
            turn 1  [h0,a0] activity A
            turn 2  [] complete 1
              warning: the workflow returned while [h0,a0] [h1] still waited; abandoned
        "#]],
    );
}

/// C-48: asking for a signal without waiting follows the same order.
#[test]
fn try_signal_finds_nothing_while_an_earlier_message_waits_for_its_handler() {
    check(
        |ctx: Ctx, _| async move {
            let sum = take_deposits(&ctx);
            let mut asked = 1;
            while ctx.try_signal("finish").is_none() {
                asked += 1;
                ctx.yield_now().await;
            }
            Ok(Payload::from(format!("{} at the {asked}. try", sum.read(|sum| *sum))))
        },
        "start, signal deposit = 1, signal finish",
        expect![[r#"
            turn 0  [] complete 1 at the 2. try
        "#]],
    );
}

/// C-48: a wait that is given up before its signal was shown leaves the signal for the next.
#[test]
fn signal_that_was_not_shown_to_a_wait_that_ended_goes_to_the_next_wait() {
    check(
        |ctx: Ctx, _| async move {
            let sum = take_deposits(&ctx);
            let mut first = Box::pin(ctx.next_signal("finish"));
            let is_ready = std::future::poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_ready())).await;
            assert!(!is_ready, "the deposit goes first");
            drop(first);
            ctx.next_signal("finish").await?;
            total(&sum)
        },
        "start, signal deposit = 1, signal finish",
        expect![[r#"
            turn 0  [] complete 1
        "#]],
    );
}

/// C-48: handlers of messages that came before the signal to go on as a new run have run on the state that is handed over.
/// One that then still waits is abandoned, with a warning.
#[test]
fn run_that_continues_as_new_hands_over_what_earlier_messages_changed() {
    check(
        |ctx: Ctx, _| async move {
            let sum = ctx.state(0);
            let (inside, seen) = (ctx.clone(), sum.clone());
            ctx.on_signal("deposit", move |signal| {
                let (ctx, sum) = (inside.clone(), seen.clone());
                async move {
                    sum.update(|sum| *sum += amount(&signal.input));
                    if amount(&signal.input) > 1 {
                        ctx.sleep(secs(60)).await?;
                    }
                    Ok(())
                }
            });
            ctx.on_update("slow", |_| Ok(()), {
                let inside = ctx.clone();
                move |_| {
                    let ctx = inside.clone();
                    async move { Ok(ctx.sleep(secs(60)).await.map(|()| Payload::empty())?) }
                }
            });
            ctx.next_signal("rotate").await?;
            ctx.set_state("sum", total(&sum)?);
            Err(ctx.continue_as_new(ContinueAsNew { input: vec![total(&sum)?], ..ContinueAsNew::default() }))
        },
        "start, signal deposit = 1, signal deposit = 2, update slow u, signal rotate",
        expect![[r#"
            turn 0  [h2] accept update u  [h1] timer 1m  [h2] timer 1m  [] state sum = 3  [h2] complete update u failed the workflow continued as new before this update was done; the new run does not know of it  [] continue as new kit
              warning: the workflow returned while [h1] [h2] still waited; abandoned
        "#]],
    );
}
