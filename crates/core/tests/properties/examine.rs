//! Examines one program: every way of playing it must come to the same, and what goes wrong is made small and told.

use std::fmt::Write;
use std::sync::Arc;

use dacapo_core::{Activation, Completion, Order, Pins, PolicySpec, Rng, Run, Transcript, TurnRecord, Workflow};

use crate::coverage::{Coverage, Marks};
use crate::interpret::workflow;
use crate::program::{Block, Program};
use crate::world::{BUILD, Problem, Recording, activate, new_run, options, play_turn, record};

/// One program with everything that decides how it is played.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) program: Program,
    pub(crate) pins: Pins,
}

impl Case {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed);
        let program = Program::draw(&mut rng);
        let order = if rng.below(4) == 0 { Order::HandlersFirst } else { Order::RootFirst };
        let policy = match rng.below(3) {
            0 => PolicySpec::Random { seed: rng.next_u64() },
            _ => PolicySpec::Deterministic,
        };
        Self { seed, program, pins: Pins { order, policy, ..Pins::default() } }
    }

    pub(crate) fn record(&self, marks: &Marks) -> Result<Recording, Problem> {
        record(&self.program, self.seed, &self.pins, marks)
    }

    pub(crate) fn workflow(&self) -> Workflow {
        workflow(&self.program, &Marks::default())
    }
}

/// How many programs to play: `DACAPO_PROGRAMS`, or a few for each of `PROPTEST_CASES`, or the number CI plays.
#[allow(clippy::disallowed_methods, reason = "how many programs a test plays may come from its environment")]
pub(crate) fn programs(of_ten_thousand: u64) -> u64 {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let all = read("DACAPO_PROGRAMS").or_else(|| Some(10 * read("PROPTEST_CASES")?)).unwrap_or(10_000);
    (all * of_ten_thousand).div_ceil(10_000)
}

/// Examines the cases of these seeds. The first that fails is made small, told, and fails the test.
pub(crate) fn check_all(
    seeds: impl Iterator<Item = u64>,
    examine: impl Fn(&Case, &Marks) -> Result<(), Problem>,
) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in seeds {
        let (case, marks) = (Case::draw(seed), Marks::default());
        if let Err(problem) = examine(&case, &marks) {
            fail(case, problem, &examine);
        }
        coverage.add(&marks);
    }
    coverage
}

/// Deletes what can be deleted while the problem stays, then tells.
fn fail(mut case: Case, mut problem: Problem, examine: &impl Fn(&Case, &Marks) -> Result<(), Problem>) -> ! {
    let mut place = 0;
    while place < case.program.size() {
        let mut smaller = case.clone();
        let mut left = place;
        remove(&mut smaller.program.body, &mut left);
        match examine(&smaller, &Marks::default()) {
            Err(still) => (case, problem) = (smaller, still),
            Ok(()) => place += 1,
        }
    }
    let mut story = format!("seed {} under {:?}: {problem}\n", case.seed, case.pins);
    writeln!(story, "waits for handlers: {}", case.program.wait_for_handlers).expect("writing to memory cannot fail");
    for step in case.program.body.iter() {
        writeln!(story, "  {step:?}").expect("writing to memory cannot fail");
    }
    if let Ok(recording) = case.record(&Marks::default()) {
        story += &recording.transcript.to_text();
    }
    panic!("{story}");
}

/// Removes the step at this place in the order of reading. Says whether it was there.
pub(crate) fn remove(block: &mut Block, left: &mut usize) -> bool {
    let steps = Arc::make_mut(block);
    for place in 0..steps.len() {
        if *left == 0 {
            steps.remove(place);
            return true;
        }
        *left -= 1;
        if steps[place].op.blocks_mut().into_iter().any(|inner| remove(inner, left)) {
            return true;
        }
    }
    false
}

/// Every way of playing it comes to the same.
pub(crate) fn all_plays_agree(case: &Case, marks: &Marks) -> Result<(), Problem> {
    let recording = case.record(marks)?;
    forms_round_trip(&recording.transcript)?;
    replays_byte_equal(case, &recording.transcript)?;
    plays_twice_the_same(case, &recording)?;
    plays_evicted_the_same(case, &recording)
}

/// Both forms bring the transcript back, to the byte.
fn forms_round_trip(transcript: &Transcript) -> Result<(), Problem> {
    let bytes = transcript.to_bytes();
    let text = transcript.to_text();
    let from_bytes = Transcript::from_bytes(&bytes).map_err(|error| error.to_string())?;
    let from_text = Transcript::from_text(&text).map_err(|error| format!("{error}\n{text}"))?;
    for (form, read) in [("compact form", from_bytes), ("form for people", from_text)] {
        if let Some(difference) = transcript.diff(&read) {
            return Err(format!("the {form} does not bring it back: {difference}"));
        }
        if read.to_bytes() != bytes || read.to_text() != text {
            return Err(format!("the {form} is written differently once it was read"));
        }
    }
    Ok(())
}

/// Replaying and recording again gives the same bytes.
pub(crate) fn replays_byte_equal(case: &Case, transcript: &Transcript) -> Result<(), Problem> {
    let mut run = new_run(&case.workflow(), &case.pins);
    for record in &transcript.turns {
        let turn = record.clone().into_turn();
        let done = play_turn(&mut run, turn.clone())?;
        let again = TurnRecord::of(&turn, &done, &BUILD).ok_or("a recorded turn leaves no trace")?;
        if again.to_bytes() != record.to_bytes() {
            return Err(format!("turn {} replays as {again:#?}\nand was {record:#?}", record.number));
        }
    }
    Ok(())
}

/// A fresh run, and a pair of runs side by side, decide what the first did: also under a random policy of one seed.
fn plays_twice_the_same(case: &Case, recording: &Recording) -> Result<(), Problem> {
    let mut run = Run::new(case.workflow(), options(&case.pins, true)).map_err(|error| error.to_string())?;
    for (turn, done) in &recording.turns {
        let again = play_turn(&mut run, turn.clone())?;
        if again != *done {
            return Err(format!("played again, {turn:#?}\ncomes to {again:#?}\nand was {done:#?}"));
        }
    }
    Ok(())
}

/// Evicted and rebuilt before every turn, the run decides what it did in memory.
fn plays_evicted_the_same(case: &Case, recording: &Recording) -> Result<(), Problem> {
    let workflow = case.workflow();
    let mut kept = Transcript::new(recording.transcript.workflow.clone(), case.pins.clone());
    for (turn, done) in &recording.turns {
        let mut run = kept.replay(&workflow, options(&case.pins, false)).map_err(|failed| failed.to_string())?;
        let again = play_turn(&mut run, turn.clone())?;
        if again != *done {
            return Err(format!("after an eviction, {turn:#?}\ncomes to {again:#?}\nand was {done:#?}"));
        }
        kept.record(turn, &again, &BUILD);
        match activate(&mut run, Activation::Evict)? {
            Completion::Evicted => {}
            other => return Err(format!("an eviction was answered with {other:?}")),
        }
    }
    Ok(())
}
