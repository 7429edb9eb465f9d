//! The way from a death to the quarantine and out of it, with another death at every moment of it.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::Ctx;
use dacapo_engine::{Options, RunId};
use dacapo_store::Doing;
use dacapo_testkit::{LayeredStore, Moment, Simulation};

use crate::crashed_store::CrashedStore;
use crate::kit::{Gate, Serve, World, completed, describe, payload, signal, stuck, text, without_delays};

/// One run whose activity notes that it is tried and waits at the gate, and one whose turns note that they are played.
fn serve(world: &World, gate: &Gate) -> Options {
    let (of_turns, of_work, gate) = (world.clone(), world.clone(), gate.clone());
    without_delays()
        .workflow("calls", |ctx: Ctx, input| async move { ctx.activity("work", input).await })
        .workflow("turns", move |ctx: Ctx, _| {
            let world = of_turns.clone();
            async move {
                let go = ctx.next_signal("go").await?;
                world.note("turn");
                Ok(go.input.into_iter().next().unwrap_or_default())
            }
        })
        .waiting("work", move |_, input| {
            of_work.note(text(&input));
            gate.pass()
        })
}

struct Setup {
    store: Arc<LayeredStore<CrashedStore>>,
    world: World,
    gate: Gate,
}

impl Setup {
    /// Both runs are open, and their processes died so often.
    fn after(deaths: u32) -> (Self, Simulation) {
        let setup = Self { store: CrashedStore::new(), world: World::default(), gate: Gate::default() };
        let mut sim = Simulation::over(setup.store.clone(), serve(&setup.world, &setup.gate));
        sim.start("calls", "task", "tried").unwrap();
        sim.start("turns", "run", "").unwrap();
        sim.settle();
        for _ in 0..deaths {
            setup.die(&sim);
            sim = sim.restart();
            sim.settle();
        }
        assert_eq!(crash_counts(&sim), (deaths, deaths));
        (setup, sim)
    }

    /// The process dies while both are under way.
    fn die(&self, sim: &Simulation) {
        let task = sim.store().tasks_of(describe(sim, "task").run).unwrap()[0].no;
        self.store.dies_while(&[Doing::Attempt(task), Doing::Run(describe(sim, "run").run)]);
    }
}

/// The crash counts of the activity of the one run, and of the other run.
fn crash_counts(sim: &Simulation) -> (u32, u32) {
    // Asked of the store: the process may be dead.
    let row = |id| sim.store().find(id, None).unwrap().unwrap();
    let tasks = sim.store().tasks_of(row("task").no).unwrap();
    (tasks.first().map_or(0, |task| task.crash_count), row("run").crash_count)
}

/// Plays the story once for each moment at which its process can die, until that lives. The story says when it died. Gives
/// how often that was.
fn at_every_moment(story: impl Fn(u64) -> Option<Moment>) -> usize {
    (0..).map(story).take_while(Option::is_some).count()
}

/// Whichever process counts the crash, and however far it gets: the next process runs nothing before the crash is counted.
#[test]
fn no_crash_count_is_lost_wherever_the_counting_process_dies() {
    for before in 0..2 {
        let deaths = at_every_moment(|moment| {
            let (setup, sim) = Setup::after(before);
            setup.die(&sim);
            let dying = sim.dying(moment);
            let noted = setup.store.noted().0.len();
            dying.settle();
            let (task, run) = crash_counts(&dying);
            assert_eq!(task, run, "both are counted together");
            assert!(run > before || setup.store.noted().0.len() == noted, "nothing begins before");
            let died = dying.died();
            let next = dying.restart();
            next.settle();
            let (task, run) = crash_counts(&next);
            assert!(task > before && run > before, "a crash is not counted when it dies {died:?}");
            assert!(task <= before + 2 && run == task, "it is counted twice at worst");
            // Then it is one too many, and the engine has to say so.
            for id in ["task", "run"].into_iter().filter(|_| task >= 3) {
                assert_eq!(next.wait(next.engine().release(&RunId::of(id))), Ok(()));
            }
            end_well(&setup, &next);
            died
        });
        assert!(deaths >= 2, "before the commit of the crash_count, and after it");
    }
}

/// After the third crash both are quarantined, and both say so, wherever a process dies on the way.
#[test]
fn third_crash_leads_to_quarantine_wherever_the_counting_process_dies() {
    at_every_moment(|moment| {
        let (setup, sim) = Setup::after(2);
        let count = setup.world.count();
        setup.die(&sim);
        let dying = sim.dying(moment);
        dying.settle();
        let died = dying.died();
        let next = dying.restart();
        signal(&next, "run", "go", "end");
        next.settle();
        assert_eq!(setup.world.count(), count, "nothing is tried or played, also when it dies {died:?}");
        for id in ["task", "run"] {
            assert!(stuck(&next, id).0.contains("quarantined"), "{died:?}");
            assert_eq!(next.wait(next.engine().release(&RunId::of(id))), Ok(()));
        }
        end_well(&setup, &next);
        died
    });
}

#[test]
fn release_is_whole_or_absent_wherever_the_process_dies() {
    at_every_moment(|moment| {
        let (setup, sim) = Setup::after(3);
        let dying = sim.dying(moment);
        let mut told = 0;
        for id in ["task", "run"] {
            told += usize::from(dying.try_wait(dying.engine().release(&RunId::of(id))) == Some(Ok(())));
        }
        let died = dying.died();
        let next = dying.restart();
        next.settle();
        for (n, id) in ["task", "run"].into_iter().enumerate() {
            match next.wait(next.engine().release(&RunId::of(id))) {
                // A caller with an answer finds it so; one without asks again.
                Ok(()) => assert!(n >= told, "the release of {id} is lost when it dies {died:?}"),
                Err(Error::InvalidArgument(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(crash_counts(&next).1, 0);
        end_well(&setup, &next);
        died
    });
}

/// Both are fixed and end.
fn end_well(setup: &Setup, sim: &Simulation) {
    setup.gate.open(Ok(payload("done")));
    if describe(sim, "run").status.is_open() && sim.store().unseen(describe(sim, "run").run).unwrap().is_empty() {
        signal(sim, "run", "go", "end");
    }
    assert_eq!(sim.result("task"), completed("done"));
    assert_eq!(sim.result("run"), completed("end"));
    assert_eq!(crash_counts(sim), (0, 0), "what has ended has no crash count");
}
