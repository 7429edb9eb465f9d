//! Children: runs that a run starts, awaits, and leaves behind.

use dacapo_client::Error;
use dacapo_core::{CancelType, Ctx, Failure, FailureKind, IdReuse, ParentClose, Payload, Priority, Target};
use dacapo_engine::{Options, RunId};
use dacapo_store::{Filter, Status};
use dacapo_testkit::expect;

use crate::kit::{
    NO_ROWS, Serve, completed, describe, every_second, failed, options, over_every_cache, over_every_cache_and_restart,
    payload, rows, secs, status, text, turns,
};

async fn doubles(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    ctx.sleep(secs(10)).await?;
    match text(&input).parse::<u64>() {
        Ok(number) => Ok(payload((number * 2).to_string())),
        Err(_) => Err(Failure::application("no number").typed("Input")),
    }
}

async fn asks_child(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    ctx.child("doubles", input).workflow_id("child").await
}

fn family() -> Options {
    options().workflow("doubles", doubles).workflow("asks", asks_child)
}

/// S4-26
#[test]
fn a_child_is_a_run_of_its_own_whose_result_its_parent_gets() {
    over_every_cache_and_restart(family, |sim| {
        sim.start("asks", "a", "4").unwrap();
        sim.advance(secs(5));
        let sim = sim.restart();
        let parent = describe(&sim, "a");
        let row = sim.store().find("child", None).unwrap().unwrap();
        assert_eq!(row.parent.map(|link| link.run), Some(parent.run));
        assert_eq!(sim.result("a"), completed("8"));
        let expected = expect![[r#"
            0 at 0ns: start asks -> child doubles
            1 at 0ns: resolve #0 child start ->
            2 at 10s: resolve #0 child -> complete 8
        "#]];
        expected.assert_eq(&turns(&sim, "a"));
        assert_eq!((rows(&sim, "a"), rows(&sim, "child")), (NO_ROWS, NO_ROWS));
        (sim, vec!["a", "child"])
    });
}

/// The start of a run was unknown while its first turn was planned, so a grandchild had its parent as its root.
#[test]
fn grandchild_that_is_started_in_the_first_turn_of_its_parent_knows_the_root_of_its_family() {
    async fn starts(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
        let lineage = ctx.info().unwrap_or_default().start.lineage.clone().unwrap_or_default();
        let of = |run: Option<dacapo_core::RelatedRun>| run.map(|run| run.workflow_id.to_string()).unwrap_or_default();
        match text(&input).parse::<u32>() {
            Ok(0) | Err(_) => Ok(payload(format!("parent {}, root {}", of(lineage.parent), of(lineage.root)))),
            Ok(more) => ctx.child("starts", (more - 1).to_string()).workflow_id(format!("child-{more}")).await,
        }
    }
    over_every_cache_and_restart(
        || options().workflow("starts", starts),
        |sim| {
            sim.start("starts", "a", "3").unwrap();
            assert_eq!(sim.result("a"), completed("parent child-2, root a"));
            (sim, vec!["a", "child-1", "child-2", "child-3"])
        },
    );
}

#[test]
fn priority_of_a_child_is_that_of_its_tasks_unless_a_call_has_its_own() {
    async fn works(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let own = ctx.activity("work", "").priority(Priority { key: 7, ..Priority::default() });
        ctx.join([ctx.activity("work", ""), own]).await;
        Ok(payload(""))
    }
    async fn starts(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let child = ctx.child("works", "").workflow_id("child");
        child.with(|child| child.priority = Priority { key: 3, ..Priority::default() }).await
    }
    let family = || {
        let again = |_, _| Err(Failure::application("later"));
        options().workflow("works", works).workflow("starts", starts).activity("work", again)
    };
    over_every_cache_and_restart(family, |sim| {
        sim.start("starts", "a", "").unwrap();
        sim.settle();
        let sim = sim.restart();
        let priorities: Vec<i32> = describe(&sim, "child").pending.iter().map(|task| task.priority).collect();
        assert_eq!(priorities, [7, 3]);
        (sim, vec!["a", "child"])
    });
}

/// S4-26
#[test]
fn a_child_that_fails_is_a_failure_of_its_own_kind_with_the_child_s_as_its_cause() {
    over_every_cache(family, |sim| {
        sim.start("asks", "a", "many").unwrap();
        let (status, result) = sim.result("a");
        let failure = result.unwrap_err();
        let said = (status, failure.to_string());
        assert_eq!(said, (Status::Failed, "child workflow doubles failed: no number".to_owned()));
        let FailureKind::Child(child) = &failure.kind else { panic!("{failure:?}") };
        assert_eq!((child.workflow.as_str(), child.workflow_id.as_str()), ("doubles", "child"));
        assert_eq!(failure.cause().unwrap().type_name.as_deref(), Some("Input"));
        vec!["a", "child"]
    });
}

#[test]
fn a_child_whose_id_is_in_use_fails_to_start_and_says_who_has_it() {
    over_every_cache(family, |sim| {
        sim.start("doubles", "child", "1").unwrap();
        sim.start("asks", "a", "4").unwrap();
        let (status, failure) = failed(sim, "a");
        assert_eq!(status, Status::Failed);
        assert_eq!(
            failure,
            "workflow id \"child\" is in use by run run-000001: wait for it to close, or say what is meant: the run that is open (`id_conflict(IdConflict::UseExisting)`), or the same request as before (`request_id(key)`)"
        );
        assert_eq!(sim.result("child"), completed("2"));
        vec!["a", "child"]
    });
}

#[test]
fn a_child_may_refuse_an_id_that_was_used_before() {
    let serve = || {
        family().workflow("asks anew", |ctx: Ctx, _| async move {
            ctx.child("doubles", "1").workflow_id("child").id_reuse(IdReuse::RejectDuplicate).await
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("doubles", "child", "1").unwrap();
        assert_eq!(sim.result("child"), completed("2"));
        sim.start("asks anew", "a", "").unwrap();
        let (status, failure) = failed(sim, "a");
        assert_eq!(status, Status::Failed);
        assert_eq!(
            failure,
            "workflow id \"child\" was used by run run-000001, which is completed, and the start allows no second use: choose another id, or another `id_reuse`"
        );
        vec!["a"]
    });
}

#[test]
fn when_a_parent_closes_its_children_end_or_are_asked_or_go_on() {
    let serve = || {
        family().workflow("leaves", |ctx: Ctx, policy: Payload| async move {
            let policy = match text(&policy).as_str() {
                "terminate" => ParentClose::Terminate,
                "cancel" => ParentClose::RequestCancel,
                _ => ParentClose::Abandon,
            };
            let child = ctx.child("doubles", "5").workflow_id("child").parent_close(policy);
            child.started().await?.detach();
            Ok("left".into())
        })
    };
    let ends = [
        ("terminate", Status::Terminated, "the parent closed"),
        ("cancel", Status::Cancelled, "the parent closed"),
        ("abandon", Status::Completed, "10"),
    ];
    for (policy, status, said) in ends {
        over_every_cache(serve, |sim| {
            sim.start("leaves", "a", policy).unwrap();
            assert_eq!(sim.result("a"), completed("left"));
            let (ended, result) = sim.result("child");
            let result = result.map_or_else(|failure| failure.to_string(), |value| text(&value));
            assert_eq!((ended, result.as_str()), (status, said), "{policy}");
            assert_eq!((rows(sim, "a"), rows(sim, "child")), (NO_ROWS, NO_ROWS), "{policy}");
            vec!["a", "child"]
        });
    }
}

/// A parent that gives up on a child after a second.
fn giving_up(cancel: CancelType) -> Options {
    family().workflow("gives up", move |ctx: Ctx, _| async move {
        let child = ctx.child("doubles", "5").workflow_id("child").cancel_type(cancel);
        let (child, handle) = ctx.cancellable(child.parent_close(ParentClose::Abandon));
        let child = ctx.launch(async move { Ok(child.await) });
        ctx.sleep(secs(1)).await?;
        handle.cancel("enough");
        let result = child.await?.map_err(|failure| failure.to_string());
        Ok(payload(format!("{result:?}")))
    })
}

#[test]
fn a_child_that_is_given_up_is_asked_and_awaited_as_its_cancel_type_says() {
    let ends = [
        (CancelType::TryCancel, "Err(\"enough\")", Status::Cancelled),
        (CancelType::Abandon, "Err(\"enough\")", Status::Completed),
        (CancelType::WaitCompleted, "Err(\"child workflow doubles failed: enough\")", Status::Cancelled),
    ];
    for (cancel, result, child) in ends {
        over_every_cache(
            || giving_up(cancel),
            |sim| {
                sim.start("gives up", "a", "").unwrap();
                assert_eq!(sim.result("a"), completed(result), "{cancel:?}");
                assert_eq!(status(sim, "child"), child, "{cancel:?}");
                vec!["a", "child"]
            },
        );
    }
}

#[test]
fn a_child_that_is_terminated_is_a_failure_of_its_parent_s_call() {
    over_every_cache(family, |sim| {
        sim.start("asks", "a", "4").unwrap();
        sim.advance(secs(1));
        assert_eq!(sim.wait(sim.engine().terminate(&RunId::of("child"), "by hand")), Ok(()));
        let said = "child workflow doubles is terminated: by hand".to_owned();
        assert_eq!(failed(sim, "a"), (Status::Failed, said));
        assert_eq!(sim.store().next_due().unwrap().filter(|due| *due <= sim.now()), None);
        vec!["a"]
    });
}

#[test]
fn a_child_in_a_queue_that_is_not_served_here_is_started_and_waits_there() {
    let serve = || {
        family().workflow("elsewhere", |ctx: Ctx, _| async move {
            let child = ctx.child("elsewhere's", "").workflow_id("child").queue("elsewhere");
            let child = child.started().await?;
            Ok(payload(child.run_id().to_string()))
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("elsewhere", "a", "").unwrap();
        let (status, result) = sim.result("a");
        let run_id = text(&result.unwrap());
        assert_eq!((status, run_id.as_str()), (Status::Completed, describe(sim, "child").run_id.as_str()));
        vec!["a"]
    });
}

/// The parent was stuck while its child started and ended: both are told in one turn.
#[test]
fn a_child_that_starts_and_ends_before_its_parent_hears_of_it_is_not_missed() {
    let broken = || {
        family().workflow("quick", |_: Ctx, input| async { Ok(input) }).workflow("parent", |ctx: Ctx, _| async move {
            let child = ctx.child("quick", "7").workflow_id("child");
            let child = child.started().await?;
            let _child = child;
            panic!("not yet")
        })
    };
    over_every_cache_and_restart(broken, |sim| {
        let cache = sim.options().cache;
        sim.start("parent", "a", "").unwrap();
        sim.settle();
        assert_eq!((status(&sim, "child"), rows(&sim, "a")), (Status::Completed, (0, 0, 2)));
        let fixed = family()
            .workflow("quick", |_: Ctx, input| async { Ok(input) })
            .workflow("parent", |ctx: Ctx, _| async move { ctx.child("quick", "7").workflow_id("child").await });
        let sim = sim.redeploy(fixed.cache(cache));
        assert_eq!(sim.result("a"), completed("7"));
        (sim, vec!["a"])
    });
}

#[test]
fn a_child_with_a_retry_policy_is_tried_again_with_its_input_and_its_parent_hears_of_the_last_try() {
    let serve = || {
        options()
            .workflow("asks", |ctx: Ctx, _| async move {
                ctx.child("tries", "7").workflow_id("child").retry(every_second(3)).run_timeout(secs(60)).await
            })
            .workflow("tries", |ctx: Ctx, input| async move {
                match ctx.info().unwrap().start.attempt {
                    3 => Ok(input),
                    attempt => Err(Failure::application(attempt.to_string())),
                }
            })
    };
    over_every_cache_and_restart(serve, |sim| {
        sim.start("asks", "a", "").unwrap();
        sim.settle();
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("7"));
        assert_eq!(sim.store().next_due().unwrap(), None);
        (sim, vec!["a", "child"])
    });
}

/// T-21
#[test]
fn children_without_a_name_get_ids_of_their_own_over_restarts() {
    let serve = || {
        family().workflow("many", |ctx: Ctx, _| async move {
            let mut sum = 0;
            for number in 0..5_u64 {
                let doubled = ctx.child("doubles", number.to_string()).await?;
                sum += text(&doubled).parse::<u64>().unwrap();
            }
            Ok(payload(sum.to_string()))
        })
    };
    over_every_cache_and_restart(serve, |mut sim| {
        sim.start("many", "a", "").unwrap();
        for _ in 0..5 {
            sim.advance(secs(7));
            sim = sim.restart();
        }
        assert_eq!(sim.result("a"), completed("20"));
        let children = Filter { workflow: Some("doubles".into()), ..Filter::default() };
        assert_eq!(sim.engine().reader().count(&children), Ok(5));
        (sim, vec!["a"])
    });
}

#[test]
fn a_signal_to_another_run_arrives_once_and_the_sender_knows() {
    let serve = || {
        options()
            .workflow("sends", |ctx: Ctx, _| async move {
                let told = ctx.signal_external(Target::workflow("b"), "news", "good").await;
                let lost = ctx.signal_external(Target::workflow("absent"), "news", "lost").await;
                Ok(payload(format!("{told:?} {}", lost.unwrap_err())))
            })
            .workflow("hears", |ctx: Ctx, _| async move {
                let signal = ctx.next_signal("news").await?;
                ctx.sleep(secs(10)).await?;
                let more = ctx.try_signal("news").is_some();
                Ok(payload(format!("{} from {}, more: {more}", signal.input[0], signal.identity)))
            })
    };
    over_every_cache(serve, |sim| {
        sim.start("hears", "b", "").unwrap();
        sim.start("sends", "a", "").unwrap();
        assert_eq!(
            sim.result("a"),
            completed("Ok(()) there is no open run of workflow id \"absent\": check the id, or start it first")
        );
        assert_eq!(sim.result("b"), completed("good from a, more: false"));
        vec!["a", "b"]
    });
}

#[test]
fn a_request_to_cancel_another_run_arrives_or_its_sender_is_told() {
    let serve = || {
        family().workflow("cancels", |ctx: Ctx, _| async move {
            let asked = ctx.cancel_external(Target::workflow("b"), "not needed").await;
            let lost = ctx.cancel_external(Target::workflow("absent"), "not needed").await;
            Ok(payload(format!("{asked:?} {}", lost.unwrap_err())))
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("doubles", "b", "1").unwrap();
        sim.start("cancels", "a", "").unwrap();
        assert_eq!(
            sim.result("a"),
            completed("Ok(()) there is no open run of workflow id \"absent\": check the id, or start it first")
        );
        assert_eq!(failed(sim, "b"), (Status::Cancelled, "not needed".to_owned()));
        let absent = Error::NotFound { workflow_id: "absent".into(), run_id: None };
        assert_eq!(sim.engine().describe(&RunId::of("absent")), Err(absent));
        vec!["a", "b"]
    });
}
