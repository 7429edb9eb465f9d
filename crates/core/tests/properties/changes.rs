//! Changed programs: whatever changes the commands of a recorded turn is caught and named; what does not passes.

use std::sync::Arc;

use dacapo_core::{
    Activation, ActivationError, CancelType, CommandKind, Completion, IdReuse, ParentClose, Pins, PolicySpec, Priority,
    ReplayFailed, Rng, Timeouts, Transcript, TurnRecord,
};

use crate::coverage::Marks;
use crate::examine::{Case, check_all, programs, remove};
use crate::interpret::workflow;
use crate::program::{Block, Op, Program, Step, any_leaf};
use crate::world::{Problem, activate, new_run, options};

/// S0-1, S2-15
#[test]
fn a_change_of_the_program_that_changes_a_recorded_turn_is_caught_and_named() {
    let count = programs(2_000);
    let caught = std::sync::atomic::AtomicU64::new(0);
    let passed = std::sync::atomic::AtomicU64::new(0);
    check_all(1_000_000..1_000_000 + count, |case, marks| {
        let case = Case { pins: Pins { policy: PolicySpec::Deterministic, ..case.pins.clone() }, ..case.clone() };
        let recording = case.record(marks)?;
        let mut rng = Rng::from_seed(case.seed ^ 0x6368_616e_6765);
        for _ in 0..6 {
            let changed = change(&case.program, &mut rng);
            let counter = match replay_fails(&case, &changed, &recording.transcript)? {
                true => &caught,
                false => &passed,
            };
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    });
    let (caught, passed) = (caught.into_inner(), passed.into_inner());
    println!("{caught} changes were caught, {passed} changed no recorded turn");
    assert!(caught > passed / 2, "most changes should matter: {caught} of {}", caught + passed);
    assert!(passed > caught / 20, "some changes should not: {passed} of {}", caught + passed);
}

/// Under a random policy a change may also show as a question that was never asked then. What replays all the same
/// decides what was recorded.
///
/// S0-1, S1-55
#[test]
fn a_change_of_a_randomly_played_program_is_caught_or_changes_no_command() {
    check_all(13_000_000..13_000_000 + programs(500), |case, marks| {
        let policy = PolicySpec::Random { seed: case.seed };
        let case = Case { pins: Pins { policy, ..case.pins.clone() }, ..case.clone() };
        let transcript = case.record(marks)?.transcript;
        let mut rng = Rng::from_seed(case.seed);
        for _ in 0..6 {
            let changed = change(&case.program, &mut rng);
            let mut run = new_run(&workflow(&changed, &Marks::default()), &case.pins);
            for record in &transcript.turns {
                match activate(&mut run, Activation::Turn(record.clone().into_turn()))? {
                    Completion::Turn(done) => {
                        let new: Vec<_> = done.commands.into_iter().map(|command| command.kind).collect();
                        if !same(record, &new) {
                            return Err(format!("turn {} replays as {new:?}: {changed:?}", record.number));
                        }
                    }
                    Completion::Failed(error) if matches!(*error, ActivationError::Policy(_)) => break,
                    Completion::Failed(error) => {
                        named(&ReplayFailed { turn: record.number, error })?;
                        break;
                    }
                    other => return Err(format!("a turn was answered with {other:?}")),
                }
            }
        }
        Ok(())
    });
}

/// Whether the replay of a changed program fails, which it must exactly if it decides something else.
fn replay_fails(case: &Case, changed: &Program, transcript: &Transcript) -> Result<bool, Problem> {
    let workflow = workflow(changed, &Marks::default());
    let differs = first_difference(case, changed, transcript)?;
    match (transcript.replay(&workflow, options(&case.pins, false)), differs) {
        (Ok(_), None) => Ok(false),
        (Err(failed), Some(turn)) if failed.turn == turn => named(&failed).map(|()| true),
        (Ok(_), Some(turn)) => Err(format!("turn {turn} decides something else, and replays: {changed:?}")),
        (Err(failed), differs) => {
            Err(format!("replay of {changed:?}\nfails with {failed}\nand the first difference is in turn {differs:?}"))
        }
    }
}

/// A failed replay says which command it is about.
fn named(failed: &ReplayFailed) -> Result<(), Problem> {
    match &*failed.error {
        ActivationError::Nondeterminism(report) if report.recorded().is_some() || report.decided().is_some() => {
            let text = report.to_string();
            let named = [report.recorded(), report.decided()];
            let all = named.into_iter().flatten().all(|command| text.contains(&command.kind.to_string()));
            if all { Ok(()) } else { Err(format!("the report does not name its commands: {text}")) }
        }
        // The change took away what a job of this turn is about, in a way that no earlier turn shows.
        ActivationError::Job(_) => Ok(()),
        other => Err(format!("a changed program fails with {other}")),
    }
}

/// The first recorded turn in which the changed program, given the same jobs and nothing to match, decides otherwise.
fn first_difference(case: &Case, changed: &Program, transcript: &Transcript) -> Result<Option<u64>, Problem> {
    let mut run = new_run(&workflow(changed, &Marks::default()), &case.pins);
    for record in &transcript.turns {
        let mut turn = record.clone().into_turn();
        turn.recorded = None;
        // A backend that matches commands itself says which patches the history holds.
        let patches = record.commands.iter().filter_map(|command| match &command.kind {
            CommandKind::Patch(patch) => Some(dacapo_core::Job::Patch { id: patch.id.clone() }),
            _ => None,
        });
        turn.jobs.extend(patches);
        match activate(&mut run, Activation::Turn(turn))? {
            Completion::Turn(done) => {
                let new: Vec<_> = done.commands.into_iter().map(|command| command.kind).collect();
                if !same(record, &new) {
                    return Ok(Some(record.number));
                }
            }
            Completion::Failed(error) if matches!(*error, ActivationError::Job(_) | ActivationError::Closed) => {
                return Ok(Some(record.number));
            }
            other => return Err(format!("a changed program answers {other:?}")),
        }
    }
    Ok(None)
}

/// Whether commands mean the same. A recorded mark of a deprecated patch may be missing.
fn same(record: &TurnRecord, new: &[CommandKind]) -> bool {
    let mut new = new.iter().peekable();
    for recorded in &record.commands {
        let recorded = &recorded.kind;
        match new.peek() {
            Some(next) if meaning(recorded) == meaning(next) => drop(new.next()),
            _ if matches!(recorded, CommandKind::Patch(patch) if patch.deprecated) => {}
            _ => return false,
        }
    }
    new.next().is_none()
}

/// The command with everything taken away that only tunes it.
fn meaning(kind: &CommandKind) -> CommandKind {
    let mut kind = kind.clone();
    match &mut kind {
        CommandKind::Activity(c) => {
            let c = std::sync::Arc::make_mut(c);
            (c.queue, c.retry, c.summary) = (None, None, None);
            (c.timeouts, c.cancel, c.priority) = (Timeouts::default(), CancelType::default(), Priority::default());
            c.headers.clear();
        }
        CommandKind::LocalActivity(c) => {
            (c.retry, c.summary, c.local_retry_threshold, c.first_scheduled) = (None, None, None, None);
            (c.timeouts, c.cancel) = (Timeouts::default(), CancelType::default());
        }
        CommandKind::SideEffect(c) => (c.retry, c.summary, c.timeouts) = (None, None, Timeouts::default()),
        CommandKind::Timer(c) => c.summary = None,
        CommandKind::Child(c) => {
            (c.queue, c.retry, c.summary, c.cron) = (None, None, None, None);
            (c.parent_close, c.id_reuse) = (ParentClose::default(), IdReuse::default());
            (c.cancel, c.priority) = (CancelType::default(), Priority::default());
        }
        CommandKind::CancelExternal(c) => c.reason.clear(),
        CommandKind::Nexus(c) => (c.cancel, c.summary) = (CancelType::default(), None),
        CommandKind::Cancel(c) => c.reason.clear(),
        CommandKind::Patch(c) => c.deprecated = false,
        CommandKind::ContinueAsNew(c) => (c.memo, c.search_attributes, c.queue) = (None, None, None),
        _ => {}
    }
    kind
}

/// The program with one step deleted, doubled, swapped with the next, replaced, or given another value.
fn change(program: &Program, rng: &mut Rng) -> Program {
    let mut program = program.clone();
    let place = rng.below(program.size().max(1) as u64) as usize;
    let mut left = place;
    match rng.below(5) {
        0 => {
            remove(&mut program.body, &mut left);
        }
        1 => {
            let op = any_leaf(rng);
            edit(&mut program.body, &mut left, &mut |steps, at| {
                steps.insert(at, Step { op: op.clone(), strict: false })
            });
        }
        2 => {
            edit(&mut program.body, &mut left, &mut |steps, at| {
                if at + 1 < steps.len() {
                    steps.swap(at, at + 1);
                }
            });
        }
        3 => {
            let op = any_leaf(rng);
            edit(&mut program.body, &mut left, &mut |steps, at| steps[at].op = op.clone());
        }
        _ => {
            edit(&mut program.body, &mut left, &mut |steps, at| tweak(&mut steps[at].op));
        }
    }
    program
}

/// Another name, input or duration.
fn tweak(op: &mut Op) {
    match op {
        Op::Start { name, input, .. } => (*name, *input) = ((*name + 1) % 3, *input + 1),
        Op::SetState(_, value) | Op::Timeout(value, _) | Op::ContinueAsNew(value) | Op::WaitUntil(value) => *value += 1,
        Op::Signal(name) | Op::Memo(name, _) | Op::Attribute(name, _) | Op::ClearState(name) => *name = 1 - *name,
        Op::Patched(id, _) | Op::Deprecated(id) => *id = 1 - *id,
        _ => {}
    }
}

/// Changes the block that holds the step at this place in the order of reading.
fn edit(block: &mut Block, left: &mut usize, change: &mut impl FnMut(&mut Vec<Step>, usize)) -> bool {
    let steps = Arc::make_mut(block);
    for place in 0..steps.len() {
        if *left == 0 {
            change(steps, place);
            return true;
        }
        *left -= 1;
        if steps[place].op.blocks_mut().into_iter().any(|inner| edit(inner, left, change)) {
            return true;
        }
    }
    false
}
