//! Parking: a run that cannot be played stays open, says why, is tried again, and goes on when it can.

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure, StartChild};
use dacapo_engine::{ActivityState, NewStart, Options, RunId};
use dacapo_store::{Filter, Status};
use dacapo_testkit::{Simulation, expect};

use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, options, over_every_cache, over_every_cache_and_restart, payload,
    query, rows, secs, signal, since_start, status, stuck, turns,
};

fn good() -> Options {
    options()
        .workflow("steps", |ctx: Ctx, _| async move {
            ctx.activity("work", "1").await?;
            ctx.next_signal("go").await?;
            ctx.activity("work", "2").await
        })
        .activity("work", |_, input| Ok(input))
}

/// The same with another activity first.
fn changed() -> Options {
    options()
        .workflow("steps", |ctx: Ctx, _| async move {
            ctx.activity("play", "1").await?;
            ctx.next_signal("go").await?;
            ctx.activity("work", "2").await
        })
        .activity("work", |_, input| Ok(input))
        .activity("play", |_, input| Ok(input))
}

/// S0-60 S4-42 T-28
#[test]
fn changed_code_makes_its_run_stuck_with_a_full_report_until_the_old_code_returns() {
    over_every_cache_and_restart(good, |sim| {
        let cache = sim.options().cache;
        sim.start("steps", "a", "").unwrap();
        sim.settle();
        let history = sim.history("a");
        let sim = sim.redeploy(changed().cache(cache));
        signal(&sim, "a", "go", "");
        sim.settle();
        assert_eq!((status(&sim, "a"), describe(&sim, "a").turns), (Status::Open, 2));
        assert_eq!((sim.history("a"), rows(&sim, "a")), (history, (0, 0, 1)), "the signal waits");
        let (reason, attempts, retry) = stuck(&sim, "a");
        assert_eq!((attempts, retry), (1, secs(1)));
        for word in ["turn 0", "activity work #0", "activity play #0", "stuck_runs.rs"] {
            assert!(reason.contains(word), "{word:?} is not in {reason}");
        }
        let filter = Filter { stuck: true, ..Filter::default() };
        assert_eq!(sim.engine().reader().count(&filter), Ok(1));
        let sim = sim.redeploy(good().cache(cache));
        assert_eq!(sim.result("a"), completed("2"));
        assert_eq!(describe(&sim, "a").stuck, None);
        (sim, vec!["a"])
    });
}

/// A terminate of a stuck run dropped signals that were acknowledged, and nothing showed before that there were any.
#[test]
fn messages_that_a_run_has_not_taken_are_counted_in_its_description_until_it_takes_them() {
    let sim = Simulation::new(good());
    sim.start("steps", "a", "").unwrap();
    sim.settle();
    assert_eq!(describe(&sim, "a").messages_waiting, 0);
    let sim = sim.redeploy(changed());
    signal(&sim, "a", "go", "");
    signal(&sim, "a", "more", "");
    sim.settle();
    assert_eq!(describe(&sim, "a").messages_waiting, 2);
    let sim = sim.redeploy(good());
    sim.settle();
    assert_eq!((sim.result("a"), describe(&sim, "a").messages_waiting), (completed("2"), 0));
    // The start of a run that has not begun is no message that was sent to it.
    let delayed =
        NewStart { workflow: "steps".into(), workflow_id: "b".into(), delay: Some(secs(60)), ..NewStart::default() };
    sim.wait(sim.engine().start(delayed)).unwrap();
    assert_eq!(describe(&sim, "b").messages_waiting, 0);
    signal(&sim, "b", "go", "");
    assert_eq!(describe(&sim, "b").messages_waiting, 1);
    sim.wait(sim.engine().terminate(&RunId::of("b"), "enough")).unwrap();
    assert_eq!(describe(&sim, "b").messages_waiting, 0);
}

#[test]
fn stuck_run_is_played_again_after_one_two_four_up_to_sixty_seconds() {
    let tries = World::default();
    let noted = tries.clone();
    let serve = move || {
        let noted = noted.clone();
        let mut options = options().workflow("panics", move |ctx: Ctx, _| {
            let noted = noted.clone();
            async move {
                ctx.next_signal("go").await?;
                noted.note("tried");
                panic!("not today")
            }
        });
        options.double_play = false;
        options
    };
    over_every_cache(serve, |sim| {
        sim.start("panics", "a", "").unwrap();
        signal(sim, "a", "go", "");
        sim.settle();
        let mut at = 0;
        for (attempt, pause) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            let (reason, attempts, retry) = stuck(sim, "a");
            assert_eq!((attempts, retry), (attempt as u32 + 1, secs(at + pause)));
            assert!(reason.contains("not today"), "{reason}");
            let before = tries.count();
            sim.advance(secs(pause) - std::time::Duration::from_nanos(1));
            assert_eq!(tries.count(), before, "not before its time");
            sim.advance(std::time::Duration::from_nanos(1));
            assert_eq!(tries.count(), before + 1);
            at += pause;
        }
        assert_eq!(describe(sim, "a").stuck.map(|stuck| since_start(stuck.since)), Some(secs(0)));
        vec!["a"]
    });
}

#[test]
fn a_panic_is_reported_with_what_it_said_and_where_it_happened() {
    let line = line!() + 4;
    let serve = || {
        options()
            .workflow("plain", |ctx: Ctx, _| async move {
                assert!(ctx.info().is_none(), "it was {}", "here");
                Ok("".into())
            })
            .workflow("raised again", |_: Ctx, _| async {
                let inner = std::panic::catch_unwind(|| panic!("inner")).unwrap_err();
                drop(inner);
                std::panic::resume_unwind(Box::new("outer"))
            })
    };
    over_every_cache(serve, |sim| {
        for (workflow, id) in [("plain", "a"), ("raised again", "b")] {
            sim.start(workflow, id, "").unwrap();
        }
        sim.settle();
        let said = format!("it was here, at {}:{}\n", file!(), line);
        assert!(stuck(sim, "a").0.contains(&said), "{said} is not in {}", stuck(sim, "a").0);
        let said = stuck(sim, "b").0;
        assert!(said.contains("outer\n"), "the place is not known, and no other is named: {said}");
        vec!["a", "b"]
    });
}

/// T-25
#[test]
fn corrected_code_goes_on_after_a_panic_with_the_messages_that_came_meanwhile() {
    let serve = || {
        options()
            .workflow("steps", |ctx: Ctx, _| async move {
                let slow = ctx.activity("slow", "");
                ctx.next_signal("go").await?;
                let _slow = slow;
                panic!("division by zero")
            })
            .waiting("slow", |_, _| std::future::pending())
    };
    let gate = Gate::default();
    over_every_cache_and_restart(serve, |sim| {
        let cache = sim.options().cache;
        sim.start("steps", "a", "").unwrap();
        signal(&sim, "a", "go", "1");
        sim.settle();
        let (reason, ..) = stuck(&sim, "a");
        assert!(reason.contains("division by zero") && !reason.contains("nondeterminism"), "{reason}");
        signal(&sim, "a", "more", "2");
        gate.open(Ok("slow".into()));
        let shared_gate = gate.clone();
        let fixed = options()
            .workflow("steps", |ctx: Ctx, _| async move {
                let slow = ctx.activity("slow", "");
                let (go, more) = (ctx.next_signal("go").await?, ctx.next_signal("more").await?);
                Ok(payload(format!("{} {} {}", go.input[0], more.input[0], slow.await?)))
            })
            .waiting("slow", move |_, _| shared_gate.pass());
        let sim = sim.redeploy(fixed.cache(cache));
        assert_eq!(sim.result("a"), completed("1 2 slow"));
        (sim, vec!["a"])
    });
}

/// What an activity came to while its run is stuck is kept, so that it need not be done again.
#[test]
fn results_for_a_stuck_run_are_not_lost() {
    let world = World::default();
    let gate = Gate::default();
    let working = |world: &World, gate: &Gate| {
        let (world, gate) = (world.clone(), gate.clone());
        move |_, _| {
            let (world, pass) = (world.clone(), gate.pass());
            async move {
                let result = pass.await;
                world.note("worked");
                result
            }
        }
    };
    let serve = || {
        options()
            .workflow("steps", |ctx: Ctx, _| async move {
                let slow = ctx.activity("slow", "").schedule_to_close(secs(1_000));
                ctx.next_signal("go").await?;
                let _slow = slow;
                panic!("not yet")
            })
            .waiting("slow", working(&world, &gate))
    };
    over_every_cache_and_restart(serve, |sim| {
        let (cache, before) = (sim.options().cache, world.count());
        gate.shut();
        sim.start("steps", "a", "").unwrap();
        signal(&sim, "a", "go", "");
        sim.settle();
        gate.open(Ok("done".into()));
        sim.advance(secs(10));
        assert_eq!(world.count() - before, 1);
        let fixed = options()
            .workflow("steps", |ctx: Ctx, _| async move {
                let slow = ctx.activity("slow", "").schedule_to_close(secs(1_000));
                ctx.next_signal("go").await?;
                let done = slow.await?;
                ctx.sleep(secs(2_000)).await?;
                Ok(done)
            })
            .waiting("slow", working(&world, &gate));
        let sim = sim.redeploy(fixed.cache(cache));
        assert_eq!(sim.result("a"), completed("done"));
        assert_eq!(world.count() - before, 1, "it is not done again");
        assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
        (sim, vec!["a"])
    });
}

#[test]
fn a_run_whose_workflow_is_gone_waits_for_a_program_that_has_it() {
    over_every_cache_and_restart(good, |sim| {
        let cache = sim.options().cache;
        sim.start("steps", "a", "").unwrap();
        sim.settle();
        let sim = sim.redeploy(options().workflow("other", |_: Ctx, input| async { Ok(input) }).cache(cache));
        signal(&sim, "a", "go", "");
        sim.settle();
        let expected = expect![[
            r#"no workflow "steps" is registered here; registered are: other. Serve it in this program, or terminate the run"#
        ]];
        expected.assert_eq(&stuck(&sim, "a").0);
        let sim = sim.redeploy(good().cache(cache));
        assert_eq!(sim.result("a"), completed("2"));
        (sim, vec!["a"])
    });
}

#[test]
fn activity_that_is_not_served_waits_for_a_worker_and_its_run_says_so() {
    let unserved = || {
        options()
            .workflow("steps", |ctx: Ctx, _| async move { ctx.activity("work", "1").await })
            .activity("other", |_, input| Ok(input))
    };
    over_every_cache_and_restart(unserved, |sim| {
        let cache = sim.options().cache;
        sim.start("steps", "a", "").unwrap();
        sim.settle();
        let expected = expect![[
            r#"activity "work" is not served here; served are: other. Serve it in this program; the run goes on by itself then"#
        ]];
        expected.assert_eq(&stuck(&sim, "a").0);
        assert_eq!(describe(&sim, "a").pending[0].state, ActivityState::Unserved);
        let sim = sim.restart();
        sim.settle();
        expected.assert_eq(&stuck(&sim, "a").0);
        let sim = sim.redeploy(unserved().activity("work", |_, input| Ok(input)).cache(cache));
        assert_eq!(sim.result("a"), completed("1"));
        (sim, vec!["a"])
    });
}

/// S4-46
#[test]
fn commands_that_the_engine_cannot_do_are_refused_and_not_dropped() {
    let serve = || {
        options().workflow("nexus", |ctx: Ctx, _| async move { ctx.nexus("there", "bank", "pay", "1").await }).workflow(
            "cron",
            |ctx: Ctx, _| async move {
                let cron = |child: &mut StartChild| child.cron = Some("* * * * *".into());
                ctx.child("cron", "").with(cron).await
            },
        )
    };
    over_every_cache(serve, |sim| {
        sim.start("nexus", "a", "").unwrap();
        sim.start("cron", "b", "").unwrap();
        sim.settle();
        let expected = expect![[r#"
            Nexus operation bank/pay cannot be called: this backend (memory) does not support Nexus operations: call an activity, or use a backend that has it
            child workflow cron cannot start by the cron line "* * * * *": this backend (memory) does not support cron lines: sleep in a loop and continue as new, or start runs from your own scheduler
        "#]];
        expected.assert_eq(&format!("{}\n{}\n", stuck(sim, "a").0, stuck(sim, "b").0));
        assert_eq!((describe(sim, "a").turns, describe(sim, "b").turns), (0, 0), "nothing of it is recorded");
        vec!["a", "b"]
    });
}

#[test]
fn a_stuck_run_refuses_questions_with_its_reason_and_is_not_tried_more_often_for_them() {
    let serve = || {
        options().workflow("panics", |ctx: Ctx, _| async move {
            ctx.on_query("sum", |_| Ok("1".into()));
            ctx.next_signal("go").await?;
            panic!("not today")
        })
    };
    over_every_cache_and_restart(serve, |sim| {
        let cache = sim.options().cache;
        sim.start("panics", "a", "").unwrap();
        sim.settle();
        assert_eq!(query(&sim, "a", "sum").unwrap(), "1");
        let sim = sim.redeploy(options().workflow("panics", |_: Ctx, _| async { panic!("at once") }).cache(cache));
        for _ in 0..3 {
            let refused = query(&sim, "a", "sum").unwrap_err();
            assert!(matches!(&refused, Error::Stuck(why) if why.contains("at once")), "{refused}");
        }
        assert_eq!(stuck(&sim, "a").1, 1);
        let sim = sim.redeploy(serve().cache(cache));
        signal(&sim, "a", "go", "");
        sim.settle();
        let refused = query(&sim, "a", "sum").unwrap_err();
        let said = matches!(&refused, Error::Stuck(why) if why.contains("not today"));
        assert!(said, "what was acknowledged cannot be seen, so there is no answer: {refused}");
        assert_eq!((status(&sim, "a"), stuck(&sim, "a").1), (Status::Open, 1));
        (sim, vec!["a"])
    });
}

/// C-49 T-27
#[test]
fn changed_tuning_keeps_a_run_going_with_the_recorded_values() {
    let with = |attempts| {
        let retry = crate::kit::every_second(attempts);
        options()
            .workflow("tuned", move |ctx: Ctx, _| {
                let retry = retry.clone();
                async move { ctx.activity("work", "").retry(retry).await }
            })
            .activity("work", |ctx, _| match ctx.info().attempt {
                5 => Ok(payload("5")),
                attempt => Err(Failure::application(attempt.to_string())),
            })
    };
    over_every_cache_and_restart(
        || with(5),
        |sim| {
            let cache = sim.options().cache;
            sim.start("tuned", "a", "").unwrap();
            sim.advance(secs(2));
            let sim = sim.redeploy(with(2).cache(cache));
            assert_eq!(describe(&sim, "a").pending[0].attempts, 5);
            assert_eq!(sim.result("a"), completed("5"));
            assert_eq!(turns(&sim, "a").lines().count(), 2);
            (sim, vec!["a"])
        },
    );
}

/// T-25
#[test]
fn an_early_return_in_changed_code_does_not_hide_what_was_recorded() {
    over_every_cache_and_restart(good, |sim| {
        let cache = sim.options().cache;
        sim.start("steps", "a", "").unwrap();
        sim.settle();
        let early = options().workflow("steps", |_: Ctx, _| async move { Ok("early".into()) });
        let sim = sim.redeploy(early.cache(cache));
        signal(&sim, "a", "go", "");
        sim.settle();
        let (reason, ..) = stuck(&sim, "a");
        assert!(reason.contains("activity work"), "{reason}");
        assert_eq!(status(&sim, "a"), Status::Open);
        (sim, vec!["a"])
    });
}

/// A run may get stuck in its very first turn: it is open all the same.
#[test]
fn run_whose_first_turn_fails_is_stored_stuck_and_goes_on_with_corrected_code() {
    let broken = || options().workflow("steps", |_: Ctx, _| async { panic!("at once") });
    over_every_cache_and_restart(broken, |sim: Simulation| {
        let cache = sim.options().cache;
        assert!(sim.start("steps", "a", "").unwrap().fresh);
        sim.settle();
        assert_eq!((describe(&sim, "a").turns, stuck(&sim, "a").1), (0, 1));
        signal(&sim, "a", "go", "");
        let sim = sim.redeploy(good().cache(cache));
        assert_eq!(sim.result("a"), completed("2"));
        (sim, vec!["a"])
    });
}
