//! Starting: delays, retries, timeouts, and whose a workflow id is.

use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{ContinueAsNew, Ctx, Failure, FailureKind, IdReuse, Payload, Retry};
use dacapo_engine::{NewStart, Options, RunId, StartedAs};
use dacapo_store::{Filter, IdConflict, Refused, Status};
use dacapo_testkit::{Simulation, expect};

use crate::kit::{
    NO_ROWS, Serve, World, completed, describe, every_second, failed, options, over_every_cache,
    over_every_cache_and_restart, payload, rows, secs, signal, since_start, status, text, turns,
};

async fn waits(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    ctx.next_signal("go").await?;
    Ok(input)
}

fn serving() -> Options {
    options().workflow("waits", waits).workflow("returns", |_: Ctx, input| async move { Ok(input) })
}

fn new(workflow: &'static str) -> NewStart {
    NewStart { workflow: workflow.into(), workflow_id: "a".into(), input: vec!["1".into()], ..NewStart::default() }
}

fn start(sim: &Simulation, new: NewStart) -> Result<StartedAs, Error> {
    sim.wait(sim.engine().start(new))
}

#[test]
fn a_delayed_run_is_open_at_once_and_begins_in_time_even_after_a_restart() {
    over_every_cache_and_restart(serving, |sim| {
        start(&sim, NewStart { delay: Some(secs(100)), ..new("returns") }).unwrap();
        sim.advance(secs(60));
        assert_eq!((status(&sim, "a"), describe(&sim, "a").turns), (Status::Open, 0));
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("1"));
        assert_eq!(turns(&sim, "a"), "0 at 100s: start returns -> complete 1\n");
        assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
        (sim, vec!["a"])
    });
}

/// A message for a run that has not begun waits with its start.
#[test]
fn a_signal_to_a_delayed_run_waits_for_its_first_turn() {
    over_every_cache(serving, |sim| {
        start(sim, NewStart { delay: Some(secs(100)), ..new("waits") }).unwrap();
        signal(sim, "a", "go", "");
        sim.advance(secs(50));
        assert_eq!(rows(sim, "a"), (0, 1, 2));
        assert_eq!(sim.result("a"), completed("1"));
        assert_eq!(turns(sim, "a"), "0 at 100s: start waits, signal go -> complete 1\n");
        vec!["a"]
    });
}

#[test]
fn a_delayed_run_that_is_terminated_never_begins() {
    over_every_cache(serving, |sim| {
        start(sim, NewStart { delay: Some(secs(100)), ..new("returns") }).unwrap();
        assert_eq!(sim.wait(sim.engine().terminate(&RunId::of("a"), "never mind")), Ok(()));
        sim.play_out();
        assert_eq!((status(sim, "a"), describe(sim, "a").turns), (Status::Terminated, 0));
        assert_eq!(sim.store().next_due().unwrap(), None);
        vec!["a"]
    });
}

#[test]
fn a_run_that_takes_longer_than_its_run_timeout_is_timed_out() {
    over_every_cache_and_restart(serving, |sim| {
        start(&sim, NewStart { run_timeout: Some(secs(60)), ..new("waits") }).unwrap();
        let sim = sim.restart();
        let (status, result) = sim.result("a");
        let failure = result.unwrap_err();
        let said = (status, failure.to_string());
        assert_eq!(said, (Status::TimedOut, "the run took longer than its run timeout".to_owned()));
        assert!(matches!(failure.kind, FailureKind::Timeout(_)));
        assert_eq!(since_start(describe(&sim, "a").closed.unwrap()), secs(60));
        assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
        (sim, vec!["a"])
    });
}

#[test]
fn a_run_that_ends_in_time_leaves_no_timeouts_behind() {
    over_every_cache(serving, |sim| {
        let timeouts = NewStart { run_timeout: Some(secs(60)), execution_timeout: Some(secs(90)), ..new("returns") };
        start(sim, timeouts).unwrap();
        assert_eq!(sim.result("a"), completed("1"));
        assert_eq!((since_start(sim.now()), sim.store().next_due().unwrap()), (secs(0), None));
        vec!["a"]
    });
}

fn failing_workflow(world: &World) -> Options {
    let world = world.clone();
    options().workflow("fails", move |ctx: Ctx, input| {
        let world = world.clone();
        async move {
            let info = ctx.info().unwrap();
            let (attempt, lineage) = (info.start.attempt, info.start.lineage.clone().unwrap());
            if !info.replaying {
                world.note(format!("{attempt} at {:?} {:?}", since_start(ctx.now()), lineage.continued_because));
            }
            match attempt {
                3 => Ok(input),
                _ => Err(Failure::application(format!("try {attempt}")).typed("Luck")),
            }
        }
    })
}

#[test]
fn a_workflow_with_a_retry_policy_is_run_again_with_pauses_as_one_chain() {
    let world = World::default();
    let serve = || {
        let mut options = failing_workflow(&world);
        options.double_play = false;
        options
    };
    over_every_cache_and_restart(serve, |sim| {
        let before = world.count();
        let first = start(&sim, NewStart { retry: Some(Retry::exponential()), ..new("fails") }).unwrap();
        sim.advance(secs(2));
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("1"));
        let tries = ["1 at 0ns None", "2 at 1s Some(Retry)", "3 at 3s Some(Retry)"];
        assert_eq!(world.notes()[before..], tries);
        let last = describe(&sim, "a");
        assert_eq!((last.first_run_id.clone(), last.run_id != first.run_id), (first.run_id.clone(), true));
        let of_first = RunId { workflow_id: "a".into(), run_id: Some(first.run_id) };
        assert_eq!(sim.wait(sim.engine().result(&of_first)).unwrap(), completed("1"), "the chain is followed");
        assert_eq!(sim.store().next_due().unwrap(), None);
        (sim, vec!["a"])
    });
}

#[test]
fn a_workflow_is_not_run_again_after_its_last_try_or_for_a_failure_that_is_not_worth_it() {
    let world = World::default();
    let picky = Retry { non_retryable: vec!["Luck".into()], ..Retry::exponential() };
    for (retry, said) in [(every_second(2), "try 2"), (picky, "try 1"), (Retry::none(), "try 1")] {
        over_every_cache(
            || failing_workflow(&world),
            |sim| {
                start(sim, NewStart { retry: Some(retry.clone()), ..new("fails") }).unwrap();
                assert_eq!(failed(sim, "a"), (Status::Failed, said.to_owned()));
                vec!["a"]
            },
        );
    }
}

#[test]
fn the_time_of_all_tries_together_is_the_execution_timeout() {
    let world = World::default();
    over_every_cache(
        || failing_workflow(&world),
        |sim| {
            let slow = Retry { first_pause: secs(100), max_pause: secs(100), ..Retry::exponential() };
            let with = NewStart { retry: Some(slow), execution_timeout: Some(secs(50)), ..new("fails") };
            start(sim, with).unwrap();
            assert_eq!(failed(sim, "a"), (Status::Failed, "try 1".to_owned()), "the next try would come too late");
            vec!["a"]
        },
    );
}

#[test]
fn a_workflow_id_in_use_is_refused_or_given_or_taken_over() {
    over_every_cache(serving, |sim| {
        let first = start(sim, new("waits")).unwrap();
        let refused = start(sim, new("waits")).unwrap_err();
        let (workflow_id, run_id) = (first.workflow_id.clone(), first.run_id.clone());
        assert_eq!(refused, Refused::InUse { workflow_id, run_id, conflict: IdConflict::Fail }.into());
        let existing = start(sim, NewStart { conflict: IdConflict::UseExisting, ..new("waits") }).unwrap();
        assert_eq!(existing, StartedAs { fresh: false, ..first.clone() });
        let taken = start(sim, NewStart { conflict: IdConflict::TerminateExisting, ..new("waits") }).unwrap();
        assert!(taken.fresh && taken.run_id != first.run_id);
        let of_first = RunId { workflow_id: "a".into(), run_id: Some(first.run_id) };
        let (ended, failure) = sim.wait(sim.engine().result(&of_first)).unwrap();
        assert_eq!(
            (ended, failure.unwrap_err().message),
            (Status::Terminated, "another run took its workflow id".into())
        );
        let reuse = NewStart { reuse: IdReuse::TerminateIfRunning, ..new("waits") };
        assert!(start(sim, reuse).unwrap().fresh);
        signal(sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed("1"));
        assert_eq!(sim.engine().reader().count(&Filter::default()), Ok(3));
        vec!["a"]
    });
}

#[test]
fn a_used_workflow_id_may_be_refused_always_or_unless_its_run_failed() {
    over_every_cache(
        || failing_workflow(&World::default()).workflow("returns", |_: Ctx, input| async move { Ok(input) }),
        |sim| {
            start(sim, new("fails")).unwrap();
            assert_eq!(failed(sim, "a").0, Status::Failed);
            let again = |reuse, workflow| start(sim, NewStart { reuse, ..new(workflow) });
            assert!(again(IdReuse::AllowDuplicateFailedOnly, "returns").is_ok());
            assert_eq!(sim.result("a"), completed("1"));
            for reuse in [IdReuse::AllowDuplicateFailedOnly, IdReuse::RejectDuplicate] {
                let refused = again(reuse, "returns").unwrap_err();
                assert!(
                    matches!(refused, Error::WorkflowIdInUse { .. }) && refused.to_string().contains("is completed")
                );
            }
            assert!(again(IdReuse::AllowDuplicate, "returns").is_ok());
            vec!["a"]
        },
    );
}

#[test]
fn the_same_request_is_the_same_start_even_after_its_run_closed() {
    over_every_cache_and_restart(serving, |sim| {
        let asked = || NewStart { request: Some("r-1".into()), ..new("returns") };
        let first = start(&sim, asked()).unwrap();
        assert_eq!(sim.result("a"), completed("1"));
        let sim = sim.restart();
        assert_eq!(start(&sim, asked()), Ok(StartedAs { fresh: false, ..first }));
        let other = start(&sim, NewStart { workflow_id: "b".into(), ..asked() }).unwrap_err();
        assert_eq!(other, Refused::OtherRequest("r-1".into()).into());
        assert_eq!(sim.engine().reader().count(&Filter::default()), Ok(1));
        (sim, vec!["a"])
    });
}

#[test]
fn invalid_start_is_refused_with_the_reason() {
    let sim = Simulation::new(serving());
    let said = |new: NewStart| start(&sim, new).unwrap_err().to_string();
    let zero = Some(Duration::ZERO);
    let answers = [
        said(new("sleeps")),
        said(NewStart { workflow_id: "".into(), ..new("returns") }),
        said(NewStart { workflow_id: "a\nb".into(), ..new("returns") }),
        said(NewStart { workflow_id: "x".repeat(1_001).into(), ..new("returns") }),
        said(NewStart { run_timeout: zero, ..new("returns") }),
    ];
    let expected = expect![[r#"
        no workflow "sleeps" is registered here; registered are: returns, waits. Add it to `serve`, or name another queue that serves it
        workflow id is empty: give it 1 to 1,000 bytes
        workflow id "a\nb" contains control characters: remove them
        workflow id is 1,001 bytes long, at most 1,000 are allowed: shorten it
        run timeout is zero, which ends the run before it begins: set a longer one, or none
    "#]];
    expected.assert_eq(&(answers.join("\n") + "\n"));
    assert_eq!(sim.engine().reader().count(&Filter::default()), Ok(0));
}

/// Runs of other queues are played by other programs.
#[test]
fn a_run_in_a_queue_that_is_not_served_here_waits_for_a_program_that_serves_it() {
    over_every_cache_and_restart(serving, |sim| {
        start(&sim, NewStart { queue: Some("elsewhere".into()), ..new("waits") }).unwrap();
        signal(&sim, "a", "go", "");
        sim.play_out();
        assert_eq!((describe(&sim, "a").turns, rows(&sim, "a")), (0, (0, 0, 2)));
        let mut options = sim.options().clone();
        options.queue("elsewhere");
        let sim = sim.redeploy(options);
        assert_eq!(sim.result("a"), completed("1"));
        (sim, vec!["a"])
    });
}

/// S2-1: what a run was told when it began, it is told.
#[test]
fn a_run_knows_its_memo_and_attributes_and_ids() {
    let serve = || {
        options().workflow("looks", |ctx: Ctx, _| async move {
            let info = ctx.info().unwrap();
            Ok(payload(format!(
                "{} {} {:?} {:?}",
                info.start.workflow_id, info.start.run_id, info.memo, info.search_attributes
            )))
        })
    };
    over_every_cache(serve, |sim| {
        let memo = [("note".into(), "m".into())].into();
        let search_attributes = [("city".into(), "Rome".into())].into();
        start(sim, NewStart { memo, search_attributes, ..new("looks") }).unwrap();
        assert_eq!(sim.result("a"), completed("a run-000001 {\"note\": m} {\"city\": Keyword(\"Rome\")}"));
        vec!["a"]
    });
}

#[test]
fn workflow_sees_the_first_run_of_its_chain() {
    let serve = || {
        options().workflow("chain", |ctx: Ctx, input| async move {
            let start = ctx.info().unwrap().start;
            let first = start.lineage.as_ref().unwrap().first_run_id.clone();
            match text(&input).as_str() {
                "1" => Err(ctx.continue_as_new(ContinueAsNew {
                    workflow: "chain".into(),
                    input: vec![payload(format!("{} {first}", start.run_id))],
                    ..ContinueAsNew::default()
                })),
                before => Ok(payload(format!("{before} {first}"))),
            }
        })
    };
    over_every_cache(serve, |sim| {
        let first = start(sim, new("chain")).unwrap().run_id;
        let (status, result) = sim.result("a");
        let told = text(&result.unwrap());
        assert_eq!((status, told), (Status::Completed, format!("{first} {first} {first}")));
        vec![]
    });
}
