//! Continuing as new: what the next run of a chain inherits.

use dacapo_core::{ContinueAsNew, Ctx, Failure, Payload};
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_store::{RunFilter, Status};

use crate::kit::{
    Serve, completed, describe, failed, options, over_every_cache, over_every_cache_and_restart, payload, secs, signal,
    since_start, text, turns, turns_of,
};

/// Takes one signal for each run, and says what it found.
async fn takes_one(ctx: Ctx, seen: Payload) -> Result<Payload, Failure> {
    let seen = text(&seen);
    let signal = ctx.signal("item").await?;
    let seen = format!("{seen}{} ", signal.input[0]);
    if seen.split_whitespace().count() == 3 {
        let info = ctx.info().unwrap();
        return Ok(payload(format!("{seen}{:?} {:?}", info.memo, info.search_attributes)));
    }
    ctx.upsert_memo([("seen".into(), Some(payload(seen.trim().replace(' ', "+"))))]);
    ctx.upsert_search_attributes([("kind".into(), Some("odd".into()))]);
    Err(ctx.continue_as_new(ContinueAsNew { input: vec![payload(seen)], ..ContinueAsNew::default() }))
}

fn serving() -> Options {
    options().workflow("takes one", takes_one)
}

/// C-31
#[test]
fn signals_that_were_not_taken_go_on_with_the_next_run_in_order() {
    over_every_cache_and_restart(serving, |stage| {
        let first = stage.start("takes one", "a", "").unwrap();
        for item in ["x", "y", "z"] {
            let signal = crate::kit::signal_of("item", item);
            stage.wait(stage.engine().signal(&RunId::of("a"), signal, None)).unwrap();
        }
        let stage = stage.restart();
        assert_eq!(stage.result("a"), completed("x y z {\"seen\": x+y} {\"kind\": odd}"));
        assert_eq!(stage.engine().reader().count(&RunFilter::default()), Ok(3));
        let last = describe(&stage, "a");
        assert_eq!(last.first_run_id, first.run_id);
        assert_eq!(last.memo.get("seen"), Some(&payload("x+y")));
        let of_first = RunId { workflow_id: "a".into(), run_id: Some(first.run_id) };
        assert_eq!(stage.engine().describe(&of_first).unwrap().status, Status::ContinuedAsNew);
        assert!(
            turns_of(&stage, &of_first).ends_with("continue as new takes one\n"),
            "{}",
            turns_of(&stage, &of_first)
        );
        (stage, vec!["a"])
    });
}

#[test]
fn the_next_run_may_be_another_workflow_with_other_memo_and_a_delay() {
    let serve = || {
        options()
            .workflow("first", |ctx: Ctx, _| async move {
                Err(ctx.continue_as_new(ContinueAsNew {
                    workflow: "second".into(),
                    input: vec!["in".into()],
                    memo: Some([("new".into(), "memo".into())].into()),
                    start_delay: Some(secs(30)),
                    ..ContinueAsNew::default()
                }))
            })
            .workflow("second", |ctx: Ctx, input| async move {
                Ok(payload(format!("{input} {:?}", ctx.info().unwrap().memo)))
            })
    };
    over_every_cache_and_restart(serve, |stage| {
        let memo = [("old".into(), "memo".into())].into();
        let new = NewStart { workflow: "first".into(), workflow_id: "a".into(), memo, ..NewStart::default() };
        stage.wait(stage.engine().start(new)).unwrap();
        stage.settle();
        assert_eq!(describe(&stage, "a").turns, 0);
        let stage = stage.restart();
        assert_eq!(stage.result("a"), completed("in {\"new\": memo}"));
        assert_eq!(turns(&stage, "a"), "0 at 30s: start second -> complete in {\"new\": memo}\n");
        (stage, vec!["a"])
    });
}

#[test]
fn the_execution_timeout_is_that_of_the_chain_and_the_run_timeout_that_of_each_run() {
    let serve = || {
        options().workflow("again", |ctx: Ctx, _| async move {
            ctx.sleep(secs(40)).await?;
            Err(ctx.continue_as_new(ContinueAsNew::default()))
        })
    };
    over_every_cache(serve, |stage| {
        let new = NewStart {
            workflow: "again".into(),
            workflow_id: "a".into(),
            run_timeout: Some(secs(50)),
            execution_timeout: Some(secs(100)),
            ..NewStart::default()
        };
        stage.wait(stage.engine().start(new)).unwrap();
        let said = "it took longer than its execution timeout".to_owned();
        assert_eq!(failed(stage, "a"), (Status::TimedOut, said));
        assert_eq!(since_start(describe(stage, "a").closed.unwrap()), secs(100));
        assert_eq!(stage.engine().reader().count(&RunFilter::default()), Ok(3));
        assert_eq!(stage.store().next_due().unwrap(), None);
        vec!["a"]
    });
}

#[test]
fn a_parent_awaits_the_last_run_of_its_child_s_chain() {
    let serve = || {
        serving().workflow("asks", |ctx: Ctx, _| async move { ctx.child("takes one", "").workflow_id("child").await })
    };
    over_every_cache_and_restart(serve, |stage| {
        stage.start("asks", "a", "").unwrap();
        stage.settle();
        signal(&stage, "child", "item", "x");
        stage.settle();
        let stage = stage.restart();
        for item in ["y", "z"] {
            stage.settle();
            signal(&stage, "child", "item", item);
        }
        assert_eq!(stage.result("a"), completed("x y z {\"seen\": x+y} {\"kind\": odd}"));
        (stage, vec!["a", "child"])
    });
}
