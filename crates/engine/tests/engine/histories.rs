//! The history of a run, as people read it.

use std::sync::Arc;

use dacapo_client::{Client, EventKind, RunHistory, RunRef};
use dacapo_core::{Ctx, Failure};
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
    let client: Arc<dyn Client> = Arc::new(sim.engine().clone());
    RunHistory(sim.wait(client.history(RunRef::latest("a"), None, 100)).unwrap().events)
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
          timer #2 began: 3600s
        2001-09-09T01:46:50Z  turn 3
          update rename(lamps) came, with id u-1
          update u-1 was accepted
          update u-1 completed: lamps
        2001-09-09T01:46:50Z  turn 4
          signal cancel(too bright) came
          the workflow cancelled timer #2 3600s
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
