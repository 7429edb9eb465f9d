//! Ids and randomness: functions of the run's seed and the seq, and of nothing else.

use std::collections::BTreeSet;

use crate::kit::*;

fn activity_ids(transcript: &Transcript) -> Vec<OperationId> {
    let commands = transcript.turns.iter().flat_map(|turn| &turn.commands);
    commands
        .filter_map(|command| match &command.kind {
            CommandKind::Activity(activity) => Some(activity.id),
            _ => None,
        })
        .collect()
}

/// S4-4, S4-12, S4-49: an id follows from seed and seq, and was written down here once, on one machine.
#[test]
fn ids_are_the_same_on_every_machine() {
    let ids: Vec<String> = (0..4).map(|seq| OperationId::of(7, Seq(seq)).to_string()).collect();
    expect![[r#"
        [
            "0349e02b-958f-43af-861b-29cc10fc0596",
            "b3f2e391-ee2a-48a6-b3e9-be1e71daf07a",
            "2d6216d6-ea9e-49f0-b198-3a0b30b3a6ef",
            "59f0a990-a364-43fd-a063-7c282e11ccf5",
        ]
    "#]]
    .assert_debug_eq(&ids);
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let _b = ctx.activity("B", "");
        ctx.activity("A", "").await
    }
    let played = play(two, "start");
    assert_eq!(activity_ids(&played.transcript), [OperationId::of(7, Seq(0)), OperationId::of(7, Seq(1))]);
}

/// C-30, S4-17: whatever the user draws, the ids stay.
#[test]
fn a_draw_never_shifts_an_id() {
    async fn drawing(ctx: Ctx, _: Payload) -> Done {
        ctx.random();
        let a = ctx.activity("A", "");
        for _ in 0..5 {
            ctx.uuid();
        }
        let b = ctx.activity("B", "");
        a.await?;
        b.await
    }
    async fn sober(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        let b = ctx.activity("B", "");
        a.await?;
        b.await
    }
    let (drawing, sober) = (play(drawing, "start"), play(sober, "start"));
    assert_eq!(activity_ids(&drawing.transcript), activity_ids(&sober.transcript));
}

/// S4-2, S4-18, T-21, C-5: the ids of new work after a replay are those of an uninterrupted run. They once began again,
/// and the second child took the first one's id and never came back.
#[test]
fn a_run_built_again_goes_on_with_ids_it_never_used() {
    async fn children(ctx: Ctx, _: Payload) -> Done {
        ctx.child("C", "").await?;
        ctx.child("C", "").await
    }
    let ids = |mode| {
        let mut play = Player::new(workflow(children), Pins::default(), mode);
        play.play("start\nstarted C = r, resolve C\nstarted C = r");
        let commands = play.transcript.turns.into_iter().flat_map(|turn| turn.commands);
        let ids = commands.filter_map(|command| match command.kind {
            CommandKind::Child(child) => Some(child.workflow_id.to_string()),
            _ => None,
        });
        ids.collect::<Vec<_>>()
    };
    let whole = ids(Mode::Whole);
    assert_eq!(whole, [OperationId::of(7, Seq(0)).to_string(), OperationId::of(7, Seq(1)).to_string()]);
    assert_ne!(whole[0], whole[1]);
    assert_eq!(ids(Mode::Evicted), whole);
}

/// S4-17: a million ids of many runs, and no two alike.
#[test]
fn ids_of_different_runs_and_seqs_never_meet() {
    let all = (0..1000).flat_map(|seed| (0..1000).map(move |seq| OperationId::of(seed, Seq(seq)).as_u128()));
    let mut all: Vec<u128> = all.collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1_000_000);
}

/// S4-7: every id is a UUID of version 4, in the usual form.
#[test]
fn every_id_is_a_uuid() {
    for id in (0..1000).map(|seq| OperationId::of(seq * 31, Seq(seq)).to_string()) {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let parts: Vec<&str> = id.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
        assert!(parts.iter().all(|part| digits(part)), "{id}");
        assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "{id}");
    }
}

/// C-30: a new seed changes ids and draws from then on, and what was before stays as it was.
#[test]
fn a_new_seed_holds_from_its_turn_on() {
    async fn loops(ctx: Ctx, _: Payload) -> Done {
        loop {
            ctx.activity(ctx.random_u64().to_string(), "").await?;
        }
    }
    let before = play(loops, "start\nresolve #0\nresolve #1\nresolve #2");
    let after = play(loops, "start\nresolve #0\nseed 8, resolve #1\nresolve #2");
    let (before_ids, after_ids) = (activity_ids(&before.transcript), activity_ids(&after.transcript));
    assert_eq!(after_ids[..2], before_ids[..2]);
    assert_eq!(after_ids[2..], [OperationId::of(8, Seq(2)), OperationId::of(8, Seq(3))]);
    let (before, after) = (decided(&before.transcript), decided(&after.transcript));
    assert_eq!(after[..2], before[..2]);
    assert_ne!(after[2..], before[2..]);
    assert_ne!(after[2], after[3]);
    check(
        loops,
        "start
         resolve #0
         seed 8, resolve #1
         resolve #2",
        expect![[r#"
            turn 0  [] activity 8997523965809156287
            turn 1  [] activity 8065278886527720476
            turn 2  [] activity 4327315708348099532
            turn 3  [] activity 4373451304346529147
        "#]],
    );
}

/// C-30, S4-29: each unit draws from a stream of its own, so what one draws shifts nothing in another, and no two streams
/// are the same. The first branch and the first handler once drew the same numbers, and so the same uuids.
#[test]
fn no_two_units_draw_the_same_numbers() {
    async fn draw(ctx: Ctx, draws: Arc<Mutex<Vec<(String, OperationId)>>>) -> Done {
        let note = {
            let (ctx, draws) = (ctx.clone(), draws.clone());
            move |unit: &str| {
                for _ in 0..3 {
                    draws.lock().unwrap().push((unit.to_owned(), ctx.uuid()));
                }
            }
        };
        let handler = note.clone();
        ctx.on_signal("tick", move |_| {
            handler("[hN]");
            let handler = handler.clone();
            async move {
                handler("[hN] again");
                Ok(())
            }
        });
        note("[]");
        let branches = (0..3).map(|branch| {
            let (ctx, note) = (ctx.clone(), note.clone());
            async move {
                note(&format!("[p{branch}]"));
                let inner = note.clone();
                ctx.parallel([async move { inner(&format!("[p{branch},p0]")) }]).await;
            }
        });
        ctx.parallel(branches).await;
        let launched = note.clone();
        ctx.launch(async move {
            launched("[l3]");
            Ok(())
        })
        .await?;
        nothing()
    }
    let draws = Arc::new(Mutex::new(Vec::new()));
    let drawn = draws.clone();
    play(move |ctx, _| draw(ctx, drawn.clone()), "start, signal tick, signal tick");
    let draws = draws.lock().unwrap();
    let different: BTreeSet<_> = draws.iter().map(|(_, id)| id.as_u128()).collect();
    assert_eq!((draws.len(), different.len()), (36, 36), "{draws:#?}");
}

/// S4-17: a caller that is to resolve a promise is given the id under which the backend knows it.
#[test]
fn a_promise_is_handed_out_under_the_id_of_its_command() {
    async fn promises(ctx: Ctx, _: Payload) -> Done {
        let (a, b) = (ctx.promise("A"), ctx.promise("B"));
        Ok(format!("{} {}", a.id(), b.id()).into())
    }
    let ids = [0, 1].map(|seq| OperationId::of(7, Seq(seq)).to_string()).join(" ");
    assert_eq!(*decided(&play(promises, "start").transcript).last().unwrap(), format!("[] complete {ids}"));
}

#[test]
fn a_random_number_is_at_least_zero_and_below_one() {
    async fn draws(ctx: Ctx, _: Payload) -> Done {
        let draws: Vec<f64> = (0..1000).map(|_| ctx.random()).collect();
        let within = draws.iter().all(|draw| (0.0..1.0).contains(draw));
        let spread = draws.iter().any(|draw| *draw < 0.1) && draws.iter().any(|draw| *draw > 0.9);
        Ok(format!("within {within}, spread {spread}").into())
    }
    assert_eq!(decided(&play(draws, "start").transcript), ["[] complete within true, spread true"]);
}
