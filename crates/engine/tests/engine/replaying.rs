//! Runs that are played again from the beginning, by a process that knows nothing of them but what is stored.

use std::collections::BTreeSet;

use dacapo_core::{CommandKind, Ctx, Failure, Payload, Seq, Target};
use dacapo_engine::{Options, RunId};
use dacapo_store::Filter;
use dacapo_testkit::Simulation;

use crate::kit::{Serve, World, options, over_every_cache, query, rows, secs};

async fn six_steps(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let first = ctx.activity("work", "0").await?;
    ctx.sleep(secs(1)).await?;
    let (second, third) = (ctx.activity("work", "2"), ctx.activity("work", "3"));
    second.await?;
    third.await?;
    ctx.child("child", "").await?;
    ctx.activity("work", format!("{} {}", ctx.uuid(), ctx.random())).await?;
    Ok(first)
}

fn stepping(world: &World) -> Options {
    let world = world.clone();
    options().workflow("steps", six_steps).workflow("child", |_: Ctx, input| async { Ok(input) }).activity(
        "work",
        move |ctx, input| {
            world.note(format!("{} {} {input}", ctx.idempotency_key(), ctx.info().activity_id));
            Ok(input)
        },
    )
}

/// The seqs of all operations of a run, in the order in which they were decided.
fn seqs(sim: &Simulation, workflow_id: &'static str) -> Vec<Seq> {
    let transcript = sim.engine().reader().history(&RunId::of(workflow_id)).unwrap();
    transcript.turns.iter().flat_map(|turn| &turn.commands).filter_map(|command| command.kind.seq()).collect()
}

/// The ids of all operations of a run that have one.
fn ids(sim: &Simulation, workflow_id: &'static str) -> Vec<String> {
    let transcript = sim.engine().reader().history(&RunId::of(workflow_id)).unwrap();
    let commands = transcript.turns.iter().flat_map(|turn| &turn.commands);
    let ids = commands.filter_map(|command| match &command.kind {
        CommandKind::Activity(activity) => Some(activity.id.to_string()),
        CommandKind::Child(child) => Some(child.workflow_id.to_string()),
        _ => None,
    });
    ids.collect()
}

/// Plays the steps in processes that live for so many moments each, and gives how many that took.
fn play_in_short_lives(world: &World, moments: Option<u64>) -> (Simulation, usize) {
    let mut sim = Simulation::new(stepping(world));
    sim.start("steps", "a", "").unwrap();
    let mut lives = 1;
    if let Some(moments) = moments {
        sim = sim.dying(moments);
        sim.play_out();
        while sim.died().is_some() {
            lives += 1;
            assert!(lives < 100, "in {moments} moments no run makes progress");
            sim = sim.dying(moments);
            sim.play_out();
        }
    }
    sim.play_out();
    (sim, lives)
}

/// S0-49 S4-18: a process that lives for five moments makes two attempts and stores what one came to. Whatever is counted
/// or drawn goes on in the next one where it was.
#[test]
fn seqs_and_ids_go_on_through_processes_that_die_at_every_step() {
    let world = World::default();
    let (whole, _) = play_in_short_lives(&world, None);
    let expected = ids(&whole, "a");
    assert_eq!(seqs(&whole, "a"), (0..6).map(Seq).collect::<Vec<_>>());
    let tried: BTreeSet<String> = world.notes().into_iter().collect();
    for moments in 5..20 {
        let world = World::default();
        let (sim, lives) = play_in_short_lives(&world, Some(moments));
        assert!(lives > 1 || moments > 10, "it lived for {moments} moments");
        assert_eq!(seqs(&sim, "a"), (0..6).map(Seq).collect::<Vec<_>>(), "{moments}");
        assert_eq!(ids(&sim, "a"), expected, "{moments}");
        let again: BTreeSet<String> = world.notes().into_iter().collect();
        assert_eq!(again, tried, "{moments}: an attempt that is made again has the same ids and input");
    }
}

/// Has something of every sort behind it, and something of every sort open.
async fn busy(ctx: Ctx, world: World) -> Result<Payload, Failure> {
    world.note("entered");
    ctx.on_query("how", |_| Ok("busy".into()));
    ctx.activity("work", "0").await?;
    ctx.local_activity("work", "1").await?;
    let noted = world.clone();
    let draw = move || async move {
        noted.note("drawn");
        Ok(Payload::empty())
    };
    ctx.side_effect("draw", draw).await?;
    ctx.signal_external(Target::workflow("other"), "hello", "").await?;
    let child = ctx.child("waits", "").workflow_id("child");
    let elsewhere = ctx.activity("work", "2").queue("elsewhere");
    ctx.sleep(secs(1_000_000)).await?;
    child.await?;
    elsewhere.await
}

/// S0-51: whatever code decides while it is played again, it causes nothing: no attempt, no write, no row.
#[test]
fn a_run_that_is_played_again_and_again_touches_neither_the_world_nor_the_store() {
    let world = World::default();
    let served = world.clone();
    let serve = move || {
        let (entered, worked) = (served.clone(), served.clone());
        let mut options = options()
            .workflow("busy", move |ctx: Ctx, _| busy(ctx, entered.clone()))
            .workflow("waits", |ctx: Ctx, _| async move {
                ctx.next_signal("never").await?;
                Ok(Payload::empty())
            })
            .activity("work", move |_, input| {
                worked.note(format!("work {input}"));
                Ok(input)
            });
        options.double_play = false;
        options
    };
    over_every_cache(serve, |sim| {
        sim.start("waits", "other", "").unwrap();
        sim.start("busy", "a", "").unwrap();
        sim.settle();
        let stored = || {
            let rows = ["a", "other", "child"].map(|id| rows(sim, id));
            let histories = ["a", "other", "child"].map(|id| sim.history(id));
            (rows, histories, sim.store().count(&Filter::default(), u64::MAX), sim.moments())
        };
        let (before, notes) = (stored(), world.notes());
        assert_eq!(before.0[0], (1, 1, 0), "a task for others, and a timer");
        for _ in 0..10 {
            sim.engine().evict_idle();
            assert_eq!(query(sim, "a", "how").as_deref(), Ok("busy"));
        }
        assert_eq!(stored(), before);
        let since = world.notes().split_off(notes.len());
        assert_eq!(since, ["entered"; 10], "the code ran ten times, and nothing but the code");
        vec!["a", "other", "child"]
    });
}
