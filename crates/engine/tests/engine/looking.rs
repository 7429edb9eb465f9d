//! Looking at runs: describe, list, count, histories as text.

use dacapo_client::Error;
use dacapo_core::{Ctx, Payload, Transcript};
use dacapo_engine::{ActivityState, NewStart, Options, RunId};
use dacapo_store::{Filter, Status};
use dacapo_testkit::Simulation;

use crate::kit::{
    Serve, completed_empty, describe, every_second, failed, options, over_every_cache, secs, signal, since_start,
    status,
};

fn serving() -> Options {
    options()
        .workflow("waits", |ctx: Ctx, input: Payload| async move {
            ctx.set_memo([("step".into(), Some("waiting".into()))]);
            ctx.publish("waiting for go");
            let slow = ctx.activity("slow", "");
            ctx.next_signal("go").await?;
            slow.await?;
            Ok(input)
        })
        .workflow("fails", |_: Ctx, _| async { Err(dacapo_core::Failure::application("no")) })
        .waiting("slow", |ctx: dacapo_worker::ActivityCtx, input| async move {
            if ctx.info().attempt == 1 { Err(dacapo_core::Failure::application("once more")) } else { Ok(input) }
        })
}

#[test]
fn a_description_says_how_a_run_stands_and_what_it_waits_for() {
    over_every_cache(serving, |sim| {
        let memo = [("who".into(), "ada".into())].into();
        let new = NewStart { workflow: "waits".into(), workflow_id: "a".into(), memo, ..NewStart::default() };
        let started = sim.wait(sim.engine().start(new)).unwrap();
        sim.settle();
        let seen = describe(sim, "a");
        assert_eq!((&seen.run_id, &seen.first_run_id), (&started.run_id, &started.run_id));
        assert_eq!((seen.workflow.as_str(), seen.queue.as_str()), ("waits", "default"));
        assert_eq!((seen.status, seen.closed, seen.turns, seen.stuck), (Status::Open, None, 1, None));
        assert_eq!(seen.memo, [("step".into(), "waiting".into()), ("who".into(), "ada".into())].into());
        assert_eq!((seen.published, seen.result), (Some("waiting for go".into()), None));
        let [task] = &seen.pending[..] else { panic!("{:?}", seen.pending) };
        assert_eq!((task.activity.as_str(), task.state, task.attempt), ("slow", ActivityState::Waiting, 2));
        assert_eq!(task.next_attempt.map(since_start), Some(secs(1)));
        assert_eq!(task.last_failure.as_ref().map(|failure| failure.message.as_str()), Some("once more"));
        signal(sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed_empty());
        let seen = describe(sim, "a");
        assert_eq!((seen.status, seen.closed.map(since_start), seen.turns), (Status::Completed, Some(secs(1)), 3));
        assert_eq!((seen.result, seen.pending), (Some(Ok(Payload::empty())), Vec::new()));
        vec!["a"]
    });
}

#[test]
fn runs_are_listed_newest_first_in_pages_and_counted_by_the_same_filters() {
    let sim = Simulation::new(serving());
    for id in ["a", "b", "c", "d", "e"] {
        sim.start(if id == "b" { "fails" } else { "waits" }, id, "").unwrap();
        sim.advance(secs(10));
    }
    assert_eq!(failed(&sim, "b").0, Status::Failed);
    let reader = sim.engine().reader();
    let ids = |filter: &Filter, before: Option<dacapo_store::RunNo>, limit| {
        let page = reader.list(filter, before.map(Into::into), limit).unwrap();
        (page.iter().map(|run| run.workflow_id.to_string()).collect::<Vec<_>>(), page.last().map(|run| run.run))
    };
    let all = Filter::default();
    let (first, before) = ids(&all, None, 2);
    let (second, before) = ids(&all, before, 2);
    let (third, before) = ids(&all, before, 2);
    assert_eq!([first, second, third].concat(), ["e", "d", "c", "b", "a"]);
    assert_eq!(ids(&all, before, 2), (Vec::new(), None));
    let filters = [
        (Filter { status: Some(Status::Failed), ..all.clone() }, vec!["b"]),
        (Filter { workflow: Some("waits".into()), ..all.clone() }, vec!["e", "d", "c", "a"]),
        (Filter { workflow_id: Some("c".into()), ..all.clone() }, vec!["c"]),
        (Filter { stuck: true, ..all.clone() }, vec![]),
        (Filter { started_from: Some(describe(&sim, "d").started), ..all.clone() }, vec!["e", "d"]),
        (Filter { started_before: Some(describe(&sim, "b").started), ..all }, vec!["a"]),
    ];
    for (filter, expected) in filters {
        assert_eq!(ids(&filter, None, 10).0, expected, "{filter:?}");
        assert_eq!(reader.count(&filter), Ok(expected.len() as u64), "{filter:?}");
    }
}

#[test]
fn one_run_of_many_with_the_same_workflow_id_is_found_by_its_run_id() {
    let sim = Simulation::new(serving());
    let first = sim.start("fails", "a", "").unwrap();
    let second = sim.start("waits", "a", "").unwrap();
    let of = |run_id| sim.engine().describe(&RunId { workflow_id: "a".into(), run_id }).map(|run| run.run_id);
    assert_eq!(of(None), Ok(second.run_id.clone()));
    assert_eq!(of(Some(first.run_id.clone())), Ok(first.run_id));
    let missing = Error::NotFound { workflow_id: "a".into(), run_id: Some("other".into()) };
    assert_eq!(of(Some("other".into())), Err(missing));
}

/// S2-9: an engine that looked after its runs now and then would ask to be woken for it.
#[test]
fn ten_thousand_runs_that_wait_cause_no_work_in_a_year() {
    let mut options = serving().workflow("idles", |ctx: Ctx, _| async move {
        ctx.next_signal("never").await?;
        Ok(Payload::empty())
    });
    options.double_play = false;
    let sim = Simulation::new(options);
    for number in 0..10_000 {
        let workflow_id = number.to_string().into();
        let new = NewStart { workflow: "idles".into(), workflow_id, ..NewStart::default() };
        sim.wait(sim.engine().start(new)).unwrap();
    }
    sim.settle();
    assert_eq!(sim.next_wake(), None, "no moment is waited for");
    let before = sim.moments();
    sim.advance(secs(365 * 86_400));
    assert_eq!((sim.moments(), sim.next_wake()), (before, None), "nothing was written and nothing was tried");
    assert_eq!(status(&sim, "9999"), Status::Open);
}

/// S4-32 S4-35: the text of a history, as it is sent in and kept for tests.
#[test]
fn a_history_with_a_missing_or_malformed_task_id_is_refused_whole() {
    let sim = Simulation::new(options().workflow("calls", |ctx: Ctx, _| async move {
        ctx.activity("work", "").retry(every_second(2)).queue("elsewhere").await
    }));
    sim.start("calls", "a", "").unwrap();
    sim.settle();
    let history = sim.history("a");
    let id = describe_id(&sim);
    let quoted = format!("\"id\":\"{id}\"");
    assert!(Transcript::from_text(&history).is_ok() && history.contains(&quoted), "{history}");
    let malformed = Transcript::from_text(&history.replace(&quoted, "\"id\":\"task-1\"")).unwrap_err();
    assert!(malformed.to_string().contains("task-1"), "{malformed}");
    let missing = Transcript::from_text(&history.replace(&format!("{quoted},"), "")).unwrap_err();
    assert!(missing.to_string().contains("id"), "{missing}");
}

fn describe_id(sim: &Simulation) -> String {
    let seen = sim.engine().reader().describe(&RunId::of("a")).unwrap();
    seen.pending[0].id.to_string()
}
