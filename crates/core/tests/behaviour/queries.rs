//! Queries: answered from the state as it is, which they never change.

use dacapo_core::{Activation, Completion, Ctx, Payload, Query};
use dacapo_testkit::{Mode, Player, check, expect, workflow};

use crate::kit::*;

async fn counting(ctx: Ctx, _: Payload) -> Done {
    let count = ctx.state(0);
    let seen = count.clone();
    ctx.on_query("count", move |_| say(seen.read(i32::to_string)));
    loop {
        let signal = ctx.next_signal("add").await?;
        if word(&signal.input) == "stop" {
            return say("stopped");
        }
        count.update(|count| *count += 1);
        ctx.activity("tell", "").await?;
    }
}

/// S0-42, S0-74, C-32, T-4
#[test]
fn a_query_sees_what_the_last_turn_left_and_advances_nothing() {
    check(
        counting,
        "start
         query count
         signal add
         query count
         query count
         resolve tell
         signal add
         query count",
        expect![[r#"
            turn 0
            answer 0
            turn 1  [] activity tell
            answer 1
            answer 1
            turn 2
            turn 3  [] activity tell
            answer 2
        "#]],
    );
}

/// S0-42, S0-74
#[test]
fn a_thousand_queries_change_nothing() {
    let mut play = Player::new(workflow(counting), Default::default(), Mode::Double);
    play.play("start\n signal add, signal add");
    let (before, transcript) = (play.run().inspect(), play.transcript.clone());
    for _ in 0..1000 {
        let query = Query { id: "q".into(), name: "count".into(), ..Query::default() };
        let answer = play.run().activate(Activation::Query(vec![query]));
        assert_eq!(shown(&answer), "answer 1\n");
    }
    assert_eq!((play.run().inspect(), play.transcript.clone()), (before, transcript));
    play.printed.clear();
    play.play("resolve tell");
    expect![[r#"
        turn 2  [] activity tell
    "#]]
    .assert_eq(&play.printed);
}

/// C-32
#[test]
fn a_closed_run_in_memory_still_answers() {
    check(
        counting,
        "start
         signal add
         resolve tell, signal add = stop
         query count",
        expect![[r#"
            turn 0
            turn 1  [] activity tell
            turn 2  [] complete stopped
            answer 1
        "#]],
    );
}

/// C-32
#[test]
fn an_unknown_query_is_an_error_that_names_those_that_are_known() {
    check(
        counting,
        "start
         query total",
        expect![[r#"
            turn 0
            no answer: no handler for query "total": correct the name, or register a handler; known now: count
        "#]],
    );
}

/// C-32: whatever a query does to its ctx, the query fails and the run goes on as before.
#[test]
fn a_query_that_changes_the_run_is_an_error_and_changes_nothing() {
    let changes = |ctx: Ctx, _| async move {
        let count = ctx.state(0);
        let changed = count.clone();
        ctx.on_query("update a cell", move |_| {
            changed.update(|count| *count += 1);
            say("changed")
        });
        let inside = ctx.clone();
        ctx.on_query("schedule", move |_| {
            inside.activity("forbidden", "").detach();
            say("scheduled")
        });
        let inside = ctx.clone();
        ctx.on_query("set a key", move |_| {
            inside.set_state("key", "value");
            say("set")
        });
        let inside = ctx.clone();
        ctx.on_query("draw", move |_| say(inside.random_u64().to_string()));
        ctx.on_query("panic", |_| panic!("on purpose"));
        ctx.on_query("fail", |_| Err(fail("not today")));
        let nested = count.clone();
        ctx.on_query("enter a cell twice", move |_| nested.read(|_| nested.read(|count| say(count.to_string()))));
        ctx.next_signal("go on").await?;
        say(format!("{} {:?}", count.read(i32::to_string), ctx.get_state("key")))
    };
    check(
        changes,
        "start
         query update a cell
         query schedule
         query set a key
         query draw
         query panic
         query fail
         query enter a cell twice
         signal go on",
        expect![[r#"
            turn 0
            no answer: query "update a cell" tried to change the run; a query only reads
            no answer: query "schedule" tried to change the run; a query only reads
            no answer: query "set a key" tried to change the run; a query only reads
            no answer: query "draw" tried to change the run; a query only reads
            no answer: the handler of query "panic" panicked: on purpose
            no answer: not today
            no answer: query "enter a cell twice" tried to change the run; a query only reads
            turn 1  [] complete 0 None
        "#]],
    );
}

/// C-32: a live query has a ctx to read from.
#[test]
fn a_query_may_read_what_the_ctx_knows() {
    check(
        |ctx: Ctx, _| async move {
            ctx.set_state("key", "value");
            let inside = ctx.clone();
            ctx.on_query("look", move |_| {
                let (key, turn) = (inside.get_state("key"), inside.info().map(|info| info.turn));
                say(format!("{key:?} {turn:?} {}", inside.now()))
            });
            ctx.next_signal("stop").await?;
            say("stopped")
        },
        "at 5s: start
         query look",
        expect![[r#"
            turn 0  [] state key = value
            answer Some(value) Some(1) 1970-01-01T00:00:05Z
        "#]],
    );
}

/// C-32
#[test]
fn a_query_before_the_start_is_refused() {
    let mut run = single(&workflow(counting));
    let completion = run.activate(Activation::Query(vec![Query::default()]));
    assert!(matches!(completion, Completion::Failed(_)));
    expect![[r#"
        failed: the activation does not fit the run: a query needs a run that was started
    "#]]
    .assert_eq(&shown(&completion));
    assert!(matches!(run.activate(start()), Completion::Turn(_)), "and does no harm");
}

/// C-32
#[test]
fn a_later_query_handler_takes_the_place_of_an_earlier_one() {
    check(
        |ctx: Ctx, _| async move {
            ctx.on_query("sim", |_| say("one"));
            ctx.next_signal("next").await?;
            ctx.on_query("sim", |_| say("two"));
            ctx.next_signal("next").await?;
            say("done")
        },
        "start
         query sim
         signal next
         query sim",
        expect![[r#"
            turn 0
            answer one
            turn 1
            answer two
        "#]],
    );
}

/// C-32: a query that feeds a channel breaks the rules, and still no unit gets a go for it.
#[test]
fn query_that_feeds_a_channel_wakes_no_unit() {
    let mut run = single(&workflow(|ctx: Ctx, _| async move {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        ctx.on_query("feed", move |_| {
            sender.send(()).unwrap();
            say("fed")
        });
        receiver.recv().await;
        say("woken")
    }));
    run.activate(start());
    let query = Query { name: "feed".into(), ..Query::default() };
    let refused = "no answer: query \"feed\" tried to change the run; a query only reads\n";
    assert_eq!(shown(&run.activate(Activation::Query(vec![query]))), refused);
    assert_eq!(run.inspect().runnable, []);
}
