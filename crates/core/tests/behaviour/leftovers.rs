//! What a run leaves behind when it closes: signals that were not taken, and operations that end with it.

use std::sync::{Arc, Mutex};

use dacapo_core::{Activity, Completion, ContinueAsNew, Ctx, Seq, TurnDone, UnfinishedHandlers, Workflow};
use dacapo_testkit::{Mode, Player, Script, Step, workflow};

use crate::kit::*;

/// Plays a script in every mode. All but its last turn must leave nothing behind; gives that one.
#[track_caller]
fn last_turn(workflow: &Workflow, script: &str) -> TurnDone {
    let play = |mode| {
        let mut play = Player::new(workflow.clone(), root_first(), mode);
        let mut turns = Vec::new();
        for step in Script::parse(script).0 {
            let Step::Turn(at, jobs) = step else { panic!("{step:?} is no turn") };
            let turn = play.turn(at, &jobs);
            match play.activate(turn) {
                Completion::Turn(done) => turns.push(done),
                other => panic!("{other:?}"),
            }
        }
        let last = turns.pop().expect("the script has turns");
        for turn in &turns {
            assert!(!turn.closed && turn.leftover.is_empty() && turn.dropped.is_empty(), "{turn:?}");
        }
        last
    };
    let whole = play(Mode::Whole);
    assert!(whole.closed, "{whole:?}");
    for mode in [Mode::Evicted, Mode::Double] {
        assert_eq!(whole, play(mode), "the script played whole, and {mode:?}");
    }
    whole
}

fn signals(done: &TurnDone) -> Vec<String> {
    done.leftover.iter().map(|signal| format!("{} {}", signal.name, word(&signal.input))).collect()
}

fn seqs(done: &TurnDone) -> Vec<u64> {
    done.dropped.iter().map(|Seq(seq)| *seq).collect()
}

/// Ends as it is told.
async fn end(ctx: &Ctx) -> Done {
    match word(&ctx.next_signal("stop").await?.input).as_str() {
        "fail" => Err(fail("told to")),
        "continue" => Err(ctx.continue_as_new(ContinueAsNew::default())),
        how => say(how),
    }
}

/// However a run ends: by each of these as its last turn.
const ENDS: [&str; 4] = ["signal stop = complete", "signal stop = fail", "signal stop = continue", "cancel: enough"];

/// C-31
#[test]
fn signals_that_were_not_taken_are_left_over_in_the_order_they_came() {
    let main = workflow(|ctx: Ctx, _| async move {
        ctx.next_signal("a").await?;
        end(&ctx).await
    });
    for ending in ENDS {
        let script = format!(
            "start
             signal b = 1, signal a = taken, signal a = 2
             signal b = 3, {ending}, signal a = 4"
        );
        assert_eq!(signals(&last_turn(&main, &script)), ["b 1", "a 2", "b 3", "a 4"], "{ending}");
    }
}

/// C-31: main goes first and returns, so the launched units never see what came for them; nor does the loser of a race.
#[test]
fn a_signal_that_was_given_to_a_wait_which_did_not_take_it_is_left_over() {
    let main = workflow(|ctx: Ctx, _| async move {
        for _ in 0..2 {
            let inside = ctx.clone();
            drop(ctx.launch(async move { Ok(inside.next_signal("launched").await?) }));
        }
        ctx.race(ctx.next_signal("stop"), ctx.next_signal("lost")).await?;
        say("stopped")
    });
    let done = last_turn(
        &main,
        "start
         signal stop = now, signal launched = 1, signal lost = 2, signal launched = 3, signal launched = 4",
    );
    assert_eq!(signals(&done), ["launched 1", "lost 2", "launched 3", "launched 4"]);
}

#[test]
fn a_signal_that_a_handler_took_is_not_left_over_even_if_the_handler_is_abandoned() {
    let main = workflow(|ctx: Ctx, _| async move {
        let inside = ctx.clone();
        ctx.on_signal("handled", move |_| {
            let ctx = inside.clone();
            async move { ctx.activity("slow", "").await.map(drop) }
        });
        end(&ctx).await
    });
    let done = last_turn(
        &main,
        "start
         signal handled = 1, signal other = 2
         signal stop = now, signal handled = 3",
    );
    assert_eq!((signals(&done), seqs(&done)), (vec!["other 2".to_owned()], vec![0]));
}

/// C-34, S3-9: what was detached lives on, what main dropped was cancelled by a command, and what is resolved is over.
#[test]
fn operations_that_launched_units_and_handlers_await_end_with_the_run() {
    let main = workflow(|ctx: Ctx, _| async move {
        ctx.activity("detached 0", "").detach();
        let inside = ctx.clone();
        drop(ctx.launch(async move { inside.activity("launched 1", "").await }));
        let inside = ctx.clone();
        drop(ctx.launch(async move { inside.sleep(secs(60)).await.map_err(Into::into) }));
        let inside = ctx.clone();
        ctx.on_signal("work", move |_| {
            let ctx = inside.clone();
            async move {
                ctx.activity("resolved", "").await?;
                ctx.activity("handler", "").await.map(drop)
            }
        });
        let cancelled = ctx.activity("cancelled", "");
        let end = end(&ctx).await;
        drop(cancelled);
        end
    });
    for ending in ["signal stop = complete", "signal stop = fail", "signal stop = continue"] {
        let script = format!(
            "start, signal work
             resolve resolved
             resolve launched 1, {ending}"
        );
        let done = last_turn(&main, &script);
        let commands: Vec<String> = done.commands.iter().map(|command| command.kind.word().to_owned()).collect();
        assert_eq!((seqs(&done), commands[0].as_str()), (vec![3, 5], "cancel"), "{ending}: {commands:?}");
    }
}

/// C-10, C-34: a run that waits for its handlers gives up what it launched turns before it closes. What is resolved until
/// then is over; that a child has started does not resolve it.
#[test]
fn operation_dropped_before_the_last_turn_and_not_resolved_ends_with_the_run() {
    let main = workflow(|ctx: Ctx, _| async move {
        for name in ["A", "B"] {
            let inside = ctx.clone();
            drop(ctx.launch(async move { inside.activity(name, "").await }));
        }
        for name in ["C", "D"] {
            let inside = ctx.clone();
            drop(ctx.launch(async move { inside.child(name, "").await }));
        }
        let inside = ctx.clone();
        ctx.on_signal("work", move |_| {
            let ctx = inside.clone();
            async move { ctx.activity("handler", "").await.map(drop) }
        });
        end(&ctx).await
    });
    let done = last_turn(
        &main.unfinished_handlers(UnfinishedHandlers::Wait),
        "start, signal work
         signal stop = now
         resolve #1, started #2 = run, refused #3: no, signal late = 1
         resolve handler",
    );
    assert_eq!((seqs(&done), signals(&done)), (vec![0, 2], vec!["late 1".to_owned()]));
}

/// Lets its activity run on.
struct Detach(Option<Activity>);

impl Drop for Detach {
    fn drop(&mut self) {
        if let Some(activity) = self.0.take() {
            activity.detach();
        }
    }
}

#[test]
fn a_destructor_may_detach_an_operation_while_its_run_closes() {
    let main = workflow(|ctx: Ctx, _| async move {
        let inside = ctx.clone();
        drop(ctx.launch(async move {
            let _detach = Detach(Some(inside.activity("detached", "")));
            inside.activity("dropped", "").await
        }));
        end(&ctx).await
    });
    let done = last_turn(
        &main,
        "start
         signal stop = now",
    );
    assert_eq!(seqs(&done), [1]);
}

/// A future need not be in a unit: what holds it here is a handler that never started.
#[test]
fn an_operation_whose_future_outlives_the_units_ends_with_the_run() {
    let main = workflow(|ctx: Ctx, _| async move {
        let kept = Arc::new(Mutex::new(Some(ctx.activity("kept", ""))));
        ctx.on_signal("never", move |_| {
            let kept = kept.lock().unwrap().take();
            async move {
                drop(kept);
                Ok(())
            }
        });
        end(&ctx).await
    });
    let done = last_turn(
        &main,
        "start
         signal stop = now",
    );
    assert_eq!(seqs(&done), [0]);
}
