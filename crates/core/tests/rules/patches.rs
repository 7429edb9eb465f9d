//! Patches: how code changes under open runs.

use crate::kit::*;

async fn before(ctx: Ctx, _: Payload) -> Done {
    ctx.activity("old", "").await?;
    ctx.activity("end", "").await
}

async fn patched(ctx: Ctx, _: Payload) -> Done {
    let name = if ctx.patched("faster") { "new" } else { "old" };
    ctx.activity(name, "").await?;
    // The answer to the first question holds for the whole run.
    let name = if ctx.patched("faster") { "new end" } else { "end" };
    ctx.activity(name, "").await
}

async fn deprecated(ctx: Ctx, _: Payload) -> Done {
    ctx.deprecate_patch("faster");
    ctx.activity("new", "").await?;
    ctx.activity("new end", "").await
}

async fn after(ctx: Ctx, _: Payload) -> Done {
    ctx.activity("new", "").await?;
    ctx.activity("new end", "").await
}

/// T-7: a run that was recorded before the patch takes the old path, though the whole code is new; a new run takes the
/// new one and keeps to it.
#[test]
fn a_patch_holds_for_runs_that_reach_it_first_with_the_new_code() {
    check(
        patched,
        "start
         resolve new
         resolve new end = done",
        expect![[r#"
            turn 0  [] patch faster  [] activity new
            turn 1  [] activity new end
            turn 2  [] complete done
        "#]],
    );
    let recorded = play(before, "start").transcript;
    let mut run = recorded.replay(&workflow(patched), RunOptions::default()).unwrap();
    let live = run.activate(turn(vec![resolved(0, "")]));
    assert_eq!(commands(&live)[0].kind.to_string(), "activity end", "the old path, to its end");
}

/// T-7: backends that match commands themselves tell of a patch by a job. It was once applied after the code of its
/// activation had run, which then took the old path.
#[test]
fn a_patch_that_the_backend_tells_of_holds_before_any_code_runs() {
    let replayed = |jobs| {
        let mut run = Run::new(workflow(patched), RunOptions::default()).unwrap();
        let turn = Turn { replaying: true, ..Turn::new(Timestamp::default(), jobs) };
        commands(&run.activate(Activation::Turn(turn))).iter().map(|c| c.kind.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(replayed(vec![start(7), Job::Patch { id: "faster".into() }]), ["patch faster", "activity new"]);
    assert_eq!(replayed(vec![start(7)]), ["activity old"]);
}

/// C-5, T-27: the life of a patch: asked, deprecated, gone; every run that took the new path plays under each.
#[test]
fn a_patch_can_be_deprecated_and_then_removed() {
    let recorded = play(patched, "start\nresolve new\nresolve new end").transcript;
    assert!(recorded.replay(&workflow(deprecated), RunOptions::default()).is_ok(), "patched, then deprecated");
    let recorded = play(deprecated, "start\nresolve new\nresolve new end").transcript;
    assert_eq!(decided(&recorded)[0], "[] patch faster (deprecated)");
    assert!(recorded.replay(&workflow(patched), RunOptions::default()).is_ok(), "deprecated, then rolled back");
    assert!(recorded.replay(&workflow(after), RunOptions::default()).is_ok(), "deprecated, then removed");
}

/// S0-52: a patch that was never deprecated cannot be removed: runs that took the old path may be open.
#[test]
fn a_patch_that_was_not_deprecated_cannot_be_removed() {
    check_replay(
        patched,
        "start",
        after,
        expect![[r#"
            failed: nondeterminism: a command differs from what was recorded
              --> turn 0, command 0
               |
               | recorded: patch faster, the root unit, at crates/core/tests/rules/patches.rs:11:23, by build kit
               | new:      activity new #0, activity(0), the root unit, at crates/core/tests/rules/patches.rs:25:9
               |
               | command: recorded "patch", new "activity"
               |
               = help: the run stays open. Bring back the code that recorded it, or keep the call of patch `faster`, which is on record; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

/// The report of a patch that was deprecated too early said to guard the new path with a patch, which it had.
#[test]
fn a_run_of_the_old_path_says_that_its_patch_was_deprecated_too_early() {
    let recorded = play(before, "start").transcript;
    let failed = recorded.replay(&workflow(deprecated), RunOptions::default()).err().unwrap().to_string();
    assert!(failed.contains("or keep `ctx.patched(\"faster\")`, because this run took the old path"), "{failed}");
}

/// S0-52, C-29: removing a deprecated mark shifts nothing behind it, wherever in the turn it stood.
#[test]
fn removing_a_deprecated_mark_shifts_nothing() {
    async fn marks(ctx: Ctx, _: Payload) -> Done {
        ctx.deprecate_patch("one");
        let a = ctx.activity("A", "");
        ctx.deprecate_patch("two");
        ctx.deprecate_patch("three");
        a.await?;
        ctx.deprecate_patch("four");
        nothing()
    }
    async fn fewer(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        ctx.deprecate_patch("three");
        a.await?;
        nothing()
    }
    async fn none(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await?;
        nothing()
    }
    async fn not_even_a(_: Ctx, _: Payload) -> Done {
        nothing()
    }
    let recorded = play(marks, "start\nresolve A").transcript;
    for function in [workflow(fewer), workflow(none)] {
        assert!(recorded.replay(&function, RunOptions::default()).is_ok());
    }
    let failed = recorded.replay(&workflow(not_even_a), RunOptions::default()).err().unwrap();
    assert_eq!(failed.turn, 0, "what is no mark is still missed");
}

/// A run that took one patch has said nothing about another that its code did not know.
#[test]
fn the_mark_of_one_patch_says_nothing_of_another() {
    async fn both(ctx: Ctx, _: Payload) -> Done {
        let safer = ctx.patched("safer");
        let name = if ctx.patched("faster") { "new" } else { "old" };
        ctx.activity(name, "").await?;
        ctx.activity(if safer { "safe end" } else { "new end" }, "").await
    }
    let recorded = play(patched, "start").transcript;
    let mut run = recorded.replay(&workflow(both), RunOptions::default()).unwrap();
    let live = run.activate(turn(vec![resolved(0, "")]));
    assert_eq!(commands(&live)[0].kind.to_string(), "activity new end");
}
