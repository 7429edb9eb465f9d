//! The way from a death to the quarantine and out of it, with another death at every moment of it.

use std::sync::Arc;

use dacapo_core::Ctx;
use dacapo_engine::{EngineError, Options, RunId};
use dacapo_store::Doing;
use dacapo_testkit::{Fronted, Moment, Stage};

use crate::haunted::Haunted;
use crate::kit::{Gate, Serve, World, completed, describe, payload, signal, stuck, text, without_delays};

/// One run whose activity notes that it is tried and waits at the gate, and one whose turns note that they are played.
fn serve(world: &World, gate: &Gate) -> Options {
    let (of_turns, of_work, gate) = (world.clone(), world.clone(), gate.clone());
    without_delays()
        .workflow("calls", |ctx: Ctx, input| async move { ctx.activity("work", input).await })
        .workflow("turns", move |ctx: Ctx, _| {
            let world = of_turns.clone();
            async move {
                let go = ctx.signal("go").await?;
                world.note("turn");
                Ok(go.input.into_iter().next().unwrap_or_default())
            }
        })
        .waiting("work", move |_, input| {
            of_work.note(text(&input));
            gate.pass()
        })
}

struct Scene {
    store: Arc<Fronted<Haunted>>,
    world: World,
    gate: Gate,
}

impl Scene {
    /// Both runs are open, and their processes died so often.
    fn after(deaths: u32) -> (Self, Stage) {
        let scene = Self { store: Haunted::new(), world: World::default(), gate: Gate::default() };
        let mut stage = Stage::over(scene.store.clone(), serve(&scene.world, &scene.gate));
        stage.start("calls", "task", "tried").unwrap();
        stage.start("turns", "run", "").unwrap();
        stage.settle();
        for _ in 0..deaths {
            scene.die(&stage);
            stage = stage.restart();
            stage.settle();
        }
        assert_eq!(held(&stage), (deaths, deaths));
        (scene, stage)
    }

    /// The process dies while both are under way.
    fn die(&self, stage: &Stage) {
        let task = stage.store().tasks_of(describe(stage, "task").run).unwrap()[0].no;
        self.store.dies_while(&[Doing::Attempt(task), Doing::Run(describe(stage, "run").run)]);
    }
}

/// What is held against the activity of the one and against the other run.
fn held(stage: &Stage) -> (u32, u32) {
    // Asked of the store: the process may be dead.
    let row = |id| stage.store().find(id, None).unwrap().unwrap();
    let tasks = stage.store().tasks_of(row("task").no).unwrap();
    (tasks.first().map_or(0, |task| task.strikes), row("run").strikes)
}

/// Plays the story once for each moment at which its process can die, until that lives. The story says when it died. Gives
/// how often that was.
fn at_every_moment(story: impl Fn(u64) -> Option<Moment>) -> usize {
    (0..).map(story).take_while(Option::is_some).count()
}

/// Whichever process it is that gives the strike, and however far it comes: the next one tries nothing before it is given.
#[test]
fn no_strike_is_lost_wherever_the_process_dies_that_gives_it() {
    for before in 0..2 {
        let deaths = at_every_moment(|moment| {
            let (scene, stage) = Scene::after(before);
            scene.die(&stage);
            let doomed = stage.doomed(moment);
            let noted = scene.store.noted().0.len();
            doomed.settle();
            let (task, run) = held(&doomed);
            assert_eq!(task, run, "both are struck together");
            assert!(run > before || scene.store.noted().0.len() == noted, "nothing begins before");
            let died = doomed.died();
            let next = doomed.restart();
            next.settle();
            let (task, run) = held(&next);
            assert!(task > before && run > before, "a strike is lost when it dies {died:?}");
            assert!(task <= before + 2 && run == task, "it is counted twice at worst");
            // Then it is one too many, and somebody has to say so.
            for id in ["task", "run"].into_iter().filter(|_| task >= 3) {
                assert_eq!(next.wait(next.engine().release(&RunId::of(id))), Ok(()));
            }
            end_well(&scene, &next);
            died
        });
        assert!(deaths >= 2, "before the commit of the strikes, and after it");
    }
}

/// At the third strike both are held, and both say so, whatever happens on the way.
#[test]
fn the_third_strike_leads_to_the_quarantine_wherever_the_process_dies_that_gives_it() {
    at_every_moment(|moment| {
        let (scene, stage) = Scene::after(2);
        let count = scene.world.count();
        scene.die(&stage);
        let doomed = stage.doomed(moment);
        doomed.settle();
        let died = doomed.died();
        let next = doomed.restart();
        signal(&next, "run", "go", "end");
        next.settle();
        assert_eq!(scene.world.count(), count, "nothing is tried or played, also when it dies {died:?}");
        for id in ["task", "run"] {
            assert!(stuck(&next, id).0.contains("quarantined"), "{died:?}");
            assert_eq!(next.wait(next.engine().release(&RunId::of(id))), Ok(()));
        }
        end_well(&scene, &next);
        died
    });
}

#[test]
fn what_is_released_is_free_or_still_held_wherever_the_process_dies_that_releases_it() {
    at_every_moment(|moment| {
        let (scene, stage) = Scene::after(3);
        let doomed = stage.doomed(moment);
        let mut told = 0;
        for id in ["task", "run"] {
            told += usize::from(doomed.try_wait(doomed.engine().release(&RunId::of(id))) == Some(Ok(())));
        }
        let died = doomed.died();
        let next = doomed.restart();
        next.settle();
        for (n, id) in ["task", "run"].into_iter().enumerate() {
            match next.wait(next.engine().release(&RunId::of(id))) {
                // Whoever was told finds it so; whoever was not asks again.
                Ok(()) => assert!(n >= told, "the release of {id} is lost when it dies {died:?}"),
                Err(EngineError::BadInput(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(held(&next).1, 0);
        end_well(&scene, &next);
        died
    });
}

/// Both are mended, and come to their ends.
fn end_well(scene: &Scene, stage: &Stage) {
    scene.gate.open(Ok(payload("done")));
    if describe(stage, "run").status.is_open() && stage.store().unseen(describe(stage, "run").run).unwrap().is_empty() {
        signal(stage, "run", "go", "end");
    }
    assert_eq!(stage.result("task"), completed("done"));
    assert_eq!(stage.result("run"), completed("end"));
    assert_eq!(held(stage), (0, 0), "nothing is held against what has ended");
}
