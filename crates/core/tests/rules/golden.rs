//! Golden transcripts: what was recorded once is replayed for ever.
//!
//! `DACAPO_WRITE_GOLDEN=1` writes those that do not exist yet. One that exists is never written again: if it no longer
//! replays, the code is wrong, not the file.
#![allow(clippy::disallowed_methods, reason = "golden transcripts are files, and writing them is asked for by name")]

use dacapo_testkit::assert_golden;

use crate::kit::*;

/// A program that was recorded, the script it was recorded with, and the order its run is pinned to.
type Story = (&'static str, fn() -> Workflow, &'static str, Order);

const STORIES: &[Story] = &[
    (
        "branches",
        || workflow(branches),
        "start = ada
         resolve A, resolve B
         resolve C
         resolve D = done",
        Order::RootFirst,
    ),
    (
        "race",
        || workflow(race),
        "start
         signal word = one
         fire 5s, signal word = two
         resolve refund = refunded",
        Order::RootFirst,
    ),
    (
        "operations",
        || workflow(operations),
        "start, patch known
         resolve A = a, fire 5s
         started C = run-1, delivered note
         resolve C = grown
         backoff L, resolve R = made, resolve P = kept
         fire 1m 30s
         resolve L = done
         seed 9, drop dropped: gone
         fail last: no",
        Order::RootFirst,
    ),
    (
        "handlers",
        || workflow(handlers),
        "start, signal tick = 1, update add one = 2
         update add two = 40
         update add two-bad = x
         signal tick = 3
         resolve slow
         cancel: enough",
        Order::RootFirst,
    ),
    (
        "message-order",
        || workflow(account),
        "start, signal deposit = 1, update add one = 2, signal finish = early, signal deposit = 4
         resolve pause, signal deposit = 8, signal finish = late",
        Order::HandlersFirst,
    ),
];

/// Handlers that take deposits, and a root that twice waits for a signal sent after some of them.
async fn account(ctx: Ctx, _: Payload) -> Done {
    let amount = |input: &[Payload]| input[0].as_text().and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let sum = ctx.state(0);
    let inside = sum.clone();
    ctx.on_signal("deposit", move |signal| {
        inside.update(|sum| *sum += amount(&signal.input));
        async { Ok(()) }
    });
    let inside = sum.clone();
    ctx.on_update(
        "add",
        |_| Ok(()),
        move |update| {
            let sum = inside.update(|sum| {
                *sum += amount(&update.input);
                *sum
            });
            async move { Ok(Payload::from(sum.to_string())) }
        },
    );
    ctx.next_signal("finish").await?;
    ctx.activity("pause", sum.read(u64::to_string)).await?;
    ctx.next_signal("finish").await?;
    Ok(Payload::from(sum.read(u64::to_string)))
}

async fn branches(ctx: Ctx, name: Payload) -> Done {
    let branches = [("A", "C"), ("B", "D")].map(|(first, second)| {
        let (ctx, name) = (ctx.clone(), name.clone());
        async move {
            ctx.activity(first, name).await?;
            ctx.activity(second, ctx.uuid().to_string()).await
        }
    });
    let results: Result<Vec<_>, _> = ctx.parallel(branches).await.into_iter().collect();
    Ok(results?.remove(1))
}

async fn race(ctx: Ctx, _: Payload) -> Done {
    let mut words = Vec::new();
    let timer = ctx.sleep(secs(5));
    let mut timer = std::pin::pin!(timer);
    while let Either::First(signal) = ctx.race(ctx.next_signal("word"), timer.as_mut()).await? {
        words.push(signal.input[0].to_string());
    }
    ctx.set_state("words", words.join(" "));
    ctx.activity("refund", words.join(" ")).await
}

async fn operations(ctx: Ctx, _: Payload) -> Done {
    ctx.patched("known");
    ctx.patched("new");
    ctx.deprecate_patch("old");
    ctx.set_attrs([("city".into(), Some("Ulm".into())), ("gone".into(), None)]);
    ctx.set_memo([("note".into(), Some("text".into()))]);
    let timer = ctx.sleep(secs(5)).summary("a while");
    let retry = Retry::exponential().attempts(5);
    ctx.activity("A", "in").retry(retry).start_to_close(secs(10)).header("trace", "1").await?;
    timer.await?;
    let child = ctx.child("C", "in").parent_close(ParentClose::Abandon);
    ctx.signal_external(Target::workflow("other"), "note", "hello").await?;
    child.await?;
    let (local, run) = (ctx.local_activity("L", "in"), ctx.side_effect("R", || async { nothing() }));
    let promise = ctx.promise("P");
    ctx.join([local]).await.remove(0)?;
    run.await?;
    promise.await?;
    let dropped = ctx.activity("dropped", "").await;
    ctx.clear_state("key");
    drop(ctx.activity("forgotten", ""));
    assert!(dropped.is_err());
    ctx.activity("last", ctx.random_u64().to_string()).await
}

async fn handlers(ctx: Ctx, _: Payload) -> Done {
    let total = ctx.state(0u64);
    let (sum, inner) = (total.clone(), ctx.clone());
    ctx.on_signal("tick", move |signal| {
        let (sum, ctx) = (sum.clone(), inner.clone());
        async move {
            sum.update(|sum| *sum += signal.input[0].to_string().parse::<u64>().unwrap_or(0));
            ctx.activity("slow", "").await?;
            Ok(())
        }
    });
    let sum = total.clone();
    ctx.on_update(
        "add",
        |update| match update.input[0].to_string().parse::<u64>() {
            Ok(_) => Ok(()),
            Err(_) => Err(Failure::application("no number")),
        },
        move |update| {
            let sum = sum.clone();
            async move {
                let number: u64 = update.input[0].to_string().parse().unwrap();
                Ok(sum.update(|sum| {
                    *sum += number;
                    sum.to_string().into()
                }))
            }
        },
    );
    ctx.wait_until(move || total.read(|sum| *sum > 1000)).await?;
    nothing()
}

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");

/// The number of the text form, as the text itself has it.
fn text_number(transcript: &Transcript) -> u64 {
    let text = transcript.to_text();
    let title = text.lines().next().unwrap();
    title.strip_prefix("dacapo transcript ").unwrap().parse().unwrap()
}

fn golden(name: &str) -> Option<Transcript> {
    let number = text_number(&Transcript::new("any", Pins::default()));
    let file = format!("{MANIFEST}/tests/golden/transcript-{name}-v{number}.txt");
    Some(Transcript::from_text(&std::fs::read_to_string(file).ok()?).unwrap())
}

/// All golden transcripts, with their names.
pub(crate) fn transcripts() -> Vec<(String, Transcript)> {
    STORIES.iter().map(|(name, ..)| ((*name).to_owned(), golden(name).unwrap())).collect()
}

fn recorded(story: &Story) -> Transcript {
    let mut play = Player::new(story.1(), Pins { order: story.3, ..Pins::default() }, Mode::Whole);
    play.play(story.2);
    assert!(!play.printed.lines().any(|line| line.starts_with("failed")), "{}", play.printed);
    play.transcript.clone()
}

/// S0-1, S0-50, S0-59: every golden transcript is read back to the byte, replays, and is what the program decides when it
/// is played on the same activations today. Only call sites may have moved.
#[test]
fn golden_transcripts_replay_for_ever() {
    for story in STORIES {
        let (name, workflow, ..) = story;
        let mut today = recorded(story);
        if let Some(kept) = golden(name) {
            for (turn, kept) in today.turns.iter_mut().zip(&kept.turns) {
                for (command, kept) in turn.commands.iter_mut().zip(&kept.commands) {
                    command.site = kept.site.clone();
                }
            }
        }
        let format = format!("transcript-{name}");
        let text = assert_golden(MANIFEST, &format, text_number(&today), "txt", &today.to_text());
        let transcript = Transcript::from_text(&text).unwrap();
        assert_eq!(transcript.diff(&today).map(|difference| difference.to_string()), None, "{name}");
        assert_eq!(Transcript::from_bytes(&transcript.to_bytes()).as_ref(), Ok(&transcript), "{name}");
        if let Err(failed) = transcript.replay(&workflow(), RunOptions::default()) {
            panic!("{name}: {failed}");
        }
    }
}

/// S4-7, S4-12: the ids in the golden transcripts are UUIDs, those that seed and seq give.
#[test]
fn the_ids_of_golden_transcripts_are_those_that_seed_and_seq_give() {
    let mut ids = 0;
    for (name, ..) in STORIES {
        let transcript = golden(name).unwrap();
        let mut seed = 0;
        for turn in &transcript.turns {
            for job in &turn.jobs {
                match job {
                    Job::Start(start) => seed = start.seed,
                    Job::Seed { seed: next } => seed = *next,
                    _ => {}
                }
            }
            for command in &turn.commands {
                let id = match &command.kind {
                    CommandKind::Activity(c) => c.id.to_string(),
                    CommandKind::LocalActivity(c) => c.id.to_string(),
                    CommandKind::SideEffect(c) => c.id.to_string(),
                    CommandKind::Promise(c) => c.id.to_string(),
                    CommandKind::Child(c) => c.workflow_id.to_string(),
                    _ => continue,
                };
                assert_eq!(id, OperationId::of(seed, command.kind.seq().unwrap()).to_string(), "{name}");
                ids += 1;
            }
        }
    }
    assert!(ids >= 15, "{ids} ids");
}
