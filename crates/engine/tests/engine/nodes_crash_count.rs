//! Crash counts where several nodes share a store: the node that died counts, and the node that plays the run next heeds.

use dacapo_client::{Client, RunRef};
use dacapo_engine::{CrashLimits, Options};
use dacapo_store::{Doing, ReadRuns, RunRow, StuckCause};
use dacapo_testkit::{LEASE, RENEWAL, SimulatedNodes};

use crate::kit::{Gate, Serve, World, completed, every_second, options, payload, text, without_delays};
use crate::nodes::{collects, result, send, start};

const NODES: [&str; 2] = ["a", "b"];

fn quarantined_after(deaths: u32) -> Options {
    let crash_limits = CrashLimits { delay_after: 0, quarantine_after: deaths, ..CrashLimits::default() };
    Options { crash_limits, ..options() }.workflow("collects", collects)
}

/// Two nodes that keep notes of what they run.
fn two(serve: impl Fn() -> Options) -> SimulatedNodes {
    let mut nodes = SimulatedNodes::new();
    for node in NODES {
        nodes.start_after_death(node, serve(), &[]);
    }
    nodes.advance(RENEWAL * 2);
    nodes
}

fn row(nodes: &SimulatedNodes, workflow_id: &str) -> RunRow {
    nodes.store("b").find(workflow_id, None).unwrap().expect("the run is there")
}

/// The turn that a process plays which has this run in memory.
fn turn(nodes: &SimulatedNodes, workflow_id: &str) -> Doing {
    let row = row(nodes, workflow_id);
    Doing::Turn { run: row.no, turn: row.turns }
}

/// Kills node a and starts it again, with notes of what it was running.
fn dies_while(nodes: &mut SimulatedNodes, running: &[Doing], options: Options) {
    nodes.kill("a");
    nodes.start_after_death("a", options, running);
}

#[test]
fn run_whose_nodes_died_too_often_is_quarantined_on_whichever_node_has_it_until_any_releases_it() {
    let mut nodes = two(|| quarantined_after(3));
    start(&mut nodes, "collects", "x");
    start(&mut nodes, "collects", "other");
    for deaths in 1..=3 {
        let running = turn(&nodes, "x");
        dies_while(&mut nodes, &[running], quarantined_after(3));
        assert_eq!(row(&nodes, "x").crash_count, deaths);
        nodes.advance(LEASE + RENEWAL * 2);
    }
    let stuck = row(&nodes, "x").stuck.expect("it is listed as stuck");
    assert_eq!(stuck.cause, StuckCause::Quarantined);
    assert!(stuck.reason.contains("the process died 3 times while its code was played"), "{}", stuck.reason);
    for node in NODES {
        send(&mut nodes, node, "x", "s", node);
        send(&mut nodes, node, "other", "s", node);
    }
    send(&mut nodes, "b", "other", "s", "end");
    assert_eq!(result(&mut nodes, "a", "other"), completed("ab"));
    nodes.advance(LEASE);
    assert_eq!((row(&nodes, "x").turns, nodes.stuck()), (1, 1), "it is not played");
    let owner = nodes.owner(row(&nodes, "x").no).unwrap();
    let other = NODES.into_iter().find(|node| *node != owner).unwrap();
    let released = Client::release(nodes.engine(other), RunRef::latest("x"));
    nodes.wait(released).unwrap();
    send(&mut nodes, other, "x", "s", "end");
    assert_eq!(result(&mut nodes, other, "x"), completed("ab"));
}

#[test]
fn run_that_another_node_has_played_on_is_not_counted_when_the_node_that_died_comes_back() {
    let mut nodes = two(|| quarantined_after(1));
    start(&mut nodes, "collects", "well");
    start(&mut nodes, "collects", "ill");
    let running = ["well", "ill"].map(|id| turn(&nodes, id));
    nodes.kill("a");
    nodes.advance(LEASE + RENEWAL * 2);
    send(&mut nodes, "b", "well", "s", "1");
    nodes.settle();
    nodes.start_after_death("a", quarantined_after(1), &running);
    assert_eq!([row(&nodes, "well").crash_count, row(&nodes, "ill").crash_count], [0, 1]);
    send(&mut nodes, "a", "well", "s", "end");
    assert_eq!(result(&mut nodes, "a", "well"), completed("1"));
    assert_eq!(row(&nodes, "ill").stuck.map(|stuck| stuck.cause), Some(StuckCause::Quarantined));
}

/// Of all runs with a crash count each node plays one at a time, and no node waits for one that another plays.
#[test]
fn runs_with_a_crash_count_clear_themselves_on_every_node_although_some_move_while_they_wait() {
    let (world, gate) = (World::default(), Gate::default());
    let serve = || {
        let (world, gate) = (world.clone(), gate.clone());
        without_delays()
            .workflow(
                "alone",
                |ctx, input| async move { ctx.local_activity("work", input).retry(every_second(3)).await },
            )
            .waiting("work", move |_, input| {
                world.note(text(&input));
                gate.pass()
            })
    };
    let mut nodes = SimulatedNodes::new();
    nodes.start("a", serve());
    let ids = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];
    let running = ids.map(|id| Doing::Run(start(&mut nodes, "alone", id).run));
    nodes.settle();
    nodes.kill("a");
    let before = world.count();
    nodes.start_after_death("a", serve(), &running);
    nodes.advance(LEASE + RENEWAL * 2);
    assert_eq!(world.count() - before, 1, "one of them runs");
    nodes.start("b", serve());
    nodes.advance(RENEWAL * 2);
    let owners = ids.map(|id| nodes.owner(row(&nodes, id).no).expect("it has an owner"));
    assert!(NODES.iter().all(|node| owners.contains(node)), "{owners:?}");
    gate.open(Ok(payload("done")));
    for id in ids {
        assert_eq!(result(&mut nodes, "b", id), completed("done"), "{id}");
        assert_eq!(row(&nodes, id).crash_count, 0);
    }
}

#[test]
fn node_that_gets_a_run_with_a_crash_count_delays_it() {
    let limits = CrashLimits { delay_after: 2, quarantine_after: 0, ..CrashLimits::default() };
    let serve = move || Options { crash_limits: limits, ..options() }.workflow("collects", collects);
    let mut nodes = two(serve);
    start(&mut nodes, "collects", "x");
    for _ in 0..2 {
        let running = turn(&nodes, "x");
        dies_while(&mut nodes, &[running], serve());
    }
    nodes.kill("a");
    send(&mut nodes, "b", "x", "s", "end");
    while nodes.stuck() == 0 {
        nodes.advance(RENEWAL / 10);
    }
    let (stuck, now) = (row(&nodes, "x").stuck.unwrap(), nodes.now());
    assert_eq!(stuck.cause, StuckCause::Delayed, "{}", stuck.reason);
    assert!(stuck.retry.since(now) <= limits.first_delay, "{}", stuck.reason);
    nodes.advance(limits.first_delay);
    assert_eq!(result(&mut nodes, "b", "x"), completed(""));
}
