//! Several nodes of which one is late, gets no notice of something, or does not hold what it is asked for.

use std::ops::ControlFlow;
use std::task::{Context, Waker};

use dacapo_client::{Client, CompleteActivity, RunRef};
use dacapo_core::{Ctx, Failure, Payload};
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_store::{ReadMessages, ReadTurns, SharedStore, Status, TurnOf, TurnWrite, Write, Writes};
use dacapo_sync::allow_blocking;
use dacapo_testkit::{LEASE, NoticesFor, RENEWAL, SimulatedNodes};
use dacapo_worker::CompletionToken;

use crate::kit::{Gate, Serve, World, completed, every_second, options, payload, secs, text};
use crate::nodes::{collects, new, query, result, send, start, two};

/// Starts runs on node a, which gives half of them away after they are committed and before it knows of that.
fn given_before_the_start_is_answered(serve: impl Fn() -> Options, workflow: &'static str) -> SimulatedNodes {
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", serve());
    nodes.hold_answers("a", true);
    let ids = ["w", "x", "y", "z"];
    let mut starts: Vec<_> = ids.map(|id| Box::pin(nodes.engine("a").start(new(workflow, id)))).into();
    nodes.settle();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(starts.iter_mut().all(|start| start.as_mut().poll(&mut cx).is_pending()));
    nodes.start("b", serve());
    nodes.advance(RENEWAL * 2);
    assert_eq!(nodes.rows().iter().map(|row| row.shards).collect::<Vec<_>>(), [2, 2]);
    nodes.hold_answers("a", false);
    for start in starts {
        nodes.wait(start).unwrap();
    }
    nodes
}

/// A copy of the run that is older than what another node has played since would take the results of its activities as late.
#[test]
fn a_run_that_moves_before_its_start_is_answered_goes_on_when_it_comes_back() {
    async fn works(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        for _ in 0..3 {
            ctx.activity("works", "").await?;
            ctx.sleep(secs(20)).await?;
        }
        Ok(payload("done"))
    }
    let serve = || options().workflow("works", works).activity("works", |_, _| Ok(payload("")));
    let mut nodes = given_before_the_start_is_answered(serve, "works");
    nodes.advance(secs(25));
    nodes.kill("b");
    for id in ["w", "x", "y", "z"] {
        assert_eq!(result(&mut nodes, "a", id), completed("done"));
    }
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn a_timer_that_is_due_while_its_run_has_no_owner_fires_when_it_has_one() {
    async fn naps(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        ctx.sleep(secs(30)).await?;
        Ok(payload("rested"))
    }
    let mut nodes = given_before_the_start_is_answered(|| options().workflow("naps", naps), "naps");
    nodes.advance(secs(20));
    nodes.kill("b");
    for id in ["w", "x", "y", "z"] {
        assert_eq!(result(&mut nodes, "a", id), completed("rested"));
    }
}

/// Activities of a queue that node b alone serves, left to the holders of their tokens.
fn left_to_tokens(world: &World) -> SimulatedNodes {
    let mut nodes = SimulatedNodes::new();
    let asks = |ctx: Ctx, _| async move {
        ctx.activity("ask", "").queue("elsewhere").heartbeat(secs(30)).retry(every_second(3)).await
    };
    nodes.start("a", options().workflow("asks", asks));
    let tokens = world.clone();
    let mut worker = options().activity("ask", move |ctx, _| {
        tokens.note(ctx.completion_token());
        Err(ctx.complete_later())
    });
    worker.queues.clear();
    worker.queue("elsewhere");
    nodes.start("b", worker);
    nodes.advance(RENEWAL);
    start(&mut nodes, "asks", "x");
    nodes.advance(secs(1));
    nodes
}

fn complete(
    nodes: &mut SimulatedNodes,
    node: &'static str,
    token: &str,
    result: Result<Payload, Failure>,
) -> dacapo_client::Result<()> {
    let completed = Client::complete(nodes.engine(node), token.to_owned(), result);
    nodes.wait(completed)
}

#[test]
fn an_activity_that_another_node_left_to_its_token_is_completed_on_any_node() {
    for node in ["a", "b"] {
        let world = World::default();
        let mut nodes = left_to_tokens(&world);
        let token = world.notes()[0].clone();
        // Without its reports it would have timed out.
        for _ in 0..5 {
            nodes.advance(secs(20));
            let heard = Client::heartbeat(nodes.engine(node), token.clone(), payload("half"));
            assert_eq!(nodes.wait(heard).unwrap(), None);
        }
        // A failure is retried by the node that works at it.
        complete(&mut nodes, node, &token, Err(Failure::application("not today"))).unwrap();
        nodes.advance(secs(2));
        let token = world.notes()[1].clone();
        complete(&mut nodes, node, &token, Ok(payload("done"))).unwrap();
        assert_eq!(result(&mut nodes, "a", "x"), completed("done"));
        let late = complete(&mut nodes, node, &token, Ok(payload("again"))).unwrap_err();
        assert!(matches!(late, dacapo_client::Error::Closed { .. }), "{late}");
    }
}

#[test]
fn an_activity_that_another_node_works_at_is_completed_by_its_id() {
    let world = World::default();
    let mut nodes = left_to_tokens(&world);
    let token: CompletionToken = world.notes()[0].parse().unwrap();
    let completion = CompleteActivity { activity_id: token.activity_id, result: Ok(payload("by hand")) };
    let done = Client::complete_activity(nodes.engine("a"), RunRef::latest("x"), completion);
    nodes.wait(done).unwrap();
    assert_eq!(result(&mut nodes, "a", "x"), completed("by hand"));
}

/// The first signal is stored by a node that is not the owner, and the owner gets no notice; the second by the owner itself.
#[test]
fn signals_of_one_sender_over_two_nodes_keep_their_order_though_notices_are_lost() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    nodes.set_notices("a", NoticesFor::Lost);
    for (node, value) in [("b", "1"), ("a", "2"), ("b", "3"), ("b", "4"), ("a", "5"), ("a", "end")] {
        send(&mut nodes, node, "x", "s", value);
    }
    assert_eq!(result(&mut nodes, "a", "x"), completed("12345"));
}

#[test]
fn a_task_whose_claim_was_not_answered_is_worked_at() {
    let mut nodes = SimulatedNodes::new();
    let calls = |ctx: Ctx, _| async move { ctx.activity("works", "").queue("elsewhere").await };
    nodes.start("a", options().workflow("calls", calls));
    let mut worker = options().activity("works", |_, _| Ok(payload("done")));
    worker.queues.clear();
    worker.queue("elsewhere");
    nodes.start("b", worker);
    nodes.advance(RENEWAL);
    nodes.set_notices("b", NoticesFor::Lost);
    start(&mut nodes, "calls", "x");
    nodes.settle();
    let claimed = nodes.store("b").claim(&[("elsewhere".into(), 9)]).unwrap();
    assert_eq!(claimed.len(), 1, "it is the node's, which does not know of it");
    assert_eq!(result(&mut nodes, "a", "x"), completed("done"));
}

#[test]
fn an_activity_that_one_build_does_not_serve_is_done_by_a_node_of_another_and_its_run_is_not_stuck() {
    let mut nodes = SimulatedNodes::new();
    let calls = |ctx: Ctx, _| async move { ctx.activity("works", "").await };
    nodes.start("a", Options { build: "old".into(), ..options().workflow("calls", calls) });
    let new = options().workflow("calls", calls).activity("works", |_, _| Ok(payload("done")));
    nodes.start("b", Options { build: "new".into(), ..new });
    nodes.advance(RENEWAL * 2);
    for id in ["w", "x", "y", "z"] {
        start(&mut nodes, "calls", id);
        nodes.settle();
        assert_eq!(nodes.stuck(), 0);
    }
    for id in ["w", "x", "y", "z"] {
        assert_eq!(result(&mut nodes, "b", id), completed("done"));
    }
}

async fn waits_for_ever(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    ctx.promise("never").await
}

/// A node that serves another queue.
fn driver(serve: Options) -> Options {
    let mut driver = serve;
    driver.queues.clear();
    driver.queue("driver");
    driver
}

#[test]
fn a_run_that_another_node_started_times_out_though_its_owner_was_not_told() {
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", options().workflow("waits", waits_for_ever));
    nodes.start("driver", driver(options()));
    nodes.advance(RENEWAL);
    nodes.set_notices("a", NoticesFor::Lost);
    let timeout = Some(secs(30));
    let start = NewStart { queue: Some("default".into()), run_timeout: timeout, ..new("waits", "x") };
    let started = nodes.engine("driver").start(start);
    nodes.wait(started).unwrap();
    // The owner finds the run because of a message of its own.
    send(&mut nodes, "a", "x", "s", "");
    assert_eq!(result(&mut nodes, "a", "x").0, Status::TimedOut);
}

#[test]
fn the_end_of_a_run_that_another_node_ended_is_found_by_its_owner_though_it_was_not_told() {
    let mut nodes = two(|| options().workflow("waits", waits_for_ever));
    let run = start(&mut nodes, "waits", "x").run;
    nodes.settle();
    assert_eq!(nodes.owner(run), Some("a"));
    nodes.set_notices("a", NoticesFor::Lost);
    let engine = nodes.engine("a").clone();
    let mut waiting = Box::pin(async move { engine.result(&RunId::of("x")).await });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    nodes.settle();
    let ended = Client::terminate(nodes.engine("b"), RunRef::latest("x"), "enough".into());
    nodes.wait(ended).unwrap();
    assert_eq!(nodes.wait(waiting).unwrap().0, Status::Terminated);
    assert_eq!(nodes.engine("a").runs_in_memory(), 0);
}

#[test]
fn a_node_whose_lease_is_over_answers_no_query_from_its_memory() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    send(&mut nodes, "a", "x", "s", "1");
    nodes.settle();
    nodes.stall("a", true);
    nodes.advance(LEASE + RENEWAL);
    send(&mut nodes, "b", "x", "s", "2");
    nodes.settle();
    nodes.stall("a", false);
    let asked = query(nodes.engine("a"), "x");
    assert_eq!(nodes.wait(asked).unwrap(), payload("12"));
}

#[test]
fn an_activity_that_was_offered_and_that_no_node_took_times_out() {
    let gate = Gate::default();
    let passes = gate.clone();
    let serve = move || {
        let gate = passes.clone();
        let fan = |ctx: Ctx, _| async move {
            let calls: Vec<_> = (0..6).map(|_| ctx.activity("works", "").schedule_to_start(secs(5))).collect();
            let late = ctx.join(calls).await.into_iter().filter(Result::is_err).count();
            Ok(payload(late.to_string()))
        };
        let mut serve = options().workflow("fan", fan).waiting("works", move |_, _| gate.pass());
        serve.queue("default").max_concurrent_activities = 1;
        serve
    };
    let mut nodes = two(serve);
    nodes.stall("b", true);
    start(&mut nodes, "fan", "x");
    nodes.advance(secs(6));
    gate.open(Ok(payload("")));
    assert_eq!(result(&mut nodes, "a", "x"), completed("5"));
}

#[test]
fn a_node_that_shuts_down_hands_its_runs_over_while_its_attempts_end() {
    let gate = Gate::default();
    let passes = gate.clone();
    let serve = move || {
        let gate = passes.clone();
        let calls = |ctx: Ctx, _| async move { ctx.activity("works", "").await };
        options().workflow("collects", collects).workflow("calls", calls).waiting("works", move |_, _| gate.pass())
    };
    let mut nodes = two(serve);
    let run = start(&mut nodes, "collects", "x").run;
    start(&mut nodes, "calls", "y");
    nodes.settle();
    assert_eq!(nodes.owner(run), Some("a"));
    let mut ending = Box::pin(nodes.engine("a").shut_down());
    assert!(ending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    nodes.settle();
    let rows = nodes.rows();
    assert_eq!(rows.iter().map(|row| row.shards).collect::<Vec<_>>(), [0, 4], "{rows:?}");
    nodes.advance(RENEWAL);
    send(&mut nodes, "b", "x", "s", "end");
    assert_eq!(result(&mut nodes, "b", "x"), completed(""));
    assert!(ending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "its attempt runs");
    gate.open(Ok(payload("done")));
    nodes.wait(ending);
    assert_eq!(result(&mut nodes, "b", "y"), completed("done"));
    assert_eq!(nodes.attempts().made, 1, "its attempt has ended where it began");
}

#[test]
fn a_query_waits_until_its_run_has_an_owner() {
    let mut nodes = two(|| options().workflow("collects", collects));
    nodes.start("driver", driver(options()));
    start(&mut nodes, "collects", "x");
    nodes.settle();
    nodes.stall("b", true);
    nodes.stop("a");
    let mut asked = query(nodes.engine("driver"), "x");
    for _ in 0..5 {
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        nodes.advance(secs(1));
    }
    nodes.stall("b", false);
    assert_eq!(nodes.wait(asked).unwrap(), payload(""));
}

/// Fails if it is to check before it has seen a signal.
async fn checks(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let mut seen = String::new();
    loop {
        let signal = ctx.next_signal("s").await?;
        match text(&signal.input[0]).as_str() {
            "check" => assert_eq!(seen, "1"),
            "end" => return Ok(payload(seen)),
            value => seen.push_str(value),
        }
    }
}

/// A turn of a copy that the node had before it lost the shard and got it back was on its way to the store while the run was loaded anew.
#[test]
fn a_copy_that_lacks_a_turn_which_was_committed_meanwhile_makes_its_run_not_stuck() {
    let mut nodes = two(|| options().workflow("checks", checks));
    let [run, twin] = ["x", "twin"].map(|id| start(&mut nodes, "checks", id).run);
    send(&mut nodes, "a", "twin", "s", "1");
    nodes.settle();
    nodes.set_notices("a", NoticesFor::Lost);
    send(&mut nodes, "b", "x", "s", "1");
    let store = nodes.store("a");
    let mut record = Vec::new();
    store
        .turns(twin, 1, &mut |_, bytes| {
            record = bytes.to_vec();
            ControlFlow::Break(())
        })
        .unwrap();
    let mut turn = TurnWrite::new(TurnOf::Run(run), 1, nodes.now(), record);
    turn.taken.extend(store.unseen(run).unwrap().iter().map(|message| message.no));
    assert_eq!(turn.taken.len(), 1, "the signal is stored, and the owner does not know of it");
    allow_blocking(|| store.submit(Write::Turn(Box::new(turn)), Box::new(|written| drop(written.unwrap()))));

    for value in ["check", "end"] {
        send(&mut nodes, "a", "x", "s", value);
        nodes.settle();
        assert_eq!(nodes.stuck(), 0);
    }
    assert_eq!(result(&mut nodes, "a", "x"), completed("1"));
}
