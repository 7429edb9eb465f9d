//! Time, randomness and facts of a run, durable keys, attributes and memos.

use dacapo::prelude::*;
use dacapo_testkit::expect;
use serde::{Deserialize, Serialize};

use crate::kit::check;

const COUNT: Key<u64> = Key::new("count");
const STAGE: Attr<String> = Attr::new("sim");

#[derive(Serialize, Deserialize)]
struct Facts {
    seconds: u64,
    workflow_id: String,
    same: bool,
    branch: u32,
    patched: bool,
}

#[workflow]
async fn facts(ctx: Ctx) -> Result<Facts, Failure> {
    let dice = (ctx.random(), ctx.random_u64(), ctx.uuid());
    assert!((0.0..1.0).contains(&dice.0) && dice.1 != ctx.random_u64() && dice.2 != ctx.uuid());
    let patched = ctx.patched("faster");
    ctx.deprecate_patch("older");
    let branch = ctx.choose(3);
    ctx.sleep(secs(1)).summary("a nap").await?;
    ctx.yield_now().await;
    let now = ctx.now();
    let info = ctx.info();
    Ok(Facts {
        seconds: now.as_millis() / 1000,
        workflow_id: info.start.workflow_id.to_string(),
        same: ctx.raw().now() == ctx.plain().now(),
        branch,
        patched,
    })
}

#[test]
fn time_ids_and_random_numbers_are_the_same_on_every_replay() {
    check(
        facts,
        "start
         at 60s: fire",
        expect![[r#"
            turn 0  [] patch faster  [] patch older (deprecated)  [] timer 1s
            turn 1  [] complete {"seconds":60,"workflow_id":"kit","same":true,"branch":0,"patched":true}
        "#]],
    );
}

#[workflow]
async fn keeps(ctx: Ctx, n: u64) -> Result<(Option<u64>, Option<u64>, Option<String>, Option<u64>), Failure> {
    ctx.keys().set(COUNT, &n);
    ctx.set_attr(STAGE, "paid".to_owned());
    ctx.set_memo("note", &7);
    ctx.publish(&[n, n]);
    ctx.sleep(secs(1)).await?;
    let (count, sim, note) = (ctx.keys().get(COUNT), ctx.attr(STAGE), ctx.memo("note"));
    ctx.keys().clear(COUNT);
    ctx.remove_attr(STAGE);
    ctx.remove_memo("note");
    assert_eq!((ctx.attr(STAGE), ctx.memo::<u64>("note")), (None, None));
    Ok((count, ctx.keys().get(COUNT), sim, note))
}

#[test]
fn keys_attributes_and_memos_are_typed_commands() {
    check(
        keeps,
        "start = 5
         fire",
        expect![[r#"
            turn 0  [] state count = 5  [] search attributes sim  [] memo note  [] timer 1s
              published [5,5]
            turn 1  [] state count cleared  [] search attributes sim  [] memo note  [] complete [5,null,"paid",7]
        "#]],
    );
}

#[workflow]
async fn shares(ctx: Ctx) -> Result<u64, Failure> {
    let total = ctx.cell(0_u64);
    let (seen, added) = (total.clone(), total.clone());
    ctx.on_signal(Signal::new("add"), move |n: u64| {
        let total = added.clone();
        async move {
            total.update(|total| *total += n);
            Ok(())
        }
    });
    ctx.wait_until(move || seen.read(|total| *total >= 10)).await?;
    Ok(*total.lock())
}

#[test]
fn conditions_look_at_cells_that_handlers_change() {
    check(
        shares,
        "start
         signal add = 4
         signal add = 6",
        expect![[r#"
            turn 0
            turn 1
            turn 2  [] complete 10
        "#]],
    );
}

#[workflow]
async fn hello(ctx: Ctx, name: String) -> Result<String, Failure> {
    let reply: String =
        ctx.nexus("door", "greeter", "hello", &name).with(|call| call.summary = Some("hi".into())).await?;
    Ok(reply)
}

#[test]
fn operations_of_other_services_are_typed() {
    check(
        hello,
        r#"start = "ada"
           started hello = token
           resolve hello = "hello ada""#,
        expect![[r#"
            turn 0  [] nexus greeter/hello
            turn 1
            turn 2  [] complete "hello ada"
        "#]],
    );
}
