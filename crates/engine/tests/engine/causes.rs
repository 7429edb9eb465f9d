//! Many runs that are stuck for one cause: told once, counted after that.

use std::panic::Location;

use dacapo_core::{Ctx, Failure};
use dacapo_store::StuckCause;
use dacapo_testkit::Simulation;

use crate::kit::{Serve, describe, options, payload, secs};
use crate::log::logged;

/// 200 runs printed 1,800 lines.
#[test]
fn cause_that_sticks_many_runs_is_logged_in_full_once_and_then_counted() {
    let sim = Simulation::new(options().workflow("panics", |ctx: Ctx, _| async move {
        let id = ctx.info().unwrap().start.workflow_id.clone();
        if id.starts_with("other") {
            return Err(Failure::application(std::hint::black_box(None::<String>).expect("nothing at all")));
        }
        panic!("no order {id}")
    }));
    let said = logged(|| {
        for number in 0..200 {
            sim.start("panics", format!("o-{number}").leak(), "").unwrap();
        }
        sim.start("panics", "other", "").unwrap();
        sim.settle();
        // Each is tried again, and has nothing new to say.
        sim.advance(std::time::Duration::from_secs(5));
    });
    let told: Vec<&str> = said.lines().filter(|line| line.contains("is stuck")).collect();
    assert_eq!(told.len(), 4, "{said}");
    assert!(told[0].contains("no order o-0"), "{}", told[0]);
    assert!(told[1].contains("(and 9 more for the same cause)"), "{}", told[1]);
    assert!(told[2].contains("(and 99 more for the same cause)"), "{}", told[2]);
    assert!(told[3].contains("nothing at all"), "{}", told[3]);
    let groups = sim.engine().reader().stuck_groups().unwrap();
    let groups: Vec<_> = groups.iter().map(|group| (group.runs, group.example.workflow_id.as_str())).collect();
    assert_eq!(groups, [(200, "o-199"), (1, "other")]);
}

fn causes(sim: &Simulation, ids: &[&'static str]) -> Vec<(StuckCause, String)> {
    sim.settle();
    let stuck = ids.iter().map(|id| describe(sim, id).stuck.unwrap_or_else(|| panic!("{id} is stuck")));
    // Places in this file move with it.
    let without_line = |subject: String| subject.split(".rs:").next().unwrap_or_default().to_owned();
    stuck.map(|stuck| (stuck.cause, without_line(stuck.subject))).collect()
}

/// A client decides by the cause and never reads the text.
#[test]
fn stuck_run_has_a_typed_cause_and_what_tells_it_from_others() {
    let serve = || {
        options()
            .workflow("panics", |ctx: Ctx, _| async move { panic!("no order {}", ctx.random_u64()) })
            .workflow("refuses", |ctx: Ctx, _| async move { ctx.refuse("it is no number", Location::caller()) })
            .workflow("violates", |ctx: Ctx, _| async move {
                let state = ctx.state(0);
                state.update(|_| ctx.now());
                Ok(payload(""))
            })
            .workflow("large", |_: Ctx, _| async move { Ok(payload("x".repeat(3 << 20))) })
            .workflow("nexus", |ctx: Ctx, _| async move { ctx.nexus("e", "s", "o", "").await })
            .workflow("calls", |ctx: Ctx, _| async move { ctx.activity("unknown", "").await })
            .workflow("elsewhere", |ctx: Ctx, _| async move { ctx.activity("work", "").queue("gpu").await })
            .workflow("waits", |ctx: Ctx, _| async move { Ok(ctx.sleep(secs(9)).await.map(|()| payload(""))?) })
            .workflow("gone", |ctx: Ctx, _| async move { Ok(ctx.sleep(secs(9)).await.map(|()| payload(""))?) })
            .activity("work", |_, _| Ok(payload("")))
    };
    let sim = Simulation::new(serve());
    let ids = ["panics", "refuses", "violates", "large", "nexus", "calls", "elsewhere"];
    for id in ids.iter().chain(&["waits", "gone"]) {
        sim.start(id, id, "").unwrap();
    }
    let file = |words: &str| format!("{words}crates/engine/tests/engine/causes");
    assert_eq!(
        causes(&sim, &ids),
        [
            (StuckCause::Panic, file("after ")),
            (StuckCause::Undecodable, file("")),
            (StuckCause::Violation, file("")),
            (StuckCause::Limit, "crates/engine/tests/engine/kit".to_owned()),
            (
                StuckCause::Unsupported,
                "Nexus operation s/o cannot be called: this backend (memory) does not support Nexus operations: call an \
                 activity, or use a backend that has it"
                    .to_owned()
            ),
            (StuckCause::UnservedActivity, "activity unknown".to_owned()),
            (StuckCause::UnservedQueue, "gpu".to_owned()),
        ]
    );
    let changed = options().workflow("waits", |ctx: Ctx, _| async move { ctx.activity("work", "").await });
    let sim = sim.redeploy(changed);
    // Runs at rest are played when their timers fire.
    sim.advance(secs(10));
    assert_eq!(
        causes(&sim, &["waits", "gone"]),
        [(StuckCause::Nondeterminism, file("recorded ")), (StuckCause::MissingWorkflow, "gone".to_owned()),]
    );
}
