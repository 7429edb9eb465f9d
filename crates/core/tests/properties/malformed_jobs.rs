//! Activations that cannot be: each is a typed error, nothing of it is applied, and the run goes on as if nothing had
//! come.

use std::time::Duration;

use dacapo_core::{
    Activation, ActivationError, Completion, Ctx, Failure, Job, JobError, Operation, Outcome, Payload, Pins, Query,
    Resolution, Rng, Run, Seq, StartOutcome, Target, Timestamp, Turn, Update, Workflow,
};

use futures::FutureExt;

use crate::examine::{Case, check_all, programs};
use crate::interpret::WORKFLOW;
use crate::world::{Problem, activate, new_run, play_turn, start};

/// Starts one of everything, takes two results in turn, and answers one update slowly.
fn everything() -> Workflow {
    Workflow::new(WORKFLOW, |ctx: Ctx, _| async move {
        let slow = ctx.clone();
        ctx.on_update(
            "slow",
            |_| Ok(()),
            move |_| {
                let ctx = slow.clone();
                async move { ctx.promise("slow").await }
            },
        );
        let first = ctx.activity("activity", "");
        let local = ctx.local_activity("local", "");
        let run = ctx.side_effect("run", || async { Ok(Payload::empty()) });
        let timer = ctx.sleep(Duration::from_secs(1));
        let child = ctx.child("child", "");
        let signal = ctx.signal_external(Target::workflow("other"), "note", "");
        let cancel = ctx.cancel_external(Target::workflow("other"), "");
        let nexus = ctx.nexus("end", "service", "operation", "");
        let promise = ctx.promise("promise");
        ctx.activity("dropped", "").detach();
        let both = ctx.join([first]).await;
        ctx.set_state("first", format!("{both:?}"));
        timer.await?;
        ctx.try_join([local.boxed(), run.boxed(), child.boxed(), nexus.boxed()]).await?;
        signal.await?;
        cancel.await?;
        promise.await
    })
}

/// The seqs of what [`everything`] starts.
const KINDS: [(u64, Operation); 9] = [
    (0, Operation::Activity),
    (1, Operation::LocalActivity),
    (2, Operation::SideEffect),
    (3, Operation::Timer),
    (4, Operation::Child),
    (5, Operation::SignalExternal),
    (6, Operation::CancelExternal),
    (7, Operation::Nexus),
    (8, Operation::Promise),
];
/// Detached: its result is ignored, whatever it is.
const DETACHED: u64 = 9;

fn ok() -> Outcome {
    Outcome::Completed("ok".into())
}

fn resolutions() -> Vec<Resolution> {
    vec![
        Resolution::Timer,
        Resolution::Activity(ok()),
        Resolution::Backoff { attempt: 2, pause: Duration::from_secs(1), first_scheduled: None },
        Resolution::SideEffect(ok()),
        Resolution::ChildStarted(StartOutcome::As("run".into())),
        Resolution::Child(ok()),
        Resolution::SignalExternal { failure: None },
        Resolution::CancelExternal { failure: None },
        Resolution::NexusStarted(StartOutcome::As("token".into())),
        Resolution::Nexus(ok()),
        Resolution::Promise(ok()),
    ]
}

fn resolve(seq: u64, resolution: Resolution) -> Job {
    Job::resolve(Seq(seq), resolution)
}

fn update(id: &'static str, name: &'static str) -> Job {
    Job::Update(Box::new(Update { id: id.into(), name: name.into(), ..Update::default() }))
}

fn turn(jobs: Vec<Job>) -> Turn {
    Turn::new(Timestamp::from_millis(5), jobs)
}

fn started() -> Run {
    let mut run = new_run(&everything(), &Pins::default());
    play_turn(&mut run, turn(vec![start(7), update("open", "slow")])).expect("it starts");
    run
}

/// Refused with this error, whether the bad job stands alone, behind a good one or before one; and then the run goes on
/// like a twin that was never disturbed.
#[track_caller]
fn assert_refused(bad: Vec<Job>, expected: JobError) {
    let good = || Job::Signal(Box::default());
    let with = |before: bool| match before {
        true => [vec![good()], bad.clone()].concat(),
        false => [bad.clone(), vec![good()]].concat(),
    };
    let (mut run, mut twin) = (started(), started());
    for jobs in [bad.clone(), with(true), with(false)] {
        let answer = activate(&mut run, Activation::Turn(turn(jobs))).expect("no panic");
        assert_eq!(answer, Completion::Failed(Box::new(expected.clone().into())));
        assert_eq!(run.inspect(), twin.inspect(), "nothing was applied");
    }
    for (seq, resolution) in [(0, Resolution::Activity(ok())), (3, Resolution::Timer), (1, Resolution::Activity(ok()))]
    {
        let next = turn(vec![resolve(seq, resolution)]);
        assert_eq!(play_turn(&mut run, next.clone()), play_turn(&mut twin, next), "the run goes on");
    }
}

/// S0-57
#[test]
fn a_result_of_what_was_never_started_is_refused() {
    for resolution in resolutions() {
        assert_refused(vec![resolve(11, resolution.clone())], JobError::UnknownSeq(Seq(11)));
        assert_refused(vec![resolve(u64::MAX, resolution)], JobError::UnknownSeq(Seq(u64::MAX)));
    }
}

/// S0-57
#[test]
fn a_result_of_the_wrong_kind_is_refused() {
    for (seq, operation) in KINDS {
        for resolution in resolutions().into_iter().filter(|resolution| !resolution.fits(operation)) {
            let expected = JobError::WrongKind { seq: Seq(seq), operation, resolution: resolution.word() };
            assert_refused(vec![resolve(seq, resolution)], expected);
        }
    }
}

/// S0-57
#[test]
fn a_second_result_in_one_activation_is_refused() {
    let once = |operation: Operation| {
        let begins =
            |resolution: &Resolution| matches!(resolution, Resolution::ChildStarted(_) | Resolution::NexusStarted(_));
        let (starts, ends): (Vec<_>, Vec<_>) =
            resolutions().into_iter().filter(|r| r.fits(operation)).partition(begins);
        (starts, ends)
    };
    for (seq, operation) in KINDS {
        let (starts, ends) = once(operation);
        for end in ends {
            let mut jobs: Vec<Job> = starts.iter().map(|begin| resolve(seq, begin.clone())).collect();
            jobs.extend([resolve(seq, end.clone()), resolve(seq, end)]);
            assert_refused(jobs, JobError::ResolvedTwice(Seq(seq)));
        }
        for begin in starts {
            assert_refused(vec![resolve(seq, begin.clone()), resolve(seq, begin)], JobError::ResolvedTwice(Seq(seq)));
        }
    }
}

/// S0-57
#[test]
fn a_second_result_in_a_later_activation_is_refused() {
    let (mut run, mut twin) = (started(), started());
    let promise = || resolve(8, Resolution::Promise(ok()));
    for run in [&mut run, &mut twin] {
        play_turn(run, turn(vec![promise(), resolve(0, Resolution::Activity(ok()))])).expect("it goes on");
    }
    // One that was taken, and one that came before a unit awaited it.
    for (seq, job) in [(0, resolve(0, Resolution::Activity(ok()))), (8, promise())] {
        let answer = activate(&mut run, Activation::Turn(turn(vec![job]))).expect("no panic");
        assert_eq!(answer, Completion::Failed(Box::new(JobError::ResolvedTwice(Seq(seq)).into())));
    }
    let next = turn(vec![resolve(3, Resolution::Timer)]);
    assert_eq!(play_turn(&mut run, next.clone()), play_turn(&mut twin, next));
}

/// S0-57
#[test]
fn late_result_of_a_dropped_operation_is_ignored_however_often_it_comes() {
    let mut run = started();
    for _ in 0..3 {
        let done = play_turn(&mut run, turn(vec![resolve(DETACHED, Resolution::Activity(ok()))])).expect("ignored");
        assert!(done.commands.is_empty());
    }
}

/// S0-14
#[test]
fn a_result_before_its_start_is_refused() {
    assert_refused(vec![resolve(4, Resolution::Child(ok()))], JobError::NotYetStarted(Seq(4)));
    assert_refused(vec![resolve(7, Resolution::Nexus(ok()))], JobError::NotYetStarted(Seq(7)));
}

#[test]
fn a_result_after_a_failed_start_is_refused() {
    let failed = || StartOutcome::Failed(Box::new(Failure::application("no")));
    let child = vec![resolve(4, Resolution::ChildStarted(failed())), resolve(4, Resolution::Child(ok()))];
    assert_refused(child, JobError::ResolvedTwice(Seq(4)));
    let nexus = vec![resolve(7, Resolution::NexusStarted(failed())), resolve(7, Resolution::Nexus(ok()))];
    assert_refused(nexus, JobError::ResolvedTwice(Seq(7)));
}

#[test]
fn a_second_start_is_refused() {
    assert_refused(vec![start(7)], JobError::StartedTwice);
}

#[test]
fn two_updates_with_one_id_are_refused() {
    assert_refused(vec![update("u", "slow"), update("u", "other")], JobError::UpdateTwice("u".into()));
    assert_refused(vec![update("open", "slow")], JobError::UpdateTwice("open".into()));
}

#[test]
fn a_run_that_was_not_started_takes_nothing_and_can_still_be_started() {
    let mut run = new_run(&everything(), &Pins::default());
    let mut other = start(7);
    if let Job::Start(start) = &mut other {
        start.workflow = "other".into();
    }
    let named = JobError::OtherWorkflow { expected: WORKFLOW.into(), found: "other".into() };
    let bad = [
        (vec![], JobError::NotStarted),
        (vec![Job::Cancel { reason: String::new() }], JobError::NotStarted),
        (vec![Job::Signal(Box::default()), start(7)], JobError::NotStarted),
        (vec![resolve(0, Resolution::Timer)], JobError::NotStarted),
        (vec![start(7), resolve(0, Resolution::Timer)], JobError::UnknownSeq(Seq(0))),
        (vec![start(7), start(7)], JobError::StartedTwice),
        (vec![start(7), update("u", "slow"), update("u", "slow")], JobError::UpdateTwice("u".into())),
        (vec![other], named),
    ];
    for (jobs, expected) in bad {
        let answer = activate(&mut run, Activation::Turn(turn(jobs))).expect("no panic");
        assert_eq!(answer, Completion::Failed(Box::new(expected.into())));
    }
    let answer = activate(&mut run, Activation::Query(vec![Query::default()])).expect("no panic");
    assert_eq!(answer, Completion::Failed(Box::new(JobError::QueryBeforeStart.into())));
    let first = turn(vec![start(7), update("open", "slow")]);
    let mut twin = new_run(&everything(), &Pins::default());
    assert_eq!(play_turn(&mut run, first.clone()), play_turn(&mut twin, first));
}

#[test]
fn a_closed_run_and_an_evicted_one_take_no_turn() {
    let workflow = Workflow::new(WORKFLOW, |_: Ctx, _| async { Ok(Payload::empty()) });
    let mut run = new_run(&workflow, &Pins::default());
    assert!(play_turn(&mut run, turn(vec![start(7)])).expect("it plays").closed);
    for jobs in
        [vec![], vec![start(7)], vec![Job::Cancel { reason: String::new() }], vec![resolve(0, Resolution::Timer)]]
    {
        let answer = activate(&mut run, Activation::Turn(turn(jobs))).expect("no panic");
        assert_eq!(answer, Completion::Failed(Box::new(ActivationError::Closed)));
    }
    assert_eq!(activate(&mut run, Activation::Evict), Ok(Completion::Evicted));
    assert_eq!(activate(&mut run, Activation::Evict), Ok(Completion::Evicted));
    for activation in [Activation::Turn(turn(vec![start(7)])), Activation::Query(vec![Query::default()])] {
        let answer = activate(&mut run, activation).expect("no panic");
        assert_eq!(answer, Completion::Failed(Box::new(ActivationError::Evicted)));
    }
}

/// Generated runs are sent generated nonsense before every turn, and decide what they decided without it.
///
/// S0-57
#[test]
fn nonsense_between_the_turns_of_generated_programs_changes_nothing() {
    check_all(7_000_000..7_000_000 + programs(500), |case, marks| {
        let recording = case.record(marks)?;
        let mut rng = Rng::from_seed(case.seed);
        let mut run = new_run(&case.workflow(), &case.pins);
        let mut resolved = Vec::new();
        for (turn, done) in &recording.turns {
            for _ in 0..3 {
                disturb(case, &mut run, &mut rng, &turn.jobs, &resolved)?;
            }
            let pending = run.inspect().pending;
            resolved.extend(turn.jobs.iter().filter_map(|job| match job {
                Job::Resolve { seq, resolution, .. } if !is_start(resolution) => {
                    pending.iter().find(|known| known.seq == *seq).map(|_| job.clone())
                }
                _ => None,
            }));
            let again = play_turn(&mut run, turn.clone())?;
            if again != *done {
                return Err(format!("after nonsense, {turn:#?}\ncomes to {again:#?}\nand was {done:#?}"));
            }
        }
        Ok(())
    });
}

fn is_start(resolution: &Resolution) -> bool {
    matches!(resolution, Resolution::ChildStarted(_) | Resolution::NexusStarted(_))
}

/// Sends good jobs with one bad among them.
fn disturb(case: &Case, run: &mut Run, rng: &mut Rng, good: &[Job], resolved: &[Job]) -> Result<(), Problem> {
    let before = run.inspect();
    let mut any = |of: usize| rng.below(of as u64) as usize;
    let kinds = resolutions();
    let bad = match any(4) {
        0 => resolve(before.next_seq.0 + any(3) as u64, kinds[any(kinds.len())].clone()),
        1 if !before.pending.is_empty() => {
            let pending = &before.pending[any(before.pending.len())];
            let wrong: Vec<_> = kinds.into_iter().filter(|resolution| !resolution.fits(pending.operation)).collect();
            Job::resolve(pending.seq, wrong[any(wrong.len())].clone())
        }
        2 if !resolved.is_empty() => resolved[any(resolved.len())].clone(),
        // In the first turn it stands behind the start, or in its place.
        _ => start(case.seed),
    };
    let mut jobs = good.to_vec();
    jobs.insert(any(jobs.len() + 1), bad);
    match activate(run, Activation::Turn(Turn::new(Timestamp::default(), jobs.clone())))? {
        Completion::Failed(error) if matches!(*error, ActivationError::Job(_)) => {}
        answer => return Err(format!("nonsense {jobs:?}\nwas answered with {answer:?}")),
    }
    match run.inspect() == before {
        true => Ok(()),
        false => Err(format!("nonsense {jobs:?}\nleft a trace: {before:#?}\nis now {:#?}", run.inspect())),
    }
}

/// Recorded turns are for their place alone.
///
/// S0-57
#[test]
fn recorded_turns_out_of_order_or_twice_are_refused() {
    check_all(8_000_000..8_000_000 + programs(200), |case, marks| {
        let recording = case.record(marks)?;
        let records = &recording.transcript.turns;
        let mut run = new_run(&case.workflow(), &case.pins);
        for (expected, record) in records.iter().enumerate() {
            for (found, wrong) in records.iter().enumerate().filter(|(found, _)| *found != expected) {
                let answer = activate(&mut run, Activation::Turn(wrong.clone().into_turn()))?;
                let refused = JobError::OutOfOrder { expected: expected as u64, found: found as u64 };
                if answer != Completion::Failed(Box::new(refused.into())) {
                    return Err(format!("turn {found} in the place of turn {expected} is answered with {answer:?}"));
                }
            }
            play_turn(&mut run, record.clone().into_turn())?;
        }
        Ok(())
    });
}

/// A turn that was recorded with the commands of another is not that turn.
///
/// S0-57, S2-15
#[test]
fn recorded_turns_with_foreign_commands_are_refused() {
    check_all(9_000_000..9_000_000 + programs(300), |case, marks| {
        let recording = case.record(marks)?;
        let records = &recording.transcript.turns;
        for place in 0..records.len() {
            let mut transcript = recording.transcript.clone();
            let foreign = records[(place + 1) % records.len()].commands.clone();
            let own = std::mem::replace(&mut transcript.turns[place].commands, foreign);
            let harmless = |commands: &[dacapo_core::Command]| {
                let deprecated = |kind: &dacapo_core::CommandKind| matches!(kind, dacapo_core::CommandKind::Patch(patch) if patch.deprecated);
                commands.iter().filter(|c| !deprecated(&c.kind)).map(|c| c.kind.clone()).collect::<Vec<_>>()
            };
            let same = harmless(&own) == harmless(&transcript.turns[place].commands);
            let replay = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                transcript.replay(&case.workflow(), crate::world::options(&case.pins, false)).map(drop)
            }));
            match replay {
                Err(_) => return Err(format!("foreign commands in turn {place} make the core panic")),
                Ok(Ok(())) if !same => return Err(format!("foreign commands in turn {place} replay")),
                Ok(Err(failed)) if failed.turn < place as u64 => return Err(format!("too early: {failed}")),
                Ok(_) => {}
            }
        }
        Ok(())
    });
}
