//! Crashes at every moment at which a process can die: the next one goes on, and ends alike.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use dacapo_core::{CommandKind, Ctx, Failure, Payload, Pins, PolicySpec, TurnRecord};
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_sqlite::SqliteStore;
use dacapo_store::{Filter, MemoryStore, Status, Store};
use dacapo_testkit::Simulation;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::kit::{NO_ROWS, Serve, World, completed, describe, options, payload, rows, secs, signal_of, text};

async fn all_sorts(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let both = ctx.join(["1", "2"].map(|value| ctx.activity("work", value))).await;
    let both: Result<Vec<Payload>, Failure> = both.into_iter().collect();
    let closure = ctx.side_effect("draw", || async { Ok("3".into()) }).await?;
    ctx.sleep(secs(10)).await?;
    let local = ctx.local_activity("local", "4").await?;
    let signal = ctx.next_signal("go").await?;
    let child = ctx.child("child", "6").workflow_id("child").await?;
    ctx.activity("work", "detached").detach();
    Ok(payload(format!("{:?} {closure} {local} {} {child}", both?, signal.input[0])))
}

fn serving(world: &World) -> Options {
    let (world, other) = (world.clone(), world.clone());
    options()
        .workflow("all sorts", all_sorts)
        .workflow("child", |ctx: Ctx, input| async move { ctx.activity("work", input).await })
        .activity("work", move |_, input| {
            world.note(text(&input));
            Ok(input)
        })
        .activity("local", move |_, input| {
            other.note(text(&input));
            Ok(input)
        })
}

/// Everything a caller does, until it is acknowledged.
fn ask(sim: &Simulation, workflow: &'static str) {
    let new = NewStart {
        workflow: workflow.into(),
        workflow_id: "a".into(),
        request: Some("start".into()),
        ..NewStart::default()
    };
    if sim.try_wait(sim.engine().start(new)).is_none() {
        return;
    }
    sim.play_out();
    let go = sim.engine().clone();
    let target = RunId::of("a");
    let sent = sim.try_wait(go.signal(&target, signal_of("go", "5"), Some("go".into())));
    drop(sent);
    sim.play_out();
}

/// Every stored task is of a recorded command.
fn tasks_have_their_commands(sim: &Simulation) -> bool {
    let runs = sim.store().list(&Filter::default(), None, 100).unwrap();
    runs.iter().all(|run| {
        let tasks = sim.store().tasks_of(run.no).unwrap();
        let mut records = Vec::new();
        let mut show = |_: u64, bytes: &[u8]| {
            records.push(TurnRecord::from_bytes(bytes).unwrap());
            std::ops::ControlFlow::Continue(())
        };
        sim.store().turns(run.no, 0, &mut show).unwrap();
        tasks.iter().all(|task| {
            let command = &records[task.turn as usize].commands[task.position as usize].kind;
            matches!(command, CommandKind::Activity(activity) if activity.seq == task.seq)
        })
    })
}

/// Dies at this moment, goes on in another process, and ends alike. Says whether it died at all.
fn survives(store: Arc<dyn Store>, moment: u64) -> bool {
    let world = World::default();
    let sim = Simulation::over(store, serving(&world)).dying(moment);
    ask(&sim, "all sorts");
    let died = sim.died();
    assert!(tasks_have_their_commands(&sim), "moment {moment}, {died:?}");
    let sim = sim.restart();
    ask(&sim, "all sorts");
    assert_eq!(sim.result("a"), completed("[1, 2] 3 4 5 6"), "moment {moment}, {died:?}");
    let done: BTreeSet<String> = world.notes().into_iter().collect();
    let all = ["1", "2", "4", "6", "detached"].map(str::to_owned);
    assert_eq!(done, BTreeSet::from(all), "moment {moment}, {died:?}");
    // Two run at a time, and neither may have been recorded.
    assert!(world.count() <= 7, "moment {moment}, {died:?}: at most what was cut off is done again");
    assert_eq!((rows(&sim, "a"), rows(&sim, "child")), (NO_ROWS, NO_ROWS), "moment {moment}, {died:?}");
    assert_eq!(describe(&sim, "child").status, Status::Completed);
    died.is_some()
}

/// S2-16 S4-41 S4-50 T-26
#[test]
fn wherever_the_process_dies_the_next_one_ends_the_run_alike_and_loses_nothing() {
    let moments = (0..).take_while(|moment| survives(Arc::new(MemoryStore::new()), *moment)).count();
    assert!(moments > 20, "there are many moments to die at, not {moments}");
}

/// S2-16
#[test]
fn crashed_runs_end_alike_over_a_store_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let survives_in_file = |moment: &u64| {
        let path = folder.path().join(format!("{moment}.db"));
        survives(Arc::new(SqliteStore::open(path.to_str().unwrap()).unwrap()), *moment)
    };
    let moments = (0..).step_by(5).take_while(survives_in_file).count();
    assert!(moments > 4, "there are many moments to die at, not {moments}");
}

async fn picks(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let branches = (0..4).map(|number| {
        let ctx = ctx.clone();
        async move {
            ctx.set_state(format!("before {number}"), "1");
            ctx.activity("work", number.to_string()).await.unwrap();
            ctx.set_state(format!("after {number}"), "1");
            ctx.choose(3)
        }
    });
    let chosen = ctx.parallel(branches).await;
    ctx.sleep(secs(1)).await?;
    Ok(payload(format!("{chosen:?}")))
}

fn picking(seed: u64) -> Options {
    let mut options = serving(&World::default()).workflow("picks", picks);
    let pins = Pins { policy: PolicySpec::Random { seed }, ..Pins::default() };
    options.pins.push(("picks".into(), pins));
    options
}

/// S1-73 S1-59
#[test]
fn pick_of_a_random_policy_holds_in_every_later_process() {
    let mut orders = BTreeSet::new();
    for seed in 0..3 {
        let sim = Simulation::new(picking(seed));
        sim.start("picks", "a", "").unwrap();
        sim.play_out();
        let whole = sim.history("a");
        orders.insert(whole.lines().filter(|line| line.contains("before")).collect::<String>());
        for moment in 0.. {
            let sim = Simulation::new(picking(seed)).dying(moment);
            ask(&sim, "picks");
            let (died, turns) = (sim.died(), sim.store().count(&Filter::default(), u64::MAX).unwrap());
            let before = if turns == 0 { String::new() } else { sim.history("a") };
            let sim = sim.restart();
            ask(&sim, "picks");
            assert_eq!(sim.result("a").0, Status::Completed, "{died:?}");
            let after = sim.history("a");
            assert!(after.starts_with(&before), "{died:?}: what was committed stays");
            if died.is_none() {
                break;
            }
        }
    }
    assert_eq!(orders.len(), 3, "other seeds pick otherwise");
}

/// Notes the events of the engine, with their fields.
struct Listener(World);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "dacapo_engine::picks"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.note(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// S1-13
#[test]
fn every_pick_can_be_followed_in_the_traces_with_the_number_of_its_step() {
    let heard = World::default();
    let picked = tracing::subscriber::with_default(Listener(heard.clone()), || {
        let sim = Simulation::new(picking(1));
        sim.start("picks", "a", "").unwrap();
        sim.play_out();
        let transcript = sim.engine().reader().history(&RunId::of("a")).unwrap();
        let choices = transcript.turns.iter().filter_map(|turn| Some((turn.number, turn.choices.clone()?)));
        let lines = choices.flat_map(|(turn, choices)| {
            let line = move |choice: &dacapo_core::Choice| {
                format!("workflow_id=a run_id=run-000001 turn={turn} step={} chosen={} ", choice.step, choice.chosen)
            };
            choices.log().iter().map(|choice| line(&choice)).collect::<Vec<_>>()
        });
        lines.collect::<Vec<_>>()
    });
    let heard: Vec<String> = heard.notes().into_iter().map(|line| line.replace("message=picked ", "")).collect();
    assert!(picked.len() > 8, "{picked:?}");
    assert_eq!(heard, picked);
}
