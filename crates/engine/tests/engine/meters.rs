//! What is counted and measured: exact counts of exact stories.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use dacapo_core::{ContinueAsNew, Ctx, Failure, Name, Payload};
use dacapo_engine::{Cache, NewStart, Options, RunId};
use dacapo_sqlite::SqliteStore;
use dacapo_testkit::{Simulation, expect};
use dacapo_worker::{TurnPool, all_meters};

use crate::kit::{Gate, Serve, completed, completed_empty, every_second, options, payload, secs, signal};
use crate::recorder::Recorder;

fn tries() -> Options {
    options()
        .workflow("tries", |ctx: Ctx, _| async move {
            let tried = ctx.activity("flaky", "").retry(every_second(2)).await?;
            ctx.side_effect("draw", || async { Ok(Payload::empty()) }).await?;
            ctx.next_signal("go").await?;
            Ok(tried)
        })
        .activity("flaky", |ctx, _| match ctx.info().attempt {
            1 => Err(Failure::application("not yet")),
            _ => Ok(payload("tried")),
        })
}

fn story(cache: usize) -> Recorder {
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(tries().cache(Cache::AtMost(cache))));
    sim.start("tries", "a", "").unwrap();
    sim.advance(secs(1));
    signal(&sim, "a", "go", "");
    assert_eq!(sim.result("a"), completed("tried"));
    recorder
}

#[test]
fn a_run_that_stays_in_memory_is_hit_and_never_replayed() {
    expect![[r#"
        dacapo_attempt_seconds{queue=default,activity=flaky} took 2
        dacapo_attempt_seconds{queue=default,activity=side effect} took 1
        dacapo_attempts_total{queue=default,activity=flaky,outcome=completed} 1
        dacapo_attempts_total{queue=default,activity=flaky,outcome=failed} 1
        dacapo_attempts_total{queue=default,activity=side effect,outcome=completed} 1
        dacapo_cache_hits_total{queue=default} 3
        dacapo_commit_seconds took 6
        dacapo_runs_closed_total{workflow=tries,status=completed} 1
        dacapo_runs_started_total{workflow=tries} 1
        dacapo_turn_seconds{queue=default} took 4
        dacapo_turns_total{queue=default} 4
    "#]]
    .assert_eq(&story(10_000).show(&[]));
}

/// Four turns: the second plays one again and waits in memory for its local work, the fourth plays three again.
#[test]
fn without_a_cache_turns_play_those_before_them_again() {
    expect![[r#"
        dacapo_attempt_seconds{queue=default,activity=flaky} took 2
        dacapo_attempt_seconds{queue=default,activity=side effect} took 1
        dacapo_attempts_total{queue=default,activity=flaky,outcome=completed} 1
        dacapo_attempts_total{queue=default,activity=flaky,outcome=failed} 1
        dacapo_attempts_total{queue=default,activity=side effect,outcome=completed} 1
        dacapo_cache_hits_total{queue=default} 1
        dacapo_commit_seconds took 6
        dacapo_replayed_turns_total{queue=default} 4
        dacapo_replays_total{queue=default} 2
        dacapo_runs_closed_total{workflow=tries,status=completed} 1
        dacapo_runs_started_total{workflow=tries} 1
        dacapo_turn_seconds{queue=default} took 4
        dacapo_turns_total{queue=default} 4
    "#]]
    .assert_eq(&story(0).show(&[]));
}

/// Every way in which an attempt can be over is counted once.
#[test]
fn attempts_are_counted_by_how_they_ended() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let recorder = Recorder::default();
    let serve = options()
        .workflow("all", |ctx: Ctx, _| async move {
            let once = || every_second(1);
            let _ = ctx.activity("work", "ok").await;
            let _ = ctx.activity("work", "").retry(once()).await;
            let _ = ctx.activity("waits", "").retry(once()).start_to_close(secs(1)).await;
            let _ = ctx.with_timeout(secs(1), ctx.activity("waits", "")).await;
            let _ = ctx.local_activity("waits", "").retry(once()).start_to_close(secs(1)).await;
            let _ = ctx.activity("asked", "").retry(once()).await;
            ctx.activity("waits", "").await
        })
        .activity("work", |_, input| match input.inline_size() == 0 {
            true => Err(Failure::application("no input")),
            false => Ok(input),
        })
        .activity("asked", |_, _| Err(Failure::new(dacapo_core::FailureKind::Cancelled, "as asked")))
        .waiting("waits", move |_, _| shared_gate.pass());
    let sim = recorder.during(|| Simulation::new(serve));
    sim.start("all", "a", "").unwrap();
    sim.advance(secs(10));
    sim.wait(sim.engine().terminate(&RunId::of("a"), "enough")).unwrap();
    sim.settle();
    expect![[r#"
        dacapo_attempt_seconds{queue=default,activity=asked} took 1
        dacapo_attempt_seconds{queue=default,activity=waits} took 4
        dacapo_attempt_seconds{queue=default,activity=work} took 2
        dacapo_attempts_total{queue=default,activity=asked,outcome=cancelled} 1
        dacapo_attempts_total{queue=default,activity=waits,outcome=given_up} 2
        dacapo_attempts_total{queue=default,activity=waits,outcome=timed_out} 2
        dacapo_attempts_total{queue=default,activity=work,outcome=completed} 1
        dacapo_attempts_total{queue=default,activity=work,outcome=failed} 1
    "#]]
    .assert_eq(&recorder.show(&["dacapo_attempts_total", "dacapo_attempt_seconds"]));
    gate.open(Ok(Payload::empty()));
    sim.settle();
    let after = recorder.show(&["dacapo_attempts_total"]);
    assert!(!after.contains("completed} 2"), "what was given up is not counted again: {after}");
}

/// A run is stuck from the first time that it cannot be played until it goes on.
#[test]
fn gauge_of_stuck_runs_rises_when_a_run_gets_stuck_and_falls_when_it_goes_on() {
    let panics = || {
        let mut options = options().workflow("steps", |ctx: Ctx, _| async move {
            ctx.next_signal("go").await?;
            panic!("not today")
        });
        options.double_play = false;
        options
    };
    let corrected = options().workflow("steps", |ctx: Ctx, _| async move {
        ctx.next_signal("go").await?;
        Ok(payload("gone"))
    });
    const WATCHED: [&str; 2] = ["dacapo_stuck_total", "dacapo_stuck_runs"];
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(panics()));
    for id in ["a", "b"] {
        sim.start("steps", id, "").unwrap();
    }
    assert_eq!(recorder.show(&WATCHED), "");
    signal(&sim, "a", "go", "");
    signal(&sim, "b", "go", "");
    sim.settle();
    let two = "dacapo_stuck_runs{queue=default} 2\ndacapo_stuck_total{queue=default} 2\n";
    assert_eq!(recorder.show(&WATCHED), two);
    sim.advance(secs(1));
    let still = "dacapo_stuck_runs{queue=default} 2\ndacapo_stuck_total{queue=default} 4\n";
    assert_eq!(recorder.show(&WATCHED), still, "tried again, and stuck as before");
    sim.wait(sim.engine().terminate(&RunId::of("b"), "enough")).unwrap();
    sim.settle();
    assert!(recorder.show(&WATCHED).starts_with("dacapo_stuck_runs{queue=default} 1\n"));
    let recorder = Recorder::default();
    let sim = recorder.during(|| sim.redeploy(panics()));
    sim.settle();
    let again = "dacapo_stuck_runs{queue=default} 1\ndacapo_stuck_total{queue=default} 1\n";
    assert_eq!(recorder.show(&WATCHED), again, "the next process tries it at once");
    let sim = recorder.during(|| sim.redeploy(corrected));
    assert_eq!(sim.result("a"), completed("gone"));
    assert_eq!(recorder.show(&WATCHED), "dacapo_stuck_total{queue=default} 1\n");
}

/// S3-29, S3-32
#[test]
fn zombies_are_measured_when_they_become_one_and_when_they_end() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = options()
        .workflow("tries", |ctx: Ctx, _| async move {
            let call = ctx.activity("stuck", "").start_to_close(Duration::from_millis(100)).retry(every_second(1));
            let _ = call.await;
            Ok(Payload::empty())
        })
        .waiting("stuck", move |_, _| shared_gate.pass());
    const WATCHED: [&str; 3] = ["dacapo_activities_running", "dacapo_terminating", "dacapo_zombies"];
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(serve));
    sim.ignore_cancellation("stuck");
    sim.start("tries", "a", "").unwrap();
    sim.settle();
    assert_eq!(recorder.show(&WATCHED), "dacapo_activities_running{queue=default} 1\n");
    sim.advance(Duration::from_millis(100));
    assert_eq!(recorder.show(&WATCHED), "dacapo_terminating{queue=default} 1\n");
    sim.advance(Duration::from_millis(9_999));
    assert_eq!(recorder.show(&WATCHED), "dacapo_terminating{queue=default} 1\n");
    sim.advance(Duration::from_millis(1));
    assert_eq!(recorder.show(&WATCHED), "dacapo_zombies{queue=default} 1\n");
    gate.open(Ok(payload("late")));
    sim.settle();
    assert_eq!(recorder.show(&WATCHED), "");
}

/// Activities that wait for a place, that have one, and that are not served.
#[test]
fn activities_that_wait_are_measured_and_go_with_their_engine() {
    const WATCHED: [&str; 3] = ["dacapo_activities_running", "dacapo_activities_unserved", "dacapo_activities_waiting"];
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let mut serve = options()
        .workflow("many", |ctx: Ctx, _| async move {
            let unserved = ctx.activity("elsewhere", "");
            ctx.join((0..5).map(|_| ctx.activity("work", ""))).await;
            drop(unserved);
            Ok(Payload::empty())
        })
        .waiting("work", move |_, _| shared_gate.pass());
    serve.queue("default").max_concurrent_activities = 2;
    let recorder = Recorder::default();
    let sim = recorder.during(|| Simulation::new(serve));
    sim.start("many", "a", "").unwrap();
    sim.settle();
    expect![[r#"
        dacapo_activities_running{queue=default} 2
        dacapo_activities_unserved{queue=default} 1
        dacapo_activities_waiting{queue=default} 3
    "#]]
    .assert_eq(&recorder.show(&WATCHED));
    let other = Recorder::default();
    let sim = other.during(|| sim.restart());
    assert_eq!(recorder.show(&WATCHED), "", "an engine that is gone has nothing");
    gate.open(Ok(Payload::empty()));
    assert_eq!(sim.result("a"), completed_empty());
    assert_eq!(other.show(&WATCHED), "");
}

/// A pool knows best how many turns wait.
#[test]
fn turns_that_wait_for_a_thread_are_measured() {
    const WATCHED: [&str; 2] = ["dacapo_turns_playing", "dacapo_turns_waiting"];
    let recorder = Recorder::default();
    let queue = Name::from("slow");
    let pool = recorder.during(|| TurnPool::new(1, [(queue.clone(), 1)]).unwrap());
    let (go, goes) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let goes = Arc::new(std::sync::Mutex::new(goes));
    for turn in 0..3 {
        let (goes, tell) = (goes.clone(), tell.clone());
        pool.submit(Some(&queue), move || {
            tell.send(turn).unwrap();
            let _ = goes.lock().unwrap().recv();
        });
    }
    assert_eq!(told.recv(), Ok(0));
    expect![[r#"
        dacapo_turns_playing{queue=slow} 1
        dacapo_turns_waiting{queue=slow} 2
    "#]]
    .assert_eq(&recorder.show(&WATCHED));
    go.send(()).unwrap();
    assert_eq!(told.recv(), Ok(1));
    pool.close();
    assert_eq!(recorder.show(&WATCHED), "dacapo_turns_playing{queue=slow} 1\n", "what was dropped waits no more");
}

/// The table names what there is, and nothing else; over a file, because only there are writes committed in groups.
#[test]
fn every_meter_is_in_the_table_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::default();
    let sim = recorder.during(|| {
        let store = SqliteStore::open(dir.path().join("runs.db").to_str().unwrap()).unwrap();
        let pool = TurnPool::new(1, [(Name::from("default"), 1)]).unwrap();
        drop(pool);
        Simulation::over(Arc::new(store), tries())
    });
    sim.start("tries", "a", "").unwrap();
    sim.advance(secs(1));
    let elsewhere = NewStart {
        workflow: "w".into(),
        workflow_id: "b".into(),
        queue: Some("elsewhere".into()),
        ..NewStart::default()
    };
    recorder.during(|| {
        sim.wait(sim.engine().start(elsewhere)).unwrap();
        sim.settle();
    });
    // Those of the store in PostgreSQL are recorded there.
    let is_of_engine = |name: &&str| !name.starts_with("dacapo_postgres_");
    let mut names: Vec<&str> = all_meters().map(|meter| meter.name).filter(is_of_engine).collect();
    names.sort_unstable();
    assert_eq!(recorder.names(), names);
    let described = recorder.described();
    for meter in all_meters() {
        let (unit, about) = &described[meter.name];
        assert_eq!(
            (unit.unwrap().as_str() == "seconds", about.as_str()),
            (meter.name.ends_with("_seconds"), meter.about)
        );
    }
    assert_eq!(described.len(), all_meters().count());
    assert!(recorder.show(&["dacapo_commit_batch_size"]).starts_with("dacapo_commit_batch_size took "));
}

#[test]
fn runs_are_counted_by_workflow_when_they_start_and_by_status_when_they_close() {
    let recorder = Recorder::default();
    let serve = options()
        .workflow("parent", |ctx: Ctx, round| async move {
            if round == payload("first") {
                ctx.child("child", "").workflow_id("c").await?;
                let (workflow, input) = ("parent".into(), vec![payload("second")]);
                return Err(ctx.continue_as_new(ContinueAsNew { workflow, input, ..ContinueAsNew::default() }));
            }
            ctx.next_signal("go").await?;
            Err(Failure::application("enough"))
        })
        .workflow("child", |_, _| async { Ok(payload("done")) });
    let sim = recorder.during(|| Simulation::new(serve));
    sim.start("parent", "a", "first").unwrap();
    sim.start("parent", "b", "second").unwrap();
    sim.settle();
    sim.wait(sim.engine().terminate(&RunId::of("b"), "no more")).unwrap();
    signal(&sim, "a", "go", "");
    sim.settle();
    let shown = recorder.show(&[]);
    let runs: Vec<&str> = shown.lines().filter(|line| line.starts_with("dacapo_runs_") && line.contains('{')).collect();
    assert_eq!(
        runs,
        [
            "dacapo_runs_closed_total{workflow=child,status=completed} 1",
            "dacapo_runs_closed_total{workflow=parent,status=continued_as_new} 1",
            "dacapo_runs_closed_total{workflow=parent,status=failed} 1",
            "dacapo_runs_closed_total{workflow=parent,status=terminated} 1",
            "dacapo_runs_started_total{workflow=child} 1",
            "dacapo_runs_started_total{workflow=parent} 3",
        ]
    );
}
