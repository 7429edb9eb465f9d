//! Inspection: what a run at rest is doing, unit by unit.

use dacapo_core::{Ctx, Payload, Seq};
use dacapo_testkit::{Mode, Player, expect, workflow};

use crate::kit::*;

async fn busy(ctx: Ctx, _: Payload) -> Done {
    let inside = ctx.clone();
    ctx.on_signal("s", move |_| {
        let ctx = inside.clone();
        async move { Ok(ctx.wait_until(|| false).await?) }
    });
    let inside = ctx.clone();
    drop(ctx.launch(async move { inside.child("C", "").started().await }));
    let branches = ["A", "B"].map(|name| {
        let ctx = ctx.clone();
        async move { ctx.activity(name, "").await }
    });
    ctx.parallel(branches).await;
    ctx.race(ctx.next_signal("stop"), ctx.sleep(secs(5))).await?;
    say("done")
}

fn inspected(script: &str) -> dacapo_core::Inspection {
    let mut play = Player::new(workflow(busy), Default::default(), Mode::Whole);
    play.play(script);
    play.run().inspect()
}

/// S0-8, S0-17, S1-35: every unit, what it waits for, since when and where.
#[test]
fn an_inspection_shows_every_unit_and_what_it_waits_for() {
    let at_rest = inspected("start\n signal s\n resolve A");
    expect![[r#"
        the root unit since turn 0
          waits for other units since turn 0, at crates/core/tests/behaviour/inspection.rs
        unit [l0] since turn 0
          waits for the start of child C #0 since turn 0, at crates/core/tests/behaviour/inspection.rs
        unit [p2] since turn 0
          waits for activity B #2 since turn 0, at crates/core/tests/behaviour/inspection.rs
        unit [h0] since turn 1
          waits for a condition since turn 1, at crates/core/tests/behaviour/inspection.rs
    "#]]
    .assert_eq(&without_lines(&at_rest.to_string()));
    assert_eq!((at_rest.turn, at_rest.next_seq, at_rest.running), (3, Seq(3), None));
    assert!(at_rest.runnable.is_empty(), "nothing is enabled at rest");
    let pending: Vec<_> = at_rest.pending.iter().map(|op| (op.seq.0, op.name.as_str(), op.unit.clone())).collect();
    let unit = |text: &str| Some(text.parse().unwrap());
    assert_eq!(pending, [(0, "C", None), (2, "B", unit("[p2]"))]);
}

/// S0-8: two rounds for the start (the root, then what it started), one for each turn that woke one unit.
#[test]
fn the_round_counter_counts_the_rounds_that_were_played() {
    assert_eq!(inspected("start").round, 2);
    assert_eq!(inspected("start\n signal s").round, 3);
    assert_eq!(inspected("start\n signal s\n resolve A").round, 4);
    assert_eq!(inspected("start\n signal s\n resolve A\n resolve B").round, 6);
}

/// S0-17: one pending entry for each blocked operation, and none for one that is resolved.
#[test]
fn a_race_shows_both_its_waits_and_resolved_operations_are_gone() {
    let at_rest = inspected("start\n resolve A, resolve B");
    expect![[r#"
        the root unit since turn 0
          waits for timer 5s #3 since turn 1, at crates/core/tests/behaviour/inspection.rs
          waits for signal stop since turn 1, at crates/core/tests/behaviour/inspection.rs
        unit [l0] since turn 0
          waits for the start of child C #0 since turn 0, at crates/core/tests/behaviour/inspection.rs
    "#]]
    .assert_eq(&without_lines(&at_rest.to_string()));
    let pending: Vec<_> = at_rest.pending.iter().map(|op| op.to_owned().name).collect();
    assert_eq!(pending, ["C", "5s"]);
}

/// S0-8
#[test]
fn a_closed_run_has_nothing_left() {
    let closed = inspected("start\n resolve A, resolve B\n signal stop");
    assert_eq!((closed.units.len(), closed.runnable.len()), (0, 0));
}

/// Units are listed by id, whenever they were made, and a result that waits to be taken is pending no more.
#[test]
fn an_inspection_lists_units_in_order_and_only_what_is_pending() {
    async fn leaf(ctx: Ctx) -> Done {
        let a = ctx.activity("A", "");
        ctx.next_signal("go").await?;
        a.await
    }
    async fn nest(ctx: Ctx, nested: bool) -> Done {
        if nested {
            ctx.parallel([leaf(ctx.clone())]).await;
        }
        leaf(ctx).await
    }
    let nesting = workflow(|ctx: Ctx, _| async move {
        ctx.parallel([nest(ctx.clone(), true), nest(ctx.clone(), false)]).await;
        say("done")
    });
    let mut play = Player::new(nesting, Default::default(), Mode::Whole);
    play.play("start\nresolve #0");
    let inspection = play.run().inspect();
    let units: Vec<String> = inspection.units.iter().map(|unit| unit.id.to_string()).collect();
    assert_eq!(units, ["[]", "[p0]", "[p0,p0]", "[p1]"]);
    assert_eq!(inspection.pending.iter().map(|pending| pending.seq).collect::<Vec<_>>(), [Seq(1)]);
}

/// A phase once showed where the core waits for its condition, which tells the author of the phase nothing.
#[test]
fn a_phase_shows_the_place_where_it_was_opened() {
    let phased = workflow(|ctx: Ctx, _| async move {
        let state = ctx.state(false);
        ctx.phase(&state).until(|ended| *ended).timeout(secs(5)).await?;
        say("done")
    });
    let mut play = Player::new(phased, Default::default(), Mode::Whole);
    play.play("start");
    expect![[r#"
        the root unit since turn 0
          waits for timer 5s #0 since turn 0, at crates/core/tests/behaviour/inspection.rs
          waits for a condition since turn 0, at crates/core/tests/behaviour/inspection.rs
    "#]]
    .assert_eq(&without_lines(&play.run().inspect().to_string()));
}
