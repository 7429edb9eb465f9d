//! A run that picks a million times, alone in its process so that its memory can be measured.

use dacapo_core::{Ctx, Payload, Pins, PolicySpec, Workflow};
use dacapo_engine::{Options, RunId};
use dacapo_sqlite::SqliteStore;
use dacapo_store::Status;
use dacapo_testkit::Simulation;

const TURNS: u64 = 100;
const CHOICES: u64 = 10_000;

fn picking() -> Options {
    let workflow = Workflow::new("picks", |ctx: Ctx, _| async move {
        let mut sum = 0;
        for _ in 0..TURNS {
            ctx.sleep(std::time::Duration::from_secs(1)).await?;
            sum += (0..CHOICES).map(|_| u64::from(ctx.choose(60_000))).sum::<u64>();
        }
        Ok(Payload::from(sum.to_string()))
    });
    let mut options = Options { double_play: false, ..Options::default() };
    options.registry.workflow(workflow).unwrap();
    let policy = PolicySpec::Random { seed: 1 };
    options.pins.push(("picks".into(), Pins { policy, ..Pins::default() }));
    options
}

/// The bytes that this process has in memory, where the system says so.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<u64>().ok()? * 4096)
}

/// S1-40: each turn's choices go into the store with the turn, and stay there: a million of them cost no more memory than
/// the first hundred thousand, none is overwritten, and all of them are there for a replay.
#[test]
fn a_million_choices_are_streamed_to_the_store_and_replayed_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("choices.db").to_str().unwrap()).unwrap();
    let sim = Simulation::over(std::sync::Arc::new(store), picking());
    sim.start("picks", "a", "").unwrap();
    sim.advance(std::time::Duration::from_secs(TURNS / 10));
    let before = resident();
    let (status, result) = sim.result("a");
    let grown = resident().zip(before).map_or(0, |(after, before)| after.saturating_sub(before));
    assert_eq!(status, Status::Completed);
    assert!(grown < 4 << 20, "the log has 8 MB, and memory has grown by {grown} bytes");

    let transcript = sim.engine().reader().history(&RunId::of("a")).unwrap();
    let choices = transcript.turns.iter().filter_map(|turn| turn.choices.as_ref()).map(|turn| turn.log().len());
    // Beside what it asks for, each turn picks its only unit.
    assert_eq!(choices.sum::<u64>(), TURNS * CHOICES + TURNS + 1);

    // A process that has nothing but the store plays it again, and every choice fits.
    let sim = sim.restart();
    let replayed = sim.wait(sim.engine().inspect(&RunId::of("a"))).unwrap();
    assert_eq!((result.is_ok(), replayed.pending.len()), (true, 0));
}
