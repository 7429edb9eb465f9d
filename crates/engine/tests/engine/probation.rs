//! Runs whose process died while their code was played.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure};
use dacapo_engine::{NewStart, Options, RunId, WaitFor};
use dacapo_store::{Doing, Filter, Status, Stuck, StuckCause, Write};
use dacapo_testkit::{LayeredStore, Simulation};

use crate::crashed_store::CrashedStore;
use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, every_second, payload, query, rows, secs, signal, stuck, text,
    update, without_delays,
};

/// A workflow that notes each turn, takes two signals, and can be asked; and one whose local work ends when the gate is open.
fn serve(world: &World, gate: &Gate) -> Options {
    let (of_turns, of_work, gate) = (world.clone(), world.clone(), gate.clone());
    without_delays()
        .workflow("two", move |ctx: Ctx, _| {
            let world = of_turns.clone();
            async move {
                ctx.on_query("how", |_| Ok("well".into()));
                ctx.next_signal("go").await?;
                world.note("first");
                Ok(ctx.next_signal("go").await?.input.remove(0))
            }
        })
        .workflow("home", |ctx: Ctx, input| async move {
            let work = ctx.local_activity("work", input).retry(every_second(3));
            ctx.next_signal("tick").await?;
            ctx.next_signal("tick").await?;
            work.await
        })
        .workflow("alone", |ctx: Ctx, input| async move { ctx.local_activity("work", input).await })
        .waiting("work", move |_, input| {
            of_work.note(text(&input));
            gate.pass()
        })
}

fn run(sim: &Simulation, id: &'static str) -> Doing {
    Doing::Run(describe(sim, id).run)
}

fn crash_count(sim: &Simulation, id: &'static str) -> u32 {
    sim.store().run(describe(sim, id).run).unwrap().unwrap().crash_count
}

fn release(sim: &Simulation, id: &'static str) -> Result<(), Error> {
    sim.wait(sim.engine().release(&RunId::of(id)))
}

fn new_start() -> NewStart {
    NewStart {
        workflow: "two".into(),
        workflow_id: "a".into(),
        request: Some("order".into()),
        input: vec![payload("")],
        ..NewStart::default()
    }
}

/// A sim on which the process of a run died three times, while nothing came for it.
fn quarantined(store: &Arc<LayeredStore<CrashedStore>>, options: Options) -> Simulation {
    let mut sim = Simulation::over(store.clone(), options);
    sim.wait(sim.engine().start(new_start())).unwrap();
    sim.settle();
    for died in 1..=3 {
        store.dies_while(&[run(&sim, "a")]);
        sim = sim.restart();
        sim.settle();
        assert_eq!(crash_count(&sim, "a"), died);
    }
    sim
}

#[test]
fn play_of_a_run_is_noted_until_it_ends() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "a", "").unwrap();
    assert!(matches!(store.noted().0[..], [Doing::Start(_)]), "no store knows it yet");
    let a = run(&sim, "a");
    signal(&sim, "a", "go", "");
    sim.settle();
    let Doing::Run(no) = a else { unreachable!() };
    assert_eq!(store.noted().0[1..], [Doing::Turn { run: no, turn: 1 }]);
    assert_eq!(query(&sim, "a", "how").unwrap(), "well");
    assert_eq!(store.noted().0[2..], [Doing::Answer(no)]);
    let sim = sim.restart();
    assert_eq!(query(&sim, "a", "how").unwrap(), "well");
    assert_eq!(
        store.noted().0[3..],
        [Doing::Turn { run: no, turn: 2 }, Doing::Answer(no)],
        "one for all turns that are played again, one for the answer"
    );
    assert_eq!(store.noted().1, 5, "all of it is over");
    sim.start("home", "b", "b").unwrap();
    sim.settle();
    assert_eq!((store.noted().0[6..].to_vec(), store.noted().1), (vec![run(&sim, "b")], 6));
    gate.open(Ok(payload("done")));
    sim.settle();
    assert_eq!(store.noted().1, store.noted().0.len());
}

/// A process that dies meanwhile leaves it to the next; and nothing is played before the crash counts are known.
#[test]
fn crash_counts_are_written_before_the_note_is_cleared_and_before_runs_are_played() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "a", "").unwrap();
    signal(&sim, "a", "go", "");
    let a = run(&sim, "a");
    store.log();
    store.dies_while(&[a, a, Doing::Run(dacapo_store::RunNo(99))]);
    sim.restart().settle();
    let Doing::Run(run) = a else { unreachable!() };
    let played = Doing::Turn { run, turn: 1 };
    assert_eq!(store.log()[..3], ["run 1".to_owned(), "forgotten".to_owned(), format!("{played:?}")]);
}

/// Runs that merely ran beside the one that killed the process end their probation, one after the other; all others are not disturbed.
#[test]
fn of_the_runs_that_were_played_when_the_process_died_one_is_played_at_a_time() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    for id in ["a", "b", "c", "d"] {
        sim.start("alone", id, id).unwrap();
    }
    sim.settle();
    let [a, b, c] = ["a", "b", "c"].map(|id| run(&sim, id));
    store.dies_while(&[a, b, c]);
    let sim = sim.restart();
    sim.settle();
    assert_eq!(world.notes()[4..], ["a", "d"], "one of those with a crash count, and all others");
    assert_eq!(["a", "b", "c", "d"].map(|id| crash_count(&sim, id)), [1, 1, 1, 0]);
    // The one that was played now has the highest crash count, and goes last.
    store.dies_while(&[a]);
    let sim = sim.restart();
    sim.settle();
    assert_eq!(world.notes()[6..], ["b", "d"]);
    gate.open(Ok(payload("done")));
    for id in ["a", "b", "c", "d"] {
        assert_eq!(sim.result(id), completed("done"));
        assert_eq!((rows(&sim, id), crash_count(&sim, id)), (NO_ROWS, 0));
    }
    assert_eq!(world.notes()[8..], ["c", "a"]);
}

#[test]
fn committed_turn_ends_the_probation_of_its_run_and_a_replay_or_query_does_not() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "a", "").unwrap();
    sim.start("two", "b", "").unwrap();
    sim.settle();
    store.dies_while(&[run(&sim, "a"), run(&sim, "b")]);
    let sim = sim.restart();
    sim.settle();
    assert_eq!(query(&sim, "a", "how").unwrap(), "well");
    assert_eq!(query(&sim, "b", "how").unwrap(), "well");
    assert_eq!(["a", "b"].map(|id| crash_count(&sim, id)), [1, 1]);
    store.log();
    signal(&sim, "a", "go", "");
    sim.settle();
    assert_eq!(["a", "b"].map(|id| crash_count(&sim, id)), [0, 1]);
    assert_eq!(store.log().iter().filter(|line| line.starts_with("run ")).count(), 0, "no write is made for that");
}

/// It may be busy, and its turns say nothing of the question that kills the process.
#[test]
fn committed_turn_keeps_a_crash_count_that_a_query_caused() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let mut sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "a", "").unwrap();
    sim.start("two", "b", "").unwrap();
    sim.settle();
    let [a, b] = ["a", "b"].map(|id| Doing::Answer(describe(&sim, id).run));
    store.dies_while(&[a, b, run(&sim, "a")]);
    sim = sim.restart();
    for id in ["a", "b"] {
        signal(&sim, id, "go", "");
        sim.settle();
        assert_eq!((describe(&sim, id).turns, crash_count(&sim, id)), (2, 1), "one for each death");
        assert_eq!(query(&sim, id, "how").unwrap(), "well");
    }
    // One of them has another query, which was not sent yet.
    store.dies_while(&[a]);
    sim = sim.restart();
    sim.settle();
    assert_eq!(["a", "b"].map(|id| crash_count(&sim, id)), [2, 1]);
    assert_eq!(query(&sim, "a", "how").unwrap(), "well");
    sim.advance(secs(60));
    assert_eq!(crash_count(&sim, "a"), 0, "the process lives on");
    signal(&sim, "b", "go", "end");
    assert_eq!((sim.result("b"), crash_count(&sim, "b")), (completed("end"), 0), "this process saw no answer of it");
}

/// It was played from the beginning for every turn, as long as the process lived.
#[test]
fn crash_count_of_a_query_is_reset_a_minute_after_its_run_went_on() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "a", "").unwrap();
    sim.start("two", "b", "").unwrap();
    sim.settle();
    store.dies_while(&["a", "b"].map(|id| Doing::Answer(describe(&sim, id).run)));
    let sim = sim.restart();
    signal(&sim, "a", "go", "");
    sim.advance(secs(59));
    assert_eq!((describe(&sim, "a").turns, crash_count(&sim, "a"), sim.engine().runs_in_memory()), (2, 1, 0));
    sim.advance(secs(1));
    assert_eq!(["a", "b"].map(|id| crash_count(&sim, id)), [0, 1], "the other has not gone on");
    assert_eq!(query(&sim, "a", "how").unwrap(), "well");
    assert_eq!(sim.engine().runs_in_memory(), 1, "it is kept, like any other");
    let before = world.count();
    signal(&sim, "a", "go", "end");
    assert_eq!(sim.result("a"), completed("end"));
    assert_eq!(world.count(), before, "its last turn was played alone");
}

/// Local work that kills the process may take its time, while turns of its run are committed.
#[test]
fn committed_turn_keeps_the_crash_count_while_local_work_runs() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let mut sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("home", "a", "a").unwrap();
    sim.start("two", "b", "").unwrap();
    sim.settle();
    store.dies_while(&[run(&sim, "a"), run(&sim, "b")]);
    sim = sim.restart();
    signal(&sim, "a", "tick", "");
    signal(&sim, "b", "go", "");
    sim.settle();
    assert_eq!((describe(&sim, "a").turns, crash_count(&sim, "a")), (2, 1));
    assert_eq!((describe(&sim, "b").turns, crash_count(&sim, "b")), (1, 1), "the other waits for its probation");
    gate.open(Ok(payload("done")));
    sim.settle();
    assert_eq!(["a", "b"].map(|id| crash_count(&sim, id)), [0, 0]);
    signal(&sim, "a", "tick", "");
    assert_eq!(sim.result("a"), completed("done"));
}

#[test]
fn local_work_that_fails_or_takes_long_adds_no_crash_count() {
    for fails in [true, false] {
        let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
        let sim = Simulation::over(store.clone(), serve(&world, &gate));
        sim.start("home", "a", "a").unwrap();
        sim.start("home", "b", "b").unwrap();
        sim.settle();
        store.dies_while(&[run(&sim, "a"), run(&sim, "b")]);
        let sim = sim.restart();
        sim.settle();
        assert_eq!(world.notes()[2..], ["a"]);
        match fails {
            true => {
                gate.open(Err(Failure::application("no")));
                sim.settle();
                gate.shut();
            }
            false => sim.advance(secs(60)),
        }
        assert_eq!(world.notes()[2..4], ["a", "b"], "the next one is tried");
        assert_eq!(crash_count(&sim, "a"), 0);
    }
}

/// What it said of itself was read, and written back when it said something else.
#[test]
fn run_whose_crash_count_is_reset_keeps_its_newer_stuck_reason() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("home", "a", "a").unwrap();
    sim.settle();
    store.dies_while(&[run(&sim, "a")]);
    let sim = sim.restart();
    sim.settle();
    store.hold_up();
    sim.advance(secs(60));
    let row = sim.store().run(describe(&sim, "a").run).unwrap().unwrap();
    assert_eq!((row.crash_count, row.stuck), (1, None));
    let words = Stuck {
        cause: StuckCause::Internal,
        subject: String::new(),
        reason: "it waits".to_owned(),
        since: sim.now(),
        attempts: 1,
        retry: sim.now(),
    };
    let set_stuck = Write::SetStuck { run: row.no, epoch: row.epoch, stuck: Some(words) };
    sim.store().submit(set_stuck, Box::new(|done| assert!(done.is_ok(), "{done:?}")));
    store.go_on(sim.store());
    sim.settle();
    assert_eq!((crash_count(&sim, "a"), stuck(&sim, "a").0), (0, "it waits".to_owned()));
}

#[test]
fn a_run_that_killed_its_process_three_times_is_quarantined_and_says_so() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let mut sim = quarantined(&store, serve(&world, &gate));
    store.log();
    signal(&sim, "a", "go", "");
    // The next process finds it so, too.
    for _ in 0..2 {
        sim.advance(secs(1_000));
        let (reason, ..) = stuck(&sim, "a");
        assert!(reason.contains("workflow \"two\"") && reason.contains("died 3 times"), "{reason}");
        assert!(reason.contains("Handle::release") && reason.contains("reset") && reason.contains("terminate"));
        let filter = Filter { stuck: true, ..Filter::default() };
        assert_eq!(sim.store().list(&filter, None, 10).unwrap().len(), 1);
        assert_eq!(query(&sim, "a", "how"), Err(Error::Stuck(reason.clone())));
        let sent = update(&sim, "a", "u", "change", "", WaitFor::Completed);
        assert_eq!(sent, Err(Error::UpdateWaits(reason.clone())));
        let waited = sim.wait(sim.engine().result_or_stuck(&RunId::of("a")));
        assert_eq!(waited, Err(Error::Stuck(reason.clone())));
        let unplayable = sim.engine().check_open_runs(&mut |_| {}).unwrap();
        assert_eq!(unplayable.iter().map(|run| run.reason.clone()).collect::<Vec<_>>(), [reason]);
        assert_eq!(rows(&sim, "a").2, 2, "what was sent is kept");
        sim = sim.restart();
    }
    assert!(!sim.wait(sim.engine().start(new_start())).unwrap().fresh);
    assert_eq!(store.log(), [] as [&str; 0], "nothing of it is played, also when it is started again");
    sim.start("two", "b", "").unwrap();
    signal(&sim, "b", "go", "");
    signal(&sim, "b", "go", "end");
    assert_eq!(sim.result("b"), completed("end"), "others go on");
}

#[test]
fn a_run_that_is_released_is_played_with_all_that_was_kept() {
    for restarts in [false, true] {
        let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
        let sim = quarantined(&store, serve(&world, &gate));
        signal(&sim, "a", "go", "");
        signal(&sim, "a", "go", "end");
        sim.settle();
        assert_eq!(world.count(), 0);
        assert_eq!(release(&sim, "a"), Ok(()));
        let sim = if restarts { sim.restart() } else { sim };
        assert_eq!(sim.result("a"), completed("end"));
        assert_eq!(crash_count(&sim, "a"), 0);
        assert!(matches!(release(&sim, "a"), Err(Error::Closed { .. })), "there is nothing more to release");
    }
}

#[test]
fn a_quarantined_run_can_be_terminated_reset_and_deleted() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = quarantined(&store, serve(&world, &gate));
    sim.wait(sim.engine().reset(&RunId::of("a"), 1, "fixed")).unwrap();
    signal(&sim, "a", "go", "");
    signal(&sim, "a", "go", "end");
    assert_eq!(sim.result("a"), completed("end"), "the new run has no crash count");
    let sim = quarantined(&CrashedStore::new(), serve(&world, &gate));
    sim.wait(sim.engine().terminate(&RunId::of("a"), "enough")).unwrap();
    sim.settle();
    assert_eq!((describe(&sim, "a").status, rows(&sim, "a")), (Status::Terminated, NO_ROWS));
    sim.wait(sim.engine().delete(&RunId::of("a"))).unwrap();
    assert!(sim.engine().describe(&RunId::of("a")).is_err());
}

/// A closed run is played for those who ask it something.
#[test]
fn a_closed_run_that_killed_its_process_three_times_is_not_asked_any_more() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let mut sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "a", "").unwrap();
    sim.start("two", "b", "").unwrap();
    for id in ["a", "b"] {
        signal(&sim, id, "go", "");
        signal(&sim, id, "go", "end");
        assert_eq!(sim.result(id), completed("end"));
    }
    for died in 1..=3 {
        assert_eq!(query(&sim, "a", "how").unwrap(), "well", "after {died} deaths");
        store.dies_while(&[run(&sim, "a")]);
        sim = sim.restart();
    }
    let Err(Error::Stuck(reason)) = query(&sim, "a", "how") else { panic!("it is asked all the same") };
    assert!(reason.contains("died 3 times") && !reason.contains("terminate"), "{reason}");
    assert_eq!(query(&sim, "b", "how").unwrap(), "well");
    assert_eq!(release(&sim, "a"), Ok(()));
    assert_eq!(query(&sim, "a", "how").unwrap(), "well");
    assert_eq!(sim.engine().runs_in_memory(), 0);
}

/// A start and its first turn are one commit, so a first turn that kills the process leaves nothing but its note.
#[test]
fn a_start_whose_first_turn_killed_the_process_is_stored_before_it_is_played() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "a", "").unwrap();
    let start = store.noted().0[0];
    let store = CrashedStore::new();
    store.dies_while(&[start]);
    let sim = Simulation::over(store.clone(), serve(&world, &gate));
    sim.start("two", "b", "").unwrap();
    store.log();
    sim.start("two", "a", "").unwrap();
    assert_eq!((describe(&sim, "a").turns, crash_count(&sim, "b")), (0, 0));
    sim.settle();
    let played = Doing::Turn { run: describe(&sim, "a").run, turn: 0 };
    assert_eq!(store.log(), ["run 1".to_owned(), format!("{played:?}")]);
    assert_eq!((describe(&sim, "a").turns, crash_count(&sim, "a")), (1, 0), "it has killed no process");
}

/// Its result waited in memory until the other had gone on, and a process that ended meanwhile had to do the work again.
#[test]
fn the_result_of_an_activity_of_a_run_that_waits_for_its_probation_is_stored() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let tries = world.clone();
    let serve = serve(&world, &gate)
        .workflow("calls", |ctx: Ctx, input| async move { ctx.activity("call", input).await })
        .activity("call", move |_, input| {
            tries.note("call");
            if tries.count() > 2 { Ok(input) } else { Err(Failure::application("not yet")) }
        });
    let sim = Simulation::over(store.clone(), serve);
    sim.start("alone", "a", "a").unwrap();
    sim.start("calls", "b", "b").unwrap();
    sim.settle();
    store.dies_while(&[run(&sim, "a"), run(&sim, "b")]);
    let sim = sim.restart();
    sim.settle();
    // Its time comes while the other is on probation.
    sim.advance(secs(30));
    assert_eq!(world.notes(), ["a", "call", "a", "call"]);
    assert_eq!(describe(&sim, "b").turns, 1, "it waits");
    let sim = sim.restart();
    gate.open(Ok(payload("done")));
    assert_eq!(sim.result("b"), completed("b"));
    assert_eq!(world.notes()[4..], ["a"], "what was done is not done again");
}
