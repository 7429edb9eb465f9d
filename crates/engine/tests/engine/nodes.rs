//! Several nodes over one store: take-overs, stalls, lost and doubled notices, on virtual time.

use std::task::{Context, Waker};

use dacapo_client::{Client, ClientFuture, QueryRun, RunRef, SendUpdate, UpdateWait};
use dacapo_core::{Ctx, Failure, Payload, Retry, Target};
use dacapo_engine::{Cache, Engine, NewStart, Options, RunId, StartedAs};
use dacapo_store::{SharedStore, Status};
use dacapo_testkit::{LEASE, NoticesFor, RENEWAL, SimulatedNodes};

use crate::kit::{Gate, Serve, World, completed, options, payload, secs, signal_of, text};

/// Two nodes that serve the same.
pub(crate) fn two(serve: impl Fn() -> Options) -> SimulatedNodes {
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", serve());
    nodes.start("b", serve());
    // The first node gives the second its share.
    nodes.advance(RENEWAL * 2);
    nodes
}

pub(crate) fn new(workflow: &'static str, workflow_id: &'static str) -> NewStart {
    NewStart {
        workflow: workflow.into(),
        workflow_id: workflow_id.into(),
        input: vec![payload("")],
        ..NewStart::default()
    }
}

/// Starts a run on node a.
pub(crate) fn start(nodes: &mut SimulatedNodes, workflow: &'static str, workflow_id: &'static str) -> StartedAs {
    let started = nodes.engine("a").start(new(workflow, workflow_id));
    nodes.wait(started).unwrap()
}

pub(crate) fn result(
    nodes: &mut SimulatedNodes,
    node: &'static str,
    workflow_id: &'static str,
) -> (Status, Result<Payload, Failure>) {
    let engine = nodes.engine(node).clone();
    let of = RunId::of(workflow_id);
    nodes.wait(async move { engine.result(&of).await }).unwrap()
}

pub(crate) fn send(
    nodes: &mut SimulatedNodes,
    node: &'static str,
    workflow_id: &'static str,
    name: &'static str,
    value: &str,
) {
    let engine = nodes.engine(node).clone();
    let signal = signal_of(name, value);
    nodes.wait(async move { engine.signal(&RunId::of(workflow_id), signal, None).await }).unwrap();
}

/// Collects signals until one says `end`.
pub(crate) async fn collects(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let seen = ctx.state(String::new());
    let shown = seen.clone();
    ctx.on_query("seen", move |_| Ok(payload(shown.read(String::clone))));
    let added = seen.clone();
    ctx.on_update(
        "add",
        |_| Ok(()),
        move |update| {
            let added = added.clone();
            async move {
                added.update(|seen| seen.push_str(&text(&update.input[0])));
                Ok(payload(added.read(String::clone)))
            }
        },
    );
    loop {
        let signal = ctx.next_signal("s").await?;
        match text(&signal.input[0]).as_str() {
            "end" => return Ok(payload(seen.read(String::clone))),
            value => seen.update(|seen| seen.push_str(value)),
        }
    }
}

#[test]
fn shards_are_shared_and_each_run_is_played_by_one_node() {
    let mut nodes = two(|| options().workflow("collects", collects));
    assert_eq!(nodes.rows().iter().map(|row| row.shards).collect::<Vec<_>>(), [2, 2]);
    let run = start(&mut nodes, "collects", "x").run;
    let owner = nodes.owner(run).unwrap();
    assert_eq!(owner, "a", "a start is local where the node owns a shard of the queue");
    assert_eq!(nodes.engine("b").runs_in_memory(), 0);
}

#[test]
fn a_message_from_any_node_reaches_the_run_and_its_end_the_caller() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    send(&mut nodes, "b", "x", "s", "1");
    send(&mut nodes, "a", "x", "s", "2");
    send(&mut nodes, "b", "x", "s", "3");
    send(&mut nodes, "b", "x", "s", "end");
    assert_eq!(result(&mut nodes, "b", "x"), completed("123"));
    assert_eq!(result(&mut nodes, "a", "x"), completed("123"));
}

#[test]
fn a_caller_that_waits_on_another_node_is_answered_when_the_run_ends_and_not_at_the_next_look() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    let engine = nodes.engine("b").clone();
    let mut waiting = Box::pin(async move { engine.result(&RunId::of("x")).await });
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    nodes.settle();
    let before = nodes.now();
    send(&mut nodes, "a", "x", "s", "end");
    assert_eq!(nodes.wait(waiting).unwrap(), completed(""));
    assert!(nodes.now().since(before) < secs(1), "{:?}", nodes.now().since(before));
}

#[test]
fn notices_that_are_lost_are_made_up_for_at_the_next_look() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    nodes.set_notices("a", NoticesFor::Lost);
    nodes.set_notices("b", NoticesFor::Lost);
    for value in ["1", "2", "end"] {
        send(&mut nodes, "b", "x", "s", value);
    }
    assert_eq!(result(&mut nodes, "b", "x"), completed("12"));
}

#[test]
fn notices_that_come_twice_change_nothing() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    nodes.set_notices("a", NoticesFor::Doubled);
    nodes.set_notices("b", NoticesFor::Doubled);
    for value in ["1", "2", "end"] {
        send(&mut nodes, "b", "x", "s", value);
    }
    assert_eq!(result(&mut nodes, "b", "x"), completed("12"));
}

pub(crate) fn query(engine: &Engine, of: &'static str) -> ClientFuture<Payload> {
    Client::query(engine, RunRef::latest(of), QueryRun { name: "seen".into(), ..QueryRun::default() })
}

#[test]
fn queries_and_updates_from_any_node_are_answered_by_the_owner() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    send(&mut nodes, "b", "x", "s", "1");
    let asked = query(nodes.engine("b"), "x");
    assert_eq!(nodes.wait(asked).unwrap(), payload("1"));
    let update = SendUpdate {
        id: "u".into(),
        name: "add".into(),
        input: vec![payload("2")],
        wait: UpdateWait::Completed,
        ..SendUpdate::default()
    };
    let sent = Client::update(nodes.engine("b"), RunRef::latest("x"), update.clone());
    let first = nodes.wait(sent).unwrap();
    let again = Client::update(nodes.engine("a"), RunRef::latest("x"), update);
    assert_eq!(nodes.wait(again).unwrap(), first, "the same id is the same update");
    let asked = query(nodes.engine("b"), "x");
    assert_eq!(nodes.wait(asked).unwrap(), payload("12"));
    assert_eq!(nodes.engine("b").runs_in_memory(), 0, "no other node plays the run");
}

#[test]
fn runs_of_a_dead_node_go_on_elsewhere_within_its_lease_and_a_renewal() {
    async fn naps(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        ctx.sleep(secs(5)).await?;
        let said = ctx.activity("says", "").await?;
        ctx.sleep(secs(5)).await?;
        Ok(said)
    }
    let mut nodes = two(|| options().workflow("naps", naps).activity("says", |_, _| Ok(payload("hello"))));
    start(&mut nodes, "naps", "x");
    nodes.advance(secs(6));
    let died = nodes.now();
    nodes.kill("a");
    nodes.advance(LEASE + RENEWAL);
    assert_eq!(nodes.rows().iter().map(|row| row.shards).collect::<Vec<_>>(), [4]);
    assert_eq!(result(&mut nodes, "b", "x"), completed("hello"));
    assert!(nodes.now().since(died) <= LEASE + RENEWAL + secs(5));
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn a_node_that_stops_hands_over_at_once() {
    let mut nodes = two(|| options().workflow("collects", collects));
    start(&mut nodes, "collects", "x");
    send(&mut nodes, "a", "x", "s", "1");
    nodes.stop("a");
    assert_eq!(nodes.rows().iter().map(|row| row.shards).collect::<Vec<_>>(), [4]);
    let before = nodes.now();
    send(&mut nodes, "b", "x", "s", "end");
    assert_eq!(result(&mut nodes, "b", "x"), completed("1"));
    assert!(nodes.now().since(before) < secs(1));
}

#[test]
fn a_node_that_was_taken_for_dead_drops_what_it_held_and_marks_no_run_as_stuck() {
    let world = World::default();
    let noted = world.clone();
    let gate = Gate::default();
    let passes = gate.clone();
    let serve = move || {
        let (noted, gate) = (noted.clone(), passes.clone());
        let works = move |ctx: dacapo_worker::ActivityCtx, _| {
            noted.note(format!("attempt {}", ctx.info().attempt));
            gate.pass()
        };
        let calls = |ctx: Ctx, _| async move {
            ctx.activity("works", "").await?;
            Ok(ctx.next_signal("s").await?.input.remove(0))
        };
        options().workflow("calls", calls).waiting("works", works)
    };
    let mut nodes = two(serve);
    let run = start(&mut nodes, "calls", "x").run;
    assert_eq!(nodes.owner(run), Some("a"));
    nodes.stall("a", true);
    nodes.advance(LEASE + RENEWAL);
    assert_eq!(world.count(), 2, "the other node makes the attempt again");
    nodes.stall("a", false);
    // Before it has noticed anything, it ends the attempt.
    gate.open(Ok(payload("done")));
    nodes.advance(secs(1));
    nodes.advance(RENEWAL * 3);
    send(&mut nodes, "a", "x", "s", "bye");
    assert_eq!(result(&mut nodes, "a", "x"), completed("bye"));
    assert_eq!(nodes.stuck(), 0);
    assert_eq!(nodes.rows().len(), 2, "it has come back as another node");
}

#[test]
fn an_attempt_goes_on_when_its_run_moves_to_a_node_that_joins() {
    let world = World::default();
    let gate = Gate::default();
    let (noted, passes) = (world.clone(), gate.clone());
    let serve = move || {
        let (noted, gate) = (noted.clone(), passes.clone());
        let works = move |_, _| {
            noted.note("begun");
            gate.pass()
        };
        let calls = |ctx: Ctx, _| async move { ctx.activity("works", "").retry(Retry::none()).await };
        options().workflow("calls", calls).waiting("works", works)
    };
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", serve());
    for id in ["w", "x", "y", "z"] {
        start(&mut nodes, "calls", id);
    }
    nodes.start("b", serve());
    nodes.advance(RENEWAL * 2);
    assert_eq!(nodes.rows().iter().map(|row| row.shards).collect::<Vec<_>>(), [2, 2]);
    gate.open(Ok(payload("done")));
    for id in ["w", "x", "y", "z"] {
        assert_eq!(result(&mut nodes, "b", id), completed("done"));
    }
    assert_eq!(world.count(), 4, "no attempt was made twice");
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn activities_of_a_queue_that_the_owner_does_not_serve_are_taken_by_a_node_that_does() {
    let mut nodes = SimulatedNodes::new();
    let calls = |ctx: Ctx, _| async move { ctx.activity("works", "").queue("elsewhere").await };
    nodes.start("a", options().workflow("calls", calls));
    let mut worker = options().activity("works", |ctx, _| Ok(payload(ctx.info().queue.as_str())));
    worker.queues.clear();
    worker.queue("elsewhere");
    nodes.start("b", worker);
    nodes.advance(RENEWAL);
    start(&mut nodes, "calls", "x");
    let before = nodes.now();
    assert_eq!(result(&mut nodes, "a", "x"), completed("elsewhere"));
    assert!(nodes.now().since(before) < secs(1), "a notice came, and it did not have to look");
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn a_start_and_a_child_in_a_queue_of_another_node_are_played_there() {
    async fn parent(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let child = ctx.child("child", "").workflow_id("child").queue("elsewhere").started().await?;
        ctx.signal_external(Target::workflow("child"), "s", "end").await?;
        child.await
    }
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", options().workflow("parent", parent));
    let mut worker = options().workflow("child", collects);
    worker.queues.clear();
    worker.queue("elsewhere");
    nodes.start("b", worker);
    nodes.advance(RENEWAL);
    start(&mut nodes, "parent", "x");
    assert_eq!(result(&mut nodes, "a", "x"), completed(""));
    let started = nodes.engine("a").start(NewStart { queue: Some("elsewhere".into()), ..new("child", "direct") });
    let run = nodes.wait(started).unwrap().run;
    assert_eq!(nodes.owner(run), Some("b"));
    send(&mut nodes, "a", "direct", "s", "end");
    assert_eq!(result(&mut nodes, "a", "direct"), completed(""));
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn a_timer_fires_once_though_its_run_moves() {
    async fn naps(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        for _ in 0..10 {
            ctx.sleep(secs(4)).await?;
        }
        Ok(payload("rested"))
    }
    let serve = || options().workflow("naps", naps);
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", serve());
    for id in ["w", "x", "y", "z"] {
        start(&mut nodes, "naps", id);
    }
    nodes.advance(secs(6));
    nodes.start("b", serve());
    nodes.advance(secs(7));
    nodes.kill("b");
    nodes.advance(LEASE);
    nodes.start("c", serve());
    for id in ["w", "x", "y", "z"] {
        assert_eq!(result(&mut nodes, "c", id), completed("rested"));
    }
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn work_of_a_node_that_died_beside_its_task_is_done_by_another() {
    let mut nodes = SimulatedNodes::new();
    let calls = |ctx: Ctx, _| async move { ctx.activity("works", "").queue("elsewhere").await };
    nodes.start("a", options().workflow("calls", calls));
    let gate = Gate::default();
    let serve = |gate: Gate| {
        let mut worker = options().waiting("works", move |_, _| gate.pass());
        worker.queues.clear();
        worker.queue("elsewhere");
        worker
    };
    nodes.start("b", serve(gate));
    nodes.advance(RENEWAL);
    start(&mut nodes, "calls", "x");
    nodes.settle();
    nodes.kill("b");
    let open = Gate::default();
    open.open(Ok(payload("done")));
    nodes.start("c", serve(open));
    assert_eq!(result(&mut nodes, "a", "x"), completed("done"));
}

/// A workflow as one build has it: the activities that it calls, in order.
fn steps(build: &'static str, activities: &'static [&'static str]) -> Options {
    let code = move |ctx: Ctx, _| async move {
        for activity in activities {
            ctx.activity(*activity, "").await?;
            ctx.next_signal("s").await?;
        }
        Ok(payload("done"))
    };
    let mut serve = options().workflow("steps", code);
    for activity in ["one", "two", "three"] {
        serve = serve.activity(activity, |_, _| Ok(payload("")));
    }
    Options { build: build.into(), ..serve }
}

/// A rolling deploy: a run that one build recorded moves to a node of the other, which cannot play it while it lasts.
fn a_deploy_marks_no_run_as_stuck(first: &'static [&'static str], second: &'static [&'static str]) {
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", steps("first", first));
    let ids = ["w", "x", "y", "z"];
    for id in ids {
        start(&mut nodes, "steps", id);
    }
    nodes.settle();
    nodes.start("b", steps("second", second));
    nodes.advance(RENEWAL * 2);
    for id in ids {
        send(&mut nodes, "a", id, "s", "");
    }
    nodes.advance(secs(20));
    assert_eq!(nodes.stuck(), 0, "the build that recorded them is still there");
    // The new build is taken back: its runs go on where they can be played.
    nodes.stop("b");
    for id in ids {
        send(&mut nodes, "a", id, "s", "");
    }
    for id in ids {
        assert_eq!(result(&mut nodes, "a", id), completed("done"));
    }
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn a_deploy_of_code_that_decides_otherwise_marks_no_run_as_stuck_while_the_other_build_is_served() {
    a_deploy_marks_no_run_as_stuck(&["one", "two"], &["two", "one"]);
}

#[test]
fn a_deploy_that_is_taken_back_marks_no_run_as_stuck_either() {
    a_deploy_marks_no_run_as_stuck(&["two", "one"], &["one", "two"]);
}

#[test]
fn code_that_decides_otherwise_is_reported_once_the_build_that_recorded_the_run_is_gone() {
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", steps("first", &["one", "two"]));
    start(&mut nodes, "steps", "x");
    nodes.settle();
    nodes.start("b", steps("second", &["two", "one"]));
    nodes.stop("a");
    send(&mut nodes, "b", "x", "s", "");
    nodes.advance(secs(60));
    assert_eq!(nodes.stuck(), 1);
}

#[test]
fn a_large_fan_out_is_shared_with_a_node_that_has_free_places() {
    let serve = |name: &'static str, world: World| {
        let fan = |ctx: Ctx, _| async move {
            let calls: Vec<_> = (0..200).map(|_| ctx.activity("works", "")).collect();
            Ok(payload(ctx.join(calls).await.len().to_string()))
        };
        let works = move |_, _| {
            world.note(name);
            Ok(payload(""))
        };
        let mut serve = options().workflow("fan", fan).activity("works", works);
        serve.queue("default").max_concurrent_activities = 10;
        serve
    };
    let world = World::default();
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", serve("a", world.clone()));
    nodes.start("b", serve("b", world.clone()));
    nodes.advance(RENEWAL * 2);
    start(&mut nodes, "fan", "x");
    assert_eq!(result(&mut nodes, "a", "x"), completed("200"));
    let notes = world.notes();
    let of = |node: &str| notes.iter().filter(|note| *note == node).count();
    assert_eq!(of("a") + of("b"), 200, "each was done once");
    assert!(of("b") > 0, "{} and {}", of("a"), of("b"));
}

#[test]
fn messages_of_all_nodes_count_for_the_limit() {
    async fn waits(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        ctx.promise("never").await
    }
    let serve = || Options { message_limit: 3, ..options().workflow("waits", waits) };
    let mut nodes = two(serve);
    start(&mut nodes, "waits", "x");
    // The owner does not run: what is sent stays where it is.
    nodes.stall("a", true);
    let sent = |nodes: &mut SimulatedNodes| {
        let engine = nodes.engine("b").clone();
        nodes.wait(async move { engine.signal(&RunId::of("x"), signal_of("s", "1"), None).await })
    };
    for _ in 0..3 {
        sent(&mut nodes).unwrap();
    }
    let error = sent(&mut nodes).unwrap_err();
    assert!(matches!(error, dacapo_client::Error::InboxFull { waiting: 3, limit: 3, .. }), "{error}");
}

/// A node that was taken for dead ends its attempt after the other has made it again: both results reach the run before its
/// next turn.
#[test]
fn results_of_two_nodes_for_one_activity_are_one_result() {
    let gate = Gate::default();
    let passes = gate.clone();
    let serve = move || {
        let gate = passes.clone();
        let calls = |ctx: Ctx, _| async move {
            let result = ctx.activity("works", "").await?;
            ctx.next_signal("s").await?;
            Ok(result)
        };
        // A run that is not in memory reads its messages when a result comes.
        options().workflow("calls", calls).waiting("works", move |_, _| gate.pass()).cache(Cache::AtMost(0))
    };
    let mut nodes = two(serve);
    let run = start(&mut nodes, "calls", "x").run;
    nodes.settle();
    nodes.stall("a", true);
    nodes.advance(LEASE + RENEWAL);
    assert!(SharedStore::owns(&**nodes.store("b"), run));
    // The result of the first attempt is stored; the second ends before its node knows of that.
    nodes.set_notices("b", NoticesFor::Lost);
    nodes.stall("a", false);
    nodes.stall("b", true);
    gate.open(Ok(payload("done")));
    nodes.settle();
    nodes.stall("b", false);
    send(&mut nodes, "b", "x", "s", "");
    assert_eq!(result(&mut nodes, "b", "x"), completed("done"));
    assert_eq!(nodes.stuck(), 0);
}

#[test]
fn an_update_that_waits_while_its_run_moves_is_answered_by_the_node_that_plays_it_then() {
    let gate = Gate::default();
    let passes = gate.clone();
    let serve = move || {
        let gate = passes.clone();
        let slow = |ctx: Ctx, _| async move {
            let calls = ctx.clone();
            ctx.on_update(
                "work",
                |_| Ok(()),
                move |_| {
                    let ctx = calls.clone();
                    async move { ctx.activity("works", "").await }
                },
            );
            Ok(ctx.next_signal("s").await?.input.remove(0))
        };
        options().workflow("slow", slow).waiting("works", move |_, _| gate.pass())
    };
    let mut nodes = SimulatedNodes::new();
    nodes.start("driver", {
        let mut driver = serve();
        driver.queues.clear();
        driver.queue("driver");
        driver
    });
    nodes.start("a", serve());
    nodes.advance(RENEWAL);
    let ids = ["w", "x", "y", "z"];
    for id in ids {
        start(&mut nodes, "slow", id);
    }
    let update =
        SendUpdate { id: "u".into(), name: "work".into(), wait: UpdateWait::Completed, ..SendUpdate::default() };
    let mut waiting: Vec<_> =
        ids.map(|id| Client::update(nodes.engine("driver"), RunRef::latest(id), update.clone())).into();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting.iter_mut().all(|waiting| waiting.as_mut().poll(&mut cx).is_pending()));
    nodes.settle();
    nodes.start("b", serve());
    nodes.advance(RENEWAL * 3);
    gate.open(Ok(payload("done")));
    for waiting in waiting {
        let answer = nodes.wait(waiting).unwrap();
        assert!(format!("{answer:?}").contains("Completed"), "{answer:?}");
    }
}
