//! Watching a run from another thread: what it is doing, and how to stop it.

#![allow(clippy::disallowed_methods, reason = "a watch is for another thread, so these tests have one")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use dacapo_core::{ActivationError, Completion, Ctx, Run, RunOptions, Transcript, Watch, Workflow};
use dacapo_testkit::workflow;

use crate::deadline::{Deadline, wait_until};
use crate::kit::*;

fn error(completion: Completion) -> ActivationError {
    match completion {
        Completion::Failed(error) => *error,
        other => panic!("{other:?}"),
    }
}

/// Plays the start on a thread of its own.
fn play(mut run: Run) -> std::thread::JoinHandle<(Completion, Run)> {
    std::thread::spawn(move || (run.activate(start()), run))
}

fn until_it_runs(watch: &Watch) {
    wait_until("the first call of the run", || watch.running().is_some() && watch.site().is_some());
}

/// C-23, C-36: code that calls its ctx is stopped at its next call.
#[test]
fn an_interrupted_turn_fails_at_its_next_call() {
    let spinning = workflow(|ctx: Ctx, _| async move {
        let deadline = Deadline::of("the interrupt");
        loop {
            ctx.now();
            deadline.check();
        }
    });
    let run = single(&spinning);
    let watch = run.watch();
    let played = play(run);
    until_it_runs(&watch);
    assert!(watch.is_playing());
    assert_eq!(watch.turn(), 0);
    watch.interrupt("too slow");
    let (completion, mut run) = played.join().unwrap();
    let ActivationError::Interrupted { reason, unit, site } = error(completion) else { panic!() };
    assert_eq!((reason.as_str(), unit.to_string()), ("too slow", "[]".to_owned()));
    assert!(site.unwrap().to_string().contains("watching.rs"), "it names the last call");
    assert!(!watch.is_playing());
    assert!(matches!(error(run.activate(turn(vec![]))), ActivationError::Poisoned(_)));
}

/// C-23: code that only yields is stopped between its rounds.
#[test]
fn an_interrupted_turn_fails_at_the_end_of_its_round() {
    let yielding = workflow(|ctx: Ctx, _| async move {
        ctx.now();
        let deadline = Deadline::of("the interrupt");
        loop {
            ctx.yield_now().await;
            deadline.check();
        }
    });
    let run = single(&yielding);
    let watch = run.watch();
    let played = play(run);
    until_it_runs(&watch);
    watch.interrupt("too slow");
    let (completion, _) = played.join().unwrap();
    assert!(matches!(error(completion), ActivationError::Interrupted { .. }));
}

/// C-23: it is about the turn that is being played, not about the next one.
#[test]
fn a_run_at_rest_can_be_neither_interrupted_nor_abandoned() {
    let mut run = single(&workflow(|ctx: Ctx, _| async move {
        ctx.next_signal("s").await?;
        say("done")
    }));
    let watch = run.watch();
    watch.interrupt("before");
    watch.abandon();
    assert!(matches!(run.activate(start()), Completion::Turn(_)));
    watch.interrupt("between");
    watch.abandon();
    let signal = dacapo_core::Signal { name: "s".into(), ..Default::default() };
    let completion = run.activate(turn(vec![dacapo_core::Job::Signal(Box::new(signal))]));
    assert_eq!(shown(&completion), "turn 1  [] complete done\n");
}

/// Blocks its thread the first time it is played.
fn stuck(entered: Sender<()>, released: Receiver<()>) -> Workflow {
    let (first, gate) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new((entered, released))));
    workflow(move |ctx: Ctx, _| {
        let (first, gate) = (first.clone(), gate.clone());
        async move {
            ctx.set_state("before", "the wait");
            if first.swap(false, Ordering::Relaxed) {
                let gate = gate.lock().unwrap();
                gate.0.send(()).unwrap();
                gate.1.recv().unwrap();
            }
            ctx.set_state("after", "the wait");
            say("done")
        }
    })
}

/// C-23, S0-63: the thread comes back too late, to a turn that is no longer its own.
#[test]
fn an_abandoned_turn_is_void_while_the_run_goes_on_elsewhere() {
    let ((entered, has_entered), (release, released)) = (channel(), channel());
    let stuck = stuck(entered, released);
    let run = single(&stuck);
    let watch = run.watch();
    let zombie = play(run);
    has_entered.recv().unwrap();
    watch.abandon();
    let transcript = Transcript::new("kit", Default::default());
    let mut again = transcript.replay(&stuck, RunOptions { double_play: false, ..RunOptions::default() }).unwrap();
    let played = shown(&again.activate(start()));
    assert_eq!(played, "turn 0  [] state before = the wait  [] state after = the wait  [] complete done\n");
    watch.interrupt("of the old one");
    watch.abandon();
    release.send(()).unwrap();
    let (completion, mut run) = zombie.join().unwrap();
    assert_eq!(error(completion), ActivationError::Abandoned);
    assert!(matches!(error(run.activate(turn(vec![]))), ActivationError::Poisoned(_)), "and it stays so");
    assert_eq!(again.inspect().turn, 1, "the other instance never noticed");
}

/// C-23: abandoned in its last moment, with all its code behind it: its commands are void all the same.
#[test]
fn a_turn_abandoned_by_its_own_last_instruction_is_void() {
    let own: Arc<Mutex<Option<Watch>>> = Arc::default();
    let kept = own.clone();
    let giving_up = workflow(move |ctx: Ctx, _| {
        let watch = kept.lock().unwrap().take();
        async move {
            ctx.set_state("decided", "yes");
            watch.unwrap().abandon();
            say("done")
        }
    });
    let mut run = single(&giving_up);
    *own.lock().unwrap() = Some(run.watch());
    assert_eq!(error(run.activate(start())), ActivationError::Abandoned);
}

/// C-23: the thread of a turn that was given up on gets no further than its next call.
#[test]
fn an_abandoned_turn_stops_at_its_next_call() {
    let own: Arc<Mutex<Option<Watch>>> = Arc::default();
    let went_on = Arc::new(AtomicBool::new(false));
    let (kept, reached) = (own.clone(), went_on.clone());
    let mut run = single(&workflow(move |ctx: Ctx, _| {
        let (watch, reached) = (kept.lock().unwrap().take(), reached.clone());
        async move {
            watch.unwrap().abandon();
            ctx.now();
            reached.store(true, Ordering::Relaxed);
            say("done")
        }
    }));
    *own.lock().unwrap() = Some(run.watch());
    assert_eq!(error(run.activate(start())), ActivationError::Abandoned);
    assert!(!went_on.load(Ordering::Relaxed));
}

/// C-23: a query that was given up on answered, and the turn after it failed in its stead.
#[test]
fn an_abandoned_query_fails_itself_and_not_a_later_turn() {
    let own: Arc<Mutex<Option<Watch>>> = Arc::default();
    let kept = own.clone();
    let mut run = single(&workflow(move |ctx: Ctx, _| {
        let kept = kept.clone();
        ctx.on_query("q", move |_| {
            kept.lock().unwrap().as_ref().unwrap().abandon();
            say("too late")
        });
        async move { Ok(ctx.next_signal("s").await?.input.remove(0)) }
    }));
    *own.lock().unwrap() = Some(run.watch());
    run.activate(start());
    let query = dacapo_core::Query { name: "q".into(), ..Default::default() };
    let completion = run.activate(dacapo_core::Activation::Query(vec![query]));
    assert_eq!(error(completion), ActivationError::Abandoned);
    assert!(matches!(error(run.activate(turn(vec![]))), ActivationError::Poisoned(_)));
}

/// C-23: a query cannot be stopped by an interrupt, and neither must the turn after it.
#[test]
fn an_interrupt_during_a_query_does_not_stop_a_later_turn() {
    let own: Arc<Mutex<Option<Watch>>> = Arc::default();
    let kept = own.clone();
    let mut run = single(&workflow(move |ctx: Ctx, _| {
        let kept = kept.clone();
        ctx.on_query("q", move |_| {
            kept.lock().unwrap().as_ref().unwrap().interrupt("too slow");
            say("answered")
        });
        async move { Ok(ctx.next_signal("s").await?.input.remove(0)) }
    }));
    *own.lock().unwrap() = Some(run.watch());
    run.activate(start());
    let query = dacapo_core::Query { name: "q".into(), ..Default::default() };
    assert_eq!(shown(&run.activate(dacapo_core::Activation::Query(vec![query]))), "answer answered\n");
    assert_eq!(shown(&run.activate(turn(vec![]))), "no turn\n");
}

/// C-23
#[test]
fn a_watch_outlives_its_run() {
    let run = single(&workflow(|_: Ctx, input| async move { Ok(input) }));
    let watch = run.watch();
    drop(run);
    assert!(!watch.is_playing());
    assert_eq!((watch.running(), watch.site()), (None, None));
    watch.interrupt("absent");
    watch.abandon();
}
