//! The history of a run, as people read it.

use std::sync::Arc;
use std::time::Duration;

use dacapo_client::{Client, Description, EventKind, OperationStart, RunHistory, RunRef, Status};
use dacapo_core::{ContinueAsNew, Ctx, Failure};
use dacapo_engine::{Options, RunId, WaitFor};
use dacapo_testkit::{Simulation, expect};

use crate::kit::{Serve, every_second, options, payload, secs, signal, update};

fn checkout() -> Options {
    options()
        .workflow("checkout", |ctx: Ctx, _| async move {
            ctx.on_update("rename", |_| Ok(()), |mut update| async move { Ok(update.input.remove(0)) });
            let receipt = ctx.activity("charge", "two lamps").retry(every_second(5)).await?;
            ctx.local_activity("note", "paid").retry(every_second(5)).await?;
            let timer = ctx.sleep(secs(3_600));
            ctx.next_signal("cancel").await?;
            drop(timer);
            ctx.activity("refund", "two lamps").retry(every_second(2)).await?;
            Ok(receipt)
        })
        .activity("charge", |ctx, _| match ctx.info().attempt {
            3 => Ok(payload("receipt")),
            attempt => Err(Failure::application(format!("the bank is closed on day {attempt}"))),
        })
        .activity("note", |ctx, _| match ctx.info().attempt {
            1 => Err(Failure::application("no paper")),
            _ => Ok(payload("noted")),
        })
        .activity("refund", |_, _| Err(Failure::application("the account is gone")))
}

fn history(sim: &Simulation) -> RunHistory {
    history_of(sim, RunRef::latest("a"))
}

fn history_of(sim: &Simulation, run: RunRef) -> RunHistory {
    let client: Arc<dyn Client> = Arc::new(sim.engine().clone());
    RunHistory(sim.wait(client.history(run, None, 100)).unwrap().events)
}

fn described(sim: &Simulation, run: RunRef) -> Description {
    let client: Arc<dyn Client> = Arc::new(sim.engine().clone());
    sim.wait(client.describe(run)).unwrap()
}

fn played() -> Simulation {
    let sim = Simulation::new(checkout());
    sim.start("checkout", "a", "order 42").unwrap();
    sim.advance(secs(10));
    update(&sim, "a", "u-1", "rename", "lamps", WaitFor::Completed).unwrap();
    signal(&sim, "a", "cancel", "too bright");
    sim.advance(secs(10));
    sim
}

#[test]
fn history_tells_what_came_what_was_decided_and_which_attempts_failed() {
    let history = history(&played());
    expect![[r#"
        2001-09-09T01:46:40Z  turn 0
          the run started: checkout(order 42)
          activity #0 began: charge(two lamps)
        2001-09-09T01:46:42Z  turn 1
          activity #0 charge completed: receipt (attempt 3; the one before failed: the bank is closed on day 2)
          local activity #1 began: note(paid)
        2001-09-09T01:46:43Z  turn 2
          local activity #1 note completed: noted (attempt 2)
          timer #2 began: 1h
        2001-09-09T01:46:50Z  turn 3
          update rename(lamps) came, with id u-1
          update u-1 was accepted
          update u-1 completed: lamps
        2001-09-09T01:46:50Z  turn 4
          signal cancel(too bright) came
          the workflow cancelled timer #2 1h
          activity #3 began: refund(two lamps)
        2001-09-09T01:46:51Z  turn 5
          activity #3 refund failed: activity refund failed: the account is gone (attempt 2; the one before failed: the account is gone)
          the run is failed: activity refund failed: the account is gone
    "#]].assert_eq(&history.to_text());
    let failures = history.iter().filter_map(|event| match &event.kind {
        EventKind::OperationEnded { attempts, last_failure: Some(failure), .. } => {
            Some((*attempts, failure.message.as_str()))
        }
        _ => None,
    });
    assert_eq!(failures.collect::<Vec<_>>(), [(3, "the bank is closed on day 2"), (2, "the account is gone")]);
    assert_eq!(history.to_string(), history.to_text());
}

#[test]
fn redacted_history_shows_no_payload_and_no_message_of_a_failure() {
    let sim = Simulation::new(checkout());
    sim.start("checkout", "b", "order 43").unwrap();
    sim.wait(sim.engine().cancel(&RunId::of("b"), "the card was stolen")).unwrap();
    sim.settle();
    let client: Arc<dyn Client> = Arc::new(sim.engine().clone());
    let cancelled = RunHistory(sim.wait(client.history(RunRef::latest("b"), None, 100)).unwrap().events);
    assert!(cancelled.to_text().contains("asked the run to cancel: the card was stolen"), "{cancelled}");
    assert!(cancelled.to_redacted_text().contains("asked the run to cancel: (19 bytes)"));
    let text = history(&played()).to_redacted_text();
    for secret in ["order 42", "two lamps", "receipt", "too bright", "bank", "account", "paid", "noted"] {
        assert!(!text.contains(secret), "{secret} is in\n{text}");
    }
    for fact in ["activity #0 charge completed", "attempt 3", "signal cancel", "update rename"] {
        assert!(text.contains(fact), "{fact} is not in\n{text}");
    }
}

/// The number of the next attempt is known while the activity waits for it.
#[test]
fn activity_that_times_out_before_its_second_attempt_had_one_attempt() {
    let serve = options()
        .workflow("checkout", |ctx: Ctx, _| async move {
            ctx.activity("charge", "").retry(every_second(5)).schedule_to_close(secs(1) / 2).await
        })
        .activity("charge", |_, _| Err(Failure::application("the bank is closed")));
    let sim = Simulation::new(serve);
    sim.start("checkout", "a", "").unwrap();
    sim.advance(secs(10));
    let attempts = history(&sim).iter().find_map(|event| match event.kind {
        EventKind::OperationEnded { attempts, .. } => Some(attempts),
        _ => None,
    });
    assert_eq!(attempts, Some(1));
}

/// Calls every operation that can say what it is for, a child, and another run.
fn summaries() -> Options {
    options()
        .workflow("parent", |ctx: Ctx, _| async move {
            ctx.sleep(secs(5_400)).summary("until noon").await?;
            ctx.local_activity("note", "paid").summary("for the files").await?;
            ctx.side_effect("dice", || async { Ok(payload("6")) }).summary("who begins").await?;
            let child = |child: &mut dacapo_core::StartChild| {
                (child.workflow_id, child.summary) = ("grown".into(), Some("the next one".into()));
            };
            ctx.child("child", "seed").with(child).await?;
            ctx.signal_external("b".into(), "go", "now").await?;
            ctx.cancel_external("b".into(), "enough").await?;
            ctx.activity("charge", "two lamps").summary("the first half").await
        })
        .workflow("child", |_: Ctx, _| async move { Ok(payload("grown")) })
        .workflow("waits", |ctx: Ctx, _| async move { Ok(ctx.sleep(secs(9_000)).await.map(|()| payload(""))?) })
        .activity("note", |_, _| Ok(payload("noted")))
        .activity("charge", |_, _| Err(Failure::application("the bank is closed")))
}

#[test]
fn history_and_description_say_what_operations_are_for_and_which_runs_they_reach() {
    let sim = Simulation::new(summaries());
    sim.start("waits", "b", "").unwrap();
    sim.start("parent", "a", "").unwrap();
    sim.advance(secs(5_400));
    let history = history(&sim);
    let child = described(&sim, RunRef::latest("grown"));
    let text = history.to_text().replace(child.run_id.as_str(), "CHILD");
    let lines: Vec<&str> =
        text.lines().filter(|line| line.contains("began") || line.contains(" started")).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "the run started: parent()",
            "timer #0 began: 1h 30m, summary: until noon",
            "local activity #1 began: note(paid), summary: for the files",
            "side effect #2 began: dice, summary: who begins",
            "child workflow #3 began: child(seed) with workflow id grown, summary: the next one",
            "child workflow #3 child started as run CHILD",
            "signal #4 began: go(now) to workflow id b",
            "cancel request #5 began: to workflow id b",
            "activity #6 began: charge(two lamps), summary: the first half",
        ]
    );
    let starts = history.iter().filter_map(|event| match &event.kind {
        EventKind::OperationStarted(start) => Some(&**start),
        _ => None,
    });
    let starts: Vec<&OperationStart> = starts.collect();
    assert_eq!((starts[0].duration, starts[0].name.as_str()), (Some(Duration::from_secs(5_400)), ""));
    assert_eq!(
        (starts[3].target.clone(), starts[4].target.clone()),
        (Some(RunRef::latest("grown")), Some(RunRef::latest("b")))
    );
    assert_eq!(starts[4].name.as_str(), "go");
    let parent = described(&sim, RunRef::latest("a"));
    assert_eq!(parent.pending[0].summary.as_deref(), Some("the first half"));
    assert_eq!((child.parent, parent.parent), (Some(RunRef::exact("a", parent.run_id)), None));
    let stored = sim.engine().reader().describe(&RunId::of("a")).unwrap();
    assert_eq!(stored.pending[0].summary.as_deref(), Some("the first half"), "the store alone knows it, too");
    let redacted = history.to_redacted_text();
    for secret in ["noon", "files", "begins", "next one", "first half"] {
        assert!(!redacted.contains(secret), "{secret} is in\n{redacted}");
    }
}

#[test]
fn run_that_continued_as_new_names_the_next_run_and_has_no_result() {
    let sim = Simulation::new(options().workflow("turns", |ctx: Ctx, round| async move {
        match crate::kit::text(&round).as_str() {
            "last" => Ok(payload("done")),
            _ => Err(ctx.continue_as_new(ContinueAsNew { input: vec![payload("last")], ..ContinueAsNew::default() })),
        }
    }));
    let first = sim.start("turns", "a", "first").unwrap();
    sim.settle();
    let last = described(&sim, RunRef::latest("a"));
    assert_eq!((last.result, last.next_run_id), (Some(Ok(payload("done"))), None));
    let first = described(&sim, RunRef::exact("a", first.run_id));
    assert_eq!((first.status, &first.result), (Status::ContinuedAsNew, &None));
    assert_eq!((first.next_run_id.as_ref(), &first.first_run_id), (Some(&last.run_id), &last.first_run_id));
    let history = history_of(&sim, first.reference());
    let expected =
        EventKind::Closed { status: Status::ContinuedAsNew, result: None, next_run_id: Some(last.run_id.clone()) };
    assert_eq!(history.last().unwrap().kind, expected);
    assert!(
        history.to_text().ends_with(&format!("the run is continued as new, as run {}\n", last.run_id)),
        "{history}"
    );
}

/// The history said `failed`, and the description `continued as new`.
#[test]
fn run_that_its_retry_policy_ran_again_has_one_status_and_keeps_its_failure() {
    let sim = Simulation::new(options().workflow("fails", |_: Ctx, _| async move {
        Err::<dacapo_core::Payload, _>(Failure::application("out of luck"))
    }));
    let client: Arc<dyn Client> = Arc::new(sim.engine().clone());
    let mut start = dacapo_client::StartRun { workflow: "fails".into(), workflow_id: "a".into(), ..Default::default() };
    start.retry = Some(every_second(2));
    let first = sim.wait(client.start(start)).unwrap().run;
    sim.advance(secs(10));
    let last = described(&sim, RunRef::latest("a"));
    assert_eq!((last.status, last.next_run_id), (Status::Failed, None));
    let first = described(&sim, first);
    assert_eq!((first.status, first.result), (Status::ContinuedAsNew, None));
    assert_eq!(first.next_run_id, Some(last.run_id.clone()));
    let history = history_of(&sim, RunRef::exact("a", first.run_id));
    let EventKind::Closed { status, result: Some(Err(failure)), next_run_id } = &history.last().unwrap().kind else {
        panic!("{history}")
    };
    assert_eq!((*status, failure.message.as_str()), (Status::ContinuedAsNew, "out of luck"));
    assert_eq!(next_run_id.as_ref(), Some(&last.run_id));
    let line = format!("the run is continued as new, as run {}, because it failed: out of luck\n", last.run_id);
    assert!(history.to_text().ends_with(&line), "{history}");
}
