//! Updates: validated between rounds, accepted or rejected, answered.

use dacapo_core::{Ctx, Job, Payload, Pins, PolicySpec};
use dacapo_testkit::{Mode, Player, check, check_workflow, expect, workflow};

use crate::kit::*;

/// Takes words that are not `bad`; answers after an activity.
async fn serve(ctx: Ctx, _: Payload) -> Done {
    let inside = ctx.clone();
    ctx.on_update(
        "u",
        |update| if word(&update.input) == "bad" { Err(fail("no bad words")) } else { Ok(()) },
        move |update| {
            let ctx = inside.clone();
            async move {
                let done = ctx.activity(word(&update.input), "").await?;
                ctx.set_state("last", done.clone());
                Ok(done)
            }
        },
    );
    ctx.next_signal("stop").await?;
    say("stopped")
}

/// T-2, C-9: the update came with the start, before any code could register its handler.
#[test]
fn an_update_that_comes_with_the_start_is_accepted() {
    check(
        serve,
        "start, update u 1 = A
         resolve A = fine
         signal stop",
        expect![[r#"
            turn 0  [h0] accept update 1  [h0] activity A
            turn 1  [h0] state last = fine  [h0] complete update 1 ok fine
            turn 2  [] complete stopped
        "#]],
    );
}

/// C-9, T-2
#[test]
fn an_update_whose_handler_is_registered_in_a_later_round_waits_for_it() {
    check(
        |ctx: Ctx, input| async move {
            for _ in 0..3 {
                ctx.yield_now().await;
            }
            serve(ctx, input).await
        },
        "start, update u 1 = A
         resolve A = fine
         signal stop",
        expect![[r#"
            turn 0  [h0] accept update 1  [h0] activity A
            turn 1  [h0] state last = fine  [h0] complete update 1 ok fine
            turn 2  [] complete stopped
        "#]],
    );
}

/// C-9: only when nothing is runnable any more is it certain that no handler will take it.
#[test]
fn update_without_a_handler_is_rejected_in_the_turn_that_brings_it() {
    check(
        serve,
        "start
         update v 1 = A
         signal stop",
        expect![[r#"
            turn 0
            no turn
              rejected 1: no handler for update "v": correct the name, or register a handler; known now: u
            turn 1  [] complete stopped
        "#]],
    );
}

/// C-45
#[test]
fn turn_of_rejected_updates_alone_is_not_recorded() {
    check(
        serve,
        "start
         update u 1 = bad
         update u 2 = A
         resolve A = fine
         signal stop",
        expect![[r#"
            turn 0
            no turn
              rejected 1: no bad words
            turn 1  [h0] accept update 2  [h0] activity A
            turn 2  [h0] state last = fine  [h0] complete update 2 ok fine
            turn 3  [] complete stopped
        "#]],
    );
}

/// C-45: the clock of the refused turn must not be seen either.
#[test]
fn a_refused_turn_leaves_no_later_time_behind() {
    check(
        |ctx: Ctx, input| async move {
            let inside = ctx.clone();
            ctx.on_query("time", move |_| say(inside.now().to_string()));
            serve(ctx, input).await
        },
        "at 5s: start
         at 90s: update u 1 = bad
         query time
         at 6s: signal s
         query time",
        expect![[r#"
            turn 0
            no turn
              rejected 1: no bad words
            answer 1970-01-01T00:00:05Z
            turn 1
            answer 1970-01-01T00:00:06Z
        "#]],
    );
}

/// C-45
#[test]
fn a_rejected_update_beside_others_takes_no_number_and_is_not_recorded() {
    let script = "start
         update u 1 = A, update u 2 = bad, update u 3 = B
         resolve A = a, resolve B = b
         signal stop";
    check(
        serve,
        script,
        expect![[r#"
        turn 0
        turn 1  [h0] accept update 1  [h1] accept update 3  [h0] activity A  [h1] activity B
          rejected 2: no bad words
        turn 2  [h0] state last = a  [h0] complete update 1 ok a  [h1] state last = b  [h1] complete update 3 ok b
        turn 3  [] complete stopped
    "#]],
    );
    let play = |script: &str| {
        let pins = Pins { policy: PolicySpec::Random { seed: 3 }, ..Pins::default() };
        let mut play = Player::new(workflow(serve), pins, Mode::Whole);
        play.play(script);
        play.transcript
    };
    let without = script.replace("update u 2 = bad, ", "");
    assert_eq!(play(script).to_bytes(), play(&without).to_bytes());
}

/// C-45: a signal that no unit waits for yet decides nothing and starts nothing, and it is kept all the same.
#[test]
fn a_signal_beside_a_rejected_update_is_recorded() {
    check(
        |ctx: Ctx, input| async move {
            serve(ctx.clone(), input).await?;
            say(ctx.try_signal("spare").map_or("lost".to_owned(), |signal| word(&signal.input)))
        },
        "start
         update u 1 = bad, signal spare = kept
         signal stop",
        expect![[r#"
            turn 0
            turn 1
              rejected 1: no bad words
            turn 2  [] complete kept
        "#]],
    );
}

/// C-45: what is recorded of an accepted update says so, and its validator does not run again.
#[test]
fn on_replay_no_validator_runs() {
    let mut recorded = Player::new(workflow(serve), Pins::default(), Mode::Whole);
    recorded.play("start\n update u 1 = A");
    let stricter = workflow(|ctx: Ctx, _| async move {
        let inside = ctx.clone();
        ctx.on_update(
            "u",
            |_| Err(fail("nothing is good enough")),
            move |update| {
                let ctx = inside.clone();
                async move { ctx.activity(word(&update.input), "").await }
            },
        );
        ctx.next_signal("stop").await?;
        say("stopped")
    });
    assert!(recorded.transcript.replay(&stricter, dacapo_core::RunOptions::default()).is_ok());
    assert!(matches!(&recorded.transcript.turns[1].jobs[0], Job::Update(update) if update.accepted));
}

/// S3-4, C-43
#[test]
fn a_failing_update_handler_was_accepted_and_completes_with_its_failure() {
    check(
        serve,
        "start
         update u 1 = A, update u 2 = B
         fail A: broken, resolve B = b
         signal stop",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h1] accept update 2  [h0] activity A  [h1] activity B
            turn 2  [h0] complete update 1 failed broken  [h1] state last = b  [h1] complete update 2 ok b
            turn 3  [] complete stopped
        "#]],
    );
}

/// C-45: the validator sees what the rounds before it did.
#[test]
fn a_validator_sees_the_state_as_the_last_round_left_it() {
    check(
        |ctx: Ctx, _| async move {
            let open = ctx.state(false);
            let seen = open.clone();
            ctx.on_update(
                "u",
                move |_| if seen.read(|open| *open) { Ok(()) } else { Err(fail("closed")) },
                |_| async { say("came in") },
            );
            ctx.next_signal("open").await?;
            open.update(|open| *open = true);
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "start
         update u 1
         signal open, update u 2
         update u 3
         signal stop",
        expect![[r#"
            turn 0
            no turn
              rejected 1: closed
            turn 1
              rejected 2: closed
            turn 2  [h0] accept update 3  [h0] complete update 3 ok came in
            turn 3  [] complete stopped
        "#]],
    );
}

/// S2-25
#[test]
fn an_update_id_is_refused_while_it_is_open_and_may_come_again_after() {
    check(
        serve,
        "start
         update u 1 = A
         update u 1 = A
         resolve A
         update u 1 = A",
        expect![[r#"
            turn 0
            turn 1  [h0] accept update 1  [h0] activity A
            failed: the activation does not fit the run: update 1 was sent before
            turn 2  [h0] state last =  [h0] complete update 1 ok
            turn 3  [h1] accept update 1  [h1] activity A
        "#]],
    );
}

/// C-9, C-48: an update accepted in the run's last turn is answered before the run closes.
#[test]
fn handlers_first_lets_an_update_be_seen_by_the_root_in_the_same_round() {
    let both = |ctx: Ctx, _| async move {
        let count = ctx.state(0);
        let inside = count.clone();
        ctx.on_update(
            "add",
            |_| Ok(()),
            move |_| {
                inside.update(|count| *count += 1);
                async { say("added") }
            },
        );
        ctx.next_signal("stop").await?;
        say(count.read(i32::to_string))
    };
    let script = "start
         update add 1, signal stop";
    check_root_first(
        both,
        script,
        expect![[r#"
        turn 0
        turn 1  [h0] accept update 1  [h0] complete update 1 ok added  [] complete 0
    "#]],
    );
    let pins = Pins { order: dacapo_core::Order::HandlersFirst, ..Pins::default() };
    check_workflow(
        &workflow(both),
        pins,
        script,
        expect![[r#"
        turn 0
        turn 1  [h0] accept update 1  [h0] complete update 1 ok added  [] complete 1
    "#]],
    );
}

/// C-45: not even an empty log.
#[test]
fn a_refused_turn_makes_no_choice() {
    let pins = Pins { policy: PolicySpec::Random { seed: 3 }, ..Pins::default() };
    let mut play = Player::new(workflow(serve), pins, Mode::Whole);
    play.play("start");
    let dacapo_testkit::Step::Turn(at, jobs) = dacapo_testkit::Script::parse("update u 1 = bad").0.remove(0) else {
        panic!("a turn")
    };
    let turn = play.turn(at, &jobs);
    let dacapo_core::Completion::Turn(done) = play.activate(turn) else { panic!("a turn") };
    assert_eq!((done.number, done.choices, done.rejected.len()), (None, None, 1));
}

/// C-10, C-43: an update whose handler waits is answered when the run ends as cancelled, failed or continued, too.
#[test]
fn however_the_run_ends_an_accepted_update_gets_an_answer() {
    let (failed, continued) = (
        "the workflow completed before this update did",
        "the workflow continued as new before this update was done; the new run does not know of it",
    );
    for (script, reason) in
        [("start, update u 1 = A\n fail main: broken", failed), ("start, update u 1 = A\n resolve main", continued)]
    {
        let mut play = Player::new(
            workflow(|ctx: Ctx, _| async move {
                let inside = ctx.clone();
                let wait = move |_| {
                    let ctx = inside.clone();
                    async move { ctx.activity("handler", "").await }
                };
                ctx.on_update("u", |_| Ok(()), wait);
                ctx.activity("main", "").await?;
                Err(ctx.continue_as_new(dacapo_core::ContinueAsNew::default()))
            }),
            Pins::default(),
            Mode::Whole,
        );
        play.play(script);
        let answer = format!("[h0] complete update 1 failed {reason}  [] ");
        assert!(play.printed.contains(&answer), "{}", play.printed);
    }
}
