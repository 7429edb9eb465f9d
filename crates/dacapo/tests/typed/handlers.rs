//! Handlers of signals, updates and queries, for the whole run and for a phase.

use dacapo::Query;
use dacapo::prelude::*;
use dacapo_testkit::expect;
use serde_json::{Value, json};

use crate::kit::check;

const ADD: Signal<u64> = Signal::new("add");
const TAKE: Update<u64, u64> = Update::new("take");
const LEFT: Query<String, String> = Query::new("left");

#[activity]
async fn audit(n: u64) -> Result<(), Failure> {
    let _ = n;
    Ok(())
}

#[workflow]
async fn purse(ctx: Ctx) -> Result<u64, Failure> {
    let coins = ctx.cell(0_u64);
    let (adds, takes, looks, shown, ends) = (coins.clone(), coins.clone(), coins.clone(), coins.clone(), coins.clone());
    ctx.on_signal(ADD, move |n| {
        let coins = adds.clone();
        async move {
            coins.update(|coins| *coins += n);
            Ok(())
        }
    });
    let inner = ctx.clone();
    ctx.on_update(
        TAKE,
        move |n| match *n <= looks.read(|coins| *coins) {
            true => Ok(()),
            false => Err(Failure::application("too little")),
        },
        move |n| {
            let (ctx, coins) = (inner.clone(), takes.clone());
            async move {
                ctx.call(audit, n).await?;
                Ok(coins.update(|coins| {
                    *coins -= n;
                    *coins
                }))
            }
        },
    );
    ctx.on_query(LEFT, move |unit| Ok(format!("{} {unit}", shown.read(|coins| *coins))));
    ctx.wait_until(move || ends.read(|coins| *coins == 1)).await?;
    Ok(coins.read(|coins| *coins))
}

#[test]
fn handlers_take_and_give_typed_values() {
    check(
        purse,
        r#"start
           signal add = 5
           query left = "coins"
           update take u1 = 9
           update take u2 = 4
           resolve audit"#,
        expect![[r#"
            turn 0
            turn 1
            answer "5 coins"
            no turn
              rejected u1: too little
            turn 2  [h1] accept update u2  [h1] activity audit
            turn 3  [h1] complete update u2 ok 1  [] complete 1
        "#]],
    );
}

/// S4-55
#[test]
fn message_that_does_not_decode_fails_its_sender_and_not_the_run() {
    check(
        purse,
        r#"start
           signal add = "five"
           update take u1 = {"n":1}
           query left = 7
           signal add = 1"#,
        expect![[r#"
            turn 0
            turn 1
              warning: signal handler [h0] failed: signal "add": the value cannot be read as `u64`: invalid type: string "five", expected u64 at line 1 column 6; it is `"five"`; send a value of that type
            no turn
              rejected u1: update "take": the value cannot be read as `u64`: invalid type: map, expected u64 at line 1 column 0; it is `{"n":1}`; send a value of that type
            no answer: query "left": the value cannot be read as `String`: invalid type: integer `7`, expected a string at line 1 column 1; it is `7`; send a value of that type
            turn 2  [] complete 1
        "#]],
    );
}

#[workflow]
async fn dynamic(ctx: Ctx, name: String) -> Result<Value, Failure> {
    let heard = ctx.cell(Vec::<Value>::new());
    let (hears, shown, ends) = (heard.clone(), heard.clone(), heard.clone());
    ctx.on_signal_raw(name.clone(), move |value| {
        let heard = hears.clone();
        async move {
            heard.update(|heard| heard.push(value));
            Ok(())
        }
    });
    ctx.on_update_raw(name.clone(), |_| Ok(()), |value| async move { Ok(json!([value])) });
    ctx.on_query_raw(name, move |_| Ok(json!(shown.read(|heard| heard.clone()))));
    ctx.wait_until(move || ends.read(|heard| heard.len() == 2)).await?;
    Ok(json!(heard.read(|heard| heard.clone())))
}

#[test]
fn handlers_by_name_speak_json() {
    check(
        dynamic,
        r#"start = "talk"
           signal talk = {"a":1}
           update talk u = 3
           query talk
           signal talk"#,
        expect![[r#"
            turn 0
            turn 1
            turn 2  [h1] accept update u  [h1] complete update u ok [3]
            answer [{"a":1}]
            turn 3  [] complete [{"a":1},null]
        "#]],
    );
}

#[workflow]
async fn auction(ctx: Ctx) -> Result<(u64, bool), Failure> {
    let best = ctx.cell(0_u64);
    let inner = ctx.clone();
    let end = ctx
        .phase(&best)
        .on_signal(ADD, |best, n| {
            *best += n;
            Handled::Done(())
        })
        .on_update(
            TAKE,
            |best, n| if n > best { Ok(()) } else { Err("too low".into()) },
            move |best, n| {
                *best = n;
                let ctx = inner.clone();
                Handled::with(async move {
                    ctx.call(audit, n).await?;
                    Ok(n)
                })
            },
        )
        .until(|best| *best >= 100)
        .timeout(mins(1))
        .await?;
    Ok((best.read(|best| *best), end == PhaseEnd::Timeout))
}

#[test]
fn a_phase_is_open_for_typed_messages_until_it_ends() {
    check(
        auction,
        r#"start
           update take u1 = 10
           resolve audit
           update take u2 = 5
           signal add = 1, signal add = "one"
           fire"#,
        expect![[r#"
            turn 0  [] timer 1m
            turn 1  [h0] accept update u1  [h0,a0] activity audit
            turn 2  [h0,a0] complete update u1 ok 10
            no turn
              rejected u2: too low
            turn 3
              warning: signal handler [h2] failed: signal "add": the value cannot be read as `u64`: invalid type: string "one", expected u64 at line 1 column 5; it is `"one"`; send a value of that type
            turn 4  [] complete [11,true]
        "#]],
    );
}
