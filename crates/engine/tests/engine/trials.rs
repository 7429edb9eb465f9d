//! Runs whose process died while their code was played.

use std::sync::Arc;

use dacapo_core::{Ctx, Failure};
use dacapo_engine::{EngineError, NewStart, Options, RunId, WaitFor};
use dacapo_store::{Doing, RunFilter, Status, Stuck, Write};
use dacapo_testkit::{Fronted, Stage};

use crate::haunted::Haunted;
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
                ctx.signal("go").await?;
                world.note("first");
                Ok(ctx.signal("go").await?.input.remove(0))
            }
        })
        .workflow("home", |ctx: Ctx, input| async move {
            let work = ctx.local_activity("work", input).retry(every_second(3));
            ctx.signal("tick").await?;
            ctx.signal("tick").await?;
            work.await
        })
        .workflow("alone", |ctx: Ctx, input| async move { ctx.local_activity("work", input).await })
        .waiting("work", move |_, input| {
            of_work.note(text(&input));
            gate.pass()
        })
}

fn run(stage: &Stage, id: &'static str) -> Doing {
    Doing::Run(describe(stage, id).run)
}

fn strikes(stage: &Stage, id: &'static str) -> u32 {
    stage.store().run(describe(stage, id).run).unwrap().unwrap().strikes
}

fn release(stage: &Stage, id: &'static str) -> Result<(), EngineError> {
    stage.wait(stage.engine().release(&RunId::of(id)))
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

/// A stage on which the process of a run died three times, while nothing came for it.
fn quarantined(store: &Arc<Fronted<Haunted>>, options: Options) -> Stage {
    let mut stage = Stage::over(store.clone(), options);
    stage.wait(stage.engine().start(new_start())).unwrap();
    stage.settle();
    for died in 1..=3 {
        store.dies_while(&[run(&stage, "a")]);
        stage = stage.restart();
        stage.settle();
        assert_eq!(strikes(&stage, "a"), died);
    }
    stage
}

#[test]
fn whatever_plays_code_of_a_run_is_noted_until_it_is_over() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "a", "").unwrap();
    assert!(matches!(store.noted().0[..], [Doing::Start(_)]), "no store knows it yet");
    let a = run(&stage, "a");
    signal(&stage, "a", "go", "");
    stage.settle();
    assert_eq!(store.noted().0[1..], [a]);
    assert_eq!(query(&stage, "a", "how").unwrap(), "well");
    let Doing::Run(no) = a else { unreachable!() };
    assert_eq!(store.noted().0[2..], [Doing::Answer(no)]);
    let stage = stage.restart();
    assert_eq!(query(&stage, "a", "how").unwrap(), "well");
    assert_eq!(
        store.noted().0[3..],
        [a, Doing::Answer(no)],
        "one for all turns that are played again, one for the answer"
    );
    assert_eq!(store.noted().1, 5, "all of it is over");
    stage.start("home", "b", "b").unwrap();
    stage.settle();
    assert_eq!((store.noted().0[6..].to_vec(), store.noted().1), (vec![run(&stage, "b")], 6));
    gate.open(Ok(payload("done")));
    stage.settle();
    assert_eq!(store.noted().1, store.noted().0.len());
}

/// A process that dies meanwhile leaves it to the next; and nothing is played before it is known whom to suspect.
#[test]
fn strikes_are_written_first_and_then_the_note_is_forgotten_and_then_runs_are_played() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "a", "").unwrap();
    signal(&stage, "a", "go", "");
    let a = run(&stage, "a");
    store.log();
    store.dies_while(&[a, a, Doing::Run(dacapo_store::RunNo(99))]);
    stage.restart().settle();
    assert_eq!(store.log()[..3], ["run 1".to_owned(), "forgotten".to_owned(), format!("{a:?}")]);
}

/// Those that merely ran beside the culprit clear themselves, one after the other; all others are not disturbed.
#[test]
fn of_the_runs_that_were_played_when_the_process_died_one_is_played_at_a_time() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    for id in ["a", "b", "c", "d"] {
        stage.start("alone", id, id).unwrap();
    }
    stage.settle();
    let [a, b, c] = ["a", "b", "c"].map(|id| run(&stage, id));
    store.dies_while(&[a, b, c]);
    let stage = stage.restart();
    stage.settle();
    assert_eq!(world.notes()[4..], ["a", "d"], "one of the struck, and all others");
    assert_eq!(["a", "b", "c", "d"].map(|id| strikes(&stage, id)), [1, 1, 1, 0]);
    // The one that was played now is the most suspect, and goes last.
    store.dies_while(&[a]);
    let stage = stage.restart();
    stage.settle();
    assert_eq!(world.notes()[6..], ["b", "d"]);
    gate.open(Ok(payload("done")));
    for id in ["a", "b", "c", "d"] {
        assert_eq!(stage.result(id), completed("done"));
        assert_eq!((rows(&stage, id), strikes(&stage, id)), (NO_ROWS, 0));
    }
    assert_eq!(world.notes()[8..], ["c", "a"]);
}

#[test]
fn a_turn_clears_its_run_and_a_replay_or_an_answer_does_not() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "a", "").unwrap();
    stage.start("two", "b", "").unwrap();
    stage.settle();
    store.dies_while(&[run(&stage, "a"), run(&stage, "b")]);
    let stage = stage.restart();
    stage.settle();
    assert_eq!(query(&stage, "a", "how").unwrap(), "well");
    assert_eq!(query(&stage, "b", "how").unwrap(), "well");
    assert_eq!(["a", "b"].map(|id| strikes(&stage, id)), [1, 1]);
    store.log();
    signal(&stage, "a", "go", "");
    stage.settle();
    assert_eq!(["a", "b"].map(|id| strikes(&stage, id)), [0, 1]);
    assert_eq!(store.log().iter().filter(|line| line.starts_with("run ")).count(), 0, "no write is made for that");
}

/// It may be busy, and its turns say nothing of the question that kills the process.
#[test]
fn a_turn_clears_nothing_that_an_answer_brought() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let mut stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "a", "").unwrap();
    stage.start("two", "b", "").unwrap();
    stage.settle();
    let [a, b] = ["a", "b"].map(|id| Doing::Answer(describe(&stage, id).run));
    store.dies_while(&[a, b, run(&stage, "a")]);
    stage = stage.restart();
    for id in ["a", "b"] {
        signal(&stage, id, "go", "");
        stage.settle();
        assert_eq!((describe(&stage, id).turns, strikes(&stage, id)), (2, 1), "one for each death");
        assert_eq!(query(&stage, id, "how").unwrap(), "well");
    }
    // One of them has another question, that nobody asked yet.
    store.dies_while(&[a]);
    stage = stage.restart();
    stage.settle();
    assert_eq!(["a", "b"].map(|id| strikes(&stage, id)), [2, 1]);
    assert_eq!(query(&stage, "a", "how").unwrap(), "well");
    stage.advance(secs(60));
    assert_eq!(strikes(&stage, "a"), 0, "the process lives on");
    signal(&stage, "b", "go", "end");
    assert_eq!((stage.result("b"), strikes(&stage, "b")), (completed("end"), 0), "this process saw no answer of it");
}

/// It was played from the beginning for every turn, as long as the process lived.
#[test]
fn a_run_that_nobody_asks_again_is_cleared_a_minute_after_it_went_on() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "a", "").unwrap();
    stage.start("two", "b", "").unwrap();
    stage.settle();
    store.dies_while(&["a", "b"].map(|id| Doing::Answer(describe(&stage, id).run)));
    let stage = stage.restart();
    signal(&stage, "a", "go", "");
    stage.advance(secs(59));
    assert_eq!((describe(&stage, "a").turns, strikes(&stage, "a"), stage.engine().runs_in_memory()), (2, 1, 0));
    stage.advance(secs(1));
    assert_eq!(["a", "b"].map(|id| strikes(&stage, id)), [0, 1], "the other has not gone on");
    assert_eq!(query(&stage, "a", "how").unwrap(), "well");
    assert_eq!(stage.engine().runs_in_memory(), 1, "it is kept, like any other");
    let before = world.count();
    signal(&stage, "a", "go", "end");
    assert_eq!(stage.result("a"), completed("end"));
    assert_eq!(world.count(), before, "its last turn was played alone");
}

/// Local work that kills the process may take its time, while turns of its run are committed.
#[test]
fn a_turn_clears_nothing_while_local_work_is_under_way() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let mut stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("home", "a", "a").unwrap();
    stage.start("two", "b", "").unwrap();
    stage.settle();
    store.dies_while(&[run(&stage, "a"), run(&stage, "b")]);
    stage = stage.restart();
    signal(&stage, "a", "tick", "");
    signal(&stage, "b", "go", "");
    stage.settle();
    assert_eq!((describe(&stage, "a").turns, strikes(&stage, "a")), (2, 1));
    assert_eq!((describe(&stage, "b").turns, strikes(&stage, "b")), (1, 1), "the other waits for its trial");
    gate.open(Ok(payload("done")));
    stage.settle();
    assert_eq!(["a", "b"].map(|id| strikes(&stage, id)), [0, 0]);
    signal(&stage, "a", "tick", "");
    assert_eq!(stage.result("a"), completed("done"));
}

#[test]
fn local_work_that_fails_or_takes_long_has_killed_nobody() {
    for fails in [true, false] {
        let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
        let stage = Stage::over(store.clone(), serve(&world, &gate));
        stage.start("home", "a", "a").unwrap();
        stage.start("home", "b", "b").unwrap();
        stage.settle();
        store.dies_while(&[run(&stage, "a"), run(&stage, "b")]);
        let stage = stage.restart();
        stage.settle();
        assert_eq!(world.notes()[2..], ["a"]);
        match fails {
            true => {
                gate.open(Err(Failure::application("no")));
                stage.settle();
                gate.shut();
            }
            false => stage.advance(secs(60)),
        }
        assert_eq!(world.notes()[2..4], ["a", "b"], "the next one is tried");
        assert_eq!(strikes(&stage, "a"), 0);
    }
}

/// What it said of itself was read, and written back when it said something else.
#[test]
fn a_run_that_is_cleared_says_what_it_says_by_then() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("home", "a", "a").unwrap();
    stage.settle();
    store.dies_while(&[run(&stage, "a")]);
    let stage = stage.restart();
    stage.settle();
    store.hold_up();
    stage.advance(secs(60));
    let row = stage.store().run(describe(&stage, "a").run).unwrap().unwrap();
    assert_eq!((row.strikes, row.stuck), (1, None));
    let words = Stuck { reason: "it waits".to_owned(), since: stage.now(), attempts: 1, retry: stage.now() };
    let park = Write::Park { run: row.no, epoch: row.epoch, stuck: Some(words) };
    stage.store().submit(park, Box::new(|done| assert!(done.is_ok(), "{done:?}")));
    store.go_on(stage.store());
    stage.settle();
    assert_eq!((strikes(&stage, "a"), stuck(&stage, "a").0), (0, "it waits".to_owned()));
}

#[test]
fn a_run_that_killed_its_process_three_times_is_quarantined_and_says_so() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let mut stage = quarantined(&store, serve(&world, &gate));
    store.log();
    signal(&stage, "a", "go", "");
    // The next process finds it so, too.
    for _ in 0..2 {
        stage.advance(secs(1_000));
        let (reason, ..) = stuck(&stage, "a");
        assert!(reason.contains("workflow \"two\"") && reason.contains("died 3 times"), "{reason}");
        assert!(reason.contains("Handle::release") && reason.contains("reset") && reason.contains("terminate"));
        let filter = RunFilter { stuck: true, ..RunFilter::default() };
        assert_eq!(stage.store().list(&filter, None, 10).unwrap().len(), 1);
        assert_eq!(query(&stage, "a", "how"), Err(EngineError::Stuck(reason.clone())));
        let sent = update(&stage, "a", "u", "change", "", WaitFor::Completed);
        assert_eq!(sent, Err(EngineError::UpdateWaits(reason.clone())));
        let waited = stage.wait(stage.engine().result_or_stuck(&RunId::of("a")));
        assert_eq!(waited, Err(EngineError::Stuck(reason.clone())));
        let unplayable = stage.engine().check_open_runs(&mut |_| {}).unwrap();
        assert_eq!(unplayable.iter().map(|run| run.reason.clone()).collect::<Vec<_>>(), [reason]);
        assert_eq!(rows(&stage, "a").2, 2, "what was sent is kept");
        stage = stage.restart();
    }
    assert!(!stage.wait(stage.engine().start(new_start())).unwrap().fresh);
    assert_eq!(store.log(), [] as [&str; 0], "nothing of it is played, also when it is started again");
    stage.start("two", "b", "").unwrap();
    signal(&stage, "b", "go", "");
    signal(&stage, "b", "go", "end");
    assert_eq!(stage.result("b"), completed("end"), "others go on");
}

#[test]
fn a_run_that_is_released_is_played_with_all_that_was_kept() {
    for restarts in [false, true] {
        let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
        let stage = quarantined(&store, serve(&world, &gate));
        signal(&stage, "a", "go", "");
        signal(&stage, "a", "go", "end");
        stage.settle();
        assert_eq!(world.count(), 0);
        assert_eq!(release(&stage, "a"), Ok(()));
        let stage = if restarts { stage.restart() } else { stage };
        assert_eq!(stage.result("a"), completed("end"));
        assert_eq!(strikes(&stage, "a"), 0);
        assert!(matches!(release(&stage, "a"), Err(EngineError::Closed { .. })), "there is nothing more to release");
    }
}

#[test]
fn a_quarantined_run_can_be_terminated_reset_and_deleted() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = quarantined(&store, serve(&world, &gate));
    stage.wait(stage.engine().reset(&RunId::of("a"), 1, "mended")).unwrap();
    signal(&stage, "a", "go", "");
    signal(&stage, "a", "go", "end");
    assert_eq!(stage.result("a"), completed("end"), "nothing is held against the new run");
    let stage = quarantined(&Haunted::new(), serve(&world, &gate));
    stage.wait(stage.engine().terminate(&RunId::of("a"), "enough")).unwrap();
    stage.settle();
    assert_eq!((describe(&stage, "a").status, rows(&stage, "a")), (Status::Terminated, NO_ROWS));
    stage.wait(stage.engine().delete(&RunId::of("a"))).unwrap();
    assert!(stage.engine().describe(&RunId::of("a")).is_err());
}

/// A closed run is played for those who ask it something.
#[test]
fn a_closed_run_that_killed_its_process_three_times_is_not_asked_any_more() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let mut stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "a", "").unwrap();
    stage.start("two", "b", "").unwrap();
    for id in ["a", "b"] {
        signal(&stage, id, "go", "");
        signal(&stage, id, "go", "end");
        assert_eq!(stage.result(id), completed("end"));
    }
    for died in 1..=3 {
        assert_eq!(query(&stage, "a", "how").unwrap(), "well", "after {died} deaths");
        store.dies_while(&[run(&stage, "a")]);
        stage = stage.restart();
    }
    let Err(EngineError::Stuck(reason)) = query(&stage, "a", "how") else { panic!("it is asked all the same") };
    assert!(reason.contains("died 3 times") && !reason.contains("terminate"), "{reason}");
    assert_eq!(query(&stage, "b", "how").unwrap(), "well");
    assert_eq!(release(&stage, "a"), Ok(()));
    assert_eq!(query(&stage, "a", "how").unwrap(), "well");
    assert_eq!(stage.engine().runs_in_memory(), 0);
}

/// A start and its first turn are one commit, so a first turn that kills the process leaves nothing but its note.
#[test]
fn a_start_whose_first_turn_killed_the_process_is_stored_before_it_is_played() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "a", "").unwrap();
    let start = store.noted().0[0];
    let store = Haunted::new();
    store.dies_while(&[start]);
    let stage = Stage::over(store.clone(), serve(&world, &gate));
    stage.start("two", "b", "").unwrap();
    store.log();
    stage.start("two", "a", "").unwrap();
    assert_eq!((describe(&stage, "a").turns, strikes(&stage, "b")), (0, 0));
    stage.settle();
    assert_eq!(store.log(), ["run 1".to_owned(), format!("{:?}", run(&stage, "a"))]);
    assert_eq!((describe(&stage, "a").turns, strikes(&stage, "a")), (1, 0), "it has killed nobody");
}

/// Its result waited in memory until the other had gone on, and a process that ended meanwhile had to do the work again.
#[test]
fn the_result_of_an_activity_of_a_run_that_waits_for_its_probation_is_stored() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let tries = world.clone();
    let serve = serve(&world, &gate)
        .workflow("calls", |ctx: Ctx, input| async move { ctx.activity("call", input).await })
        .activity("call", move |_, input| {
            tries.note("call");
            if tries.count() > 2 { Ok(input) } else { Err(Failure::application("not yet")) }
        });
    let stage = Stage::over(store.clone(), serve);
    stage.start("alone", "a", "a").unwrap();
    stage.start("calls", "b", "b").unwrap();
    stage.settle();
    store.dies_while(&[run(&stage, "a"), run(&stage, "b")]);
    let stage = stage.restart();
    stage.settle();
    // Its time comes while the other is on probation.
    stage.advance(secs(30));
    assert_eq!(world.notes(), ["a", "call", "a", "call"]);
    assert_eq!(describe(&stage, "b").turns, 1, "it waits");
    let stage = stage.restart();
    gate.open(Ok(payload("done")));
    assert_eq!(stage.result("b"), completed("b"));
    assert_eq!(world.notes()[4..], ["a"], "what was done is not done again");
}
