//! Parking: a run that cannot be played stays open, says why, is tried again, and goes on when it can.

use dacapo_core::{Ctx, Failure, StartChild};
use dacapo_engine::{ActivityState, EngineError, Options};
use dacapo_store::{RunFilter, Status};
use dacapo_testkit::{Stage, expect};

use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, options, over_every_cache, over_every_cache_and_restart, payload,
    query, rows, secs, signal, since_start, status, stuck, turns,
};

fn good() -> Options {
    options()
        .workflow("steps", |ctx: Ctx, _| async move {
            ctx.activity("work", "1").await?;
            ctx.signal("go").await?;
            ctx.activity("work", "2").await
        })
        .activity("work", |_, input| Ok(input))
}

/// The same with another activity first.
fn changed() -> Options {
    options()
        .workflow("steps", |ctx: Ctx, _| async move {
            ctx.activity("play", "1").await?;
            ctx.signal("go").await?;
            ctx.activity("work", "2").await
        })
        .activity("work", |_, input| Ok(input))
        .activity("play", |_, input| Ok(input))
}

/// S0-60 S4-42 T-28
#[test]
fn changed_code_parks_its_run_says_why_in_full_and_the_old_code_heals_it() {
    over_every_cache_and_restart(good, |stage| {
        let cache = stage.options().cache;
        stage.start("steps", "a", "").unwrap();
        stage.settle();
        let history = stage.history("a");
        let stage = stage.redeploy(changed().cache(cache));
        signal(&stage, "a", "go", "");
        stage.settle();
        assert_eq!((status(&stage, "a"), describe(&stage, "a").turns), (Status::Open, 2));
        assert_eq!((stage.history("a"), rows(&stage, "a")), (history, (0, 0, 1)), "the signal waits");
        let (reason, attempts, retry) = stuck(&stage, "a");
        assert_eq!((attempts, retry), (1, secs(1)));
        for word in ["turn 0", "activity work #0", "activity play #0", "parking.rs"] {
            assert!(reason.contains(word), "{word:?} is not in {reason}");
        }
        let filter = RunFilter { stuck: true, ..RunFilter::default() };
        assert_eq!(stage.engine().reader().count(&filter), Ok(1));
        let stage = stage.redeploy(good().cache(cache));
        assert_eq!(stage.result("a"), completed("2"));
        assert_eq!(describe(&stage, "a").stuck, None);
        (stage, vec!["a"])
    });
}

#[test]
fn a_parked_run_is_tried_again_after_one_two_four_up_to_sixty_seconds() {
    let tries = World::default();
    let noted = tries.clone();
    let serve = move || {
        let noted = noted.clone();
        let mut options = options().workflow("panics", move |ctx: Ctx, _| {
            let noted = noted.clone();
            async move {
                ctx.signal("go").await?;
                noted.note("tried");
                panic!("not today")
            }
        });
        options.double_play = false;
        options
    };
    over_every_cache(serve, |stage| {
        stage.start("panics", "a", "").unwrap();
        signal(stage, "a", "go", "");
        stage.settle();
        let mut at = 0;
        for (attempt, pause) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            let (reason, attempts, retry) = stuck(stage, "a");
            assert_eq!((attempts, retry), (attempt as u32 + 1, secs(at + pause)));
            assert!(reason.contains("not today"), "{reason}");
            let before = tries.count();
            stage.advance(secs(pause) - std::time::Duration::from_nanos(1));
            assert_eq!(tries.count(), before, "not before its time");
            stage.advance(std::time::Duration::from_nanos(1));
            assert_eq!(tries.count(), before + 1);
            at += pause;
        }
        assert_eq!(describe(stage, "a").stuck.map(|stuck| since_start(stuck.since)), Some(secs(0)));
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
    over_every_cache(serve, |stage| {
        for (workflow, id) in [("plain", "a"), ("raised again", "b")] {
            stage.start(workflow, id, "").unwrap();
        }
        stage.settle();
        let said = format!("it was here, at {}:{}\n", file!(), line);
        assert!(stuck(stage, "a").0.contains(&said), "{said} is not in {}", stuck(stage, "a").0);
        let said = stuck(stage, "b").0;
        assert!(said.contains("outer\n"), "nobody knows where, and no other place is named: {said}");
        vec!["a", "b"]
    });
}

/// T-25
#[test]
fn a_panic_is_no_nondeterminism_and_mended_code_goes_on_with_what_came_meanwhile() {
    let serve = || {
        options()
            .workflow("steps", |ctx: Ctx, _| async move {
                let slow = ctx.activity("slow", "");
                ctx.signal("go").await?;
                let _slow = slow;
                panic!("division by zero")
            })
            .waiting("slow", |_, _| std::future::pending())
    };
    let gate = Gate::default();
    over_every_cache_and_restart(serve, |stage| {
        let cache = stage.options().cache;
        stage.start("steps", "a", "").unwrap();
        signal(&stage, "a", "go", "1");
        stage.settle();
        let (reason, ..) = stuck(&stage, "a");
        assert!(reason.contains("division by zero") && !reason.contains("nondeterminism"), "{reason}");
        signal(&stage, "a", "more", "2");
        gate.open(Ok("slow".into()));
        let held = gate.clone();
        let mended = options()
            .workflow("steps", |ctx: Ctx, _| async move {
                let slow = ctx.activity("slow", "");
                let (go, more) = (ctx.signal("go").await?, ctx.signal("more").await?);
                Ok(payload(format!("{} {} {}", go.input[0], more.input[0], slow.await?)))
            })
            .waiting("slow", move |_, _| held.pass());
        let stage = stage.redeploy(mended.cache(cache));
        assert_eq!(stage.result("a"), completed("1 2 slow"));
        (stage, vec!["a"])
    });
}

/// What an activity came to while its run is parked is kept, so that it need not be done again.
#[test]
fn results_that_come_while_a_run_is_parked_are_not_lost() {
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
                ctx.signal("go").await?;
                let _slow = slow;
                panic!("not yet")
            })
            .waiting("slow", working(&world, &gate))
    };
    over_every_cache_and_restart(serve, |stage| {
        let (cache, before) = (stage.options().cache, world.count());
        gate.shut();
        stage.start("steps", "a", "").unwrap();
        signal(&stage, "a", "go", "");
        stage.settle();
        gate.open(Ok("done".into()));
        stage.advance(secs(10));
        assert_eq!(world.count() - before, 1);
        let mended = options()
            .workflow("steps", |ctx: Ctx, _| async move {
                let slow = ctx.activity("slow", "").schedule_to_close(secs(1_000));
                ctx.signal("go").await?;
                let done = slow.await?;
                ctx.sleep(secs(2_000)).await?;
                Ok(done)
            })
            .waiting("slow", working(&world, &gate));
        let stage = stage.redeploy(mended.cache(cache));
        assert_eq!(stage.result("a"), completed("done"));
        assert_eq!(world.count() - before, 1, "it is not done again");
        assert_eq!((rows(&stage, "a"), stage.store().next_due().unwrap()), (NO_ROWS, None));
        (stage, vec!["a"])
    });
}

#[test]
fn a_run_whose_workflow_is_gone_waits_for_a_program_that_has_it() {
    over_every_cache_and_restart(good, |stage| {
        let cache = stage.options().cache;
        stage.start("steps", "a", "").unwrap();
        stage.settle();
        let stage = stage.redeploy(options().workflow("other", |_: Ctx, input| async { Ok(input) }).cache(cache));
        signal(&stage, "a", "go", "");
        stage.settle();
        let expected = expect![[
            r#"no workflow "steps" is registered here; registered are: other. Serve it in this program, or terminate the run"#
        ]];
        expected.assert_eq(&stuck(&stage, "a").0);
        let stage = stage.redeploy(good().cache(cache));
        assert_eq!(stage.result("a"), completed("2"));
        (stage, vec!["a"])
    });
}

#[test]
fn an_activity_that_nobody_serves_waits_for_a_program_that_does_and_its_run_says_so() {
    let unserved = || {
        options()
            .workflow("steps", |ctx: Ctx, _| async move { ctx.activity("work", "1").await })
            .activity("other", |_, input| Ok(input))
    };
    over_every_cache_and_restart(unserved, |stage| {
        let cache = stage.options().cache;
        stage.start("steps", "a", "").unwrap();
        stage.settle();
        let expected = expect![[
            r#"activity "work" is not served here; served are: other. Serve it in this program; the run goes on by itself then"#
        ]];
        expected.assert_eq(&stuck(&stage, "a").0);
        assert_eq!(describe(&stage, "a").pending[0].state, ActivityState::Unserved);
        let stage = stage.restart();
        stage.settle();
        expected.assert_eq(&stuck(&stage, "a").0);
        let stage = stage.redeploy(unserved().activity("work", |_, input| Ok(input)).cache(cache));
        assert_eq!(stage.result("a"), completed("1"));
        (stage, vec!["a"])
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
    over_every_cache(serve, |stage| {
        stage.start("nexus", "a", "").unwrap();
        stage.start("cron", "b", "").unwrap();
        stage.settle();
        let expected = expect![[r#"
            the embedded engine has no Nexus: it cannot call bank/pay. Call an activity instead, or run this workflow on a Temporal cluster
            the embedded engine knows no cron lines ("* * * * *"): sleep in a loop and continue as new, or start runs from your own scheduler
        "#]];
        expected.assert_eq(&format!("{}\n{}\n", stuck(stage, "a").0, stuck(stage, "b").0));
        assert_eq!((describe(stage, "a").turns, describe(stage, "b").turns), (0, 0), "nothing of it is recorded");
        vec!["a", "b"]
    });
}

#[test]
fn a_stuck_run_refuses_questions_with_its_reason_and_is_not_tried_more_often_for_them() {
    let serve = || {
        options().workflow("panics", |ctx: Ctx, _| async move {
            ctx.on_query("sum", |_| Ok("1".into()));
            ctx.signal("go").await?;
            panic!("not today")
        })
    };
    over_every_cache_and_restart(serve, |stage| {
        let cache = stage.options().cache;
        stage.start("panics", "a", "").unwrap();
        stage.settle();
        assert_eq!(query(&stage, "a", "sum").unwrap(), "1");
        let stage = stage.redeploy(options().workflow("panics", |_: Ctx, _| async { panic!("at once") }).cache(cache));
        for _ in 0..3 {
            let refused = query(&stage, "a", "sum").unwrap_err();
            assert!(matches!(&refused, EngineError::Stuck(why) if why.contains("at once")), "{refused}");
        }
        assert_eq!(stuck(&stage, "a").1, 1);
        let stage = stage.redeploy(serve().cache(cache));
        signal(&stage, "a", "go", "");
        stage.settle();
        let refused = query(&stage, "a", "sum").unwrap_err();
        let said = matches!(&refused, EngineError::Stuck(why) if why.contains("not today"));
        assert!(said, "what was acknowledged cannot be seen, so there is no answer: {refused}");
        assert_eq!((status(&stage, "a"), stuck(&stage, "a").1), (Status::Open, 1));
        (stage, vec!["a"])
    });
}

/// C-49 T-27
#[test]
fn changed_tuning_does_not_park_a_run_and_what_was_recorded_holds() {
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
        |stage| {
            let cache = stage.options().cache;
            stage.start("tuned", "a", "").unwrap();
            stage.advance(secs(2));
            let stage = stage.redeploy(with(2).cache(cache));
            assert_eq!(describe(&stage, "a").pending[0].attempts, 5);
            assert_eq!(stage.result("a"), completed("5"));
            assert_eq!(turns(&stage, "a").lines().count(), 2);
            (stage, vec!["a"])
        },
    );
}

/// T-25
#[test]
fn an_early_return_in_changed_code_does_not_hide_what_was_recorded() {
    over_every_cache_and_restart(good, |stage| {
        let cache = stage.options().cache;
        stage.start("steps", "a", "").unwrap();
        stage.settle();
        let early = options().workflow("steps", |_: Ctx, _| async move { Ok("early".into()) });
        let stage = stage.redeploy(early.cache(cache));
        signal(&stage, "a", "go", "");
        stage.settle();
        let (reason, ..) = stuck(&stage, "a");
        assert!(reason.contains("activity work"), "{reason}");
        assert_eq!(status(&stage, "a"), Status::Open);
        (stage, vec!["a"])
    });
}

/// A run may be parked in its very first turn: it is open all the same.
#[test]
fn a_run_that_cannot_play_its_first_turn_is_started_and_healed() {
    let broken = || options().workflow("steps", |_: Ctx, _| async { panic!("at once") });
    over_every_cache_and_restart(broken, |stage: Stage| {
        let cache = stage.options().cache;
        assert!(stage.start("steps", "a", "").unwrap().fresh);
        stage.settle();
        assert_eq!((describe(&stage, "a").turns, stuck(&stage, "a").1), (0, 1));
        signal(&stage, "a", "go", "");
        let stage = stage.redeploy(good().cache(cache));
        assert_eq!(stage.result("a"), completed("2"));
        (stage, vec!["a"])
    });
}
