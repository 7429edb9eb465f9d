//! Many runs that are stuck for one cause: told once, counted after that.

use dacapo_core::{Ctx, Failure};
use dacapo_testkit::Simulation;

use crate::kit::{Serve, options};
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
    let causes = sim.engine().reader().stuck_causes().unwrap();
    let causes: Vec<_> = causes.iter().map(|cause| (cause.runs, cause.example.workflow_id.as_str())).collect();
    assert_eq!(causes, [(200, "o-199"), (1, "other")]);
}
