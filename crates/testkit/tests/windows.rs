//! One story for each window in which a process can die, played once for every moment of it. `docs/crash-matrix.md` says
//! what makes each window safe.
//!
//! After every play the sweep itself checks that each result is recorded once, and that no attempt was made again but
//! those that had run, unrecorded, when the process died.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use dacapo::prelude::*;
use dacapo::{ClientError, Error, Status};
use dacapo_testkit::{AttemptCounts, Kit, Moment, Sweep};
use dacapo_worker::Activity;

const GO: Signal<u64> = Signal::new("go");
const ANSWER: Promise<u64> = Promise::new("answer");
const ADD: Update<u64, u64> = Update::new("add");

#[activity]
async fn double(n: u64) -> Result<u64, Failure> {
    Ok(2 * n)
}

#[workflow]
async fn decide(_ctx: Ctx, n: u64) -> Result<u64, Failure> {
    Ok(n + 1)
}

#[workflow]
async fn two_steps(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let n = ctx.call(double, n).await?;
    ctx.call(double, n).await
}

/// Plays the story for every crash, and asserts that every one happened.
#[track_caller]
fn sweep(story: impl FnMut(&mut Kit)) {
    let swept = Sweep::new(Kit::new).play(story);
    assert_eq!(swept.crashes, swept.moments);
    assert!(swept.moments > 0);
}

#[test]
fn start_creates_one_run_wherever_the_process_crashes() {
    sweep(|kit| {
        assert_eq!(kit.run(decide, 1), Ok(2));
        assert_eq!(kit.histories().len(), 1);
        assert_eq!(kit.histories()[0].1.turns.len(), 1);
    });
}

#[test]
fn turns_follow_each_other_wherever_the_process_crashes() {
    sweep(|kit| {
        let doubled = kit.fake(double, |n| Ok(2 * n));
        let run = kit.start(two_steps, 3);
        assert_eq!(kit.result(&run), Ok(12));
        let mut asked = doubled.calls();
        asked.dedup();
        assert_eq!(asked, [3, 6]);
        assert_eq!(kit.history(&run).turns.len(), 3);
    });
}

/// An attempt that ran and whose result is not stored is made again, under the same number and the same key.
#[test]
fn an_attempt_is_made_again_only_if_its_result_was_not_stored() {
    let mut lost = 0;
    for moment in 0.. {
        let mut kit = Kit::new().crash_at(moment);
        let doubled = kit.fake(double, |n| Ok(2 * n));
        assert_eq!(kit.run(two_steps, 3), Ok(12));
        let Some(death) = kit.deaths().first().copied() else { break };
        let attempts = kit.attempts();
        assert_eq!(attempts, AttemptCounts { made: 2 + attempts.lost, known: 2, lost: attempts.lost }, "{death}");
        assert!(attempts.lost <= 1 && (death != Moment::AfterAttempt || attempts.lost == 1), "{death}");
        assert!(doubled.attempts().iter().all(|info| info.attempt == 1));
        lost += attempts.lost;
    }
    // For each of the two: after the attempt, and before the commit of its result.
    assert_eq!(lost, 4);
}

#[test]
fn attempt_numbers_go_on_after_a_crash() {
    sweep(|kit| {
        let left = AtomicU32::new(0);
        let failing = kit.fake(double, move |n| match left.fetch_add(1, Ordering::Relaxed) {
            0..=2 => Err("not yet".into()),
            _ => Ok(2 * n),
        });
        assert_eq!(kit.run(two_steps, 1), Ok(4));
        let first = failing.attempts()[0].activity_id.clone();
        let of_first = failing.attempts().into_iter().filter(|info| info.activity_id == first);
        let numbers: Vec<u32> = of_first.map(|info| info.attempt).collect();
        // A failure that was noted is not forgotten: no number comes again once a higher one was made.
        assert!(numbers.is_sorted() && numbers.len() >= 4, "{numbers:?}");
    });
}

/// The number of the last attempt that was left to external completion, and its token.
#[derive(Default)]
struct Left(std::sync::Mutex<(u32, String)>);

/// Leaves its attempts to others.
fn leaves_to_others(left: &Arc<Left>) -> Activity {
    let left = left.clone();
    Activity::new("double", move |ctx, _| {
        *left.0.lock().unwrap() = (ctx.info().attempt, ctx.completion_token());
        async move { Err(ctx.complete_later()) }
    })
}

/// The attempt that is left to others is made again only if that was not noted; its token is the same then. A failure
/// from outside counts once, and so does a result.
#[test]
fn external_completion_counts_once_wherever_the_process_crashes() {
    sweep(|kit| {
        let left = Arc::new(Left::default());
        kit.serve(leaves_to_others(&left));
        let run = kit.start(two_steps, 3);
        let (first, token) = left.0.lock().unwrap().clone();
        kit.complete::<u64>(&token, Err(Failure::application("not yet"))).unwrap();
        kit.advance(secs(5));
        let (second, token) = left.0.lock().unwrap().clone();
        assert_eq!((first, second), (1, 2));
        kit.complete(&token, Ok(6)).unwrap();
        let (third, token) = left.0.lock().unwrap().clone();
        assert_eq!(third, 1, "the second step");
        kit.complete(&token, Ok(12)).unwrap();
        assert_eq!(kit.result(&run), Ok(12));
    });
}

#[test]
fn stored_details_are_handed_to_the_attempt_after_a_crash() {
    let mut kit = Kit::new();
    kit.fake_with(double, |ctx, _| async move {
        if let Some(details) = ctx.details()? {
            return Ok(details);
        }
        ctx.heartbeat(&77)?;
        ctx.hang().await
    });
    let run = kit.start(double_with_heartbeats, 1);
    kit.advance(secs(30));
    kit.restart();
    assert_eq!(kit.result(&run), Ok(77));
}

#[workflow]
async fn double_with_heartbeats(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.call(double, n).heartbeat_timeout(mins(1)).await
}

#[workflow]
async fn local(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let n = ctx.call_local(double, n).await?;
    let n = ctx.side_effect("add one", move || async move { Ok(n + 1) }).await?;
    ctx.call(double, n).await
}

#[test]
fn local_work_is_recorded_once_wherever_it_crashes() {
    sweep(|kit| {
        kit.fake(double, |n| Ok(2 * n));
        assert_eq!(kit.run(local, 3), Ok(14));
    });
}

#[workflow]
async fn local_beside_others(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let elsewhere = ctx.call(double, n);
    let here = ctx.side_effect("add one", move || async move { Ok(n + 1) }).await?;
    Ok(here + elsewhere.await?)
}

#[test]
fn local_work_of_a_committed_turn_is_not_forgotten_wherever_it_crashes() {
    sweep(|kit| {
        kit.fake(double, |n| Ok(2 * n));
        assert_eq!(kit.run(local_beside_others, 3), Ok(10));
    });
}

#[workflow]
async fn waits(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.sleep(days(30)).await?;
    ctx.call(double, n).await
}

#[test]
fn a_timer_fires_once_and_in_time_wherever_it_crashes() {
    sweep(|kit| {
        kit.fake(double, |n| Ok(2 * n));
        kit.serve(waits);
        let begun = kit.now();
        assert_eq!(kit.run(waits, 4), Ok(8));
        assert_eq!(kit.now().since(begun), days(30));
    });
}

#[workflow]
async fn listens(ctx: Ctx) -> Result<Vec<u64>, Failure> {
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(ctx.next_signal(GO).await?);
    }
    Ok(heard)
}

#[test]
fn signals_arrive_once_and_in_order_wherever_it_crashes() {
    sweep(|kit| {
        let run = kit.start(listens, ());
        for n in [3, 1, 2] {
            kit.signal(&run, GO, n).unwrap();
        }
        assert_eq!(kit.result(&run), Ok(vec![3, 1, 2]));
    });
}

#[workflow]
async fn adds(ctx: Ctx) -> Result<u64, Failure> {
    let sum = ctx.cell(0);
    let (inside, adder) = (sum.clone(), ctx.clone());
    ctx.on_update(
        ADD,
        |n| if *n == 0 { Err("nothing to add".into()) } else { Ok(()) },
        move |n| {
            let (sum, ctx) = (inside.clone(), adder.clone());
            async move {
                ctx.sleep(secs(1)).await?;
                Ok(sum.update(|sum| {
                    *sum += n;
                    *sum
                }))
            }
        },
    );
    let seen = sum.clone();
    ctx.wait_until(move || seen.read(|sum| *sum >= 6)).await?;
    Ok(sum.read(|sum| *sum))
}

#[test]
fn updates_are_answered_once_wherever_it_crashes() {
    sweep(|kit| {
        let run = kit.start(adds, ());
        assert_eq!(kit.update(&run, ADD, 1).unwrap(), 1);
        assert!(matches!(kit.update(&run, ADD, 0), Err(Error::Client(ClientError::UpdateRejected(_)))));
        assert_eq!(kit.update(&run, ADD, 2).unwrap(), 3);
        assert_eq!(kit.update(&run, ADD, 3).unwrap(), 6);
        assert_eq!(kit.result(&run), Ok(6));
    });
}

#[workflow]
async fn promised(ctx: Ctx) -> Result<u64, Failure> {
    ctx.promise(ANSWER).await
}

#[test]
fn promise_is_resolved_once_wherever_the_process_crashes() {
    sweep(|kit| {
        let run = kit.start(promised, ());
        kit.resolve(&run, ANSWER, 42).unwrap();
        assert_eq!(kit.result(&run), Ok(42));
    });
}

#[workflow]
async fn parent(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let one = ctx.child(two_steps, n);
    let other = ctx.child(two_steps, n + 1);
    Ok(one.await? + other.await?)
}

#[test]
fn child_starts_once_and_its_result_arrives_once_wherever_the_process_crashes() {
    sweep(|kit| {
        kit.fake(double, |n| Ok(2 * n));
        kit.serve((parent, two_steps));
        assert_eq!(kit.run(parent, 1), Ok(12));
        assert_eq!(kit.histories().len(), 3);
    });
}

#[workflow]
async fn counts_down(ctx: Ctx, left: u64, seen: u64) -> Result<u64, Failure> {
    let seen = seen + ctx.next_signal(GO).await?;
    if left == 0 { Ok(seen) } else { Err(ctx.continue_as_new(counts_down, (left - 1, seen))) }
}

#[test]
fn a_chain_of_runs_takes_every_signal_once_wherever_it_crashes() {
    sweep(|kit| {
        let run = kit.start(counts_down, (3, 0));
        for n in [1, 10, 100, 1000] {
            kit.signal(&run, GO, n).unwrap();
        }
        assert_eq!(kit.result(&run), Ok(1111));
        assert_eq!(kit.histories().len(), 4);
    });
}

/// The sender did not hear the answer, and sends again under the same key: the run that took it has gone on as another.
#[test]
fn signal_sent_twice_with_one_request_id_counts_once_in_a_chain() {
    let mut kit = Kit::new();
    let run = kit.start(counts_down, (1, 0));
    let handle = kit.app().handle_raw(run.workflow_id().to_owned());
    for _ in 0..3 {
        kit.wait(handle.signal(GO, 1).request_id("first").into_future()).unwrap();
        kit.advance(secs(1));
    }
    for _ in 0..3 {
        // Also after it has ended the run.
        kit.wait(handle.signal(GO, 10).request_id("second").into_future()).unwrap();
        kit.advance(secs(1));
    }
    assert_eq!(kit.result(&run), Ok(11));
    let late = kit.wait(handle.signal(GO, 100).request_id("third").into_future());
    assert!(matches!(late, Err(Error::Client(ClientError::Closed { status: Status::Completed, .. }))), "{late:?}");
}

/// The run that an update ended answers it for ever.
#[test]
fn an_update_sent_again_under_its_id_has_its_answer_after_the_run_closed() {
    let mut kit = Kit::new();
    let run = kit.start(adds, ());
    // The kit gives its updates ids of their own.
    assert_eq!(kit.update(&run, ADD, 7).unwrap(), 7);
    assert_eq!(kit.result(&run), Ok(7));
    let handle = kit.app().handle_raw(run.workflow_id().to_owned());
    assert_eq!(kit.wait(handle.update(ADD, 7).request_id("key-1").into_future()), Ok(7));
    let late = kit.wait(handle.update(ADD, 7).request_id("key-2").into_future());
    assert!(matches!(late, Err(Error::Client(ClientError::Closed { status: Status::Completed, .. }))), "{late:?}");
}

/// A message to a workflow id is for the open run of that id: a run that continues as new before it has taken the
/// message hands it on.
#[test]
fn signal_sent_while_a_run_continues_as_new_reaches_the_next_run() {
    let mut kit = Kit::new();
    let run = kit.start(counts_down, (1, 0));
    let handle = kit.app().handle_raw(run.workflow_id().to_owned());
    // Both are sent before anything is played.
    let both = futures::future::join(handle.signal(GO, 1).into_future(), handle.signal(GO, 10).into_future());
    assert_eq!(kit.wait(both), (Ok(()), Ok(())));
    assert_eq!(kit.result(&run), Ok(11));
}

#[test]
fn a_terminated_run_stays_terminated_wherever_it_crashes() {
    sweep(|kit| {
        let doubled = kit.fake(double, |_| Err("never".into()));
        let run = kit.start(two_steps, 1);
        kit.terminate(&run, "enough").unwrap();
        assert!(kit.is_closed(&run));
        let made = doubled.count();
        kit.advance(days(1));
        assert_eq!((kit.result(&run).unwrap_err().message.as_str(), doubled.count()), ("enough", made));
    });
}

#[test]
fn a_reset_run_goes_on_from_what_was_kept_wherever_it_crashes() {
    sweep(|kit| {
        let wrong = Arc::new(AtomicBool::new(true));
        let is_wrong = wrong.clone();
        let doubled = kit.fake(double, move |n| match n == 6 && is_wrong.load(Ordering::Relaxed) {
            true => Ok(0),
            false => Ok(2 * n),
        });
        let run = kit.start(two_steps, 3);
        assert_eq!(kit.result(&run), Ok(0));
        wrong.store(false, Ordering::Relaxed);
        // The turn that began the first step is kept, and so is that step's result; the second step is made anew.
        kit.reset(&run, 1, "the second step was wrong").unwrap();
        assert_eq!(kit.result(&run), Ok(12));
        let mut asked = doubled.calls();
        asked.dedup();
        assert_eq!(asked, [3, 6]);
    });
}

/// Set while the code of [`broken`] cannot be played: a bad deploy.
static BROKEN: AtomicBool = AtomicBool::new(false);

#[workflow]
async fn broken(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let n = ctx.call(double, n).await?;
    assert!(!BROKEN.load(Ordering::Relaxed), "a bad deploy");
    ctx.call(double, n).await
}

#[test]
fn a_run_that_cannot_be_played_waits_for_better_code_wherever_it_crashes() {
    Sweep::new(|| Kit::new().runs_may_get_stuck()).play(|kit| {
        BROKEN.store(true, Ordering::Relaxed);
        kit.fake(double, |n| Ok(2 * n));
        let run = kit.start(broken, 1);
        kit.advance(mins(5));
        assert!(!kit.is_closed(&run));
        BROKEN.store(false, Ordering::Relaxed);
        assert_eq!(kit.result(&run), Ok(4));
    });
}

/// A process that dies while it takes over what the one before left is followed by one that takes over the same.
#[test]
fn recovery_that_crashes_at_any_moment_is_repeated_by_the_next_process() {
    let swept = Sweep::new(Kit::new).again_at_every(1).play(|kit| {
        let failing = AtomicU32::new(0);
        kit.fake(double, move |n| match failing.fetch_add(1, Ordering::Relaxed) {
            0 => Err("not yet".into()),
            _ => Ok(2 * n),
        });
        kit.serve((parent, two_steps));
        let run = kit.start(listens, ());
        assert_eq!(kit.run(parent, 1), Ok(12));
        for n in [3, 1, 2] {
            kit.signal(&run, GO, n).unwrap();
        }
        assert_eq!(kit.result(&run), Ok(vec![3, 1, 2]));
    });
    assert_eq!(swept.crashes, swept.moments + 2 * (swept.plays - 1 - swept.moments));
    println!("{swept:?}");
}
