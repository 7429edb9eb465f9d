//! Queues: where an activity waits, what is stored of it, and who goes first.

use dacapo_core::{Ctx, FailureKind, Payload, Priority, Seq, TimeoutKind};
use dacapo_engine::ActivityState;

use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, completed_empty, describe, every_second, options, over_every_cache,
    over_every_cache_and_restart, payload, rows, secs, since_start, text,
};

/// Plays one activity with options, and gives its result or its failure.
fn calls(
    set: impl Fn(dacapo_core::Activity) -> dacapo_core::Activity + Send + Sync + Clone + 'static,
) -> dacapo_engine::Options {
    options().workflow("calls", move |ctx: Ctx, input| {
        let set = set.clone();
        async move { set(ctx.activity("work", input)).await }
    })
}

/// The queue of an activity may be one that is not served: that is what the timeout is for.
#[test]
fn activity_in_a_queue_that_is_not_served_fails_at_its_timeout() {
    let serve = || calls(|activity| activity.queue("elsewhere").schedule_to_start(secs(10)));
    over_every_cache(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        let failure = sim.result("a").1.unwrap_err();
        assert_eq!(failure.cause().unwrap().kind, FailureKind::Timeout(TimeoutKind::ScheduleToStart));
        assert_eq!(rows(sim, "a"), NO_ROWS);
        vec!["a"]
    });
}

/// S4-38
#[test]
fn an_activity_goes_to_its_workflow_s_queue_unless_it_names_another() {
    let serve = || {
        let mut options = options()
            .workflow("both", |ctx: Ctx, _| async move {
                let (own, other) = (ctx.activity("where", ""), ctx.activity("where", "").queue("fast"));
                Ok(payload(format!("{} {}", own.await?, other.await?)))
            })
            .activity("where", |ctx, _| Ok(payload(ctx.info().queue.to_string())));
        options.queue("fast");
        options
    };
    over_every_cache(serve, |sim| {
        sim.start("both", "a", "").unwrap();
        let run = describe(sim, "a").run;
        let queues: Vec<_> = sim.store().tasks_of(run).unwrap().into_iter().map(|task| task.queue).collect();
        assert_eq!(queues, ["default", "fast"]);
        assert_eq!(sim.result("a"), completed("default fast"));
        vec!["a"]
    });
}

/// S4-37 S4-5
#[test]
fn a_stored_task_can_be_read_back_with_all_that_was_asked_for() {
    let set = |activity: dacapo_core::Activity| {
        activity
            .queue("elsewhere")
            .retry(every_second(7))
            .start_to_close(secs(9))
            .priority(Priority { key: 3, ..Priority::default() })
    };
    let serve = move || calls(set);
    over_every_cache(serve, |sim| {
        sim.start("calls", "a", "in").unwrap();
        let row = sim.store().tasks_of(describe(sim, "a").run).unwrap().remove(0);
        assert_eq!((row.seq, row.queue.as_str(), row.priority, row.attempt), (Seq(0), "elsewhere", 3, 1));
        assert_eq!((row.turn, row.position, row.node, row.failure, row.details), (0, 0, None, None, None));
        let task = sim.engine().reader().describe(&dacapo_engine::RunId::of("a")).unwrap().pending.remove(0);
        assert_eq!((task.activity.as_str(), task.state, task.attempts), ("work", ActivityState::Pending, 7));
        assert_eq!(since_start(task.scheduled), secs(0));
        let history = sim.history("a");
        for word in ["\"attempts\":7", "\"start_to_close\":\"9s\"", "\"queue\":\"elsewhere\"", "\"key\":3"] {
            assert!(history.contains(word), "{word} is not in {history}");
        }
        vec!["a"]
    });
}

/// S4-53
#[test]
fn lower_priority_numbers_go_first_and_zero_is_the_default() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || {
        let world = noted.clone();
        let mut options = options()
            .workflow("three", |ctx: Ctx, _| async move {
                let with = |key| Priority { key, ..Priority::default() };
                let late = ctx.activity("work", "late").priority(with(5));
                let usual = ctx.activity("work", "usual");
                let early = ctx.activity("work", "early").priority(with(-5));
                ctx.join([late, usual, early]).await;
                Ok(Payload::empty())
            })
            .activity("work", move |_, input| {
                world.note(text(&input));
                Ok(input)
            });
        options.queue("default").max_concurrent_activities = 1;
        options
    };
    over_every_cache(serve, |sim| {
        let before = world.count();
        sim.start("three", "a", "").unwrap();
        let tasks = sim.store().tasks_of(describe(sim, "a").run).unwrap();
        assert_eq!(tasks.iter().map(|task| task.priority).collect::<Vec<_>>(), [5, 0, -5]);
        assert_eq!(sim.result("a"), completed_empty());
        assert_eq!(world.notes()[before..], ["early", "usual", "late"]);
        vec!["a"]
    });
}

/// The process may have been down when the time was over: the attempt had begun all the same.
#[test]
fn an_attempt_that_had_begun_in_time_is_made_again_after_a_restart_however_late() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let gate = shared_gate.clone();
        calls(|activity| activity.schedule_to_start(secs(10))).waiting("work", move |_, _| gate.pass())
    };
    over_every_cache_and_restart(serve, |sim| {
        gate.shut();
        sim.start("calls", "a", "").unwrap();
        sim.advance(secs(20));
        let sim = sim.restart();
        sim.settle();
        gate.open(Ok("done".into()));
        assert_eq!(sim.result("a"), completed("done"));
        assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
        (sim, vec!["a"])
    });
}
